"""Rows in PyTorch tensors, swept where they lie: on a GPU or in host memory.

Only this package imports PyTorch and Triton, and only a tensor or a device loads it.
"""

from __future__ import annotations

from typing import Any

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.rows.torch import admission
from powermeans.rows.torch.divergences import TorchBregmanRows, TorchCosineRows
from powermeans.rows.torch.placing import from_array, lack_of_memory_is_told
from powermeans.rows.torch.rows import TorchRows
from powermeans.types import FloatArray

__all__ = [
    "TorchBregmanRows",
    "TorchCosineRows",
    "TorchRows",
    "admission",
    "from_array",
    "open_tensor",
]


@lack_of_memory_is_told
def open_tensor(
    points: Any,
    sample_weight: FloatArray | None = None,
    *,
    divergence: Divergence = "squared_euclidean",
    **options: Any,
) -> TorchRows:
    """Open a tensor that `admission.admit_points` passes; options are as for `TorchRows`."""
    if isinstance(divergence, Bregman):
        return TorchBregmanRows(points, sample_weight, divergence=divergence, **options)
    if divergence == "manhattan":
        raise ValueError(
            'divergence="manhattan" has no rows for tensors: pass an array, which runs on the CPU'
        )
    kind = TorchCosineRows if divergence == "cosine" else TorchRows
    return kind(points, sample_weight, **options)
