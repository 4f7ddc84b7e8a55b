"""The border: what comes from the user is checked here, once, and trusted everywhere else.

Behind it points are float32 or float64 in native byte order, finite, dense in C order or CSR with
sorted indices and no entry twice; weights are float64, not negative, not all zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman, first_fault
from powermeans.divergences.cosine import largest_of_rows
from powermeans.errors import EntryError, FewRowsError
from powermeans.rules import Power
from powermeans.system.host_memory import brought_to_host, refuse_tensor_elsewhere
from powermeans.types import FloatArray, Points, SparsePoints

_BLOCK_ELEMENTS = 2**17

# Squared differences below the square of this are no longer normal numbers.
_LEAST_SPREAD = math.sqrt(np.finfo(np.float64).tiny)
_LOG_OF_LARGEST = math.log(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Admitted:
    """Points and weights that the rest of the package can trust.

    Attributes
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    largest : float
        The largest magnitude among the entries.
    """

    points: Points | SparsePoints
    weights: FloatArray | None
    largest: float


def wanted_form(X: object) -> dict[str, Any]:
    """How scikit-learn's validation should leave points; finiteness is looked at by `admit`."""
    refuse_tensor_elsewhere(X)
    return {
        "accept_sparse": "csr",
        "dtype": wanted_dtype(X),
        "order": "C",
        "ensure_all_finite": False,
    }


def admit(
    points: Points | SparsePoints,
    sample_weight: ArrayLike | None = None,
    *,
    n_clusters: int = 1,
    name: str = "X",
    feature_names: Iterable[object] | None = None,
    must_differ: bool = False,
    has_missing: bool = False,
) -> Admitted:
    """Let points across the border, or say what is wrong with them or their weights.

    Parameters
    ----------
    points : (n_points, n_features)
        In the wanted form.
    sample_weight : (n_points,), optional
        As from the user.
    n_clusters : int
        How many points there must be at least.
    name, feature_names, must_differ, has_missing
        As in `check_points`.
    """
    if sparse.issparse(points):
        points = canonical_csr(points)
    weights = check_sample_weight(sample_weight, points.shape[0])
    check_n_clusters(n_clusters, points.shape[0])
    largest = check_points(
        points,
        name=name,
        feature_names=feature_names,
        total_weight=None if weights is None else float(weights.sum()),
        must_differ=must_differ,
        has_missing=has_missing,
    )
    return Admitted(points, weights, largest)


def wanted_dtype(X: object) -> type | list[type]:
    """The dtype for points: float32 stays; float16, which it holds exactly, becomes float32.

    All else becomes float64. Byte order becomes that of this machine.
    """
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize <= 4:
        return np.float32
    return [np.float64, np.float32]


def canonical_csr(points: SparsePoints) -> SparsePoints:
    """The same matrix with sorted indices, no entry twice, and 32-bit indices where they suffice.

    The user's matrix is never changed: where there is something to do, it is done to a copy. SciPy
    trusts the index arrays and reads beyond the others where they are wrong, so they are looked at
    before it is asked anything.
    """
    fault = _fault_of_csr(points)
    if fault is not None:
        raise ValueError(
            f"X is not a valid CSR matrix: {fault}. Build it anew from rows, columns and values, "
            "for example with scipy.sparse.coo_array"
        )
    n_entries = int(points.indptr[-1])
    arrays = points.data[:n_entries], points.indices[:n_entries], points.indptr
    # A matrix remembers whether it is canonical, also when its arrays have changed since.
    unbiased = type(points)(arrays, shape=points.shape)
    if not unbiased.has_canonical_format:
        points = unbiased.copy()
        points.sum_duplicates()
    elif n_entries < max(points.data.size, points.indices.size):
        points = unbiased
    index_dtype = sparse.get_index_dtype(maxval=max(points.nnz, points.shape[1]))
    if points.indices.dtype == index_dtype and points.indptr.dtype == index_dtype:
        return points
    indices = points.indices.astype(index_dtype), points.indptr.astype(index_dtype)
    return type(points)((points.data, *indices), shape=points.shape)


def _fault_of_csr(points: SparsePoints) -> str | None:
    """What makes the three arrays of the matrix no CSR matrix, if anything does."""
    (n_points, n_features), indptr, indices = points.shape, points.indptr, points.indices
    n_stored = min(points.data.size, indices.size)
    if indptr.shape != (n_points + 1,):
        return f"indptr has the shape {indptr.shape}, not ({n_points + 1},)"
    if indptr[0] != 0:
        return f"indptr begins with {indptr[0]}, not 0"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        row = int(np.argmax(falls))
        return f"indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}"
    if indptr[-1] > n_stored:
        return f"indptr ends with {indptr[-1]}, but only {n_stored} entries are stored"
    in_rows = indices[: indptr[-1]]
    lowest, highest = in_rows.min(initial=0), in_rows.max(initial=0)
    if lowest < 0 or highest >= max(n_features, 1):
        column = lowest if lowest < 0 else highest
        return f"the column index {column} lies outside its {n_features} columns"
    return None


def check_points(
    points: Points | SparsePoints,
    *,
    name: str = "X",
    feature_names: Iterable[object] | None = None,
    total_weight: float | None = None,
    must_differ: bool = False,
    has_missing: bool = False,
    first_row: int = 0,
) -> float:
    """Raise where an entry is not finite, or squared distances leave the range of float64.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    name : str
        What the error calls it.
    feature_names : iterable, optional
        Names of the columns, for the error.
    total_weight : float, optional
        Sum of the sample weights, if not one each.
    must_differ : bool
        Whether differences too small to be squared are an error too, and columns of NaN alone.
    has_missing : bool
        Whether NaN stands for an entry that is missing; a row of them alone is an error.
    first_row : int
        What the error calls the first of these points.

    Returns
    -------
    float
        The largest magnitude among the entries.
    """
    if has_missing:
        _refuse_nothing_observed(points, name, of_columns=must_differ, first_row=first_row)
    largest = _largest(points, has_missing)
    if not math.isfinite(largest):
        if has_missing and isinstance(points, np.ndarray):
            points = np.where(np.isnan(points), points.dtype.type(0), points)  # no fault
        raise ValueError(_not_finite(points, name, feature_names, first_row))
    n_points, n_features = points.shape
    _refuse_huge(largest, max(float(n_points), total_weight or 0.0), n_features, name)
    if must_differ and not _differ_at_a_glance(points, largest):
        refuse_tiny_spread(_spread(points), name)
    return largest


def _refuse_huge(largest: float, total: float, n_features: int, name: str) -> None:
    # The difference of two points is at most twice the largest; hypot would round, logs do not.
    room = _LOG_OF_LARGEST - math.log(total) - math.log(n_features)
    if largest > 0 and 2 * math.log(2 * largest) > room:
        raise ValueError(
            f"Input {name} has values as large as {largest:.3g}: the sum of squared "
            f"distances would overflow float64. Scale {name}, for example divide it by "
            f"{largest:.0e}"
        )


def refuse_tiny_spread(spread: float, name: str) -> None:
    """Raise where points differ, by so little that their squared distances are zero.

    Parameters
    ----------
    spread : float
        The largest difference within a column.
    name : str
        What the error calls the points.
    """
    if 0 < spread < _LEAST_SPREAD:
        raise ValueError(
            f"Input {name} varies by no more than {spread:.3g}: squared distances would "
            f"vanish in float64. Scale {name}, for example divide it by {spread:.0e}"
        )


def exponent_to_square(largest: float, dtype: np.dtype[Any]) -> int:
    """The power of two to divide entries by before squared distances are stored in this dtype.

    It is zero unless the squares would leave the range of float32.
    """
    if dtype != np.float32 or largest == 0 or 1e-15 < largest < 1e15:
        return 0
    return math.frexp(largest)[1]


def divide_by_power_of_two(points: Points | SparsePoints, exponent: int) -> Points | SparsePoints:
    """The points over 2 to the exponent; a copy, unless that is zero."""
    if exponent == 0:
        return points
    if not sparse.issparse(points):
        return np.ldexp(points, -exponent)
    divided = points.copy()
    divided.data = np.ldexp(divided.data, -exponent)
    return divided


def check_sample_weight(sample_weight: ArrayLike | None, n_points: int) -> FloatArray | None:
    """The weights as float64, or None where there are none; a number stands for all of them."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_points, sample_weight)
    weights = _real_numbers(sample_weight, "sample_weight")
    if weights.shape != (n_points,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}: "
            f"pass one weight for each of the {n_points} rows of X, shape ({n_points},)"
        )
    _refuse_weights(~np.isfinite(weights), weights, "pass finite weights")
    _refuse_weights(weights < 0, weights, "pass weights of at least zero; zero leaves a row out")
    with np.errstate(over="ignore"):
        _refuse_total(float(weights.sum()), float(weights.max()))
    return weights


def _refuse_total(total_weight: float, largest_weight: float) -> None:
    if largest_weight == 0:
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    if not math.isfinite(total_weight):
        raise ValueError(
            f"sample_weight adds up to more than float64 holds: "
            f"divide it by its largest, {largest_weight:.3g}"
        )


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What is known of a part of the points that has been checked. Those of parts add.

    Attributes
    ----------
    largest : float
        The largest magnitude among the entries.
    lowest, highest : (n_features,)
        The least and the largest entry of each column; of sparse points (1,), of all columns.
    """

    n_points: int
    largest: float
    lowest: FloatArray
    highest: FloatArray
    total_weight: float
    largest_weight: float

    def __add__(self, other: PartFacts) -> PartFacts:
        return PartFacts(
            self.n_points + other.n_points,
            max(self.largest, other.largest),
            np.fmin(self.lowest, other.lowest),
            np.fmax(self.highest, other.highest),
            self.total_weight + other.total_weight,
            max(self.largest_weight, other.largest_weight),
        )


def check_part(
    points: Points | SparsePoints,
    weights: FloatArray | None = None,
    *,
    name: str,
    first_row: int = 0,
    feature_names: Iterable[object] | None = None,
    has_missing: bool = False,
    divergence: Divergence = "squared_euclidean",
) -> PartFacts:
    """Let a part of the points across the border, or say what is wrong with it, and where.

    Parameters
    ----------
    points : (n_points, n_features)
        In the wanted form; there may be none.
    weights : (n_points,), optional
        Float64.
    name : str
        What errors call the part.
    first_row : int
        What they call its first row.
    feature_names, has_missing
        As in `check_points`.
    divergence : Bregman or str
        As in `check_domain`.

    Returns
    -------
    PartFacts
        For `check_parts`, once those of all parts are added.
    """
    n_points, n_features = points.shape
    if not n_points:
        nothing = np.full(1 if sparse.issparse(points) else n_features, math.nan)
        return PartFacts(0, 0.0, nothing, nothing, 0.0, 0.0)
    naming: dict[str, Any] = {"name": name, "first_row": first_row}
    largest = check_points(points, feature_names=feature_names, has_missing=has_missing, **naming)
    check_domain(points, divergence, **naming)
    total_weight, largest_weight = float(n_points), 1.0
    if weights is not None:
        naming["name"] = f"the weight of the rows in {name}"
        _refuse_weights(~np.isfinite(weights), weights, "pass finite weights", **naming)
        way_out = "pass weights of at least zero; zero leaves a row out"
        _refuse_weights(weights < 0, weights, way_out, **naming)
        with np.errstate(over="ignore"):
            total_weight, largest_weight = float(weights.sum()), float(weights.max())
    return PartFacts(n_points, largest, *_bounds(points), total_weight, largest_weight)


def check_parts(facts: PartFacts, *, n_features: int, n_clusters: int = 1, name: str) -> None:
    """Raise where all parts together are no points that can be clustered.

    Parameters
    ----------
    facts : PartFacts
        Those of all parts, added.
    n_clusters : int
        How many points there must be at least.
    name : str
        What errors call the points.
    """
    check_n_clusters(n_clusters, facts.n_points)
    _refuse_total(facts.total_weight, facts.largest_weight)
    total = max(float(facts.n_points), facts.total_weight)
    _refuse_huge(facts.largest, total, n_features, name)
    if np.isnan(facts.lowest).any():
        column = int(np.argmax(np.isnan(facts.lowest)))
        raise ValueError(f"{name} has nothing but NaN in column {column}: leave it out")
    refuse_tiny_spread(_widest(facts.lowest, facts.highest), name)


def check_n_clusters(n_clusters: int, n_points: int) -> None:
    """Raise where there are fewer rows than clusters."""
    if n_points < n_clusters:
        raise FewRowsError(n_points, n_clusters)


def check_init(init: ArrayLike | SparsePoints, n_clusters: int, n_features: int) -> FloatArray:
    """Initial centers as a new float64 array of shape (n_clusters, n_features)."""
    given = init.toarray() if sparse.issparse(init) else init
    centers = np.array(_real_numbers(given, "init"), order="C")
    if centers.ndim != 2:
        raise ValueError(
            f"init has the shape {centers.shape}: "
            f'pass {n_clusters} rows of {n_features} numbers or init="k-means++"'
        )
    if len(centers) != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of "
            f"clusters {n_clusters}. init has {len(centers)} rows but n_clusters={n_clusters}: "
            f'pass {n_clusters} rows or init="k-means++"'
        )
    if centers.shape[1] != n_features:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of "
            f"features of the data {n_features}. init has {centers.shape[1]} columns but X has "
            f'{n_features}: pass {n_features} columns or init="k-means++"'
        )
    check_points(centers, name="init")
    return centers


def check_centers(centers: ArrayLike, n_features: int) -> FloatArray:
    """The centers of a fitted estimator as float64; the user may have assigned others."""
    checked = _real_numbers(centers, "cluster_centers_")
    if checked.ndim != 2 or checked.shape[1] != n_features or len(checked) == 0:
        raise ValueError(
            f"cluster_centers_ has the shape {checked.shape}: assign one row of {n_features} "
            "numbers for each center, as X has features"
        )
    check_points(checked, name="cluster_centers_")
    return checked


def check_schedule(schedule: Iterable[float], n_powers: int = 1000) -> None:
    """Raise unless the schedule gives powers, and gives them again when it is iterated again.

    Parameters
    ----------
    schedule : iterable of float
        It may be endless.
    n_powers : int, default=1000
        How many powers to look at.
    """
    powers: Iterator[object] = iter(schedule)
    if powers is schedule:
        raise ValueError(
            f"schedule={schedule!r} can be iterated only once: pass a list of powers, "
            "Geometric(start, growth) or Fixed(power)"
        )
    n_seen = 0
    for power in itertools.islice(powers, n_powers):
        if (
            not isinstance(power, (int, float, np.integer, np.floating))
            or not power <= Power.highest
        ):
            raise ValueError(
                f"schedule={schedule!r} has {power!r} at index {n_seen}: pass powers of at most "
                f"{Power.highest}, for example Geometric(-3.0, 1.05)"
            )
        n_seen += 1
    if n_seen == 0:
        raise ValueError(
            f"schedule={schedule!r} is empty: pass powers, for example Geometric(-3.0, 1.05)"
        )


def _refuse_nothing_observed(
    points: Points | SparsePoints, name: str, *, of_columns: bool, first_row: int = 0
) -> None:
    if sparse.issparse(points):
        raise ValueError(
            f"{name} is sparse: entries that are not stored are zeros, and missing ones are NaN in "
            f"a dense array, so pass {name}.toarray()"
        )
    is_missing = np.isnan(points)
    for axis, kind in ((0, "column"), (1, "row"))[0 if of_columns else 1 :]:
        is_empty = is_missing.all(axis=axis)
        if is_empty.any():
            place = int(np.argmax(is_empty)) + (first_row if kind == "row" else 0)
            raise ValueError(f"{name} has nothing but NaN in {kind} {place}: leave it out")


def check_domain(
    points: Points | SparsePoints, divergence: Divergence, *, name: str, first_row: int = 0
) -> None:
    """Raise where an entry or a row is none that the divergence is defined for.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    name : str
        What the error calls the points.
    first_row : int
        What it calls the first of them.
    """
    if divergence == "cosine":
        is_zero = largest_of_rows(points) == 0
        if is_zero.any():
            raise ValueError(
                f"{name} has nothing but zeros in row {first_row + int(np.argmax(is_zero))}, "
                "which have no "
                'direction for divergence="cosine": leave the row out'
            )
    elif isinstance(divergence, Bregman):
        divergence.check_width(points.shape[1])
        if (fault := first_fault(divergence, points)) is None:
            return
        row, column = fault
        way_out = f"{type(divergence).__name__} is for {divergence.wanted}"
        raise EntryError(name, first_row + row, column, points[row, column], way_out)


def _largest(points: Points | SparsePoints, has_missing: bool) -> float:
    """The largest magnitude among the entries; NaN or infinity where one of them is."""
    entries = points.data if sparse.issparse(points) else points.reshape(-1)
    largest = 0.0
    for start in range(0, len(entries), _BLOCK_ELEMENTS):
        block = entries[start : start + _BLOCK_ELEMENTS]
        if has_missing:
            block = np.where(np.isnan(block), 0, block)
        # The minimum of a block is NaN as soon as one entry is.
        lowest, highest = float(np.minimum.reduce(block)), float(np.maximum.reduce(block))
        largest = max(largest, abs(lowest), abs(highest))
        if not lowest > -math.inf or not highest < math.inf:
            return math.inf
    return largest


def _differ_at_a_glance(points: Points | SparsePoints, largest: float) -> bool:
    """Whether the points vary by enough, as two rows, or a zero and the largest, mostly show."""
    if sparse.issparse(points):
        return points.nnz < points.shape[0] * points.shape[1] and largest >= _LEAST_SPREAD
    # Halved before subtracting: the difference of the largest numbers overflows.
    first, last = points[0] / 2, points[-1] / 2
    return bool(2 * np.abs(last - first).max() >= _LEAST_SPREAD)


def _spread(points: Points | SparsePoints) -> float:
    """By how much the feature that varies most does so."""
    lowest, highest = _bounds(points)
    return _widest(lowest, highest)


def _widest(lowest: FloatArray, highest: FloatArray) -> float:
    # Halved before subtracting: the difference of the largest numbers overflows.
    return 2 * float((highest / 2 - lowest / 2).max(initial=0.0))


def _bounds(points: Points | SparsePoints) -> tuple[FloatArray, FloatArray]:
    """The least and the largest entry of each column; of sparse points those of all columns."""
    if sparse.issparse(points):
        entries: Points = points.data.reshape(-1, 1)
        has_zeros = points.nnz < points.shape[0] * points.shape[1]
    else:
        entries, has_zeros = points, False
    zero = np.zeros(entries.shape[1]) if has_zeros else None
    lowest = np.full(entries.shape[1], np.inf) if zero is None else zero
    highest = -lowest
    for block in _blocks(entries):
        lowest = np.fmin(lowest, np.fmin.reduce(block, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(block, axis=0))
    return lowest, highest


def _blocks(entries: Points) -> Iterator[Points]:
    """Some rows at a time, so that no temporary array is as large as the points."""
    n_rows = max(1, _BLOCK_ELEMENTS // entries.shape[1])
    for start in range(0, len(entries), n_rows):
        yield entries[start : start + n_rows]


def _not_finite(
    points: Points | SparsePoints,
    name: str,
    feature_names: Iterable[object] | None,
    first_row: int,
) -> str:
    row, column, value = _first_not_finite(points)
    kind = "NaN" if math.isnan(value) else "infinity"
    label = "" if feature_names is None else f" ({list(feature_names)[column]!r})"
    return (
        f"Input {name} contains {kind}: the first entry that is not finite is in "
        f"row {first_row + row}, column {column}{label}. Leave such rows out, or fill the entries "
        "in"
    )


def _first_not_finite(points: Points | SparsePoints) -> tuple[int, int, float]:
    if sparse.issparse(points):
        entry = int(np.argmin(np.isfinite(points.data)))
        row = int(np.searchsorted(points.indptr, entry, side="right")) - 1
        return row, int(points.indices[entry]), float(points.data[entry])
    first_row = 0
    for block in _blocks(points):
        finite = np.isfinite(block)
        if not finite.all():
            row, column = divmod(int(np.argmin(finite)), block.shape[1])
            return first_row + row, column, float(block[row, column])
        first_row += len(block)
    raise AssertionError("every entry is finite")


def _real_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """As float64 in C order, without a copy where that is what it is."""
    given: NDArray[Any] = np.asarray(brought_to_host(values, name))
    if given.dtype.kind not in "biufO":
        raise ValueError(f"{name} has the dtype {given.dtype}: pass real numbers")
    try:
        return np.ascontiguousarray(given, dtype=np.float64) if given.ndim else given.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds {error}: pass real numbers") from error


def _refuse_weights(
    is_bad: NDArray[np.bool_],
    weights: FloatArray,
    way_out: str,
    *,
    name: str = "sample_weight",
    first_row: int = 0,
) -> None:
    if is_bad.any():
        first = int(np.argmax(is_bad))
        value = weights[first]
        what = "NaN" if math.isnan(value) else str(value)
        raise ValueError(f"{name} contains {what} at index {first_row + first}: {way_out}")
