"""Plots of clusters and of how they were found, drawn by matplotlib.

Each function draws on the axes that it is given, or on those of a new figure, and returns them.
Clusters differ in shape and in colours that colour-blind people can tell apart. matplotlib is
imported when the first plot is drawn; install it with ``pip install "powermeans[plot]"``.
"""

from __future__ import annotations

from powermeans.plots.center_values import center_bars, center_heatmap, profiles
from powermeans.plots.choice import knee
from powermeans.plots.neighbours import neighbourhood_graph, shadows, stripes
from powermeans.plots.scatter import clusters, uncertainty
from powermeans.plots.shape import silhouettes, sizes
from powermeans.plots.surface import objective_surface
from powermeans.plots.sweeps import annealing_path, compare_convergence, convergence

__all__ = [
    "annealing_path",
    "center_bars",
    "center_heatmap",
    "clusters",
    "compare_convergence",
    "convergence",
    "knee",
    "neighbourhood_graph",
    "objective_surface",
    "profiles",
    "shadows",
    "silhouettes",
    "sizes",
    "stripes",
    "uncertainty",
]
