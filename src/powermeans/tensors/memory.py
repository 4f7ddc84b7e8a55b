"""Blocks of points that fit into the memory of a device."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch

from powermeans.errors import warn_caller

_FEWEST_ROWS = 128


def free_bytes(device: torch.device) -> float:
    """Return the free memory of the device in bytes; infinite where PyTorch does not tell."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + unused)
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return math.inf


def rows_at_once(n_points: int, width: int, device: torch.device, itemsize: int) -> int:
    """Return the number of points to work on at once, with `width` temporary entries each.

    It depends only on the sizes, unless memory is short: then it is smaller, with a warning.
    """
    entries = 2**20 if device.type == "cpu" else 2**26  # of the largest temporary array
    wanted = min(n_points, max(_FEWEST_ROWS, entries // width))
    bytes_of_a_row = width * itemsize * 6  # so many arrays are alive at the same time
    free = free_bytes(device)
    if wanted * bytes_of_a_row <= free:
        return wanted
    affordable = int(free // bytes_of_a_row)
    if affordable < min(_FEWEST_ROWS, n_points):
        raise MemoryError(
            f"{free / 2**20:.0f} MiB are free on {device}, and {bytes_of_a_row} bytes are "
            f"needed for each of at least {min(_FEWEST_ROWS, n_points)} points: free memory there, "
            "or use fewer centers"
        )
    rows = min(wanted, 1 << (affordable.bit_length() - 1))
    warn_caller(
        f"{free / 2**20:.0f} MiB are free on {device}: the fit works on {rows} points at once "
        f"instead of {wanted}, which is slower and may change last digits",
        RuntimeWarning,
    )
    return rows


@contextlib.contextmanager
def lack_of_memory_told() -> Iterator[None]:
    """Raise a MemoryError with a way out where the device runs out of memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"{error}. Free memory on the device, use fewer centers, or pass X.cpu().numpy()"
        ) from error


def blocks(n_points: int, n_at_once: int) -> Iterator[slice]:
    """Yield slices of at most `n_at_once` points."""
    for start in range(0, n_points, n_at_once):
        yield slice(start, min(start + n_at_once, n_points))
