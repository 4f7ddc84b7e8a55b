"""``powermeans choose-k``."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from powermeans.command_line import failures
from powermeans.command_line.fitting import Scale, scaled
from powermeans.command_line.outputs import check_outputs, listed
from powermeans.command_line.screen import Screen, number, seconds
from powermeans.command_line.sources import Source, split_names
from powermeans.fit_progress import progress
from powermeans.history import SweepState
from powermeans.whole_files import whole_file


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
) -> None:
    """The criteria for each k, and what they recommend."""
    from powermeans.choosing_k import choose_k

    check_outputs(plot)
    table, seconds_reading = source.read()
    points, _ = scaled(table, scale)
    asked = criteria if criteria in ("all", "default") else split_names(criteria)
    started = time.perf_counter()
    tell = None if is_quiet else progress()
    try:
        with _interruptible() as was_interrupted, failures.refusing(failures.DATA, ValueError):
            choice = choose_k(
                points,
                sizes,
                criteria=asked,
                sample_weight=table.weights,
                callback=_watching(tell, was_interrupted),
                **settings,
            )
    finally:
        if tell is not None:
            tell.fit_ended()
    if plot is not None:
        _draw(choice, plot)
    elapsed = time.perf_counter() - started
    _tell(choice, source, elapsed, seconds_reading, screen)
    if written := listed(plot):
        screen.say(f"written: {written}")
    if was_interrupted():
        raise failures.Failure(
            "interrupted: this is of what was found so far", failures.INTERRUPTED
        )


def _tell(
    choice: Any, source: Source, elapsed: float, seconds_reading: float, screen: Screen
) -> None:
    sizes = [int(k) for k in choice.table["k"]]
    screen.say(f"{len(sizes)} values of k for {source.name} in {seconds(elapsed)}")
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
            "seconds": {"reading": seconds_reading, "choosing": elapsed},
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
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise failures.needing("matplotlib", "--plot", "plot") from None
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    choice.plot(ax=figure.subplots())
    kind = path.rpartition(".")[2].lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise failures.Failure(f"{path}: pictures are png, svg or pdf", failures.USAGE)
    with failures.writing(path), whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=150)


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
