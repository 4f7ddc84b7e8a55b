"""The only file that imports matplotlib, and it does so when a plot is made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powermeans.types import FloatArray

OKABE_ITO = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#D55E00",  # vermilion
    "#56B4E9",  # sky blue
    "#CC79A7",  # reddish purple
    "#999999",  # grey
)
"""Okabe & Ito (2008) without black, which centers have, and with grey in place of yellow, which
is lost on white paper."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One more than there are colours, so that no pair of colour and shape comes again before 56."""

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY = OKABE_ITO
INK = "#222222"
PALE = "#c3c9d0"


def color_of(label: int) -> str:
    """The colour of a cluster."""
    return OKABE_ITO[label % len(OKABE_ITO)]


def marker_of(label: int) -> str:
    """The shape of its points, in matplotlib's letters."""
    return MARKERS[label % len(MARKERS)]


Axes = Any
"""matplotlib's Axes, whose types are not known where it is not installed."""

__all__ = ["Axes", "axes_or_new", "colors_of", "label_centers", "logarithmic", "tidy"]


def axes_or_new(
    ax: Axes | None,
    *,
    figsize: tuple[float, float] = (6.4, 4.8),
    projection: str | None = None,
) -> Axes:
    """The axes that were given, or the only ones of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError(
            'plots need matplotlib, which is not installed: pip install "powermeans[plot]"'
        ) from missing
    figure = pyplot.figure(figsize=figsize, layout="constrained")
    return figure.add_subplot(projection=projection)


def tidy(ax: Axes, *, grid: str | None = None) -> None:
    """Leave out what carries nothing: the frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color="#e4e7ea", linewidth=0.8)
        ax.set_axisbelow(True)


def logarithmic(ax: Axes) -> None:
    """A logarithmic height with marks at 1, 2 and 5 times powers of ten, in plain numbers."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**exponent for exponent in exponents for step in (1, 2, 5)]
    if high > 1e3 * low:
        marks = marks[::3]
    shown = [mark for mark in marks if low <= mark <= high]
    if len(shown) > 1:
        ax.set_yticks(shown, [f"{mark:.9g}" for mark in shown])
        ax.minorticks_off()
    ax.set_ylim(low, high)


def colors_of(heights: FloatArray, colormap: str) -> FloatArray:
    """The colour of each height, from the lowest to the highest, in red, green, blue and alpha."""
    low, high = heights.min(), heights.max()
    shares = (heights - low) / ((high - low) or 1.0)
    from matplotlib import colormaps

    return np.asarray(colormaps[colormap](shares), dtype=np.float64)


def label_centers(ax: Axes, places: FloatArray) -> None:
    """The number of each center in a white disc, so that no legend is needed to read a print."""
    size = 7 if len(places) > 20 else 8.5
    disc = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 1.2}
    for label, (x, y) in enumerate(np.asarray(places)):
        ax.text(
            x,
            y,
            str(label),
            fontsize=size,
            ha="center",
            va="center",
            color=INK,
            bbox=disc,
            zorder=5,
        )
