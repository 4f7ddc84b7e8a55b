"""Rows in PyTorch tensors, swept where they lie: on a GPU or in host memory.

Only this package imports PyTorch, and only a tensor loads it.
"""

from powermeans.rows.torch.admission import admit_tensor, check_tensor
from powermeans.rows.torch.divergences import TorchBregmanRows, TorchCosineRows, open_tensor
from powermeans.rows.torch.memory import threads_of_torch
from powermeans.rows.torch.rows import TorchRows

__all__ = [
    "TorchBregmanRows",
    "TorchCosineRows",
    "TorchRows",
    "admit_tensor",
    "check_tensor",
    "open_tensor",
    "threads_of_torch",
]
