"""Points of the user: checked here, and trusted everywhere else.

Admitted points are finite, float32, float64 or, where asked for, narrow (see `narrow`), in native
byte order, and dense in C order and aligned, or CSR with sorted indices and no entry twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman, first_fault
from powermeans.divergences.cosine import largest_of_rows
from powermeans.errors import ArgumentError, EntryError, FewRowsError
from powermeans.points.checks.csr import canonical_csr
from powermeans.points.checks.narrow import computed_dtype, is_narrow, widened
from powermeans.points.checks.numbers import refuse_long_integer
from powermeans.points.checks.weights import check_sample_weight
from powermeans.system.host_memory import refuse_tensor_elsewhere
from powermeans.types import FloatArray, Points, SparsePoints

_BLOCK_ELEMENTS = 2**17

# Squared differences below the square of this are no longer normal numbers.
_LEAST_SPREAD = math.sqrt(np.finfo(np.float64).tiny)
_LOG_OF_LARGEST = math.log(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Admitted:
    """Points and weights that the rest of the package can trust."""

    points: Points | SparsePoints
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
        points: Any
        if any(sparse.issparse(array) for array in arrays):
            points = sparse.vstack([sparse.csr_array(array) for array in arrays], format="csr")
        else:
            points = np.concatenate(arrays)
        weights = [part.weights for part in parts]
        if all(weight is None for weight in weights):
            return Admitted(points, None, max(part.largest for part in parts))
        ones = (np.ones(array.shape[0]) for array in arrays)
        together = [one if w is None else w for one, w in zip(ones, weights, strict=True)]
        return Admitted(points, np.concatenate(together), max(part.largest for part in parts))


def wanted_form(X: object, *, keeps_narrow: bool = False) -> dict[str, Any]:
    """Return the options for scikit-learn's checks; `admit` checks that entries are finite."""
    refuse_tensor_elsewhere(X)
    return {
        "accept_sparse": "csr",
        "dtype": wanted_dtype(X, keeps_narrow=keeps_narrow),
        "order": "C",
        "ensure_all_finite": False,
    }


def wanted_dtype(X: object, *, keeps_narrow: bool = False) -> Any:
    """Return the dtype for points: float32 for float32 and narrower floats, float64 for all else.

    The byte order is native. With `keeps_narrow`, dense arrays of narrow types stay as they are.
    """
    dtype = getattr(X, "dtype", None)
    if keeps_narrow and is_narrow(dtype) and not sparse.issparse(X):
        return [dtype]
    if isinstance(dtype, np.dtype) and (dtype.kind == "f" or dtype.name == "bfloat16"):
        return np.float32 if dtype.itemsize <= 4 else [np.float64, np.float32]
    return [np.float64, np.float32]


def admit(
    points: Points | SparsePoints,
    sample_weight: ArrayLike | None = None,
    *,
    n_clusters: int = 1,
    name: str = "X",
    feature_names: Iterable[object] | None = None,
    must_differ: bool = False,
    has_missing: bool = False,
    offers_missing: bool = False,
    why_whole: str | None = None,
) -> Admitted:
    """Return checked points and weights, CSR points in canonical form; raise on faults."""
    if sparse.issparse(points):
        points = canonical_csr(points)
    else:  # NumPy sums entries that are not aligned in another order
        points = np.require(points, requirements="A")
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, points.shape[0])
    check_n_clusters(n_clusters, points.shape[0])
    largest = check_points(
        points,
        name=name,
        feature_names=feature_names,
        total_weight=None if weights is None else float(weights.sum()),
        must_differ=must_differ,
        has_missing=has_missing,
        offers_missing=offers_missing,
        why_whole=why_whole,
    )
    return Admitted(points, weights, largest)


def check_points(
    points: Points | SparsePoints,
    *,
    name: str = "X",
    feature_names: Iterable[object] | None = None,
    total_weight: float | None = None,
    must_differ: bool = False,
    has_missing: bool = False,
    offers_missing: bool = False,
    why_whole: str | None = None,
    first_row: int = 0,
) -> float:
    """Return the largest magnitude; raise on entries or squared distances out of range.

    Errors call the first point `first_row`, and name `missing="observed"` if the caller offers it,
    or say why it needs whole points.
    Without a total weight each point counts one. With `must_differ`, raise if squared distances
    would vanish, or if a column has no observed entry.
    """
    if has_missing:
        _refuse_nothing_observed(points, name, of_columns=must_differ, first_row=first_row)
    largest = _largest(points, has_missing)
    if not math.isfinite(largest):
        if has_missing and isinstance(points, np.ndarray):
            points = np.where(np.isnan(points), points.dtype.type(0), points)  # NaN is allowed
        offers_missing = offers_missing and isinstance(points, np.ndarray)
        where, value = _first_not_finite_in_words(points, feature_names, first_row)
        way_out = way_out_of(value, offers_missing=offers_missing, why_whole=why_whole)
        raise ValueError(f"Input {name} contains {where}. {way_out}")
    n_points, n_features = points.shape
    refuse_huge(largest, max(float(n_points), total_weight or 0.0), n_features, name)
    lightest = min(1.0, total_weight or 1.0)
    if must_differ and (lightest < 1 or not _differ_at_a_glance(points, largest)):
        refuse_tiny_spread(widest(*bounds(points)), name, lightest)
        refuse_tiny_products(largest, lightest, name)
    return largest


@contextmanager
def explained(X: Any, name: str) -> Iterator[None]:
    """Say where the entry is that a conversion to numbers within the block takes for none."""
    try:
        yield
    except ValueError as error:
        _refuse_text(X, name, error)
        raise
    except OverflowError as error:
        refuse_long_integer(X, name, error)
        raise


def _refuse_text(X: Any, name: str, error: ValueError) -> None:
    """Raise if text in the points caused this error of a conversion, and say where it is."""
    if "could not convert" not in str(error):
        return
    columns = getattr(X, "columns", None)
    if columns is None:
        place, value = _first_text(np.atleast_2d(np.asarray(X, dtype=object)))
    else:
        texts = [(label, found) for label in columns if (found := _text_in(X[label]))]
        if not texts:
            return
        place, value = f"column {texts[0][0]!r}", texts[0][1][0]
    raise ArgumentError(
        f"{name} has the text {value!r} in {place}",
        "leave the column out, or encode it as numbers, for example with "
        "sklearn.preprocessing.OneHotEncoder",
    ) from error


def _text_in(column: Any) -> list[Any]:
    """Return the first entry of a column that is no number, in a list, or an empty one."""
    entries = np.asarray(column)
    return [] if entries.dtype.kind in "biuf" else list(filter(_is_text, entries))[:1]


def _first_text(entries: Any) -> tuple[str, Any]:
    for row, of_row in enumerate(entries):
        for column, entry in enumerate(of_row):
            if _is_text(entry):
                return f"row {row}, column {column}", entry
    raise AssertionError("some entry could not be converted")


def _is_text(entry: Any) -> bool:
    try:
        float(entry)
    except ValueError:
        return True
    except TypeError:  # None, or a value that NumPy explains better
        return False
    return False


def check_n_clusters(n_clusters: int, n_points: int) -> None:
    """Raise if there are fewer rows than clusters."""
    if n_points < n_clusters:
        raise FewRowsError(n_points, n_clusters)


def check_domain(
    points: Points | SparsePoints, divergence: Divergence, *, name: str, first_row: int = 0
) -> None:
    """Raise on the first entry or row for which the divergence is not defined."""
    if divergence == "cosine":
        is_zero = largest_of_rows(points) == 0
        if is_zero.any():
            raise ValueError(
                f"{name} has nothing but zeros in row {first_row + int(np.argmax(is_zero))}, "
                'which have no direction for divergence="cosine": leave the row out'
            )
    elif isinstance(divergence, Bregman):
        divergence.check_width(points.shape[1])
        if (fault := first_fault(divergence, points)) is None:
            return
        row, column = fault
        way_out = f"{type(divergence).__name__} is for {divergence.wanted}"
        raise EntryError(name, first_row + row, column, points[row, column], way_out)


def refuse_huge(largest: float, total: float, n_features: int, name: str) -> None:
    """Raise if the sum of squared distances would overflow float64."""
    # A difference of two entries is at most twice the largest. Logarithms cannot overflow.
    room = _LOG_OF_LARGEST - math.log(total) - math.log(n_features)
    if largest > 0 and 2 * math.log(2 * largest) > room:
        raise ValueError(
            f"Input {name} has values as large as {largest:.3g}: the sum of squared "
            f"distances would overflow float64. Scale {name}, for example divide it by "
            f"{largest:.0e}"
        )


def refuse_tiny_spread(spread: float, name: str, total_weight: float = 1.0) -> None:
    """Raise if points differ, but too little for squared distances above zero, or weigh too little.

    A total weight of one or more makes no difference.
    """
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
    """Raise if weights make products with points, which centers are quotients of, lose digits.

    A total weight of one or more makes no difference.
    """
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


def divide_by_power_of_two(points: Points | SparsePoints, exponent: int) -> Points | SparsePoints:
    """Return the points over 2**exponent, copied unless the exponent is zero."""
    if exponent == 0:
        return points
    if not sparse.issparse(points):
        divided_points: Points = np.ldexp(widened(points), -exponent)
        return divided_points
    divided = points.copy()
    divided.data = np.ldexp(divided.data, -exponent)
    return divided


def _refuse_nothing_observed(
    points: Points | SparsePoints, name: str, *, of_columns: bool, first_row: int = 0
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


def _largest(points: Points | SparsePoints, has_missing: bool) -> float:
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


def _differ_at_a_glance(points: Points | SparsePoints, largest: float) -> bool:
    """Return True if the first and last row, or a zero, show that points differ enough."""
    if sparse.issparse(points):
        return points.nnz < points.shape[0] * points.shape[1] and largest >= _LEAST_SPREAD
    # Halved before subtracting: the difference of the largest numbers overflows.
    first, last = widened(points[0]) / 2, widened(points[-1]) / 2
    return float(np.abs(last - first).max()) >= _LEAST_SPREAD / 2


def widest(lowest: FloatArray, highest: FloatArray) -> float:
    """Return the largest difference between these bounds."""
    return 2 * float((highest / 2 - lowest / 2).max(initial=0.0))


def bounds(points: Points | SparsePoints) -> tuple[FloatArray, FloatArray]:
    """Return the least and largest entry of each column; of sparse points, of all columns."""
    if sparse.issparse(points):
        entries: Points = points.data.reshape(-1, 1)
        has_zeros = points.nnz < points.shape[0] * points.shape[1]
    else:
        entries, has_zeros = points, False
    lowest = np.zeros(entries.shape[1]) if has_zeros else np.full(entries.shape[1], np.inf)
    highest = -lowest
    for block in _blocks(entries):
        lowest = np.fmin(lowest, np.fmin.reduce(block, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(block, axis=0))
    return lowest, highest


def _first_not_finite_in_words(
    points: Points | SparsePoints, feature_names: Iterable[object] | None, first_row: int
) -> tuple[str, float]:
    row, column, value = _first_not_finite(points)
    kind = "NaN" if math.isnan(value) else "infinity"
    label = "" if feature_names is None else f" ({list(feature_names)[column]!r})"
    first = (
        f"the first entry that is not finite is in row {first_row + row}, column {column}{label}"
    )
    return f"{kind}: {first}", value


def way_out_of(value: float, *, offers_missing: bool = False, why_whole: str | None = None) -> str:
    """Say what to do about an entry that is not finite."""
    if math.isnan(value) and offers_missing:
        return (
            'Pass missing="observed" to use only the observed entries, leave such rows out, or '
            "fill the entries in"
        )
    if math.isnan(value) and why_whole is not None:
        return f"{why_whole}: leave such rows out, or fill the entries in"
    return "Leave such rows out, or fill the entries in"


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


def _blocks(entries: Points) -> Iterator[Points]:
    """Yield some rows at a time, so that no temporary array is as large as the points."""
    n_rows = max(1, _BLOCK_ELEMENTS // entries.shape[1])
    for start in range(0, len(entries), n_rows):
        yield widened(entries[start : start + n_rows])
