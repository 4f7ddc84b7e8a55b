"""The peers of the benchmark on a GPU: whether they are there, and whether they are themselves."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# Products of 16-bit points are 16-bit ones there, and those of float32 single TF32 ones: the equal
# of ours where PyTorch is set to "high".
FLASH_PRECISION = "high"
# Products of float32 keep its digits there.
CUML_PRECISION = "highest"


def flash() -> Callable[..., Any] | None:
    """Lloyd's algorithm by the kernels of flash-kmeans, if it is installed.

    The package itself falls back in silence to plain PyTorch where its kernels cannot be imported.
    """
    try:
        importlib.import_module("flash_kmeans")
    except ModuleNotFoundError as error:
        if error.name == "flash_kmeans":
            return None
        raise
    try:
        kernels = importlib.import_module("flash_kmeans.kmeans_triton_impl")
    except ImportError as error:
        raise SystemExit(
            f"flash-kmeans is installed without its kernels, and plain PyTorch under its name is "
            f"no peer: {error}. Mend that, or uninstall it"
        ) from error
    run: Callable[..., Any] = kernels.batch_kmeans_Euclid
    return run


def cuml_kmeans() -> Any:
    """The estimator of cuML, if it is installed."""
    try:
        return importlib.import_module("cuml.cluster").KMeans
    except ModuleNotFoundError:
        return None
