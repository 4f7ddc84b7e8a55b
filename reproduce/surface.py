"""Cross-sections of the objective as two centers on a line vary and the others are fixed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powermeans.mathematics.power_mean import power_mean
from powermeans.plots.canvas import INK, tidy
from powermeans.types import FloatArray


def surface_heights(
    line: FloatArray, power: float, fixed: FloatArray, values: FloatArray
) -> FloatArray:
    """Compute the objective (equation 8) for every pair of values of the two centers.

    The points are (n_points,), the fixed centers (n_fixed,).
    """
    n_values = len(values)
    heights = np.zeros((n_values, n_values))
    for x in line:
        from_value = np.square(x - values)
        sq_dist = np.empty((n_values, n_values, 2 + len(fixed)))
        sq_dist[..., 0] = from_value[:, None]
        sq_dist[..., 1] = from_value
        sq_dist[..., 2:] = np.square(x - fixed)
        heights += power_mean(sq_dist, power)
    return heights


def draw_surface(
    ax: Any, line: FloatArray, power: float, fixed: FloatArray, *, n_grid: int = 80
) -> None:
    """Draw the cross-section over the range of the points: contours, or a surface on 3-d axes."""
    values = np.linspace(line.min(), line.max(), n_grid)
    heights = surface_heights(line, power, fixed, values)
    first, second = np.meshgrid(values, values, indexing="ij")
    (_draw_in_space if ax.name == "3d" else _draw_contours)(ax, first, second, heights)
    ax.set_title(f"s = {'−∞' if power == -math.inf else f'{power:g}'.replace('-', '−')}")
    ax.set(xlabel="center 0", ylabel="center 1")


def _draw_in_space(ax: Any, first: FloatArray, second: FloatArray, heights: FloatArray) -> None:
    from matplotlib import colormaps

    logs = _log(heights)
    shares = (logs - logs.min()) / (np.ptp(logs) or 1.0)
    ax.plot_surface(
        first, second, heights, facecolors=colormaps["viridis"](shares), shade=False,
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


def _draw_contours(ax: Any, first: FloatArray, second: FloatArray, heights: FloatArray) -> None:
    drawn = ax.contourf(first, second, heights, levels=_levels(heights), cmap="viridis", norm="log")
    ax.contour(first, second, heights, levels=_levels(heights), colors=[INK], linewidths=0.4)
    ax.figure.colorbar(drawn, ax=ax, label="objective", format="%.3g")
    ax.set_aspect("equal")
    tidy(ax)


def _log(heights: FloatArray) -> FloatArray:
    """Take logarithms of heights above a thousandth, so that colours tell valleys apart."""
    logs: FloatArray = np.log(np.maximum(heights, 1e-3 * heights.max()))
    return logs


def _levels(heights: FloatArray) -> FloatArray:
    """Return levels in geometric progression, the first at the lowest point."""
    low, high = float(np.exp(_log(heights).min())), float(heights.max())
    return np.geomspace(low, high * (1 + 1e-9), 16)
