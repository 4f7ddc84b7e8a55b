"""Points between their nearest and their second nearest center (Leisch 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from powermeans.plots import fitted
from powermeans.plots.canvas import INK, PALE, Axes, axes_or_new, color_of, label_centers, tidy
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.plots.shape import draw_by_cluster
from powermeans.types import FloatArray, Labels

_WIDEST_EDGE = 12.0


@dataclass(frozen=True)
class _TwoNearest:
    """The two centers nearest to each point, and the distances to them."""

    first: Labels
    second: Labels
    distances: FloatArray  # (n_points, 2)
    n_clusters: int

    @classmethod
    def of(cls, model: Any, X: PointsLike) -> Self:
        distances = fitted.distances_of(model, X)
        n_clusters = distances.shape[1]
        if n_clusters < 2:
            raise ValueError("the model has one cluster: neighbours need at least 2")
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :2].astype(np.int32)
        near = np.take_along_axis(distances, nearest, axis=1)
        return cls(nearest[:, 0], nearest[:, 1], near, n_clusters)

    @property
    def shadows(self) -> FloatArray:
        """Return 2 d1 / (d1 + d2), one for a point on both centers."""
        total = self.distances.sum(axis=1)
        twice = 2 * self.distances[:, 0]
        shares: FloatArray = np.divide(twice, total, out=np.ones_like(total), where=total > 0)
        return shares

    def edges(self) -> FloatArray:
        """Return for each pair the shadows of the points between them, over all their points."""
        between = np.zeros((self.n_clusters, self.n_clusters))
        np.add.at(between, (self.first, self.second), self.shadows)
        counts = np.bincount(self.first, minlength=self.n_clusters)
        weights: FloatArray = (between + between.T) / np.maximum(counts[:, None] + counts, 1)
        return weights


def neighbourhood_graph(
    model: Any, X: PointsLike, *, max_points: int = 20_000, ax: Axes | None = None
) -> Axes:
    """Draw which clusters touch: an edge for two centers with points between them.

    A point lies between its nearest and its second nearest center, at distances d1 and d2. Its
    shadow ``2 d1 / (d1 + d2)`` is 0 on the nearest center and 1 halfway. The width of an edge is
    the sum of the shadows of the points between both centers, divided by the number of points of
    the two clusters (after Leisch 2006). Points with more than two features are projected to their
    two principal axes; shadows are those of all features.

    Parameters
    ----------
    model : estimator
        Fitted, with `transform` and `cluster_centers_`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_points : int, default=20_000
        If there are more points, a sample of this size is taken.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    shadows : Draws the shadow of each point.
    clusters : Draws the clusters with their boundaries.

    Examples
    --------
    >>> from powermeans import KMeans, plots
    >>> X = [[0.0], [1.0], [2.0], [4.0], [5.0], [20.0]]
    >>> model = KMeans(3, init=[[1.0], [4.5], [20.0]]).fit(X)
    >>> len(plots.neighbourhood_graph(model, X).lines)  # the cluster at 20 touches none
    1
    """
    shown = fitted.sample_of(fitted.n_rows(X), max_points)
    X = fitted.rows_of(X, shown)
    near = _TwoNearest.of(model, X)
    plane = Plane.of(fitted.points_of(model, X, near.first), fitted.names_of(model, X))
    places = plane.project(fitted.centers_of(model))
    ax = axes_or_new(ax)
    ax.scatter(*plane.points.T, s=5, color=PALE, linewidths=0, rasterized=len(shown) > 5000)
    _draw_edges(ax, places, near.edges())
    label_centers(ax, places)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1], title="Which clusters touch")
    tidy(ax)
    return ax


def _draw_edges(ax: Axes, places: FloatArray, weights: FloatArray) -> None:
    for one, other in np.argwhere(np.triu(weights) > 0):
        width = _WIDEST_EDGE * weights[one, other] / weights.max()
        ends = places[[one, other]].T
        ax.plot(*ends, color=INK, linewidth=width, alpha=0.55, solid_capstyle="butt")


def shadows(model: Any, X: PointsLike, *, max_points: int = 20_000, ax: Axes | None = None) -> Axes:
    """Draw how far each point lies on the way from its center to the second nearest.

    The shadow of a point is ``2 d1 / (d1 + d2)`` with its distances to the two nearest centers
    (Leisch 2010): 0 on its center, 1 halfway between both. It needs no distances between points, so
    it is quick where `silhouettes` are not. The dashed line is the mean.

    Parameters
    ----------
    model : estimator
        Fitted, with `transform`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_points : int, default=20_000
        If there are more points, a sample of this size is taken, and the title says so.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    silhouettes : Compares points with points instead of centers.
    stripes : Draws the distances themselves.

    Examples
    --------
    >>> from powermeans import KMeans, plots
    >>> X = [[0.0], [2.0], [9.0], [11.0]]
    >>> model = KMeans(2, init=[[1.0], [10.0]]).fit(X)
    >>> plots.shadows(model, X).get_title()
    'Shadows of 4 points, 0.20 in the mean'
    """
    n_points = fitted.n_rows(X)
    shown = fitted.sample_of(n_points, max_points)
    near = _TwoNearest.of(model, fitted.rows_of(X, shown))
    values = near.shadows
    ax = axes_or_new(ax)
    draw_by_cluster(ax, values, near.first, name="shadow")
    of_all = "" if len(shown) == n_points else f" of {n_points}"
    ax.set_title(f"Shadows of {len(shown)}{of_all} points, {values.mean():.2f} in the mean")
    return ax


def stripes(model: Any, X: PointsLike, *, max_points: int = 2000, ax: Axes | None = None) -> Axes:
    """Draw the distance of each point to its two nearest centers as a stripe.

    Each cluster has two columns. The left one has a stripe for each of its points, at the distance
    to the center. The right one has the points of other clusters for which this center is the
    second nearest, in the colours of their own clusters. A cluster lies apart if its right column
    begins where the left one ends, or above.

    Parameters
    ----------
    model : estimator
        Fitted, with `transform`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    max_points : int, default=2000
        If there are more points, a sample of this size is shown.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    shadows : Draws the two distances as one number.

    Examples
    --------
    >>> from powermeans import KMeans, plots
    >>> X = [[0.0], [2.0], [9.0], [11.0]]
    >>> model = KMeans(2, init=[[1.0], [10.0]]).fit(X)
    >>> plots.stripes(model, X).get_ylabel()
    'distance to its center'
    """
    shown = fitted.sample_of(fitted.n_rows(X), max_points)
    near = _TwoNearest.of(model, fitted.rows_of(X, shown))
    colors = [color_of(label) for label in near.first]
    ax = axes_or_new(ax, figsize=(min(12.0, 3.5 + 0.7 * near.n_clusters), 4.8))
    for place, centers in enumerate((near.first, near.second)):
        left = centers + (-0.42, 0.04)[place]
        ax.hlines(near.distances[:, place], left, left + 0.38, colors=colors, linewidth=0.6)
    ax.set_xticks(range(near.n_clusters))
    ax.set(xlabel="cluster", ylabel="distance to its center", ylim=(0, None))
    ax.set_title("Points of each cluster (left), and those nearby (right)")
    tidy(ax, grid="y")
    return ax
