"""Kernel power k-means (Paul et al. 2022): power k-means in the feature space of a kernel."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from powermeans.engine.fit import Callback, random_numbers
from powermeans.engine.stopping import StopRule
from powermeans.mathematics.power_mean import memberships
from powermeans.methods.documented import Documented, one_of
from powermeans.methods.kernel.kernel_features import (
    ROUNDING,
    Kernel,
    LeadingPowerKMeans,
    blocks_of,
    check_gram,
    choose_landmarks,
    embedding_of,
    is_named,
)
from powermeans.methods.power_kmeans import PowerKMeans
from powermeans.methods.predictions import for_table
from powermeans.points.checks.points import Admitted, divide_by_power_of_two
from powermeans.points.columns import Columns
from powermeans.points.needs import FitNeeds, Measure, Needs, Refusals
from powermeans.points.opening import MatrixLike, admit_array, rows_of
from powermeans.points.protocol import Points
from powermeans.system.attributes import take_over
from powermeans.system.containers import like_given
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, FloatArray, Labels, Matrix

Results = TypeVar("Results", bound=Matrix | Labels)

# The parameters that go to `PowerKMeans` as they are.
_PASSED_ON = (
    *("n_clusters", "init", "effort", "stop", "n_init", "max_iter", "tol"),
    *("n_threads", "callback", "verbose"),
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
    coordinates, in which distances differ more. The kernel of all points with the landmarks is
    computed once, and its eigenvalues take time proportional to the cube of the number of
    landmarks. Where `PowerKMeans` suffices, it is far faster.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`; "precomputed" if X is K(X, X); a
        kernel of `sklearn.gaussian_process.kernels`; or any other callable, which is called with
        two rows at a time.
    gamma : float, optional
        Parameter of the kernels "rbf", "laplacian", "poly", "sigmoid" and "chi2". None is one over
        the mean squared distance from the mean for "rbf", else scikit-learn's default.
    degree : float, default=3
        Parameter of the kernel "poly".
    coef0 : float, default=1
        Parameter of the kernels "poly" and "sigmoid".
    n_landmarks : int, optional
        Number of landmarks. None takes all distinct points if there are at most 2000, else 500. If
        all distinct points are landmarks, nothing is approximate.
    init : {"k-means++", "plain-k-means++", "random"}, default="k-means++"
        Initial centers, as in `PowerKMeans`.
    effort, stop, n_init, max_iter, tol, random_state, n_threads, callback, verbose
        As in `PowerKMeans`; for its other parameters, fit one to ``embed(X)``.

    Attributes
    ----------
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
    largest_eigenvalue_ : float
        That of the kernel of the landmarks, the scale of what is rounding in it.
    n_components_ : int
        Number of coordinates: eigenvalues of the kernel of the landmarks that are positive beyond
        rounding.
    gamma_ : float or None
        The `gamma` of the kernel; None if it has none or leaves it to scikit-learn.
    embedded_ : PowerKMeans
        The model fitted to the coordinates, with its `history_`, `spent_` and `power_`.
    labels_, n_iter_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : The same without a kernel.

    Notes
    -----
    A kernel with negative eigenvalues is not an inner product. They are set to zero, which changes
    the distances, with an `IndefiniteKernelWarning`.

    `transform` and `score` include the part of phi(x) outside the span of the landmarks, as
    `inertia_` does. With a precomputed kernel they do not, since K(x, x) of new points is unknown.

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
    >>> from powermeans.methods import KernelPowerKMeans
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

    _state = """gamma_: finite?! landmark_indices_: count[m]! is_exact_: flag!
        landmarks_: finite[m,d] embedding_: finite[m,q]! n_components_: length[q]!
        largest_eigenvalue_: finite! embedded_: PowerKMeans! dual_coef_: finite[k,m]!
        labels_: label[n]! n_iter_: count! inertia_: number!"""

    _why_whole = "A kernel is of all entries of two rows"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: PowerKMeans._parameter_constraints[name] for name in _PASSED_ON},
        "kernel": [one_of({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "init": [one_of({"k-means++", "plain-k-means++", "random"})],
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
        n_landmarks: int | None = None,
        init: Literal["k-means++", "plain-k-means++", "random"] = "k-means++",
        effort: Literal["none", "fast", "balanced", "thorough"] = "balanced",
        stop: StopRule | None = None,
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
        self.n_landmarks = n_landmarks
        self.init = init
        self.effort = effort
        self.stop = stop
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
            Nonnegative, as in `PowerKMeans.fit`.

        Returns
        -------
        self
        """
        self._validate_params()
        # A fit that finds nothing leaves the estimator as it was.
        fitted = copy.copy(self)
        try:
            fitted._fit(X, sample_weight)
        finally:
            if getattr(fitted, "labels_", None) is not getattr(self, "labels_", None):
                fitted.labels_ = _at_home(X, fitted.labels_)
                take_over(self, fitted)
        return self

    def _fit(self, X: MatrixLike, sample_weight: ArrayLike | None) -> None:
        name, is_gram = type(self).__name__, self._is("precomputed")
        reason = None if is_gram else self._why_whole
        needs = Needs(
            name=name,
            estimator=self,
            refusals=Refusals(missing=reason),
            fit=FitNeeds(n_points=self.n_clusters, must_differ=not is_gram),
        )
        data = self._admitted(X, sample_weight, needs)
        if is_gram:
            check_gram(np.asarray(data.points))
        rng = random_numbers(self.random_state)
        # Squared differences of tiny similarities would vanish.
        is_tiny = is_gram and 0 < data.largest < 1e-130
        exponent = math.frexp(data.largest)[1] if is_tiny else 0
        points = divide_by_power_of_two(data.points, exponent)
        rows = rows_of(replace(data, points=points), Measure(n_threads=self.n_threads))
        self.gamma_ = self._gamma(rows)
        self.landmark_indices_, self.is_exact_ = choose_landmarks(rows, self.n_landmarks, rng)
        self._span_landmarks(data.points)
        self._fit_embedded(data, rng)

    def check_loaded(self) -> None:
        """Raise where attributes of a file are not those of one fit."""
        if self.kernel != "precomputed":
            self.predict(self.landmarks_[:1])
            return
        n_points, last = len(self.labels_), int(np.max(self.landmark_indices_))
        if self.n_features_in_ != n_points or last >= n_points:
            raise ValueError("its labels, its landmarks and its kernel are of other points")

    def predict(self, X: MatrixLike) -> Labels:
        """Return the label of the nearest center for each point, (n_samples,), as int32.

        If the kernel is precomputed, X is that of these points with those of `fit`, here and below.
        """
        coordinates = self._coordinates(self._fitted(X).points)[0]
        return _at_home(X, self.embedded_.predict(coordinates))

    def transform(self, X: MatrixLike) -> Matrix:
        """Return the distance of each point from each center in the feature space, not squared."""
        return for_table(self, _at_home(X, self._distances(X)))

    def embed(self, X: MatrixLike) -> Matrix:
        """Return coordinates of the features of each point in the span of those of the landmarks.

        They have the shape (n_samples, n_components), and their inner products are the kernel,
        exactly for landmarks.
        """
        return _at_home(X, self._coordinates(self._fitted(X).points)[0])

    def memberships(self, X: MatrixLike, power: float | None = None) -> FloatArray:
        """Return how much each point belongs to each center, as `PowerKMeans.memberships` does.

        By default the power is that at which annealing ended.
        """
        sq_dist = np.square(self._distances(X), dtype=np.float64)
        at = self.embedded_.power_ if power is None else power
        return _at_home(X, memberships(sq_dist, at))

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centers."""
        data = self._fitted(X, sample_weight)
        coordinates, outside = self._embed(data.points)
        within = self.embedded_.score(coordinates, sample_weight=data.weights)
        return within - _weighted_sum(outside, data.weights)

    def _distances(self, X: MatrixLike) -> Matrix:
        coordinates, outside = self._embed(self._fitted(X).points)
        within = self.embedded_.transform(coordinates)
        distances: Matrix = np.hypot(within, np.sqrt(outside).astype(within.dtype)[:, None])
        return distances

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
        needs = Needs(name=type(self).__name__, estimator=self, known=known)
        return self._admitted(X, sample_weight, needs)

    def _admitted(self, X: MatrixLike, sample_weight: ArrayLike | None, needs: Needs) -> Admitted:
        form: dict[str, Any] = {}
        if self._is("precomputed"):
            # An error about NaN comes before one about the number of columns.
            form = {"accept_sparse": False, "ensure_all_finite": needs.known is not None}
        return admit_array(X, sample_weight, needs, **form)

    def _is(self, name: str) -> bool:
        return is_named(self.kernel, name)

    # Fitting.

    def _gamma(self, rows: Points) -> float | None:
        if self.gamma is not None or not self._is("rbf"):
            return self.gamma
        mean_sq_dist = rows.inertia_about_mean() / rows.total_weight
        # Rounded, so that weights and copies of points give exactly the same kernel.
        return float(f"{1 / mean_sq_dist:.6g}") if mean_sq_dist > 0 else 1.0

    def _span_landmarks(self, points: AnyMatrix) -> None:
        landmarks = points[self.landmark_indices_]
        if not self._is("precomputed"):
            self.landmarks_ = landmarks.astype(np.float64)
        with blas_on_one_thread():
            gram = self._kernel_with_landmarks(landmarks)
            self.embedding_, self.largest_eigenvalue_ = embedding_of(gram / 2 + gram.T / 2)
        self.n_components_ = self.embedding_.shape[1]

    def _fit_embedded(self, data: Admitted, rng: np.random.RandomState) -> None:
        coordinates, sq_norms = self._coordinates(data.points)
        passed_on = {name: getattr(self, name) for name in _PASSED_ON}
        inner = LeadingPowerKMeans(**passed_on, random_state=rng)
        self.embedded_ = PowerKMeans(**passed_on, random_state=rng)
        try:
            inner.fit(coordinates, sample_weight=data.weights)
        finally:
            take_over(self.embedded_, inner)
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

    def _embed(self, points: AnyMatrix) -> tuple[Matrix, FloatArray]:
        """Return coordinates and squared distances from the span of the landmarks."""
        coordinates, sq_norms = self._coordinates(points)
        return coordinates, self._outside(self._diagonal(points), sq_norms)

    def _coordinates(self, points: AnyMatrix) -> tuple[Matrix, FloatArray]:
        """Return coordinates in the dtype of the points, and their unrounded squared norms."""
        n_points = points.shape[0]
        coordinates: Matrix = np.empty((n_points, self.n_components_), dtype=points.dtype)
        sq_norms = np.empty(n_points)
        with blas_on_one_thread():
            for rows, block in blocks_of(points, 2**21 // len(self.embedding_)):
                exact = self._kernel_with_landmarks(block) @ self.embedding_
                sq_norms[rows] = np.einsum("if,if->i", exact, exact)
                with np.errstate(over="ignore"):
                    coordinates[rows] = exact
        if not np.isfinite(coordinates).all():
            raise ValueError(
                f"kernel={self.kernel!r} has values beyond {points.dtype}: "
                f"{self._kernel().way_to_finite()}"
            )
        return coordinates, sq_norms

    def _outside(self, diagonal: FloatArray, sq_norms: FloatArray) -> FloatArray:
        """Return K(x, x) minus the squared norm of the coordinates, or zero if that is rounding."""
        outside = diagonal - sq_norms
        rounding = ROUNDING * np.maximum(self.largest_eigenvalue_, np.abs(diagonal))
        return np.where(outside > rounding, outside, 0.0)

    def _diagonal(self, points: AnyMatrix) -> FloatArray:
        """Return K(x, x) of each point; zero if it is unknown, so that nothing is outside."""
        if self._is("precomputed"):
            return np.zeros(points.shape[0])
        return self._kernel().diagonal(points)

    def _kernel_with_landmarks(self, points: AnyMatrix) -> FloatArray:
        if self._is("precomputed"):
            return np.asarray(points[:, self.landmark_indices_], dtype=np.float64)
        return self._kernel().of(points.astype(np.float64), self.landmarks_)

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_, self.degree, self.coef0, self.n_threads)


def _at_home(X: MatrixLike, found: Results) -> Results:
    """Return results with a row for each point in the form in which the points came."""
    home: Results = like_given(X, found, of="points")
    return home


def _weighted_sum(values: FloatArray, weights: FloatArray | None) -> float:
    return float(np.sum(values if weights is None else weights * values))
