"""The methods: scikit-learn's parameters in, attributes out, and what each method alone uses.

A method is a file, or a folder where it has parts of its own; `base` has what all of them share.
The most used are in `powermeans` itself, and here those that the literature compares with them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from powermeans.methods.dp_means import DPMeans as DPMeans
    from powermeans.methods.entropy_weighted.entropy_weighted import (
        EntropyWeightedPowerKMeans as EntropyWeightedPowerKMeans,
    )
    from powermeans.methods.gradient_kmeans import GradientKMeans as GradientKMeans
    from powermeans.methods.kernel.kernel_power_kmeans import KernelPowerKMeans as KernelPowerKMeans
    from powermeans.methods.mixture.moments import MomentEstimates as MomentEstimates
    from powermeans.methods.mixture.moments import moment_estimates as moment_estimates
    from powermeans.methods.mixture.spherical_mixture import SphericalMixture as SphericalMixture
    from powermeans.methods.self_organizing_map import SelfOrganizingMap as SelfOrganizingMap
    from powermeans.methods.soft_means import FuzzyCMeans as FuzzyCMeans
    from powermeans.methods.soft_means import KHarmonicMeans as KHarmonicMeans
    from powermeans.methods.spectral import SpectralClustering as SpectralClustering
    from powermeans.methods.streams.online_kmeans import OnlineKMeans as OnlineKMeans

# Imported at the first use, since a method needs none of the others.
_MODULE_OF = {
    "DPMeans": "dp_means",
    "EntropyWeightedPowerKMeans": "entropy_weighted.entropy_weighted",
    "FuzzyCMeans": "soft_means",
    "GradientKMeans": "gradient_kmeans",
    "KHarmonicMeans": "soft_means",
    "KernelPowerKMeans": "kernel.kernel_power_kmeans",
    "MomentEstimates": "mixture.moments",
    "OnlineKMeans": "streams.online_kmeans",
    "SelfOrganizingMap": "self_organizing_map",
    "SpectralClustering": "spectral",
    "SphericalMixture": "mixture.spherical_mixture",
    "moment_estimates": "mixture.moments",
}
__all__ = sorted(_MODULE_OF)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a method at its first use."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
