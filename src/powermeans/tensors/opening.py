"""Check and open PyTorch tensors, which are worked on where they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from powermeans.errors import FewRowsError
from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.faults import way_out_of
from powermeans.points.checks.points import (
    Admitted,
    check_points,
    refuse_huge,
    refuse_tiny_spread,
)
from powermeans.points.checks.weights import check_sample_weight
from powermeans.points.needs import Needs
from powermeans.points.opening import InMemory, open_points
from powermeans.system.containers import to_array
from powermeans.system.threads import effective_n_threads
from powermeans.tensors.containers import fault_of_tensor
from powermeans.tensors.divergences import open_tensor
from powermeans.tensors.formulas import shares
from powermeans.tensors.memory import blocks
from powermeans.types import FloatArray, Points

_ENTRIES_AT_ONCE = 2**24


@dataclass(frozen=True, slots=True)
class InTensor(InMemory):
    """Points in a tensor; what is found becomes tensors on its device.

    As a context manager it limits the threads of PyTorch on the CPU.
    """

    _limits: ExitStack = field(default_factory=ExitStack)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    def distances(self, centers: Points) -> Any:
        """Return distances on the device."""
        assert self.needs is not None, "predictions are for points that the door opened"
        rows: Any = self.rows
        if not self.needs.measure.divergence.is_squared:
            return torch.cat(self._distances(centers))
        # The root comes first, since squares in the user's unit may leave float32.
        unit = math.sqrt(rows.units[0])
        return torch.cat([block.sqrt_().mul_(unit) for block in self._distances(centers)])

    def shares(
        self, centers: Points, memberships: Callable[[FloatArray], FloatArray], exponent: float
    ) -> Any:
        return torch.cat([shares(block, exponent) for block in self._distances(centers)])

    def _distances(self, centers: Points) -> list[torch.Tensor]:
        """Return distances in the unit of the view, some points at a time."""
        rows: Any = self.rows
        checked = check_centers(centers, self.n_features)
        return [block for _, block in rows.distance_blocks(checked)]

    @property
    def noted(self) -> dict[str, Any] | None:
        """Attributes that describe the columns."""
        return {"n_features_in_": self.n_features}

    def __enter__(self) -> Self:
        points: Any = self.points
        n_threads = None if self.needs is None else self.needs.measure.n_threads
        if n_threads is not None and points.device.type == "cpu":
            self._limits.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(effective_n_threads(n_threads))
        return self

    def __exit__(self, *error: object) -> None:
        self._limits.close()


@open_points.register(torch.Tensor)
def _open_tensor(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> InTensor:
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
    return InTensor(admitted.points, admitted.weights, rows, needs=needs)


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
