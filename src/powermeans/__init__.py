"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

from __future__ import annotations

from powermeans.dp_means import DPMeans
from powermeans.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.errors import IndefiniteKernelWarning, ObjectiveRoseWarning
from powermeans.functions import critical_power, k_means, kmeans_plusplus
from powermeans.gradient_kmeans import GradientKMeans
from powermeans.history import SweepState
from powermeans.kernel_power_kmeans import KernelPowerKMeans
from powermeans.kmeans import KMeans
from powermeans.mini_batch import MiniBatchPowerKMeans
from powermeans.moments import MomentEstimates, moment_estimates
from powermeans.online_kmeans import OnlineKMeans
from powermeans.power_kmeans import PowerKMeans
from powermeans.robust_power_kmeans import RobustPowerKMeans
from powermeans.schedules import AuthorsSchedule, Fixed, Geometric
from powermeans.self_organizing_map import SelfOrganizingMap
from powermeans.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.spectral import SpectralClustering, spectral_clustering
from powermeans.spherical_mixture import SphericalMixture
from powermeans.versions import show_versions

__all__ = [
    "AuthorsSchedule",
    "DPMeans",
    "EntropyWeightedPowerKMeans",
    "Fixed",
    "FuzzyCMeans",
    "Geometric",
    "GradientKMeans",
    "IndefiniteKernelWarning",
    "KHarmonicMeans",
    "KMeans",
    "KernelPowerKMeans",
    "MiniBatchPowerKMeans",
    "MomentEstimates",
    "ObjectiveRoseWarning",
    "OnlineKMeans",
    "PowerKMeans",
    "RobustPowerKMeans",
    "SelfOrganizingMap",
    "SpectralClustering",
    "SphericalMixture",
    "SweepState",
    "critical_power",
    "k_means",
    "kmeans_plusplus",
    "moment_estimates",
    "show_versions",
    "spectral_clustering",
]


def __getattr__(name: str) -> str:
    """The version is looked up when asked for: reading the metadata takes longer than importing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("powermeans")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
