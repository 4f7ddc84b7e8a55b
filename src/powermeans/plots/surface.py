"""The objective as one coordinate of each of two centers varies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from powermeans.plots.canvas import INK, Axes, axes_or_new, colors_of, tidy
from powermeans.power_mean import power_mean
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray

_BLOCK_ELEMENTS = 2**21


def objective_surface(
    X: ArrayLike,
    power: float,
    *,
    centers: ArrayLike,
    vary: tuple[int, int] = (0, 1),
    feature: int = 0,
    n_grid: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw a cross-section of the objective f_s, as in Figure 1 of Xu & Lange (2019).

    Two of the centers vary in one feature over the range of the points; everything else is fixed::

        f_s(Theta) = sum_i M_s(||x_i - theta_1||^2, ..., ||x_i - theta_k||^2)    (equation 8)

    with the power mean M_s, which is the minimum at s = -inf. The nearer s is to zero, the fewer
    valleys the objective has.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The points.
    power : float
        The power s, at most 1; ``-math.inf`` is the objective of k-means.
    centers : array-like of shape (n_clusters, n_features)
        The centers; those that vary are ignored in the feature that varies.
    vary : tuple of int, default=(0, 1)
        The two centers that vary.
    feature : int, default=0
        The feature that varies.
    n_grid : int, default=60
        The number of values of each center.
    ax : Axes, optional
        Where to draw: a surface on three-dimensional axes, contours on others. By default a surface
        in a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    annealing_path : Draws the path of the centers.
    powermeans.power_mean.objective : Computes the objective.

    Examples
    --------
    >>> import math
    >>> from powermeans import plots
    >>> X = [[-1.0], [0.0], [4.0], [5.0]]
    >>> ax = plots.objective_surface(X, -math.inf, centers=[[0.0], [4.0]], n_grid=20)
    >>> ax.get_title()
    's = −∞'
    """
    points = np.array(on_host(X), dtype=np.float64)
    fixed = np.array(on_host(centers), dtype=np.float64)
    _check(points, fixed, vary, feature, n_grid)
    values = np.linspace(points[:, feature].min(), points[:, feature].max(), n_grid)
    heights = surface_heights(points, power, fixed, vary, feature, values)
    ax = axes_or_new(ax, projection="3d")
    first, second = np.meshgrid(values, values, indexing="ij")
    if ax.name == "3d":
        _draw_surface(ax, first, second, heights)
    else:
        _draw_contours(ax, first, second, heights)
    ax.set_title(f"s = {'−∞' if power == -math.inf else f'{power:g}'.replace('-', '−')}")
    ax.set(xlabel=f"center {vary[0]}", ylabel=f"center {vary[1]}")
    return ax


def surface_heights(
    points: FloatArray,
    power: float,
    centers: FloatArray,
    vary: tuple[int, int],
    feature: int,
    values: FloatArray,
) -> FloatArray:
    """Compute the objective for every pair of values; only two distances of a point change."""
    n_values = len(values)
    heights = np.zeros((n_values, n_values))
    step = max(1, _BLOCK_ELEMENTS // (n_values**2 * len(centers)))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        square = np.square(block[:, None, :] - centers)  # points by centers by features
        from_value = np.square(block[:, feature, None] - values)
        shape = (len(block), n_values, n_values, len(centers))
        sq_dist = np.broadcast_to(square.sum(axis=2)[:, None, None, :], shape).copy()
        others = square.sum(axis=2) - square[:, :, feature]
        sq_dist[..., vary[0]] = (others[:, vary[0], None] + from_value)[:, :, None]
        sq_dist[..., vary[1]] = (others[:, vary[1], None] + from_value)[:, None, :]
        heights += power_mean(sq_dist, power).sum(axis=0)
    return heights


def _check(
    points: FloatArray, centers: FloatArray, vary: tuple[int, int], feature: int, n_grid: int
) -> None:
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1] != centers.shape[1]:
        raise ValueError(
            f"X has the shape {points.shape} and centers {centers.shape}: both need two "
            "dimensions, and as many features"
        )
    first, second = vary
    if first == second or not {first, second} <= set(range(len(centers))):
        raise ValueError(
            f"vary={vary!r} must be two of the {len(centers)} centers: pass for example (0, 1)"
        )
    if not 0 <= feature < points.shape[1]:
        raise ValueError(f"feature={feature!r} must be from 0 to {points.shape[1] - 1}")
    if n_grid < 2:
        raise ValueError(f"n_grid={n_grid!r} must be at least 2: pass for example 60")


def _draw_surface(ax: Axes, first: FloatArray, second: FloatArray, heights: FloatArray) -> None:
    ax.plot_surface(
        first, second, heights, facecolors=colors_of(_log(heights), "viridis"), shade=False,
        rcount=len(first), ccount=len(first), linewidth=0, antialiased=False,
    )  # fmt: skip
    floor = heights.min() - 0.45 * np.ptp(heights)
    ax.contour(
        first, second, heights, levels=_levels(heights), offset=floor, cmap="viridis",
        norm="log", linewidths=0.9,
    )  # fmt: skip
    ax.set_zlim(floor, heights.max())
    ax.set_zticks([tick for tick in ax.get_zticks() if 0 <= tick <= heights.max()])
    ax.set_zlabel("objective")
    ax.view_init(elev=32, azim=-55)
    ax.tick_params(labelsize=8, pad=0)
    ax.set_box_aspect(None, zoom=0.85)


def _log(heights: FloatArray) -> FloatArray:
    """Take logarithms of heights above a thousandth, so that colours tell valleys apart."""
    logs: FloatArray = np.log(np.maximum(heights, 1e-3 * heights.max()))
    return logs


def _levels(heights: FloatArray) -> FloatArray:
    """Return levels in geometric progression, the first at the lowest point."""
    low, high = float(np.exp(_log(heights).min())), float(heights.max())
    return np.geomspace(low, high * (1 + 1e-9), 16)


def _draw_contours(ax: Axes, first: FloatArray, second: FloatArray, heights: FloatArray) -> None:
    drawn = ax.contourf(first, second, heights, levels=_levels(heights), cmap="viridis", norm="log")
    ax.contour(first, second, heights, levels=_levels(heights), colors=[INK], linewidths=0.4)
    ax.figure.colorbar(drawn, ax=ax, label="objective", format="%.3g")
    ax.set_aspect("equal")
    tidy(ax)
