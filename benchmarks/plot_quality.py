"""Draws a stored run of benchmarks.quality: mean excess against total time, a point a method."""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.excess import Record
from benchmarks.machine import read, stored_at

# A package has a colour of Okabe and Ito's; what differs in effort alone is joined by a line.
PACKAGES: dict[str, tuple[str, str, list[str]]] = {
    "powermeans": ("#0072B2", "o", ["fast", "balanced", "thorough"]),
    "powermeans, one run": ("#0072B2", "v", ["lloyd", "annealed"]),
    "powermeans, as in the paper": ("#0072B2", "P", ["paper"]),
    "scikit-learn": ("#E69F00", "s", ["sklearn-1", "sklearn-10", "sklearn-100"]),
    "scikit-learn-intelex": ("#D55E00", "D", ["sklearnex-1", "sklearnex-10"]),
    "bkmeans": ("#009E73", "^", ["bkmeans"]),
    "hgmeans": ("#CC79A7", "X", ["hgmeans", "hgmeans-5000"]),
    "fastkmeanspp": ("#000000", "<", ["fastkmeanspp"]),
    "faiss": ("#56B4E9", "h", ["faiss", "faiss-plusplus"]),
}
# Where a label would cover another one: its offset in points, and how it is aligned.
LABELS = {
    "fastkmeanspp": ((6, -13), "left"),
    "sklearn-1": ((-2, -13), "right"),
    "sklearnex-1": ((-8, 3), "right"),
    "lloyd": ((-8, -3), "right"),
}
# Below this the axis is linear, so that an excess of zero has a place.
LINEAR_BELOW = 0.01


def draw_methods(axes: Axes, record: Record, methods: list[str], problems: list[str]) -> None:
    """A point for each method, from the problems that all of them solved."""
    for color, marker, members in PACKAGES.values():
        present = [name for name in members if name in methods]
        if not present:
            continue
        seconds = [record.seconds(name, problems) for name in present]
        excess = [100 * mean(record.excess[name][p] for p in problems) for name in present]
        axes.plot(seconds, excess, marker=marker, color=color, markersize=8)
        for name, x, y in zip(present, seconds, excess, strict=True):
            offset, align = LABELS.get(name, ((7, 5), "left"))
            axes.annotate(
                name, (x, y), xytext=offset, ha=align, textcoords="offset points", fontsize=8
            )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.4)
    axes.set_ylim(0, 2 * axes.get_ylim()[1])
    axes.margins(x=0.18)
    axes.set_xlabel("seconds for all problems, one seed each")
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.grid(alpha=0.3)


def panels(record: Record) -> list[tuple[list[str], list[str]]]:
    """Methods and problems of each panel: those that ran on all, then all where all of them ran."""
    drawn = [name for _, _, members in PACKAGES.values() for name in members]
    there = [name for name in drawn if record.excess.get(name)]
    everywhere = [name for name in there if len(record.excess[name]) == len(record.cells)]
    shown = [(everywhere, list(record.cells))] if everywhere else []
    if len(there) > len(everywhere) and (common := record.common(there)):
        shown.append((there, common))
    return shown


def draw(record: Record, picture: Path) -> None:
    shown = panels(record)
    figure, all_axes = plt.subplots(
        1, len(shown), figsize=(6.2 * len(shown) + 0.8, 5.4), squeeze=False, layout="constrained"
    )
    for axes, (methods, problems) in zip(all_axes[0], shown, strict=True):
        draw_methods(axes, record, methods, problems)
        axes.set_title(f"{len(problems)} problems", fontsize=10)
    all_axes[0][0].set_ylabel("mean excess over the lowest inertia known, %")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="quality", help="of the stored file")
    parser.add_argument("--output", type=Path, help="instead of beside that file")
    arguments = parser.parse_args()
    figures = read(arguments.name, "quality")["figures"]
    picture = arguments.output or stored_at(arguments.name).with_suffix(".png")
    draw(Record(figures["problems"], figures["cells"]), picture)
    print(f"drawn in {picture}")


if __name__ == "__main__":
    main()
