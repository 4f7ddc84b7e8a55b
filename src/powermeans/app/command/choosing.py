"""``powermeans choose-k``."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from powermeans.app.command import failures
from powermeans.app.command.data import Data
from powermeans.app.command.notes import tell_notes
from powermeans.app.command.parts import read_or_open, why_in_parts
from powermeans.app.command.screen import (
    Screen,
    number,
    seconds,
    shown_progress,
    waiting_for,
)
from powermeans.app.command.sources import DataFiles, Scale, known, split_names
from powermeans.engine.fit import Listener
from powermeans.errors import counted
from powermeans.preparing.kinds import WORDS
from powermeans.preparing.prepare import Note
from powermeans.scale.parted_data import PartedData


def choose(
    files: DataFiles,
    sizes: range,
    settings: dict[str, Any],
    *,
    criteria: str,
    scale: Scale,
    is_quiet: bool,
    screen: Screen,
) -> None:
    """Try each k, and print the recommendation of the criteria."""
    settings["criteria"] = criteria if criteria == "all" else _known_criteria(criteria)
    why = why_in_parts(files)
    with waiting_for(f"reading {files.name}", is_quiet=is_quiet or why is not None):
        data = read_or_open(files, why, scale, sizes[-1], "--to")
    rows, said = rows_for_k(data, settings["random_state"], was_asked=files.missing == "observed")
    started = time.perf_counter()
    choice, was_interrupted = choice_for(rows, sizes, settings, is_quiet=is_quiet)
    elapsed = time.perf_counter() - started
    taken = {"reading": data.seconds_reading, "choosing": elapsed}
    about = {"seconds": taken, "was_interrupted": was_interrupted}
    _tell(choice, files, data, [*data.notes, *map(Note, said)], about, screen)
    if was_interrupted:
        raise failures.Failure(
            "interrupted: this is the recommendation so far", failures.INTERRUPTED
        )


def choice_for(
    data: Data, sizes: range, settings: dict[str, Any], *, is_quiet: bool
) -> tuple[Any, bool]:
    """Try each k; return the choice and whether Ctrl-C ended the search.

    A second Ctrl-C interrupts.
    """
    from powermeans.estimators.choose_k import choose_k

    shown = None if is_quiet else shown_progress()
    with _remembering_interrupt() as was_interrupted, failures.refusing():
        choice = choose_k(
            data.points,
            sizes,
            sample_weight=data.weights,
            callback=Listener(shown, lambda state: was_interrupted()),
            missing="observed" if data.missing == "observed" else "error",
            **settings,
        )
        return choice, choice.was_stopped and was_interrupted()


def rows_for_k(data: Data, seed: int, *, was_asked: bool) -> tuple[Data, list[str]]:
    """Return the whole rows, which all criteria know, if most are whole, and a line on that.

    Where missing values were asked for, all rows choose k by the criteria that know these.
    """
    if isinstance(data.points, PartedData):
        return data, []
    data = replace(data, points=data.prepare.spread_out(data.points, seed))
    if data.missing != "observed" or was_asked:
        return data, []
    is_whole = ~np.isnan(data.points).any(axis=1)
    n_whole = np.count_nonzero(is_whole)
    if not len(data.points) / 2 <= n_whole < len(data.points):
        return data, []
    weights = None if data.weights is None else data.weights[is_whole]
    whole = replace(data, points=data.points[is_whole], weights=weights, missing="error")
    return whole, [f"k is chosen by the {n_whole} rows that have all values"]


def why_this_k(choice: Any) -> list[str]:
    """Return lines on what is recommended, by what, and what speaks against it."""
    if choice.doubt:
        return [choice.verdict(), choice.doubt]
    decided_by = choice.decided_by.replace("_", " ")
    said = f"{choice.verdict()} by {decided_by}"
    return [f"{said}; {100 * choice.agreement:.0f} % of the criteria say the same"]


def note_on_k(choice: Any) -> Note:
    """Return what is said of the number of clusters of a fit; a doubt unless it is clear."""
    return Note(": ".join(why_this_k(choice)), is_doubt=not choice.is_agreed)


def _known_criteria(names: str) -> list[str]:
    from powermeans.choosing_k.evaluate import CRITERIA

    return known(split_names(names), [*CRITERIA], "--criteria")


def _tell(
    choice: Any,
    files: DataFiles,
    data: Data,
    notes: Sequence[Note],
    about: dict[str, Any],
    screen: Screen,
) -> None:
    sizes, elapsed = [int(k) for k in choice.table["k"]], about["seconds"]["choosing"]
    screen.say(f"{counted(len(sizes), 'value')} of k for {files.name} in {seconds(elapsed)}")
    tell_notes(screen, notes)
    if isinstance(data.points, PartedData) and choice.silhouette_sample:
        screen.say(f"read part by part; silhouette of {choice.silhouette_sample} rows drawn")
    if choice.n_sampled:
        screen.say(f"k is chosen on a sample of {choice.n_sampled:,} rows")
    if any(column.kind in WORDS for column in data.prepare.used):
        screen.say("inertia: with words blurred at random, since words alone look like clusters")
    screen.say()
    screen.show(["k", "inertia", "fall", "said by"], _rows(choice, sizes), left=[3])
    screen.say()
    for line in why_this_k(choice):
        screen.say(line)
    screen.tell_machines(
        {
            "data": files.first,
            "recommended": choice.recommended,
            "is_clear": choice.is_clear,
            "doubt": choice.doubt,
            "decided_by": choice.decided_by,
            "agreement": choice.agreement,
            "by_criterion": choice.by_criterion,
            "table": {name: list(values) for name, values in choice.table.items()},
            "was_stopped": choice.was_stopped,
            **about,
        }
    )


def _rows(choice: Any, sizes: list[int]) -> Iterator[list[str]]:
    """Yield each k, its inertia, the fall from the k before, and the criteria that recommend it."""
    inertias = [float(inertia) for inertia in choice.table["inertia"]]
    for k, inertia, before in zip(sizes, inertias, [None, *inertias], strict=False):
        fall = f"{100 * (1 - inertia / before):.1f} %" if before else ""
        said_by = [name for name, said in choice.by_criterion.items() if said == k]
        yield [str(k), number(inertia), fall, ", ".join(said_by)]


@contextlib.contextmanager
def _remembering_interrupt() -> Iterator[Callable[[], bool]]:
    """Remember the first Ctrl-C, on which the callback stops the fits; a second one interrupts."""
    seen: list[int] = []

    def remember(number: int, frame: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)
