"""Rows in memory whose distances are a Bregman divergence."""

import math
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences.base import Divergence, Phi
from powermeans.divergences.bregman import Bregman, Separable
from powermeans.divergences.chunks import as_float64
from powermeans.errors import ArgumentError, warn_caller
from powermeans.mathematics.critical_power import critical_power
from powermeans.points.affine import AffinePoints, medians_of_some
from powermeans.points.compiled import CompiledMoves, DirectPoints, EuclideanPoints
from powermeans.system.attributes import cached_property, forget
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels

# The critical power scales at most this many values, since that copies them.
_MOST_VALUES_SCALED = 2**22
# Between about this many points an opening looks at what cancels.
_PAIRED = 8
_LEAST_DIGITS = 1e-9
_MOST_FEATURES_SAMPLED = 4096  # of CSR points: more take long to compare
# CSR points with a larger share of entries take less memory as an array.
_LARGEST_SHARE_STORED = 2 / 3
# Of distances from a convex function of the user, which cannot be had in another form.
_FEW_DIGITS = 1e-4
_EPSILON = float(np.finfo(np.float64).eps)
# Rounding of the sums may move the smallest positive center by this share.
_LEAST_SHARE_OF_CENTER = 0.5


class BregmanPoints(AffinePoints):
    """Measure by a Bregman divergence of the point from the center; options of `CompiledPoints`."""

    _divergence: Bregman
    _last_planes: tuple[FloatArray, FloatArray, FloatArray] | None  # centers, slopes, lifts

    def __init__(
        self,
        points: AnyMatrix,
        sample_weight: FloatArray | None = None,
        *,
        divergence: Bregman,
        **options: Any,
    ) -> None:
        super().__init__(points, sample_weight, **options)
        self.opened_with = divergence
        self.use(divergence)

    @property
    def divergence(self) -> Bregman:
        """The divergence that the rows measure with now."""
        return self._divergence

    def use(self, divergence: Bregman) -> None:
        """Measure with this divergence from now on; interrupted, with the one before."""
        former: Any = vars(self).get("_divergence")
        if divergence is former:
            return
        self._divergence = divergence
        try:
            check_moves(divergence)
            tangent = self._tangent_of(divergence)
            nowhere = np.zeros(self.n_points, dtype=np.int32)
            heights = self._distances_to_own(nowhere, tangent[None, :])
            check_heights(heights, divergence, self.total_weight)
            few = as_float64(self._points[:_PAIRED])
            _compare_moves(divergence, divergence.between(few, tangent[None]), heights[: len(few)])
        except BaseException:
            self._divergence = former
            raise
        forget(self, "moves")
        self._tangent, self._last_planes = tangent, None
        self._use_heights(heights)

    def _tangent_of(self, divergence: Bregman) -> FloatArray:
        """Return the mean; where any place will do, a median, which stays with most points."""
        if divergence.is_quadratic and not sparse.issparse(self._points):
            return medians_of_some(self._points, self._weights)
        return np.asarray(divergence.inside(self._weighted_mean()[None, :])[0])

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        # A search often sweeps and then labels by the same centers.
        last = self._last_planes
        if last is None or not np.array_equal(last[0], centers):
            found = self._divergence.planes(centers, self._tangent, self.native.origin())
            self._last_planes = last = (centers.copy(), *found)
        return last[1:]

    def unit_steps(self) -> float | FloatArray:
        return unit_steps_at(self._tangent, self._divergence)

    def rounding(self) -> float:
        """Count that products of correlated features are larger than the distances they add up to.

        Beside the diagonal of the precision no product is larger than those on it.
        """
        of_products = super().rounding()
        if not self._divergence.is_quadratic:
            return of_products
        if not (inertia := self.inertia_about_mean()) > 0:
            return of_products
        on_diagonal = np.sum(self._column_variance / np.square(self.unit_steps()))
        return of_products * max(1.0, float(self.total_weight * on_diagonal) / inertia)

    def critical_power(self) -> float:
        """Return the critical power of a sample, in the units of their features."""
        return critical_power_in_units(self._points, self._weights, self.unit_steps())

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        return self._divergence.pairwise(self._points[indices], centers)

    @property
    def n_distinct(self) -> int:
        # More points breathe, which counts no work by places, and are not copied to be told apart.
        is_few = self.n_points * self.n_features <= _MOST_VALUES_SCALED
        moves = self.moves if is_few else None
        return super().n_distinct if moves is None else moves.rows.n_distinct

    @cached_property
    def moves(self) -> CompiledMoves | None:
        if self._divergence.moves is None:
            return None
        as_moved = self._divergence.as_moved(self._points)
        rows = EuclideanPoints(as_moved, self._weights, team=self.team)
        return CompiledMoves(self, rows, self._divergence)

    def _forget_what_follows_from_weights(self) -> None:
        super()._forget_what_follows_from_weights()
        forget(self, "moves")

    @property
    def loses_digits(self) -> bool:
        """Whether terms that cancel leave an affine distance few digits, in a sample of the points.

        That is so where its error exceeds the distance of most pairs, or where that of the farthest
        point exceeds what all other points add up to, times a tolerance. It is so too where a
        center near the smallest positive points would be lost beside the largest.
        """
        if self._divergence.loses_small_centers and self._loses_small_centers():
            return True
        is_wide = sparse.issparse(self._points) and self.n_features > _MOST_FEATURES_SAMPLED
        if is_wide or not isinstance(self._divergence, Separable):
            return False
        step = -(-self.n_points // _PAIRED)
        chosen = np.append(np.arange(0, self.n_points, step), np.argmax(self._heights))
        sample, n = as_float64(self._points[chosen]), len(chosen)
        with np.errstate(all="ignore"):
            centers = self._divergence.inside(sample)
            slopes = np.abs(self._divergence.gradient_from(self._tangent, centers))
            lifts = self._divergence.between(self._tangent[None], centers)
            origin = self.native.origin()
            products = (np.abs(sample - origin) + np.abs(self._tangent - origin)) @ slopes.T
            error = (self._heights[chosen, None] + lifts + products) * _EPSILON
            pairs = np.repeat(sample, n, axis=0), np.tile(centers, (n, 1))
            distances = self._divergence.between(*pairs).reshape(n, n)
        apart = distances[distances > 0]
        usual = _middle_of(apart) if len(apart) else math.inf
        of_farthest = float(error[-1, -1]) / self.n_points
        return max(_middle_of(error.ravel()), of_farthest) > _LEAST_DIGITS * usual

    def _loses_small_centers(self) -> bool:
        """Whether sums about the origin round off what the smallest values add to them."""
        smallest, origin = float(self._points.min()), np.abs(self.native.origin()).max()
        size = max(float(self._points.max()), float(origin))
        return float(np.finfo(self.dtype).eps) * size > _LEAST_SHARE_OF_CENTER * smallest

    def _weighted_mean(self) -> FloatArray:
        """Return the mean without a sweep, which needs the heights that follow from it."""
        if self._weights is None or not self._weights.any():
            return self._column_mean
        mean = self._points.T @ (self._weights / np.sum(self._weights))
        return np.asarray(mean, dtype=np.float64)

    def _distances_to_own(self, labels: Labels, centers: FloatArray) -> FloatArray:
        is_as_moved = type(self._divergence).as_moved is Divergence.as_moved
        if self._divergence.moves is None or not is_as_moved:
            return super()._distances_to_own(labels, centers)
        distances = np.empty(self.n_points)
        inner = np.ascontiguousarray(self._divergence.inside(centers))
        self.native.distances_to_own(self._divergence.moves, inner, labels, distances)
        return distances

    def _tangent_place(self) -> FloatArray:
        return np.asarray(self._tangent)

    def _most_cancelled(self) -> float:
        return self._divergence.condition

    def _distances_between(self, rows: slice | IndexArray, centers: FloatArray) -> FloatArray:
        inner = self._divergence.inside(centers)
        return self._divergence.between(as_float64(self._points[rows]), inner)


class DirectBregmanPoints(DirectPoints, BregmanPoints):
    """Compute all distances by the definition, for dense points whose affine distances cancel."""


def open_bregman(
    points: AnyMatrix,
    sample_weight: FloatArray | None = None,
    *,
    divergence: Bregman,
    **options: Any,
) -> BregmanPoints:
    """Open rows that sweep by products, or by the definition where products lose digits.

    Points with few zeros become an array, whose products are about an origin among the points.
    """
    if sparse.issparse(points) and points.nnz > _LARGEST_SHARE_STORED * math.prod(points.shape):
        points = points.toarray()
    rows = BregmanPoints(points, sample_weight, divergence=divergence, **options)
    if type(divergence).between is Bregman.between:
        _warn_of_lost_digits(points, divergence)
    if not rows.loses_digits:
        return rows
    return DirectBregmanPoints(points, sample_weight, divergence=divergence, team=rows.team)


def _warn_of_lost_digits(points: AnyMatrix, divergence: Bregman) -> None:
    """Warn where phi(x) - phi(theta) is rounding for most pairs of a few points."""
    sample = as_float64(points[:: -(-points.shape[0] // _PAIRED)])
    heights = np.abs(divergence.generator(sample))
    pairs = np.repeat(sample, len(sample), axis=0), np.tile(sample, (len(sample), 1))
    distances = divergence.between(*pairs)
    usual, error = _middle_of(distances), _middle_of(heights) * _EPSILON
    if error > _FEW_DIGITS * usual > 0:
        warn_caller(
            f"most distances by {divergence!r} are about {usual:.1g}, and phi of the rows is about "
            f"{_middle_of(heights):.1g}: their differences have few digits, and labels may be "
            "wrong: subtract a constant from X, or define `between` in a class",
            RuntimeWarning,
        )


def _middle_of(values: FloatArray) -> float:
    return float(np.sort(values)[len(values) // 2])


def check_heights(
    heights: FloatArray, divergence: Bregman, total_weight: float, first_row: int = 0
) -> None:
    """Raise where the weight of all, so far from the mean as a point, would be infinite."""
    row = int(np.argmax(heights))
    if not math.isfinite(float(heights[row]) * max(total_weight, 1.0)):
        raise ValueError(
            f"row {first_row + row} of X is infinitely far from the mean by {divergence!r}: scale "
            "X, sample_weight, or the parameters of the divergence"
        )


def check_moves(divergence: Bregman) -> None:
    """Raise where a divergence does not say how points move as `Divergence.moves` asks."""
    phi: Any = divergence.moves
    if phi is None:
        return
    is_phi = isinstance(phi, Phi) and all(isinstance(factor, Real) for factor in phi)
    if not is_phi or not all(math.isfinite(factor) and factor >= 0 for factor in phi):
        told = "must be None or a Phi with finite factors of at least zero"
    elif (phi.length > 0) == (sum(phi) > phi.length):
        told = "must have the length alone, or terms without it"
    else:
        return
    raise ArgumentError(
        told, "say for example moves = Phi(square=1.0)", argument="moves", value=phi
    )


def _compare_moves(divergence: Bregman, defined: FloatArray, moved: FloatArray) -> None:
    """Raise where the function by which points move gives other distances than the definition."""
    largest = float(np.max(np.abs([defined, moved]), initial=0.0))
    if np.allclose(defined, moved, rtol=1e-3, atol=1e-6 * largest):
        return
    row = int(np.argmax(np.abs(defined - moved)))
    raise ArgumentError(
        f"is not the convex function of {divergence!r}: row {row} of X is {defined[row]:.6g} from "
        f"their mean, and by this function {moved[row]:.6g}",
        "correct its factors, or leave moves out",
        argument="moves",
        value=divergence.moves,
    )


def unit_steps_at(tangent: FloatArray, divergence: Bregman) -> FloatArray:
    """Return the step along each feature at which the divergence from the tangent point is one.

    Near that point a divergence is half of the curvature times the squared step.
    """
    with np.errstate(over="ignore", divide="ignore"):
        curvature = divergence.curvature(tangent)
    if np.isposinf(curvature).any():
        raise ValueError(
            f"the mean of X, {tangent[np.argmax(curvature)]:.3g} in feature "
            f"{int(np.argmax(curvature))}, is too small for {divergence!r}: scale X"
        )
    is_convex = np.isfinite(curvature) & (curvature > 0)
    if not np.all(is_convex):
        raise ValueError(
            f"{divergence!r} is not strictly convex at the mean of X, feature "
            f"{int(np.argmin(is_convex))}: pass a convex function and its gradient"
        )
    with np.errstate(over="ignore"):
        steps = np.sqrt(2 / curvature)
    if np.isposinf(steps).any():
        raise ValueError(
            f"the mean of X, {tangent[np.argmax(steps)]:.3g} in feature {int(np.argmax(steps))}, "
            f"is too large for {divergence!r}: scale X"
        )
    return np.asarray(steps)


def step_between_scaled(n_points: int, n_features: int) -> int:
    """Return the step between the points that are scaled to find the critical power."""
    return -(-n_points * n_features // _MOST_VALUES_SCALED)


def critical_power_in_units(
    points: AnyMatrix, weights: FloatArray | None, steps: float | FloatArray
) -> float:
    """Return the critical power of a sample of the points, in the units of their features."""
    step = step_between_scaled(*points.shape)
    some, of_some = points[::step], None if weights is None else weights[::step]
    if of_some is not None and not of_some.any():
        some, of_some = points, weights
    return critical_power(in_units(some, steps), of_some)


def in_units(points: AnyMatrix, steps: float | FloatArray) -> AnyMatrix:
    """Return the points with each feature divided by its step."""
    if isinstance(points, np.ndarray):
        return points / steps
    return sparse.csr_array(points.multiply(1 / np.asarray(steps)))
