"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

# Type checkers and editors read these imports. Python reads the table below and imports a name at
# its first use, since importing all of them takes a second.
if TYPE_CHECKING:
    from powermeans import datasets as datasets
    from powermeans import divergences as divergences
    from powermeans import engine as engine
    from powermeans import errors as errors
    from powermeans import mathematics as mathematics
    from powermeans import methods as methods
    from powermeans import metrics as metrics
    from powermeans import plots as plots
    from powermeans.choosing_k.stability import stability as stability
    from powermeans.explaining.explanation import explain as explain
    from powermeans.explaining.following import match_labels as match_labels
    from powermeans.explaining.following import refit as refit
    from powermeans.explaining.following import what_changed as what_changed
    from powermeans.explaining.levels import merge_tree as merge_tree
    from powermeans.methods.balanced.balanced_kmeans import BalancedKMeans as BalancedKMeans
    from powermeans.methods.functions.choose_k import choose_k as choose_k
    from powermeans.methods.functions.k_means import critical_power as critical_power
    from powermeans.methods.functions.k_means import k_means as k_means
    from powermeans.methods.functions.k_means import kmeans_plusplus as kmeans_plusplus
    from powermeans.methods.kmeans import KMeans as KMeans
    from powermeans.methods.linked.linked_kmeans import LinkedKMeans as LinkedKMeans
    from powermeans.methods.power_kmeans import PowerKMeans as PowerKMeans
    from powermeans.methods.progress import progress as progress
    from powermeans.methods.robust.robust_power_kmeans import RobustPowerKMeans as RobustPowerKMeans
    from powermeans.methods.streams.mini_batch import (
        MiniBatchPowerKMeans as MiniBatchPowerKMeans,
    )
    from powermeans.methods.streams.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
    from powermeans.optimality.line import breaks as breaks
    from powermeans.optimality.of_points import optimality_gap as optimality_gap
    from powermeans.saving import load as load
    from powermeans.saving import save as save
    from powermeans.scale.parted_data import open_data as open_data
    from powermeans.versions import show_versions as show_versions
    from powermeans_tables.preparing.prepare import Prepare as Prepare
    from powermeans_tables.reading.files import open_table as open_table
    from powermeans_tables.reading.files import read_frame as read_frame
    from powermeans_tables.report.report import report as report
    from powermeans_tables.sql import to_sql as to_sql

    __version__: str

_MODULE_OF = {
    "KMeans": "powermeans.methods.kmeans",
    "LinkedKMeans": "powermeans.methods.linked.linked_kmeans",
    "MiniBatchKMeans": "powermeans.methods.streams.mini_batch_kmeans",
    "MiniBatchPowerKMeans": "powermeans.methods.streams.mini_batch",
    "PowerKMeans": "powermeans.methods.power_kmeans",
    "Prepare": "powermeans_tables.preparing.prepare",
    "BalancedKMeans": "powermeans.methods.balanced.balanced_kmeans",
    "RobustPowerKMeans": "powermeans.methods.robust.robust_power_kmeans",
    "breaks": "powermeans.optimality.line",
    "choose_k": "powermeans.methods.functions.choose_k",
    "critical_power": "powermeans.methods.functions.k_means",
    "explain": "powermeans.explaining.explanation",
    "k_means": "powermeans.methods.functions.k_means",
    "kmeans_plusplus": "powermeans.methods.functions.k_means",
    "load": "powermeans.saving",
    "match_labels": "powermeans.explaining.following",
    "merge_tree": "powermeans.explaining.levels",
    "open_data": "powermeans.scale.parted_data",
    "optimality_gap": "powermeans.optimality.of_points",
    "progress": "powermeans.methods.progress",
    "open_table": "powermeans_tables.reading.files",
    "read_frame": "powermeans_tables.reading.files",
    "refit": "powermeans.explaining.following",
    "report": "powermeans_tables.report.report",
    "save": "powermeans.saving",
    "stability": "powermeans.choosing_k.stability",
    "show_versions": "powermeans.versions",
    "to_sql": "powermeans_tables.sql",
    "what_changed": "powermeans.explaining.following",
}
_NAMESPACES = (
    *("datasets", "divergences", "engine", "errors", "mathematics", "methods", "metrics", "plots"),
)
# Where other public names are.
_ROOMS = (
    *("methods", "engine", "engine.stopping", "engine.seeds", "mathematics.schedules", "errors"),
    *("choosing_k", "explaining", "optimality", "scale", "methods.linked.links"),
)
__all__ = sorted([*_MODULE_OF, *_NAMESPACES])


if not TYPE_CHECKING:  # so that type checkers report misspelt names

    def __getattr__(name: str) -> Any:
        """Import a public name or a module of the package at its first use."""
        if name in _MODULE_OF:
            value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        elif name == "__version__":
            value = importlib.import_module("importlib.metadata").version(__name__)
        elif name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
        else:
            value = importlib.import_module(f"{__name__}.{name}")
        globals()[name] = value
        return value


def _hint(name: str) -> str:
    """Say where a name is that is not here, or which one is spelt alike."""
    if name.startswith("_"):  # as tools ask that look for protocols
        return ""
    for room in _ROOMS:
        if name in importlib.import_module(f"{__name__}.{room}").__all__:
            return f": it is in {__name__}.{room}"
    found: str = importlib.import_module(f"{__name__}.errors").nearest(name, __all__)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


# These are loaded at once, so that later limits of threadpoolctl apply to the core.
for _module in ("powermeans._native", "powermeans.system.threads"):
    importlib.import_module(_module)
