"""Types of the arrays in the package."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
"""Results and centers: always float64 inside the package."""

Matrix = NDArray[np.float32] | NDArray[np.float64]
"""Points in memory, in the dtype of the user."""

SparseMatrix = sparse.csr_matrix | sparse.csr_array
AnyMatrix = Matrix | SparseMatrix

Chunks = Iterator[tuple[slice, FloatArray]]  # of some points, each with its slice of all

Labels = NDArray[np.int32]

BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]

Part = tuple[AnyMatrix, FloatArray | None]
"""Some of the points, and their weights."""
