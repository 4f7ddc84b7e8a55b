"""Results as tensors where the points are one. PyTorch is imported only where a user passes one."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from powermeans.system.host_memory import is_tensor
from powermeans.system.threads import effective_n_threads


def threads_at(points: Any, n_threads: int | None) -> AbstractContextManager[None]:
    """Limit PyTorch on the CPU to this number of threads while open; None sets no limit."""
    if n_threads is None or not is_tensor(points) or points.device.type != "cpu":
        return nullcontext()  # the compiled core limits its own threads
    from powermeans.tensors import threads_of_torch

    return threads_of_torch(effective_n_threads(n_threads))


def like(values: Any, result: Any) -> Any:
    """Return a result as a tensor on the device of these values if they are a tensor."""
    if not is_tensor(values):
        return result
    torch = sys.modules["torch"]
    # PyTorch's default device may be another than the CPU.
    there = torch.as_tensor(np.array(result), device="cpu")
    return _as_held_by(values.device.type, there).to(values.device)


def _as_held_by(device_type: str, values: Any) -> Any:
    """Return values in float32 where the device has nothing wider."""
    is_too_wide = device_type == "mps" and values.is_floating_point() and values.itemsize > 4
    return values.float() if is_too_wide else values
