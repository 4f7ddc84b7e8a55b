"""Rows in memory that compute all distances by the definition."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from powermeans.divergences.chunks import as_float64
from powermeans.mathematics.rules import Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.by_definition import (
    NearnessByDefinition,
    PricedByDefinition,
    spread_by_definition,
    sweep_by_formula,
)
from powermeans.points.compiled import CompiledRows
from powermeans.types import FloatArray, IndexArray, Labels, Points


class DirectRows(CompiledRows):
    """Measure by a divergence that a subclass sets, some points at a time."""

    holds_labels = False
    _divergence: Any

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        distances = self._distances_in_chunks(centers)
        sums = sweep_by_formula(self._summed, self._weights, distances, len(centers), rule)
        return self.finished(sums * self._weight_unit)

    @property
    def _summed(self) -> Any:
        """What a sweep adds up."""
        return self._points

    def spread(self, centers: FloatArray) -> Spread:
        counts = self.sample_weight(np.arange(self.n_points))
        parts = self._distances_in_chunks(centers)
        return reduce(add, (spread_by_definition(part, counts[rows]) for rows, part in parts))

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        parts = [
            (part.argmin(axis=1), part.min(axis=1))
            for _, part in self._distances_in_chunks(centers)
        ]
        labels, nearest = map(np.concatenate, zip(*parts, strict=True))
        inertia = float(self.sample_weight(np.arange(self.n_points)) @ nearest)
        return labels.astype(np.int32), inertia

    @property
    def priced(self) -> PricedByDefinition:
        return PricedByDefinition(self, self._distances_of)

    def labels_of(self, centers: FloatArray) -> Labels:
        return self.assign(centers)[0]

    def sq_distances(self, centers: FloatArray) -> Points:
        return self._divergence.pairwise(self._points, centers).astype(self.dtype)  # type: ignore[no-any-return]

    def nearness(  # type: ignore[override]
        self, centers: FloatArray, order: IndexArray | None = None
    ) -> NearnessByDefinition:
        weights = self.sample_weight(np.arange(self.n_points))
        points = as_float64(self._points)
        return NearnessByDefinition(points, weights, centers, order, self._divergence.pairwise)

    def rounding(self) -> float:
        return 0.0

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        return np.asarray(self._divergence.pairwise(self._points[indices], centers))

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return self._divergence.in_chunks(self._points, centers)  # type: ignore[no-any-return]
