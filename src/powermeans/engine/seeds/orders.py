"""Orders and keys of points that do not depend on the order of their rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.engine.spread import spread_of_features
from powermeans.points.protocol import Rows
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints

_BLOCK_ELEMENTS = 2**17
_POINTS_AT_ONCE = 2**19
# The golden ratio in units of 2^64: odd, so that products lose nothing, with bits in no order.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

_Keys = NDArray[np.uint64]


def order_by_place(rows: Rows, rng: np.random.RandomState) -> tuple[IndexArray, FloatArray]:
    """Sort the points by the sum of squared distances from two random places, and return both.

    Equal points have equal sums; others only by chance.
    """
    return order_from(rows, random_places(rows, rng, 2))


def order_from(rows: Rows, places: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Sort the points by the sum of squared distances from two places, and return both."""
    key = key_from(rows, places)
    order = _stable_order(key)
    return order, key[order]


def key_from(rows: Rows, places: FloatArray) -> FloatArray:
    """Return the sum of squared distances of each point from two places."""
    one, other = places
    key = rows.nearness(one[None, :]).sq_dist()
    nearness = rows.nearness(other[None, :])
    for start in range(0, len(key), _POINTS_AT_ONCE):
        end = min(start + _POINTS_AT_ONCE, len(key))
        key[start:end] += nearness.sq_dist(np.arange(start, end))
    return key


def _stable_order(key: FloatArray) -> IndexArray:
    """Return the order of a stable sort, which is slower: the machine must not decide ties."""
    order = np.argsort(key)
    repeats = _places_of_repeats(key, order)
    if 8 * len(repeats) > len(key):
        return np.argsort(key, kind="stable")
    tied = np.union1d(repeats - 1, repeats)
    indices = order[tied]
    order[tied] = indices[np.lexsort((indices, key[indices]))]
    return order


def _places_of_repeats(key: FloatArray, order: IndexArray) -> IndexArray:
    """Return the places in the order whose key is that of the place before."""
    found = [np.empty(0, dtype=np.intp)]
    for start in range(1, len(order), _POINTS_AT_ONCE):
        some = key[order[start - 1 : start + _POINTS_AT_ONCE]]
        found.append(np.flatnonzero(some[1:] == some[:-1]) + start)
    return np.concatenate(found)


def random_places(rows: Rows, rng: np.random.RandomState, n_places: int) -> FloatArray:
    """Draw places about as far from the mean as the points are, (n_places, n_features)."""
    directions = rng.standard_normal((n_places, rows.n_features)) / math.sqrt(rows.n_features)
    return rows.mean() + spread_of_features(rows) * directions


def order_by_chance(points: Points | SparsePoints, rng: np.random.RandomState) -> IndexArray:
    """Return a random order that depends on the points, and not on their rows.

    Equal points follow one another. So an online pass does the same if rows are shuffled, or if
    a point of weight three becomes three copies.
    """
    order: IndexArray = np.argsort(_mixed(row_keys(points, rng)))
    return order


def row_keys(points: Points | SparsePoints, rng: np.random.RandomState) -> _Keys:
    """Return a random number for each row, equal for equal rows, dense or canonical CSR."""
    factors = np.asarray(rng.randint(0, 2**64, size=points.shape[1], dtype=np.uint64))
    factors |= np.uint64(1)  # an even factor would lose bits
    return _keys_of_sparse(points, factors) if sparse.issparse(points) else _keys(points, factors)


def _keys(points: Points, factors: _Keys) -> _Keys:
    keys = np.empty(len(points), dtype=np.uint64)
    n_rows = max(1, _BLOCK_ELEMENTS // points.shape[1])
    for start in range(0, len(points), n_rows):
        rows = slice(start, start + n_rows)
        keys[rows] = _bits(points[rows]) @ factors
    return keys


def _keys_of_sparse(points: SparsePoints, factors: _Keys) -> _Keys:
    """Return the same keys: entries that are not stored are zeros, whose bits are zero."""
    totals = np.zeros(points.nnz + 1, dtype=np.uint64)
    np.cumsum(_bits(points.data) * factors[points.indices], out=totals[1:])
    return totals[points.indptr[1:]] - totals[points.indptr[:-1]]


def _bits(values: Points) -> _Keys:
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    # Minus zero equals zero but has other bits; adding zero makes it zero.
    return _mixed((values + values.dtype.type(0)).view(unsigned).astype(np.uint64, copy=False))


def _mixed(numbers: _Keys) -> _Keys:
    """Permute numbers so that zero stays and the others keep no order."""
    mixed = numbers * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    return mixed
