"""Clusters, and the uncertainty of their points, in the plane."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from powermeans.mathematics.power_mean import memberships
from powermeans.plots import canvas, fitted
from powermeans.plots.canvas import Axes
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.system.containers import to_array
from powermeans.types import FloatArray, IndexArray, Labels


def clusters(
    model: Any,
    X: PointsLike,
    *,
    boundaries: bool = True,
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Draw the points in the plane by cluster, with the centers and the boundaries between them.

    Points with more than two features are projected to their two principal axes. The boundaries
    are then those in the plane of these axes through the mean of the points, so a point off the
    plane may seem to be on the wrong side. If the divergence takes only some numbers, such as
    positive ones, boundaries reach only as far as the points, and more than two features have none.

    Parameters
    ----------
    model : estimator
        Fitted; of this package, or with `predict` and `cluster_centers_` such as scikit-learn's.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points, or the table that the model was fitted to.
    boundaries : bool, default=True
        Whether to draw them, if the model predicts and has at most 200 clusters.
    max_points : int, default=20_000
        If there are more points, a sample of this size is shown, which the title states.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    uncertainty : Draws how sure each point is of its cluster.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from powermeans import PowerKMeans, plots
    >>> X, _ = make_blobs(n_samples=200, centers=3, random_state=0)
    >>> model = PowerKMeans(3, random_state=0).fit(X)
    >>> plots.clusters(model, X).get_title()
    '3 clusters, 200 points'
    """
    model, X, labels, names = fitted.opened(model, X)
    n_clusters = fitted.n_clusters_of(model, labels)
    shown = fitted.sample_of(len(labels), max_points)
    plane, ax = _plane_of(model, X, labels, names, shown), canvas.axes_or_new(ax)
    _draw_clusters(ax, plane.points, labels[shown], n_clusters)
    if boundaries and hasattr(model, "predict") and n_clusters <= 200:
        _draw_boundaries(ax, model, plane, n_clusters)
    some_of = "" if len(shown) == len(labels) else f"{len(shown):,} of "
    return _finished(ax, model, plane, f"{n_clusters} clusters, {some_of}{len(labels):,} points")


def uncertainty(
    model: Any,
    X: PointsLike,
    *,
    power: float | None = None,
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Draw how sure each point is of its cluster; light points might belong to another.

    The uncertainty of a point is one minus its largest membership: 0 if it belongs to one cluster
    only, 1 - 1/k if it belongs to all k equally. If the model has no memberships, those of power
    k-means are computed from its distances.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points, or the table that the model was fitted to.
    power : float, optional
        The power of the memberships of power k-means. By default the model's own memberships are
        used if it has any, as `FuzzyCMeans` and `SphericalMixture` do, and the power -1 otherwise.
    max_points : int, default=20_000
        If there are more points, a sample of this size is shown.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    clusters : Draws the points by their cluster.
    silhouettes : Draws how much nearer each point is to its own cluster.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> model = PowerKMeans.from_centers([[0.0, 0.0], [4.0, 0.0]])
    >>> ax = plots.uncertainty(model, [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    >>> float(ax.collections[0].get_array().max())  # the point in the middle
    0.5
    """
    model, X, labels, names = fitted.opened(model, X)
    shown = fitted.sample_of(len(labels), max_points)
    unsure = 1 - _memberships(model, fitted.rows_of(X, shown), power).max(axis=1)
    plane, ax = _plane_of(model, X, labels, names, shown), canvas.axes_or_new(ax)
    order = np.argsort(unsure, kind="stable")  # draw unsure points on top
    style = {"cmap": "cividis", "s": _size_of(len(shown)), "linewidths": 0}
    drawn = ax.scatter(*plane.points[order].T, c=unsure[order], **style)
    ax.figure.colorbar(drawn, ax=ax, label="1 − largest membership")
    return _finished(ax, model, plane, "How sure points are of their clusters")


def _draw_clusters(ax: Axes, flat: FloatArray, labels: Labels, n_clusters: int) -> None:
    size = _size_of(len(flat))
    style: dict[str, Any] = {"s": size, "alpha": 0.75, "linewidths": 0}
    # Snapped to pixels, the arms of small crosses would have no width.
    style |= {"snap": False, "rasterized": len(flat) > 5000}
    for label in range(min(n_clusters, canvas.N_LOOKS)):
        color, marker = canvas.color_of(label), canvas.marker_of(label)
        x, y = flat[labels % canvas.N_LOOKS == label].T
        ax.scatter(x, y, color=color, marker=marker, label=str(label), **style)
    if n_clusters <= 12:  # the numbers of more stand at their centers
        canvas.legend_of_clusters(ax, markerscale=max(1.0, 6 / size**0.5))


def _plane_of(
    model: Any, X: PointsLike, labels: Labels, names: list[str], shown: IndexArray
) -> Plane:
    points = fitted.points_of(model, fitted.rows_of(X, shown), labels[shown])
    return Plane.of(points, names)


def _draw_boundaries(ax: Axes, model: Any, plane: Plane, n_clusters: int) -> None:
    """Tint the cell of each cluster, and draw a line where the prediction changes."""
    (left, right), (low, high) = limits = ax.get_xlim(), ax.get_ylim()
    # Some divergences do not take any point, but any between those of the data.
    if hasattr(model, "_is_plain") and not model._is_plain():
        if len(plane.origin) > 2:
            return
        (left, low), (right, high) = plane.points.min(axis=0), plane.points.max(axis=0)
    xs, ys = np.linspace(left, right, 300), np.linspace(low, high, 300)
    places = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    with warnings.catch_warnings():  # points of the plane have no names, as those of a table do
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        cells = fitted.labels_of(model, plane.lift(places)).reshape(300, 300)
    for label in np.intersect1d(cells, np.arange(n_clusters)):
        inside = (cells == label).astype(float)
        ax.contourf(xs, ys, inside, levels=[0.5, 1.5], colors=[canvas.color_of(label)], alpha=0.08)
        if not inside.all():
            ax.contour(xs, ys, inside, levels=[0.5], colors=[canvas.INK], linewidths=0.6, alpha=0.6)
    ax.set(xlim=limits[0], ylim=limits[1])


def _memberships(model: Any, X: PointsLike, power: float | None) -> FloatArray:
    """Return the memberships of the model, or those of power k-means at a power."""
    wanted = -1.0 if power is None else power
    if hasattr(model, "memberships") and hasattr(model, "power_"):
        return np.asarray(to_array(model.memberships(X, power=wanted)))
    if hasattr(model, "memberships") and power is None:
        return np.asarray(to_array(model.memberships(X)))
    return memberships(np.square(fitted.distances_of(model, X)), wanted)


def _finished(ax: Axes, model: Any, plane: Plane, title: str) -> Axes:
    """Draw the centers if they are points, and name the axes."""
    if fitted.has_centers(model):
        canvas.label_centers(ax, plane.project(fitted.centers_of(model)))
    canvas.tidy(ax)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1], title=title)
    if not plane.names[1]:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    return ax


def _size_of(n_points: int) -> float:
    """Return the area of a marker, smaller for more points."""
    return float(np.clip(40_000 / n_points, 3, 28))
