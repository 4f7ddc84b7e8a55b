"""Which number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.plots.canvas import BLUE, GREY, VERMILION, Axes, axes_or_new, tidy
from powermeans.types import FloatArray


def knee(choice: Any, inertias: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Inertia by number of clusters, and where the curve bends most.

    The knee is the number whose inertia is farthest below the straight line from the first number
    to the last, both axes scaled to one (Satopää et al. 2011, with no smoothing). There always is
    one: whether it means anything, other criteria tell.

    Parameters
    ----------
    choice : result of `choose_k`, or array-like of int of shape (n_sizes,)
        What `choose_k` found; or the numbers of clusters, rising, with `inertias`.
    inertias : array-like of float of shape (n_sizes,), optional
        The inertia for each number.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    powermeans.choose_k : Finds the inertias, and asks other criteria.
    powermeans.criteria.knee : The rule.

    Examples
    --------
    >>> from powermeans import plots
    >>> plots.knee([1, 2, 3, 4, 5], [100.0, 40.0, 10.0, 8.0, 7.0]).get_title()
    'The knee is at k = 3'
    """
    ks, values = _curve(choice, inertias)
    bend = ks[knee_of(ks, values)]
    ax = axes_or_new(ax)
    ax.plot(ks, values, color=BLUE, marker="o", markersize=5)
    ax.plot(ks[[0, -1]], values[[0, -1]], color=GREY, linestyle=":", linewidth=1)
    ax.axvline(bend, color=VERMILION, linestyle="--", linewidth=1.2)
    recommended = getattr(choice, "recommended", None)
    title = f"The knee is at k = {bend}"
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


def knee_of(ks: Any, inertias: FloatArray) -> int:
    """Which of the numbers lies farthest below the chord of the curve."""
    spread, fall = float(np.ptp(ks)), float(np.ptp(inertias))
    right = (ks - ks[0]) / (spread or 1.0)
    down = (inertias - inertias.min()) / (fall or 1.0)
    chord = down[0] + (down[-1] - down[0]) * right
    return int(np.argmax(chord - down))


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
