"""Where the parts of the rows are worked on, and in which order their results add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.rows import open_batch
from powermeans.rows.native import Known, Team, start_team
from powermeans.rows.on_device import open_on_device
from powermeans.rows.protocol import PartRows
from powermeans.sources.pass_clock import Tell
from powermeans.sums import added
from powermeans.system.fingerprint import NoFingerprintError, fingerprint
from powermeans.types import FloatArray, Points, SparsePoints

Result = TypeVar("Result")
Item = TypeVar("Item")

Call = Callable[[PartRows, int], Result]
"""From the rows of a part and its number to what it gives. It can be pickled."""

# What is remembered of a part of so many rows is less than a hundredth of it.
_FEWEST_ROWS_REMEMBERED = 1024

Chunk = tuple[Points | SparsePoints, FloatArray | None]
"""The points of a part, and their weights."""


@dataclass(frozen=True, slots=True)
class PartOpener:
    """How the points of a part become rows. It can be pickled.

    Attributes
    ----------
    divergence : Bregman or str
        One of which the center is a mean, so that sums add.
    has_missing : bool
        Whether NaN stands for entries that are missing.
    device : str, optional
        A device of PyTorch to work at, found where the part is; None is the compiled core.
    """

    divergence: Divergence = "squared_euclidean"
    has_missing: bool = False
    device: str | None = None

    def __post_init__(self) -> None:
        if self.divergence == "manhattan":
            raise ValueError(
                'divergence="manhattan" has medians for centers, and medians of parts do not add '
                "up to those of all: pass the points as one array in memory"
            )

    def open(
        self,
        points: Points | SparsePoints,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
    ) -> PartRows:
        """The rows of a part, the same whether they are kept or opened for each sweep anew."""
        if self.device is not None:
            return open_on_device(
                points, sample_weight, device=self.device, divergence=self.divergence
            )
        return open_batch(
            points,
            sample_weight,
            n_threads=n_threads,
            team=team,
            known=known,
            divergence=self.divergence,
            has_missing=self.has_missing,
        )

    def fingerprint(self) -> str:
        """Return the same text for the same opener in every process."""
        try:
            return fingerprint([self.divergence, self.has_missing, self.device])
        except NoFingerprintError as error:
            raise ValueError(
                f"divergence={self.divergence!r:.200} has {error.args[0]!r:.200}, which another "
                "process cannot tell from others, so that no fit with it can go on from a "
                "checkpoint: let attributes be numbers, strings, arrays, lists and plain "
                "functions, or leave checkpoint out"
            ) from None


class Executor(Protocol):
    """Where parts are. There is at least one, none is empty, and their order never changes."""

    @property
    def opener(self) -> PartOpener:
        """How the parts are opened."""
        ...

    @property
    def reads_each_time(self) -> bool:
        """Whether each call reads the parts again."""
        ...

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """What a call gives for each part in their order, or for those of rising numbers."""
        ...

    def total(self, call: Call[Any]) -> Any:
        """What a call gives, added up over all parts as `added` does it."""
        ...


class MemoryExecutor:
    """Parts in this process's memory, opened once.

    Parameters
    ----------
    chunks : iterable of (points, weights)
        Held as they are, in the form that the border leaves points in.
    n_threads : int, optional
        See `powermeans.system.threads.effective_n_threads`.
    tell : callable, optional
        Told how far each pass over all parts is.
    """

    reads_each_time = False

    def __init__(
        self,
        chunks: Iterable[Chunk],
        opener: PartOpener,
        *,
        n_threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.opener, self._tell, team = opener, tell, start_team(n_threads)
        self._rows = [opener.open(points, weights, team=team) for points, weights in chunks]

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """One part after the other."""
        for number in range(len(self._rows)) if numbers is None else numbers:
            result = call(self._rows[number], number)
            if self._tell is not None and numbers is None:
                self._tell(number + 1, len(self._rows))
            yield result

    def total(self, call: Call[Any]) -> Any:
        """What a call gives, added up over all parts."""
        return added(self.each(call))


class Chunks(Protocol):
    """Parts that can be read again and again, each time cut in the same places."""

    def read(self, numbers: Sequence[int] | None = None) -> Iterator[Chunk]:
        """All parts in their order, or those of rising numbers."""
        ...

    @property
    def n_parts(self) -> int | None:
        """How many there are, where that is known."""
        ...

    def recheck(
        self, number: int, points: Points | SparsePoints, weights: FloatArray | None
    ) -> None:
        """Raise where a part is not fit to be worked on, though it was when it was first read."""
        ...


class ReadingExecutor:
    """Parts that are read for each call anew: one is worked on while the next one is read.

    Parameters
    ----------
    chunks : Chunks
        What is read.
    n_threads : int, optional
        See `powermeans.system.threads.effective_n_threads`.
    tell : callable, optional
        Told how far each pass over all parts is.
    """

    reads_each_time = True

    def __init__(
        self,
        chunks: Chunks,
        opener: PartOpener,
        *,
        n_threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.opener, self._tell = opener, tell
        self._chunks, self._team = chunks, start_team(n_threads)
        self._known: dict[int, Known] = {}

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """One part after the other, as they are read."""
        names = iter(range(2**63)) if numbers is None else iter(numbers)
        for points, weights in read_ahead(self._chunks.read(numbers)):
            number = next(names)
            if not _tells_of_faults(call) and not self._are_finite(points, weights):
                self._chunks.recheck(number, points, weights)
            known = self._known.get(number)
            rows = self.opener.open(points, weights, team=self._team, known=known)
            if known is None:
                self._remember(rows, number)
            del points, weights
            result = call(rows, number)
            if _tells_of_faults(call) and not _tells_of_finite_rows(result):
                self._recheck(rows, number)
            del rows  # or they would be held while the next ones are awaited
            if self._tell is not None and numbers is None:
                self._tell(number + 1, self._chunks.n_parts)
            yield result
            del result

    def _are_finite(self, points: Points | SparsePoints, weights: FloatArray | None) -> bool:
        """Whether they surely are; what overflows when it is added up is no fault."""
        values: Any = points.data if sparse.issparse(points) else points
        if self.opener.has_missing:
            values = np.isinf(values)  # since NaN is an entry that is missing
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.add.reduce(values, axis=None)
            of_weights = 0.0 if weights is None else weights.sum()
        is_fine = total == 0 if self.opener.has_missing else math.isfinite(total)
        return bool(is_fine and math.isfinite(of_weights))

    def _recheck(self, rows: PartRows, number: int) -> None:
        all_of_them = np.arange(rows.n_points)
        self._chunks.recheck(number, rows.sample(all_of_them), rows.sample_weight(all_of_them))

    def _remember(self, rows: PartRows, number: int) -> None:
        """What a part need not tell again, where that is little beside it."""
        if rows.n_points >= _FEWEST_ROWS_REMEMBERED and isinstance(known := rows.known, Known):
            self._known[number] = known

    def total(self, call: Call[Any]) -> Any:
        """What a call gives, added up over all parts."""
        return added(self.each(call))


# Rows are checked when they are first read. That they are what they were then is seen later from
# the sums of sweeps, which costs nothing; before other calls, which are few, it is looked for.


def _tells_of_faults(call: Call[Any]) -> bool:
    return bool(getattr(call, "tells_of_faults", False))


def _tells_of_finite_rows(sums: Any) -> bool:
    """Of wide rows and many centers only the sums of points tell, and of some rules the others."""
    told = math.isfinite(sums.objective) and math.isfinite(sums.inertia)
    return told and bool(np.isfinite(sums.points).all())


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, each fetched by a thread of its own while the one before is worked on.

    Parameters
    ----------
    items : iterator
        Its errors are raised where the item would have come.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="powermeans-reader") as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
            del item
