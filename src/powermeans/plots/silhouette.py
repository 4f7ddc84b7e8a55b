"""Silhouettes of the points, cluster by cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from powermeans.plots import fitted
from powermeans.plots.canvas import INK, Axes, axes_or_new, color_of, tidy
from powermeans.plots.fitted import PointsLike


def silhouettes(
    model: Any, X: PointsLike, *, max_points: int = 2000, ax: Axes | None = None
) -> Axes:
    """Draw how much nearer each point is to its own cluster than to the next (Rousseeuw 1987).

    The silhouette of a point is ``(b - a) / max(a, b)``, where a is its mean Euclidean distance to
    the other points of its cluster and b that to the points of the nearest other cluster. It is
    near 1 well inside a cluster, near 0 between two, and negative if the point is nearer to
    another. The dashed line is the mean. Beside the number of each cluster stands its share of the
    points.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points, or the table that the model was fitted to.
    max_points : int, default=2000
        If there are more points, a sample of this size is shown, since all pairs are compared; the
        title states this.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    uncertainty : Draws which points lie between clusters.
    powermeans.mathematics.criteria.silhouette : Computes the mean over the points.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> plots.silhouettes(PowerKMeans(2, random_state=0).fit(X), X).get_title()
    'Silhouettes of 4 points, 0.89 in the mean'
    """
    model, X, labels, _ = fitted.opened(model, X)
    shown = fitted.sample_of(len(labels), max_points)
    points = fitted.points_of(model, fitted.rows_of(X, shown), labels[shown])
    if len(np.unique(labels[shown])) < 2:
        raise ValueError("all points are in one cluster: silhouettes need at least 2")
    from sklearn.metrics import silhouette_samples

    # A point alone in its cluster has the silhouette zero, which scikit-learn refuses for all.
    are_alone = len(np.unique(labels[shown])) == len(shown)
    values = np.zeros(len(shown)) if are_alone else silhouette_samples(points, labels[shown])
    ax = axes_or_new(ax)
    gap = max(1, len(values) // 100)
    found, counts = np.unique(labels[shown], return_counts=True)
    tops = np.cumsum(counts + gap) - counts - gap
    for label, top, count in zip(found, tops, counts, strict=True):
        falling = np.sort(values[labels[shown] == label])[::-1]
        rows = np.arange(top, top + count)
        ax.fill_betweenx(rows, 0, falling, step="mid", color=color_of(label), linewidth=0.8)
    ax.axvline(values.mean(), color=INK, linestyle="--", linewidth=1.2)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks([])
    if len(found) <= 30:
        pairs = zip(found, counts / len(values), strict=True)
        names = [f"{label}: {100 * share:.0f} %" for label, share in pairs]
        ax.set_yticks(tops + (counts - 1) / 2, names)
    ax.invert_yaxis()
    ax.set(xlabel="silhouette", ylabel="cluster and its share")
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    of_all = "" if len(shown) == len(labels) else f" of {len(labels)}"
    ax.set_title(f"Silhouettes of {len(shown)}{of_all} points, {values.mean():.2f} in the mean")
    return ax
