"""Clusters by feature: the values of their centers, and the profiles of their points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from powermeans.divergences.chunks import as_float64
from powermeans.plots import canvas, fitted
from powermeans.plots.canvas import Axes
from powermeans.plots.fitted import PointsLike, most_distinguishing
from powermeans.types import IndexArray


def profiles(model: Any, X: PointsLike, *, max_features: int = 12, ax: Axes | None = None) -> Axes:
    """Draw the profile of each cluster: its mean in each feature, and where half its points lie.

    All features are in standard deviations of the points from their mean. Bands reach from the
    first to the third quartile; they are left out if there are more than six clusters.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points, or the table that the model was fitted to.
    max_features : int, default=12
        The largest number of features to show; they are those in which the clusters differ most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    center_bars : Draws the centers in the unit of the columns.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> ax = plots.profiles(PowerKMeans(2, random_state=0).fit(X), X)
    >>> ax.get_legend_handles_labels()[1]
    ['0', '1']
    """
    model, X, labels, names = fitted.opened(model, X)
    points, found = fitted.points_of(model, X, labels), np.unique(labels)
    scaler = StandardScaler(with_mean=False).fit(points)
    mean, spread = scaler.mean_, scaler.scale_
    means = np.stack([np.ravel(points[labels == label].mean(axis=0)) for label in found])
    means = (means - mean) / spread
    features = most_distinguishing(means, max_features)
    heights = (as_float64(points[:, features]) - mean[features]) / spread[features]
    ax = canvas.axes_or_new(ax, figsize=(min(12.0, 3.5 + 0.6 * len(features)), 4.8))
    for label, profile in zip(found, means[:, features], strict=True):
        color = canvas.color_of(label)
        if len(found) <= 6:  # bands of more hide each other
            low, high = np.quantile(heights[labels == label], [0.25, 0.75], axis=0)
            ax.fill_between(range(len(low)), low, high, color=color, alpha=0.15, linewidth=0)
        ax.plot(profile, color=color, marker=canvas.marker_of(label), label=str(label))
    ax.axhline(0, color=canvas.INK, linewidth=0.8)
    names = _short(names, features)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set(ylabel="standard deviations from the mean", title="Profiles of the clusters")
    canvas.legend_of_clusters(ax, ncols=-(-len(found) // 16))
    canvas.tidy(ax, grid="y")
    return ax


def center_bars(
    model: Any, X: PointsLike, *, max_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the centers as bars, one block for each cluster, with the means of all points.

    A dark mark shows the mean of all points in each column. All columns share one scale, so draw
    columns in one unit, such as answers from 1 to 5 or shares; `profiles` is for others.

    Parameters
    ----------
    model : estimator
        Fitted, with `cluster_centers_`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points, or the table that the model was fitted to.
    max_features : int, default=20
        The largest number of features to show; they are those in which the centers differ most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    profiles : Draws the clusters in standard deviations, with the spread of their points.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> ax = plots.center_bars(PowerKMeans(2, random_state=0).fit(X), X)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['column 0', 'column 1']
    """
    model, X, labels, names = fitted.opened(model, X)
    centers = fitted.centers_of(model)
    if len(centers) > 200:
        raise ValueError(f"model has {len(centers):,} centers, and bars show 200: draw `clusters`")
    mean = np.ravel(fitted.points_of(model, X, labels).mean(axis=0))
    features = most_distinguishing(centers, max_features)
    centers, mean = centers[:, features], mean[features]
    low, high = min(0.0, centers.min(), mean.min()), max(0.0, centers.max(), mean.max())
    step = 1.15 * ((high - low) or 1.0)
    ax = canvas.axes_or_new(
        ax, figsize=(min(14.0, 2.5 + 1.6 * len(centers)), min(11.0, 1.6 + 0.34 * len(features)))
    )
    rows = np.arange(len(features))
    for label, center in enumerate(centers):
        zero = label * step
        ax.barh(rows, center, left=zero, height=0.7, color=canvas.color_of(label))
        ax.vlines(zero + mean, rows - 0.42, rows + 0.42, colors=canvas.INK, linewidth=1.6)
        ax.axvline(zero, color=canvas.PALE, linewidth=0.8, zorder=0)
    sizes = np.bincount(labels, minlength=len(centers)) / len(labels)
    ax.set_xticks(
        step * np.arange(len(centers)),
        [f"{label}\n{100 * size:.0f} %" for label, size in enumerate(sizes)],
    )
    ax.set_yticks(rows, _short(names, features))
    ax.set(xlabel="cluster, and its share", title="Centers (bars) and all points (marks)")
    ax.invert_yaxis()
    canvas.tidy(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _short(names: list[str], features: IndexArray) -> list[str]:
    """Cut names so that they fit below an axis, and escape their dollar signs."""
    shown = (names[feature].replace("$", r"\$") for feature in features)
    return [name if len(name) <= 24 else f"{name[:23]}…" for name in shown]
