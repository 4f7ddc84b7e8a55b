"""The problems on which quality is measured: data and a number of clusters.

They are those of records.csv, with the lowest inertia that is known. Real sets are looked for in
the folder named by POWERMEANS_DATA.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.families import Points, draw
from benchmarks.records import Known, all_known
from powermeans.datasets import load_data_set
from powermeans_tables.datasets.real import DATA_VARIABLE

SKLEARN_PREFIX = "sklearn:"

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
    return [
        problem_of(known, data_seed)
        for known in all_known().values()
        if known.is_drawn or (os.environ.get(DATA_VARIABLE) and (large or known.data not in LARGE))
    ]


def problem_of(known: Known, data_seed: int) -> Problem:
    if not known.is_drawn:
        load = functools.partial(real_points, known.data, known.rows)
        return Problem(known.problem, "real", known.n_clusters, load, known.lowest)
    family, _, n_features = known.data.removesuffix("d").rpartition("-")
    load = functools.partial(draw, family, int(n_features), known.n_clusters, data_seed=data_seed)
    lowest = known.lowest if data_seed == 0 else None
    return Problem(known.problem, known.data, known.n_clusters, load, lowest)


@functools.lru_cache(1)
def real_points(name: str, rows: str) -> Points:
    if name.startswith(SKLEARN_PREFIX):
        from sklearn import datasets

        loader = getattr(datasets, f"load_{name.removeprefix(SKLEARN_PREFIX)}")
        return chosen_rows(np.asarray(loader().data, dtype=np.float64), rows)
    return chosen_rows(load_data_set(name).points, rows)


def chosen_rows(points: Points, rows: str) -> Points:
    """The rows that a phrase of records.csv means."""
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
