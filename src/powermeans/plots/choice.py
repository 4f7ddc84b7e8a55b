"""Inertia and criteria by number of clusters."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.criteria import knee as index_of_knee
from powermeans.plots.canvas import BLUE, GREY, VERMILION, Axes, axes_or_new, tidy
from powermeans.types import FloatArray

# Markers that can be told apart without colour.
_MARKERS = "osD^vP*X<>"
_LEGEND_WIDTH = 32


def knee(choice: Any, inertias: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the inertia by number of clusters, and mark where the curve bends most.

    The knee is the number whose inertia is farthest below the straight line from the first number
    to the last, with both axes scaled to one. Every curve that lies below its line has one; other
    criteria tell whether it means anything.

    Parameters
    ----------
    choice : result of `choose_k`, or array-like of int of shape (n_sizes,)
        The result, or rising numbers of clusters with their `inertias`.
    inertias : array-like of float of shape (n_sizes,), optional
        The inertia for each number.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    powermeans.choose_k : Finds the inertias, and applies other criteria.
    powermeans.criteria.knee : The rule. `choose_k` applies it to the logarithm of the inertia.

    Examples
    --------
    >>> from powermeans import plots
    >>> plots.knee([1, 2, 3, 4, 5], [100.0, 40.0, 10.0, 8.0, 7.0]).get_title()
    'The knee is at k = 3'
    """
    ks, values = _curve(choice, inertias)
    bend = index_of_knee(ks, values)
    ax = axes_or_new(ax)
    ax.plot(ks, values, color=BLUE, marker="o", markersize=5)
    ax.plot(ks[[0, -1]], values[[0, -1]], color=GREY, linestyle=":", linewidth=1)
    title = "There is no knee"
    if bend is not None:
        ax.axvline(ks[bend], color=VERMILION, linestyle="--", linewidth=1.2)
        title = f"The knee is at k = {ks[bend]}"
    recommended = getattr(choice, "recommended", None)
    if recommended is not None:
        is_recommended = ks == recommended
        ax.plot(
            ks[is_recommended], values[is_recommended], marker="s", markersize=12, linestyle="",
            markerfacecolor="none", markeredgecolor=VERMILION, markeredgewidth=1.6,
        )  # fmt: skip
        title += f"; recommended is {recommended} (square)"
    ax.set(xlabel="number of clusters k", ylabel="inertia", title=title)
    ax.xaxis.get_major_locator().set_params(integer=True)
    tidy(ax, grid="y")
    return ax


def draw_choice(choice: Any, column: str, ax: Axes | None) -> Axes:
    """Draw a column of the table of a `ChoiceOfK` by k, and mark what the criteria say."""
    sizes, values = choice.table["k"], choice.table[column]
    ax = axes_or_new(ax)
    ax.plot(sizes, np.where(np.isfinite(values), values, np.nan), color="0.5", marker=".", zorder=1)
    ax.axvline(choice.recommended, color="0.8", zorder=0)
    for marker, (k, criteria) in zip(_MARKERS, _criteria_by_k(choice).items(), strict=False):
        label = textwrap.fill(f"{k}: {', '.join(criteria)}", _LEGEND_WIDTH)
        at = values[sizes == k]
        ax.scatter([k], at, marker=marker, color="k", zorder=2, label=label)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="number of clusters k", ylabel=column.replace("_", " "))
    ax.set_title(f"{choice.verdict()}, by {choice.decided_by.replace('_', ' ')}")
    ax.legend(title="k by criterion", fontsize="small")
    return ax


def _criteria_by_k(choice: Any) -> dict[int, list[str]]:
    """Return the names of the criteria by the k that they say, the smallest first."""
    names: dict[int, list[str]] = {}
    for name, k in choice.by_criterion.items():
        if k is not None:
            names.setdefault(k, []).append(name.replace("_", " "))
    return dict(sorted(names.items()))


def _curve(choice: Any, inertias: ArrayLike | None) -> tuple[Any, FloatArray]:
    if hasattr(choice, "table"):
        choice, inertias = choice.table["k"], choice.table["inertia"]
    if inertias is None:
        raise ValueError("inertias is missing: pass one for each k, or a result of choose_k")
    ks, values = np.asarray(choice), np.asarray(inertias, dtype=np.float64)
    if ks.ndim != 1 or ks.shape != values.shape or len(ks) < 2 or (np.diff(ks) <= 0).any():
        raise ValueError(
            f"there are {ks.size} numbers of clusters and {values.size} inertias: pass at least "
            "two rising numbers, and an inertia for each"
        )
    return ks, values
