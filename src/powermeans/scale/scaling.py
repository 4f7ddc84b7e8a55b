"""Learn the scaling of columns in one pass over the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from powermeans.mathematics.sums import ColumnMoments, added
from powermeans.points.scaling import Scaling
from powermeans.scale.block import Block, SourceError
from powermeans.types import FloatArray, Points

Scale = Literal["standard", "minmax"]


def scaled(block: Block, scaling: Scaling) -> Block:
    """Return the block with scaled points."""
    return replace(block, points=scaling.transform(_dense(block)))


@np.errstate(invalid="ignore")  # of entries that are not finite, which the first sweep refuses
def learned_scaling(blocks: Iterable[Block], n_features: int, scale: Scale) -> Scaling:
    """Return the scaling of all rows; the cuts between blocks affect only its rounding."""
    nothing = Block(np.empty((0, n_features)), None, "nothing")
    return scaling_of(
        added(spread_of(block, scale) for block in itertools.chain([nothing], blocks))
    )


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The least and the largest entry of each column, NaN if it has none; ranges of parts add."""

    lowest: FloatArray
    highest: FloatArray

    def __add__(self, other: ColumnRange) -> ColumnRange:
        return ColumnRange(np.fmin(self.lowest, other.lowest), np.fmax(self.highest, other.highest))


def spread_of(block: Block, scale: Scale) -> Any:
    """Return the moments or ranges of the columns of a block, which add over blocks."""
    points = _dense(block).astype(np.float64, copy=False)
    if scale == "minmax":
        return _range(points)
    return _moments(points, np.ones(len(points)) if block.weights is None else block.weights)


def scaling_of(spread: ColumnMoments | ColumnRange) -> Scaling:
    """Return the scaling from the moments or ranges of all rows."""
    if isinstance(spread, ColumnRange):
        sizes = np.maximum(np.abs(spread.lowest), np.abs(spread.highest))
        return _of(spread.lowest, spread.highest - spread.lowest, sizes)
    variance = spread.squares / np.where(spread.counts > 0, spread.counts, 1.0)
    return _of(spread.means, np.sqrt(variance), np.abs(spread.means))


def _moments(points: FloatArray, weights: FloatArray) -> ColumnMoments:
    # Count from the least entry, so that a constant column has no rounding.
    is_there = ~np.isnan(points)
    shares = np.where(is_there, weights[:, None], 0.0)
    counts = shares.sum(axis=0)
    origin = np.nan_to_num(_range(points).lowest)
    above = np.where(is_there, points - origin, 0.0)
    means = np.sum(shares * above, axis=0) / np.where(counts > 0, counts, 1.0)
    apart = np.where(is_there, above - means, 0.0)
    return ColumnMoments(counts, origin + means, np.sum(shares * apart**2, axis=0))


def _range(points: FloatArray) -> ColumnRange:
    return ColumnRange(
        np.fmin.reduce(points, axis=0, initial=np.nan),
        np.fmax.reduce(points, axis=0, initial=np.nan),
    )


def _of(offsets: FloatArray, units: FloatArray, sizes: FloatArray) -> Scaling:
    # A column whose spread is within the rounding of its entries counts as constant.
    is_plain = np.isfinite(units) & (units > 10 * np.finfo(np.float64).eps * sizes)
    return Scaling(np.where(np.isfinite(offsets), offsets, 0.0), np.where(is_plain, units, 1.0))


def _dense(block: Block) -> Points:
    if sparse.issparse(block.points):
        raise SourceError(
            f"{block.where} is sparse, and scaling would fill it: leave scale out, or scale it "
            "with sklearn.preprocessing.MaxAbsScaler"
        )
    return block.points
