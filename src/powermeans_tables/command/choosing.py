"""Choose the number of clusters of a fit, and show how."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from powermeans.engine.seeds.orders import row_keys
from powermeans_tables.command import failures
from powermeans_tables.command.data import Data
from powermeans_tables.command.screen import Screen, listening
from powermeans_tables.command.wanted import Wanted
from powermeans_tables.preparing.kinds import WORDS
from powermeans_tables.preparing.prepare import Note


@dataclass(frozen=True, slots=True)
class Chosen:
    """A number of clusters, and what is said of it."""

    settings: dict[str, Any]  # of the fit
    notes: list[Note] = field(default_factory=list)
    choice: Any = None  # what `choose_k` returned; None where nothing was to be chosen
    was_interrupted: bool = False


def chosen_k(data: Data, wanted: Wanted, *, was_asked: bool) -> Chosen:
    """Choose the number of clusters in at most half of the time.

    `was_asked` tells whether the user wants missing values to count.
    """
    from powermeans.estimators.choose_k import choose_k

    settings, sizes, began = wanted.settings, wanted.sizes, time.monotonic()
    if len(sizes) == 1:
        return Chosen(settings)
    points, weights, notes = _rows_for_k(data, wanted.seed, was_asked=was_asked)
    if not data.is_in_parts:
        n_distinct = len(np.unique(row_keys(points, np.random.RandomState(0))))
        most = n_distinct - (n_distinct == len(points))
        sizes = range(sizes[0], min(sizes[-1], most) + 1)
        if len(sizes) < 2:
            k = max(1, min(sizes.start, most))
            why = Note(f"k = {k}, since there are too few different rows for more")
            return Chosen(settings | {"n_clusters": k}, [why])
    limit, has_missing = settings["max_seconds"], data.missing == "observed"
    if not data.is_in_parts:
        has_missing = bool(np.isnan(points).any())
    half = None if limit is None else limit / 2
    with failures.refusing():
        choice = choose_k(
            points,
            sizes,
            sample_weight=weights,
            callback=listening(is_quiet=wanted.quiet, sweeps=False),
            missing="observed" if has_missing else "error",
            max_seconds=half,
            **{name: settings[name] for name in ("effort", "random_state", "n_threads")},
        )
    settings["n_clusters"], passed = choice.recommended, time.monotonic() - began
    was_interrupted = choice.was_stopped and passed < (half or math.inf)  # by Ctrl-C
    if was_interrupted:  # a quick fit with the k so far is better than nothing
        settings["effort"] = "fast"
    if limit is not None:
        settings["max_seconds"] = max(limit - passed, 1e-3)
    if choice.n_sampled:
        notes.append(Note(f"k was chosen from a sample of {choice.n_sampled:,} rows"))
    return Chosen(settings, [*notes, _note_on(choice)], choice, was_interrupted)


def _rows_for_k(data: Data, seed: int, *, was_asked: bool) -> tuple[Any, Any, list[Note]]:
    """Return the whole rows, which all criteria know, if most are whole, and a line on that.

    Where missing values were asked for, all rows choose k by the criteria that know these.
    """
    if data.is_in_parts:
        return data.points, None, []
    points, weights = data.prepare.spread_out(data.points, seed), data.weights
    if data.missing != "observed" or was_asked:
        return points, weights, []
    is_whole = ~np.isnan(points).any(axis=1)
    n_whole = np.count_nonzero(is_whole)
    if not len(points) / 2 <= n_whole < len(points):
        return points, weights, []
    said = Note(f"k was chosen from the {n_whole:,} complete rows")
    return points[is_whole], None if weights is None else weights[is_whole], [said]


def _note_on(choice: Any) -> Note:
    """Return what is recommended, by what, and what speaks against it: a doubt unless clear."""
    if choice.doubt:
        return Note(f"{choice.verdict()}: {choice.doubt}", is_doubt=True)
    verdict, by = choice.verdict().removesuffix("; likely"), choice.decided_by.replace("_", " ")
    counts = Counter(k for k in choice.by_criterion.values() if k is not None)
    n_all, n_same = counts.total(), counts.pop(choice.recommended, 0)
    said, n_saying = "agree", n_same
    if not choice.is_agreed:
        (k, n_saying), *_ = counts.most_common(1)
        said = f"say {k}" + f" (-k {k} fits that many)" * (n_saying > n_same)
    share = f"{100 * n_saying / n_all:.0f} % of the criteria {said}"
    return Note(f"{verdict} by {by}; {share}", is_doubt=not choice.is_agreed)


def show_choice(screen: Screen, choice: Any, data: Data) -> None:
    """Show each k, its inertia, the fall from the k before, and the criteria that recommend it."""
    inertias, rows = [float(inertia) for inertia in choice.table["inertia"]], []
    for k, inertia, before in zip(choice.table["k"], inertias, [None, *inertias], strict=False):
        fall = f"{100 * (1 - inertia / before):.1f} %" if before else ""
        said_by = [name for name, said in choice.by_criterion.items() if said == k]
        rows.append([str(k), f"{inertia:.6g}", fall, ", ".join(said_by)])
    screen.say()
    screen.show(["k", "inertia", "fall", "said by"], rows, left=[3])
    if any(column.kind in WORDS for column in data.prepare.used):
        screen.say("inertia: with words blurred at random, since words alone look like clusters")


def choice_for_machines(choice: Any) -> dict[str, Any] | None:
    """Return what is known of the number of clusters, for JSON."""
    names = "recommended is_clear doubt decided_by agreement by_criterion table was_stopped"
    return None if choice is None else {name: getattr(choice, name) for name in names.split()}
