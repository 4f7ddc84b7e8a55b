"""Checkpoints: results of calls on parts, written to a file, so that a killed fit can go on.

A fit knows its points only by such results. A journal keeps each result with a digest of its call.
When the same fit runs again, the journal answers its calls until it ends; the fit is then exactly
where the killed one was, with the same centers and random numbers.
"""

from __future__ import annotations

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
from importlib.metadata import version
from io import BufferedRandom
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeVar
from weakref import WeakSet

import numpy as np

from powermeans.critical import Moments
from powermeans.errors import Argument, ArgumentError, warn_caller
from powermeans.inputs.parts import PartFacts
from powermeans.parts.executors import Call, Executor, PartOpener, Result
from powermeans.rows.cosine import UnitSums
from powermeans.rows.observed import ObservedSums
from powermeans.sources.parted_data import Checkpoint
from powermeans.sums import ColumnMoments, Spread, Sums
from powermeans.system.atomic_write import check_folder
from powermeans.system.fingerprint import fingerprint
from powermeans.system.values import ARRAY, DICT, TUPLE, Decoder, Encoder, Form, form_of_dataclasses

Found = TypeVar("Found")

_NAME = b"powermeans checkpoint "
_MAGIC = _NAME + b"3\n"
# Length of the contents and their checksum, which goes on from that of the first record, so that
# records of the file of another fit do not count.
_HEAD = struct.Struct("<QI")
_N_WORDS = struct.Struct("<Q")
_DTYPE = Form(
    "dtype",
    lambda value: isinstance(value, np.dtype),
    lambda encoder, value, name: value.str,
    lambda decoder, text: np.dtype(text),
)
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (ColumnMoments, Moments, ObservedSums, PartFacts, Spread, Sums, UnitSums)
}
_FORMS = (form_of_dataclasses(_KINDS), TUPLE, DICT, ARRAY, _DTYPE)


class CheckpointError(ArgumentError):
    """A file is no checkpoint of this fit, or another fit uses it."""

    def __init__(self, path: Path, problem: str, *way_out: str | Argument) -> None:
        super().__init__(problem, *way_out, argument="checkpoint", value=os.fspath(path))


def recorded(kind: type[Result]) -> type[Result]:
    """Let a checkpoint hold values of a dataclass (a decorator)."""
    known = _KINDS.setdefault(kind.__name__, kind)
    assert known.__module__ == kind.__module__, f"{known} and {kind} have one name"
    _KINDS[kind.__name__] = kind
    return kind


class Claim:
    """A lock on the file of a checkpoint, so that no other fit writes to it.

    A new file to which nothing is written is removed. The system releases the lock of a killed
    process, and forked processes drop it. Where the system has no locks, as on Windows and some
    network disks, nothing prevents a second fit.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_folder(self.path)
        self._is_new = not self.path.exists()
        self._number = self._opened()
        _CLAIMS.add(self)
        try:
            while not self._is_held():
                self.forget()
                self._number = self._opened()
            self._refuse_what_is_no_checkpoint()
        except BaseException:
            self._unlock()
            self.forget()
            raise

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._number < 0:
            return
        is_unused = self._is_new and not os.fstat(self._number).st_size
        if sys.platform == "win32":
            self.forget()  # Windows cannot remove an open file
        if is_unused:
            with suppress(OSError):
                self.path.unlink()
        self._unlock()
        self.forget()

    def _unlock(self) -> None:
        # After a fork, closing the file is not enough: the other process would keep the lock.
        if sys.platform == "win32" or self._number < 0:
            return
        import fcntl

        with suppress(OSError):  # this disk may have no locks
            fcntl.flock(self._number, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Close the file, but leave the lock to the parent of a forked process."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)

    def _is_held(self) -> bool:
        """Lock the file; return False if its name belongs to another file by now."""
        if sys.platform == "win32":
            return True
        import fcntl

        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                self.path,
                "is in use by another fit",
                "wait until that has ended, or name another file",
            ) from None
        except OSError:
            return True  # this disk has no locks
        try:
            return os.path.samestat(os.fstat(self._number), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _refuse_what_is_no_checkpoint(self) -> None:
        start = os.read(self._number, len(_MAGIC)) if self.path.is_file() else b"?"
        if _MAGIC.startswith(start):
            return
        if start.startswith(_NAME):
            raise CheckpointError(
                self.path,
                "is a checkpoint of another version of powermeans",
                "name another file, or remove this one to begin anew",
            )
        raise CheckpointError(self.path, "is no checkpoint", "name another file")


_CLAIMS: WeakSet[Claim] = WeakSet()


def _leave_all_to_parent() -> None:
    for claim in list(_CLAIMS):
        claim.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_all_to_parent)


class Journal:
    """A file of results in the order of their calls, written every few seconds.

    The file only grows, and an incomplete record at its end does not count, so that a crash loses
    only the last seconds. The fingerprint tells the points, their parts and how they are opened.
    `when_used` is called once all records that were there have answered a call.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Claim,
        seconds: float,
        fingerprint: str,
        when_used: Callable[[], object] | None = None,
    ) -> None:
        self._claim = place if isinstance(place, Claim) else Claim(place)
        self._path, self._seconds = self._claim.path, seconds
        self._written = time.monotonic()
        self._buffer: list[bytes] = []
        self._is_left = False
        self._is_used, self._when_used = False, when_used
        self._file: BufferedRandom = open(self._path, "r+b")  # noqa: SIM115 - closed by `close`
        self._n_bytes = self._path.stat().st_size
        try:
            self._is_replaying = self._begin(fingerprint.encode())
        except BaseException:
            self._file.close()
            self._claim.release()
            raise

    def _begin(self, fingerprint: bytes) -> bool:
        """Return whether the file may hold results; if it is new, write its head."""
        self._checksum = zlib.crc32(fingerprint)
        head = _MAGIC + _record(fingerprint)
        there = self._file.read(len(head))
        if there == head:
            return True
        if not head.startswith(there):
            raise CheckpointError(
                self._path,
                "is no checkpoint of a fit of these rows, cut into parts in this way, with this "
                "divergence and this version of powermeans",
                "name another file, or remove this one to begin anew",
            )
        # The file is new, or a process was killed while it wrote the head.
        self._file.seek(0)
        self._buffer.append(head)
        self.write()
        return False

    def answer(self, question: str) -> tuple[bool, Any]:
        """Return whether the next result is known, and the result; raise if its call differs."""
        if self._is_left or not self._is_replaying:
            return False, None
        contents = self._next()
        if contents is None:
            self._is_replaying = False
            self._report_use()
            return False, None
        try:
            asked, result = _decoded(contents)
        except Exception as error:
            raise CheckpointError(
                self._path,
                f"holds what no fit wrote ({type(error).__name__})",
                "name another file, or remove this one to begin anew",
            ) from error
        if asked != question:
            raise CheckpointError(
                self._path,
                "is a checkpoint of a fit with other parameters",
                "pass those again, with the same integer as ",
                Argument("random_state"),
                ", or remove the file to begin anew",
            )
        self._is_used = True
        if self._file.tell() == self._n_bytes:
            self._report_use()
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
        self._buffer.append(_record(_encoded(question, result), self._checksum))
        if time.monotonic() - self._written >= self._seconds:
            self.write()

    def leave(self) -> None:
        """Stop answering and noting, since a fit that ends early makes calls of its own."""
        self._is_left = True

    def write(self) -> None:
        """Write the buffer to the disk and sync it; if that fails, restore the file."""
        start = self._file.tell()
        try:
            self._file.writelines(self._buffer)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._buffer.clear()
        except OSError as error:
            self._take_back(start)
            raise OSError(
                error.errno,
                f"{error.strerror}: the checkpoint was not written; make room for it, and run the "
                "same fit again to go on from what it holds",
                str(self._path),
            ) from error
        except BaseException:
            self._take_back(start)
            self._file = open(self._path, "r+b")  # noqa: SIM115 - closed by `close`
            self._file.seek(start)
            raise
        self._written = time.monotonic()

    def close(self) -> None:
        """Write the buffer, and release the file."""
        try:
            if not self._file.closed:
                try:
                    self.write()
                finally:
                    self._file.close()
        finally:
            self._claim.release()

    def _report_use(self) -> None:
        tell, self._when_used = self._when_used, None
        if self._is_used and tell is not None:
            tell()

    def _take_back(self, start: int) -> None:
        """Cut the file off at `start` and close it, without its unwritten buffer."""
        self.leave()
        raw = self._file.raw
        with suppress(OSError):
            raw.truncate(start)
        with suppress(OSError):
            raw.close()

    def _next(self) -> bytes | None:
        """Return the next record; if it is incomplete, cut it off and return None."""
        start = self._file.tell()
        if (contents := self._next_if_complete()) is None:
            self._file.seek(start)
            self._file.truncate()
        return contents

    def _next_if_complete(self) -> bytes | None:
        start = self._file.tell()
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            n_bytes, checksum = _HEAD.unpack(head)
            if n_bytes <= self._path.stat().st_size - start:
                contents = self._file.read(n_bytes)
                if len(contents) == n_bytes and zlib.crc32(contents, self._checksum) == checksum:
                    return contents
        return None


class JournaledExecutor:
    """Takes results from a journal; once it ends, calls another executor and notes the results.

    Results as long as the points are never noted.
    """

    def __init__(self, executor: Executor, journal: Journal) -> None:
        self._executor, self._journal = executor, journal

    @property
    def opener(self) -> PartOpener:
        """How parts become rows."""
        return self._executor.opener

    @property
    def reads_each_time(self) -> bool:
        """True if each call without a known result reads the parts again."""
        return self._executor.reads_each_time

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on each part, from the journal if it is known."""
        if getattr(call, "is_long", False):
            return self._executor.each(call, numbers)
        question = _digest(["each", call, None if numbers is None else list(numbers)])
        return iter(self._journal.once(question, lambda: list(self._executor.each(call, numbers))))

    def total(self, call: Call[Any]) -> Any:
        """Return the sum of the results of a call on all parts."""
        return self._journal.once(_digest(["total", call]), lambda: self._executor.total(call))

    def once(self, what: str, find: Callable[[], Found]) -> Found:
        """Return a result that follows from others that are too long for the journal."""
        return self._journal.once(_digest(["once", what]), find)


class Recording:
    """The checkpoint of a fit, if any, locked from before its points are opened until it ends."""

    def __init__(self, checkpoint: Checkpoint | None, random_state: object = None) -> None:
        self._checkpoint = checkpoint
        self._claim: Claim | None = None
        self._journal: Journal | None = None
        self._executor: JournaledExecutor | None = None
        if checkpoint is not None:
            _refuse_chance(random_state)
            self._claim = Claim(checkpoint.path)

    def journaled(self, executor: Executor, fingerprint: Callable[[], str]) -> Executor:
        """Return an executor that notes its results, for points of this fingerprint."""
        if self._checkpoint is None or self._claim is None:
            return executor
        of_fit = repr([version("powermeans"), fingerprint(), executor.opener.fingerprint()])
        seconds, when_used = self._checkpoint.seconds, self._checkpoint.when_used
        self._journal = Journal(self._claim, seconds, of_fit, when_used)
        self._executor = JournaledExecutor(executor, self._journal)
        return self._executor

    def once(self, what: str, find: Callable[[], Found]) -> Found:
        """Return the known result, or find it now."""
        return find() if self._executor is None else self._executor.once(what, find)

    def leave(self) -> None:
        """Note nothing more, since a fit that goes on would make other calls."""
        if self._journal is not None:
            self._journal.leave()

    def close(self) -> None:
        """Write the buffer and release the file; warn if that fails."""
        try:
            if self._journal is not None:
                self._journal.close()
        except OSError as error:
            warn_caller(
                f"{error.filename}: {error.strerror}. The fit itself is complete",
                RuntimeWarning,
            )
        finally:
            if self._claim is not None:
                self._claim.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _refuse_chance(random_state: object) -> None:
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state={random_state!r} differs from run to run, and a checkpoint needs the "
            "same random numbers in each run: pass an int"
        )


def _digest(question: Any) -> str:
    return hashlib.sha256(fingerprint(question).encode()).hexdigest()


def _record(contents: bytes, checksum_before: int = 0) -> bytes:
    return _HEAD.pack(len(contents), zlib.crc32(contents, checksum_before)) + contents


# A record holds the length of its JSON, the JSON with dtype and shape of each array, the arrays.


def _encoded(question: str, result: Any) -> bytes:
    encoder = Encoder(_FORMS)
    tree = encoder.encode(result, "result")
    arrays = encoder.arrays
    forms = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    words = json.dumps([question, tree, forms]).encode()
    values = b"".join(array.tobytes() for array in arrays.values())
    return _N_WORDS.pack(len(words)) + words + values


def _decoded(contents: bytes) -> tuple[str, Any]:
    start = _N_WORDS.size + _N_WORDS.unpack_from(contents)[0]
    question, tree, forms = json.loads(contents[_N_WORDS.size : start])
    arrays = {}
    for name, (dtype, shape) in forms.items():
        values = np.frombuffer(contents, np.dtype(dtype), math.prod(shape), start)
        arrays[name] = values.reshape(shape).copy()
        start += values.nbytes
    return question, Decoder(_FORMS, arrays.__getitem__, "the checkpoint").decode(tree)
