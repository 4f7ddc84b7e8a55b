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
    ['column 0 <= 5', 'cluster 0: 50 %', 'cluster 1: 50 %']
    """
    if not hasattr(explanation, "rules"):
        name = type(explanation).__name__
        raise TypeError(f"explanation is a {name}: pass what explain returned")
    features, leaves = explanation.features, list(explanation.tree.leaves())
    ax = axes_or_new(ax, figsize=(11.0, 1.0 + 0.45 * len(leaves)))
    shares = iter(explanation.rules)
    box = {"boxstyle": "round,pad=0.3", "linewidth": 1.2}
    next_row = iter(range(len(leaves)))

    def draw(node: Any, depth: int) -> float:
        if node.below is None:
            row, rule = float(next(next_row)), next(shares)
            text = f"cluster {node.label}: {_percent(rule.share)}"
            style = {"facecolor": "white", "edgecolor": color_of(node.label)}
            texts.append((depth, row, text, style))
            return row
        place = len(texts)
        rows = [draw(below, depth + 1) for below in node.below]
        row = sum(rows) / 2
        for other in rows:
            ax.plot([depth, depth + 0.5, depth + 1], [row, other, other], color=PALE, zorder=1)
        text = features[node.feature].phrase(-np.inf, node.threshold)
        texts.insert(place, (depth, row, text, {"facecolor": "white", "edgecolor": INK}))
        return row

    texts: list[tuple[int, float, str, dict[str, str]]] = []
    draw(explanation.tree, 0)
    for depth, row, text, style in texts:
        shown = text.replace("$", r"\$")
        ax.text(depth, row, shown, ha="center", va="center", fontsize=8, bbox={**box, **style})
    ax.set_xlim(-0.6, max(depth for depth, *_ in texts) + 0.6)
    ax.set_ylim(len(leaves) - 0.4, -0.6)
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
        for label, (share, low) in enumerate(zip(side, start, strict=True)):
            ax.plot(
                [x, x],
                [low, low + share],
                color=color_of(label),
                linewidth=9,
                solid_capstyle="butt",
            )
            text = f"{label} ({_percent(share)})"
            ax.text(
                x + (0.03 if x else -0.03), low + share / 2, text, ha=ha, va="center", fontsize=9
            )
    left, right = starts[0].copy(), starts[1].copy()
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
