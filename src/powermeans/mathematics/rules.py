"""Rules: how a point's distances to the centers become weights.

Hamerly & Elkan (2002) write every member of the family as two functions of a point's distances: its
memberships say how much it belongs to each center and add to one; its weighing says how much it
counts. Weights are their product. Only `Online` needs more than distances, since its centers move
after each point.
"""

import abc
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from powermeans.mathematics import power_mean as pm
from powermeans.mathematics.sums import Sums
from powermeans.system.containers import check_number, real
from powermeans.types import FloatArray, IndexArray


class Rule(abc.ABC):
    """Turn distances, (n_points, n_centers), into weights.

    A new rule defines memberships and objective, and weighing if points do not count the same.
    """

    __slots__ = ()

    power: float
    """The power with the same memberships; NaN if there is none."""
    descends: bool = True
    """Whether a sweep is sure not to raise the objective."""
    scatters: ClassVar[bool] = False
    """Whether its sweeps return sums that are `Scattered`."""

    @abc.abstractmethod
    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return how much each point belongs to each center; each row adds to one."""

    def weighing(self, sq_dist: FloatArray) -> FloatArray:
        """Return how much each point counts, (n_points,): one, unless a rule says otherwise."""
        return np.ones_like(sq_dist[:, 0])

    @abc.abstractmethod
    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the share of each point in the objective, (n_points,)."""

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights and objective of each point."""
        weights = self.memberships(sq_dist) * self.weighing(sq_dist)[:, None]
        return weights, self.objective(sq_dist)


@dataclass(frozen=True, slots=True)
class Hard(Rule):
    """Lloyd's rule: a point belongs to its nearest center. It is the limit of `Power` at -inf."""

    descends: bool = True
    """Whether centers move to the means, and so no sweep raises the objective."""
    power: ClassVar[float] = -math.inf  # type: ignore[misc]

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return one for the first of the nearest centers, zero for the others."""
        return pm.memberships(sq_dist, -math.inf)

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the least squared distance."""
        nearest: FloatArray = np.min(sq_dist, axis=1)
        return nearest


@dataclass(frozen=True, slots=True)
class Priced(Rule):
    """A point belongs to the center of least distance and price: high prices make small clusters.

    At other centers or prices the objective does not compare. The same constant in all prices moves
    no point.
    """

    prices: tuple[float, ...]
    """What each center costs, in units of squared distance."""
    power: ClassVar[float] = -math.inf  # type: ignore[misc]
    descends: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, _numbers(self.prices))):
            raise ValueError(f"prices={self.prices!r} must be finite: pass one for each center")

    def prices_of(self, n_centers: int) -> FloatArray:
        """Return the prices as an array."""
        if len(self.prices) != n_centers:
            raise ValueError(f"there are {len(self.prices)} prices for {n_centers} centers")
        return np.array(self.prices, dtype=np.float64)

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return one for the first of the centers of least distance and price, else zero."""
        memberships = np.zeros_like(sq_dist)
        cheapest = np.argmin(self._priced(sq_dist), axis=1)
        memberships[np.arange(len(sq_dist)), cheapest] = 1.0
        return memberships

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the least distance and price."""
        least: FloatArray = self._priced(sq_dist).min(axis=1)
        return least

    def _priced(self, sq_dist: FloatArray) -> FloatArray:
        return sq_dist + self.prices_of(sq_dist.shape[1])


@dataclass(frozen=True, slots=True)
class Power(Rule):
    """Weigh by the gradient of the power mean M_s (Xu & Lange 2019, equation 5) times k^(1/s).

    The factor puts weights into [0, 1]. Fuzzy c-means with the fuzzifier m has the same weights at
    s = -1 / (m - 1).
    """

    power: float
    highest: ClassVar[float] = -0.02
    """Nearer to zero the factor k^(1/s) leaves the range of float64 for many centers."""

    def __post_init__(self) -> None:
        way_out = "for example power=-3.0, or use Hard() for the limit at -inf"
        check_number(self.power, "power", f"(-inf, {self.highest}]", way_out)

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return y_j^(s-1) / sum_l y_l^(s-1)."""
        return pm.memberships(sq_dist, self.power)

    def weighing(self, sq_dist: FloatArray) -> FloatArray:
        """Return sum_l y_l^(s-1) / (sum_l y_l^s)^(1 - 1/s)."""
        return pm.weighing(sq_dist, self.power)

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return M_s."""
        return pm.power_mean(sq_dist, self.power)

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights k^(1/s) w_ij, which lie in [0, 1], and the objective M_s."""
        return pm.power_mean_weights(sq_dist, self.power), self.objective(sq_dist)


@dataclass(frozen=True, slots=True)
class Harmonic(Rule):
    """Zhang's generalized k-harmonic means, KHM_p (2001), with distances d to the power of p.

    Above p = 2 points far from all centers count more than others and draw centers to them. At
    p = 2 this is k-harmonic means and `Power(-1)`; otherwise a sweep is an approximate Newton step,
    which may raise the objective.
    """

    p: float = 2.0
    unit: float = 1.0
    """Unit of squared distance, which keeps weights in the range of float64. It multiplies all of
    them by one factor, which moves no center."""

    def __post_init__(self) -> None:
        mean_square = "for example the mean squared distance of the points from their mean"
        check_number(self.unit, "unit", "(0, inf)", mean_square)
        way_out = "for example p=2 for k-harmonic means, or p=3.5"
        check_number(self.p, "p", f"[{-2 * Power.highest}, inf)", way_out)

    @property
    def power(self) -> float:  # type: ignore[override]
        """Power of squared distances, -p / 2."""
        return -self.p / 2

    @property
    def descends(self) -> bool:  # type: ignore[override]
        """Whether a sweep majorises and minimises: only at p = 2."""
        return self.p == 2

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return d_j^(-p-2) / sum_l d_l^(-p-2)."""
        return pm.memberships(sq_dist, self.power)

    def weighing(self, sq_dist: FloatArray) -> FloatArray:
        """Return sum_l d_l^(-p-2) / (sum_l d_l^(-p))^2, over unit^(p/2-1)."""
        return pm.weighing(sq_dist, self.power) * self._of_power_weights(sq_dist)

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the harmonic mean of the d_j^p."""
        with np.errstate(over="ignore"):
            means: FloatArray = pm.power_mean(sq_dist, self.power) ** (self.p / 2)
        return means

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights by their definition, and the harmonic mean of the d_j^p."""
        weights = pm.power_mean_weights(sq_dist, self.power)
        return weights * self._of_power_weights(sq_dist)[:, None], self.objective(sq_dist)

    def _of_power_weights(self, sq_dist: FloatArray) -> FloatArray:
        """Return the ratio to the weights of the power mean: (M_s / unit)^(-s-1) k^(-1/s-1)."""
        least = np.finfo(np.float64).tiny  # a point at a center counts much, not infinitely
        means = np.maximum(pm.power_mean(sq_dist, self.power), least)
        of_k = float(sq_dist.shape[1]) ** (-1 / self.power - 1)
        factors: FloatArray = of_k * (means / self.unit) ** (-self.power - 1)
        return factors


@dataclass(frozen=True, slots=True)
class Gaussian(Rule):
    """Expectation maximisation for spherical Gaussians of one variance.

    With the variance v and the shares q_j, the objective of a point is its free energy
    -2 v log sum_j q_j exp(-y_j / (2 v)). It goes to the least of the squared distances as v
    vanishes, and to their mean as v grows.
    """

    variance: float = 1.0
    shares: tuple[float, ...] | None = None
    """Share of all points in each Gaussian, adding to one; None if they are equal."""
    power: ClassVar[float] = math.nan  # type: ignore[misc]

    def __post_init__(self) -> None:
        way_out = "for example the mean variance within clusters, or use Hard() for the limit at 0"
        check_number(self.variance, "variance", "(0, inf)", way_out)
        shares = () if self.shares is None else _numbers(self.shares)
        if not all(0 < share <= 1 for share in shares):
            raise ValueError(
                f"shares={self.shares!r} must be positive and at most 1: pass what part of all "
                "points each center has, or None if the parts are equal"
            )

    def shares_of(self, n_centers: int) -> FloatArray | None:
        """Return the shares as an array, or None if they are equal."""
        if self.shares is None:
            return None
        if len(self.shares) != n_centers:
            raise ValueError(f"there are {len(self.shares)} shares for {n_centers} centers")
        return np.array(self.shares, dtype=np.float64)

    def energies(self, sq_dist: FloatArray) -> FloatArray:
        """Return y_j - 2 v log q_j, the least for the Gaussian that a point belongs to most."""
        shares = self.shares_of(sq_dist.shape[1])
        log_shares = -math.log(sq_dist.shape[1]) if shares is None else np.log(shares)
        return sq_dist - 2 * self.variance * log_shares

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return responsibilities q_j exp(-y_j / (2 v)) / sum_l q_l exp(-y_l / (2 v))."""
        heights, _ = self._heights(sq_dist)
        shares: FloatArray = heights / heights.sum(axis=1, keepdims=True)
        return shares

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the free energy."""
        heights, least = self._heights(sq_dist)
        energy: FloatArray = least - 2 * self.variance * np.log(heights.sum(axis=1))
        return energy

    def _heights(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q_j exp(-y_j / (2 v)) over the highest, and -2 v times the logarithm of it."""
        energies = self.energies(sq_dist)
        least: FloatArray = energies.min(axis=1)
        with np.errstate(over="ignore"):
            heights: FloatArray = np.exp((least[:, None] - energies) / (2 * self.variance))
        return heights, least


@dataclass(frozen=True, slots=True)
class UnequalGaussians(Rule):
    """Expectation maximisation for spherical Gaussians, each with a variance of its own.

    With variances v_j and shares q_j, the objective of a point is minus the logarithm of its
    density, -log sum_j q_j (2 pi v_j)^(-d/2) exp(-y_j / (2 v_j)).
    """

    variances: tuple[float, ...]
    shares: tuple[float, ...]
    n_features: int | FloatArray = field(compare=False)
    """d, or that of each point, (n_points,), where entries are missing."""
    power: ClassVar[float] = math.nan  # type: ignore[misc]
    scatters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for variance in _numbers(self.variances):
            Gaussian(variance)
        Gaussian(shares=_numbers(self.shares))
        if len(self.variances) != len(self.shares):
            raise ValueError(
                f"there are {len(self.shares)} shares for {len(self.variances)} variances"
            )
        if not isinstance(self.n_features, np.ndarray):
            check_number(self.n_features, "n_features", "(0, inf]", "d")

    @property
    def variance(self) -> float:
        """Return the mean variance of a point, v = sum_j q_j v_j."""
        return float(np.dot(self.shares, self.variances))

    def energies(self, sq_dist: FloatArray) -> FloatArray:
        """Return -log (q_j N_j), the least for the Gaussian that a point belongs to most."""
        twice = 2 * np.array(self.variances)
        halves = np.asarray(self.n_features)[..., None] / 2
        of_center = halves * np.log(math.pi * twice) - np.log(self.shares)
        with np.errstate(over="ignore"):
            energies: FloatArray = sq_dist / twice + of_center
        return energies

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return responsibilities q_j N_j / sum_l q_l N_l."""
        energies = self.energies(sq_dist)
        heights = np.exp(energies.min(axis=1, keepdims=True) - energies)
        shares: FloatArray = heights / heights.sum(axis=1, keepdims=True)
        return shares

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return minus the logarithm of the density."""
        energies = self.energies(sq_dist)
        least: FloatArray = energies.min(axis=1)
        minus_logs: FloatArray = least - np.log(np.exp(least[:, None] - energies).sum(axis=1))
        return minus_logs


@dataclass(frozen=True, slots=True, eq=False)
class Online(Rule):
    """Move the center j nearest to each point in turn by w_j += rate (x - w_j).

    The rate of a point of weight one is 1 / n_j, with n_j the weight that the center has won so
    far, this point's included (Bottou & Bengio 1995, equation 7), or given (equation 4). A point of
    weight three moves its center as three copies would, one after another. Only rows that know
    this rule can sweep with it.
    """

    counts: FloatArray
    """n_j before the sweep, (n_centers,)."""
    rates: FloatArray | None = None
    """Rate of the step of each point with weight; None for 1 / n_j."""
    order: IndexArray | None = None
    """Points in their order, (n_points,); None for the order in which they are stored."""
    power: ClassVar[float] = -math.inf  # type: ignore[misc]
    descends: ClassVar[bool] = False  # type: ignore[misc]

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return the memberships of `Hard`, from distances at the time of each point."""
        return Hard().memberships(sq_dist)

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the least squared distance."""
        return Hard().objective(sq_dist)

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Refuse: after the first point the centers are no longer those of the distances."""
        raise TypeError("these rows cannot sweep with the rule Online: they do not take turns")


@dataclass(frozen=True, slots=True)
class Reached(Sums):
    """Sums of a sweep whose centers are not its means but those that it reached."""

    reached: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    """(n_centers, n_features)."""

    @classmethod
    def of(cls, sums: Sums, reached: FloatArray) -> Self:
        """Return these sums with other centers."""
        return cls(sums.points, sums.weights, sums.objective, sums.inertia, sums.n_skipped, reached)

    @classmethod
    def at(cls, reached: FloatArray, counts: FloatArray, inertia: float) -> Self:
        """Return sums with the weights n_j, whose quotients are the centers."""
        return cls(reached * counts[:, None], counts, inertia, inertia, reached=reached)

    def __add__(self, other: Self) -> Self:
        raise TypeError("these sums do not add: each sweep begins where the one before ended")

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return the centers reached."""
        return self.reached


@dataclass(frozen=True, slots=True)
class Scattered(Sums):
    """Sums of a sweep, and the weighted squared distances to each center of the sweep."""

    scatter: FloatArray = field(default_factory=lambda: np.empty(0))
    """sum_i c_i w_ij y_ij, (n_centers,)."""

    @classmethod
    def of(cls, sums: Sums, scatter: FloatArray) -> Self:
        """Return these sums with their scatter."""
        return cls(sums.points, sums.weights, sums.objective, sums.inertia, sums.n_skipped, scatter)

    def __add__(self, other: Self) -> Self:
        return self.of(Sums.__add__(self, other), self.scatter + other.scatter)

    def __mul__(self, unit: float) -> Self:
        return self.of(Sums.__mul__(self, unit), self.scatter * unit)


def _numbers(values: Any) -> tuple[float, ...]:
    """Return the entries of a tuple, and NaN for what is no number or no tuple."""
    return tuple(map(real, values)) if isinstance(values, tuple) else (math.nan,)


def rule_at(power: float | Rule) -> Rule:
    """Return the rule of a power, `Hard` at minus infinity, or the rule itself."""
    if isinstance(power, Rule):
        return power
    return Hard() if real(power) == -math.inf else Power(power)
