"""How true the time that progress tells is, and how soon a fit gives its first sign of life."""

from __future__ import annotations

import argparse
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.machine import read, store
from benchmarks.pages import Page, as_markdown, as_text
from powermeans import PowerKMeans
from powermeans.loop.time_left import Range, SecondsLeft

NAME = "time_told"
PAGE = Page("command_line", "python -m benchmarks.time_told --page")
SHARES = (0.25, 0.5, 0.75)
LOOK_EVERY = 0.05

# Points, features, clusters, how the points lie, and what the fit is asked for.
FITS: tuple[tuple[int, int, int, str, dict[str, Any]], ...] = (
    (1_000_000, 20, 100, "noise", {}),
    (700_000, 8, 200, "clusters", {}),
    (500_000, 50, 300, "clusters", {}),
    (400_000, 200, 100, "heavy tails", {}),
    (2_000_000, 4, 50, "heavy tails", {}),
    (20_000, 30, 200, "clusters", {"effort": "thorough"}),
    (10_000, 8, 100, "noise", {"effort": "thorough"}),
    (15_000, 60, 60, "heavy tails", {"effort": "thorough"}),
    (60_000, 10, 30, "clusters", {"effort": "thorough"}),
    (200_000, 20, 100, "noise", {"divergence": "poisson"}),
    (60_000, 30, 60, "heavy tails", {"divergence": "manhattan"}),
    (500_000, 10, 1000, "noise", {"effort": "fast"}),
)


@dataclass
class Listener:
    """A callback that looks at the time told while a fit runs."""

    began: float = field(default_factory=time.perf_counter)
    seconds_left: SecondsLeft | None = None
    first: float | None = None
    told: list[tuple[float, Range]] = field(default_factory=list)

    def __call__(self, _state: Any) -> None:
        self._sign()

    def phase_begins(self, _phase: str, seconds_left: SecondsLeft | None) -> None:
        self._sign()
        self.seconds_left = seconds_left

    def _sign(self) -> None:
        if self.first is None:
            self.first = time.perf_counter() - self.began

    def look(self, is_over: threading.Event) -> None:
        while not is_over.wait(LOOK_EVERY):
            if (seconds_left := self.seconds_left) is not None:
                self.told.append((time.perf_counter() - self.began, seconds_left()))


def points(n: int, d: int, how: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if how == "noise":
        return rng.normal(size=(n, d))
    centers = rng.normal(scale=2.0, size=(60, d))
    spread = rng.standard_t(3, size=(n, d)) if how == "heavy tails" else rng.normal(size=(n, d))
    return centers[rng.integers(60, size=n)] + spread


def fitted(n: int, d: int, k: int, how: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Fit once, and return the time it took and what was told on the way."""
    X = points(n, d, how, seed=n + d + k)
    if asked.get("divergence") == "poisson":
        X = np.exp(0.3 * X)
    listener, is_over = Listener(), threading.Event()
    looker = threading.Thread(target=listener.look, args=(is_over,), daemon=True)
    looker.start()
    PowerKMeans(k, random_state=0, callback=listener, **asked).fit(X)
    seconds = time.perf_counter() - listener.began
    is_over.set()
    looker.join()
    told = {str(share): at(listener.told, share * seconds) for share in SHARES}
    name = f"{n} x {d}, k={k}, {how}" + "".join(f", {value}" for value in asked.values())
    return {"name": name, "seconds": seconds, "first": listener.first, "told": told}


def at(told: list[tuple[float, Range]], moment: float) -> Range | None:
    """Return the range told last before the moment; None where none was known."""
    before = [seconds for when, seconds in told if when <= moment]
    return before[-1] if before and np.isfinite(before[-1]).all() else None


def contains(fit: dict[str, Any], share: float) -> bool:
    told, left = fit["told"][str(share)], (1 - share) * fit["seconds"]
    return told is not None and told[0] <= left <= told[1]


def cell(fit: dict[str, Any], share: float) -> str:
    told, left = fit["told"][str(share)], (1 - share) * fit["seconds"]
    if told is None:
        return f"nothing ({left:.1f})"
    mark = "" if contains(fit, share) else ", missed"
    return f"{told[0]:.1f} to {told[1]:.1f} ({left:.1f}{mark})"


def table(fits: list[dict[str, Any]]) -> list[list[str]]:
    head = ["fit", "seconds", "first sign", *(f"at {share:.0%}" for share in SHARES)]
    rows = [
        [
            fit["name"],
            f"{fit['seconds']:.1f}",
            f"{fit['first']:.2f}",
            *(cell(fit, share) for share in SHARES),
        ]
        for fit in fits
    ]
    return [head, *rows]


def summary(fits: list[dict[str, Any]]) -> str:
    hits = [contains(fit, share) for fit in fits for share in SHARES]
    widths = [told[1] / max(told[0], 1e-3) for fit in fits for told in fit["told"].values() if told]
    return (
        f"The time told held the truth in {sum(hits)} of {len(hits)} moments; the most was "
        f"{np.median(widths):.1f} times the least (median). The first sign of life came after "
        f"{max(fit['first'] for fit in fits):.2f} s at the latest."
    )


def page() -> None:
    stored = read(NAME, NAME)
    fits = stored["figures"]["fits"]
    heading = f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}."
    PAGE.write("\n\n".join([f"{heading} {summary(fits)}", as_markdown(table(fits))]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write docs/command_line.md and end")
    if parser.parse_args().page:
        page()
        return
    fits = []
    for one in FITS:
        fits.append(fitted(*one))
        print(as_text(table(fits[-1:])[1:]), flush=True)
    print(summary(fits))
    print(f"stored in {store(NAME, {'fits': fits})}")


if __name__ == "__main__":
    main()
