"""What vector search asks k-means for: many small fits at once.

Each way of solving the problems gets the same tolerance, one set of seeds for each problem, and the
same number of threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans as KMeansOfSklearn
from threadpoolctl import threadpool_limits

from benchmarks import machine
from benchmarks.pages import Rows, as_text
from powermeans import KMeans, fit_many

NAME = "vector_search"

N_POINTS, N_FEATURES, N_CLUSTERS = 500, 8, 16


def draw_problems(n_problems: int, seed: int) -> np.ndarray:
    """Gaussian clusters that overlap; each problem has its own centers."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(n_problems, N_CLUSTERS, N_FEATURES))
    labels = rng.integers(N_CLUSTERS, size=(n_problems, N_POINTS))
    noise = rng.normal(size=(n_problems, N_POINTS, N_FEATURES))
    return centers[np.arange(n_problems)[:, None], labels] + noise


def by_loop(kind: type) -> Callable[[np.ndarray], np.ndarray]:
    """Inertias by an estimator for each problem."""
    return lambda problems: np.array(
        [kind(N_CLUSTERS, n_init=1, random_state=i).fit(x).inertia_ for i, x in enumerate(problems)]
    )


def at_once(problems: np.ndarray) -> np.ndarray:
    return fit_many(problems, N_CLUSTERS, random_state=0).inertia


WAYS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], type]] = {
    "fit_many": (at_once, np.float64),
    "fit_many, float32": (at_once, np.float32),
    "loop over powermeans.KMeans": (by_loop(KMeans), np.float64),
    "loop over scikit-learn's KMeans": (by_loop(KMeansOfSklearn), np.float64),
}


def many_fits(n_problems: int, n_threads: int) -> list[dict]:
    """Seconds and mean inertia of each way of solving the same problems."""
    problems = draw_problems(n_problems, seed=0)
    cells = []
    for name, (solve, dtype) in WAYS.items():
        given = problems.astype(dtype)
        solve(given[:2])  # threads and imports are no part of the figure
        with threadpool_limits(n_threads):
            began, began_on_cpu = time.perf_counter(), time.process_time()
            inertias = solve(given)
            seconds, on_cpu = time.perf_counter() - began, time.process_time() - began_on_cpu
        cells.append(
            {
                "way": name,
                "problems": n_problems,
                "threads": n_threads,
                "seconds": seconds,
                "cpu seconds": on_cpu,
                "mean inertia": float(np.mean(inertias)),
            }
        )
    return cells


def as_rows(cells: list[dict]) -> Rows:
    head = ["way", "threads", "seconds", "CPU seconds", "times fit_many", "mean inertia"]
    fastest = {c["threads"]: c["seconds"] for c in cells if c["way"] == "fit_many"}
    return [
        head,
        *(
            [
                cell["way"],
                str(cell["threads"]),
                f"{cell['seconds']:.3g}",
                f"{cell['cpu seconds']:.3g}",
                f"{cell['seconds'] / fastest[cell['threads']]:.1f}",
                f"{cell['mean inertia']:.1f}",
            ]
            for cell in cells
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    cells = [cell for n in arguments.threads for cell in many_fits(arguments.problems, n)]
    print(as_text(as_rows(cells)))
    print(machine.store(NAME, {"many fits": cells}))


if __name__ == "__main__":
    main()
