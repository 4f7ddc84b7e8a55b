"""Rows in PyTorch tensors, swept where they lie: on a GPU or in host memory.

Only this package imports PyTorch, and only a tensor loads it.
"""

from powermeans.tensors.admission import admit_tensor, check_tensor
from powermeans.tensors.divergences import TorchBregmanRows, TorchCosineRows, open_tensor
from powermeans.tensors.memory import threads_of_torch
from powermeans.tensors.rows import TorchRows

__all__ = [
    "TorchBregmanRows",
    "TorchCosineRows",
    "TorchRows",
    "admit_tensor",
    "check_tensor",
    "open_tensor",
    "threads_of_torch",
]
