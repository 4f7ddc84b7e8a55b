"""`ProductQuantizer`: short codes for vectors, and distances to them by tables."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from powermeans.errors import ArgumentError
from powermeans.estimators.base import Documented
from powermeans.estimators.many_fits import ManyFits, fit_admitted
from powermeans.estimators.opening import Columns, OpeningSpec, admit_array
from powermeans.rows import open_batch
from powermeans.rows.native import NativeRows, Team, start_team
from powermeans.rules import Hard
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, Points

Codes = NDArray[np.unsignedinteger[Any]]

# Sweeps of the codewords after each change of the rotation.
_SWEEPS_PER_TURN = 4


class ProductQuantizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Documented):
    """Product quantization: each vector becomes one small number for each group of its features.

    The features are divided into groups of equal size, the subspaces, and k-means finds the
    codewords of each (Jégou, Douze and Schmid 2011). A vector is stored as the numbers of the
    nearest codewords, and distances to stored vectors are sums of entries of small tables.

    Parameters
    ----------
    n_subspaces : int, default=8
        Number of subspaces, which must divide the number of features; also of numbers in a code.
    n_bits : int, default=8
        Bits of each number, from 1 to 16: each subspace has 2**n_bits codewords, or one for each
        training point where these are fewer. Up to 8 bits, codes are uint8, else uint16.
    rotation : {"learned"}, optional
        "learned" rotates the points so that the codes lose less: the rotation and the codewords
        are improved in turns (Ge, He, Ke and Sun 2013, optimized product quantization).
    n_turns : int, default=20
        Number of turns; only for ``rotation="learned"``.
    max_points_per_center : int, default=256
        A fit uses a random sample of at most this many points for each codeword of a subspace.
    max_iter : int, default=25
        Largest number of sweeps of the k-means of each subspace.
    tol : float, default=1e-4
        As in `KMeans`.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and of the initial codewords. An int makes the result reproducible.
    n_threads : int, optional
        Number of threads, which share the subspaces in a fit; it does not change the results.

    Attributes
    ----------
    codebooks_ : ndarray of shape (n_subspaces, n_codewords, n_features / n_subspaces)
        The codewords of each subspace, in the dtype of the points.
    rotation_ : ndarray of shape (n_features, n_features) or None
        Orthogonal matrix; ``X @ rotation_`` is divided into subspaces. None if X is.
    n_iter_ : int
        Largest number of sweeps of the k-means of a subspace.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X have names.

    See Also
    --------
    fit_many : Finds the codewords of all subspaces at once.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import ProductQuantizer
    >>> X = np.random.default_rng(0).normal(size=(1000, 16)).astype(np.float32)
    >>> quantizer = ProductQuantizer(n_subspaces=4, n_bits=6, random_state=0).fit(X)
    >>> codes = quantizer.encode(X)
    >>> codes.shape, codes.dtype
    ((1000, 4), dtype('uint8'))
    >>> quantizer.distances(X[:2], codes).shape
    (2, 1000)
    >>> bool(quantizer.reconstruction_error(X) < X.var(axis=0).sum() / 2)
    True
    """

    codebooks_: Points
    rotation_: Points | None
    n_iter_: int
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_subspaces": [Interval(Integral, 1, None, closed="left")],
        "n_bits": [Interval(Integral, 1, 16, closed="both")],
        "rotation": [StrOptions({"learned"}), None],
        "n_turns": [Interval(Integral, 1, None, closed="left")],
        "max_points_per_center": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_subspaces: int = 8,
        n_bits: int = 8,
        *,
        rotation: Literal["learned"] | None = None,
        n_turns: int = 20,
        max_points_per_center: int = 256,
        max_iter: int = 25,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.n_bits = n_bits
        self.rotation = rotation
        self.n_turns = n_turns
        self.max_points_per_center = max_points_per_center
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the codewords, and the rotation if one is to be learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training points, finite. float16 and float32 are worked on in float32.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            How much the error of each point counts. Points of weight 0 are left out.

        Returns
        -------
        self
        """
        self._validate_params()
        spec = self._spec()
        points, weights = self._admitted(X, spec, sample_weight)
        self._check_width(points.shape[1])
        rng = check_random_state(self.random_state)
        sample, weights = self._sample(points, weights, rng)
        fits = self._fits(sample, weights, rng)
        codebooks, rotation = fits.cluster_centers, None
        if self.rotation == "learned":
            codebooks, rotation = self._learned_rotation(sample, weights, codebooks)
        self.codebooks_, self.rotation_ = codebooks, rotation
        self.n_iter_ = int(fits.n_iter.max())
        return self

    def encode(self, X: ArrayLike) -> Codes:
        """Return the numbers of the nearest codewords.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            uint8, or uint16 for more than 8 bits.
        """
        codes = [labels for labels, _ in self._assigned(self._new_points(X))]
        return np.stack(codes, axis=1).astype(np.uint8 if self.n_bits <= 8 else np.uint16)

    def transform(self, X: ArrayLike) -> Codes:
        """Return what `encode` returns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            The codes.
        """
        return self.encode(X)

    def decode(self, codes: ArrayLike) -> Points:
        """Return the points that codes stand for.

        Parameters
        ----------
        codes : array-like of shape (n_codes, n_subspaces)
            As from `encode`.

        Returns
        -------
        ndarray of shape (n_codes, n_features)
            In the dtype of the training points.
        """
        decoded = _decoded(self._checked_codes(codes), self.codebooks_)
        return decoded if self.rotation_ is None else _product(decoded, self.rotation_.T)

    def distances(self, queries: ArrayLike, codes: ArrayLike) -> Points:
        """Return squared distances from queries to the points that codes stand for.

        Queries are not coded themselves: for each, a table has the squared distances to the
        codewords of a subspace, and a distance is a sum of one entry of each table.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            The points to measure from.
        codes : array-like of shape (n_codes, n_subspaces)
            As from `encode`.

        Returns
        -------
        ndarray of shape (n_queries, n_codes)
            In the dtype of the queries.
        """
        checked, points = self._checked_codes(codes), self._new_points(queries)
        distances = np.zeros((len(points), len(checked)))
        for rows, codewords, of_subspace in self._by_subspace(points, checked.T):
            table = rows.sq_distances(codewords)
            distances += np.take(table, of_subspace, axis=1)
        return _stored(distances, points)

    def reconstruction_error(self, X: ArrayLike) -> float:
        """Return the mean squared distance of points from what their codes stand for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        float
            Divided by the number of points, not by that of the features.
        """
        points = self._new_points(X)
        return sum(inertia for _, inertia in self._assigned(points)) / len(points)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.codebooks_)

    def _admitted(
        self, X: ArrayLike, spec: OpeningSpec, sample_weight: ArrayLike | None = None
    ) -> tuple[Points, FloatArray | None]:
        admitted = admit_array(X, sample_weight, spec, accept_sparse=False)
        assert isinstance(admitted.points, np.ndarray)
        return admitted.points, admitted.weights

    def _spec(self) -> OpeningSpec:
        reason = "A code is of all entries of a row"
        return OpeningSpec(name=type(self).__name__, estimator=self, why_whole=reason)

    def _new_points(self, X: ArrayLike) -> Points:
        """Return points to encode or to measure from, rotated."""
        check_is_fitted(self)
        spec = self._spec()
        points, _ = self._admitted(X, spec.for_new(Columns(self.n_features_in_, None, None)))
        return points if self.rotation_ is None else _product(points, self.rotation_)

    def _check_width(self, n_features: int) -> None:
        if n_features % self.n_subspaces:
            divisors = [str(m) for m in range(1, n_features + 1) if n_features % m == 0]
            n_lacking = -n_features % self.n_subspaces
            raise ArgumentError(
                f"does not divide the {n_features} features",
                f"choose one of {', '.join(divisors)}, or append columns of zeros, {n_lacking} of "
                "them for this number",
                argument="n_subspaces",
                value=self.n_subspaces,
            )

    def _checked_codes(self, codes: ArrayLike) -> NDArray[np.integer[Any]]:
        check_is_fitted(self)
        given: NDArray[Any] = np.asarray(codes)
        n_subspaces, n_codewords, _ = self.codebooks_.shape
        if given.ndim != 2 or given.shape[1] != n_subspaces or given.dtype.kind not in "iu":
            raise ArgumentError(
                f"codes has the shape {given.shape} and the dtype {given.dtype}",
                f"pass integers of shape (n_codes, {n_subspaces}), as encode returns",
            )
        if given.size and not 0 <= given.min() <= given.max() < n_codewords:
            raise ArgumentError(
                f"codes has numbers from {given.min()} to {given.max()}",
                f"each subspace has {n_codewords} codewords, so pass numbers from 0 to "
                f"{n_codewords - 1}",
            )
        return given

    def _sample(
        self, points: Points, weights: FloatArray | None, rng: np.random.RandomState
    ) -> tuple[Points, FloatArray | None]:
        """Return the points to learn from, with their weights: none of weight 0."""
        chosen = np.arange(len(points)) if weights is None else np.flatnonzero(weights)
        n_most = self.max_points_per_center * 2**self.n_bits
        if len(chosen) > n_most:
            chosen = np.sort(rng.choice(chosen, n_most, replace=False))
        if len(chosen) == len(points):
            return points, weights
        return points[chosen], None if weights is None else weights[chosen]

    def _fits(
        self, sample: Points, weights: FloatArray | None, rng: np.random.RandomState
    ) -> ManyFits:
        parts = _split(sample, self.n_subspaces)
        return fit_admitted(
            parts,
            [weights] * len(parts),
            [np.empty(len(sample), dtype=np.int32) for _ in parts],
            n_clusters=min(2**self.n_bits, len(sample)),
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            n_threads=self.n_threads,
        )

    def _learned_rotation(
        self, sample: Points, weights: FloatArray | None, codebooks: Points
    ) -> tuple[Points, Points]:
        """Improve the rotation for the codebooks and these for the rotation, in turns.

        The points are centered meanwhile, so that their mean does not turn with them.
        """
        mean = np.average(sample.astype(np.float64), axis=0, weights=weights)
        centered = _stored(sample - mean, sample)
        rotation = np.eye(len(mean))
        codebooks = _moved(codebooks, -mean)
        parts = _split(centered, self.n_subspaces)
        team = start_team(self.n_threads)
        for _ in range(self.n_turns):
            codes = [
                _opened(part, team).assign(codewords.astype(np.float64))[0]
                for part, codewords in zip(parts, codebooks, strict=True)
            ]
            targets = _decoded(np.stack(codes, axis=1), codebooks)
            rotation = _procrustes(centered, targets, weights)
            parts = _split(_product(centered, rotation), self.n_subspaces)
            swept = [
                _swept(_opened(part, team, weights), codewords.astype(np.float64))
                for part, codewords in zip(parts, codebooks, strict=True)
            ]
            codebooks = _stored(np.stack(swept), sample)
        return _moved(codebooks, mean @ rotation), _stored(rotation, sample)

    def _by_subspace(self, points: Points, *others: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows and the codewords of each subspace, and what others have for it."""
        team = start_team(self.n_threads)
        parts = _split(points, len(self.codebooks_))
        for part, codewords, *rest in zip(parts, self.codebooks_, *others, strict=True):
            yield _opened(part, team), codewords.astype(np.float64), *rest

    def _assigned(self, points: Points) -> Iterator[tuple[Any, float]]:
        """Yield labels and inertia of rotated points, by subspace."""
        for rows, codewords in self._by_subspace(points):
            yield rows.assign(codewords)


def _split(points: Points, n_subspaces: int) -> list[Points]:
    """Return the columns of each subspace, in C order."""
    return [np.ascontiguousarray(part) for part in np.split(points, n_subspaces, axis=1)]


def _opened(part: Points, team: Team, weights: FloatArray | None = None) -> NativeRows:
    return open_batch(part, weights, team=team)


def _swept(rows: NativeRows, codewords: FloatArray) -> FloatArray:
    for _ in range(_SWEEPS_PER_TURN):
        codewords = rows.sweep(codewords, Hard()).centers(fallback=codewords)
    return codewords


def _decoded(codes: NDArray[np.integer[Any]], codebooks: Points) -> Points:
    parts = [
        codewords[of_subspace] for codewords, of_subspace in zip(codebooks, codes.T, strict=True)
    ]
    decoded: Points = np.concatenate(parts, axis=1)
    return decoded


def _moved(codebooks: Points, offset: FloatArray) -> Points:
    """Return codewords with the offset of their columns added."""
    return _stored(codebooks + offset.reshape(len(codebooks), 1, -1), codebooks)


def _procrustes(points: Points, targets: Points, weights: FloatArray | None) -> FloatArray:
    """Return the orthogonal matrix that brings points nearest to their targets."""
    wide = points.astype(np.float64) if weights is None else points * weights[:, None]
    with blas_on_one_thread():
        left, _, right = np.linalg.svd(wide.T @ targets.astype(np.float64))
        rotation: FloatArray = left @ right
        return rotation


def _product(points: Points, matrix: Points) -> Points:
    """Multiply on one thread of BLAS, since its sums depend on their number."""
    with blas_on_one_thread():
        product: Points = points @ matrix.astype(points.dtype, copy=False)
    return product


def _stored(values: FloatArray, points: Points) -> Points:
    """Return values in the dtype of the points."""
    return values if points.dtype == np.float64 else values.astype(np.float32)
