"""From inertias and seconds to what they say: excess, wins, and what is doubtful.

The excess of a fit is how far its inertia lies above the lowest that is known of the problem,
relative to that: the lower of the value known before and of all that any method found in the run.
A method's figure for a problem is the mean over the seeds.

A record of the benchmark holds "problems" by name, and "cells" by problem, method and seed; a cell
has "inertia", "seconds", and "claimed" where the method claims another inertia; or an "error".
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from benchmarks.machine import QUIET, STEADY

OURS = ("fast", "balanced", "thorough")
RIVALS = ("sklearn-10", "bkmeans", "hgmeans")
# Two inertias that differ by less than this share are a draw.
DRAW = 1e-4
HIGH_EXCESS = 0.02
# Published lowest values are rounded; less than this below them is no news.
NEWS = 1e-7

_CHUNK_ELEMENTS = 2**20


def inertia(points: NDArray, centers: NDArray) -> float:
    """The sum of squared distances to the nearest centers, from differences, in float64."""
    points = np.asarray(points, dtype=np.float64)
    centers = np.asarray(centers, dtype=np.float64)
    n_rows = max(1, _CHUNK_ELEMENTS // len(centers))
    chunks = (points[start : start + n_rows] for start in range(0, len(points), n_rows))
    return float(sum(cdist(chunk, centers, "sqeuclidean").min(axis=1).sum() for chunk in chunks))


@dataclass(frozen=True)
class Record:
    """A stored run, read for its figures."""

    problems: dict[str, dict]
    cells: dict[str, dict[str, dict[str, dict]]]

    @functools.cached_property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(name for cells in self.cells.values() for name in cells))

    def good(self, problem: str, method: str) -> list[dict]:
        """The cells without an error."""
        cells = self.cells.get(problem, {}).get(method, {}).values()
        return [cell for cell in cells if "error" not in cell]

    def lowest_found(self, problem: str) -> float:
        methods = self.cells[problem]
        return min(cell["inertia"] for method in methods for cell in self.good(problem, method))

    @functools.cached_property
    def lowest(self) -> dict[str, float]:
        """The lowest inertia known of each problem, before the run or by it."""
        known = {name: problem.get("best_known") for name, problem in self.problems.items()}
        return {
            name: min(
                value for value in (known[name], self.lowest_found(name)) if value is not None
            )
            for name in self.cells
        }

    @functools.cached_property
    def excess(self) -> dict[str, dict[str, float]]:
        """By method and problem, the mean over the seeds."""
        return {
            method: {
                problem: mean(cell["inertia"] for cell in cells) / self.lowest[problem] - 1
                for problem in self.cells
                if (cells := self.good(problem, method))
            }
            for method in self.methods
        }

    def seconds(self, method: str, problems: Iterable[str]) -> float:
        """The sum over problems of the mean over seeds."""
        return sum(mean(c["seconds"] for c in self.good(problem, method)) for problem in problems)

    def common(self, methods: Iterable[str]) -> list[str]:
        """The problems that all of these methods solved."""
        solved = [self.excess.get(method, {}).keys() for method in methods]
        return [problem for problem in self.cells if all(problem in names for names in solved)]


def contest(record: Record, ours: str, theirs: str) -> tuple[int, int]:
    """On how many problems ours is lower by more than a draw, and on how many higher."""
    wins = losses = 0
    for problem in record.common([ours, theirs]):
        ratio = (1 + record.excess[ours][problem]) / (1 + record.excess[theirs][problem])
        wins += ratio < 1 / (1 + DRAW)
        losses += ratio > 1 + DRAW
    return wins, losses


def summary(record: Record) -> list[dict]:
    """A line for each method; one that did not run on all problems says on how many it did."""
    return [method_summary(record, method) for method in record.methods if record.excess[method]]


def method_summary(record: Record, method: str) -> dict:
    excess = record.excess[method]
    cells = [
        cell for problem in record.cells for cell in record.cells[problem].get(method, {}).values()
    ]
    return {
        "method": method,
        "problems": len(excess),
        "errors": sum("error" in cell for cell in cells),
        "mean excess %": 100 * mean(excess.values()),
        "worst excess %": 100 * max(excess.values()),
        "worst problem": max(excess, key=excess.__getitem__),
        "problems above 2 %": 100 * mean(value > HIGH_EXCESS for value in excess.values()),
        "seconds": record.seconds(method, excess),
        "wins and losses": {
            rival: list(contest(record, method, rival))
            for rival in RIVALS
            if rival != method and record.common([method, rival])
        },
    }


def below_best_known(record: Record) -> list[dict]:
    """Where the run found less than was known, and which methods did."""
    found = []
    for name, problem in record.problems.items():
        known = problem.get("best_known")
        if known is None or name not in record.cells:
            continue
        lowest = {
            method: min(cell["inertia"] for cell in cells)
            for method in record.cells[name]
            if (cells := record.good(name, method))
        }
        below = {method: value for method, value in lowest.items() if value < known * (1 - NEWS)}
        if below:
            found.append({"problem": name, "best known": known, "found": below})
    return found


def flaws(record: Record) -> list[str]:
    """What no reader of the figures should miss: false claims, failures, more effort for less."""
    said = [*false_claims(record), *worse_for_more(record)]
    if noisy := disturbed(record):
        said.append(
            f"other processes were busy, or the machine's speed changed, during {len(noisy)} of "
            f"{len(record.problems)} problems, so the times may be too long"
        )
    return said


def disturbed(record: Record) -> list[str]:
    """Return the problems beside which others were busy, or the machine changed its speed."""
    return [
        name
        for name, problem in record.problems.items()
        if (problem["bystanders"] or 0) > QUIET or problem["drift"] > STEADY
    ]


def false_claims(record: Record) -> list[str]:
    return [
        f"{method} on {problem} claims an inertia of {cell['claimed']:.10g}; that of its centers "
        f"is {cell['inertia']:.10g}"
        for problem, methods in record.cells.items()
        for method in methods
        for cell in record.good(problem, method)
        if "claimed" in cell
    ]


def worse_for_more(record: Record) -> list[str]:
    """Problems on which more of our effort gave a higher mean than less of it."""
    said = []
    for less, more in itertools.pairwise(OURS):
        for problem in record.common([less, more]):
            low, high = record.excess[less][problem], record.excess[more][problem]
            if (1 + high) / (1 + low) > 1 + DRAW:
                said.append(
                    f"{more} is worse than {less} on {problem}: {100 * high:.3f} % above the "
                    f"lowest instead of {100 * low:.3f} %"
                )
    return said
