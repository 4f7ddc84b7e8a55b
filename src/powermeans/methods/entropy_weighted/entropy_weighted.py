"""Power k-means that learns which features matter (Chakraborty et al. 2020)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.seeds.choose import order_by_place
from powermeans.engine.stopping import CentersSettled, StopRule
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident, Sweep, Update
from powermeans.mathematics.rules import Power
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.mathematics.sums import Sums
from powermeans.methods.base import CenterEstimator
from powermeans.methods.documented import one_of
from powermeans.methods.entropy_weighted.feature_weighted import FeatureWeightedPoints, SquaredSums
from powermeans.methods.power_kmeans import PowerKMeans, searched
from powermeans.points.needs import Measure, Needs
from powermeans.points.protocol import Points
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Matrix

_TINY = float(np.finfo(np.float64).tiny)


# Starts from one feature each, starts from random weights, and the most searches after them.
_EFFORTS = {"fast": (8, 0, 1), "balanced": (32, 0, 3), "thorough": (128, 32, 10)}


class EntropyWeightedPowerKMeans(CenterEstimator):
    """Power k-means that learns feature weights, for data in which few features matter.

    It lowers the sum of the power means of the distances ``sum(v * ((x - center) / scale) ** 2)``
    plus ``penalty * sum(v * log(v))``, over the centers and over feature weights v that add up to
    one. Each sweep moves the centers as power k-means does and then sets ``v`` in proportion to
    ``exp(-scatter / penalty)``, with the weighted scatter of each feature about the centers. The
    power falls from soft to hard, and Lloyd's rule comes last. A search then starts from the
    clusters of single features, since equal weights hide a feature among many.

    Use it when many features are noise. If all features are useful, `PowerKMeans` finds lower sums
    of squares. A feature with hardly more distinct values than there are clusters, such as a flag,
    has nearly no scatter about as many centers and can win all the weight: leave it out.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    penalty : float or "auto", default="auto"
        Price of concentrating the weights on few features, in the unit of the scatter, a sum over
        all points: with twice their weight pass twice the penalty. With a smaller one, fewer
        features count. "auto" is a tenth of the mean scatter of the features
        about their means: with `standardize`, of the total weight.
    standardize : bool, default=True
        Whether to divide differences by the standard deviation of their feature; the centers keep
        the units of X. With False, as in the paper, whose data are scaled, a feature of small
        variance wins even if it is noise.
    effort : {"fast", "balanced", "thorough"} or None, default="balanced"
        How much to search: "fast" starts from 8 single features, "balanced" from 32, and
        "thorough" goes on with more of them and with random weights. With None, or if `init` is an
        array, there is no search.
    power : float or "auto", default="auto"
        Power of the first sweep, negative; "auto" is as in `PowerKMeans`.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry. With "observed", distances are over the
        observed entries, divided by the share of the rows that have the feature, since one with
        gaps would look tighter.
    n_init : int, default=1
        Number of runs; the one with the lowest objective is kept.
    max_iter : int, default=300
        Largest number of sweeps, counted separately for annealing and for Lloyd.
    tol : float, default=1e-6
        Lloyd ends when the sum of the squared center shifts is at most `tol` times the smallest
        variance of a feature.
    init, growth, random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,)
        The feature weights v; zero for features that are constant, unless all are. After
        `from_centers` they are equal.
    feature_scales_ : ndarray of shape (n_features,)
        What differences are divided by: the standard deviation of each feature, or one, as after
        `from_centers`; times the root of the share of the rows that have the feature.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point by the weighted distance.
    inertia_ : float
        Weighted sum of the weighted distances to the nearest center.
    objective_ : float
        The inertia plus ``penalty * sum(v * log(v))``.
    penalty_ : float
        The penalty.
    n_iter_ : int
        Number of sweeps of the best run, without those of the searches for centers.
    history_ : recarray
        One record for each of these sweeps, one descent after another.
    cluster_centers_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : All features count the same.
    RobustPowerKMeans : For rows that are noise, instead of features.

    References
    ----------
    Chakraborty, S., Paul, D., Das, S. and Xu, J. "Entropy Weighted Power k-Means Clustering".
    AISTATS 2020.

    Examples
    --------
    Two of six features separate three groups:

    >>> import numpy as np
    >>> from powermeans.methods import EntropyWeightedPowerKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> X[:, 0] = np.repeat([-5.0, 0.0, 5.0], 100) + 0.3 * X[:, 0]
    >>> X[:, 1] = np.repeat([3.0, -3.0, 3.0], 100) + 0.3 * X[:, 1]
    >>> model = EntropyWeightedPowerKMeans(3, penalty=30.0, random_state=0).fit(X)
    >>> bool(model.feature_weights_[:2].sum() > 0.99)
    True
    """

    _state = """penalty_: number feature_weights_: weight[d]! feature_scales_: weight[d]!
        objective_: number"""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="neither"), one_of({"auto"})],
        "power": [Interval(Real, None, Power.highest, closed="right"), one_of({"auto"})],
        "standardize": ["boolean"],
        "effort": [one_of(_EFFORTS), None],
        "growth": [Interval(Real, 1, None, closed="neither")],
    }

    feature_weights_: FloatArray
    feature_scales_: FloatArray
    objective_: float
    penalty_: float

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        penalty: float | Literal["auto"] = "auto",
        standardize: bool = True,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        power: float | Literal["auto"] = "auto",
        growth: float = 1.1,
        effort: Literal["fast", "balanced", "thorough"] | None = "balanced",
        missing: Literal["error", "observed"] = "error",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self.standardize = standardize
        self.init = init
        self.power = power
        self.growth = growth
        self.effort = effort
        self.missing = missing
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _needs(self) -> Needs:
        return super()._needs().measured(weighs_features=True, opener=_open_weighted)

    def _use_given_centers(self) -> None:
        self.feature_scales_ = np.ones(self.n_features_in_)
        self.feature_weights_ = _equal(self.feature_scales_)

    def _fitted_needs(self) -> Needs:
        learned = self.feature_weights_, self.feature_scales_
        weighted = functools.partial(_open_weighted, learned=learned)
        return super()._fitted_needs().measured(opener=weighted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        rows = cast("FeatureWeightedPoints", points)
        spreads = rows.spreads()
        rows.feature_weights = _equal(spreads)
        if self.standardize:
            rows.scales = np.where(spreads > 0, spreads, 1.0)
        rows.scales = rows.scales * np.sqrt(rows.shares_observed())
        critical = rows.critical_power()
        # The scatter is that of a mean feature while all features count the same.
        of_scatter = max(0.1 * rows.inertia_about_mean(), _TINY)
        self.penalty_ = of_scatter if self.penalty == "auto" else float(self.penalty)
        start = min(2 * critical - 1, -1.0) if self.power == "auto" else float(self.power)
        # At lower powers, weights are practically hard.
        powers = list(itertools.takewhile(lambda s: s > -100, Geometric(start, self.growth)))
        least_variance = np.min(np.square(spreads[spreads > 0])) if spreads.any() else 0.0
        learn = functools.partial(LearnFeatureWeights, self.penalty_, rows.feature_weights > 0)
        separate = SeparateCoincident(critical, rows.spread_of_features())
        settled = CentersSettled(self.tol * float(least_variance))
        return [
            Stage(powers, StopRule(), self.max_iter, learn(separate)),
            Stage(Fixed(-math.inf), settled, self.max_iter, learn(RelocateEmpty())),
        ]

    def _of_a_sweep(self, centers: FloatArray) -> None:
        return None

    def _fit(self, points: Points, fit: Fit) -> Result:
        rows = cast("FeatureWeightedPoints", points)
        rows.feature_weights = _equal(rows.spreads())
        end = super()._fit(points, fit)
        if self.effort is None or self.n_clusters == 1 or not self._draws_centers():
            return end
        search = WeightSearch(self, fit, rows)
        # A thorough search begins with all that a balanced one does, so that it ends no higher.
        names = ("balanced", "thorough") if self.effort == "thorough" else (self.effort,)
        return search.run(end, names)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        rows = cast("FeatureWeightedPoints", points)
        objective = result.inertia + self.penalty_ * _negative_entropy(rows.feature_weights)
        return replace(result, loss=objective).with_attributes(
            feature_weights_=rows.feature_weights, feature_scales_=rows.scales, objective_=objective
        )


def _open_weighted(
    points: AnyMatrix,
    weights: FloatArray | None,
    measure: Measure,
    learned: tuple[FloatArray, FloatArray] | None = None,
) -> Points:
    """Return rows with these feature weights and scales, if a fit has learned any."""
    if not isinstance(points, np.ndarray):
        raise ValueError("X is sparse, and feature weights need dense points: pass X.toarray()")
    rows = FeatureWeightedPoints(points, weights, n_threads=measure.n_threads)
    if learned is not None:
        rows.feature_weights, rows.scales = learned
    return rows


def _equal(spreads: FloatArray) -> FloatArray:
    """Return equal weights of the features that vary, of all if none does."""
    varies = spreads > 0 if spreads.any() else np.ones(len(spreads), dtype=bool)
    return varies / np.count_nonzero(varies)


@dataclass(slots=True)
class WeightSearch:
    """A search for feature weights and centers, which keeps the best so far.

    For given weights, the objective is the inertia of scaled points, for which `PowerKMeans`
    searches; sweeps that relearn the weights then lower it further. Where few of many features
    matter, equal weights lead to clusters of noise, and weights learned from these keep them: so
    there are starts with all the weight on one feature.
    """

    model: EntropyWeightedPowerKMeans
    fit: Fit
    rows: FeatureWeightedPoints
    best: Result = field(init=False)
    best_weights: FloatArray = field(init=False)
    lowest: float = field(init=False)

    def run(self, first: Result, efforts: Sequence[str]) -> Result:
        """Go on from the end of a descent, and return one that is no worse."""
        self._keep(first, self._objective_of(first))
        equal = _equal(self.rows.spreads())
        try:
            for effort in efforts:
                n_features, n_random, n_rounds = _EFFORTS[effort]
                for weights in (equal, *self._first_weights(equal, n_features, n_random)):
                    self._goes_on_from(weights, "fast")
                for _ in range(n_rounds):
                    if not self._goes_on_from(self.best_weights, effort):
                        break
        finally:
            self.rows.feature_weights = self.best_weights
            self.fit.history.keep(self.best.centers)
        return replace(self.best, former=first.former)

    def _first_weights(
        self, equal: FloatArray, n_features: int, n_random: int
    ) -> Iterator[FloatArray]:
        """Yield the weights of starts: one feature each, and random ones."""
        features = self._features_to_start_from(np.flatnonzero(equal), n_features)
        yield from np.eye(len(equal))[features]
        for _ in range(n_random):
            shares = self.fit.rng.standard_exponential(len(equal)) ** 2 * equal
            yield shares / shares.sum()

    def _features_to_start_from(self, features: NDArray[Any], most: int) -> NDArray[Any]:
        """Return features with more values than clusters, those that cluster best if many."""
        points = np.asarray(self.rows.given.array)
        has_weight = self.rows.sample_weight(np.arange(len(points))) > 0
        n_distinct = np.array([len(np.unique(_observed(points[has_weight, f]))) for f in features])
        features = features[n_distinct > self.model.n_clusters]
        if len(features) <= most:
            return features
        sample = points[self._sample()]
        left = [self._share_left(sample[:, f]) for f in features]
        return features[np.argsort(left, kind="stable")[:most]]

    def _sample(self) -> IndexArray:
        """Draw points evenly by weight along an order, one of much weight several times."""
        order, _ = order_by_place(self.rows, self.fit.rng)
        up_to = np.cumsum(self.rows.sample_weight(order))
        n_sampled = max(256, 8 * self.model.n_clusters)
        places = (np.arange(n_sampled) + 0.5) / n_sampled * up_to[-1]
        return np.asarray(order[np.searchsorted(up_to, places, side="right")])

    def _share_left(self, values: Matrix) -> float:
        """Return the scatter about as many centers, as a share of that about the mean."""
        wide = _observed(values.astype(np.float64))
        found = self._searched(wide[:, None], None, "fast")
        return found.inertia_ / max(len(wide) * float(np.var(wide)), _TINY)

    def _goes_on_from(self, weights: FloatArray, effort: Any) -> bool:
        """Search for centers with these weights, relearn them, and return whether that gains."""
        self.rows.feature_weights = weights
        points, given = self.rows.in_weighted_space(), self.rows.given.weights
        # A point with none of the features that count is anywhere.
        is_member = ~np.isnan(points).all(axis=1)
        members = np.flatnonzero(is_member if given is None else is_member & (given > 0))
        if len(members) < self.model.n_clusters:
            return False
        of_members = None if given is None else given[members]
        found = self._searched(points[members], of_members, effort)
        centers = self.rows.means(members, found.labels_, self.model.n_clusters)
        end = anneal(self.rows, centers, self.fit.stages[-1:], self.fit)
        objective, rounding = self._objective_of(end), 1e-6 * self.model.penalty_
        gains = objective < self.lowest - rounding
        if gains:
            self._keep(end, objective)
        return gains

    def _searched(self, points: Matrix, weights: FloatArray | None, effort: Any) -> PowerKMeans:
        how = {"effort": effort, "rng": self.fit.rng, "n_threads": self.model.n_threads}
        return searched(points, weights, self.model.n_clusters, missing=self.model.missing, **how)

    def _objective_of(self, end: Result) -> float:
        _, inertia = self.rows.assign(end.centers)
        return inertia + self.model.penalty_ * _negative_entropy(self.rows.feature_weights)

    def _keep(self, end: Result, objective: float) -> None:
        self.best, self.best_weights, self.lowest = end, self.rows.feature_weights, objective


@dataclass(frozen=True, slots=True)
class LearnFeatureWeights(Update):
    """After another update, weight the features by the scatter along them."""

    penalty: float
    varies: NDArray[np.bool_]  # the features that may have a weight
    first: Update

    def before(self, sweep: Sweep) -> FloatArray:
        """Return the centers of the first update."""
        return self.first.before(sweep)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of the first update, with the cost of the weights in the objective."""
        rows, updated = cast("FeatureWeightedPoints", sweep.rows), self.first.after(sweep, sums)
        of_entropy = self.penalty * _negative_entropy(rows.feature_weights)
        # The weights of a rule omit this factor of the power mean's gradient.
        factor = math.exp(-math.log(len(sweep.centers)) / sweep.power)
        centers = updated.centers(fallback=sweep.centers)
        scatter = factor * cast("SquaredSums", sums).scatter_about(centers, rows.scales)
        rows.feature_weights = _shares(scatter, self.varies, self.penalty)
        return replace(updated, objective=updated.objective + of_entropy)


def _observed(values: Matrix) -> Matrix:
    return values[~np.isnan(values)]


def _shares(scatter: FloatArray, varies: NDArray[np.bool_], penalty: float) -> FloatArray:
    """Return the weights of the features, in proportion to exp(-scatter / penalty)."""
    above = scatter - np.min(scatter, where=varies, initial=np.inf)
    with np.errstate(over="ignore"):  # a tiny penalty leaves one feature all the weight
        shares = np.where(varies, np.exp(-above / penalty), 0.0)
    return np.asarray(shares / shares.sum())


def _negative_entropy(shares: FloatArray) -> float:
    return float(np.sum(xlogy(shares, shares)))
