"""A mixture of spherical Gaussians, by expectation maximisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from powermeans.engine.anneal import Result, Stage
from powermeans.engine.fit import Fit
from powermeans.engine.spread import spread
from powermeans.engine.updates import SeparateCoincident
from powermeans.errors import warn_caller
from powermeans.mathematics.critical_power import critical_temperature
from powermeans.mathematics.rules import Gaussian, UnequalGaussians
from powermeans.methods.base import CenterEstimator
from powermeans.methods.documented import one_of
from powermeans.methods.mixture.learning import (
    EFFORTS,
    LEAST_SHARE_WITHIN,
    GaussianLearner,
    MixtureSearch,
    Model,
    log_densities_of,
    mean_log_likelihood,
    unequal,
)
from powermeans.methods.predictions import of_rows
from powermeans.points.needs import Needs
from powermeans.points.observed import ObservedPoints, filled
from powermeans.points.opening import MatrixLike, open_rows
from powermeans.points.protocol import Points
from powermeans.system.containers import to_array
from powermeans.types import AnyMatrix, FloatArray, Labels

# In units of the critical temperature. On 72 problems with 5 and 20 overlapping clusters, runs from
# 0.8 missed the best known log-likelihood by 0.057 per point, from 0.5 by 0.070, from 0.3 by 0.094,
# and without annealing by 0.129.
_TEMPERATURE_FROM_SEEDS = 0.8

OfBlock = Callable[[Model, FloatArray, int | FloatArray], FloatArray]
"""A function of the model, squared distances and numbers of observed entries of some points."""


class SphericalMixture(CenterEstimator):
    """A mixture of k round Gaussians, fitted by expectation maximisation.

    Points come from the density ``sum_j q_j N(x; theta_j, v I)``. With squared distances y, a sweep
    distributes each point to the centers in proportion to ``q_j exp(-y_j / (2 v))``, its
    responsibilities, and moves the centers theta to the weighted means; the variance v and the
    shares q follow from the same sums. Except while annealing, no sweep lowers the likelihood
    (Dempster, Laird & Rubin 1977). As the variance goes to zero this is k-means; with
    ``variance=1.0, init="random", temperature=None, effort=None`` it is what Bottou & Bengio (1995,
    section 5) compare with k-means. With ``covariance_type="spherical"`` each Gaussian has its own
    variance v_j. A search goes on from the centers of `PowerKMeans`, and moves single Gaussians.

    Use it if clusters are round but overlap, or if you need a density, memberships or a criterion
    for the number of clusters (`bic`). For clusters of other shapes, use
    `sklearn.mixture.GaussianMixture`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of Gaussians.
    covariance_type : {"tied_spherical", "spherical"}, default="tied_spherical"
        Whether all Gaussians share one variance, or each has its own, as "spherical" means in
        scikit-learn. Sweeps with variances of their own run in NumPy on one thread.
    variance : "learned" or float, default="learned"
        Variance of each feature within a cluster. A learned one cannot vanish.
    shares : {"equal", "learned"}, default="equal"
        Share of all points that each Gaussian has.
    init : {"k-means++", "random"}, array-like or callable, default="k-means++"
        Initial centers, as in `KMeans`. If the variance is learned, the first sweep is hard.
    temperature : float, "auto" or None, default="auto"
        Deterministic annealing (Rose 1998) starts at this share of the critical temperature, above
        which all centers coincide. "auto" is 0.8 if `init` draws centers, by name or by a callable,
        and no annealing from centers in an array; None never anneals.
    effort : {"fast", "balanced", "thorough"} or None, default="balanced"
        How much to search: "fast" also starts from centers that `PowerKMeans` finds, "balanced"
        then moves single Gaussians, and "thorough" goes on from there. With None, or with centers
        from an array, there is no search.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry. With "observed", likelihoods are those of the
        observed entries.
    n_init : int, default=1
        Number of runs; the one with the highest likelihood is kept.
    max_iter : int, default=300
        Largest number of sweeps of a run.
    tol : float, default=1e-6
        A run ends when a sweep gains no more than this in the mean log-likelihood of a point.
    random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the Gaussians, in the dtype of the points.
    variance_ : float
        Variance of each feature within a cluster, in the mean over the shares. After `from_centers`
        it is `variance`, or one, and the shares are equal.
    variances_ : ndarray of shape (n_clusters,)
        The same for each Gaussian; all are equal with ``covariance_type="tied_spherical"``.
    shares_ : ndarray of shape (n_clusters,)
        Share of all points that each Gaussian has; they add up to one.
    labels_ : ndarray of shape (n_samples,)
        The Gaussian that each point belongs to most. It is the nearest unless shares differ.
    log_likelihood_ : float
        Mean log-likelihood of the points, the same as `score` gives for these points.
    log_likelihoods_ : ndarray of shape (n_sweeps,)
        The same before each sweep of the best run, without those that anneal.
    n_iter_ : int
        Number of sweeps of the best run, without those of the search for centers.
    history_ : recarray
        One record for each of these sweeps; the objective is the free energy, in the unit of
        squared distances.
    inertia_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : k-means with another kind of annealing and a search.
    FuzzyCMeans : Gives memberships without a density.

    Notes
    -----
    `cluster_centers_`, `shares_`, `variances_` and `memberships` are the `means_`, `weights_`,
    `covariances_` and `predict_proba` of `sklearn.mixture.GaussianMixture`, which `to_sklearn`
    returns and which can also `sample`. `score`, `score_samples` and `bic` mean the same.

    The likelihood grows without end as a Gaussian shrinks to a point. So a variance of its own is
    at least 1e-4 of the mean variance, and a warning names Gaussians that collapse so.

    References
    ----------
    A. P. Dempster, N. M. Laird, D. B. Rubin: Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39, 1977.

    R. J. Hathaway: A constrained formulation of maximum-likelihood estimation for normal mixture
    distributions. Annals of Statistics 13, 1985.

    L. Bottou, Y. Bengio: Convergence properties of the k-means algorithms. NIPS 7, 1995.

    K. Rose: Deterministic annealing for clustering, compression, classification, regression, and
    related optimization problems. Proceedings of the IEEE 86, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import SphericalMixture
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = SphericalMixture(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.ravel()).round(2)
    array([0.5, 9.5])
    >>> round(model.variance_, 2)
    0.25
    >>> model.memberships([[5.0]]).round(2)
    array([[0.5, 0.5]])

    Gaussians of unequal widths:

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 0.5, (500, 2)), rng.normal(3, 1.5, (500, 2))])
    >>> options = {"shares": "learned", "covariance_type": "spherical", "random_state": 0}
    >>> wide = SphericalMixture(2, **options).fit(X)
    >>> np.sort(np.sqrt(wide.variances_)).round(1)
    array([0.5, 1.5])
    """

    _state = """n_iter_: count! variance_: weight! variances_: weight[k]! shares_: weight[k]!
        log_likelihood_: number log_likelihoods_: number[steps]"""

    variance_: float
    variances_: FloatArray
    shares_: FloatArray
    log_likelihood_: float
    log_likelihoods_: FloatArray

    _advice = "raise max_iter or tol, or lower temperature"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "covariance_type": [one_of({"tied_spherical", "spherical"})],
        # With a larger variance the free energy of many points might leave the range of float64.
        "variance": [one_of({"learned"}), Interval(Real, 0, 1e290, closed="right")],
        "shares": [one_of({"equal", "learned"})],
        "temperature": [Interval(Real, 0, None, closed="neither"), one_of({"auto"}), None],
        "effort": [one_of(EFFORTS), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        covariance_type: Literal["tied_spherical", "spherical"] = "tied_spherical",
        variance: float | Literal["learned"] = "learned",
        shares: Literal["equal", "learned"] = "equal",
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        temperature: float | Literal["auto"] | None = "auto",
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
        self.covariance_type = covariance_type
        self.variance = variance
        self.shares = shares
        self.init = init
        self.temperature = temperature
        self.effort = effort
        self.missing = missing
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    # The density.

    def predict(self, X: MatrixLike) -> Labels:  # type: ignore[override]
        """Return the Gaussian that each point belongs to most, (n_samples,), as int32 labels."""
        model = self._model()
        if isinstance(model, Gaussian) and model.shares is None:
            return super().predict(X)
        with self._new_points(X) as points:
            array = points.given.array
            labels = self._most_likely(array, self._centers(array.shape[1]), model)
            found: Labels = of_rows(X, points, labels)
        return found

    def memberships(self, X: MatrixLike) -> FloatArray:
        """Return the responsibilities: how much each point belongs to each Gaussian.

        They have the shape (n_samples, n_clusters), and each row adds up to one.
        """
        return self._of_rows(X, lambda model, sq_dist, _: model.memberships(sq_dist))

    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Return the logarithm of the density at each point, (n_samples,)."""
        return self._of_rows(X, _log_densities)

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted mean of the logarithm of the density over the points."""
        return self._mean_and_weight(X, sample_weight)[0]

    def bic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion ``-2 log L + p log n``.

        There are p free parameters, and n is the sum of the weights. Lower is better.
        """
        score, n = self._mean_and_weight(X, sample_weight)
        return -2 * n * score + self._n_parameters() * math.log(n)

    # Conversion.

    def _use_given_centers(self) -> None:
        n_centers = len(self.cluster_centers_)
        self._refuse_one_variance()
        self.variance_ = 1.0 if self.variance == "learned" else float(self.variance)
        self.variances_ = np.full(n_centers, self.variance_)
        self.shares_ = np.full(n_centers, 1 / n_centers)

    def to_sklearn(self) -> Any:
        """Return the same density as a fitted `sklearn.mixture.GaussianMixture`.

        Returns
        -------
        sklearn.mixture.GaussianMixture
            A mixture with spherical covariances.

        Examples
        --------
        >>> from powermeans.methods import SphericalMixture
        >>> theirs = SphericalMixture.from_centers([[0.0], [3.0]]).to_sklearn()
        >>> theirs.predict([[1.0], [2.0]])
        array([0, 1])
        """
        self._refuse_unprepared()
        from sklearn.mixture import GaussianMixture

        centers = np.asarray(to_array(self.cluster_centers_))
        theirs = GaussianMixture(len(centers), covariance_type="spherical")
        theirs.means_, theirs.weights_ = centers.copy(), self.shares_.copy()
        theirs.covariances_ = self.variances_.copy()
        theirs.precisions_ = 1 / theirs.covariances_
        theirs.precisions_cholesky_ = np.sqrt(theirs.precisions_)
        theirs.n_iter_, theirs.converged_ = self.n_iter_, True
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, getattr(self, attribute))
        return theirs

    # Fitting.

    def _needs(self) -> Needs:
        return super()._needs().of_a_fit(leaves_out_columns=False)

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        self._refuse_one_variance()
        learns_variance = self.variance == "learned"
        if not learns_variance:
            _refuse_widest(float(self.variance), points)
        share = self._share_of_critical()
        learner = GaussianLearner(
            first=None if learns_variance else Gaussian(float(self.variance)),
            learns_variance=learns_variance,
            learns_shares=self.shares == "learned",
            hottest=share * _critical_temperature(points) / 2 if share else 0.0,
            separate=SeparateCoincident(math.inf, points.spread_of_features()),
            tolerance=self.tol,
            has_own_variances=self.covariance_type == "spherical",
        )
        return [Stage.of(learner, self.max_iter)]

    def _refuse_one_variance(self) -> None:
        if self.covariance_type == "spherical" and self.variance != "learned":
            raise ValueError(
                f"variance={self.variance!r} is one for all Gaussians, and "
                'covariance_type="spherical" learns one for each: pass variance="learned" or '
                'covariance_type="tied_spherical"'
            )

    def _share_of_critical(self) -> float:
        """Return the share of the critical temperature to start at, zero without annealing."""
        if self.temperature is None:
            return 0.0
        if self.temperature != "auto":
            return float(self.temperature)
        anneals = self._draws_centers() and self.n_clusters > 1
        return _TEMPERATURE_FROM_SEEDS if anneals else 0.0

    def _of_a_sweep(self, centers: FloatArray) -> None:
        return None

    def _fit(self, points: Points, fit: Fit) -> Result:
        end = super()._fit(points, fit)
        if self.effort is None or self.n_clusters == 1 or not self._draws_centers():
            return end
        options = {"n_threads": self.n_threads, "missing": self.missing}
        search = MixtureSearch(points, fit, _learner(fit), self.max_iter, self.tol, options)
        # A thorough search begins with all that a balanced one does, so that it ends no lower.
        names = ("balanced", "thorough") if self.effort == "thorough" else (self.effort,)
        return search.run(end, names)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result, learner = super()._attributes(points, fit, result), _learner(fit)
        centers, model = result.centers.astype(np.float64), learner.known
        likelihood = mean_log_likelihood(points, model, points.sweep(centers, model))
        n_centers, shares = len(centers), model.shares
        if shares is not None:
            labels = self._most_likely(points.given.array, centers, model)
            result = replace(result, labels=labels)
        own = model.variances if isinstance(model, UnequalGaussians) else model.variance
        self._warn_of_collapse(learner)
        return replace(result, loss=-likelihood).with_attributes(
            variance_=model.variance,
            variances_=np.array(np.broadcast_to(own, n_centers)),
            shares_=np.full(n_centers, 1 / n_centers) if shares is None else np.array(shares),
            log_likelihood_=likelihood,
            log_likelihoods_=np.array(learner.log_likelihoods),
        )

    def _warn_of_collapse(self, learner: GaussianLearner) -> None:
        if learner.collapsed:
            warn_caller(
                f"the Gaussians {list(learner.collapsed)} collapse to points that are nearly "
                f"equal: their variance is set to {LEAST_SHARE_WITHIN} of the mean variance "
                "within Gaussians, or to that of rounding; pass fewer than "
                f'n_clusters={self.n_clusters}, or covariance_type="tied_spherical"',
                ConvergenceWarning,
            )

    def _model(self) -> Model:
        check_is_fitted(self)
        shares = None if self.shares == "equal" else tuple(np.asarray(self.shares_).tolist())
        model = Gaussian(float(self.variance_), shares)
        if self.covariance_type == "tied_spherical":
            return model
        own = unequal(model, len(self.shares_), int(self.n_features_in_))
        return replace(own, variances=tuple(self.variances_.tolist()))

    def _n_parameters(self) -> int:
        n_centers = len(self.variances_)
        n_shares = n_centers - 1 if self.shares == "learned" else 0
        n_variances = n_centers if self.covariance_type == "spherical" else 1
        n_learned = n_variances if self.variance == "learned" else 0
        return n_centers * int(self.n_features_in_) + n_shares + n_learned

    def _of_rows(self, X: MatrixLike, what: OfBlock) -> FloatArray:
        """Return what a function makes of the squared distances of points, as they came."""
        with self._new_points(X) as points:
            found: FloatArray = of_rows(X, points, self._of_distances(points, what))
        return found

    def _mean_and_weight(
        self, X: MatrixLike, sample_weight: ArrayLike | None
    ) -> tuple[float, float]:
        """Return the weighted mean of the logarithm of the density, and the sum of the weights."""
        with self._new_points(X, sample_weight) as points:
            densities, weights = self._of_distances(points, _log_densities), points.given.weights
        n = float(len(densities) if weights is None else weights.sum())
        return float(np.average(densities, weights=weights)), n

    def _of_distances(self, points: Points, what: OfBlock) -> FloatArray:
        """Apply a function to the squared distances of one block of points after another."""
        array = points.given.array
        blocks = self._distances(array, self._centers(array.shape[1]), self._model())
        return np.concatenate([what(*block) for block in blocks])

    def _most_likely(self, points: AnyMatrix, centers: FloatArray, model: Model) -> Labels:
        """Return the Gaussian of the largest responsibility of each point."""
        blocks = self._distances(points, centers, model)
        nearest = [np.argmin(of_block.energies(sq_dist), axis=1) for of_block, sq_dist, _ in blocks]
        return np.concatenate(nearest).astype(np.int32)

    def _distances(
        self, points: AnyMatrix, centers: FloatArray, model: Model
    ) -> Iterator[tuple[Model, FloatArray, int | FloatArray]]:
        """Yield the model, squared distances and numbers of observed entries of some points."""
        n_block = max(1, 2**20 // max(points.shape[1], len(centers)))
        for start in range(0, points.shape[0], n_block):
            block = points[start : start + n_block].astype(np.float64, copy=False)
            has_missing = isinstance(block, np.ndarray) and bool(np.isnan(block).any())
            rows = open_rows(block, has_missing=has_missing, n_threads=self.n_threads)
            n_observed = rows.n_observed
            if isinstance(model, UnequalGaussians):
                model = replace(model, n_features=n_observed)
            yield model, rows.sq_distances(centers).astype(np.float64, copy=False), n_observed


def _log_densities(model: Model, sq_dist: FloatArray, n_observed: int | FloatArray) -> FloatArray:
    return np.asarray(log_densities_of(model.objective(sq_dist), model, n_observed))


def _critical_temperature(points: Points) -> float:
    """Return that of the points, with means for missing entries."""
    array = points.given.array
    if isinstance(points, ObservedPoints):
        array = filled(array, points.mean())
    return critical_temperature(array, points.given.weights)


def _learner(fit: Fit) -> GaussianLearner:
    learner = fit.stages[0].update
    assert isinstance(learner, GaussianLearner)
    return learner


def _refuse_widest(variance: float, rows: Points) -> None:
    size = max(spread(rows), float(np.linalg.norm(rows.mean())))
    if size > 0 and math.sqrt(variance) / size > 1e15:  # densities are equal in float64
        raise ValueError(
            f"variance={variance!r} is too large for points that are {size:.3g} from zero and from "
            f"each other: pass one of the order of {size**2:.0e}, for example, or scale X"
        )
