"""Data to try clustering on: simulated, or real and read from a folder.

This room imports only `types`, `errors` and `system`.
"""

from __future__ import annotations

from powermeans.datasets.data_set import DataSet
from powermeans.datasets.fetching import about, fetch
from powermeans.datasets.generated import (
    make_exponential_family,
    make_gaussian_clusters,
    make_grid_gaussians,
    make_polylines,
)
from powermeans.datasets.real import (
    load_data_set,
    names,
)

__all__ = [
    "DataSet",
    "about",
    "fetch",
    "load_data_set",
    "make_exponential_family",
    "make_gaussian_clusters",
    "make_grid_gaussians",
    "make_polylines",
    "names",
]
