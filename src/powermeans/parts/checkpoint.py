"""Checkpoints: what parts have given, written down as it comes, so that a killed fit can go on.

All that a fit knows of its points are the results of calls on the parts. A journal keeps them, each
with a digest of its call. When the same fit runs again it gets the same answers without a look at
the points until the journal ends, and is then as far as the other was, bit for bit: with the same
centers and random numbers, in the middle of the same search.
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
from powermeans.sources.opening import Checkpoint
from powermeans.sums import ColumnMoments, Spread, Sums
from powermeans.system.atomic_write import check_folder
from powermeans.system.fingerprint import fingerprint
from powermeans.system.values import ARRAY, DICT, TUPLE, Decoder, Encoder, Form, form_of_dataclasses

Found = TypeVar("Found")

_MAGIC = b"powermeans checkpoint 2\n"
# Length of the contents and their checksum.
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
    """A file is no checkpoint of the fit that was to go on, or another fit has it."""

    def __init__(self, path: Path, problem: str, *way_out: str | Argument) -> None:
        super().__init__(problem, *way_out, argument="checkpoint", value=os.fspath(path))
        self.args = (path, problem, *way_out)


def recorded(kind: type[Result]) -> type[Result]:
    """Let values of a dataclass be written down, as a decorator."""
    _KINDS[kind.__name__] = kind
    return kind


class Claim:
    """Holds the file of a checkpoint, so that no other fit writes to it.

    A new file vanishes again if nothing is written to it. The system frees what a killed process
    held; a process that is forked holds nothing. Where the system knows no locks, as on Windows
    and on some network disks, several fits may hold the same file.
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
        """Let others have the file; more than once does no harm."""
        if self._number < 0:
            return
        is_unused = self._is_new and not os.fstat(self._number).st_size
        if sys.platform == "win32":
            self.forget()  # since what is open cannot be removed there
        if is_unused:
            with suppress(OSError):
                self.path.unlink()
        self._unlock()
        self.forget()

    def _unlock(self) -> None:
        # A process that was forked would keep the lock of a file that is only closed.
        if sys.platform == "win32" or self._number < 0:
            return
        import fcntl

        with suppress(OSError):  # there may be no locks on this disk
            fcntl.flock(self._number, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Close the file, but leave the lock to a process that this one was forked from."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)

    def _is_held(self) -> bool:
        """Hold the file, or return False if it is no longer the one of that name."""
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
            return True  # there are no locks on this disk
        try:
            return os.path.samestat(os.fstat(self._number), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _refuse_what_is_no_checkpoint(self) -> None:
        start = os.read(self._number, len(_MAGIC)) if self.path.is_file() else b"?"
        if not _MAGIC.startswith(start):
            raise CheckpointError(self.path, "is no checkpoint", "name another file")


_CLAIMS: WeakSet[Claim] = WeakSet()


def _leave_all_to_parent() -> None:
    for claim in list(_CLAIMS):
        claim.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_all_to_parent)


class Journal:
    """A file of results in the order in which they were asked for, written every few seconds.

    It is written only at its end, and a record that was cut short there does not count: at any
    moment all but the last seconds are safe. The fingerprint is that of the points, of how they
    are cut into parts, and of what looks at them. `when_used` is called once all that is there
    turns out to be of the same fit.
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
        self._waiting: list[bytes] = []
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
        """Return whether there may be results already; if not, begin the file."""
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
        # It is new, or the process that began it was killed here.
        self._file.seek(0)
        self._waiting.append(head)
        self.write()
        return False

    def answer(self, question: str) -> tuple[bool, Any]:
        """Return whether the next result is known, and that; it must answer the same question."""
        if self._is_left or not self._is_replaying:
            return False, None
        contents = self._next()
        if contents is None:
            self._is_replaying = False
            self._report_use()
            return False, None
        asked, result = _decoded(contents)
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
        """Return what is known, or else what is found now, without this journal, and noted."""
        is_known, result = self.answer(question)
        if not is_known:
            result = find()
            self.note(question, result)
        found: Found = result
        return found

    def note(self, question: str, result: Any) -> None:
        """Write a result down, at the latest with the next one after the seconds are over."""
        if self._is_left:
            return
        self._waiting.append(_record(_encoded(question, result)))
        if time.monotonic() - self._written >= self._seconds:
            self.write()

    def leave(self) -> None:
        """Neither answer nor note anything from here on.

        A fit that ends early asks for what one that goes on does not ask for in that place.
        """
        self._is_left = True

    def write(self) -> None:
        """Write all that waits to the disk itself; if that fails, the file stays as it was."""
        start = self._file.tell()
        try:
            self._file.writelines(self._waiting)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting.clear()
        except OSError as error:
            self._take_back(start)
            raise OSError(
                error.errno,
                f"{error.strerror}: the checkpoint was not written on; make room for it, and the "
                "same fit goes on from what is there",
                str(self._path),
            ) from error
        except BaseException:
            self._take_back(start)
            self._file = open(self._path, "r+b")  # noqa: SIM115 - closed by `close`
            self._file.seek(start)
            raise
        self._written = time.monotonic()

    def close(self) -> None:
        """Write all that waits, and let go of the file."""
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
        """Close the file without what was written since, even if that is still in memory."""
        self.leave()
        raw = self._file.raw
        with suppress(OSError):
            raw.truncate(start)
        with suppress(OSError):
            raw.close()

    def _next(self) -> bytes | None:
        """Return the next record, or None after cutting off what is not a whole one."""
        start = self._file.tell()
        if (contents := self._whole()) is None:
            self._file.seek(start)
            self._file.truncate()
        return contents

    def _whole(self) -> bytes | None:
        """Return the next record if it is whole."""
        start = self._file.tell()
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            n_bytes, checksum = _HEAD.unpack(head)
            if n_bytes <= self._path.stat().st_size - start:
                contents = self._file.read(n_bytes)
                if len(contents) == n_bytes and zlib.crc32(contents) == checksum:
                    return contents
        return None


class JournaledExecutor:
    """Writes results down, and asks for them again only once the journal ends.

    Results as long as the points are not written down, but found anew.
    """

    def __init__(self, executor: Executor, journal: Journal) -> None:
        self._executor, self._journal = executor, journal

    @property
    def opener(self) -> PartOpener:
        """How the parts are opened."""
        return self._executor.opener

    @property
    def reads_each_time(self) -> bool:
        """Whether each call that is not known reads the parts again."""
        return self._executor.reads_each_time

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield what a call gives for each part, from the journal as far as that goes."""
        if getattr(call, "is_long", False):
            return self._executor.each(call, numbers)
        question = _digest(["each", call, None if numbers is None else list(numbers)])
        return iter(self._journal.once(question, lambda: list(self._executor.each(call, numbers))))

    def total(self, call: Call[Any]) -> Any:
        """Return what a call gives, added up over all parts."""
        return self._journal.once(_digest(["total", call]), lambda: self._executor.total(call))

    def once(self, what: str, find: Callable[[], Found]) -> Found:
        """Return what was found from results that are themselves too long to be written down."""
        return self._journal.once(_digest(["once", what]), find)


class Recording:
    """The checkpoint of a fit, if any, held from before its points are opened until it ends."""

    def __init__(self, checkpoint: Checkpoint | None, random_state: object = None) -> None:
        self._checkpoint = checkpoint
        self._claim: Claim | None = None
        self._journal: Journal | None = None
        self._executor: JournaledExecutor | None = None
        if checkpoint is not None:
            _refuse_chance(random_state)
            self._claim = Claim(checkpoint.path)

    def journaled(self, executor: Executor, fingerprint: Callable[[], str]) -> Executor:
        """Return an executor that writes its results down, for points of this fingerprint."""
        if self._checkpoint is None or self._claim is None:
            return executor
        of_fit = repr([version("powermeans"), fingerprint(), executor.opener.fingerprint()])
        seconds, when_used = self._checkpoint.seconds, self._checkpoint.when_used
        self._journal = Journal(self._claim, seconds, of_fit, when_used)
        self._executor = JournaledExecutor(executor, self._journal)
        return self._executor

    def once(self, what: str, find: Callable[[], Found]) -> Found:
        """Return what is written down, or what is found now."""
        return find() if self._executor is None else self._executor.once(what, find)

    def leave(self) -> None:
        """Write nothing more down, since a fit that goes on would not ask the same from here."""
        if self._journal is not None:
            self._journal.leave()

    def close(self) -> None:
        """Write what waits and let go of the file, or warn if that fails."""
        try:
            if self._journal is not None:
                self._journal.close()
        except OSError as error:
            warn_caller(
                f"{error.filename}: {error.strerror}. The fit itself is not touched by that",
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
            f"random_state={random_state!r} differs from run to run, and a fit that goes on from "
            "a checkpoint is the same fit once more: pass an int"
        )


def _digest(question: Any) -> str:
    return hashlib.sha256(fingerprint(question).encode()).hexdigest()


def _record(contents: bytes) -> bytes:
    return _HEAD.pack(len(contents), zlib.crc32(contents)) + contents


# A record is the length of its JSON, the JSON with the form of each array, and then these arrays.


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
