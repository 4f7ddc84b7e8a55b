"""Pictures of clusters and of how they were found, by matplotlib.

Each function draws on the axes that it is given, or on those of a new figure, and returns them.
Clusters have colours that the colour-blind tell apart, and shapes besides. matplotlib is imported
when the first plot is drawn; ``pip install "powermeans[plot]"`` brings it.
"""

from __future__ import annotations

from powermeans.plots.center_values import center_heatmap, profiles
from powermeans.plots.choice import knee
from powermeans.plots.path import annealing_path
from powermeans.plots.scatter import clusters, uncertainty
from powermeans.plots.shape import silhouettes, sizes
from powermeans.plots.surface import objective_surface
from powermeans.plots.sweeps import compare_convergence, convergence

__all__ = [
    "annealing_path",
    "center_heatmap",
    "clusters",
    "compare_convergence",
    "convergence",
    "knee",
    "objective_surface",
    "profiles",
    "silhouettes",
    "sizes",
    "uncertainty",
]
