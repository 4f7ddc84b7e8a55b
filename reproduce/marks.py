"""How methods look in pictures: the same in all of them, in colour and in print without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from powermeans.plots.canvas import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION
from reproduce.item import Row
from reproduce.matched_starts import KHM, LLOYD, ONE_DESCENT, SEARCH, patient_from, power_from
from reproduce.selecting import column, kinds, where

MARKS = {
    LLOYD: (INK, "o"),
    KHM: (GREY, "X"),
    power_from(-1.0): (SKY, "v"),
    power_from(-3.0): (BLUE, "s"),
    power_from(-9.0): (GREEN, "D"),
    power_from(-18.0): (PURPLE, "P"),
    patient_from(-1.0): (SKY, "<"),
    patient_from(-3.0): (BLUE, ">"),
    ONE_DESCENT: (ORANGE, "^"),
    SEARCH: (VERMILION, "*"),
}
"""Colour and shape of each method, by its name."""
# By this factor a line is beside the one before, or all would lie in one place.
ASIDE = 1.05
# Below this excess, in percent, the axis is linear, so that none has a place.
LINEAR_BELOW = 0.1


def draw_lines(axes: Any, rows: Sequence[Row], x: str, y: str) -> None:
    """The mean of a figure over another, a line for each method, each a little beside the last."""
    places = sorted({float(row[x]) for row in rows})
    names = kinds(rows, "method")
    for order, name in enumerate(names):
        color, marker = MARKS[str(name)]
        beside = np.array(places) * ASIDE ** (order - (len(names) - 1) / 2)
        means = [np.mean(column(where(rows, method=name, **{x: place}), y)) for place in places]
        axes.plot(
            beside, means, linestyle="--" if marker in "<>" else "-", linewidth=1.2, color=color,
            marker=marker, markersize=6, markeredgecolor="white", markeredgewidth=0.5,
            label=str(name),
        )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def draw_costs(axes: Any, rows: Sequence[Row]) -> None:
    """Excess against seconds, a small mark for each run and a large one for the medians."""
    for name in kinds(rows, "method"):
        color, marker = MARKS[str(name)]
        of_method = where(rows, method=name)
        seconds, excess = column(of_method, "seconds"), column(of_method, "excess")
        axes.scatter(seconds, excess, s=14, color=color, marker=marker, alpha=0.4, linewidths=0)
        axes.scatter(
            np.median(seconds), np.median(excess), s=190 if marker == "*" else 90, color=color,
            marker=marker, edgecolor="white", linewidths=0.6, zorder=3, label=str(name),
        )  # fmt: skip
    scale_costs(axes, max(column(rows, "excess")))


def scale_costs(axes: Any, highest: float) -> None:
    """Logarithmic both ways, but with a place for an excess of zero, and plain numbers."""
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.5)
    axes.set_ylim(-0.3 * LINEAR_BELOW, 1.8 * max(highest, LINEAR_BELOW))
    marks = [0.0, *(step * 10.0**tens for tens in range(-1, 4) for step in (1, 3))]
    axes.set_yticks([mark for mark in marks if LINEAR_BELOW <= mark <= 1.8 * highest or not mark])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set(xlabel="seconds", ylabel="sum of squares above the least, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)


def draw_spread(axes: Any, rows: Sequence[Row], of: str) -> None:
    """A figure of each method, its runs as small marks beside each other and the mean as a bar."""
    names = kinds(rows, "method")
    for height, name in enumerate(reversed(names)):
        color, marker = MARKS[str(name)]
        values = column(where(rows, method=name), of)
        aside = np.linspace(-0.22, 0.22, len(values))
        axes.scatter(
            values, height + aside, s=12, color=color, marker=marker, alpha=0.5, linewidths=0
        )
        axes.plot([np.mean(values)] * 2, [height - 0.38, height + 0.38], color=color, linewidth=3)
    axes.set_yticks(range(len(names)), [str(name) for name in reversed(names)])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def add_legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """The methods once, below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
