"""Random orders of points that do not depend on the order of their rows."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.points.checks.points import divide_by_power_of_two
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Matrix, SparseMatrix

_Keys = NDArray[np.uint64]


def order_by_chance(
    points: AnyMatrix, weights: FloatArray | None, rng: np.random.RandomState
) -> IndexArray:
    """Return a random order that depends on the points, and not on their rows.

    Equal points follow one another. So an online pass does the same if rows are shuffled, if a
    point of weight three becomes three copies, if points without weight are left out, or if all
    points are multiplied by a power of two.
    """
    order: IndexArray = np.argsort(_mixed(row_keys(_in_own_unit(points, weights), rng)))
    return order


def _in_own_unit(points: AnyMatrix, weights: FloatArray | None) -> AnyMatrix:
    """Return the points divided by the power of two above the largest entry that has a weight."""
    of_weight = points if weights is None or weights.all() else points[weights > 0]
    entries = of_weight.data if sparse.issparse(of_weight) else of_weight
    largest = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))
    return divide_by_power_of_two(points, math.frexp(largest)[1])


def row_keys(points: AnyMatrix, rng: np.random.RandomState) -> _Keys:
    """Return a random number for each row, equal for equal rows, dense or canonical CSR."""
    factors = np.asarray(rng.randint(0, 2**64, size=points.shape[1], dtype=np.uint64))
    factors |= np.uint64(1)  # an even factor would lose bits
    return _keys_of_sparse(points, factors) if sparse.issparse(points) else _keys(points, factors)


def _keys(points: Matrix, factors: _Keys) -> _Keys:
    keys = np.empty(len(points), dtype=np.uint64)
    n_rows = max(1, 2**17 // points.shape[1])
    for start in range(0, len(points), n_rows):
        rows = slice(start, start + n_rows)
        keys[rows] = _bits(points[rows]) @ factors
    return keys


def _keys_of_sparse(points: SparseMatrix, factors: _Keys) -> _Keys:
    """Return the same keys: entries that are not stored are zeros, whose bits are zero."""
    totals = np.zeros(points.nnz + 1, dtype=np.uint64)
    np.cumsum(_bits(points.data) * factors[points.indices], out=totals[1:])
    return totals[points.indptr[1:]] - totals[points.indptr[:-1]]


def _bits(values: Matrix) -> _Keys:
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    # Minus zero equals zero but has other bits; adding zero makes it zero.
    return _mixed((values + values.dtype.type(0)).view(unsigned).astype(np.uint64, copy=False))


def _mixed(numbers: _Keys) -> _Keys:
    """Permute numbers so that zero stays and the others keep no order."""
    # The golden ratio in units of 2^64: odd, so that products lose nothing, with bits in no order.
    golden = np.uint64(0x9E3779B97F4A7C15)
    mixed = numbers * golden
    mixed ^= mixed >> np.uint64(32)
    mixed *= golden
    mixed ^= mixed >> np.uint64(29)
    return mixed
