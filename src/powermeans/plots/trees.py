"""What follows from clusters: the rules that explain them, and flows between fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from powermeans.plots.canvas import INK, PALE, Axes, axes_or_new, color_of


def rules(explanation: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the tree of the rules: yes goes up, no goes down, and each leaf is a cluster.

    Parameters
    ----------
    explanation : Explanation
        What `powermeans.explain` returned.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    powermeans.explain : Finds the rules.

    Examples
    --------
    >>> from powermeans import KMeans, explain, plots
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> ax = plots.rules(explain(KMeans.from_centers([[0.5], [9.5]]), X))
    >>> [text.get_text() for text in ax.texts]
    ['cluster 0: 50 %', 'cluster 1: 50 %', 'column 0 <= 5']
    """
    if not hasattr(explanation, "rules"):
        name = type(explanation).__name__
        raise TypeError(f"explanation is a {name}: pass what explain returned")
    n_leaves, leaves = len(explanation.rules), iter(enumerate(explanation.rules))
    ax = axes_or_new(ax, figsize=(11.0, 1.0 + 0.45 * n_leaves))
    style = {"ha": "center", "va": "center", "fontsize": 8}
    box = {"boxstyle": "round,pad=0.3", "linewidth": 1.2, "facecolor": "white"}

    def draw(node: Any, depth: int) -> tuple[float, int]:
        """Draw a part of the tree, and return the row of its top and its last depth."""
        if node.below is None:
            row, rule = next(leaves)
            last, edge = depth, color_of(node.label)
            text = f"cluster {node.label}: {_percent(rule.share)}"
        else:
            rows, depths = zip(*(draw(below, depth + 1) for below in node.below), strict=True)
            row, last, edge = sum(rows) / 2, max(depths), INK
            for other in rows:
                ax.plot([depth, depth + 0.5, depth + 1], [row, other, other], color=PALE, zorder=1)
            text = explanation.features[node.feature].phrase(-np.inf, node.threshold)
        ax.text(depth, row, text.replace("$", r"\$"), bbox={**box, "edgecolor": edge}, **style)
        return row, last

    _, depth = draw(explanation.tree, 0)
    ax.set_xlim(-0.6, depth + 0.6)
    ax.set_ylim(n_leaves - 0.4, -0.6)
    ax.set_title(f"{explanation.sentence}\nyes goes up, no goes down", fontsize=10)
    ax.set_axis_off()
    return ax


def flows(change: Any, *, ax: Axes | None = None) -> Axes:
    """Draw as bands how many rows went from each former cluster to each present one.

    Parameters
    ----------
    change : Change
        What `powermeans.what_changed` returned.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    powermeans.what_changed : Counts the rows.

    Examples
    --------
    >>> from powermeans import KMeans, plots, what_changed
    >>> april, may = KMeans.from_centers([[0.0], [9.0]]), KMeans.from_centers([[4.0], [9.0]])
    >>> ax = plots.flows(what_changed(april, may, [[0.0], [5.0], [9.0]]))
    >>> len(ax.collections)  # bands
    3
    """
    counts = change.flows / change.flows.sum()
    ax = axes_or_new(ax)
    gap, steps = 0.02, np.linspace(0, 1, 40)
    bend = steps**2 * (3 - 2 * steps)
    sides = [counts.sum(axis=1), counts.sum(axis=0)]
    starts = [np.concatenate([[0], np.cumsum(side + gap)[:-1]]) for side in sides]
    for x, ha, side, start in zip((0, 1), ("right", "left"), sides, starts, strict=True):
        ax.bar([x] * len(side), side, 0.03, start, color=[color_of(i) for i in range(len(side))])
        away = x + (0.03 if x else -0.03)
        for label, (share, low) in enumerate(zip(side, start, strict=True)):
            text = f"{label} ({_percent(share)})"
            ax.text(away, low + share / 2, text, ha=ha, va="center", fontsize=9)
    left, right = starts
    for i, j in np.argwhere(counts > 0):
        low = left[i] + (right[j] - left[i]) * bend
        ax.fill_between(steps, low, low + counts[i, j], color=color_of(i), alpha=0.35, linewidth=0)
        left[i] += counts[i, j]
        right[j] += counts[i, j]
    ax.set(xlim=(-0.25, 1.25), title=f"{_percent(change.stayed)} of the rows stay in their cluster")
    ax.invert_yaxis()
    ax.set_axis_off()
    return ax


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.1 else 1}f} %"
