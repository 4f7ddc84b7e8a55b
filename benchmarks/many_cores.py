"""What a fit gains from more processors, by a model of its stripes, its merges and the rest.

Seconds are those of processors, so that neighbors do not count. The model hands stripes to workers
and merges them in order. It knows neither the bandwidth of memory nor the time to wake a thread.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable

import numpy as np

from benchmarks.grid import GridPoint, seeds_among
from benchmarks.machine import read, store
from benchmarks.pages import Page, as_markdown, as_text
from powermeans import _native
from powermeans.rows.native import NativeRows
from powermeans.rules import Hard, Power
from powermeans.seeds.choose import choose_seeds

PAGE = Page("many_cores", "python -m benchmarks.many_cores --page")
SHAPES = [(400_000, 3, 500), (60_000, 784, 100), (100_000, 128, 1000)]
QUICK_SHAPES = [(20_000, 3, 50)]
MODELLED = (2, 32, 128)

# Of a run of the team: most workers, parts of a merge, seconds of computing and merging by stripe.
Run = tuple[int, int, list[float], list[float]]


def seconds_of_run(run: Run) -> float:
    """From the first stripe to the last merge."""
    n_workers, n_parts, computing, merging = run
    is_free_at = [0.0] * n_workers
    part_is_free_at = [0.0] * n_parts
    for compute, merge in zip(computing, merging, strict=True):
        now = heapq.heappop(is_free_at) + compute
        for part in range(n_parts):
            now = part_is_free_at[part] = max(now, part_is_free_at[part]) + merge / n_parts
        heapq.heappush(is_free_at, now)
    return max(is_free_at)


def works_of(points: np.ndarray, k: int) -> dict[str, Callable[[NativeRows], object]]:
    centers = seeds_among(points, k).astype(np.float64)
    moved = centers * (1 + 1e-5)

    def without_shortcuts(rows: NativeRows) -> None:
        _native.take_shortcuts(False)
        try:
            rows.sweep(centers, Hard())
        finally:
            _native.take_shortcuts(True)

    return {
        "opening": lambda rows: NativeRows(points, team=rows.team),
        "seeding": lambda rows: choose_seeds(rows, k, np.random.RandomState(0), n_candidates=6),
        "hard, all distances": without_shortcuts,
        "hard, first": lambda rows: rows.sweep(centers, Hard()),
        "hard, later": lambda rows: rows.sweep(moved, Hard()),
        "power -3": lambda rows: rows.sweep(centers, Power(-3.0)),
        "assignment": lambda rows: rows.assign(centers),
    }


def recorded(rows: NativeRows, work: Callable[[NativeRows], object]) -> tuple[float, list[Run]]:
    rows.team.record_times()
    began = time.process_time()
    work(rows)
    return time.process_time() - began, rows.team.recorded()


def stripes_of(runs: list[Run]) -> float:
    return sum(sum(computing) + sum(merging) for _, _, computing, merging in runs)


def measured(point: GridPoint) -> list[dict]:
    points = point.load("float32")
    works = works_of(points, point.n_clusters)
    rows = {n: NativeRows(points, n_threads=n) for n in (1, *MODELLED)}
    cells = []
    for name, work in works.items():
        total, runs = recorded(rows[1], work)
        serial = max(0.0, total - stripes_of(runs))
        gains = {}
        for n in MODELLED:
            shared = recorded(rows[n], work)[1]
            # More threads than processors push each other out of the caches.
            paced = stripes_of(runs) / max(stripes_of(shared), 1e-9)
            gains[str(n)] = total / (serial + paced * sum(map(seconds_of_run, shared)))
        merging = sum(sum(run[3]) for run in runs)
        cells.append(
            {
                "part": name,
                "seconds": total,
                "outside stripes": serial / total,
                "merging": merging / total,
                "gains": gains,
            }
        )
    return cells


def table(figures: dict) -> list[list[str]]:
    head = ["part of a fit", "ms on one", "outside stripes", "merging"]
    rows = [[*head, *(f"gain on {n}" for n in MODELLED)]]
    for name, cells in figures.items():
        for cell in cells:
            shares = [f"{100 * cell[what]:.2f} %" for what in ("outside stripes", "merging")]
            gains = [f"{gain:.1f}" for gain in cell["gains"].values()]
            where = f"{cell['part']}, {name}"
            rows.append([where, f"{1e3 * cell['seconds']:.1f}", *shares, *gains])
    return rows


def page() -> None:
    stored = read("many_cores", "many_cores")
    heading = f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}."
    PAGE.write(f"{heading}\n\n{as_markdown(table(stored['figures']))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small problem")
    parser.add_argument("--page", action="store_true", help="write docs/many_cores.md and end")
    arguments = parser.parse_args()
    if arguments.page:
        page()
        return
    figures = {}
    for shape in QUICK_SHAPES if arguments.quick else SHAPES:
        point = GridPoint("overlapping", *shape)
        figures[point.name] = measured(point)
        print(as_text(table({point.name: figures[point.name]})), flush=True)
    stored = store("many_cores" + "-quick" * arguments.quick, figures)
    print(f"stored in {stored}")


if __name__ == "__main__":
    main()
