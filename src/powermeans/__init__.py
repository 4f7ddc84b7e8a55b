"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

# Type checkers and editors read these imports. Python reads the table below and imports a name at
# its first use, since importing all of them takes a second.
if TYPE_CHECKING:
    from powermeans import datasets as datasets
    from powermeans import plots as plots
    from powermeans.bounds.gap import OptimalityGap as OptimalityGap
    from powermeans.callbacks import PathRecorder as PathRecorder
    from powermeans.callbacks import progress as progress
    from powermeans.choosing_k.choose import choose_k as choose_k
    from powermeans.choosing_k.result import ChoiceOfK as ChoiceOfK
    from powermeans.errors import IndefiniteKernelWarning as IndefiniteKernelWarning
    from powermeans.errors import MissingDataError as MissingDataError
    from powermeans.errors import ModelFileError as ModelFileError
    from powermeans.errors import ObjectiveRoseWarning as ObjectiveRoseWarning
    from powermeans.errors import UnlikeScalesWarning as UnlikeScalesWarning
    from powermeans.errors import WrongDataError as WrongDataError
    from powermeans.estimators.dp_means import DPMeans as DPMeans
    from powermeans.estimators.entropy_weighted import (
        EntropyWeightedPowerKMeans as EntropyWeightedPowerKMeans,
    )
    from powermeans.estimators.functions import critical_power as critical_power
    from powermeans.estimators.functions import k_means as k_means
    from powermeans.estimators.functions import kmeans_plusplus as kmeans_plusplus
    from powermeans.estimators.gradient_kmeans import GradientKMeans as GradientKMeans
    from powermeans.estimators.kernel_power_kmeans import KernelPowerKMeans as KernelPowerKMeans
    from powermeans.estimators.kmeans import KMeans as KMeans
    from powermeans.estimators.mixture.moments import MomentEstimates as MomentEstimates
    from powermeans.estimators.mixture.moments import moment_estimates as moment_estimates
    from powermeans.estimators.mixture.spherical_mixture import SphericalMixture as SphericalMixture
    from powermeans.estimators.optimality import optimality_gap as optimality_gap
    from powermeans.estimators.power_kmeans import PowerKMeans as PowerKMeans
    from powermeans.estimators.robust_power_kmeans import RobustPowerKMeans as RobustPowerKMeans
    from powermeans.estimators.self_organizing_map import SelfOrganizingMap as SelfOrganizingMap
    from powermeans.estimators.soft_means import FuzzyCMeans as FuzzyCMeans
    from powermeans.estimators.soft_means import KHarmonicMeans as KHarmonicMeans
    from powermeans.estimators.spectral import SpectralClustering as SpectralClustering
    from powermeans.estimators.streams.drift import Drift as Drift
    from powermeans.estimators.streams.mini_batch import (
        MiniBatchPowerKMeans as MiniBatchPowerKMeans,
    )
    from powermeans.estimators.streams.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
    from powermeans.estimators.streams.online_kmeans import OnlineKMeans as OnlineKMeans
    from powermeans.loop.history import SweepState as SweepState
    from powermeans.reporting.report import report as report
    from powermeans.reporting.versions import show_versions as show_versions
    from powermeans.saving import load as load
    from powermeans.saving import save as save
    from powermeans.schedules import AuthorsSchedule as AuthorsSchedule
    from powermeans.schedules import Fixed as Fixed
    from powermeans.schedules import Geometric as Geometric
    from powermeans.seeds.markov_chain import MarkovChainSeeds as MarkovChainSeeds
    from powermeans.seeds.parallel import ParallelSeeds as ParallelSeeds
    from powermeans.seeds.tree import TreeSeeds as TreeSeeds
    from powermeans.sources import PartedData as PartedData
    from powermeans.sources import Scaling as Scaling
    from powermeans.sources import open_data as open_data

    __version__: str

_MODULE_OF = {
    "AuthorsSchedule": "powermeans.schedules",
    "ChoiceOfK": "powermeans.choosing_k.result",
    "DPMeans": "powermeans.estimators.dp_means",
    "Drift": "powermeans.estimators.streams.drift",
    "EntropyWeightedPowerKMeans": "powermeans.estimators.entropy_weighted",
    "Fixed": "powermeans.schedules",
    "FuzzyCMeans": "powermeans.estimators.soft_means",
    "Geometric": "powermeans.schedules",
    "GradientKMeans": "powermeans.estimators.gradient_kmeans",
    "IndefiniteKernelWarning": "powermeans.errors",
    "KHarmonicMeans": "powermeans.estimators.soft_means",
    "KMeans": "powermeans.estimators.kmeans",
    "KernelPowerKMeans": "powermeans.estimators.kernel_power_kmeans",
    "MarkovChainSeeds": "powermeans.seeds.markov_chain",
    "MiniBatchKMeans": "powermeans.estimators.streams.mini_batch_kmeans",
    "MiniBatchPowerKMeans": "powermeans.estimators.streams.mini_batch",
    "MissingDataError": "powermeans.errors",
    "ModelFileError": "powermeans.errors",
    "MomentEstimates": "powermeans.estimators.mixture.moments",
    "ObjectiveRoseWarning": "powermeans.errors",
    "OnlineKMeans": "powermeans.estimators.streams.online_kmeans",
    "OptimalityGap": "powermeans.bounds.gap",
    "ParallelSeeds": "powermeans.seeds.parallel",
    "PartedData": "powermeans.sources",
    "PathRecorder": "powermeans.callbacks",
    "PowerKMeans": "powermeans.estimators.power_kmeans",
    "RobustPowerKMeans": "powermeans.estimators.robust_power_kmeans",
    "Scaling": "powermeans.sources",
    "SelfOrganizingMap": "powermeans.estimators.self_organizing_map",
    "SpectralClustering": "powermeans.estimators.spectral",
    "SphericalMixture": "powermeans.estimators.mixture.spherical_mixture",
    "SweepState": "powermeans.loop.history",
    "TreeSeeds": "powermeans.seeds.tree",
    "UnlikeScalesWarning": "powermeans.errors",
    "WrongDataError": "powermeans.errors",
    "choose_k": "powermeans.choosing_k.choose",
    "critical_power": "powermeans.estimators.functions",
    "k_means": "powermeans.estimators.functions",
    "kmeans_plusplus": "powermeans.estimators.functions",
    "load": "powermeans.saving",
    "moment_estimates": "powermeans.estimators.mixture.moments",
    "open_data": "powermeans.sources",
    "optimality_gap": "powermeans.estimators.optimality",
    "progress": "powermeans.callbacks",
    "report": "powermeans.reporting.report",
    "save": "powermeans.saving",
    "show_versions": "powermeans.reporting.versions",
}
__all__ = sorted([*_MODULE_OF, "datasets", "plots"])


if not TYPE_CHECKING:  # so that type checkers report misspelt names

    def __getattr__(name: str) -> Any:
        """Import a public name or a module of the package at its first use."""
        if name in _MODULE_OF:
            value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        elif name == "__version__":
            value = importlib.import_module("importlib.metadata").version(__name__)
        elif name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        else:
            value = importlib.import_module(f"{__name__}.{name}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


# These are loaded at once, so that later limits of threadpoolctl apply to the core.
for _module in ("powermeans._native", "powermeans.system.threads"):
    importlib.import_module(_module)
