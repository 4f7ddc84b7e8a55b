"""A mixture of spherical Gaussians, by expectation maximisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _num_samples, check_is_fitted

from powermeans.critical import critical_temperature
from powermeans.errors import warn_caller
from powermeans.estimators.base import CenterEstimator, Run, Start, report_end
from powermeans.estimators.mixture.m_step import (
    LEAST_SHARE_WITHIN,
    GaussianLearner,
    Model,
    log_densities_of,
    mean_log_likelihood,
    unequal,
)
from powermeans.estimators.mixture.moments import moment_estimates
from powermeans.estimators.opening import (
    Data,
    InMemory,
    MatrixLike,
    OpeningSpec,
    admit_points,
    in_memory,
)
from powermeans.estimators.power_kmeans import searched
from powermeans.inputs.weights import check_sample_weight
from powermeans.loop.anneal import Stage, StageEnd
from powermeans.loop.spread import spread, spread_of_features
from powermeans.loop.updates import SeparateCoincident
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.rules import Gaussian, UnequalGaussians
from powermeans.types import FloatArray, Labels, Points, SparsePoints

_BLOCK_ELEMENTS = 2**20
# In units of the critical temperature. On 72 problems with 5 and 20 overlapping clusters, runs from
# 0.8 missed the best known log-likelihood by 0.057 per point, from 0.5 by 0.070, from 0.3 by 0.094,
# and without annealing by 0.129.
_TEMPERATURE_FROM_SEEDS = 0.8
# With a variance of more squared sizes of the points, densities are equal in float64.
_WIDEST = 1e30
# With a larger variance the free energy of many points might leave the range of float64.
_LARGEST_VARIANCE = 1e290


@dataclass(frozen=True, slots=True)
class MixtureEffort:
    """How much a search for a higher likelihood may do."""

    name: Literal["fast", "balanced", "thorough"]  # of the search for centers
    n_annealed: int  # further starts from seeds
    n_moved: int  # each of so many Gaussians of least use moves to each of the widest


_BALANCED = MixtureEffort("balanced", n_annealed=0, n_moved=2)
# Each begins with all that the one before it in its list does, so that it ends no lower.
_EFFORTS = {
    "fast": [MixtureEffort("fast", n_annealed=0, n_moved=0)],
    "balanced": [_BALANCED],
    "thorough": [_BALANCED, MixtureEffort("thorough", n_annealed=5, n_moved=5)],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureData(InMemory):
    """The points of a fit and its mixture."""

    learner: GaussianLearner
    means: FloatArray | None  # the initial centers, if moments give them


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
        scikit-learn. Variances of their own are at least 1e-4 of their mean, weighted by shares,
        since the likelihood grows without end as a Gaussian shrinks to a point; a warning names
        Gaussians that collapse so. These sweeps run in NumPy on one thread.
    variance : "learned" or float, default="learned"
        Variance of each feature within a cluster. A learned variance is at least 1e-12 of that of
        all points (1e-7 for float32, more for points far from zero because of rounding), so that
        Gaussians cannot collapse into points.
    shares : {"equal", "learned"}, default="equal"
        Share of all points that each Gaussian has.
    init : {"k-means++", "random", "moments"}, array-like or callable, default="k-means++"
        Initial centers, as in `KMeans`, or the estimates by the method of moments (Hsu & Kakade
        2013), which give variance and shares too and need at least as many features as clusters. If
        the variance is learned and has no estimate, the first sweep is hard.
    temperature : float, "auto" or None, default="auto"
        Deterministic annealing (Rose 1998): start at this share of the critical temperature, above
        which all centers coincide (twice the largest eigenvalue of the covariance), and cool down
        to that of the model, twice its variance. "auto" is 0.8 if `init` draws centers, by name or
        by a callable, which recovered half of the gap between one run and the best of ten; centers
        from an array or from moments are kept as they are. A number anneals from any centers, and
        None never does. It ends early once responsibilities are practically hard.
    cooling : float, default=0.9
        Factor from one temperature to the next, below one.
    learn_while_hot : bool, default=False
        Whether shares and variances are learned at each temperature until the likelihood settles,
        as in the deterministic annealing EM algorithm (Ueda & Nakano 1998): the posterior is raised
        to the power of an exponent, which grows by ``1 / cooling`` from its critical value, over
        `temperature`, to one. If False, only centers move while it anneals, once at each
        temperature. The critical exponent is the mean variance of the features over the largest
        variance along any direction (or, over that, `variance`, if it is given), which may be near
        one: then there is little to anneal.
    effort : {"fast", "balanced", "thorough"} or None, default="balanced"
        How much to search for a higher likelihood. "fast" also starts from centers that
        `PowerKMeans` finds with the same effort. "balanced" then moves Gaussians of little use to
        where they are too wide. "thorough" does what "balanced" does first, and then goes on with
        more starts and moves; it never ends below "balanced". With None, or with centers from an
        array or from moments, there is no search.
    n_init : int, default=1
        Number of runs; the one with the highest likelihood is kept.
    max_iter : int, default=300
        Largest number of sweeps of a run.
    tol : float, default=1e-6
        A run ends when a sweep gains no more than this in the mean log-likelihood of a point.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial centers and of `sample`. An int makes the result reproducible.
    n_threads, verbose, copy_x
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the Gaussians, in the dtype of the points.
    variance_ : float
        Variance of each feature within a cluster, in the mean over the shares. After `from_centers`
        it is `variance`, or one if that is "learned", and the shares are equal.
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
    inertia_ : float
        Weighted sum of squared distances to the nearest center.
    n_iter_ : int
        Number of sweeps of the best run, without those of the search for centers.
    history_ : recarray
        One record for each of these sweeps; the objective is the free energy, in the unit of
        squared distances.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : k-means with another kind of annealing and a search.
    FuzzyCMeans : Gives memberships without a density.

    Notes
    -----
    `cluster_centers_`, `shares_`, `variances_` and `memberships` are the `means_`, `weights_`,
    `covariances_` and `predict_proba` of `sklearn.mixture.GaussianMixture`; `score`,
    `score_samples`, `sample`, `bic` and `aic` mean the same, and `to_sklearn` converts. Its
    `weights_` are not sample weights, which `fit` takes here.

    References
    ----------
    A. P. Dempster, N. M. Laird, D. B. Rubin: Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39, 1977.

    R. J. Hathaway: A constrained formulation of maximum-likelihood estimation for normal mixture
    distributions. Annals of Statistics 13, 1985.

    L. Bottou, Y. Bengio: Convergence properties of the k-means algorithms. NIPS 7, 1995.

    K. Rose: Deterministic annealing for clustering, compression, classification, regression, and
    related optimization problems. Proceedings of the IEEE 86, 1998.

    N. Ueda, R. Nakano: Deterministic annealing EM algorithm. Neural Networks 11, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import SphericalMixture
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = SphericalMixture(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.ravel()).round(2)
    array([0.5, 9.5])
    >>> round(model.variance_, 2)
    0.25
    >>> model.memberships([[5.0]]).round(2)
    array([[0.5, 0.5]])

    Gaussians of unequal widths, and the annealing of Ueda & Nakano:

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 0.5, (500, 2)), rng.normal(3, 1.5, (500, 2))])
    >>> options = {"shares": "learned", "covariance_type": "spherical", "random_state": 0}
    >>> wide = SphericalMixture(2, **options).fit(X)
    >>> np.sort(np.sqrt(wide.variances_)).round(1)
    array([0.5, 1.5])
    >>> hot = SphericalMixture(2, learn_while_hot=True, effort=None, **options).fit(X)
    >>> bool(abs(hot.log_likelihood_ - wide.log_likelihood_) < 1e-3)
    True
    """

    variance_: float
    variances_: FloatArray
    shares_: FloatArray
    log_likelihood_: float
    log_likelihoods_: FloatArray

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "covariance_type": [StrOptions({"tied_spherical", "spherical"})],
        "variance": [StrOptions({"learned"}), Interval(Real, 0, _LARGEST_VARIANCE, closed="right")],
        "shares": [StrOptions({"equal", "learned"})],
        "init": [StrOptions({"k-means++", "random", "moments"}), callable, "array-like"],
        "temperature": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "cooling": [Interval(Real, 0, 1, closed="neither")],
        "learn_while_hot": ["boolean"],
        "effort": [StrOptions(set(_EFFORTS)), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_threads": [Integral, None],
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
        cooling: float = 0.9,
        learn_while_hot: bool = False,
        effort: Literal["fast", "balanced", "thorough"] | None = "balanced",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        copy_x: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.covariance_type = covariance_type
        self.variance = variance
        self.shares = shares
        self.init = init
        self.temperature = temperature
        self.cooling = cooling
        self.learn_while_hot = learn_while_hot
        self.effort = effort
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.copy_x = copy_x

    # The density.

    def predict(self, X: MatrixLike) -> Labels:  # type: ignore[override]
        """Return the Gaussian that each point belongs to most, the first of several.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            int32 labels.
        """
        model = self._model()
        if isinstance(model, Gaussian) and model.shares is None:
            return super().predict(X)
        points = admit_points(X, None, self._fitted_spec()).points
        return self._most_likely(points, self._centers(points.shape[1]), model)

    def memberships(self, X: MatrixLike) -> FloatArray:
        """Return the responsibilities: how much each point belongs to each Gaussian.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Each row adds up to one.
        """
        return self._of_distances(X, self._model().memberships)

    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Return the logarithm of the density at each point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model = self._model()
        energies = self._of_distances(X, model.objective)
        return np.asarray(log_densities_of(energies, model, self.n_features_in_))

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted mean of the logarithm of the density over the points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        float
            Higher is better.
        """
        densities = self.score_samples(X)
        weights = check_sample_weight(sample_weight, len(densities))
        return float(np.average(densities, weights=weights))

    def bic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion ``-2 log L + p log n`` with p free parameters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`; n is their sum.

        Returns
        -------
        float
            Lower is better.
        """
        score, n = self.score(X, sample_weight=sample_weight), _total_weight(X, sample_weight)
        return -2 * n * score + self._n_parameters() * math.log(n)

    def aic(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion ``-2 log L + 2 p`` with p free parameters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        float
            Lower is better.
        """
        score, n = self.score(X, sample_weight=sample_weight), _total_weight(X, sample_weight)
        return -2 * n * score + 2 * self._n_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Points, Labels]:
        """Draw points from the density.

        If `random_state` is an int, each call returns the same points; a RandomState instance or
        None draws new ones.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.

        Returns
        -------
        points : ndarray of shape (n_samples, n_features)
            The points, in the dtype of the centers.
        labels : ndarray of shape (n_samples,)
            The Gaussian of each point.
        """
        check_is_fitted(self)
        validate_parameter_constraints(
            {"n_samples": [Interval(Integral, 1, None, closed="left")]},
            {"n_samples": n_samples},
            caller_name="sample",
        )
        rng = check_random_state(self.random_state)
        labels = rng.choice(len(self.shares_), size=n_samples, p=self.shares_).astype(np.int32)
        noise = rng.standard_normal((n_samples, self.n_features_in_))
        noise *= np.sqrt(self._variances())[labels, None]
        centers = np.asarray(self.cluster_centers_)
        return (centers[labels] + noise).astype(centers.dtype), labels

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
        >>> from powermeans import SphericalMixture
        >>> theirs = SphericalMixture.from_centers([[0.0], [3.0]]).to_sklearn()
        >>> theirs.predict([[1.0], [2.0]])
        array([0, 1])
        """
        check_is_fitted(self)
        from sklearn.mixture import GaussianMixture

        centers = np.asarray(self.cluster_centers_)
        theirs = GaussianMixture(len(centers), covariance_type="spherical")
        theirs.means_, theirs.weights_ = centers.copy(), self.shares_.copy()
        theirs.covariances_ = self._variances().copy()
        theirs.precisions_ = 1 / theirs.covariances_
        theirs.precisions_cholesky_ = np.sqrt(theirs.precisions_)
        theirs.n_iter_, theirs.converged_ = self.n_iter_, True
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, getattr(self, attribute))
        return theirs

    # Fitting.

    def _spec(self) -> OpeningSpec:
        # A Gaussian has a variance in all columns, also in those of zeros.
        reason = "Its variances are means over all columns of all points"
        return replace(super()._spec(), leaves_out_columns=False, why_whole=reason)

    def _open(self, X: MatrixLike, sample_weight: ArrayLike | None) -> MixtureData:
        self._refuse_one_variance()
        data = in_memory(super()._open(X, sample_weight))
        if self.variance != "learned":
            _refuse_widest(float(self.variance), data.rows)
        means, first = self._known_at_first(data)
        share = self._share_of_critical()
        hottest = share * critical_temperature(data.points, data.weights) / 2 if share else 0.0
        exponent = 1.0
        if self.learn_while_hot:
            exponent, hottest = self._lowest_exponent(data.rows, hottest), 0.0
        learner = GaussianLearner(
            first=first,
            learns_variance=self.variance == "learned",
            learns_shares=self.shares == "learned",
            hottest=hottest,
            cooling=float(self.cooling),
            separate=SeparateCoincident(math.inf, spread_of_features(data.rows)),
            tolerance=self.tol,
            has_own_variances=self.covariance_type == "spherical",
            lowest_exponent=exponent,
        )
        return MixtureData(data.points, data.weights, data.rows, learner=learner, means=means)

    def _refuse_one_variance(self) -> None:
        if self.covariance_type == "spherical" and self.variance != "learned":
            raise ValueError(
                f"variance={self.variance!r} is one for all Gaussians, and "
                'covariance_type="spherical" learns one for each: pass variance="learned" or '
                'covariance_type="tied_spherical"'
            )

    def _lowest_exponent(self, rows: Rows, hottest: float) -> float:
        """Return the exponent that makes the variance the hottest; one where points are equal."""
        variance = self._variance_of_one(rows)
        return variance / hottest if variance > 0 and hottest > 0 else 1.0

    def _variance_of_one(self, rows: Rows) -> float:
        """Return the variance of the model where all centers are at the mean."""
        if self.variance != "learned":
            return float(self.variance)
        return rows.inertia_about_mean() / rows.total_weight / rows.n_features

    def _share_of_critical(self) -> float:
        """Return the share of the critical temperature to start at, zero without annealing."""
        if self.temperature is None:
            return 0.0
        if self.temperature != "auto":
            return float(self.temperature)
        anneals = self._draws_centers() and self.n_clusters > 1
        return _TEMPERATURE_FROM_SEEDS if anneals else 0.0

    def _known_at_first(self, data: InMemory) -> tuple[FloatArray | None, Model | None]:
        """Return the means and the rest of the model, as far as they are known at first."""
        if not self._starts_at_moments():
            return None, None if self.variance == "learned" else Gaussian(float(self.variance))
        found = moment_estimates(
            data.points,
            self.n_clusters,
            sample_weight=data.weights,
            covariance_type=self.covariance_type,
        )
        means = found.means.astype(np.float64)
        shares = tuple(found.shares.tolist()) if self.shares == "learned" else None
        if self.covariance_type == "spherical":
            model = unequal(Gaussian(1.0, shares), *means.shape)
            return means, replace(model, variances=tuple(np.asarray(found.variance).tolist()))
        variance = float(found.variance if self.variance == "learned" else self.variance)
        return means, Gaussian(variance, shares) if variance else None

    def _starts_at_moments(self) -> bool:
        return isinstance(self.init, str) and self.init == "moments"

    def _stages(self, data: Data) -> list[Stage]:
        assert isinstance(data, MixtureData)
        return [Stage.of(data.learner, self.max_iter)]

    def _run(self, start: Start) -> list[StageEnd]:
        ends, data = super()._run(start), start.data
        assert isinstance(data, MixtureData)
        if self.effort is None or self.n_clusters == 1 or not self._draws_centers():
            return ends
        search = MixtureSearch(start, data, self.max_iter, self.tol, self.n_threads)
        return [search.run(ends[-1], _EFFORTS[self.effort])]

    def _draws_centers(self) -> bool:
        return callable(self.init) or (isinstance(self.init, str) and self.init != "moments")

    def _initial_centers(self, data: Data, rng: np.random.RandomState) -> FloatArray:
        assert isinstance(data, MixtureData)
        return super()._initial_centers(data, rng) if data.means is None else data.means.copy()

    def _finish(self, start: Start, ends: Sequence[StageEnd] = ()) -> Run:
        run, data = super()._finish(start, ends), start.data
        assert isinstance(data, MixtureData)
        centers, model = run.centers.astype(np.float64), data.learner.known
        likelihood = mean_log_likelihood(data.rows, model, data.rows.sweep(centers, model))
        n_centers, shares = len(centers), model.shares
        if shares is not None:
            run = replace(run, labels=self._most_likely(data.points, centers, model))
        own = model.variances if isinstance(model, UnequalGaussians) else model.variance
        self._warn_of_collapse(data.learner)
        return replace(run, loss=-likelihood).with_attributes(
            variance_=model.variance,
            variances_=np.array(np.broadcast_to(own, n_centers)),
            shares_=np.full(n_centers, 1 / n_centers) if shares is None else np.array(shares),
            log_likelihood_=likelihood,
            log_likelihoods_=np.array(data.learner.log_likelihoods),
        )

    def _warn_of_collapse(self, learner: GaussianLearner) -> None:
        if learner.collapsed:
            warn_caller(
                f"the Gaussians {list(learner.collapsed)} collapse to points that are nearly "
                f"equal: their variance is held at {LEAST_SHARE_WITHIN} of the mean variance "
                f"within Gaussians, or at rounding; pass fewer than n_clusters={self.n_clusters}, "
                'or covariance_type="tied_spherical"',
                ConvergenceWarning,
            )

    def _wanted_runs(self) -> int:
        return 1 if self._starts_at_moments() else self.n_init

    def _report_end(self, run: Run) -> None:
        advice = "raise max_iter or tol"
        if self._share_of_critical() and not len(run.attributes["log_likelihoods_"]):
            advice = "it was still annealing, so raise max_iter, or lower cooling or temperature"
        report_end(run, self.verbose, advice)

    def _model(self) -> Model:
        """Return the fitted model."""
        check_is_fitted(self)
        shares = None if self.shares == "equal" else tuple(np.asarray(self.shares_).tolist())
        model = Gaussian(float(self.variance_), shares)
        if self.covariance_type == "tied_spherical":
            return model
        own = unequal(model, len(self.shares_), int(self.n_features_in_))
        return replace(own, variances=tuple(self.variances_.tolist()))

    def _variances(self) -> FloatArray:
        """Return the variance of each Gaussian; models of earlier versions have one."""
        is_tied = self.covariance_type == "tied_spherical"
        return np.full(len(self.shares_), self.variance_) if is_tied else self.variances_

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        n_centers = len(self.cluster_centers_)
        n_shares = n_centers - 1 if self.shares == "learned" else 0
        n_variances = n_centers if self.covariance_type == "spherical" else 1
        n_learned = n_variances if self.variance == "learned" else 0
        return n_centers * int(self.n_features_in_) + n_shares + n_learned

    def _of_distances(self, X: MatrixLike, what: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Apply a function to the squared distances of one block of points after another."""
        points = admit_points(X, None, self._fitted_spec()).points
        distances = self._distances(points, self._centers(points.shape[1]))
        return np.concatenate([what(sq_dist) for sq_dist in distances])

    def _most_likely(
        self, points: Points | SparsePoints, centers: FloatArray, model: Model
    ) -> Labels:
        """Return the Gaussian of the largest responsibility of each point."""
        blocks = self._distances(points, centers)
        nearest = [np.argmin(model.energies(sq_dist), axis=1) for sq_dist in blocks]
        return np.concatenate(nearest).astype(np.int32)

    def _distances(
        self, points: Points | SparsePoints, centers: FloatArray
    ) -> Iterator[FloatArray]:
        """Yield squared distances of one block of points after another, in float64."""
        n_block = max(1, _BLOCK_ELEMENTS // max(points.shape[1], len(centers)))
        for start in range(0, points.shape[0], n_block):
            block = points[start : start + n_block].astype(np.float64, copy=False)
            rows = open_rows(block, n_threads=self.n_threads)
            yield rows.sq_distances(centers).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A descent's end with its model."""

    end: StageEnd
    model: Model
    collapsed: tuple[int, ...]
    log_likelihoods: tuple[float, ...]
    log_likelihood: float


@dataclass(slots=True)
class MixtureSearch:
    """A search for a mixture of high likelihood, which keeps the best so far."""

    start: Start
    data: MixtureData
    max_iter: int
    tol: float
    n_threads: int | None
    best: Mixture = field(init=False)

    def run(self, first: StageEnd, efforts: Sequence[MixtureEffort]) -> StageEnd:
        """Go on from the end of a descent, and return one that is no worse."""
        learner = self.data.learner
        self.best = self._measured(first, learner)
        try:
            for effort in efforts:
                self._gains(self._searched_centers(len(first.centers), effort))
                for _ in range(effort.n_annealed):
                    self._gains(self.start.seeds(), anneals=True)
                self._move(effort.n_moved)
        finally:
            learner.model, learner.collapsed = self.best.model, self.best.collapsed
            learner.log_likelihoods[:] = self.best.log_likelihoods
            self.start.history.keep(self.best.end.centers)
        return self.best.end

    def _searched_centers(self, n_clusters: int, effort: MixtureEffort) -> FloatArray:
        points, weights = self.data.points, self.data.weights
        name, rng = effort.name, self.start.rng
        model = searched(
            points, weights, n_clusters, effort=name, rng=rng, n_threads=self.n_threads
        )
        return model.cluster_centers_.astype(np.float64)

    def _move(self, n_moved: int) -> None:
        """Move each of the Gaussians of least use to each of those with the largest error."""
        n_in_vain = 0
        while n_in_vain < n_moved**2:
            worst, least = divmod(n_in_vain, n_moved)
            n_in_vain = 0 if self._gains(self._moved(worst, least)) else n_in_vain + 1

    def _moved(self, worst: int, least: int) -> FloatArray:
        """Return the best centers, one of which splits the Gaussian of another."""
        centers, rows = self.best.end.centers.copy(), self.data.rows
        of_centers = rows.spread(centers)
        by_error = np.argsort(-of_centers.error, kind="stable")
        by_use = np.argsort(of_centers.utility, kind="stable")
        push = self.start.rng.standard_normal(rows.n_features)
        split = centers[by_error[worst % len(centers)]]
        split = split + push * math.sqrt(self.best.model.variance)
        centers[by_use[least % len(centers)]] = split
        return centers

    def _gains(self, centers: FloatArray, *, anneals: bool = False) -> bool:
        """Learn from these centers; return whether the likelihood is higher without a collapse."""
        learner = replace(self.data.learner, model=None, log_likelihoods=[])
        if not anneals:
            learner.hottest, learner.lowest_exponent = 0.0, 1.0
        stage = Stage.of(learner, self.max_iter)
        found = self._measured(self.start.anneal(centers, [stage])[-1], learner)
        gains = found.log_likelihood > self.best.log_likelihood + self.tol
        gains = gains and len(found.collapsed) <= len(self.best.collapsed)
        if gains:
            self.best = found
        return gains

    def _measured(self, end: StageEnd, learner: GaussianLearner) -> Mixture:
        model, rows = learner.known, self.data.rows
        likelihood = mean_log_likelihood(rows, model, rows.sweep(end.centers, model))
        likelihoods = tuple(learner.log_likelihoods)
        return Mixture(end, model, learner.collapsed, likelihoods, likelihood)


def _refuse_widest(variance: float, rows: Rows) -> None:
    size = max(spread(rows), float(np.linalg.norm(rows.mean())))
    if size > 0 and math.sqrt(variance) / size > math.sqrt(_WIDEST):
        raise ValueError(
            f"variance={variance!r} is too large for points that are {size:.3g} from zero and from "
            f"each other: pass one of the order of {size**2:.0e}, for example, or scale X"
        )


def _total_weight(X: MatrixLike, sample_weight: ArrayLike | None) -> float:
    weights = check_sample_weight(sample_weight, n_points := _num_samples(X))
    return float(n_points if weights is None else weights.sum())
