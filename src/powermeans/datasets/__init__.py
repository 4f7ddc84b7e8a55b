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
    MICE_CLASSES,
    load_birch,
    load_data_set,
    load_gene_expression,
    load_iris,
    load_mice_protein,
    load_mnist,
    load_road_network,
    names,
)

__all__ = [
    "MICE_CLASSES",
    "DataSet",
    "about",
    "fetch",
    "load_birch",
    "load_data_set",
    "load_gene_expression",
    "load_iris",
    "load_mice_protein",
    "load_mnist",
    "load_road_network",
    "make_exponential_family",
    "make_gaussian_clusters",
    "make_grid_gaussians",
    "make_polylines",
    "names",
]
