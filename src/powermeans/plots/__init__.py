"""Plots of clusters and of how they were found, drawn by matplotlib.

Each function draws on the axes that it is given, or on those of a new figure, and returns them.
Clusters differ in shape and in colours that colour-blind people can tell apart. matplotlib is
imported when the first plot is drawn; install it with ``pip install "powermeans[plot]"``.
"""

from powermeans.plots.center_values import center_bars, profiles
from powermeans.plots.choice import choice_of_k
from powermeans.plots.scatter import clusters, uncertainty
from powermeans.plots.silhouette import silhouettes
from powermeans.plots.sweeps import annealing_path, convergence
from powermeans.plots.trees import flows, rules

__all__ = [
    "annealing_path",
    "center_bars",
    "choice_of_k",
    "clusters",
    "convergence",
    "flows",
    "profiles",
    "rules",
    "silhouettes",
    "uncertainty",
]


def __dir__() -> list[str]:
    """Return the names of the plots, without those of the files in which they are."""
    return list(__all__)
