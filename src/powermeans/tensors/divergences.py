"""Rows of a tensor whose distances are a Bregman divergence or one minus a cosine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch

from powermeans.divergences import Bregman, Cosine, Divergence
from powermeans.divergences.cosine import directions
from powermeans.mathematics.rules import Rule
from powermeans.points.affine import rounding_of_products
from powermeans.points.bregman import check_heights, unit_steps_at
from powermeans.points.cosine import LENGTH, UnitSums
from powermeans.tensors.memory import blocks, lack_of_memory_told
from powermeans.tensors.rows import TorchRows
from powermeans.types import FloatArray, IndexArray

_ENTRIES_ON_HOST = 2**22


@lack_of_memory_told()
def open_tensor(
    points: torch.Tensor, sample_weight: FloatArray | None, *, divergence: Divergence
) -> TorchRows:
    """Open a tensor that `admit_tensor` passes, or raise where the divergence is not defined."""
    if isinstance(divergence, Bregman):
        return TorchBregmanRows(points, sample_weight, divergence=divergence)
    return (TorchCosineRows if isinstance(divergence, Cosine) else TorchRows)(points, sample_weight)


class TorchBregmanRows(TorchRows):
    """Measure by a Bregman divergence of the point from the center.

    NumPy computes the heights of the points once, so that every divergence of the package works;
    sweeps stay on the device.
    """

    divergence: Bregman

    def __init__(
        self,
        points: torch.Tensor,
        sample_weight: FloatArray | None = None,
        *,
        divergence: Bregman,
    ) -> None:
        self.divergence = divergence
        for rows, block in _on_host(points):
            divergence.check_domain(block, name="X", first_row=rows.start)
        super().__init__(points, sample_weight)

    def rounding(self) -> float:
        return max(super().rounding(), rounding_of_products(self.dtype))

    def unit_steps(self) -> float | FloatArray:
        return unit_steps_at(self._tangent, self.divergence)

    @cached_property
    def _tangent(self) -> FloatArray:
        return np.asarray(self.divergence.inside(self._weighted_mean()[None, :])[0])

    def _weighted_mean(self) -> FloatArray:
        if self._weights is None:
            return self._column_mean
        sums = torch.zeros(self.n_features, dtype=self._view.wide, device=self._points.device)
        for rows in self._slices(1):
            sums += self.weights_there[rows] @ self._points[rows].to(self._view.wide)
        return np.asarray(sums.cpu().numpy() / np.sum(self._weights), dtype=np.float64)

    def _chosen_scale(self, largest: float) -> float:
        return 1.0  # a divergence does not scale with its points

    def _planes_in_view(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        origin = np.broadcast_to(self._view.origin_in_float64(), self._tangent.shape)
        slopes, lifts = self.divergence.planes(centers, self._tangent, origin)
        return slopes / 2, lifts, False

    def _all_heights(self) -> torch.Tensor:
        heights = torch.empty(self.n_points, dtype=self._view.wide, device=self._points.device)
        for rows, block in _on_host(self._points):
            found = self.divergence.heights(block, self._tangent)
            check_heights(found, self.divergence, rows.start)
            heights[rows] = self._there(found, heights.dtype)
        return heights


def _on_host(points: torch.Tensor) -> Iterator[tuple[slice, FloatArray]]:
    """Yield points in float64, some at a time, with their slice."""
    for rows in blocks(len(points), max(1, _ENTRIES_ON_HOST // points.shape[1])):
        yield rows, points[rows].cpu().double().numpy()


class TorchCosineRows(TorchRows):
    """Measure by one minus the cosine of the angle, on a copy of the points.

    No point is zero, which has no direction.
    """

    divergence = Cosine()

    def __init__(self, points: torch.Tensor, sample_weight: FloatArray | None = None) -> None:
        has_direction = points.any(1, keepdim=True).cpu().numpy()
        Cosine().check_domain(has_direction.astype(np.float64), name="X")
        super().__init__(_halved_directions(points), sample_weight)

    def sweep(self, centers: FloatArray, rule: Rule) -> UnitSums:
        return UnitSums.of(super().sweep(centers, rule))

    def take(self, indices: IndexArray) -> FloatArray:
        """Return the directions of these points."""
        return super().take(indices) / LENGTH

    def _find_mean(self) -> FloatArray:
        return self._mean_of_sweep()  # moments of the columns do not tell the mean direction

    def critical_power(self) -> float:
        # The mean of the directions, unlike the center that the rows report, has not unit length.
        weights = None if self._weights is None else self._weights * self._weight_unit
        return TorchRows(self._points, weights).critical_power()

    def _planes_in_view(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        return super()._planes_in_view(np.asarray(directions(centers)) * LENGTH)


def _halved_directions(points: torch.Tensor) -> torch.Tensor:
    """Return directions of length sqrt(1/2) on the device of the points, in float32 at least."""
    dtype = torch.float64 if points.dtype == torch.float64 else torch.float32
    halved = torch.empty(points.shape, dtype=dtype, device=points.device)
    for rows in blocks(len(points), max(1, 2**24 // points.shape[1])):
        block = points[rows].to(dtype)
        # Dividing by the largest entry first keeps squares within the range of the dtype.
        block = block / block.abs().amax(1, keepdim=True)
        halved[rows] = block / torch.linalg.vector_norm(block, dim=1, keepdim=True) * LENGTH
    return halved
