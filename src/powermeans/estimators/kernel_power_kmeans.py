"""Kernel power k-means (Paul et al. 2022): power k-means in the feature space of a kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from powermeans.errors import IndefiniteKernelWarning, warn_caller
from powermeans.estimators.base import Documented, Start
from powermeans.estimators.opening import Columns, MatrixLike, OpeningSpec, admit_array, in_memory
from powermeans.estimators.power_kmeans import PowerKMeans, searched
from powermeans.inputs.points import Admitted, divide_by_power_of_two
from powermeans.loop.anneal import Callback, StageEnd
from powermeans.power_mean import memberships
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.seeds.choose import choose_seeds
from powermeans.seeds.orders import order_by_place
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

# Up to this many distinct points are all landmarks; from more, the second number is chosen.
_MOST_EXACT = 2000
_LANDMARKS_OF_MORE = 500
# As shares of the largest eigenvalue: smaller ones are rounding; more negative ones are not.
_ROUNDING = 100 * float(np.finfo(np.float64).eps)
_INDEFINITE = 1e-8
_DIGITS_OF_GAMMA = 6
# Squared differences of smaller similarities may underflow.
_LEAST_SQUARED = 1e-130
_BLOCK_ELEMENTS = 2**21
# K(x, x) is read off the diagonal of the kernel of this many points at a time.
_POINTS_OF_A_DIAGONAL = 16

# The parameters that go to `PowerKMeans` as they are.
_PASSED_ON = (
    *("n_clusters", "init", "power", "growth", "schedule", "polish", "effort", "refine"),
    *("max_seconds", "n_init", "max_iter", "tol", "n_threads", "callback", "verbose"),
)


class KernelPowerKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Documented
):
    """Kernel power k-means: power k-means in the feature space of a kernel.

    A kernel K(x, z) is the inner product of features phi(x) and phi(z), which are never computed.
    Centers are combinations of the features of points, ``center_j = sum_l a_jl phi(x_l)``, and the
    squared distances are (Paul et al. 2022)

        y_ij = K_ii - 2 sum_l a_jl K_il + sum_lm a_jl a_jm K_lm.

    The features of n points span at most n dimensions, so these distances are Euclidean in some
    coordinates: with the eigenvalues ``K = U diag(l) U^T``, they are the rows of ``U sqrt(l)``.
    `PowerKMeans` in these coordinates, with its annealing and its search, is exactly the method. If
    there are more points than `n_landmarks`, k-means++ chooses that many as landmarks, and the
    coordinates of x are those of phi(x) in the span of their features (the Nystroem method).

    Use it for clusters that are not convex if you know a kernel in which they are, such as a
    similarity that comes with the data. The Gaussian kernel depends strongly on `gamma`: if it is
    small, the method is `PowerKMeans`; if it is large, all points are almost equally far from each
    other, and there are many local minima. So the search also starts from clusters in the leading
    coordinates, in which distances differ more. A start at the clusters that you have in mind may
    still have a larger `inertia_` than what is found: then choose another kernel. The kernel
    of all points with the landmarks is computed once, and its eigenvalues take time proportional to
    the cube of the number of landmarks. Where `PowerKMeans` suffices, it is far faster.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, such as "rbf", "poly", "linear",
        "laplacian", "cosine" or "chi2"; "precomputed" if X is K(X, X); a kernel of
        `sklearn.gaussian_process.kernels`; or any other callable, which is slow since it is called
        with two rows at a time.
    gamma : float, optional
        Parameter of the kernels "rbf", "laplacian", "poly", "sigmoid" and "chi2". For "rbf", None
        is one over the weighted mean squared distance of the points from their mean, which is
        1 / (n_features * variance); for the others it is scikit-learn's default.
    degree : float, default=3
        Parameter of the kernel "poly".
    coef0 : float, default=1
        Parameter of the kernels "poly" and "sigmoid".
    kernel_params : dict, optional
        Keyword arguments of a callable; a kernel with a name takes `gamma`, `degree` and `coef0`.
    n_landmarks : int, optional
        Number of landmarks. None takes all distinct points if there are at most 2000, else 500. If
        all distinct points are landmarks, nothing is approximate.
    init : {"k-means++", "plain-k-means++", "random"}, default="k-means++"
        Initial centers, as in `PowerKMeans`.
    power, growth, schedule, polish, effort, refine, max_seconds, n_init, max_iter, tol
        As in `PowerKMeans`.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks and the initial centers. An int makes the result reproducible.
    n_threads, callback, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point, the same as `predict` gives for these points.
    inertia_ : float
        Weighted sum of squared distances to the nearest center, in the feature space.
    dual_coef_ : ndarray of shape (n_clusters, n_landmarks)
        The centers as combinations of the features of the landmarks.
    landmark_indices_ : ndarray of shape (n_landmarks,)
        Indices of the landmarks among the points. No two landmarks are equal.
    landmarks_ : {ndarray, CSR} of shape (n_landmarks, n_features)
        The landmarks; not set if the kernel is precomputed.
    is_exact_ : bool
        Whether every point with a weight is a landmark or equal to one.
    embedding_ : ndarray of shape (n_landmarks, n_components)
        The kernel of points with the landmarks times this matrix gives their coordinates.
    n_components_ : int
        Number of coordinates: eigenvalues of the kernel of the landmarks that are positive beyond
        rounding.
    gamma_ : float or None
        The `gamma` of the kernel; None if it has none or leaves it to scikit-learn.
    embedded_ : PowerKMeans
        The model fitted to the coordinates, with its `history_`, `spent_` and `power_`.
    n_iter_ : int
        Number of sweeps of the best run.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : The same without a kernel.

    Notes
    -----
    A kernel with negative eigenvalues is not an inner product. They are set to zero, which changes
    the distances, with an `IndefiniteKernelWarning`.

    `transform` and `score` include the part of phi(x) outside the span of the landmarks, as
    `inertia_` does. With a precomputed kernel they do not, since K(x, x) of new points is unknown:
    distances are those within the span, and unless `is_exact_`, minus the `score` of the points of
    the fit is less than `inertia_`.

    References
    ----------
    D. Paul, S. Chakraborty, S. Das, J. Xu: Implicit annealing in kernel spaces, a strongly
    consistent clustering approach. IEEE Transactions on Pattern Analysis and Machine Intelligence,
    2022.
    C. Williams, M. Seeger: Using the Nystroem method to speed up kernel machines. NIPS 2000.

    Examples
    --------
    A ring inside a ring:

    >>> import numpy as np
    >>> from powermeans import KernelPowerKMeans
    >>> angles = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    >>> ring = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> X = np.concatenate([0.3 * ring, ring])
    >>> model = KernelPowerKMeans(2, kernel="rbf", gamma=3.0, random_state=0).fit(X)
    >>> inner, outer = model.labels_[:50], model.labels_[50:]
    >>> bool(inner.min() == inner.max() != outer.min() == outer.max())
    True
    >>> model.is_exact_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: PowerKMeans._parameter_constraints[name] for name in _PASSED_ON},
        "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"k-means++", "plain-k-means++", "random"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | None = None,
        init: Literal["k-means++", "plain-k-means++", "random"] = "k-means++",
        power: float | Literal["auto"] = "auto",
        growth: float | Literal["auto"] = "auto",
        schedule: Any = None,
        polish: bool = True,
        effort: Literal["fast", "balanced", "thorough"] = "balanced",
        refine: int = 5,
        max_seconds: float | None = None,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.init = init
        self.power = power
        self.growth = growth
        self.schedule = schedule
        self.polish = polish
        self.effort = effort
        self.refine = refine
        self.max_seconds = max_seconds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose landmarks, embed the points, and find centers among them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points, sparse only if the kernel takes sparse ones; or, if it is precomputed,
            K(X, X) of shape (n_samples, n_samples).
        y : None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. A weight of three counts like three copies of the point, a weight of zero
            like no point.

        Returns
        -------
        self
        """
        self._validate_params()
        former = dict(vars(self))
        try:
            self._fit(X, sample_weight)
        except BaseException:
            if getattr(self, "labels_", None) is former.get("labels_"):
                # The fit found nothing, so the estimator keeps its former state.
                self.__dict__.clear()
                self.__dict__.update(former)
            raise
        return self

    def _fit(self, X: MatrixLike, sample_weight: ArrayLike | None) -> None:
        if self.kernel_params is not None and not callable(self.kernel):
            raise ValueError(
                f"kernel_params={self.kernel_params!r} is for a callable, but "
                f"kernel={self.kernel!r}: pass gamma, degree and coef0 of KernelPowerKMeans itself"
            )
        name, is_gram = type(self).__name__, self._is("precomputed")
        wanted: dict[str, Any] = {"n_needed": self.n_clusters, "must_differ": not is_gram}
        wanted["why_whole"] = None if is_gram else "A kernel is of all entries of two rows"
        data = self._admitted(X, sample_weight, OpeningSpec(name=name, estimator=self, **wanted))
        if is_gram:
            _check_gram(np.asarray(data.points))
        rng = check_random_state(self.random_state)
        # The squares of tiny similarities would vanish.
        is_tiny = is_gram and 0 < data.largest < _LEAST_SQUARED
        exponent = math.frexp(data.largest)[1] if is_tiny else 0
        points = divide_by_power_of_two(data.points, exponent)
        rows = open_rows(points, data.weights, n_threads=self.n_threads)
        self.gamma_ = self._gamma(rows)
        self.landmark_indices_, self.is_exact_ = self._choose_landmarks(rows, rng)
        self._span_landmarks(data.points)
        self._fit_embedded(data, rng)

    def predict(self, X: MatrixLike) -> Labels:
        """Return the label of the nearest center for each point, the first of several.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points; or, if the kernel is precomputed, that of these points with those of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            int32 labels.
        """
        coordinates = self.embed(X)
        return self.embedded_.predict(coordinates)

    def transform(self, X: MatrixLike) -> Points:
        """Return the distance from each point to each center in the feature space.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Distances, not squared.
        """
        coordinates, outside = self._embed(self._fitted(X).points)
        within = self.embedded_.transform(coordinates)
        distances: Points = np.hypot(within, np.sqrt(outside).astype(within.dtype)[:, None])
        return distances

    def embed(self, X: MatrixLike) -> Points:
        """Return coordinates of the features of each point in the span of those of the landmarks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates whose inner products are the kernel, exactly for landmarks.
        """
        return self._coordinates(self._fitted(X).points)[0]

    def memberships(self, X: MatrixLike, power: float | None = None) -> FloatArray:
        """Return how much each point belongs to each center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict`.
        power : float, optional
            Negative; by default the power at which annealing ended. See `PowerKMeans.memberships`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Each row adds up to one.
        """
        sq_dist = np.square(self.transform(X), dtype=np.float64)
        return memberships(sq_dist, self.embedded_.power_ if power is None else power)

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        float
            Higher is better; zero is the highest possible score.
        """
        data = self._fitted(X, sample_weight)
        coordinates, outside = self._embed(data.points)
        within = self.embedded_.score(coordinates, sample_weight=data.weights)
        return within - _weighted_sum(outside, data.weights)

    @property
    def _n_features_out(self) -> int:
        return len(self.dual_coef_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is("precomputed")
        tags.input_tags.pairwise = self._is("precomputed")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        # A failed fit may leave other attributes.
        return hasattr(self, "labels_")

    # The border.

    def _fitted(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Admitted:
        """Check new points for a fitted estimator."""
        check_is_fitted(self)
        known = Columns(self.n_features_in_, None, None)
        spec = OpeningSpec(name=type(self).__name__, estimator=self, known=known)
        return self._admitted(X, sample_weight, spec)

    def _admitted(
        self, X: MatrixLike, sample_weight: ArrayLike | None, spec: OpeningSpec
    ) -> Admitted:
        form: dict[str, Any] = {}
        if self._is("precomputed"):
            # An error about NaN comes before one about the number of columns.
            form = {"accept_sparse": False, "ensure_all_finite": spec.known is not None}
        return admit_array(X, sample_weight, spec, **form)

    def _is(self, name: str) -> bool:
        """Return whether the kernel has this name; a callable may define == in its own way."""
        return isinstance(self.kernel, str) and self.kernel == name

    # Fitting.

    def _gamma(self, rows: Rows) -> float | None:
        if self.gamma is not None or not self._is("rbf"):
            return self.gamma
        mean_sq_dist = rows.inertia_about_mean() / rows.total_weight
        # Rounded, so that weights and copies of points give exactly the same kernel.
        return float(f"{1 / mean_sq_dist:.{_DIGITS_OF_GAMMA}g}") if mean_sq_dist > 0 else 1.0

    def _choose_landmarks(self, rows: Rows, rng: np.random.RandomState) -> tuple[IndexArray, bool]:
        """Return landmarks in an order independent of the rows, and whether they are all."""
        distinct = _distinct_points(rows, rng)
        n_landmarks = self.n_landmarks
        if n_landmarks is None:
            n_landmarks = len(distinct) if len(distinct) <= _MOST_EXACT else _LANDMARKS_OF_MORE
        if len(distinct) <= n_landmarks:
            return distinct, True
        _, chosen = choose_seeds(rows, n_landmarks, rng)
        _, first = np.unique(chosen, return_index=True)
        return chosen[np.sort(first)], False

    def _span_landmarks(self, points: Points | SparsePoints) -> None:
        """Learn coordinates in the span of the landmarks."""
        landmarks = points[self.landmark_indices_]
        if not self._is("precomputed"):
            self.landmarks_ = landmarks.astype(np.float64)
        with blas_on_one_thread():
            gram = self._kernel_with_landmarks(landmarks)
            self.embedding_, self._largest = _embedding_of((gram + gram.T) / 2)
        self.n_components_ = self.embedding_.shape[1]

    def _fit_embedded(self, data: Admitted, rng: np.random.RandomState) -> None:
        coordinates, sq_norms = self._coordinates(data.points)
        passed_on = {name: getattr(self, name) for name in _PASSED_ON}
        inner = LeadingPowerKMeans(**passed_on, random_state=rng)
        self.embedded_ = PowerKMeans(**passed_on, random_state=rng)
        try:
            inner.fit(coordinates, sample_weight=data.weights)
        finally:
            self.embedded_.__dict__.update(vars(inner))
            # An interrupted fit keeps its last state.
            if hasattr(inner, "cluster_centers_"):
                self._keep(data, sq_norms)

    def _keep(self, data: Admitted, sq_norms: FloatArray) -> None:
        inner = self.embedded_
        self.labels_, self.n_iter_ = inner.labels_, inner.n_iter_
        self.dual_coef_ = inner.cluster_centers_.astype(np.float64) @ self.embedding_.T
        if self._is("precomputed"):
            diagonal = np.diagonal(np.asarray(data.points)).astype(np.float64)
        else:
            diagonal = self._diagonal(data.points)
        outside = self._outside(diagonal, sq_norms)
        self.inertia_ = inner.inertia_ + _weighted_sum(outside, data.weights)

    # The kernel.

    def _embed(self, points: Points | SparsePoints) -> tuple[Points, FloatArray]:
        """Return coordinates and squared distances from the span of the landmarks."""
        coordinates, sq_norms = self._coordinates(points)
        return coordinates, self._outside(self._diagonal(points), sq_norms)

    def _coordinates(self, points: Points | SparsePoints) -> tuple[Points, FloatArray]:
        """Return coordinates in the dtype of the points, and their unrounded squared norms."""
        n_points = points.shape[0]
        coordinates: Points = np.empty((n_points, self.n_components_), dtype=points.dtype)
        sq_norms = np.empty(n_points)
        with blas_on_one_thread():
            for rows, block in _blocks(points, max(1, _BLOCK_ELEMENTS // len(self.embedding_))):
                exact = self._kernel_with_landmarks(block) @ self.embedding_
                sq_norms[rows] = np.einsum("if,if->i", exact, exact)
                with np.errstate(over="ignore"):
                    coordinates[rows] = exact
        if not np.isfinite(coordinates).all():
            raise ValueError(
                f"kernel={self.kernel!r} has values beyond {points.dtype}: {self._way_to_finite()}"
            )
        return coordinates, sq_norms

    def _outside(self, diagonal: FloatArray, sq_norms: FloatArray) -> FloatArray:
        """Return K(x, x) minus the squared norm of the coordinates, or zero if that is rounding."""
        outside = diagonal - sq_norms
        rounding = _ROUNDING * np.maximum(self._largest, np.abs(diagonal))
        return np.where(outside > rounding, outside, 0.0)

    def _diagonal(self, points: Points | SparsePoints) -> FloatArray:
        """Return K(x, x) of each point; zero if it is unknown, so that nothing is outside."""
        if self._is("precomputed"):
            return np.zeros(points.shape[0])
        if self._is("rbf"):
            return np.ones(points.shape[0])
        blocks = (block.astype(np.float64) for _, block in _blocks(points, _POINTS_OF_A_DIAGONAL))
        return np.concatenate([np.diagonal(self._kernel(block, block)) for block in blocks])

    def _kernel_with_landmarks(self, points: Points | SparsePoints) -> FloatArray:
        if self._is("precomputed"):
            return np.asarray(points[:, self.landmark_indices_], dtype=np.float64)
        return self._kernel(points.astype(np.float64), self.landmarks_)

    def _kernel(self, points: Points | SparsePoints, others: Points | SparsePoints) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            if self._is("rbf") and not (sparse.issparse(points) or sparse.issparse(others)):
                values = self._gaussian(points, others)
            else:
                values = pairwise_kernels(
                    points, others, metric=self.kernel, filter_params=True, **self._arguments()
                )
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel={self.kernel!r} is not finite for all pairs of points: "
                f"{self._way_to_finite()}"
            )
        return np.asarray(values, dtype=np.float64)

    def _way_to_finite(self) -> str:
        if self._is("poly") and self.degree % 1:
            return (
                f"below zero there are no powers of degree={self.degree!r}, so pass a whole "
                "degree, or points and coef0 whose products are not negative"
            )
        return "scale X, for example by StandardScaler, or lower degree, gamma or coef0"

    def _gaussian(self, points: Points, others: Points) -> FloatArray:
        """Return the kernel from distances that do not cancel for points far from the origin."""
        rows = open_rows(points, n_threads=self.n_threads)
        sq_dist = rows.sq_distances(np.asarray(others, dtype=np.float64))
        return np.exp(-(self.gamma_ or 0.0) * sq_dist.astype(np.float64, copy=False))

    def _arguments(self) -> dict[str, Any]:
        if callable(self.kernel):
            return self.kernel_params or {}
        named = {"degree": self.degree, "coef0": self.coef0}
        return named if self.gamma_ is None else {"gamma": self.gamma_, **named}


class LeadingPowerKMeans(PowerKMeans):
    """Search from clusters of the leading coordinates too, which are the last columns."""

    def _spec(self) -> OpeningSpec:
        # Coordinates by eigenvectors have the scales of the eigenvalues.
        return replace(super()._spec(), warns_of_scales=False)

    def _run_in_space(self, start: Start) -> list[StageEnd]:
        seeds = self._seeds_of_starts(start)
        return super()._run_in_space(replace(start, seeds=functools.partial(next, seeds)))

    def _seeds_of_starts(self, start: Start) -> Iterator[FloatArray]:
        """Yield seeds, then centers of clusters in the leading coordinates, and seeds again."""
        yield start.seeds()
        data, k = in_memory(start.data), self.n_clusters
        points, weights = np.asarray(data.points), data.weights
        for coordinates in _leading(points, weights, k):
            model = searched(
                coordinates,
                weights,
                k,
                effort="fast",
                rng=start.rng,
                n_threads=self.n_threads,
                seconds_left=self._seconds_left(),
            )
            yield _means(points, weights, model.labels_, k)
        while True:
            yield start.seeds()


def _leading(points: Points, weights: FloatArray | None, k: int) -> Iterator[FloatArray]:
    """Yield few coordinates that may tell clusters apart which all of them hide."""
    wide = points.astype(np.float64)
    yield wide[:, -k:]
    counts = np.ones(len(wide)) if weights is None else weights
    degrees = wide @ (counts @ wide)
    # Those of normalized cuts (Ng, Jordan & Weiss 2001), if similarities are positive in the mean.
    if (least := degrees[counts > 0].min()) > 0:
        normal = wide / np.sqrt(np.maximum(degrees, least))[:, None]
        yield _on_sphere(normal @ _main_axes(normal.T @ (counts[:, None] * normal), k))
    white = wide[:, -2 * k :]
    centered = white - np.average(white, axis=0, weights=counts)
    spreads = np.sqrt(np.average(np.square(centered), axis=0, weights=counts))
    yield white / np.maximum(spreads, np.finfo(np.float64).tiny)
    yield wide[:, -1:]


def _main_axes(gram: FloatArray, n_axes: int) -> FloatArray:
    """Return the eigenvectors of the largest eigenvalues, as columns."""
    size = len(gram)
    with blas_on_one_thread():
        _, axes = linalg.eigh(gram, subset_by_index=(max(0, size - n_axes), size - 1))
    return np.asarray(axes)


def _on_sphere(points: FloatArray) -> FloatArray:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.maximum(norms, np.finfo(np.float64).tiny))


def _means(points: Points, weights: FloatArray | None, labels: Labels, k: int) -> FloatArray:
    """Return the weighted mean of each cluster, that of all points if it has no weight."""
    counts = np.ones(len(points)) if weights is None else weights
    means = np.tile(np.average(points, axis=0, weights=counts), (k, 1)).astype(np.float64)
    for cluster in np.unique(labels[counts > 0]):
        members = labels == cluster
        means[cluster] = np.average(points[members], axis=0, weights=counts[members])
    return means


def _check_gram(gram: Points) -> None:
    """Raise unless the matrix is square and symmetric."""
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"X has the shape {gram.shape}, but kernel='precomputed' takes a square matrix: pass "
            "K(X, X), that of all pairs of points, or choose a kernel of the points"
        )
    asymmetry = np.abs(gram - gram.T)
    allowed = np.sqrt(np.finfo(gram.dtype).eps) * np.abs(gram).max()
    if asymmetry.max() > allowed:
        i, j = np.unravel_index(np.argmax(asymmetry), gram.shape)
        raise ValueError(
            f"X is not a kernel, since it is not symmetric: X[{i}, {j}] is {gram[i, j]} and "
            f"X[{j}, {i}] is {gram[j, i]}. Pass (X + X.T) / 2 if that is what you mean"
        )


def _distinct_points(rows: Rows, rng: np.random.RandomState) -> IndexArray:
    """Return the first of equal points with a weight, ordered by where they lie."""
    order, key = order_by_place(rows, rng)
    has_weight = rows.sample_weight(order) > 0
    order, key = order[has_weight], key[has_weight]
    return order[np.diff(key, prepend=-1.0) > 0]


def _embedding_of(gram: FloatArray) -> tuple[FloatArray, float]:
    """Return U / sqrt(l) for the positive eigenvalues l of a kernel matrix, and the largest l."""
    # The rows of the matrix times this, U sqrt(l), have the matrix as inner products.
    values, vectors = linalg.eigh(gram, driver="evd", overwrite_a=True)
    largest = max(float(values[-1]), 0.0)
    if values[0] < -_INDEFINITE * max(largest, -values[0]):
        warn_caller(
            f"the kernel is not positive semi-definite: its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}. Those below zero are taken as zero, so distances are not quite "
            "those of this kernel; choose other parameters or another kernel to avoid it",
            IndefiniteKernelWarning,
        )
    kept = values > _ROUNDING * largest
    if not kept.any():
        return np.zeros((len(gram), 1)), largest
    return vectors[:, kept] / np.sqrt(values[kept]), largest


def _blocks(
    points: Points | SparsePoints, n_rows: int
) -> Iterator[tuple[slice, Points | SparsePoints]]:
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        yield rows, points[rows]


def _weighted_sum(values: FloatArray, weights: FloatArray | None) -> float:
    return float(np.sum(values if weights is None else weights * values))
