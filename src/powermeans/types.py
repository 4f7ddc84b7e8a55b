"""Types of the arrays in the package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
"""Results and centers: always float64 inside the package."""

Points = NDArray[np.float32] | NDArray[np.float64]
"""The user's points, in the user's dtype."""

SparsePoints = sparse.csr_matrix | sparse.csr_array

Labels = NDArray[np.int32]

BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]

Part = tuple[Points | SparsePoints, FloatArray | None]
"""Some of the points, and their weights."""
