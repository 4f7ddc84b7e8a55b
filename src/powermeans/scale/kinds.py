"""The kinds of points that a user can pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from enum import Enum

import numpy as np
from scipy import sparse

from powermeans.system.host_memory import is_tensor

# Every array and every table has at least one of these attributes.
_OF_ARRAYS = (
    "__array__",
    "__array_interface__",
    "__array_namespace__",
    "__cuda_array_interface__",
    "__dataframe__",
    "__dlpack__",
    "__arrow_c_stream__",
)


class Kind(Enum):
    """A kind of points."""

    ARRAY = "array"  # in host memory, dense or sparse: all that scikit-learn turns into an array
    TENSOR = "tensor"  # of PyTorch
    PARTS = "parts"  # paths and chunks, opened by `open_data` or not
    DASK = "dask"  # an array or DataFrame of Dask, opened by `open_data` or not


def kind_of(data: object) -> Kind:
    """Return the kind of some points; the classes that `open_data` returns have it as `kind`."""
    kind = getattr(type(data), "kind", None)
    if isinstance(kind, Kind):
        return kind
    if isinstance(data, np.ndarray):
        return Kind.ARRAY
    if type(data).__module__.partition(".")[0] in ("dask", "dask_expr"):
        return Kind.DASK
    if is_tensor(data):
        return Kind.TENSOR
    return Kind.PARTS if are_paths(data) or _are_chunks(data) else Kind.ARRAY


def is_parted(data: object) -> bool:
    """Tell whether an estimator reads these rows part by part.

    It does so for paths, for `PartedData`, and for chunks: a function, an iterable that is neither
    a sequence nor an array, or a list of arrays with rows and columns.
    """
    return kind_of(data) is Kind.PARTS


def is_dask(data: object) -> bool:
    """Tell whether this is a Dask collection, or one that `open_data` has opened."""
    return kind_of(data) is Kind.DASK


def are_paths(data: object) -> bool:
    """Tell whether this is a path or a list of paths."""
    if isinstance(data, (str, os.PathLike)):
        return True
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(path, (str, os.PathLike)) for path in data)


def _are_chunks(data: object) -> bool:
    """Tell whether this gives chunks; scikit-learn judges everything else."""
    if isinstance(data, (list, tuple)):
        return bool(data) and _is_chunk(data[0])
    if sparse.issparse(data) or isinstance(data, (type, Mapping, Set)):
        return False
    if any(hasattr(data, name) for name in _OF_ARRAYS):
        return False
    is_sequence = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    return callable(data) or (hasattr(data, "__iter__") and not is_sequence)


def _is_chunk(data: object) -> bool:
    """Tell whether this is an array with rows and columns, or a pair of one and its weights."""
    points = data[0] if isinstance(data, tuple) and len(data) == 2 else data
    shape = getattr(points, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2
