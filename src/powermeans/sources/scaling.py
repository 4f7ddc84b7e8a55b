"""Scaling of columns, learned in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from powermeans.sources.block import Block, Source, SourceError
from powermeans.types import FloatArray, Points

Scale = Literal["standard", "minmax"]

# A spread of no more than this share of the size of a column is rounding, and the column constant.
_CONSTANT = 10 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Scaling:
    """What is taken off each column, and what it is divided by.

    Attributes
    ----------
    offsets : (n_features,)
    units : (n_features,)
        One for a column that is constant.

    See Also
    --------
    open_data : Scales columns with ``scale="standard"`` or ``"minmax"``, or with one of these.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.sources import Scaling
    >>> scaling = Scaling(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    >>> scaling.transform(np.array([[3.0, 5.0]]))
    array([[1., 5.]])
    >>> scaling.inverse_transform(np.array([[1.0, 5.0]]))
    array([[3., 5.]])
    """

    offsets: FloatArray
    units: FloatArray

    def transform(self, points: Any) -> Points:
        """The points scaled, in their dtype."""
        scaled = points - self.offsets
        scaled /= self.units
        kept: Points = scaled.astype(points.dtype, copy=False)
        return kept

    def inverse_transform(self, points: Any) -> Points:
        """Points, or centers, in the units of the columns."""
        unscaled = points * self.units + self.offsets
        kept: Points = unscaled.astype(points.dtype, copy=False)
        return kept

    def of_block(self, block: Block) -> Block:
        """A block with its points scaled."""
        if sparse.issparse(block.points):
            raise SourceError(
                f"{block.where} is sparse, and scaling would fill it: leave scale out, or scale it "
                "with sklearn.preprocessing.MaxAbsScaler"
            )
        return replace(block, points=self.transform(block.points))

    def equals(self, other: Scaling | None) -> bool:
        """Whether the other one does the same."""
        return (
            other is not None
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.units, other.units)
        )


def learned_scaling(source: Source, scale: Scale) -> Scaling:
    """The scaling of a source, from one pass; NaN is passed over.

    Parameters
    ----------
    source : Source
    scale : {"standard", "minmax"}
        To mean zero and variance one, weights counted; or to lie between zero and one.

    Returns
    -------
    Scaling
    """
    blocks = source.blocks()
    return _standard(blocks, source) if scale == "standard" else _minmax(blocks, source)


def _standard(blocks: Iterator[Block], source: Source) -> Scaling:
    """Moments of blocks are put together as Chan, Golub & LeVeque (1979) do."""
    total = np.zeros(source.n_features)
    mean, squares = total, total
    for points, weights in map(_dense, blocks):
        is_there = ~np.isnan(points)
        counts = np.where(is_there, weights[:, None], 0.0)
        added = counts.sum(axis=0)
        known = np.where(added > 0, added, 1.0)
        of_block = np.sum(counts * np.where(is_there, points, 0.0), axis=0) / known
        apart, total = of_block - mean, total + added
        share = added / np.where(total > 0, total, 1.0)
        squares = squares + np.sum(counts * np.where(is_there, points - of_block, 0.0) ** 2, axis=0)
        squares = squares + (total - added) * share * apart**2
        mean = mean + share * apart
    variance = squares / np.where(total > 0, total, 1.0)
    return _of(mean, np.sqrt(variance), np.abs(mean))


def _minmax(blocks: Iterator[Block], source: Source) -> Scaling:
    lowest = np.full(source.n_features, np.nan)
    highest = lowest
    for points, _ in map(_dense, blocks):
        lowest = np.fmin(lowest, np.fmin.reduce(points, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(points, axis=0))
    return _of(lowest, highest - lowest, np.maximum(np.abs(lowest), np.abs(highest)))


def _of(offsets: FloatArray, units: FloatArray, sizes: FloatArray) -> Scaling:
    is_plain = np.isfinite(units) & (units > _CONSTANT * sizes)
    return Scaling(np.where(np.isfinite(offsets), offsets, 0.0), np.where(is_plain, units, 1.0))


def _dense(block: Block) -> tuple[FloatArray, FloatArray]:
    if sparse.issparse(block.points):
        raise SourceError(f"{block.where} is sparse, and scaling would fill it: leave scale out")
    points = block.points.astype(np.float64, copy=False)
    return points, np.ones(len(points)) if block.weights is None else block.weights
