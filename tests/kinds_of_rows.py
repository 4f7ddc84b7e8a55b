"""Every kind of rows, each as a function from dense points and weights. A new kind is one line."""

import copy
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from powermeans.points.compiled import EuclideanPoints
from powermeans.points.protocol import Points
from powermeans.points.reference import ReferencePoints
from powermeans.scale.executors import MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedPoints
from powermeans.types import FloatArray, Matrix, SparseMatrix

Chunk = tuple[Matrix | SparseMatrix, FloatArray | None]


def cut(points: Matrix | SparseMatrix, weights: FloatArray | None, n_rows: int) -> list[Chunk]:
    """Parts of so many rows, the last one of what is left."""
    parts = [slice(start, start + n_rows) for start in range(0, points.shape[0], n_rows)]
    return [(points[part], None if weights is None else weights[part]) for part in parts]


class ReadAgain:
    """Chunks that are copied each time they are read."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks

    def read(self, numbers: Sequence[int] | None = None) -> Iterator[Chunk]:
        chosen = range(len(self.chunks)) if numbers is None else numbers
        return (copy.deepcopy(self.chunks[number]) for number in chosen)


def in_parts(
    points: Matrix | SparseMatrix,
    weights: FloatArray | None,
    n_rows: int,
    opener: PartOpener = PartOpener(),  # noqa: B008
    n_threads: int = 1,
) -> PartedPoints:
    """Parts of so many rows in memory."""
    return PartedPoints(MemoryExecutor(cut(points, weights, n_rows), opener, n_threads=n_threads))


def parts_read_in_turn(points: Matrix, weights: FloatArray | None) -> Points:
    chunks = ReadAgain(cut(points, weights, max(101, len(points) // 10)))
    return PartedPoints(ReadingExecutor(chunks, PartOpener(), n_threads=2))


@dataclass(frozen=True)
class Kind:
    """How to open rows of one kind from points that float32 holds, and how exact they are.

    No claim of equality is to be closer than the unit; it is zero where rows are of float64.
    """

    open: Callable[[Matrix, FloatArray | None], Points]
    unit: float = 0.0

    def __call__(self, points: Matrix, weights: FloatArray | None) -> Points:
        return self.open(points, weights)

    def within(self, tolerance: float) -> float:
        """This tolerance, or what the rows can keep."""
        return max(tolerance, self.unit)


KINDS = {
    "reference": Kind(ReferencePoints),
    "reference of CSR": Kind(
        lambda points, weights: ReferencePoints(sparse.csr_array(points), weights)
    ),
    "native": Kind(lambda points, weights: EuclideanPoints(points, weights, n_threads=2)),
    "native of CSR": Kind(
        lambda points, weights: EuclideanPoints(sparse.csr_array(points), weights, n_threads=2)
    ),
    "kept parts": Kind(
        lambda points, weights: in_parts(points, weights, max(19, len(points) // 10), n_threads=2)
    ),
    "parts read in turn": Kind(parts_read_in_turn),
}
# Of float32, which tests with closer tolerances are not for.
SINGLE_KINDS: dict[str, Kind] = {}


def _of_tensor(dtype: type) -> Callable[..., Points]:
    def opened(points: Matrix, weights: FloatArray | None) -> Points:
        import torch

        from powermeans.tensors.rows import TorchPoints

        torch.set_num_threads(1)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        there = torch.as_tensor(np.asarray(points, dtype=dtype), device=device)
        return TorchPoints(there, weights)

    return opened


# Where PyTorch is not installed, tests/tensors is skipped and says so.
if importlib.util.find_spec("torch") is not None:
    KINDS["tensor"] = Kind(_of_tensor(np.float64))
    SINGLE_KINDS["tensor of float32"] = Kind(_of_tensor(np.float32), 1e-4)
