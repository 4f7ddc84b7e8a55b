"""Check tensors; no other module says what is wrong with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.inputs.points import (
    check_domain,
    check_n_clusters,
    check_points,
    refuse_tiny_spread,
    way_out_of,
)
from powermeans.inputs.weights import check_sample_weight
from powermeans.rows.torch.placing import blocks, find_device
from powermeans.system.host_memory import brought_to_host, fault_of_tensor
from powermeans.types import FloatArray

_ENTRIES_AT_ONCE = 2**24
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_DEVICES = ("cpu", "cuda", "mps")


def admit_points(
    points: torch.Tensor,
    *,
    device: torch.device,
    n_clusters: int = 1,
    total_weight: float | None = None,
    divergence: Divergence = "squared_euclidean",
    must_differ: bool = False,
) -> torch.Tensor:
    """Return the same points, never a copy, or raise saying what is wrong with them.

    With `must_differ`, squared distances among them must not underflow to zero.
    """
    check_numbers(points)
    check_form(points, device)
    check_n_clusters(n_clusters, len(points))
    largest = _largest(points)
    total = max(float(len(points)), total_weight or 0.0)
    check_points(np.array([[largest]]), total_weight=total * points.shape[1])
    if must_differ and points.dtype == torch.float64:  # no narrower dtype has numbers so small
        refuse_tiny_spread(float((points.amax(0) - points.amin(0)).amax()), "X")
    if divergence != "squared_euclidean":
        _check_domain(points, divergence)
    return points


def admit_weights(sample_weight: Any, points: torch.Tensor) -> FloatArray | None:
    """Return weights in host memory; a tensor of them must be where the points are."""
    if isinstance(sample_weight, torch.Tensor):
        _check_neighbour(sample_weight, points, "sample_weight")
    return check_sample_weight(sample_weight, len(points))


def admit_init(init: Any, points: torch.Tensor) -> Any:
    """Return initial centers in host memory; a tensor of them must be where the points are."""
    if not isinstance(init, torch.Tensor):
        return init
    _check_neighbour(init, points, "init")
    return brought_to_host(init, "init")


def device_for(points: torch.Tensor, wanted: str | None) -> torch.device:
    """Return the device `wanted`, or the device of the points, which must stay on a GPU."""
    if wanted is None:
        return points.device
    device = find_device(wanted)
    if _is_same(points.device, device):
        return points.device
    if points.device.type != "cpu":
        raise ValueError(
            f"X is on {points.device} and device={wanted!r}: pass X.to({wanted!r}), or leave "
            "device out to work where X is"
        )
    return device


def _is_same(one: torch.device, other: torch.device) -> bool:
    """Return whether both are the same device; mps and mps:0 are the same."""
    return one.type == other.type and (one.index or 0) == (other.index or 0)


def check_numbers(points: torch.Tensor) -> None:
    """Raise where a tensor holds no numbers, or lies on a device without rows."""
    if (fault := fault_of_tensor(points, "X")) is not None:
        raise ValueError(f"X {fault}")
    if points.device.type not in _DEVICES:
        raise ValueError(
            f"X is on {points.device}, which is not supported: pass X.cpu() to compute with "
            "PyTorch on the CPU, or X.cpu().numpy() to compute with the compiled core"
        )


def check_form(points: torch.Tensor, device: torch.device) -> None:
    """Raise where rows on this device do not take the layout, shape or dtype."""
    shape, dtype = tuple(points.shape), points.dtype
    if points.ndim != 2:
        raise ValueError(f"X has the shape {shape}: pass a tensor of shape (n_samples, n_features)")
    if points.shape[0] == 0 or points.shape[1] == 0:
        raise ValueError(f"X has the shape {shape}: pass at least one point and one feature")
    if dtype not in _DTYPES:
        raise ValueError(
            f"X has the dtype {dtype}: pass float16, bfloat16, float32 or float64, for example "
            "X.float()"
        )
    if dtype == torch.float64 and device.type == "mps":
        raise ValueError("X has the dtype torch.float64, which mps lacks: pass X.float()")
    if not points.is_contiguous():
        raise ValueError(
            f"X is not contiguous, with strides {points.stride()}: pass X.contiguous(), which "
            "copies it"
        )


def _check_neighbour(values: torch.Tensor, points: torch.Tensor, name: str) -> None:
    if not values.is_nested and values.device != points.device:
        raise ValueError(
            f"{name} is on {values.device} and X on {points.device}: pass {name}.to(X.device)"
        )


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
    is_finite = torch.isfinite(block)
    row, column = (int(index) for index in (~is_finite).nonzero()[0])
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


def _check_domain(points: torch.Tensor, divergence: Divergence) -> None:
    if divergence == "manhattan":
        raise ValueError(
            'divergence="manhattan" has no rows for tensors, since its centers are medians: pass '
            "X.cpu().numpy(), which runs on the CPU"
        )
    if divergence == "cosine":
        is_zero = ~points.any(1)
        if is_zero.any():
            raise ValueError(
                f"X has nothing but zeros in row {int(is_zero.int().argmax())}, which have no "
                'direction for divergence="cosine": leave the row out'
            )
        return
    assert isinstance(divergence, Bregman)
    for rows in blocks(len(points), max(1, _ENTRIES_AT_ONCE // points.shape[1])):
        try:
            check_domain(points[rows].cpu().double().numpy(), divergence, name="X")
        except ValueError as error:
            raise ValueError(f"{error} (rows count from row {rows.start} of X)") from error
