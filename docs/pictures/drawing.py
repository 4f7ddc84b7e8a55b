"""What the pictures of the guide share: panels, and points in the colours of their clusters."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from powermeans.plots.canvas import color_of, marker_of, tidy

Array = NDArray[np.float64]


def panels(*titles: str, height: float = 3.4, **style: object) -> list[Axes]:
    """Return axes side by side, one for each title."""
    _, axes = plt.subplots(
        1, len(titles), figsize=(8.4, height), layout="constrained", squeeze=False, **style
    )
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=11)
        tidy(ax)
    return list(axes[0])


def draw_clusters(ax: Axes, points: Array, labels: NDArray[np.int32], size: float = 9) -> None:
    """Draw points in the colour and shape of their cluster."""
    for label in np.unique(labels):
        style = {"color": color_of(label), "marker": marker_of(label)}
        ax.scatter(*points[labels == label].T, s=size, linewidths=0, snap=False, **style)


def draw_centers(ax: Axes, centers: Array, **style: object) -> None:
    """Draw centers as crosses."""
    ax.scatter(*centers.T, s=70, marker="X", color="#222222", edgecolor="white", zorder=4, **style)
