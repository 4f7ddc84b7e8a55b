# The public names, which `__init__.py` reads to find out where each of them lives.

from powermeans import datasets, plots
from powermeans.choice_of_k import ChoiceOfK
from powermeans.choosing_k import choose_k
from powermeans.dp_means import DPMeans
from powermeans.drift import Drift
from powermeans.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.errors import (
    IndefiniteKernelWarning,
    MissingDataError,
    ModelFileError,
    ObjectiveRoseWarning,
    WrongDataError,
)
from powermeans.fit_progress import progress
from powermeans.functions import critical_power, k_means, kmeans_plusplus
from powermeans.gradient_kmeans import GradientKMeans
from powermeans.history import SweepState
from powermeans.kernel_power_kmeans import KernelPowerKMeans
from powermeans.kmeans import KMeans
from powermeans.mini_batch import MiniBatchPowerKMeans
from powermeans.moments import MomentEstimates, moment_estimates
from powermeans.online_kmeans import OnlineKMeans
from powermeans.parallel_seeds import ParallelSeeds
from powermeans.power_kmeans import PowerKMeans
from powermeans.recording import PathRecorder
from powermeans.report import report
from powermeans.robust_power_kmeans import RobustPowerKMeans
from powermeans.saved_models import load, save
from powermeans.schedules import AuthorsSchedule, Fixed, Geometric
from powermeans.self_organizing_map import SelfOrganizingMap
from powermeans.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.sources import PartedData, Scaling, open_data
from powermeans.spectral import SpectralClustering, spectral_clustering
from powermeans.spherical_mixture import SphericalMixture
from powermeans.versions import show_versions

__all__ = [
    "AuthorsSchedule",
    "ChoiceOfK",
    "DPMeans",
    "Drift",
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
    "MissingDataError",
    "ModelFileError",
    "MomentEstimates",
    "ObjectiveRoseWarning",
    "OnlineKMeans",
    "ParallelSeeds",
    "PartedData",
    "PathRecorder",
    "PowerKMeans",
    "RobustPowerKMeans",
    "Scaling",
    "SelfOrganizingMap",
    "SpectralClustering",
    "SphericalMixture",
    "SweepState",
    "WrongDataError",
    "choose_k",
    "critical_power",
    "datasets",
    "k_means",
    "kmeans_plusplus",
    "load",
    "moment_estimates",
    "open_data",
    "plots",
    "progress",
    "report",
    "save",
    "show_versions",
    "spectral_clustering",
]

__version__: str
