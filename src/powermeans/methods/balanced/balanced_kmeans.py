"""K-means with clusters of limited or even sizes, as a scikit-learn estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from powermeans import divergences
from powermeans.engine.anneal import Result, Stage
from powermeans.engine.fit import Callback, Fit
from powermeans.engine.history import Spent
from powermeans.engine.stopping import StopRule
from powermeans.errors import ArgumentError
from powermeans.methods.balanced.size_limited import (
    LimitedFit,
    Sizes,
    keep_divided,
    sample_for_sizes,
    within_limits,
)
from powermeans.methods.balanced.size_limits import SizeLimits, weight_of_each, whole
from powermeans.methods.base import CenterEstimator
from powermeans.methods.power_kmeans import (
    PowerKMeans,
    annealing_attributes,
    as_power_kmeans,
)
from powermeans.points.needs import Needs
from powermeans.points.protocol import Points
from powermeans.types import FloatArray

# The relative fall of the cost that ends a descent within limits of size.
_LEAST_FALL = {"none": 1e-5, "fast": 1e-4, "balanced": 1e-5, "thorough": 1e-6}


class BalancedKMeans(CenterEstimator):
    """K-means with clusters of limited or equal sizes.

    `PowerKMeans` finds centers without limits. From there, each center gets a price that is added
    to the squared distances, so that points move at least cost until the sizes are as required, and
    the centers move to the means of their points (Bradley, Bennett & Demiriz 2000).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    size_min, size_max : int or float, optional
        Least and largest number of points in a cluster; with sample weights, their sum. A float
        between 0 and 1 is a share of the whole; 1 is one point, and 1.0, which may mean either, is
        refused. The limits are met exactly or, with unequal weights, as far as whole points allow;
        a warning states by how much they are missed.
    balance : float, optional
        Preference for equal sizes, from 0 (none) to 1 (sizes differ by at most one point, or with
        unequal weights by as little as whole points allow). In between, a cluster of n points costs
        c / 2 times the square of n less the mean size, where c is balance / (1 - balance) times the
        mean squared distance over the mean size. By default it is 1, or 0 if `size_min` or
        `size_max` is given.
    init : {"k-means++", "plain-k-means++", "d-weighted", "random"}, array-like or callable, \
            default="k-means++"
        Initial centers, as in `PowerKMeans`.
    effort : {"none", "fast", "balanced", "thorough"}, default="balanced"
        How much to search for centers without limits, as in `PowerKMeans`.
    n_init : int, default=1
        Number of runs; the one with the lowest cost is kept.
    max_iter : int, default=300
        Largest number of sweeps of a descent.
    divergence : str or Bregman, default="squared_euclidean"
        As in `PowerKMeans`, except "mahalanobis", which learns its covariance; pass
        `divergences.Mahalanobis(covariance)`.
    tol, stop, missing, random_state, n_threads, callback, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points.
    labels_ : ndarray of shape (n_samples,)
        The center that each point is assigned to: the assignment of least cost to these centers
        within the limits. `predict` goes to the nearest center, whatever the sizes.
    inertia_ : float
        Weighted sum of squared distances to the assigned center.
    sizes_ : ndarray of shape (n_clusters,)
        Number of points in each cluster, or the sum of their weights. Points in parts lead to the
        same centers, with approximate sizes and without `labels_`.
    prices_ : ndarray of shape (n_clusters,)
        Price of each center. Points not on borders are assigned to the center with the least sum
        of squared distance and price.
    assignment_gap_ : float
        Bound on how much better the assignment could be with the same centers, as a share of the
        inertia and the cost of unbalanced sizes, by linear programming duality. It is zero up to
        rounding, or at most about 0.0005 if weights are unequal or a fast search has a thousand
        centers.
    n_iter_, history_, n_relocated_, power_, critical_power_, n_separated_, spent_
        As in `PowerKMeans`.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : Finds clusters of any size.

    References
    ----------
    P. S. Bradley, K. P. Bennett, A. Demiriz: Constrained k-means clustering. Microsoft Research
    MSR-TR-2000-65, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import BalancedKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [9.0]])
    >>> BalancedKMeans(2, random_state=0).fit(X).sizes_
    array([3., 3.])
    >>> np.sort(BalancedKMeans(2, size_min=2, random_state=0).fit(X).sizes_)
    array([2., 4.])
    """

    _state = """power_: number critical_power_: number n_separated_: count spent_: Spent
        sizes_: weight[k] prices_: finite[k] assignment_gap_: number"""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: constraints
            for name, constraints in PowerKMeans._parameter_constraints.items()
            if name not in ("power", "schedule", "polish")
        },
        "n_clusters": CenterEstimator._parameter_constraints["n_clusters"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "size_min": [Interval(Real, 0, None, closed="left"), None],
        "size_max": [Interval(Real, 0, None, closed="neither"), None],
        "balance": [Interval(Real, 0, 1, closed="both"), None],
    }

    spent_: Spent
    sizes_: FloatArray
    prices_: FloatArray
    assignment_gap_: float
    power_: float
    critical_power_: float
    n_separated_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size_min: float | None = None,
        size_max: float | None = None,
        balance: float | None = None,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        effort: Literal["none", "fast", "balanced", "thorough"] = "balanced",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        stop: StopRule | None = None,
        divergence: str | divergences.Divergence = "squared_euclidean",
        missing: Literal["error", "observed"] = "error",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        callback: Callback | Literal["progress"] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.size_min = size_min
        self.size_max = size_max
        self.balance = balance
        self.init = init
        self.effort = effort
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.divergence = divergence
        self.missing = missing
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose

    def _needs(self) -> Needs:
        if divergences.resolve(self.divergence).is_learned:
            raise ArgumentError(
                "learns its covariance from clusters of any size",
                "pass powermeans.divergences.Mahalanobis(covariance), or another divergence",
                argument="divergence",
                value=self.divergence,
            )
        needs = replace(as_power_kmeans(self)._needs(), name=type(self).__name__, estimator=self)
        return needs.refusing(tensors="sizes of clusters are limited only for arrays")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= divergences.kind_of(self.divergence).takes_sparse
        return tags

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        self._hard_limits(points)  # sizes that cannot be had are refused before the search
        return as_power_kmeans(self)._stages(points, fit)

    def _fit(self, points: Points, fit: Fit) -> Result:
        inner, learned = as_power_kmeans(self), Sizes()
        fit.learned, fit.rules_apply = learned, False  # until all points are brought to sizes
        found = inner.find_centers(points, fit)
        if found.was_stopped:
            return found
        learned.nearby = found.nearby
        learned.limits = limits = self._limits(points, fit)
        limited = LimitedFit(
            points,
            fit,
            limits,
            sample_for_sizes(points, self.n_clusters, self._needs().measure),
            inner.has_means,
            self.max_iter,
            _LEAST_FALL[self.effort],
            divides=self._divides(inner),
        )
        others = found.solutions[1 : found.n_starts]
        drawn = [fit.seeds.draw(points, fit) for _ in range(found.n_starts - 1)]
        return limited.run([found.centers, *others, *drawn]).after(found)

    def _divides(self, inner: PowerKMeans) -> bool:
        """Return whether clusters that are much too large give their points to other centers."""
        return inner.has_means and self._draws_centers()

    def _limits(self, points: Points, fit: Fit) -> SizeLimits:
        """Return the wished sizes, by the mean squared distance of the run so far."""
        limits, balance = self._hard_limits(points), self._balance()
        if balance in (0, 1):
            return limits
        error = float(points.spread(fit.best_centers()).error.sum())
        unit = error / limits.total / limits.mean
        return replace(limits, curvature=balance / (1 - balance) * unit)

    def _hard_limits(self, rows: Points, unit: float = 1.0) -> SizeLimits:
        """Return the limits; rows weigh as many times what the user said as the unit says."""
        total = rows.total_weight / unit
        each, heaviest = float(total == rows.n_points), 0.0
        if rows.parts is None:
            weights = rows.sample_weight(np.arange(rows.n_points)) / unit
            each, heaviest = weight_of_each(weights), float(weights.max())
        return check_sizes(
            self.size_min,
            self.size_max,
            self._balance(),
            n_clusters=self.n_clusters,
            total=total,
            heaviest=heaviest,
            each=each,
        )

    def _balance(self) -> float:
        if self.balance is not None:
            return self.balance
        return 1.0 if self.size_min is None and self.size_max is None else 0.0

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        sizes: Sizes = fit.learned
        limits = sizes.limits or self._limits(points, fit)
        if sizes.prices is None:
            sizes.prices = np.zeros(self.n_clusters)
            if self._divides(as_power_kmeans(self)):
                keep_divided(points, fit, limits)
        result = within_limits(points, fit, result, limits, sizes.prices)
        return result.with_attributes(**annealing_attributes(fit))


# Wished sizes of clusters: counts, weights, or shares of the whole.


def check_sizes(
    size_min: float | None,
    size_max: float | None,
    balance: float,
    *,
    n_clusters: int,
    total: float,
    heaviest: float,
    each: float,
) -> SizeLimits:
    """Return the limits of sizes as weights.

    Where all rows have the weight `each`, shares are rounded outwards to whole rows.
    """
    least = 0.0 if size_min is None else _weight(size_min, "size_min", total)
    most = total if size_max is None else min(_weight(size_max, "size_max", total), total)
    least = whole(least, each, up=not _is_share(size_min))
    most = whole(most, each, up=_is_share(size_max))
    if heaviest > most:
        raise ArgumentError(
            f"is less than the weight of one row, {heaviest:.6g}, which cannot be divided",
            f"pass at least {heaviest:.6g}, or split the row into several",
            argument="size_max",
            value=size_max,
        )
    _refuse_impossible(size_min, size_max, least, most, n_clusters, total, each)
    limits = SizeLimits(n_clusters, float(least), float(most), total)
    if balance < 1:
        return limits
    mean, has_limits = total / n_clusters, size_min is not None or size_max is not None
    lower, upper = whole(mean, each, up=False), whole(mean, each, up=True)
    # No sizes are even where one row is heavier than the mean size.
    beyond = heaviest if heaviest > mean and each == 0 and not has_limits else 0.0
    tolerated = None
    if each == 0:
        tolerated = max(least, lower - heaviest), min(most, upper + heaviest)
    return replace(
        limits,
        least=float(max(least, lower - beyond)),
        most=float(min(most, upper + beyond)),
        tolerated=tolerated,
    )


def _is_share(size: Any) -> bool:
    return size is not None and not isinstance(size, Integral) and 0 < size < 1


def _weight(size: Any, name: str, total: float) -> float:
    """Return a size as weight: a float between 0 and 1 is a share of the whole."""
    if not isinstance(size, Integral) and size == 1:
        raise ArgumentError(
            "may be a share of the whole or a size of one",
            f"pass {name}=1 for one row, or leave it out",
            argument=name,
            value=size,
        )
    return size * total if _is_share(size) else float(size)


def _refuse_impossible(
    size_min: float | None,
    size_max: float | None,
    least: float,
    most: float,
    n_clusters: int,
    total: float,
    each: float,
) -> None:
    unit, mean = "rows" if each == 1 else "of weight", total / n_clusters
    if size_max is not None and least > most:
        raise ArgumentError(
            f"is {least:.6g} {unit}, more than the largest size, {most:.6g}",
            f"pass at most {most:.6g}, or raise the largest size",
            argument="size_min",
            value=size_min,
        )
    if n_clusters * most < total * (1 - 1e-12):
        raise ArgumentError(
            f"times {n_clusters} clusters makes {n_clusters * most:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at least {whole(mean, each, up=True):.6g}, or ask for at least "
            f"{math.ceil(total / most)} clusters",
            argument="size_max",
            value=size_max,
        )
    if n_clusters * least > total * (1 + 1e-12):
        n_most = math.floor(total / least)
        fewer = f", or ask for at most {n_most} cluster{'s' * (n_most > 1)}" if n_most else ""
        raise ArgumentError(
            f"times {n_clusters} clusters makes {n_clusters * least:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at most {whole(mean, each, up=False):.6g}{fewer}",
            argument="size_min",
            value=size_min,
        )
