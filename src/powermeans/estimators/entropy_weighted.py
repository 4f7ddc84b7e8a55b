"""Power k-means that learns which features matter (Chakraborty et al. 2020)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sklearn.utils._param_validation import Interval, StrOptions

from powermeans.estimators.base import CenterEstimator, Run, Start
from powermeans.estimators.opening import Data, OpeningSpec
from powermeans.loop.anneal import Stage, StageEnd
from powermeans.loop.spread import spread_of_features
from powermeans.loop.stopping import CentersSettled, Never
from powermeans.loop.updates import RelocateEmpty, SeparateCoincident, Sweep, Update
from powermeans.rows.feature_weighted import FeatureWeightedRows, SquaredSums
from powermeans.rows.protocol import Rows
from powermeans.rules import Power
from powermeans.schedules import Fixed, Geometric
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints

# Below this power, weights are practically hard.
_HARD_POWER = -100.0
# The default penalty is this share of the mean scatter of a feature.
_PENALTY_OF_SCATTER = 0.1


class EntropyWeightedPowerKMeans(CenterEstimator):
    """Power k-means that learns feature weights, for data in which few features matter.

    It lowers the sum of the power means of the distances ``sum(v * (x - center) ** 2)`` plus
    ``penalty * sum(v * log(v))``, over the centers and over feature weights v that add up to one.
    Each sweep moves the centers as power k-means does and then sets ``v`` in proportion to
    ``exp(-scatter / penalty)``, with the weighted scatter of each feature about the centers. The
    power falls from soft to hard, and Lloyd's rule comes last.

    Use it when many features are noise. The features must have comparable units: scale them first.
    If all features are useful, `PowerKMeans` finds lower sums of squares.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    penalty : float or "auto", default="auto"
        Price of concentrating the weights on few features, positive, in the unit of the scatter (a
        sum over the points). A smaller penalty lets fewer features count. "auto" is a tenth of the
        mean scatter of the features about their means.
    init : {"k-means++", "random"}, array-like or callable, default="k-means++"
        Initial centers, as in `KMeans`.
    power : float or "auto", default="auto"
        Power of the first sweep, negative. "auto" is twice the critical power of the data minus
        one, and at most -1.
    growth : float, default=1.1
        Factor from one power to the next.
    n_init : int, default=5
        Number of runs; the one with the lowest objective is kept.
    max_iter : int, default=300
        Largest number of sweeps, counted separately for annealing and for Lloyd.
    tol : float, default=1e-6
        Lloyd ends when the sum of the squared center shifts is at most `tol` times the mean
        variance of the features.
    random_state, n_threads, verbose, copy_x
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points.
    feature_weights_ : ndarray of shape (n_features,)
        The feature weights v.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point by the weighted distance.
    inertia_ : float
        Weighted sum of the weighted distances to the nearest center.
    objective_ : float
        The inertia plus ``penalty * sum(v * log(v))``.
    penalty_ : float
        The penalty.
    n_iter_ : int
        Number of sweeps of the best run.
    history_ : recarray
        One record for each of these sweeps.
    n_features_in_, feature_names_in_
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
    >>> from powermeans import EntropyWeightedPowerKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> X[:, 0] = np.repeat([-5.0, 0.0, 5.0], 100) + 0.3 * X[:, 0]
    >>> X[:, 1] = np.repeat([3.0, -3.0, 3.0], 100) + 0.3 * X[:, 1]
    >>> model = EntropyWeightedPowerKMeans(3, penalty=30.0, random_state=0).fit(X)
    >>> bool(model.feature_weights_[:2].sum() > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "power": [Interval(Real, None, Power.highest, closed="right"), StrOptions({"auto"})],
        "growth": [Interval(Real, 1, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_threads": [Integral, None],
    }

    feature_weights_: FloatArray
    objective_: float
    penalty_: float

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        penalty: float | Literal["auto"] = "auto",
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        power: float | Literal["auto"] = "auto",
        growth: float = 1.1,
        n_init: int = 5,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        copy_x: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self.init = init
        self.power = power
        self.growth = growth
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.copy_x = copy_x

    def _spec(self) -> OpeningSpec:
        return replace(super()._spec(), weighs_features=True, open_array=_open_weighted)

    def _fitted_spec(self) -> OpeningSpec:
        weighted = functools.partial(_open_weighted, feature_weights=self.feature_weights_)
        return replace(super()._fitted_spec(), open_array=weighted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _stages(self, data: Data) -> list[Stage]:
        rows = data.rows
        assert isinstance(rows, FeatureWeightedRows)
        critical = rows.critical_power()
        mean_scatter = rows.inertia_about_mean()  # while all features count the same
        least = float(np.finfo(np.float64).tiny)
        self.penalty_ = (
            max(_PENALTY_OF_SCATTER * mean_scatter, least)
            if self.penalty == "auto"
            else self.penalty
        )
        start = min(2 * critical - 1, -1.0) if self.power == "auto" else float(self.power)
        powers = list(itertools.takewhile(_is_soft, Geometric(start, self.growth)))
        separate = SeparateCoincident(critical, spread_of_features(rows))
        settled = CentersSettled(self.tol * rows.mean_variance())
        soft, hard = (LearnFeatureWeights(self.penalty_, u) for u in (separate, RelocateEmpty()))
        return [
            Stage(powers, Never(), self.max_iter, soft),
            Stage(Fixed(-math.inf), settled, self.max_iter, hard),
        ]

    def _run(self, start: Start) -> list[StageEnd]:
        rows = start.data.rows
        assert isinstance(rows, FeatureWeightedRows)
        rows.feature_weights = np.full(rows.n_features, 1 / rows.n_features)
        return super()._run(start)

    def _finish(self, start: Start, ends: Sequence[StageEnd] = ()) -> Run:
        run, rows = super()._finish(start, ends), start.data.rows
        assert isinstance(rows, FeatureWeightedRows)
        weights = rows.feature_weights
        objective = run.inertia + self.penalty_ * _negative_entropy(weights)
        found = {"feature_weights_": weights, "objective_": objective}
        return replace(run, loss=objective, attributes=found)

    def _wanted_runs(self) -> int:
        return self.n_init


def _open_weighted(
    points: Points | SparsePoints,
    weights: FloatArray | None,
    spec: OpeningSpec,
    feature_weights: FloatArray | None = None,
) -> Rows:
    """Return rows with these feature weights, or equal ones."""
    if not isinstance(points, np.ndarray):
        raise ValueError(f"X is sparse, and {spec.name} is for dense points: pass X.toarray()")
    rows = FeatureWeightedRows(points, weights, n_threads=spec.n_threads)
    if feature_weights is not None:
        rows.feature_weights = feature_weights
    return rows


@dataclass(frozen=True, slots=True)
class LearnFeatureWeights(Update):
    """After another update, weight the features by the scatter along them."""

    penalty: float
    first: Update

    def before(self, sweep: Sweep) -> FloatArray:
        """Return the centers of the first update."""
        return self.first.before(sweep)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of the first update, with the cost of the weights in the objective."""
        rows, updated = sweep.rows, self.first.after(sweep, sums)
        assert isinstance(rows, FeatureWeightedRows)
        assert isinstance(sums, SquaredSums)
        of_entropy = self.penalty * _negative_entropy(rows.feature_weights)
        # The weights of a rule omit this factor of the power mean's gradient.
        factor = math.exp(-math.log(len(sweep.centers)) / sweep.power)
        scatter = factor * sums.scatter(updated.centers(fallback=sweep.centers))
        rows.feature_weights = _softmax(-scatter / self.penalty)
        return replace(updated, objective=updated.objective + of_entropy)


def _softmax(logarithms: FloatArray) -> FloatArray:
    shares = np.exp(logarithms - logarithms.max())
    return np.asarray(shares / shares.sum())


def _negative_entropy(shares: FloatArray) -> float:
    return float(np.sum(xlogy(shares, shares)))


def _is_soft(power: float) -> bool:
    return power > _HARD_POWER
