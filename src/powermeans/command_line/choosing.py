"""``powermeans choose-k``."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from powermeans.command_line import failures
from powermeans.command_line.fitting import Scale, scaled
from powermeans.command_line.outputs import check_outputs, interruptible, listed
from powermeans.command_line.parts import (
    Limits,
    ProgressInParts,
    note_parts,
    opened,
    why_in_parts,
)
from powermeans.command_line.screen import Screen, counted, number, seconds
from powermeans.command_line.sources import (
    Source,
    check_enough_rows,
    rows_left_out,
    split_names,
)
from powermeans.loop.history import SweepState
from powermeans.sources import PartedData
from powermeans.system.atomic_write import atomic_write
from powermeans.tables import nearest
from powermeans.types import FloatArray


def choose(
    source: Source,
    sizes: range,
    settings: dict[str, Any],
    *,
    criteria: str,
    scale: Scale,
    plot: str | None,
    is_quiet: bool,
    screen: Screen,
    limits: Limits,
) -> None:
    """The criteria for each k, and what they recommend."""
    from powermeans.choosing_k.choose import choose_k

    check_outputs(reads=source.paths, picture=plot)
    asked = criteria if criteria in ("all", "default") else _known_criteria(criteria)
    read = _read(source, sizes, scale, limits)
    tell = None if is_quiet else _Progress()
    if tell is not None and isinstance(read.points, PartedData):
        tell.watch(read.points)
    started = time.perf_counter()
    try:
        with _interruptible() as was_interrupted, failures.refusing():
            choice = choose_k(
                read.points,
                sizes,
                criteria=asked,
                sample_weight=read.weights,
                callback=_watching(tell, was_interrupted),
                **settings,
            )
    finally:
        if tell is not None:
            tell.fit_ended()
    elapsed = time.perf_counter() - started
    with interruptible() as done:
        if plot is not None:
            _draw(choice, plot)
            done.append(plot)
        _tell(choice, source, read, elapsed, screen)
    if written := listed(plot):
        screen.say(f"written: {written}")
    if was_interrupted():
        raise failures.Failure(
            "interrupted: this is of what was found so far", failures.INTERRUPTED
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """What to look at: points in memory, or those to be read part by part."""

    points: Any
    weights: FloatArray | None = None
    seconds: float | None = None
    left_out: str = ""


def _read(source: Source, sizes: range, scale: Scale, limits: Limits) -> _Read:
    if (why := why_in_parts(source, limits)) is not None:
        data = opened(source, limits, scale=scale)
        note_parts(source, why)
        return _Read(data)
    table, seconds_reading = source.read()
    check_enough_rows(table, source, sizes[-1], "--to")
    points, _ = scaled(table, scale)
    return _Read(points, table.weights, seconds_reading, rows_left_out(table))


def _known_criteria(names: str) -> list[str]:
    from powermeans.choosing_k.evaluate import CRITERIA

    asked = split_names(names)
    for name in asked:
        if name not in CRITERIA:
            hint = nearest(name, CRITERIA) or f": there are {', '.join(CRITERIA)}"
            raise failures.Failure(f"--criteria {name!r} is not known{hint}", failures.USAGE)
    return asked


def _tell(
    choice: Any,
    source: Source,
    read: _Read,
    elapsed: float,
    screen: Screen,
) -> None:
    sizes = [int(k) for k in choice.table["k"]]
    screen.say(f"{counted(len(sizes), 'value')} of k for {source.name} in {seconds(elapsed)}")
    if read.left_out:
        screen.say(read.left_out)
    if isinstance(read.points, PartedData) and choice.silhouette_sample:
        screen.say(f"read part by part; silhouette: of {choice.silhouette_sample} rows drawn")
    screen.say()
    screen.show(["k", "inertia", "fall", "said by"], _rows(choice, sizes), left=[3])
    screen.say()
    screen.say(
        f"recommended: k = {choice.recommended}, by {choice.decided_by}; "
        f"{choice.agreement:.0%} of the criteria say the same"
    )
    screen.tell_machines(
        {
            "data": source.data,
            "recommended": choice.recommended,
            "decided_by": choice.decided_by,
            "agreement": choice.agreement,
            "by_criterion": choice.by_criterion,
            "table": {name: list(values) for name, values in choice.table.items()},
            "seconds": {"reading": read.seconds, "choosing": elapsed},
            "was_interrupted": choice.was_stopped,
        }
    )


def _rows(choice: Any, sizes: list[int]) -> Iterator[list[str]]:
    """The inertia of each k, how far that is below the one before, and what criteria say it."""
    inertias = [float(inertia) for inertia in choice.table["inertia"]]
    for k, inertia, before in zip(sizes, inertias, [None, *inertias], strict=False):
        fall = f"{1 - inertia / before:.1%}" if before else ""
        said_by = [name for name, said in choice.by_criterion.items() if said == k]
        yield [str(k), number(inertia), fall, ", ".join(said_by)]


def _draw(choice: Any, path: str) -> None:
    from powermeans.plots.canvas import axes_for_a_file

    try:
        ax = choice.plot(ax=axes_for_a_file(figsize=(7, 4.5)))
    except ImportError:
        raise failures.needing("matplotlib", "--plot", "plot") from None
    with failures.writing(path), atomic_write(path) as file:
        ax.figure.savefig(file, format=path.rpartition(".")[2].lower(), dpi=150)


class _Progress(ProgressInParts):
    """Without inertias, which for different k are not comparable, and without time left."""

    def words(self, state: SweepState) -> str:
        """What the sweeps are at."""
        return f"sweep {state.sweep}, {len(state.centers)} centers, {self.time_so_far()}"


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C is only remembered; a second one interrupts."""
    seen: list[int] = []

    def remember(number: int, frame: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)


def _watching(tell: Any, was_interrupted: Callable[[], bool]) -> Callable[[SweepState], bool]:
    """All sweeps for all k count as those of one fit."""
    sweeps = itertools.count(1)

    def watch(state: SweepState) -> bool:
        if tell is not None:
            tell(replace(state, run=0, sweep=next(sweeps)))
        return was_interrupted()

    return watch
