"""powermeans in a process of its own, which is asked through a pipe.

Two builds of one compiled module do not live in one process, so each code that is measured has its
own: the one of this environment, and beside it the code of a former commit. All answer the same
questions about the same points.

    python -m benchmarks.apart        answers what it reads, which is for `Code` alone
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

import powermeans
from benchmarks.machine import begin_peak, digest, held
from benchmarks.turns import repeated, seconds
from powermeans import KMeans, PowerKMeans, _native, kmeans_plusplus
from powermeans.mathematics.rules import Hard, Power, Rule
from powermeans.points.opening import open_rows

ROOT = Path(__file__).parent.parent


class Code:
    """The powermeans that is installed in a folder, or the one that is imported here."""

    def __init__(self, folder: Path | None = None) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(folder),
        )
        self.folder = folder
        self.pid = process.pid
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._requests, self._replies = process, process.stdin, process.stdout
        about = self.ask("about")
        self.made_with: str = about["made with"]
        if folder is not None and folder.resolve() not in Path(about["folder"]).parents:
            self.end()
            raise RuntimeError(f"{about['folder']} was imported, and not what is in {folder}")

    def ask(self, question: str, n_threads: int = 1, **options: object) -> Any:
        """The answer of the method of `Answers` that has this name."""
        pickle.dump((question, n_threads, options), self._requests)
        self._requests.flush()
        answer = pickle.load(self._replies)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        self._requests.close()
        self._process.wait()
        self._replies.close()


def environment(folder: Path | None) -> dict[str, str]:
    """Variables with which Python imports powermeans from a folder."""
    return {**os.environ, "PYTHONPATH": str(folder)} if folder else dict(os.environ)


class Answers:
    """What a code can be asked; all but the first two are about the points taken last."""

    n_threads = 1

    def about(self) -> dict[str, str]:
        return {
            "folder": str(Path(powermeans.__file__).parent),
            "made with": f"powermeans {powermeans.__version__} {digest('powermeans')}",
        }

    def take(self, path: str, seeds: NDArray) -> None:
        self._points, self._seeds = np.load(path), seeds
        self._rows: dict[int, Any] = {}

    def iteration(self, n_iterations: int) -> float:
        """Seconds for one of the iterations of Lloyd's algorithm in a fit."""
        model = KMeans(len(self._seeds), init=self._seeds, n_init=1, max_iter=n_iterations, tol=0)
        began = time.perf_counter()
        n_made = model.fit(self._points).n_iter_
        return (time.perf_counter() - began) / n_made

    def sweep(self, power: float, shortcuts: bool) -> float:
        """Seconds of a sweep."""
        rows, centers = self._opened(), self._seeds.astype(np.float64)
        with shortcuts_taken(shortcuts):
            return repeated(lambda: rows.sweep(centers, rule_of(power)))

    def seed(self, random_state: int) -> dict[str, float]:
        k = len(self._seeds)
        began = time.perf_counter()
        centers, _ = kmeans_plusplus(self._points, k, random_state=random_state)
        elapsed = time.perf_counter() - began
        return {"seconds": elapsed, "inertia": self.inertia(centers)}

    def inertia(self, centers: NDArray) -> float:
        return self._opened().assign(centers.astype(np.float64))[1]

    def fit(self, method: str, random_state: int) -> dict[str, float]:
        """A whole fit by KMeans or by an effort of PowerKMeans."""
        k = len(self._seeds)
        model = (
            KMeans(k, random_state=random_state)
            if method == "KMeans"
            else PowerKMeans(k, effort=method, random_state=random_state)
        )
        elapsed = seconds(lambda: model.fit(self._points))
        return {"seconds": elapsed, "inertia": float(model.inertia_)}

    def memory(self, estimator: str, shape: tuple[int, int, int], dtype: str) -> float:
        """Return the megabytes by which the peak of a fit is above its input; needs Linux."""
        n_points, n_features, k = shape
        fits: dict[str, Callable[[NDArray], object]] = {
            "KMeans": KMeans(k, max_iter=5, random_state=0).fit,
            "PowerKMeans": PowerKMeans(k, effort="fast", random_state=0).fit,
        }
        # So that modules loaded on the way do not count.
        fits[estimator](mixture(max(500, 2 * k), n_features, k, dtype))
        points = mixture(n_points, n_features, k, dtype)
        begin_peak()
        before = held("VmRSS")
        fits[estimator](points)
        return (held("VmHWM") - before) / 1e6

    def _opened(self) -> Any:
        """The points, opened once for each number of threads."""
        if self.n_threads not in self._rows:
            self._rows[self.n_threads] = open_rows(self._points, n_threads=self.n_threads)
        return self._rows[self.n_threads]


def mixture(n_points: int, n_features: int, n_centers: int, dtype: str) -> NDArray:
    """Return points of an overlapping mixture, filled in place."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((n_centers, n_features)) * (2 * (2 / n_features) ** 0.5)
    points = np.empty((n_points, n_features), dtype)
    step = max(1, 2**17 // n_features)  # small, so that what it frees hides nothing later
    for start in range(0, n_points, step):
        block = points[start : start + step]
        block[:] = means[rng.integers(0, n_centers, len(block))]
        block += rng.standard_normal(block.shape)
    return points


def rule_of(power: float) -> Rule:
    return Hard() if power == -np.inf else Power(power)


@contextmanager
def shortcuts_taken(wanted: bool) -> Iterator[None]:
    _native.take_shortcuts(wanted)
    try:
        yield
    finally:
        _native.take_shortcuts(True)


def answer(answers: Answers, question: str, n_threads: int, options: Mapping[str, Any]) -> object:
    method: Callable[..., object] = getattr(answers, question)
    answers.n_threads = n_threads
    with threadpoolctl.threadpool_limits(n_threads):
        try:
            return method(**options)
        except Exception as error:
            return RuntimeError(f"{type(error).__name__}: {error}")


def main() -> None:
    warnings.simplefilter("ignore")  # fits are cut short on purpose
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the replies
    answers = Answers()
    while True:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(answer(answers, *asked), replies)
        replies.flush()


if __name__ == "__main__":
    main()
