"""Axes, colours and shapes of all plots. They import matplotlib when a plot is made."""

from typing import Any

import numpy as np

from powermeans.types import FloatArray

Axes = Any
"""matplotlib's Axes, whose types are unknown where it is not installed."""

# Okabe & Ito (2008), with grey for yellow, which hardly shows on white, and without black, which
# marks centers.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#999999")
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY = OKABE_ITO
N_LOOKS = 56  # of clusters, which differ in the pair of colour and shape
INK = "#222222"
PALE = "#c3c9d0"


def color_of(label: int) -> str:
    """Return the colour of a cluster."""
    return OKABE_ITO[label % len(OKABE_ITO)]


def marker_of(label: int) -> str:
    """Return the shape of the points of a cluster, in matplotlib's letters.

    There are eight, prime to the seven colours.
    """
    return "os^DvPX*"[label % 8]


def axes_or_new(ax: Axes | None, *, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError(
            'plots need matplotlib, which is not installed: pip install "powermeans[plot]"'
        ) from missing
    return pyplot.figure(figsize=figsize, layout="constrained").subplots()


def tidy(ax: Axes, *, grid: str | None = None) -> None:
    """Remove the frame at the top and on the right, and draw a pale grid along one axis."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color="#e4e7ea", linewidth=0.8)
        ax.set_axisbelow(True)


def logarithmic(ax: Axes) -> None:
    """Scale the y axis logarithmically, with ticks at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:.9g}")
    ax.minorticks_off()


def label_centers(ax: Axes, places: FloatArray) -> None:
    """Write the number of each center in a white disc, so that a print needs no legend."""
    size = 7 if len(places) > 20 else 8.5
    disc = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 1.2}
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "zorder": 5}
    for label, (x, y) in enumerate(np.asarray(places)):
        ax.text(x, y, str(label), fontsize=size, bbox=disc, **style)


def legend_of_clusters(ax: Axes, **style: Any) -> None:
    """Put the legend of the clusters to the right of the axes."""
    ax.legend(title="cluster", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, **style)
