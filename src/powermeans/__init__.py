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
    from powermeans.app.reading.frames import read_frame as read_frame
    from powermeans.app.report.report import report as report
    from powermeans.app.report.versions import show_versions as show_versions
    from powermeans.choosing_k.result import ChoiceOfK as ChoiceOfK
    from powermeans.choosing_k.stability import Stability as Stability
    from powermeans.choosing_k.stability import stability as stability
    from powermeans.engine.callbacks import PathRecorder as PathRecorder
    from powermeans.engine.callbacks import progress as progress
    from powermeans.engine.history import SweepState as SweepState
    from powermeans.engine.seeds.markov_chain import MarkovChainSeeds as MarkovChainSeeds
    from powermeans.engine.seeds.parallel import ParallelSeeds as ParallelSeeds
    from powermeans.engine.seeds.tree import TreeSeeds as TreeSeeds
    from powermeans.engine.stopping import InertiaSettled as InertiaSettled
    from powermeans.engine.stopping import LabelsSettled as LabelsSettled
    from powermeans.engine.stopping import MaxSeconds as MaxSeconds
    from powermeans.engine.stopping import StopRule as StopRule
    from powermeans.errors import IndefiniteKernelWarning as IndefiniteKernelWarning
    from powermeans.errors import MissingDataError as MissingDataError
    from powermeans.errors import ModelFileError as ModelFileError
    from powermeans.errors import ObjectiveRoseWarning as ObjectiveRoseWarning
    from powermeans.errors import UnlikeScalesWarning as UnlikeScalesWarning
    from powermeans.errors import WrongDataError as WrongDataError
    from powermeans.estimators.balanced_kmeans import BalancedKMeans as BalancedKMeans
    from powermeans.estimators.choose_k import choose_k as choose_k
    from powermeans.estimators.functions import critical_power as critical_power
    from powermeans.estimators.functions import k_means as k_means
    from powermeans.estimators.functions import kmeans_plusplus as kmeans_plusplus
    from powermeans.estimators.kmeans import KMeans as KMeans
    from powermeans.estimators.linked_kmeans import LinkedKMeans as LinkedKMeans
    from powermeans.estimators.power_kmeans import PowerKMeans as PowerKMeans
    from powermeans.estimators.robust_power_kmeans import RobustPowerKMeans as RobustPowerKMeans
    from powermeans.estimators.streams.drift import Drift as Drift
    from powermeans.estimators.streams.mini_batch import (
        MiniBatchPowerKMeans as MiniBatchPowerKMeans,
    )
    from powermeans.explaining.explanation import Explanation as Explanation
    from powermeans.explaining.explanation import explain as explain
    from powermeans.explaining.following import Change as Change
    from powermeans.explaining.following import match_labels as match_labels
    from powermeans.explaining.following import refit as refit
    from powermeans.explaining.following import what_changed as what_changed
    from powermeans.explaining.levels import MergeTree as MergeTree
    from powermeans.explaining.levels import merge_tree as merge_tree
    from powermeans.explaining.sql import to_sql as to_sql
    from powermeans.mathematics.schedules import AuthorsSchedule as AuthorsSchedule
    from powermeans.mathematics.schedules import Fixed as Fixed
    from powermeans.mathematics.schedules import Geometric as Geometric
    from powermeans.optimality.gap import OptimalityGap as OptimalityGap
    from powermeans.optimality.line import breaks as breaks
    from powermeans.optimality.of_points import optimality_gap as optimality_gap
    from powermeans.points.links import LinkedPoints as LinkedPoints
    from powermeans.points.links import join_linked as join_linked
    from powermeans.points.scaling import Scaling as Scaling
    from powermeans.preparing.prepare import Prepare as Prepare
    from powermeans.relatives.dp_means import DPMeans as DPMeans
    from powermeans.relatives.entropy_weighted import (
        EntropyWeightedPowerKMeans as EntropyWeightedPowerKMeans,
    )
    from powermeans.relatives.gradient_kmeans import GradientKMeans as GradientKMeans
    from powermeans.relatives.kernel_power_kmeans import KernelPowerKMeans as KernelPowerKMeans
    from powermeans.relatives.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
    from powermeans.relatives.mixture.moments import MomentEstimates as MomentEstimates
    from powermeans.relatives.mixture.moments import moment_estimates as moment_estimates
    from powermeans.relatives.mixture.spherical_mixture import SphericalMixture as SphericalMixture
    from powermeans.relatives.online_kmeans import OnlineKMeans as OnlineKMeans
    from powermeans.relatives.self_organizing_map import SelfOrganizingMap as SelfOrganizingMap
    from powermeans.relatives.soft_means import FuzzyCMeans as FuzzyCMeans
    from powermeans.relatives.soft_means import KHarmonicMeans as KHarmonicMeans
    from powermeans.relatives.spectral import SpectralClustering as SpectralClustering
    from powermeans.saving import load as load
    from powermeans.saving import save as save
    from powermeans.scale.parted_data import PartedData as PartedData
    from powermeans.scale.parted_data import open_data as open_data
    from powermeans.scale.tables import read_table as read_table

    __version__: str

_MODULE_OF = {
    "AuthorsSchedule": "powermeans.mathematics.schedules",
    "Change": "powermeans.explaining.following",
    "ChoiceOfK": "powermeans.choosing_k.result",
    "DPMeans": "powermeans.relatives.dp_means",
    "Drift": "powermeans.estimators.streams.drift",
    "EntropyWeightedPowerKMeans": "powermeans.relatives.entropy_weighted",
    "Explanation": "powermeans.explaining.explanation",
    "Fixed": "powermeans.mathematics.schedules",
    "FuzzyCMeans": "powermeans.relatives.soft_means",
    "Geometric": "powermeans.mathematics.schedules",
    "InertiaSettled": "powermeans.engine.stopping",
    "LabelsSettled": "powermeans.engine.stopping",
    "MaxSeconds": "powermeans.engine.stopping",
    "StopRule": "powermeans.engine.stopping",
    "GradientKMeans": "powermeans.relatives.gradient_kmeans",
    "IndefiniteKernelWarning": "powermeans.errors",
    "KHarmonicMeans": "powermeans.relatives.soft_means",
    "KMeans": "powermeans.estimators.kmeans",
    "KernelPowerKMeans": "powermeans.relatives.kernel_power_kmeans",
    "LinkedKMeans": "powermeans.estimators.linked_kmeans",
    "LinkedPoints": "powermeans.points.links",
    "MarkovChainSeeds": "powermeans.engine.seeds.markov_chain",
    "MergeTree": "powermeans.explaining.levels",
    "MiniBatchKMeans": "powermeans.relatives.mini_batch_kmeans",
    "MiniBatchPowerKMeans": "powermeans.estimators.streams.mini_batch",
    "MissingDataError": "powermeans.errors",
    "ModelFileError": "powermeans.errors",
    "MomentEstimates": "powermeans.relatives.mixture.moments",
    "ObjectiveRoseWarning": "powermeans.errors",
    "OnlineKMeans": "powermeans.relatives.online_kmeans",
    "OptimalityGap": "powermeans.optimality.gap",
    "ParallelSeeds": "powermeans.engine.seeds.parallel",
    "PartedData": "powermeans.scale.parted_data",
    "PathRecorder": "powermeans.engine.callbacks",
    "PowerKMeans": "powermeans.estimators.power_kmeans",
    "Prepare": "powermeans.preparing.prepare",
    "BalancedKMeans": "powermeans.estimators.balanced_kmeans",
    "RobustPowerKMeans": "powermeans.estimators.robust_power_kmeans",
    "Scaling": "powermeans.points.scaling",
    "SelfOrganizingMap": "powermeans.relatives.self_organizing_map",
    "SpectralClustering": "powermeans.relatives.spectral",
    "Stability": "powermeans.choosing_k.stability",
    "SphericalMixture": "powermeans.relatives.mixture.spherical_mixture",
    "SweepState": "powermeans.engine.history",
    "TreeSeeds": "powermeans.engine.seeds.tree",
    "UnlikeScalesWarning": "powermeans.errors",
    "WrongDataError": "powermeans.errors",
    "breaks": "powermeans.optimality.line",
    "choose_k": "powermeans.estimators.choose_k",
    "critical_power": "powermeans.estimators.functions",
    "explain": "powermeans.explaining.explanation",
    "join_linked": "powermeans.points.links",
    "k_means": "powermeans.estimators.functions",
    "kmeans_plusplus": "powermeans.estimators.functions",
    "load": "powermeans.saving",
    "match_labels": "powermeans.explaining.following",
    "merge_tree": "powermeans.explaining.levels",
    "moment_estimates": "powermeans.relatives.mixture.moments",
    "open_data": "powermeans.scale.parted_data",
    "optimality_gap": "powermeans.optimality.of_points",
    "progress": "powermeans.engine.callbacks",
    "read_frame": "powermeans.app.reading.frames",
    "read_table": "powermeans.scale.tables",
    "refit": "powermeans.explaining.following",
    "report": "powermeans.app.report.report",
    "save": "powermeans.saving",
    "stability": "powermeans.choosing_k.stability",
    "show_versions": "powermeans.app.report.versions",
    "to_sql": "powermeans.explaining.sql",
    "what_changed": "powermeans.explaining.following",
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
