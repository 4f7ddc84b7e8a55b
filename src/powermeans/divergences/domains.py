"""Domains: which entries of points a divergence takes, and where its centers may lie."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import numpy as np
from scipy import sparse

from powermeans.divergences.base import Divergence
from powermeans.divergences.chunks import dense_chunks, in_chunks
from powermeans.errors import EntryError
from powermeans.types import AnyMatrix, Chunks, FloatArray, SparseMatrix

# Centers on the border of the domain move inside by this share of their size.
_FROM_BORDER = 1e-30
_LEAST_NORMAL = float(np.finfo(np.float64).tiny)


class ByEntries(Divergence):
    """A divergence that is defined for some entries, and for a point and a center by `between`."""

    @abc.abstractmethod
    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return D(x, theta) of each point and its center, row by row; one row may serve all."""

    def check_width(self, n_features: int) -> None:
        """Raise if the divergence is for another number of features."""
        return

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Return for each entry whether it is outside the domain."""
        return np.zeros(values.shape, dtype=bool)

    def check_domain(self, points: AnyMatrix, *, name: str, first_row: int = 0) -> None:
        """Raise on the first entry outside the domain."""
        self.check_width(points.shape[1])
        if (fault := self._first_fault(points)) is None:
            return
        row, column = fault
        way_out = f"{type(self).__name__} is for {self.wanted}"
        raise EntryError(name, first_row + row, column, points[row, column], way_out)

    def _first_fault(self, points: AnyMatrix) -> tuple[int, int] | None:
        if sparse.issparse(points) and self._takes_entries_of(points):
            return None
        for rows, chunk in dense_chunks(points):
            is_fault = self.is_fault(chunk)
            if is_fault.any():
                row, column = divmod(int(np.argmax(is_fault)), chunk.shape[1])
                return rows.start + row, column
        return None

    def _takes_entries_of(self, points: SparseMatrix) -> bool:
        """Return whether zeros and entries are known to be inside, whatever their features."""
        return False

    def inside(self, centers: FloatArray) -> FloatArray:
        """Return the centers, moved inside the domain if they are on its border or beyond."""
        return centers

    def in_chunks(self, points: AnyMatrix, centers: FloatArray) -> Chunks:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
        inner = self.inside(np.asarray(centers, dtype=np.float64))

        def distances(chunk: FloatArray, _: FloatArray) -> FloatArray:
            return np.stack([self.between(chunk, center[None, :]) for center in inner], axis=1)

        return in_chunks(points, inner, distances)


class Bounded(ByEntries):
    """A sum over the features, each within bounds."""

    lowest: float | FloatArray = -math.inf
    highest: float | FloatArray = math.inf
    excludes_lowest: ClassVar[bool] = False

    @abc.abstractmethod
    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return what each feature adds to D(x, theta)."""

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Add up the deviances, which rounding may leave below zero."""
        return np.asarray(np.maximum(self.deviance(points, centers).sum(axis=1), 0.0))

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Tell which entries lie beyond the bounds."""
        is_low = values <= self.lowest if self.excludes_lowest else values < self.lowest
        return np.asarray(is_low | (values > self.highest))

    def _takes_entries_of(self, points: SparseMatrix) -> bool:
        if type(self).is_fault is not Bounded.is_fault:
            return False
        if np.ndim(self.lowest) or np.ndim(self.highest):
            return False
        return not self.is_fault(np.append(points.data, 0.0)).any()

    def inside(self, centers: FloatArray) -> FloatArray:
        """Move centers off the bounds by a tiny share of their other entries."""
        is_low, is_high = centers <= self.lowest, centers >= self.highest
        if not (is_low.any() or is_high.any()):
            return centers
        lowest, highest = (np.asarray(b, dtype=np.float64) for b in (self.lowest, self.highest))
        above_bound = np.abs(centers - np.where(np.isfinite(lowest), lowest, 0.0))
        sizes = np.mean(above_bound, axis=-1, keepdims=True)
        shift = np.maximum(_FROM_BORDER * np.where(sizes > 0, sizes, 1.0), _LEAST_NORMAL)
        # A bound other than zero swallows the shift, but has a nearest number beside it.
        above = np.maximum(lowest + shift, np.nextafter(lowest, highest))
        below = np.minimum(highest - shift, np.nextafter(highest, lowest))
        return np.where(is_low, above, np.where(is_high, below, centers))

    def within(self, centers: FloatArray) -> FloatArray:
        """Move centers beyond a bound onto it, or next to it where it is outside the domain."""
        inside = self.inside(centers) if self.excludes_lowest else centers
        return np.clip(np.where(self.is_fault(centers), inside, centers), self.lowest, self.highest)
