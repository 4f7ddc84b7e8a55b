"""Soft clustering: the same rule in every sweep."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result, Stage
from powermeans.engine.fit import Fit
from powermeans.engine.spread import spread, tolerance_by_weight
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import SeparateCoincident
from powermeans.mathematics.rules import Harmonic, Power, Rule
from powermeans.methods.base import CenterEstimator
from powermeans.points.needs import Needs
from powermeans.points.opening import MatrixLike
from powermeans.points.protocol import Points
from powermeans.types import FloatArray


class SoftMeans(CenterEstimator):
    """Base of estimators whose points belong to several centers by the rule of a subclass."""

    _state = "objective_: number"

    max_iter: int
    tol: float
    n_init: int
    missing: Literal["error", "observed"]
    n_threads: int | None
    objective_: float

    @abc.abstractmethod
    def _rule(self) -> Rule:
        """Return the rule that turns distances into weights."""

    def memberships(self, X: MatrixLike) -> FloatArray:
        """Return how much each point belongs to each center.

        The result has the shape (n_samples, n_clusters), and each row adds up to one.
        """
        rule = self._rule()
        return self._shares(X, rule.memberships, rule.power - 1)

    def _needs(self) -> Needs:
        return super()._needs().refusing(parts=None, tensors=None)

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        settled = CentersSettled(tolerance_by_weight(points, self.tol))
        separate = SeparateCoincident(points.critical_power(), points.spread_of_features())
        return [Stage(self._schedule(points), settled, self.max_iter, separate)]

    def _schedule(self, points: Points) -> Iterable[Rule]:
        """Return the rule of each sweep."""
        return repeat(self._rule())

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        objective = fit.history.records[-1].objective
        return super()._attributes(points, fit, result).with_attributes(objective_=objective)


class KHarmonicMeans(SoftMeans):
    """k-harmonic means, a soft k-means that depends less on its seeds (Zhang 1999, 2001).

    It lowers the sum over the points of the harmonic mean of d_1 ** p ... d_k ** p, where d_j are
    the distances to the centers. Each sweep moves the centers to means of the points with the
    weights ``d_j ** (-p - 2) / sum(d ** -p) ** 2``. At p = 2 this is power k-means at the power -1,
    and every sweep descends. A larger p, such as 2.5, gives more weight to points far from all
    centers and depends less on the initial centers, but a sweep may raise the objective. From about
    p = 3.5 on, centers may oscillate; the fit then ends at `max_iter` with a warning.

    Below p = 2, a point at a center has an infinite weight and fixes the center. Because
    centers start at points, the first sweep uses p = 2, which moves them away. For p below one,
    every point is a local minimum for a center that comes near it.

    Use it for comparisons, or when you want soft clusters of this kind. `PowerKMeans` starts like
    it, hardens, and finds lower sums of squares. There is no search, which would lower the inertia
    of hard clusters: another objective.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    p : float, default=2
        Power of the distances, at least 0.04 and at most 50.
    init, n_init, max_iter, tol, missing, random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    objective_ : float
        Weighted sum of the harmonic means before the last sweep. It is infinite if ``d ** p``
        leaves the range of float64; the centers are right even then.
    cluster_centers_, labels_, inertia_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : Anneals from here to hard clusters.
    FuzzyCMeans : Power k-means at other fixed powers.

    References
    ----------
    B. Zhang, M. Hsu, U. Dayal: K-Harmonic Means, a data clustering algorithm. HP Labs, 1999.
    B. Zhang: Generalized K-Harmonic Means, dynamic weighting of data in unsupervised learning.
    SIAM International Conference on Opened Mining, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import KHarmonicMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = KHarmonicMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.ravel()).round(2)
    array([0.5, 9.5])
    >>> model.memberships([[5.0]]).round(2)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SoftMeans._parameter_constraints,
        # At a higher p, most weights may be too small for float64.
        "p": [Interval(Real, -2 * Power.highest, 50, closed="both")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p: float = 2.0,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        missing: Literal["error", "observed"] = "error",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.p = p
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _rule(self) -> Rule:
        return Harmonic(float(self.p))

    def _schedule(self, points: Points) -> Iterable[Rule]:
        unit = spread(points) ** 2
        rule = Harmonic(float(self.p), unit if unit > 0 else 1.0)
        # Below 2, a point at a center has an infinite weight.
        return _OffThePoints(rule) if self.p < 2 else repeat(rule)


@dataclass(frozen=True, slots=True)
class _OffThePoints:
    """Repeat one rule after a sweep of k-harmonic means, which moves centers away from points."""

    rule: Rule

    def __iter__(self) -> Iterator[Rule]:
        yield Power(-1.0)
        yield from repeat(self.rule)


class FuzzyCMeans(SoftMeans):
    """Fuzzy c-means: every point belongs to each cluster in part (Dunn 1973, Bezdek 1981).

    It lowers ``sum(u_ij ** m * y_ij)`` over the centers and over memberships that add up to one for
    each point; y are squared distances and m is the fuzzifier. For given centers the best
    memberships are ``u_ij = y_ij ** (-1 / (m - 1)) / sum_l y_il ** (-1 / (m - 1))``. With these the
    objective is that of power k-means at the power -1 / (m - 1), and a sweep is the same step.

    Use it when you need the memberships themselves. The closer m is to one, the harder the
    clusters. With many features, all centers coincide unless m is near one: there is more than one
    cluster only if -1 / (m - 1) is below the `critical_power` of the points. There is no search, as
    in `KHarmonicMeans`; `n_init` makes several runs.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    fuzzifier : float, default=2
        Exponent m of the memberships, above 1 and at most 51.
    init, n_init, max_iter, tol, missing, random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    objective_ : float
        ``sum(u_ij ** m * y_ij)`` before the last sweep.
    cluster_centers_, labels_, inertia_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : Anneals from soft to hard clusters.
    critical_power : Above this power, -1 / (fuzzifier - 1), all centers coincide.

    References
    ----------
    J. C. Bezdek: Pattern Recognition with Fuzzy Objective Function Algorithms. Plenum, 1981.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import FuzzyCMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = FuzzyCMeans(n_clusters=2, fuzzifier=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.ravel()).round(2)
    array([0.5, 9.5])
    >>> model.memberships([[5.0]]).round(2)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SoftMeans._parameter_constraints,
        "fuzzifier": [Interval(Real, 1, 1 - 1 / Power.highest, closed="right")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        fuzzifier: float = 2.0,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        missing: Literal["error", "observed"] = "error",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fuzzifier = fuzzifier
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def memberships(self, X: MatrixLike) -> FloatArray:
        """Return the memberships u_ij, (n_samples, n_clusters); each row adds up to one."""
        return self._shares(X, self._fuzzy_memberships, self._rule().power)

    def _rule(self) -> Rule:
        return Power(-1 / (float(self.fuzzifier) - 1))

    def _fuzzy_memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return u, where Hamerly and Elkan define memberships by the weights u^m."""
        roots = self._rule().memberships(sq_dist) ** (1 / self.fuzzifier)
        shares: FloatArray = roots / roots.sum(axis=1, keepdims=True)
        return shares

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        # The power mean averages the powers; Bezdek adds them.
        factor = self.n_clusters ** -(float(self.fuzzifier) - 1)
        return result.with_attributes(objective_=result.attributes["objective_"] * factor)
