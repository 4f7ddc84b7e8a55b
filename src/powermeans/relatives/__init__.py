"""The methods that the literature compares with power k-means, each in its own file.

They are estimators too, and what they share with it is in `estimators/base.py`.
"""

from __future__ import annotations

from powermeans.relatives.dp_means import DPMeans
from powermeans.relatives.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.relatives.gradient_kmeans import GradientKMeans
from powermeans.relatives.kernel_power_kmeans import KernelPowerKMeans
from powermeans.relatives.mixture.moments import MomentEstimates, moment_estimates
from powermeans.relatives.mixture.spherical_mixture import SphericalMixture
from powermeans.relatives.online_kmeans import OnlineKMeans
from powermeans.relatives.self_organizing_map import SelfOrganizingMap
from powermeans.relatives.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.relatives.spectral import SpectralClustering

__all__ = [
    "DPMeans",
    "EntropyWeightedPowerKMeans",
    "FuzzyCMeans",
    "GradientKMeans",
    "KHarmonicMeans",
    "KernelPowerKMeans",
    "MomentEstimates",
    "OnlineKMeans",
    "SelfOrganizingMap",
    "SpectralClustering",
    "SphericalMixture",
    "moment_estimates",
]
