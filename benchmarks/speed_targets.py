"""How fast the library is to be, and what the machine allows, beside the figures stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import geometric_mean, mean, median
from typing import Any

import numpy as np

from benchmarks.lloyd_peers import OURS

SKLEARN = "sklearn-lloyd"
HARD, SOFT, FRACTIONAL = "hard, no shortcuts", "-3", "-3.3"
HARDER, HARDER_IN_FULL = "-30", "-30, no shortcuts"
# Before the names of the figures of a former commit.
FORMER = "former: "
FEW_FEATURES, MANY_CENTERS = 3, 100
# Potentials of random seeds differ by so much from one random state to the next.
SAME_POTENTIAL = 1.03
# So near to each other are sums that only rounding tells apart, and times that nobody can.
ROUNDING, NOISE = 1e-9, 1.05
NOISE_BESIDE_PEERS = 1.02
# Here products of bytes save most.
WIDE_SIZES = {(60_000, 784), (20_000, 1536)}
RUNS_OF_SKLEARN = 10


@dataclass(frozen=True)
class Line:
    """A ratio that is held against a bound."""

    target: str
    where: str
    measured: float
    bound: float
    at_most: bool
    fraction: float | None = None
    """Of what the machine allows: the least time over the time taken."""
    note: str = ""
    before: float | None = None
    """What the former commit measures."""

    @property
    def is_met(self) -> bool:
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound

    @property
    def shortfall(self) -> float:
        """By what factor the bound is missed; below one where it is met."""
        return self.measured / self.bound if self.at_most else self.bound / self.measured


def target_lines(figures: Mapping) -> list[dict]:
    return [{**asdict(line), "met": line.is_met} for line in lines(figures)]


def lines(figures: Mapping) -> list[Line]:
    """Every target at every size, with what the former commit reaches where it was measured."""
    parts = {name: part["cells"] for name, part in figures["parts"].items()}
    n_threads = figures["settings"]["threads"]
    now = lines_of(
        {name: [of_one_code(cell) for cell in cells] for name, cells in parts.items()}, n_threads
    )
    former = lines_of(
        {
            name: [of_one_code(cell, former=True) for cell in cells if has_former(cell)]
            for name, cells in parts.items()
        },
        n_threads,
    )
    before = {(line.target, line.where): line.measured for line in former}
    return [replace(line, before=before.get((line.target, line.where))) for line in now]


def of_one_code(value: Any, *, former: bool = False) -> Any:
    """A cell with today's figures alone, or with the former ones in their place."""
    if not isinstance(value, Mapping):
        return value
    inner = {name: of_one_code(item, former=former) for name, item in value.items()}
    kept = {name: item for name, item in inner.items() if not name.startswith(FORMER)}
    replaced = {
        name.removeprefix(FORMER): item for name, item in inner.items() if name.startswith(FORMER)
    }
    return kept | replaced if former else kept


def has_former(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        (name.startswith(FORMER) and item not in ({}, [])) or has_former(item)
        for name, item in value.items()
        if name != "left out"
    )


def lines_of(cells: Mapping[str, list[dict]], n_threads: int) -> list[Line]:
    ceilings = (cells.get("ceilings") or [{}])[0].get("by threads", {})
    limits = Limits(ceilings, n_threads)
    return [
        *lines_of_lloyd(cells.get("lloyd", []), limits),
        *lines_of_power(cells.get("power", []), limits),
        *lines_of_seeding(cells.get("seeding", [])),
        *lines_of_fits(cells.get("fits", [])),
        *lines_of_threads(cells.get("threads", []), limits),
        *lines_of_memory(cells.get("memory", [])),
    ]


# What the machine allows.


@dataclass(frozen=True)
class Limits:
    """The least time of a sweep that meets every point with every center."""

    ceilings: Mapping[str, Mapping]
    n_threads: int

    def seconds(
        self, cell: Mapping, *, passes: int = 1, n_threads: int | None = None
    ) -> float | None:
        """One multiply-add for each feature of each distance in each pass, or one reading of all.

        Reading is as fast as from the largest array that was read and is no larger than the points.
        """
        rates = self.ceilings.get(str(n_threads or self.n_threads))
        if rates is None:
            return None
        point = cell["point"]
        n_values = point["n_points"] * point["n_features"]
        arithmetic = passes * n_values * point["n_clusters"]
        n_bytes = n_values * np.dtype(cell["dtype"]).itemsize
        return max(
            arithmetic / rates["multiply-adds a second"][cell["dtype"]],
            n_bytes / bandwidth(rates["bytes a second by size of array"], n_bytes),
        )

    def fraction(self, cell: Mapping, seconds: float, **options: int) -> float | None:
        least = self.seconds(cell, **options)
        return None if least is None else least / seconds


def bandwidth(by_size: Mapping[str, float], n_bytes: int) -> float:
    sizes = sorted(map(int, by_size))
    smaller = [size for size in sizes if size <= n_bytes]
    return by_size[str(smaller[-1] if smaller else sizes[0])]


# The targets.


def where(cell: Mapping) -> str:
    return f"{cell['point']['name']}, {cell['dtype']}"


def has_many_near_centers(point: Mapping) -> bool:
    return point["n_features"] <= FEW_FEATURES and point["n_clusters"] >= MANY_CENTERS


def lines_of_lloyd(cells: list[dict], limits: Limits) -> Iterator[Line]:
    against_sklearn = {}
    for cell in cells:
        ours, fraction = cell["seconds"][OURS], limits.fraction(cell, cell["seconds"][OURS])
        name, seconds = fastest_peer(cell)
        note = f"fastest peer: {name}"
        bound = 1 / NOISE_BESIDE_PEERS
        target = "Lloyd: as fast as any peer"
        yield Line(target, where(cell), seconds / ours, bound, False, fraction, note)
        if (cell["point"]["n_points"], cell["point"]["n_features"]) in WIDE_SIZES:
            target = "Lloyd: 1.5 x any peer, 60000 x 784 and 20000 x 1536"
            yield Line(target, where(cell), seconds / ours, 1.5, False, fraction, note)
        ratio = against_sklearn[where(cell)] = cell["seconds"][SKLEARN] / ours
        if has_many_near_centers(cell["point"]):
            target = f"Lloyd: 5 x scikit-learn, d <= {FEW_FEATURES}, k >= {MANY_CENTERS}"
            yield Line(target, where(cell), ratio, 5, False, fraction)
    if against_sklearn:
        ratio = geometric_mean(against_sklearn.values())
        yield Line("Lloyd: 4 x scikit-learn, geometric mean", "all", ratio, 4, False)


def fastest_peer(cell: Mapping) -> tuple[str, float]:
    peers = {
        name: seconds
        for name, seconds in cell["seconds"].items()
        if name.removeprefix(FORMER) != OURS
    }
    name = min(peers, key=peers.__getitem__)
    return name, peers[name]


def power_bound(cell: Mapping) -> float:
    n_features = cell["point"]["n_features"]
    if n_features >= 64:
        return 2.3
    if n_features >= 16:
        return 3.0
    return 5.0 if cell["dtype"] == "float64" else 3.5


def lines_of_power(cells: list[dict], limits: Limits) -> Iterator[Line]:
    for cell in cells:
        yield from lines_of_power_at(cell, limits)
    for power in (SOFT, FRACTIONAL):
        ratios = [cell["seconds"][power] / cell["seconds"][HARD] for cell in timed(cells, power)]
        if ratios:
            target = f"Power {power}: 2 x a hard sweep without shortcuts, median"
            yield Line(target, "all", median(ratios), 2, True)


def timed(cells: list[dict], power: str) -> list[dict]:
    return [cell for cell in cells if power in cell["seconds"]]


def lines_of_power_at(cell: dict, limits: Limits) -> Iterator[Line]:
    seconds = cell["seconds"]
    hard = limits.fraction(cell, seconds[HARD])
    note = "" if hard is None else f"hard sweep: {100 * hard:.0f} % of the limit"
    target = "Power -3: beside a hard sweep without shortcuts"
    ratio = seconds[SOFT] / seconds[HARD]
    fraction = limits.fraction(cell, seconds[SOFT], passes=2)
    yield Line(target, where(cell), ratio, power_bound(cell), True, fraction, note)
    if has_many_near_centers(cell["point"]):
        target = "Power -30: beside itself without shortcuts"
        ratio = seconds[HARDER] / seconds[HARDER_IN_FULL]
        fraction = limits.fraction(cell, seconds[HARDER], passes=2)
        yield Line(target, where(cell), ratio, 1 / 3, True, fraction)


def lines_of_seeding(cells: list[dict]) -> Iterator[Line]:
    for cell in cells:
        k = cell["point"]["n_clusters"]
        bound = 20 if k >= 1000 else 5
        ours, theirs = cell["ours"], cell["sklearn"]
        ratio = median_of(theirs, "seconds") / median_of(ours, "seconds")
        note = f"{len(ours)} and {len(theirs)} random states"
        yield Line(f"Seeding: {bound} x scikit-learn", where(cell), ratio, bound, False, None, note)
        potential = mean_of(ours, "inertia") / mean_of(theirs, "inertia")
        yield Line("Seeding: potential", where(cell), potential, SAME_POTENTIAL, True, None, note)


def median_of(runs: list[dict], key: str) -> float:
    return median(run[key] for run in runs)


def mean_of(runs: list[dict], key: str) -> float:
    return mean(run[key] for run in runs)


def lines_of_fits(cells: list[dict]) -> Iterator[Line]:
    """Against ten fits of scikit-learn from one start each: where fewer were made, the time of ten.

    The lowest of fewer is higher than that of ten would be, so the note says how many they were.
    """
    in_haste = []
    for cell in cells:
        sklearn, fast, balanced = (cell["runs"][name] for name in ("sklearn", "fast", "balanced"))
        note = (
            "" if len(sklearn) >= RUNS_OF_SKLEARN else f"{len(sklearn)} starts of {RUNS_OF_SKLEARN}"
        )
        lowest = min(run["inertia"] for run in sklearn)
        ratio = mean_of(balanced, "inertia") / lowest
        yield Line(
            "Default: inertia of ten starts", where(cell), ratio, 1 + ROUNDING, True, None, note
        )
        ratio = mean_of(balanced, "seconds") / (RUNS_OF_SKLEARN * mean_of(sklearn, "seconds"))
        yield Line(
            "Default: a third of the time of ten starts",
            where(cell),
            ratio,
            1 / 3,
            True,
            None,
            note,
        )
        ratio = mean_of(fast, "inertia") / mean_of(sklearn, "inertia")
        yield Line("Fast: inertia of one start", where(cell), ratio, 1 + ROUNDING, True)
        in_haste.append(mean_of(fast, "seconds") / mean_of(sklearn, "seconds"))
    if in_haste:
        ratio = geometric_mean(in_haste)
        yield Line("Fast: time of one start, geometric mean", "all", ratio, 1, True)


def lines_of_threads(cells: list[dict], limits: Limits) -> Iterator[Line]:
    for cell in cells:
        alone, together = cell["seconds"]["1"], cell["seconds"][str(limits.n_threads)]
        place = f"{cell['what']}, {where(cell)}"
        if cell["what"] == "tiny fit":
            yield Line("Threads: no loss on tiny input", place, together / alone, NOISE, True)
        else:
            passes = 1 if cell["what"] == "hard" else 2
            fraction = limits.fraction(cell, together, passes=passes)
            yield Line("Threads: 1.7 x one thread", place, alone / together, 1.7, False, fraction)


def lines_of_memory(cells: list[dict]) -> Iterator[Line]:
    for cell in cells:
        ratio = cell["peak over input MB"] / cell["allowed MB"]
        note = f"{cell['peak over input MB']:.0f} MB over {cell['input MB']:.0f} MB"
        place = f"{cell['estimator']}, {where(cell)}"
        yield Line("Memory: input, a tenth of it and 50 MB", place, ratio, 1, True, None, note)


def by_target(all_lines: list[Line]) -> dict[str, list[Line]]:
    grouped: dict[str, list[Line]] = {}
    for line in all_lines:
        grouped.setdefault(line.target, []).append(line)
    return grouped


def worst(of: list[Line]) -> Line:
    return max(of, key=lambda line: line.shortfall if not math.isnan(line.shortfall) else math.inf)
