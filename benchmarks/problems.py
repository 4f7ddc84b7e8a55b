"""The problems on which quality is measured: data and a number of clusters.

Real sets come with the lowest inertia that is known for them. They are looked for in the folder
named by POWERMEANS_DATA, and the values in best_known.json, in the folder named by
POWERMEANS_BEST_KNOWN or else in the one around that of the data.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.families import Points, draw
from powermeans.datasets import load_data_set
from powermeans.datasets.real import DATA_VARIABLE

BEST_KNOWN_VARIABLE = "POWERMEANS_BEST_KNOWN"
SKLEARN_PREFIX = "sklearn:"

GENERATED: list[tuple[str, int, list[int]]] = [
    ("overlapping", 2, [3, 10, 50, 200]),
    ("overlapping", 10, [3, 10, 50, 200]),
    ("overlapping", 50, [10, 50, 100]),
    ("overlapping", 200, [10, 50]),
    ("separated", 2, [3, 10, 50, 200]),
    ("separated", 10, [10, 50, 200]),
    ("separated", 50, [50]),
    ("grid", 2, [9, 49, 196]),
    ("heavy-tails", 2, [3, 10, 50, 200]),
    ("heavy-tails", 10, [10, 50]),
    ("unbalanced", 2, [3, 10, 50, 200]),
    ("unbalanced", 10, [10, 50]),
    ("unequal-spread", 2, [3, 10, 50, 200]),
    ("unequal-spread", 10, [10, 50]),
    ("noise", 2, [3, 10, 50, 200]),
    ("noise", 10, [10, 50]),
    ("noise", 50, [10]),
    ("duplicates", 2, [3, 10, 50, 200]),
    ("duplicates", 10, [50]),
    ("copies", 2, [3, 10, 50, 200]),
    ("copies", 10, [50]),
]
LARGE = {"birch1"}
QUICK = {
    "iris/5",
    "wine/8",
    "tsp_u1060/50",
    "d31/31",
    "sklearn:digits/10",
    "overlapping-2d/50",
    "overlapping-10d/50",
    "separated-2d/50",
    "grid-2d/49",
    "heavy-tails-2d/10",
    "unbalanced-2d/50",
    "duplicates-2d/50",
}


@dataclass(frozen=True)
class Problem:
    """Points, read or drawn when they are needed, and how many centers to find."""

    name: str
    group: str
    n_clusters: int
    load: Callable[[], Points]
    best_known: float | None = None


def all_problems(*, data_seed: int = 0, large: bool = False) -> list[Problem]:
    """The real ones if their folder is named, and the generated ones."""
    known = list(known_problems(large=large)) if os.environ.get(DATA_VARIABLE) else []
    return known + list(generated_problems(data_seed))


def generated_problems(data_seed: int = 0) -> Iterator[Problem]:
    for family, n_features, numbers_of_clusters in GENERATED:
        for n_clusters in numbers_of_clusters:
            load = functools.partial(draw, family, n_features, n_clusters, data_seed=data_seed)
            group = f"{family}-{n_features}d"
            yield Problem(f"{group}/{n_clusters}", group, n_clusters, load)


def known_problems(*, large: bool = False) -> Iterator[Problem]:
    for name, entry in best_known().items():
        if name in LARGE and not large:
            continue
        load = functools.lru_cache(1)(functools.partial(real_points, name, entry["rows"]))
        for n_clusters, lowest in entry["sse"].items():
            yield Problem(f"{name}/{n_clusters}", "real", int(n_clusters), load, float(lowest))


def best_known() -> dict[str, dict]:
    """For each real set which of its rows count, and the lowest inertia by number of clusters."""
    beside = Path(os.environ[DATA_VARIABLE]).resolve().parent
    file = Path(os.environ.get(BEST_KNOWN_VARIABLE) or beside) / "best_known.json"
    if not file.is_file():
        raise SystemExit(
            f"{file} is missing: set {BEST_KNOWN_VARIABLE} to the folder of best_known.json, "
            f"or unset {DATA_VARIABLE} to run on generated data alone"
        )
    entries = json.loads(file.read_text(encoding="utf-8"))
    return {name: entry for name, entry in entries.items() if not name.startswith("_")}


def real_points(name: str, rows: str) -> Points:
    if name.startswith(SKLEARN_PREFIX):
        from sklearn import datasets

        loader = getattr(datasets, f"load_{name.removeprefix(SKLEARN_PREFIX)}")
        return chosen_rows(np.asarray(loader().data, dtype=np.float64), rows)
    return chosen_rows(load_data_set(name).points, rows)


def chosen_rows(points: Points, rows: str) -> Points:
    """The rows that a phrase of best_known.json means."""
    if rows == "all":
        return np.ascontiguousarray(points)
    if match := re.fullmatch(r"the first (\d+)", rows):
        return np.ascontiguousarray(points[: int(match[1])])
    if match := re.fullmatch(r"the (\d+) rows without missing values", rows):
        complete = points[~np.isnan(points).any(axis=1)]
        if len(complete) != int(match[1]):
            raise ValueError(f"{len(complete)} rows are complete, and not {match[1]} as {rows!r}")
        return np.ascontiguousarray(complete)
    raise ValueError(f"rows={rows!r} is not understood: say which rows count in real_points")
