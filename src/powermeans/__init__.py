"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

from __future__ import annotations

from powermeans.errors import ObjectiveRoseWarning
from powermeans.functions import critical_power, k_means, kmeans_plusplus
from powermeans.history import SweepState
from powermeans.kmeans import KMeans
from powermeans.power_kmeans import PowerKMeans
from powermeans.schedules import AuthorsSchedule, Fixed, Geometric
from powermeans.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.versions import show_versions

__all__ = [
    "AuthorsSchedule",
    "Fixed",
    "FuzzyCMeans",
    "Geometric",
    "KHarmonicMeans",
    "KMeans",
    "ObjectiveRoseWarning",
    "PowerKMeans",
    "SweepState",
    "critical_power",
    "k_means",
    "kmeans_plusplus",
    "show_versions",
]


def __getattr__(name: str) -> str:
    """The version is looked up when asked for: reading the metadata takes longer than importing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("powermeans")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
