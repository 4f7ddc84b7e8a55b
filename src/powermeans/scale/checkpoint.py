"""Checkpoints: results of calls on parts, written to a file, so that a killed fit can go on.

A fit knows its points only by such results. A journal keeps each result with a digest of its call.
When the same fit runs again, the journal answers its calls until it ends; the fit is then exactly
where the killed one was, with the same centers and random numbers.
"""

import hashlib
import json
import math
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version
from io import FileIO
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import Argument, ArgumentError, warn_caller
from powermeans.mathematics.sums import RECORDED
from powermeans.scale.executors import Call, Executor, Result
from powermeans.scale.parted_data import Checkpoint
from powermeans.system.atomic_write import check_folder
from powermeans.system.containers import to_array
from powermeans.system.fingerprint import fingerprint

Found = TypeVar("Found")

_MAGIC = b"powermeans checkpoint 4\n"


class CheckpointError(ArgumentError):
    """A file is no checkpoint of this fit, or another fit uses it."""

    def __init__(self, path: Path, problem: str, *way_out: str | Argument) -> None:
        way_out = way_out or ("name another file, or remove this one to begin anew",)
        super().__init__(problem, *way_out, argument="checkpoint", value=os.fspath(path))


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file that begins as a checkpoint does."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


class Journal:
    """A file of results in the order of their calls, locked against other fits until it is closed.

    The file only grows, and an incomplete record at its end does not count, so that a crash loses
    only the time since the last write. The system releases the lock of a killed process. Where it
    has no locks, as on Windows and some network disks, nothing prevents a second fit.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float = 60.0) -> None:
        self.path, self._seconds, self._written = Path(path), seconds, time.monotonic()
        check_folder(self.path)
        self._buffer: list[bytes] = []
        self._is_replaying = self._is_left = False
        # Without a buffer, so that a failed write can be taken back.
        self._file: FileIO = open(path, "a+b", buffering=0)  # noqa: SIM115 - `close` closes it
        _OPEN.add(self)
        try:
            _lock(self._file, self.path)
            self._refuse_other_files()
        except BaseException:
            self.close()
            raise

    def _refuse_other_files(self) -> None:
        self._file.seek(0)
        start = self._file.read(len(_MAGIC)) if self.path.is_file() else b"?"
        if start.startswith(_MAGIC.rstrip(b"0123456789\n")) and not _MAGIC.startswith(start):
            raise CheckpointError(self.path, "is a checkpoint of another version of powermeans")
        if not _MAGIC.startswith(start):
            raise CheckpointError(self.path, "is no checkpoint", "name another file")

    def begin(self, fit: str) -> Self:
        """Answer calls from the file if it is of this fit; if it is new, write its head.

        `fit` tells the points, their parts and how they are opened.
        """
        contents = fit.encode()
        self._checksum = zlib.crc32(contents)
        head = _MAGIC + record(contents)
        self._file.seek(0)
        there = self._file.read(len(head))
        self._is_replaying = there == head
        if not head.startswith(there):
            raise CheckpointError(
                self.path,
                "is no checkpoint of a fit of these rows, cut into parts in this way, with this "
                "divergence and this version of powermeans",
            )
        if not self._is_replaying:  # the file is new, or a process was killed while it began it
            self._file.truncate(0)
            self._buffer.append(head)
            self.write()
        return self

    def answer(self, question: str) -> tuple[bool, Any]:
        """Return whether the next result is known, and the result; raise if its call differs."""
        if self._is_left or not self._is_replaying:
            return False, None
        contents = self._next()
        if contents is None:
            self._is_replaying = False
            return False, None
        try:
            asked, result = decoded(contents)
        except Exception as error:
            problem = f"contains what no fit wrote ({type(error).__name__})"
            raise CheckpointError(self.path, problem) from error
        if asked != question:
            raise CheckpointError(
                self.path,
                "is a checkpoint of a fit with other parameters",
                "pass those again, with the same integer as ",
                Argument("random_state"),
                ", or remove the file to begin anew",
            )
        return True, result

    def once(self, question: str, find: Callable[[], Found]) -> Found:
        """Return the known result, or find it without this journal and note it."""
        is_known, result = self.answer(question)
        if not is_known:
            result = find()
            self.note(question, result)
        found: Found = result
        return found

    def note(self, question: str, result: Any) -> None:
        """Put a result into the buffer, and write the buffer if the last write is old enough."""
        if self._is_left:
            return
        self._buffer.append(record(encoded(question, result), self._checksum))
        if time.monotonic() - self._written >= self._seconds:
            self.write()

    def leave(self) -> None:
        """Stop answering and noting, since a fit that ends early makes calls of its own."""
        self._is_left = True

    def write(self) -> None:
        """Write the buffer to the disk and sync it; if that fails, restore the file."""
        n_bytes = self._n_bytes()
        try:
            left = memoryview(b"".join(self._buffer))
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException as error:
            self.leave()
            with suppress(OSError):
                self._file.truncate(n_bytes)
            if not isinstance(error, OSError):
                raise
            self._buffer.clear()
            raise OSError(
                error.errno,
                f"{error.strerror}: the checkpoint was not written; free some space, and run the "
                "same fit again to continue from it",
                str(self.path),
            ) from error
        self._buffer.clear()
        self._written = time.monotonic()

    def close(self) -> None:
        """Write the buffer, and release the lock and the file."""
        if self._file.closed:
            return
        try:
            if self._buffer:
                self.write()
        finally:
            _unlock(self._file)
            self._file.close()

    def _n_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _next(self) -> bytes | None:
        """Return the next record; if it is incomplete or damaged, cut it off and return None."""
        start = self._file.tell()
        head = self._file.read(HEAD.size)
        if len(head) == HEAD.size:
            n_bytes, checksum = HEAD.unpack(head)
            if n_bytes <= self._n_bytes() - self._file.tell():
                contents = self._file.read(n_bytes)
                if zlib.crc32(contents, self._checksum) == checksum:
                    return contents
        self._file.seek(start)
        self._file.truncate()
        return None


def _lock(file: FileIO, path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        way_out = "wait until that has ended, or name another file"
        raise CheckpointError(path, "is in use by another fit", way_out) from None
    except OSError:
        pass  # this disk has no locks


def _unlock(file: FileIO) -> None:
    # After a fork, closing the file is not enough: the other process would keep the lock.
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):  # this disk may have no locks
            fcntl.flock(file, fcntl.LOCK_UN)


_OPEN: WeakSet[Journal] = WeakSet()


def _leave_all_to_parent() -> None:
    for journal in list(_OPEN):
        journal._file.close()  # the parent keeps the lock


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_all_to_parent)


class JournaledExecutor:
    """Takes results from a journal; once it ends, calls another executor and notes the results.

    Results as long as the points are never noted, but those that `once` finds.
    """

    def __init__(self, executor: Executor, journal: Journal) -> None:
        self._executor, self.journal = executor, journal
        self.opener, self.reads_each_time = executor.opener, executor.reads_each_time

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on each part, from the journal if it is known."""
        if getattr(call, "is_long", False):
            return self._executor.each(call, numbers)
        question = _digest(["each", call, None if numbers is None else list(numbers)])
        return iter(self.journal.once(question, lambda: list(self._executor.each(call, numbers))))

    def total(self, call: Call[Any]) -> Any:
        """Return the sum of the results of a call on all parts."""
        return self.journal.once(_digest(["total", call]), lambda: self._executor.total(call))


def open_journal(checkpoint: Checkpoint | None, random_state: object) -> Journal | None:
    """Open the journal of a fit before its points, locked until it ends; None without one."""
    if checkpoint is None:
        return None
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state={random_state!r} differs from run to run, and a checkpoint needs the "
            "same random numbers in each run: pass an int"
        )
    return Journal(checkpoint.path, checkpoint.seconds)


def close_journal(journal: Journal | None) -> None:
    """Write the buffer and release the file; warn if that fails."""
    try:
        if journal is not None:
            journal.close()
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}. The fit itself is complete"
        warn_caller(problem, RuntimeWarning)


def journaled(
    executor: Executor, journal: Journal | None, fingerprint: Callable[[], str]
) -> Executor:
    """Return an executor that notes its results, for points of this fingerprint."""
    if journal is None:
        return executor
    fit = [version("powermeans"), fingerprint(), executor.opener.fingerprint()]
    return JournaledExecutor(executor, journal.begin(repr(fit)))


def once(executor: Executor, what: str, find: Callable[[], Found]) -> Found:
    """Find a result that follows from others too long for a journal; a journal keeps it."""
    if not isinstance(executor, JournaledExecutor):
        return find()
    return executor.journal.once(_digest(["once", what]), find)


def _digest(question: Any) -> str:
    return hashlib.sha256(fingerprint(question).encode()).hexdigest()


# Records: results of calls on parts as bytes, which execute no code when read. A record has a head
# and contents: the length of some JSON, the JSON, in which arrays are dtypes and shapes, and the
# values of the arrays one after the other.


# Length of the contents and their checksum, which goes on from that of the first record, so that
# records of the file of another fit do not count.
HEAD = struct.Struct("<QI")


def record(contents: bytes, checksum_before: int = 0) -> bytes:
    """Return contents with their length and checksum before them."""
    return HEAD.pack(len(contents), zlib.crc32(contents, checksum_before)) + contents


def encoded(question: str, result: Any) -> bytes:
    """Return the contents of a record: the digest of a call, and its result."""
    arrays: list[NDArray[Any]] = []

    def form_of(value: Any) -> Any:
        value = to_array(value)
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": [value.dtype.str, value.shape]}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        kind = type(value)
        assert RECORDED.get(kind.__name__) is kind, f"{kind} is not recorded"
        # What is given by name is not known of points in parts.
        by_place = [field.name for field in fields(kind) if not field.kw_only]
        return {kind.__name__: [getattr(value, name) for name in by_place]}

    words = json.dumps([question, result], default=form_of).encode()
    values = b"".join(array.tobytes() for array in arrays)
    return len(words).to_bytes(8, "little") + words + values


def decoded(contents: bytes) -> tuple[str, Any]:
    """Return what `encoded` made contents of; raise any error for other contents."""
    at = 8 + int.from_bytes(contents[:8], "little")
    words = contents[8:at]

    def value_of(form: dict[str, Any]) -> Any:
        nonlocal at
        ((name, content),) = form.items()
        if name == "dtype":
            return np.dtype(content)
        if name != "array":
            return RECORDED[name](*content)
        dtype, shape = content
        values = np.frombuffer(contents, np.dtype(dtype), math.prod(shape), at)
        at += values.nbytes
        return values.reshape(shape).copy()

    question, result = json.loads(words, object_hook=value_of)
    if at != len(contents):
        raise ValueError(f"its arrays end at byte {at} of {len(contents)}")
    return question, result
