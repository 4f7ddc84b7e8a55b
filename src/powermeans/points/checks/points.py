"""Points of the user: checked here, and trusted everywhere else.

Admitted points are finite, float32, float64 or, where asked for, narrow, in native byte order, and
dense in C order and aligned, or CSR with sorted indices and no entry twice. Narrow points, of fewer
bits than float32, are kept as they are, and widened where they are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.errors import FewRowsError, UnlikeScalesWarning, warn_caller
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.points.checks.csr import canonical_csr, stacked
from powermeans.points.checks.faults import first_not_finite, way_out_of
from powermeans.system.containers import is_tensor
from powermeans.system.saved_classes import saved
from powermeans.types import AnyMatrix, FloatArray, Matrix

# By name, since only those who have bfloat16 have the package `ml_dtypes`, which defines it. A name
# tells the byte order where it is not native.
NARROW_DTYPES = ("float16", "bfloat16", "int8", "uint8")
_BLOCK_ELEMENTS = 2**17
# Squared differences below the square of this are no longer normal numbers.
_LEAST_SPREAD = math.sqrt(np.finfo(np.float64).tiny)
# Scales are unlike if spreads differ so many times.
_UNLIKE_RATIO = 100.0


@saved
@dataclass(frozen=True, slots=True)
class Admitted:
    """Points and weights that the rest of the package can trust."""

    points: AnyMatrix
    weights: FloatArray | None
    largest: float  # magnitude among the entries

    def at(self, rows: Any) -> Admitted:
        """Return some of the points, by their indices or as a slice."""
        weights = None if self.weights is None else self.weights[rows]
        return Admitted(self.points[rows], weights, self.largest)

    def copied(self) -> Admitted:
        """Return a copy, since the user may use the memory again."""
        weights = None if self.weights is None else self.weights.copy()
        return Admitted(self.points.copy(), weights, self.largest)

    @staticmethod
    def joined(parts: Sequence[Admitted]) -> Admitted:
        """Return the points of some parts together, sparse if one of them is."""
        if len(parts) == 1:
            return parts[0]
        arrays: list[Any] = [part.points for part in parts]
        if any(map(sparse.issparse, arrays)):
            arrays = list(map(sparse.csr_array, arrays))
        weights = None
        if any(part.weights is not None for part in parts):
            given = ((part.weights, part.points.shape[0]) for part in parts)
            weights = np.concatenate([np.ones(n) if w is None else w for w, n in given])
        return Admitted(stacked(arrays), weights, max(part.largest for part in parts))


def wanted_dtype(X: object) -> Any:
    """Return the dtype for points: float32 for floats as narrow, float64 for all else."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and (dtype.kind == "f" or dtype.name == "bfloat16"):
        return np.float32 if dtype.itemsize <= 4 else [np.float64, np.float32]
    return [np.float64, np.float32]


def admit(
    points: AnyMatrix,
    sample_weight: ArrayLike | None = None,
    *,
    n_clusters: int = 1,
    **asked: Any,
) -> Admitted:
    """Return points and weights, checked as `check_points` is asked, and CSR in canonical form."""
    if sparse.issparse(points):
        points = canonical_csr(points)
    else:  # NumPy sums entries that are not aligned in another order
        points = np.require(points, requirements="A")
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, points.shape[0])
    if points.shape[0] < n_clusters:
        raise FewRowsError(points.shape[0], n_clusters)
    total = None if weights is None else float(weights.sum())
    return Admitted(points, weights, check_points(points, total_weight=total, **asked))


def check_points(
    points: AnyMatrix,
    *,
    name: str = "X",
    feature_names: Iterable[object] | None = None,
    total_weight: float | None = None,
    must_differ: bool = False,
    has_missing: bool = False,
    first_row: int = 0,
    way_out: Callable[[float, bool], str] | None = None,
) -> float:
    """Return the largest magnitude; raise on entries or squared distances out of range.

    With `must_differ`, also raise if distances would vanish, or a column has no observed entry.
    """
    if has_missing:
        _refuse_nothing_observed(points, name, of_columns=must_differ, first_row=first_row)
    largest = largest_magnitude(points, has_missing)
    if not math.isfinite(largest):
        if has_missing and isinstance(points, np.ndarray):
            points = np.where(np.isnan(points), points.dtype.type(0), points)  # NaN is allowed
        where, value = first_not_finite(points, feature_names, first_row)
        is_dense = isinstance(points, np.ndarray)
        words = way_out_of(value) if way_out is None else way_out(value, is_dense)
        raise ValueError(f"Input {name} contains {where}. {words}")
    n_points, n_features = points.shape
    refuse_huge(largest, max(float(n_points), total_weight or 0.0), n_features, name)
    lightest = min(1.0, total_weight or 1.0)
    if must_differ and (lightest < 1 or not _differ_at_a_glance(points, largest)):
        refuse_tiny_spread(widest(*bounds(points)), name, lightest)
        refuse_tiny_products(largest, lightest, name)
    return largest


def refuse_huge(largest: float, total: float, n_features: int, name: str) -> None:
    """Raise if the sum of squared distances would overflow float64."""
    # A difference of two entries is at most twice the largest. Logarithms cannot overflow.
    room = math.log(np.finfo(np.float64).max) - math.log(total) - math.log(n_features)
    if largest > 0 and 2 * math.log(2 * largest) > room:
        raise ValueError(
            f"Input {name} has values as large as {largest:.3g}: the sum of squared "
            f"distances would overflow float64. Scale {name}, for example divide it by "
            f"{largest:.0e}"
        )


def refuse_tiny_spread(spread: float, name: str, total_weight: float = 1.0) -> None:
    """Raise if points differ too little, or weigh too little, for distances above zero."""
    if spread > 0 and math.log(total_weight) + 2 * math.log(spread) < 2 * math.log(_LEAST_SPREAD):
        if spread >= _LEAST_SPREAD:
            raise ValueError(
                f"sample_weight adds up to {total_weight:.3g} and {name} varies by no more than "
                f"{spread:.3g}: weighted squared distances would vanish in float64. Divide "
                f"sample_weight by {total_weight:.0e}"
            )
        raise ValueError(
            f"Input {name} varies by no more than {spread:.3g}: squared distances would "
            f"vanish in float64. Scale {name}, for example divide it by {spread:.0e}"
        )


def refuse_tiny_products(largest: float, total_weight: float, name: str) -> None:
    """Raise if weights make products with points, which centers are quotients of, lose digits."""
    if largest == 0 or total_weight >= 1:
        return
    if math.log(total_weight) + math.log(largest) < 2 * math.log(_LEAST_SPREAD):
        raise ValueError(
            f"sample_weight adds up to {total_weight:.3g} and {name} has no value above "
            f"{largest:.3g}: their products would vanish in float64. Divide sample_weight by "
            f"{total_weight:.0e}"
        )


def exponent_to_square(largest: float, dtype: np.dtype[Any]) -> int:
    """Return e such that float32 holds squared distances of points divided by 2**e, mostly 0."""
    if computed_dtype(dtype) != np.float32 or largest == 0 or 1e-15 < largest < 1e15:
        return 0
    return math.frexp(largest)[1]


def divide_by_power_of_two(points: AnyMatrix, exponent: int) -> AnyMatrix:
    """Return the points over 2**exponent, copied unless the exponent is zero."""
    if exponent == 0:
        return points
    if not sparse.issparse(points):
        divided_points: Matrix = np.ldexp(widened(points), -exponent)
        return divided_points
    divided = points.copy()
    divided.data = np.ldexp(divided.data, -exponent)
    return divided


def _refuse_nothing_observed(
    points: AnyMatrix, name: str, *, of_columns: bool, first_row: int = 0
) -> None:
    if sparse.issparse(points):
        raise ValueError(
            f"{name} is sparse, and only a dense array can have missing entries, as NaN: pass "
            f"{name}.toarray()"
        )
    is_missing = np.isnan(points)
    for axis, kind in ((0, "column"), (1, "row"))[0 if of_columns else 1 :]:
        is_empty = is_missing.all(axis=axis)
        if is_empty.any():
            place = int(np.argmax(is_empty)) + (first_row if kind == "row" else 0)
            raise ValueError(f"{name} has nothing but NaN in {kind} {place}: leave it out")


def largest_magnitude(points: AnyMatrix, has_missing: bool = False) -> float:
    """Return the largest magnitude among the entries, infinity if one is not finite."""
    entries = points.data if sparse.issparse(points) else points.reshape(-1)
    largest = 0.0
    for start in range(0, len(entries), _BLOCK_ELEMENTS):
        block = widened(entries[start : start + _BLOCK_ELEMENTS])
        if has_missing:
            block = np.where(np.isnan(block), 0, block)
        # The minimum of a block is NaN if any entry is.
        lowest, highest = float(np.minimum.reduce(block)), float(np.maximum.reduce(block))
        largest = max(largest, abs(lowest), abs(highest))
        if not lowest > -math.inf or not highest < math.inf:
            return math.inf
    return largest


def _differ_at_a_glance(points: AnyMatrix, largest: float) -> bool:
    """Return True if the first and last row, or a zero, show that points differ enough."""
    if sparse.issparse(points):
        return points.nnz < points.shape[0] * points.shape[1] and largest >= _LEAST_SPREAD
    # Halved before subtracting: the difference of the largest numbers overflows.
    first, last = widened(points[0]) / 2, widened(points[-1]) / 2
    return float(np.abs(last - first).max()) >= _LEAST_SPREAD / 2


def widest(lowest: FloatArray, highest: FloatArray) -> float:
    """Return the largest difference between these bounds."""
    return 2 * float((highest / 2 - lowest / 2).max(initial=0.0))


def bounds(points: AnyMatrix) -> tuple[FloatArray, FloatArray]:
    """Return the least and largest entry of each column; of sparse points, of all columns."""
    if sparse.issparse(points):
        entries: Matrix = points.data.reshape(-1, 1)
        has_zeros = points.nnz < points.shape[0] * points.shape[1]
    else:
        entries, has_zeros = points, False
    lowest = np.zeros(entries.shape[1]) if has_zeros else np.full(entries.shape[1], np.inf)
    highest = -lowest
    for block in _blocks(entries):
        lowest = np.fmin(lowest, np.fmin.reduce(block, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(block, axis=0))
    return lowest, highest


def _blocks(entries: Matrix) -> Iterator[Matrix]:
    """Yield some rows at a time, so that no temporary array is as large as the points."""
    n_rows = max(1, _BLOCK_ELEMENTS // entries.shape[1])
    for start in range(0, len(entries), n_rows):
        yield widened(entries[start : start + n_rows])


# Narrow points.


def computed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the distances of admitted points: float32 for narrow ones."""
    return np.dtype(np.float32) if str(dtype) in NARROW_DTYPES else dtype


def dtype_of_centers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the centers of such points: float64 for integers, as in scikit-learn."""
    return np.dtype(np.float64) if dtype.kind in "iu" else computed_dtype(dtype)


def widened(points: AnyMatrix) -> Any:
    """Return the points in the dtype that they are computed with, copied if they are narrow."""
    return points.astype(np.float32) if str(points.dtype) in NARROW_DTYPES else points


def as_floats(points: AnyMatrix) -> Any:
    """Return the points in the dtype of their centers, copied if narrow; a tensor as it is."""
    if is_tensor(points):
        return points
    return points.astype(dtype_of_centers(points.dtype), copy=False)


# Columns in units so different that one of them decides nearly every distance.


def warn_of_unlike_scales(
    widest: int, narrowest: int, ratio: float, names: Sequence[object] | None
) -> None:
    """Warn that one column varies so much more than others that these hardly count in distances."""
    columns = (widest, narrowest)
    labels = [f"column {one}" if names is None else repr(names[one]) for one in columns]
    times = f"{ratio:,.0f}" if ratio < 1e9 else f"{ratio:.0e}"
    warn_caller(
        f"X has columns of very different scales: {labels[0]} varies {times} times as much "
        f"as {labels[1]}, which hardly counts in the distances. If their units differ, scale the "
        "columns first, for example with sklearn.preprocessing.StandardScaler; if the scales are "
        "meant, warnings.simplefilter('ignore', powermeans.errors.UnlikeScalesWarning) silences it",
        UnlikeScalesWarning,
    )


def unlike_scales(points: AnyMatrix) -> tuple[int, int, float] | None:
    """Return the columns that vary most and least, and the ratio if that is too much, else None.

    Deviations, ranges and, where they are not zero, distances between quartiles must all differ a
    hundred times: outliers and rare marks are no other unit. Sparse columns have one unit.
    """
    if sparse.issparse(points):
        return None
    n_rows = min(2_000, max(2**18 // points.shape[1], 2))  # at even steps, which show enough
    sample = np.asarray(points[:: -(-len(points) // n_rows)], dtype=np.float64)
    if _have_like_ranges(sample):
        return None
    deviations, ranges = _spreads(sample)
    varying = np.flatnonzero(deviations > 0)
    if len(varying) < 2:
        return None
    widest = varying[np.argmax(deviations[varying])]
    with np.errstate(over="ignore"):
        times = deviations[widest] / deviations[varying]
        ratios = np.minimum(times, ranges[widest] / ranges[varying])
    # Of hundreds of columns, such as the pixels of an image, a few may hardly vary in one unit.
    if np.mean(ratios > _UNLIKE_RATIO) < 0.05:
        return None
    # The one that leaves out missing entries takes its time for each column.
    percentile = np.nanpercentile if np.isnan(sample).any() else np.percentile
    first, third = percentile(sample[:, varying], [25, 75], axis=0)
    of_widest = (third - first)[np.argmax(deviations[varying])]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        of_middle = of_widest / (third - first)
    ratios = np.where(of_middle > 0, np.minimum(ratios, of_middle), ratios)
    if np.mean(ratios > _UNLIKE_RATIO) < 0.05:
        return None
    narrowest = int(np.argmax(ratios))
    return int(widest), int(varying[narrowest]), float(times[narrowest])


def _have_like_ranges(points: FloatArray) -> bool:
    """Return whether no range is too far from another, which most data shows in little time.

    One of missing entries, of numbers too large or of a constant column is none to compare.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = points.max(axis=0) - points.min(axis=0)
        return bool(ranges.max() <= _UNLIKE_RATIO * ranges.min() < np.inf)


def _spreads(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return deviation and range of the observed entries of each column, 0 for constant ones."""
    is_observed = ~np.isnan(points)
    counts = np.maximum(np.count_nonzero(is_observed, axis=0), 1)
    means = np.add.reduce(points / counts, axis=0, where=is_observed)
    unlike_means = np.where(is_observed, points - means, 0.0)
    largest = np.maximum(np.max(np.abs(unlike_means), axis=0), np.finfo(np.float64).tiny)
    # In units of the largest, squares neither overflow nor vanish.
    shares = unlike_means / largest
    deviations = largest * np.sqrt(np.sum(np.square(shares), axis=0) / counts)
    ranges = np.max(unlike_means, axis=0) - np.min(unlike_means, axis=0)
    # The mean of subnormal numbers rounds too far for its share to tell.
    deviations[(deviations <= 1e-12 * np.abs(means)) | (ranges == 0)] = 0.0
    return deviations, ranges
