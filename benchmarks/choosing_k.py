"""How often `choose_k` recommends the number of clusters that the data was drawn with.

Generated families in 2 to 500 features and sets that people know. The constants of the decision
were settled on sets of even index and on sets of index 3000 and more; the odd ones below judge it.
A criterion that says nothing, as the gap does where it rises to the end, is not right.
"""

from __future__ import annotations

import argparse
import datetime
import math
import time
from collections.abc import Callable, Iterable
from statistics import mean
from typing import TypedDict

import numpy as np

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.sets_of_known_k import (
    NAMED,
    TELLABLE,
    KnownSet,
    generated,
    labelled,
    named,
)
from powermeans import ChoiceOfK, PowerKMeans, choose_k
from powermeans.choosing_k.choose import RANKING, vote
from powermeans.choosing_k.evaluate import CRITERIA
from powermeans.metrics import adjusted_rand_index

NAME = "choosing_k"
PAGE = Page("choosing_k", "python -m benchmarks.choosing_k --page")
# "gap" takes too long for sets of many features.
ASKED = tuple(name for name in CRITERIA if name != "gap")
# Centers whose clusters agree as much with the true ones, by the adjusted Rand index, found them.
_AS_FOUND = 0.8
# The rule before: the largest k within so much of the most stable.
_AS_STABLE_BEFORE = 0.02


class Cell(TypedDict):
    """One set: what each criterion said, and the decision."""

    name: str
    group: str  # tune, judge or known
    family: str
    n: int
    d: int
    k: int
    tellable: float | None
    found: float | None  # the adjusted Rand index of the clusters found with the true k
    said: dict[str, int | None]
    is_clear: bool


def measured(known: KnownSet, group: str) -> Cell:
    choice = choose_k(known.points, known.k_range, criteria=ASKED, random_state=0)
    said = dict(choice.by_criterion)
    said["the decision"] = choice.recommended
    said["vote"] = vote({name: k for name in ASKED if (k := choice.by_criterion[name]) is not None})
    said["before: stability"] = _before(choice)
    n_points, n_features = known.points.shape
    return {
        "name": known.name,
        "group": group,
        "family": known.name.split(",")[0],
        "n": n_points,
        "d": n_features,
        "k": known.n_clusters,
        "tellable": None if math.isnan(known.tellable) else known.tellable,
        "found": _found(known, choice),
        "said": said,
        "is_clear": choice.is_clear,
    }


def _found(known: KnownSet, choice: ChoiceOfK) -> float | None:
    """Compare the clusters found with the true k with the true ones, without noise."""
    if known.labels is None or known.n_clusters not in choice.centers:
        return None
    labels = choice.model(known.n_clusters).predict(known.points)
    is_clustered = known.labels >= 0
    return adjusted_rand_index(labels[is_clustered], known.labels[is_clustered])


def _before(choice: ChoiceOfK) -> int:
    """Return what was recommended before: the largest k that is as good as most stable."""
    stability = choice.table["stability"]
    as_stable = np.flatnonzero(stability >= np.nanmax(stability) - _AS_STABLE_BEFORE)
    return int(choice.table["k"][as_stable[-1]])


def is_right(cell: Cell, name: str) -> bool:
    """Whether a criterion says the truth; of one cluster the decision does by having doubts."""
    if name == "the decision" and cell["k"] == 1:
        return not cell["is_clear"]
    return cell["said"][name] == cell["k"]


def counts(cell: Cell) -> bool:
    """Whether the Gaussians that the set was drawn from tell its clusters apart."""
    return cell["k"] > 1 and (cell["tellable"] or 0.0) >= TELLABLE


def rate(cells: Iterable[Cell], name: str) -> float:
    """The share of sets of which a criterion says the truth; NaN of none."""
    right = [is_right(cell, name) for cell in cells]
    return mean(right) if right else math.nan


SHOWN: dict[str, Callable[[Cell], bool]] = {
    "tuned on": lambda cell: cell["group"] == "tune" and counts(cell),
    "judged on": lambda cell: cell["group"] == "judge" and counts(cell),
    "of these found": lambda cell: (
        cell["group"] == "judge" and counts(cell) and (cell["found"] or 0.0) >= _AS_FOUND
    ),
    "to d = 10": lambda cell: cell["group"] == "judge" and counts(cell) and cell["d"] <= 10,
    "d = 30 to 500": lambda cell: cell["group"] == "judge" and counts(cell) and cell["d"] > 10,
    "blobs": lambda cell: cell["family"] == "blobs" and (cell["tellable"] or 0) > 0.999,
    "overlapping": lambda cell: cell["group"] == "judge" and cell["k"] > 1 and not counts(cell),
    "one cluster": lambda cell: cell["group"] == "judge" and cell["k"] == 1,
}


def right_rates(cells: list[Cell]) -> Rows:
    """Percent right by kind of set, the best first; below the head the number of sets."""
    names = sorted(cells[0]["said"], key=lambda name: -rate(filter(counts, cells), name))
    rows = [["percent right", *SHOWN]]
    rows.append(["(sets)", *(str(sum(map(shown, cells))) for shown in SHOWN.values())])
    for name in names:
        of_kinds = [100 * rate(filter(shown, cells), name) for shown in SHOWN.values()]
        rows.append([name.replace("_", " "), *(f"{figure:.0f}" for figure in of_kinds)])
    return rows


def family_rates(cells: list[Cell]) -> Rows:
    """Percent right of the decision and before, by family, on the sets to judge by."""
    judged = [c for c in cells if c["group"] == "judge" and (counts(c) or c["k"] == 1)]
    rows = [["family", "sets", "right %", "of these clear %", "before %"]]
    for family in dict.fromkeys(cell["family"] for cell in judged):
        some = [cell for cell in judged if cell["family"] == family]
        right = [cell for cell in some if is_right(cell, "the decision")]
        clear = f"{100 * mean(cell['is_clear'] for cell in right):.0f}" if right else "–"
        of_all = (f"{100 * rate(some, name):.0f}" for name in ("the decision", "before: stability"))
        rows.append([family, str(len(some)), next(of_all), clear, next(of_all)])
    return rows


def known_rows(cells: list[Cell]) -> Rows:
    rows = [["set", "n × d", "known k", "recommended", "clear", "vote", "before"]]
    for cell in cells:
        if cell["group"] == "known":
            said = cell["said"]
            others = (str(said["vote"]), str(said["before: stability"]))
            clear = "yes" if cell["is_clear"] else "no"
            size = f"{cell['n']} × {cell['d']}"
            recommended = str(said["the decision"])
            rows.append([cell["name"], size, str(cell["k"]), recommended, clear, *others])
    return rows


def times() -> dict[str, object]:
    """How long it takes, and when and where: `--keep-times` may keep it for another machine."""
    rows = seconds()
    today = datetime.date.today().isoformat()
    return {"date": today, "processor": machine.processor(), "rows": rows}


def seconds() -> list[dict[str, object]]:
    """How long it takes, beside as many fits that share nothing."""
    rng = np.random.default_rng(0)
    small, large = (
        5.0 * rng.standard_normal((8, d))[rng.integers(8, size=n)] + rng.standard_normal((n, d))
        for n, d in ((1_500, 10), (100_000, 20))
    )
    sizes = range(2, 21)

    def timed(run: Callable[[], object], n_times: int) -> float:
        taken = []
        for _ in range(n_times):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
        return min(taken)

    def fits() -> object:
        return [PowerKMeans(k, random_state=0).fit(small) for k in sizes]

    ways: dict[str, tuple[Callable[[], object], int]] = {
        "1500 × 10: 19 fits of PowerKMeans": (fits, 3),
        **{
            f"1500 × 10: choose_k, {name} alone": (
                lambda name=name: choose_k(small, sizes, criteria=name, random_state=0),
                3,
            )
            for name in ("bic", "separation", "silhouette", "stability", "gap")
        },
        "1500 × 10: choose_k, default": (lambda: choose_k(small, sizes, random_state=0), 3),
        "100 000 × 20: choose_k, default": (lambda: choose_k(large, sizes, random_state=0), 1),
    }
    return [{"what": name, "seconds": timed(*way)} for name, way in ways.items()]


def as_page(stored: dict) -> str:
    cells, times = stored["figures"]["cells"], stored["figures"]["times"]
    n_generated = sum(cell["group"] != "known" for cell in cells)
    measured_on = (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}, "
        f"{stored['processors used']} processors: {n_generated} generated sets of index 0 to "
        f"{n_generated - 1} in `benchmarks/sets_of_known_k.py`, of 100 to 10 000 points in 2 to "
        "500 features with 1 to 30 clusters; k from 2 to 20, or to four thirds of the true number."
        f"\n\n- A set counts if its true Gaussians classify at least {TELLABLE:.0%} of its points "
        "rightly. The others are in the column *overlapping*.\n"
        "- *Found* are the sets whose true clusters the centers of the true k have, by an adjusted "
        f"Rand index of at least {_AS_FOUND}.\n"
        "- *Blobs* are of both halves.\n"
        "- *One cluster* is uniform, normal, heavy-tailed or lognormal. The right answer is no "
        "clear k, and none but the decision can give it."
    )
    time_rows = [
        ["", "seconds"],
        *([row["what"], f"{row['seconds']:.2f}"] for row in times["rows"]),
    ]
    return (
        f"{measured_on}\n\n{as_markdown(right_rates(cells))}\n\n"
        f"The sets to judge by that count, by family:\n\n{as_markdown(family_rates(cells))}\n\n"
        f"Sets that are known:\n\n{as_markdown(known_rows(cells))}\n\n"
        f"Time, measured on {times['date']} on {times['processor']}:\n\n{as_markdown(time_rows)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100, help="the number of generated sets")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    parser.add_argument("--keep-times", action="store_true", help="keep the stored times")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, "choosing_k")))
        return
    cells = [
        measured(generated(index), "judge" if index % 2 else "tune")
        for index in range(arguments.sets)
    ]
    cells += [measured(named(name), "known") for name in NAMED]
    cells += [measured(known, "known") for known in labelled()]
    for rows in (right_rates(cells), family_rates(cells), known_rows(cells)):
        print(as_text(rows), end="\n\n", flush=True)
    print(f"ranking in use: {', '.join(RANKING)}")
    kept = machine.read(NAME, NAME)["figures"]["times"] if arguments.keep_times else None
    print(machine.store(NAME, {"cells": cells, "times": kept or times()}))


if __name__ == "__main__":
    main()
