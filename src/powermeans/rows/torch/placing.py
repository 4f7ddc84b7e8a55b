"""Place tensors on devices, within the memory and the threads that are free there."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch

from powermeans.types import IndexArray, Points

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Entries of the largest temporary array, and the number of these arrays alive at the same time.
_ENTRIES_ON_GPU = 2**26
_ENTRIES_ON_CPU = 2**20
_ARRAYS_AT_ONCE = 6
_FEWEST_ROWS = 128
# The share of the free memory for points; the rest is for the work on them.
_SHARE_FOR_POINTS = 0.7
# The share for points and what a sweep holds for each, which is more where features are few.
_SHARE_WITH_WORK = 0.9
_BYTES_OF_A_SWEEP = 100
# Weights, heights and the state of seeding stay on the device for all points.
_BYTES_KEPT = 40
_LARGEST_PIECE = 2**30
_PIECES_IN_FREE_MEMORY = 8


def free_bytes(device: torch.device) -> float:
    """Return the free memory of the device in bytes; infinite where PyTorch does not tell."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + unused)
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return math.inf


def find_device(wanted: str | torch.device) -> torch.device:
    """Return the device of this name, or raise saying why there is none."""
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise ValueError(
            f'device={wanted!r} is not a device of PyTorch: pass "cuda", "cuda:1", "mps" or "cpu"'
        ) from error
    if device.type == "cuda":
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if n_devices == 0:
            raise ValueError(
                f"device={wanted!r} is not available: PyTorch {torch.__version__} finds no CUDA "
                'device. Install a CUDA build of PyTorch and a driver, or pass device="cpu"'
            )
        if device.index is not None and device.index >= n_devices:
            raise ValueError(
                f"device={wanted!r} is not available: there are {n_devices} CUDA devices, "
                "numbered from 0"
            )
        if device.index is None:
            return torch.device("cuda", torch.cuda.current_device())
        return device
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f'device={wanted!r} is not available on this machine: pass device="cpu"')
    if device.type not in ("cpu", "mps"):
        raise ValueError(f'device={wanted!r} is not supported: pass "cuda", "mps" or "cpu"')
    return device


def rows_at_once(
    n_points: int, width: int, device: torch.device, itemsize: int, free: float | None = None
) -> int:
    """Return the number of points to work on at once, with `width` temporary entries each.

    It depends only on the sizes, unless memory is short: then it is smaller, with a warning.
    """
    entries = _ENTRIES_ON_CPU if device.type == "cpu" else _ENTRIES_ON_GPU
    wanted = min(n_points, max(_FEWEST_ROWS, entries // width))
    bytes_of_a_row = width * itemsize * _ARRAYS_AT_ONCE
    available = free_bytes(device) if free is None else free
    if wanted * bytes_of_a_row <= available:
        return wanted
    affordable = int(available // bytes_of_a_row)
    if affordable < min(_FEWEST_ROWS, n_points):
        raise MemoryError(
            f"{available / 2**20:.0f} MiB are free on {device}, and {bytes_of_a_row} bytes are "
            f"needed for each of at least {min(_FEWEST_ROWS, n_points)} points: free memory there, "
            "or use fewer centers"
        )
    rows = min(wanted, 1 << (affordable.bit_length() - 1))
    warnings.warn(
        f"{available / 2**20:.0f} MiB are free on {device}: the fit works on {rows} points at once "
        f"instead of {wanted}, which is slower and may change last digits",
        RuntimeWarning,
        stacklevel=2,
    )
    return rows


def lack_of_memory_is_told(work: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Raise a MemoryError with a way out where the device runs out of memory."""

    @functools.wraps(work)
    def told(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        try:
            return work(*args, **options)
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{error}. Free memory on the device, use fewer centers, or pass X in host memory "
                "with device=, which streams X if it does not fit"
            ) from error

    return told


def from_array(points: Points) -> torch.Tensor:
    """Return an array in host memory as a tensor that shares it."""
    with warnings.catch_warnings():
        # PyTorch warns of read-only memory, but the rows never write to their points.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(points)


def blocks(n_points: int, n_at_once: int) -> Iterator[slice]:
    """Yield slices of at most `n_at_once` points."""
    for start in range(0, n_points, n_at_once):
        yield slice(start, min(start + n_at_once, n_points))


class Held:
    """Hold points on the device if they fit, else stream them to it from host memory.

    With `rows_of_piece`, stream that many points at a time in any case.
    """

    def __init__(
        self, points: torch.Tensor, device: torch.device, rows_of_piece: int | None = None
    ) -> None:
        self.device = device
        self._rows_of_piece = rows_of_piece or self._piece_if_too_large(points)
        if self._rows_of_piece is None and points.device != device:
            points = points.to(device)
        self.points = points

    @property
    def is_streamed(self) -> bool:
        """Each sweep copies the points to the device again."""
        return self._rows_of_piece is not None

    def pieces(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield the points on the device, all or some at a time, with their slice."""
        if self._rows_of_piece is None:
            yield slice(0, len(self.points)), self.points
        elif self.device.type == "cuda" and not self.points.is_cuda:
            yield from self._copied_ahead(self._rows_of_piece)
        else:
            for rows in blocks(len(self.points), self._rows_of_piece):
                yield rows, self.points[rows].to(self.device)

    def take(self, indices: IndexArray) -> torch.Tensor:
        """Return these points, in host memory."""
        there = torch.as_tensor(indices, dtype=torch.int64, device=self.points.device)
        return self.points[there].cpu()

    def _piece_if_too_large(self, points: torch.Tensor) -> int | None:
        if points.device == self.device:
            return None
        free, n_points = free_bytes(self.device), len(points)
        bytes_of_a_row = points.shape[1] * points.element_size()
        with_work = n_points * (bytes_of_a_row + _BYTES_OF_A_SWEEP)
        if (
            n_points * bytes_of_a_row <= _SHARE_FOR_POINTS * free
            and with_work <= _SHARE_WITH_WORK * free
        ):
            return None
        left = free - n_points * _BYTES_KEPT
        each = bytes_of_a_row + _BYTES_OF_A_SWEEP
        piece = int(min(_LARGEST_PIECE, left / _PIECES_IN_FREE_MEMORY) // each)
        if piece < min(_FEWEST_ROWS, n_points):
            raise MemoryError(
                f"{free / 2**20:.0f} MiB are free on {self.device}, too little to stream X through "
                f"it: {_BYTES_KEPT} bytes stay there for each of {n_points} points, and each of a "
                f"piece takes {each}. Free memory there, or divide X among several devices"
            )
        return piece

    def _copied_ahead(self, n_rows: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield pieces while a stream of its own copies the next through pinned memory."""
        copier = torch.cuda.Stream(self.device)
        slots: list[Any] = [None, None]
        pieces = list(blocks(len(self.points), n_rows))
        ahead = self._begin_copy(pieces[0], copier, slots, 0)
        for number, rows in enumerate(pieces):
            there, is_there = ahead
            if number + 1 < len(pieces):
                ahead = self._begin_copy(pieces[number + 1], copier, slots, (number + 1) % 2)
            current = torch.cuda.current_stream(self.device)
            current.wait_event(is_there)
            there.record_stream(current)
            yield rows, there

    def _begin_copy(
        self, rows: slice, copier: Any, slots: list[Any], slot: int
    ) -> tuple[torch.Tensor, Any]:
        pinned = self.points[rows]
        if not pinned.is_pinned():
            if slots[slot] is None:
                room = (self._rows_of_piece, self.points.shape[1])
                options = {"dtype": pinned.dtype, "device": "cpu", "pin_memory": True}
                slots[slot] = (torch.empty(room, **options), None)
            staging, has_left = slots[slot]
            if has_left is not None:
                has_left.synchronize()
            pinned = staging[: len(pinned)].copy_(pinned)
        with torch.cuda.stream(copier):
            there = pinned.to(self.device, non_blocking=True)
            is_there = torch.cuda.Event()
            is_there.record(copier)
        if slots[slot] is not None:
            slots[slot] = (slots[slot][0], is_there)
        return there, is_there


class _Threads:
    """Keep the numbers of threads asked for, and PyTorch's number before the first of them.

    PyTorch has a number for each thread of Python, and a new thread starts with the number that any
    thread set last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._asked: list[int] = []
        self._at_rest = 1

    def enter(self, n_threads: int) -> int:
        """Set the number, and return the one to restore for this thread."""
        with self._lock:
            before, depth = torch.get_num_threads(), getattr(self._here, "depth", 0)
            if not self._asked:
                self._at_rest = before
            is_of_others = depth == 0 and before in self._asked
            self._here.depth = depth + 1
            self._asked.append(n_threads)
            torch.set_num_threads(n_threads)
            return self._at_rest if is_of_others else before

    def leave(self, n_threads: int, before: int) -> None:
        with self._lock:
            self._here.depth -= 1
            self._asked.remove(n_threads)
            torch.set_num_threads(before)


_THREADS = _Threads()


@contextlib.contextmanager
def threads_of_torch(n_threads: int) -> Iterator[None]:
    """Let PyTorch use this many threads for the CPU work of this thread."""
    before = _THREADS.enter(n_threads)
    try:
        yield
    finally:
        _THREADS.leave(n_threads, before)
