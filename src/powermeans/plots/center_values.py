"""What makes clusters different: the values of their centers and points by feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from powermeans.plots import fitted
from powermeans.plots.canvas import INK, Axes, axes_or_new, color_of, marker_of, tidy
from powermeans.plots.fitted import PointsLike
from powermeans.types import FloatArray, IndexArray, SparsePoints

# Beyond so many cells numbers would not be readable.
_MOST_NUMBERS = 160
_MOST_BANDS = 6


def center_heatmap(
    model: Any, X: PointsLike, *, max_features: int = 30, ax: Axes | None = None
) -> Axes:
    """The centers by feature, in standard deviations of the points from their mean.

    Blue is below the mean of all points, red above. Of many features those are shown in which the
    centers differ most, by their standard deviation in this unit.

    Parameters
    ----------
    model : estimator
        Fitted, with `cluster_centers_`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_features : int, default=30
        How many features to show at most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    profiles : With the spread of the points.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> ax = plots.center_heatmap(PowerKMeans(2, random_state=0).fit(X), X)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['column 0', 'column 1']
    """
    centers = fitted.centers_of(model)
    mean, spread = mean_and_spread(fitted.points_of(model, X, fitted.labels_of(model, X)))
    heights = (centers - mean) / spread
    features = most_distinguishing(heights, max_features)
    heights, names = heights[:, features], _short(fitted.names_of(model, X), features)
    n_clusters, n_shown = heights.shape
    ax = axes_or_new(
        ax, figsize=(min(14.0, 3 + 0.55 * n_shown), min(11.0, 3.0 + 0.34 * n_clusters))
    )
    reach = max(1e-12, float(np.abs(heights).max()))
    drawn = ax.imshow(heights, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto")
    ax.figure.colorbar(drawn, ax=ax, label="standard deviations")
    if heights.size <= _MOST_NUMBERS:
        _write_numbers(ax, heights, reach)
    ax.set_xticks(range(n_shown), names, rotation=45, ha="right", rotation_mode="anchor")
    step = -(-n_clusters // 40)
    ax.set_yticks(range(0, n_clusters, step))
    ax.set(ylabel="cluster", title="Centers by feature")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def profiles(model: Any, X: PointsLike, *, max_features: int = 12, ax: Axes | None = None) -> Axes:
    """The profile of each cluster: its mean in each feature, and where half of its points lie.

    All features are in standard deviations of the points from their mean. Bands reach from the
    first to the third quartile, and are left out where there are more than six clusters.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_features : int, default=12
        How many features to show at most, those in which the clusters differ most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    center_heatmap : The centers alone, as colours.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> ax = plots.profiles(PowerKMeans(2, random_state=0).fit(X), X)
    >>> ax.get_legend_handles_labels()[1]
    ['0', '1']
    """
    labels = fitted.labels_of(model, X)
    points, found = fitted.points_of(model, X, labels), np.unique(labels)
    mean, spread = mean_and_spread(points)
    means = np.stack([np.ravel(points[labels == label].mean(axis=0)) for label in found])
    means = (means - mean) / spread
    features = most_distinguishing(means, max_features)
    heights = (_dense_columns(points, features) - mean[features]) / spread[features]
    ax = axes_or_new(ax, figsize=(min(12.0, 3.5 + 0.6 * len(features)), 4.8))
    for label, profile in zip(found, means[:, features], strict=True):
        if len(found) <= _MOST_BANDS:
            quartiles = np.quantile(heights[labels == label], [0.25, 0.75], axis=0)
            ax.fill_between(
                range(len(features)), *quartiles, color=color_of(label), alpha=0.15, linewidth=0
            )
        ax.plot(profile, color=color_of(label), marker=marker_of(label), label=str(label))
    ax.axhline(0, color=INK, linewidth=0.8)
    names = _short(fitted.names_of(model, X), features)
    ax.set_xticks(range(len(features)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set(ylabel="standard deviations from the mean", title="Profiles of the clusters")
    ax.legend(
        title="cluster", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False,
        ncols=-(-len(found) // 16),
    )  # fmt: skip
    tidy(ax, grid="y")
    return ax


def most_distinguishing(heights: FloatArray, most: int) -> IndexArray:
    """The columns in which rows differ most, in the order of the columns."""
    if most < 1:
        raise ValueError(f"max_features={most!r} must be at least 1: pass for example 12")
    return np.sort(np.argsort(-heights.std(axis=0), kind="stable")[:most])


def mean_and_spread(points: FloatArray | SparsePoints) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column; one where that is zero."""
    mean = np.ravel(points.mean(axis=0))
    if sparse.issparse(points):
        squares = np.ravel(points.multiply(points).mean(axis=0))
        spread = np.sqrt(np.maximum(squares - np.square(mean), 0.0))
    else:
        spread = points.std(axis=0)
    is_constant = spread <= 1e-12 * np.abs(mean)
    return mean, np.where(is_constant, 1.0, spread)


def _dense_columns(points: FloatArray | SparsePoints, features: IndexArray) -> FloatArray:
    some = points[:, features]
    dense: FloatArray = some.toarray() if sparse.issparse(some) else some
    return dense


def _short(names: list[str], features: IndexArray) -> list[str]:
    """Names that fit below an axis, their signs of mathematics taken literally."""
    shown = (names[feature].replace("$", r"\$") for feature in features)
    return [name if len(name) <= 24 else f"{name[:23]}…" for name in shown]


def _write_numbers(ax: Axes, heights: FloatArray, reach: float) -> None:
    for (row, column), height in np.ndenumerate(heights):
        color = "white" if abs(height) > 0.6 * reach else INK
        text = f"{round(height, 1) + 0.0:.1f}".replace("-", "−")
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=color)
