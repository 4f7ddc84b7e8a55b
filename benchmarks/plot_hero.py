"""Draws the picture that the README opens with, as an SVG that is legible on a phone.

Above, ten starts of scikit-learn's `KMeans` and one `PowerKMeans` on the same points: the seconds
are the median of five fits each, in turns, and a circle marks where centers are missing or too
many, compared with the lowest sum of squares known. Below, the stored run of benchmarks.quality.
If other processes were busy meanwhile, or a loop takes another time after the fits than before, the
command says so and ends with status 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.machine import QUIET, STEADY, Bystanders, Steadiness, read
from benchmarks.turns import seconds_in_turns
from powermeans import PowerKMeans
from powermeans.metrics import centroid_index

N_CLUSTERS, N_FITS, N_DRAWN = 40, 5, 2500
# The sizes of the picture, of a map, and of a line of the table, in pixels.
WIDTH, MAP_WIDTH, MAP_HEIGHT, TOP, LINE = 760, 372, 286, 66, 34
METHODS = {
    "sklearn-1": "scikit-learn, one start",
    "sklearn-10": "scikit-learn, ten starts",
    "bkmeans": "bkmeans",
    "fast": "PowerKMeans, fast",
    "balanced": "PowerKMeans",
}
STYLE = """
  text { fill: #1f2328; font: 23px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .bold { font-weight: 600; } .end { text-anchor: end; }
  .paper { fill: #ffffff; } .map { fill: #f3f5f7; }
  .points { fill: none; stroke: #8b98a5; stroke-linecap: round; stroke-width: 2.6; }
  .centers { stroke: #ffffff; stroke-width: 1.5; }
  .theirs { fill: #c77700; } .ours { fill: #0072b2; }
  .wrong { fill: none; stroke: #d1242f; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .paper { fill: #0d1117; } .map { fill: #1b222b; }
    .points { stroke: #66727e; } .centers { stroke: #0d1117; }
    .theirs { fill: #e69f00; } .ours { fill: #56b4e9; } .wrong { stroke: #ff7b72; }
  }
"""


def towns() -> np.ndarray:
    """Customers around forty towns of several sizes and densities."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(60, 400, N_CLUSTERS)
    spreads = rng.uniform(0.3, 0.7, N_CLUSTERS)
    places = rng.uniform(0, 1, (N_CLUSTERS, 2)) * (26, 20)
    points, _ = make_blobs(sizes.tolist(), centers=places, cluster_std=spreads, random_state=0)
    return points


def misplaced(centers: np.ndarray, best: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the places where these centers are too many or missing, compared with the best."""
    for few, many in ((best, centers), (centers, best)):
        counts = np.bincount(cdist(many, few).argmin(axis=1), minlength=len(few))
        yield from few[counts > 1]


def text(x: float, y: float, said: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{said}</text>'


def map_of(left: float, model: Any, best: np.ndarray, kind: str, to_pixels: Any) -> Iterator[str]:
    """Yield the points, the centers of a model, and circles around what is wrong."""
    size = f'width="{MAP_WIDTH}" height="{MAP_HEIGHT}" rx="8"'
    yield f'<rect x="{left}" y="{TOP}" {size} class="map"/>'
    yield f'<use href="#points" x="{left}" y="{TOP}"/>'
    wrong = np.reshape([*misplaced(model.cluster_centers_, best)], (-1, 2))
    for places, radius, name in (
        (model.cluster_centers_, 5, f"centers {kind}"),
        (wrong, 17, "wrong"),
    ):
        for x, y in np.add(to_pixels(places), [left, TOP]):
            yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius}" class="{name}"/>'


def table(top: float, stored: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each method: its mean excess as a bar and in figures, and its seconds."""
    summary = {line["method"]: line for line in stored["figures"]["summary"]}
    largest = max(summary[name]["mean excess %"] for name in METHODS)
    n_problems = len(stored["figures"]["problems"])
    yield text(0, top, f"Mean of {n_problems} problems", "bold")
    yield text(330, top, "above the lowest known")
    yield text(WIDTH, top, "time in all", "end")
    for number, (name, said) in enumerate(METHODS.items(), start=1):
        y, excess = top + number * LINE, summary[name]["mean excess %"]
        kind = "ours" if "Power" in said else "theirs"
        yield text(0, y, said, "bold" if kind == "ours" else "")
        length = max(2.0, 190 * excess / largest)
        yield f'<rect x="330" y="{y - 17}" width="{length:.1f}" height="19" class="{kind}"/>'
        yield text(340 + length, y, f"{excess:.2g} %")
        yield text(WIDTH, y, f"{summary[name]['seconds']:.0f} s", "end")


def main() -> None:
    """Draw and store the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/_static/hero.svg"))
    output = parser.parse_args().output
    points, steadiness, bystanders = towns(), Steadiness(), Bystanders()
    models = {
        "scikit-learn, ten starts": KMeans(N_CLUSTERS, n_init=10, random_state=0),
        "PowerKMeans": PowerKMeans(N_CLUSTERS, random_state=0),
    }
    fits = {name: lambda model=model: model.fit(points) for name, model in models.items()}
    seconds = seconds_in_turns(fits, N_FITS)
    busy, drift = bystanders.processors() or 0.0, steadiness.drift()
    best = PowerKMeans(N_CLUSTERS, effort="thorough", random_state=1).fit(points).cluster_centers_
    lowest = points.min(axis=0)
    unit = (np.array([MAP_WIDTH, MAP_HEIGHT]) - 16) / (points.max(axis=0) - lowest)

    def to_pixels(places: np.ndarray) -> np.ndarray:
        return 8 + (places - lowest) * unit

    drawn = to_pixels(points[np.random.default_rng(0).permutation(len(points))[:N_DRAWN]])
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in drawn)
    shapes = []
    for left, (name, model) in zip((0, WIDTH - MAP_WIDTH), models.items(), strict=True):
        n_wrong = centroid_index(model.cluster_centers_, best)
        said = f"{n_wrong or 'no'} misplaced center{'s' * (n_wrong != 1)}"
        shapes += [text(left, 24, name, "bold"), text(left, 54, f"{seconds[name]:.2f} s, {said}")]
        shapes += map_of(left, model, best, "ours" if left else "theirs", to_pixels)
    stored = read("quality", "quality")
    top = TOP + MAP_HEIGHT + 40
    height = top + LINE * len(METHODS) + 12
    shapes += table(top, stored)
    box = f'viewBox="-8 0 {WIDTH + 16} {height}" width="{WIDTH + 16}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    paper = f'<rect x="-8" width="{WIDTH + 16}" height="{height}" class="paper"/>'
    defined = f'<defs><path id="points" class="points" d="{dots}"/></defs>'
    lines = [head, f"<style>{STYLE}</style>", defined, paper, *shapes, "</svg>\n"]
    output.write_text("\n".join(lines), encoding="utf-8")
    print(f"{output}: " + ", ".join(f"{name} {each:.3f} s" for name, each in seconds.items()))
    if drift > STEADY or busy > QUIET:
        changed = f"its speed changed by {drift:.0%}, others used {busy:.1f} processors"
        sys.exit(f"The machine was not idle ({changed}): run this again.")


if __name__ == "__main__":
    main()
