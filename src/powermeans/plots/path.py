"""The ways of centers during annealing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.plots import fitted
from powermeans.plots.canvas import INK, PALE, Axes, axes_or_new, color_of, marker_of, tidy
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray


def annealing_path(
    path: PathRecorder | Iterable[FloatArray],
    X: PointsLike,
    *,
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """The way of each center, from the first sweep to the last, over the points.

    A soft power draws all centers to the middle; as the power falls they part. The first place of
    a center is an empty circle, the last one a filled shape. Of a search, which descends many
    times, the first descent is shown; with ``refine=0`` there is no other.

    Parameters
    ----------
    path : PathRecorder or iterable of ndarray of shape (n_clusters, n_features)
        The recorder that was the `callback` of a fit, or the centers step by step.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points of the fit.
    max_points : int, default=20_000
        Of more points a sample is shown.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    convergence : The figures of the same sweeps.
    powermeans.PathRecorder : Remembers the path.

    Examples
    --------
    >>> from powermeans import PathRecorder, PowerKMeans, plots
    >>> X = [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]
    >>> path = PathRecorder()
    >>> model = PowerKMeans(2, refine=0, random_state=0, callback=path).fit(X)
    >>> len(plots.annealing_path(path, X).lines)
    2
    """
    steps = _centers_of(path)
    points = fitted.points_of(None, X, np.empty(0, dtype=np.int32))
    shown = fitted.sample_of(points.shape[0], max_points)
    plane = Plane.of(points[shown], fitted.names_of(None, X))
    ax = axes_or_new(ax)
    ax.scatter(*plane.points.T, s=6, color=PALE, linewidths=0, rasterized=len(shown) > 5000)
    ways = np.stack([plane.project(centers) for centers in steps], axis=1)
    for label, way in enumerate(ways):
        _draw_way(ax, way, label)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1])
    ax.set_title(f"The ways of {len(ways)} centers in {len(steps)} steps")
    tidy(ax)
    return ax


def _centers_of(path: PathRecorder | Iterable[FloatArray]) -> list[FloatArray]:
    """Centers step by step, as many in each."""
    given = path.centers() if isinstance(path, PathRecorder) else path
    steps = [np.asarray(on_host(centers), dtype=np.float64) for centers in given]
    if not steps:
        raise ValueError("path is empty: pass the recorder as callback of a fit before plotting")
    if len({centers.shape for centers in steps}) > 1:
        raise ValueError(
            "path has steps with different numbers of centers: pass those of one descent"
        )
    return steps


def _draw_way(ax: Axes, way: FloatArray, label: int) -> None:
    color: Any = color_of(label)
    ax.plot(*way.T, color=color, linewidth=1.4, alpha=0.9, zorder=3)
    ax.scatter(*way[0], s=26, facecolor="white", edgecolor=color, linewidths=1.2, zorder=4)
    ax.scatter(
        *way[-1],
        s=60,
        color=color,
        marker=marker_of(label),
        edgecolor=INK,
        linewidths=0.8,
        zorder=5,
    )
