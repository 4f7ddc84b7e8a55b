"""Executors: they call functions on the parts of the rows, and add the results in a fixed order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.mathematics.sums import added
from powermeans.points.checks.points import largest_magnitude
from powermeans.points.compiled import CompiledPoints, Known, Team, thread_limit
from powermeans.points.needs import Tell
from powermeans.points.opening import open_batch, wide_if_far
from powermeans.scale.partition import Partition
from powermeans.system.fingerprint import NoFingerprintError, fingerprint
from powermeans.system.threads import effective_n_threads
from powermeans.types import AnyMatrix, FloatArray, Part

Result = TypeVar("Result")
Item = TypeVar("Item")

Call = Callable[[CompiledPoints, int], Result]
"""A function of the rows of a part and its number, which can be pickled."""


@dataclass(frozen=True, slots=True)
class PartCall:
    """A function of the points of a part and its number, with further arguments.

    It can be pickled, and a checkpoint recognizes it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    is_long: bool = False  # the results are as long as the points
    n_bytes_given: int | None = None  # size of a result, if it is not about that of the arguments

    def __call__(self, rows: CompiledPoints, number: int) -> Any:
        """Return the result of the function."""
        return self.function(rows, number, *self.arguments)


@dataclass(frozen=True, slots=True)
class PartOpener:
    """How points of a part become rows. It can be pickled."""

    divergence: Divergence = SquaredEuclidean()
    has_missing: bool = False

    def __post_init__(self) -> None:
        if (reason := self.divergence.needs_all_points) is not None:
            raise ValueError(
                f"{self.divergence!r} {reason}: pass the points as one array in memory"
            )

    def open(
        self,
        points: AnyMatrix,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
    ) -> CompiledPoints:
        """Return the rows of a part, in float64 where one is far and others may weigh more."""
        if sample_weight is not None and points.dtype == np.float32:
            points = wide_if_far(points, largest_magnitude(points, self.has_missing))
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
        """Return a text that is the same for equal openers in every process."""
        try:
            return fingerprint([self.divergence, self.has_missing])
        except NoFingerprintError as error:
            raise ValueError(
                f"divergence={self.divergence!r:.200} has {error.args[0]!r:.200}, which another "
                "process cannot recognize, so a checkpoint cannot store it: use numbers, strings, "
                "arrays, lists and plain functions as attributes, or leave checkpoint out"
            ) from None


class Executor(Protocol):
    """Calls functions on parts, at least one and none empty, in a fixed order."""

    opener: PartOpener  # how parts become rows
    reads_each_time: bool  # whether each call reads the parts again

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on each part, or on the parts of these rising numbers."""

    def total(self, call: Call[Any]) -> Any:
        """Return the sum of the results on all parts, in the order of `added`."""
        return added(self.each(call))


class MemoryExecutor(Executor):
    """Calls functions on parts in memory, opened once."""

    reads_each_time = False

    def __init__(
        self,
        parts: Iterable[Part],
        opener: PartOpener,
        *,
        n_threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.opener, self._tell = opener, tell
        team = Team(effective_n_threads(n_threads, thread_limit()))
        self._rows = [opener.open(points, weights, team=team) for points, weights in parts]

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on one part after the other."""
        for number in range(len(self._rows)) if numbers is None else numbers:
            result = call(self._rows[number], number)
            if self._tell is not None and numbers is None:
                self._tell(number + 1, len(self._rows))
            yield result


class ReadingExecutor(Executor):
    """Reads the parts anew for each call, and calls on one while it reads the next."""

    reads_each_time = True

    def __init__(
        self,
        partition: Partition,
        opener: PartOpener,
        *,
        n_threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.opener, self._tell = opener, tell
        self._partition = partition
        self._team = Team(effective_n_threads(n_threads, thread_limit()))
        self._known: dict[int, Known] = {}

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on one part after the other."""
        all_numbers = iter(range(2**63)) if numbers is None else iter(numbers)
        for points, weights in read_ahead(self._partition.read(numbers)):
            number = next(all_numbers)
            rows = self._open(points, weights, number)
            del points, weights  # free them before waiting for the next part
            result = call(rows, number)
            del rows
            if self._tell is not None and numbers is None:
                self._tell(number + 1, self._partition.n_parts)
            yield result
            del result

    def _open(self, points: AnyMatrix, weights: FloatArray | None, number: int) -> CompiledPoints:
        known = self._known.get(number)
        rows = self.opener.open(points, weights, team=self._team, known=known)
        # For fewer points, what is known would take more than a hundredth of their memory.
        is_worth_it = known is None and rows.n_points >= 1024
        if is_worth_it and (found := rows.known) is not None:
            self._known[number] = found
        return rows


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the same items, each fetched by a thread while the caller works on the last one."""
    with ThreadPoolExecutor(1, thread_name_prefix="powermeans-reader") as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
            del item
