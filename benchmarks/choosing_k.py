"""How often `choose_k` recommends the number of clusters that the data was drawn with.

Generated families in 2 to 500 features, and single clusters. The constants of the decision were
settled on sets of even index and on sets of index 3000 and more; the odd ones below judge it. On
the smaller sets, rules of the literature are asked as well. A criterion that says nothing is not
right.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from statistics import mean
from typing import TypedDict

import numpy as np

from benchmarks import machine, one_cluster_sets
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.rules_for_k import gap, prediction_strength
from benchmarks.sets_of_known_k import TELLABLE, KnownSet, generated
from powermeans import choose_k

NAME = "choosing_k"
PAGE = Page("project/measurements", "python -m benchmarks.choosing_k --page")
# The gap and the prediction strength cluster many other sets, so only smaller sets ask them.
_MOST_VALUES = 20_000
# What the page compares, by the name in the cells.
COMPARED = {
    "`choose_k`": "the decision",
    "silhouette": "silhouette",
    "gap": "gap",
    "prediction strength": "prediction strength",
}


class Cell(TypedDict):
    """One set: what each criterion said, and the decision."""

    name: str
    group: str  # tune, judge or one cluster
    family: str
    n: int
    d: int
    k: int
    tellable: float | None
    said: dict[str, int | None]
    is_clear: bool


def measured(known: KnownSet, group: str) -> Cell:
    choice = choose_k(known.points, known.k_range, random_state=0)
    said = choice.by_criterion | {"the decision": choice.recommended}
    if group != "tune" and known.points.size <= _MOST_VALUES:
        sizes, rng = [1, *known.k_range], np.random.default_rng(0)
        said["gap"] = gap(known.points, sizes, rng)
        said["prediction strength"] = prediction_strength(known.points, sizes, rng)
    n_points, n_features = known.points.shape
    return {
        "name": known.name,
        "group": group,
        "family": known.name.split(",")[0],
        "n": n_points,
        "d": n_features,
        "k": known.n_clusters,
        "tellable": None if math.isnan(known.tellable) else known.tellable,
        "said": said,
        "is_clear": choice.is_clear,
    }


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
    return share(cells, name, is_right)


def share(cells: Iterable[Cell], name: str, is_so: Callable[[Cell, str], bool]) -> float:
    """The share of sets of which this holds; NaN of none."""
    found = [is_so(cell, name) for cell in cells]
    return mean(found) if found else math.nan


SHOWN: dict[str, Callable[[Cell], bool]] = {
    "tuned on": lambda cell: cell["group"] == "tune" and counts(cell),
    "judged on": lambda cell: cell["group"] == "judge" and counts(cell),
    "to d = 10": lambda cell: cell["group"] == "judge" and counts(cell) and cell["d"] <= 10,
    "d = 30 to 500": lambda cell: cell["group"] == "judge" and counts(cell) and cell["d"] > 10,
    "blobs": lambda cell: cell["family"] == "blobs" and (cell["tellable"] or 0) > 0.999,
    "overlapping": lambda cell: cell["group"] == "judge" and cell["k"] > 1 and not counts(cell),
    "one cluster": lambda cell: cell["group"] == "judge" and cell["k"] == 1,
}


def of_one_cluster(n_sets: int) -> Iterator[KnownSet]:
    """Yield the first small set of each shape that nobody could take for several clusters."""
    shapes = [s for s in one_cluster_sets.SHAPES if s not in one_cluster_sets.ARGUABLE]
    for shape in shapes[:n_sets]:
        sets = one_cluster_sets.sets_of(shape)
        one = next(one for one in sets if one.n_points * one.n_features <= _MOST_VALUES)
        yield KnownSet(str(one), one.points(), 1, math.nan)


def is_misled(cell: Cell, name: str) -> bool:
    """Whether a rule says a wrong number of several clusters, and the decision has no doubts."""
    if name == "the decision" and not cell["is_clear"]:
        return False
    said = cell["said"][name]
    return said is not None and said not in (1, cell["k"])


def compared_rates(cells: list[Cell]) -> Rows:
    """Percent right and misled of each rule, on the sets that all of them were asked."""
    asked = [cell for cell in cells if "gap" in cell["said"]]
    several = [cell for cell in asked if cell["group"] == "judge" and counts(cell)]
    one = [cell for cell in asked if cell["group"] == "one cluster"]
    head = ["percent", "clusters: right", "clusters: wrong", "one cluster: several"]
    rows = [head, ["(sets)", str(len(several)), str(len(several)), str(len(one))]]
    for title, name in COMPARED.items():
        shares = [rate(several, name), *(share(some, name, is_misled) for some in (several, one))]
        rows.append([title, *(f"{100 * figure:.0f}" for figure in shares)])
    return rows


def right_rates(cells: list[Cell]) -> Rows:
    """Percent right by kind of set, the best first; below the head the number of sets."""
    names = sorted(cells[0]["said"], key=lambda name: -rate(filter(counts, cells), name))
    rows = [["percent right", *SHOWN]]
    rows.append(["(sets)", *(str(sum(map(shown, cells))) for shown in SHOWN.values())])
    for name in names:
        of_kinds = [100 * rate(filter(shown, cells), name) for shown in SHOWN.values()]
        rows.append([name.replace("_", " "), *(f"{figure:.0f}" for figure in of_kinds)])
    return rows


def as_page(stored: dict) -> str:
    cells = stored["figures"]["cells"]
    n_generated = sum(cell["group"] in ("tune", "judge") for cell in cells)
    return (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}: the "
        f"odd-numbered of {n_generated} generated sets that have at most {_MOST_VALUES:,} values "
        f"and whose true Gaussians classify at least {TELLABLE:.0%} of the points correctly, and "
        "one set of each shape in `benchmarks/one_cluster_sets.py`. *Wrong* and *several* count "
        f"answers without doubts.\n\n{as_markdown(compared_rates(cells))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200, help="the number of generated sets")
    parser.add_argument("--shapes", type=int, default=49, help="the number of single clusters")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, "choosing_k")))
        return
    cells = [
        measured(generated(index), "judge" if index % 2 else "tune")
        for index in range(arguments.sets)
    ]
    cells += [measured(known, "one cluster") for known in of_one_cluster(arguments.shapes)]
    for table in compared_rates, right_rates:
        print(as_text(table(cells)), end="\n\n", flush=True)
    print(machine.store(NAME, {"cells": cells}))


if __name__ == "__main__":
    main()
