"""Check tensors; no other module says what is wrong with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from powermeans.errors import FewRowsError
from powermeans.points.checks.faults import way_out_of
from powermeans.points.checks.points import (
    Admitted,
    check_points,
    refuse_tiny_spread,
)
from powermeans.points.checks.weights import check_sample_weight
from powermeans.system.host_memory import brought_to_host, fault_of_tensor
from powermeans.tensors.memory import blocks

_ENTRIES_AT_ONCE = 2**24


def check_tensor(points: torch.Tensor) -> None:
    """Raise where rows do not take the layout, shape or dtype."""
    if (fault := fault_of_tensor(points, "X")) is not None:
        raise ValueError(f"X {fault}")
    shape, dtype = tuple(points.shape), points.dtype
    if points.ndim != 2:
        raise ValueError(f"X has the shape {shape}: pass a tensor of shape (n_samples, n_features)")
    if points.shape[0] == 0 or points.shape[1] == 0:
        raise ValueError(f"X has the shape {shape}: pass at least one point and one feature")
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"X has the dtype {dtype}: pass float16, bfloat16, float32 or float64, for example "
            "X.float()"
        )
    if not points.is_contiguous():
        raise ValueError(
            f"X is not contiguous, with strides {points.stride()}: pass X.contiguous(), which "
            "copies it"
        )


def admit_tensor(
    points: torch.Tensor,
    sample_weight: Any = None,
    *,
    init: Any = None,
    n_clusters: int = 1,
    must_differ: bool = False,
) -> Admitted:
    """Admit a tensor that `check_tensor` passes, without a copy, or raise saying what is wrong.

    Tensors of weights and initial centers must be on the device of the points. With `must_differ`,
    squared distances among the points must not underflow to zero.
    """
    for name, values in (("sample_weight", sample_weight), ("init", init)):
        _check_neighbour(values, points, name)
    weights = check_sample_weight(sample_weight, len(points))
    if len(points) < n_clusters:
        raise FewRowsError(len(points), n_clusters)
    total = max(float(len(points)), 0.0 if weights is None else float(weights.sum()))
    check_points(np.array([[_largest(points)]]), total_weight=total * points.shape[1])
    if must_differ and points.dtype == torch.float64:  # no narrower dtype has numbers so small
        refuse_tiny_spread(float((points.amax(0) - points.amin(0)).amax()), "X")
    return Admitted(points, weights, float("nan"))


def _check_neighbour(values: Any, points: torch.Tensor, name: str) -> None:
    """Raise where a tensor of weights or centers cannot be used with these points."""
    if not isinstance(values, torch.Tensor):
        return
    if not values.is_nested and values.device != points.device:
        raise ValueError(
            f"{name} is on {values.device} and X on {points.device}: pass {name}.to(X.device)"
        )
    brought_to_host(values, name)


def _largest(points: torch.Tensor) -> float:
    """Return the largest magnitude, or raise where an entry is not finite."""
    largest = 0.0
    for rows in blocks(len(points), max(1, _ENTRIES_AT_ONCE // points.shape[1])):
        of_block = float(points[rows].abs().amax())
        if not math.isfinite(of_block):
            raise ValueError(_not_finite(points[rows], rows.start))
        largest = max(largest, of_block)
    return largest


def _not_finite(block: torch.Tensor, first_row: int) -> str:
    row, column = (int(index) for index in (~torch.isfinite(block)).nonzero()[0])
    is_nan = math.isnan(float(block[row, column]))
    kind = "NaN" if is_nan else "infinity"
    way_out = way_out_of(math.nan)
    if block.dtype == torch.float16 and not is_nan:
        way_out = (
            "float16 holds nothing above 65504: convert the original values with "
            ".to(torch.bfloat16), or scale them down first"
        )
    return (
        f"Input X contains {kind}: the first entry that is not finite is in "
        f"row {first_row + row}, column {column}. {way_out}"
    )
