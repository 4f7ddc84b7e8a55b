"""Sizes and silhouettes of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.plots import fitted
from powermeans.plots.canvas import INK, Axes, axes_or_new, color_of, tidy
from powermeans.plots.fitted import PointsLike
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray

_MOST_NAMED = 30


def sizes(
    model: Any,
    X: PointsLike,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many points each cluster has, and their share.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    sample_weight : array-like of shape (n_samples,), optional
        How often each point counts.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    clusters : Draws where the clusters lie.
    profiles : Draws what sets them apart.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0], [1.0], [2.0], [10.0]]
    >>> ax = plots.sizes(PowerKMeans(2, init=[[0.0], [10.0]]).fit(X), X)
    >>> [text.get_text() for text in ax.texts]
    ['75 %', '25 %']
    """
    labels = fitted.labels_of(model, X)
    n_clusters = fitted.n_clusters_of(model, labels)
    weights = None if sample_weight is None else np.asarray(on_host(sample_weight), np.float64)
    counts = np.bincount(labels, weights, minlength=n_clusters)
    ax = axes_or_new(ax)
    bars = ax.bar(range(n_clusters), counts, color=[color_of(label) for label in range(n_clusters)])
    if n_clusters <= _MOST_NAMED:
        shares = [f"{share:.0%}".replace("%", " %") for share in counts / counts.sum()]
        ax.bar_label(bars, shares, fontsize=8 if n_clusters <= 15 else 6, padding=2)
        ax.set_xticks(range(n_clusters))
    ax.set(xlabel="cluster", ylabel="points" if weights is None else "weight")
    ax.set_title("Sizes of the clusters")
    tidy(ax, grid="y")
    return ax


def silhouettes(
    model: Any, X: PointsLike, *, max_points: int = 2000, ax: Axes | None = None
) -> Axes:
    """Draw how much nearer each point is to its own cluster than to the next (Rousseeuw 1987).

    The silhouette of a point is ``(b - a) / max(a, b)``, where a is its mean Euclidean distance to
    the other points of its cluster and b that to the points of the nearest other cluster. It is
    near 1 well inside a cluster, near 0 between two, and negative if the point is nearer to
    another. The dashed line is the mean.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_points : int, default=2000
        If there are more points, a sample of this size is taken, since all pairs are compared; the
        title says so.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    sizes : Draws how large the clusters are.
    shadows : Compares points with centers, which is quicker.
    powermeans.criteria.silhouette : Computes the mean over the points.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> plots.silhouettes(PowerKMeans(2, random_state=0).fit(X), X).get_title()
    'Silhouettes of 4 points, 0.89 in the mean'
    """
    labels = fitted.labels_of(model, X)
    shown = fitted.sample_of(len(labels), max_points)
    points = fitted.points_of(model, fitted.rows_of(X, shown), labels[shown])
    if len(np.unique(labels[shown])) < 2:
        raise ValueError("all points are in one cluster: silhouettes need at least 2")
    values = _silhouettes(points, labels[shown])
    ax = axes_or_new(ax)
    draw_by_cluster(ax, values, labels[shown], name="silhouette")
    of_all = "" if len(shown) == len(labels) else f" of {len(labels)}"
    ax.set_title(f"Silhouettes of {len(shown)}{of_all} points, {values.mean():.2f} in the mean")
    return ax


def _silhouettes(points: Any, labels: Any) -> FloatArray:
    """Return the silhouette of each point, zero if each is alone in its cluster."""
    if len(np.unique(labels)) == len(labels):
        return np.zeros(len(labels))
    from sklearn.metrics import silhouette_samples

    return np.asarray(silhouette_samples(points, labels))


def draw_by_cluster(ax: Axes, values: FloatArray, labels: Any, *, name: str) -> None:
    """Draw clusters below each other, each with the values of its points from high to low."""
    gap = max(1, len(values) // 100)
    top, places = 0, []
    found = np.unique(labels)
    for label in found:
        falling = np.sort(values[labels == label])[::-1]
        rows = np.arange(top, top + len(falling))
        ax.fill_betweenx(rows, 0, falling, step="mid", color=color_of(label), linewidth=0.8)
        places.append(rows.mean())
        top += len(falling) + gap
    ax.axvline(values.mean(), color=INK, linestyle="--", linewidth=1.2)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(places, [str(label) for label in found])
    if len(found) > _MOST_NAMED:
        ax.set_yticks([])
    ax.invert_yaxis()
    ax.set(xlabel=name, ylabel="cluster")
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
