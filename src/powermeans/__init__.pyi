# The public names, which `__init__.py` reads to find out where each of them lives.

from powermeans import datasets, plots
from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.callbacks.progress_bar import progress
from powermeans.choosing_k.choose import choose_k
from powermeans.choosing_k.result import ChoiceOfK
from powermeans.errors import (
    IndefiniteKernelWarning,
    MissingDataError,
    ModelFileError,
    ObjectiveRoseWarning,
    WrongDataError,
)
from powermeans.estimators.dp_means import DPMeans
from powermeans.estimators.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.estimators.functions import critical_power, k_means, kmeans_plusplus
from powermeans.estimators.gradient_kmeans import GradientKMeans
from powermeans.estimators.kernel_power_kmeans import KernelPowerKMeans
from powermeans.estimators.kmeans import KMeans
from powermeans.estimators.mixture.moments import MomentEstimates, moment_estimates
from powermeans.estimators.mixture.spherical_mixture import SphericalMixture
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.estimators.robust_power_kmeans import RobustPowerKMeans
from powermeans.estimators.self_organizing_map import SelfOrganizingMap
from powermeans.estimators.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.estimators.spectral import SpectralClustering, spectral_clustering
from powermeans.estimators.streams.drift import Drift
from powermeans.estimators.streams.mini_batch import MiniBatchPowerKMeans
from powermeans.estimators.streams.online_kmeans import OnlineKMeans
from powermeans.loop.history import SweepState
from powermeans.reporting.report import report
from powermeans.reporting.versions import show_versions
from powermeans.saving.model_files import load, save
from powermeans.schedules import AuthorsSchedule, Fixed, Geometric
from powermeans.seeds.parallel import ParallelSeeds
from powermeans.sources import PartedData, Scaling, open_data

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
