"""A column of the table of `choose_k` by number of clusters."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from powermeans.plots.canvas import BLUE, GREY, OKABE_ITO, VERMILION, Axes, axes_or_new, tidy


def choice_of_k(choice: Any, column: str = "inertia", *, ax: Axes | None = None) -> Axes:
    """Draw a column of the table of `choose_k` by k, and mark the k that each criterion says.

    The dashed line is at the recommended k.

    Parameters
    ----------
    choice : ChoiceOfK
        What `choose_k` returned.
    column : str, default="inertia"
        A name in its `table`: the inertia or a criterion.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    powermeans.choose_k : Finds centers for each k, and evaluates the criteria.

    Examples
    --------
    >>> from powermeans import choose_k, plots
    >>> X = [[0.0], [1.0], [2.0], [20.0], [21.0], [22.0], [40.0], [41.0], [42.0]]
    >>> choice = choose_k(X, range(1, 6), criteria=["bic", "silhouette"], random_state=0)
    >>> plots.choice_of_k(choice, "silhouette").get_ylabel()
    'silhouette'
    """
    if not hasattr(choice, "by_criterion"):
        raise TypeError(f"choice is a {type(choice).__name__}: pass what choose_k returned")
    if column not in choice.table or column == "k":
        names = [name for name in choice.table if name != "k"]
        raise ValueError(f"column={column!r} is not in the table: pass one of {names}")
    sizes, values = choice.table["k"], choice.table[column]
    ax = axes_or_new(ax)
    ax.plot(sizes, np.where(np.isfinite(values), values, np.nan), color=BLUE, marker=".", zorder=1)
    ax.axvline(choice.recommended, color=GREY, linestyle="--", linewidth=1, zorder=0)
    said: dict[int, list[str]] = {}
    for name, k in choice.by_criterion.items():
        if k is not None:
            said.setdefault(k, []).append(name.replace("_", " "))
    others = (color for color in OKABE_ITO[1:] if color != VERMILION)
    for marker, (k, criteria) in zip("sD^vP*X<>", sorted(said.items()), strict=False):
        color = VERMILION if k == choice.recommended else next(others, GREY)
        label = textwrap.fill(f"{k}: {', '.join(criteria)}", width=32)
        ax.scatter([k], values[sizes == k], s=60, marker=marker, color=color, zorder=2, label=label)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="number of clusters k", ylabel=column.replace("_", " "))
    ax.set_title(choice.verdict())
    ax.legend(title="k by criterion", fontsize="small", frameon=False)
    tidy(ax, grid="y")
    return ax
