"""Every kind of rows, each as a function from dense points and weights. A new kind is one line."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Iterator, Sequence

from scipy import sparse

from powermeans.rows.native import NativeRows
from powermeans.rows.parts import PartedRows
from powermeans.rows.places import InTurn, Kept, Opening
from powermeans.rows.protocol import Rows
from powermeans.rows.twin import TwinRows
from powermeans.types import FloatArray, Points, SparsePoints


def cut(
    points: Points | SparsePoints, weights: FloatArray | None, n_rows: int
) -> list[tuple[Points | SparsePoints, FloatArray | None]]:
    """Parts of so many rows, the last one of what is left."""
    return [
        (
            points[start : start + n_rows],
            None if weights is None else weights[start : start + n_rows],
        )
        for start in range(0, points.shape[0], n_rows)
    ]


class ReadAgain:
    """Chunks that are copied each time they are read."""

    def __init__(self, chunks: Sequence[tuple[Points, FloatArray | None]]) -> None:
        self.chunks = chunks

    def read(
        self, numbers: Sequence[int] | None = None
    ) -> Iterator[tuple[Points, FloatArray | None]]:
        chosen = range(len(self.chunks)) if numbers is None else numbers
        return (copy.deepcopy(self.chunks[number]) for number in chosen)


def kept_parts(points: Points, weights: FloatArray | None) -> Rows:
    return PartedRows(
        Kept(cut(points, weights, max(19, len(points) // 10)), Opening(), n_threads=2)
    )


def parts_read_in_turn(points: Points, weights: FloatArray | None) -> Rows:
    return PartedRows(
        InTurn(ReadAgain(cut(points, weights, max(101, len(points) // 10))), Opening(), n_threads=2)
    )


KINDS: dict[str, Callable[[Points, FloatArray | None], Rows]] = {
    "twin": TwinRows,
    "twin of CSR": lambda points, weights: TwinRows(sparse.csr_array(points), weights),
    "native": lambda points, weights: NativeRows(points, weights, n_threads=2),
    "native of CSR": lambda points, weights: NativeRows(
        sparse.csr_array(points), weights, n_threads=2
    ),
    "kept parts": kept_parts,
    "parts read in turn": parts_read_in_turn,
}


def _of_tensor(points: Points, weights: FloatArray | None) -> Rows:
    import torch

    from powermeans.rows.torch import TorchRows

    torch.set_num_threads(1)
    return TorchRows(torch.as_tensor(points), weights, kernel="plain")


# Where PyTorch is not installed, tests/test_torch_rows.py is skipped and says so.
if importlib.util.find_spec("torch") is not None:
    KINDS["tensor"] = _of_tensor
