"""Check and open PyTorch tensors, which are worked on where they are."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from powermeans.divergences import Bregman, Cosine, Divergence
from powermeans.divergences.cosine import directions
from powermeans.errors import FewRowsError
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.mathematics.rules import Rule
from powermeans.points.affine import rounding_of_products
from powermeans.points.bregman import check_heights, unit_steps_at
from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.faults import way_out_of
from powermeans.points.checks.points import (
    Admitted,
    check_points,
    refuse_huge,
    refuse_tiny_spread,
)
from powermeans.points.cosine import LENGTH, UnitSums
from powermeans.points.given import Given
from powermeans.points.needs import Needs
from powermeans.points.opening import open_points
from powermeans.points.predictions import distances, shares
from powermeans.system.attributes import cached_property
from powermeans.system.containers import to_array
from powermeans.tensors import formulas
from powermeans.tensors.containers import fault_of_tensor
from powermeans.tensors.memory import blocks, lack_of_memory_told
from powermeans.tensors.rows import TorchPoints
from powermeans.types import Chunks, FloatArray, IndexArray, Matrix

_ENTRIES_AT_ONCE = 2**24


@distances.register
def _distances(points: TorchPoints, centers: Matrix) -> Any:
    blocks_of = _distance_blocks(points, centers)
    if not points.given.measure.divergence.is_squared:
        return torch.cat(blocks_of)
    # The root comes first, since squares in the user's unit may leave float32.
    unit = math.sqrt(points.units[0])
    return torch.cat([block.sqrt_().mul_(unit) for block in blocks_of])


@shares.register
def _shares(points: TorchPoints, centers: Matrix, memberships: object, exponent: float) -> Any:
    blocks_of = _distance_blocks(points, centers)
    return torch.cat([formulas.shares(block, exponent) for block in blocks_of])


def _distance_blocks(points: TorchPoints, centers: Matrix) -> list[torch.Tensor]:
    """Return distances in the unit of the view, some points at a time."""
    checked = check_centers(centers, points.n_features)
    return [block for _, block in points.distance_blocks(checked)]


@open_points.register(torch.Tensor)
def _open_tensor(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> TorchPoints:
    reason = needs.refusals.tensors
    if needs.measure.has_missing:
        reason = 'missing="observed" has no rows for tensors'
    if reason is not None:
        raise ValueError(
            f"X is a tensor, but {reason}: pass X.cpu().numpy(), which runs on the CPU"
        )
    if needs.known is not None:
        needs.known.refuse_points()
    admitted = admit_tensor(X, sample_weight, needs)
    rows = open_tensor(admitted.points, admitted.weights, divergence=needs.measure.divergence)
    rows.given = Given(
        X,
        admitted.weights,
        needs.measure,
        dtype=rows.dtype,
        n_features=rows.n_features,
        noted={"n_features_in_": rows.n_features},
    )
    return rows


def admit_tensor(points: torch.Tensor, sample_weight: Any, needs: Needs) -> Admitted:
    """Admit a tensor as it is needed, without a copy, or raise saying what is wrong.

    Tensors of weights and initial centers must be on the device of the points.
    """
    if (fault := fault_of_tensor(points, "X") or _fault_of_form(points)) is not None:
        raise ValueError(f"X {fault}")
    if needs.known is not None:
        needs.known.check_width(int(points.shape[1]), needs.name)
    _check_device(sample_weight, points, "sample_weight")
    _check_device(needs.fit.init, points, "init")
    weights = check_sample_weight(sample_weight, len(points))
    if len(points) < needs.fit.n_points:
        raise FewRowsError(len(points), needs.fit.n_points)
    total = max(float(len(points)), 0.0 if weights is None else float(weights.sum()))
    refuse_huge(_largest(points), total, int(points.shape[1]), "X")
    # No narrower dtype than float64 has numbers so small.
    if needs.fit.must_differ and points.dtype == torch.float64:
        refuse_tiny_spread(float((points.amax(0) - points.amin(0)).amax()), "X")
    return Admitted(points, weights, math.nan)


def _fault_of_form(points: torch.Tensor) -> str | None:
    """Return why rows do not take the shape, dtype or strides, with the way out."""
    shape, dtype = tuple(points.shape), points.dtype
    if points.ndim != 2:
        return f"has the shape {shape}: pass a tensor of shape (n_samples, n_features)"
    if 0 in shape:
        return f"has the shape {shape}: pass at least one point and one feature"
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        floats = "float16, bfloat16, float32 or float64"
        return f"has the dtype {dtype}: pass {floats}, for example X.float()"
    if not points.is_contiguous():
        strides = points.stride()
        return f"is not contiguous, with strides {strides}: pass X.contiguous(), which copies it"
    return None


def _check_device(values: Any, points: torch.Tensor, name: str) -> None:
    """Raise where a tensor of weights or centers cannot be used with these points."""
    if not isinstance(values, torch.Tensor):
        return
    if not values.is_nested and values.device != points.device:
        raise ValueError(
            f"{name} is on {values.device} and X on {points.device}: pass {name}.to(X.device)"
        )
    to_array(values, name)


def _largest(points: torch.Tensor) -> float:
    """Return the largest magnitude, or raise where an entry is not finite."""
    largest = 0.0
    for rows in blocks(len(points), max(1, _ENTRIES_AT_ONCE // points.shape[1])):
        of_block = float(points[rows].abs().amax())
        if not math.isfinite(of_block):
            on_host = points[rows].cpu().double().numpy()
            way_out = partial(_way_out, points.dtype)
            check_points(on_host, first_row=rows.start, way_out=way_out)
        largest = max(largest, of_block)
    return largest


def _way_out(dtype: torch.dtype, value: float, is_dense: bool) -> str:
    if dtype != torch.float16 or math.isnan(value):
        return way_out_of(value)
    return (
        "float16 cannot store numbers above 65504: convert the original values with "
        ".to(torch.bfloat16), or scale them down first"
    )


# Rows whose distances are a Bregman divergence or one minus a cosine.


_ENTRIES_ON_HOST = 2**22


@lack_of_memory_told()
def open_tensor(
    points: torch.Tensor, sample_weight: FloatArray | None, *, divergence: Divergence
) -> TorchPoints:
    """Open a tensor that `admit_tensor` passes, or raise where the divergence is not defined."""
    if isinstance(divergence, Bregman):
        return TorchBregmanPoints(points, sample_weight, divergence=divergence)
    return (TorchCosinePoints if isinstance(divergence, Cosine) else TorchPoints)(
        points, sample_weight
    )


class TorchBregmanPoints(TorchPoints):
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
            check_heights(found, self.divergence, self.total_weight, rows.start)
            heights[rows] = self._there(found, heights.dtype)
        return heights


def _on_host(points: torch.Tensor) -> Chunks:
    """Yield points in float64, some at a time, with their slice."""
    for rows in blocks(len(points), max(1, _ENTRIES_ON_HOST // points.shape[1])):
        yield rows, points[rows].cpu().double().numpy()


class TorchCosinePoints(TorchPoints):
    """Measure by one minus the cosine of the angle, on a copy of the points.

    No point is zero, which has no direction.
    """

    divergence = Cosine()
    _has_column_moments = False  # they do not tell the mean direction

    def __init__(self, points: torch.Tensor, sample_weight: FloatArray | None = None) -> None:
        has_direction = points.any(1, keepdim=True).cpu().numpy()
        Cosine().check_domain(has_direction.astype(np.float64), name="X")
        super().__init__(_halved_directions(points), sample_weight)

    def sweep(self, centers: FloatArray, rule: Rule) -> UnitSums:
        return UnitSums.of(super().sweep(centers, rule))

    def take(self, indices: IndexArray) -> FloatArray:
        """Return the directions of these points."""
        return super().take(indices) / LENGTH

    def critical_power(self) -> float:
        # The mean of the directions, unlike the center that the rows report, has not unit length.
        weights = None if self._weights is None else self._weights * self._weight_unit
        return TorchPoints(self._points, weights).critical_power()

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
