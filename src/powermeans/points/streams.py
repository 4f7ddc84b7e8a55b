"""Streams: points that are known by what they can do, and not by their type."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set

from scipy import sparse

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


class Stream:
    """Points that come part by part; `open_points` has an opener for this class, which has none."""


def is_stream(data: object) -> bool:
    """Tell whether these are `PartedData`, paths, Arrow batches or chunks."""
    is_known = isinstance(data, Stream) or are_paths(data)
    return is_known or gives_arrow_batches(data) or _are_chunks(data)


def gives_arrow_batches(data: object) -> bool:
    """Tell whether this is a reader of Arrow, a query of DuckDB or a lazy frame of Polars."""
    if isinstance(data, type) or hasattr(data, "__array__") or hasattr(data, "__dataframe__"):
        return False
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "sink_ipc")


def are_paths(data: object) -> bool:
    """Tell whether this is a path or a list of paths."""
    if isinstance(data, (str, os.PathLike)):
        return True
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(path, (str, os.PathLike)) for path in data)


def _are_chunks(data: object) -> bool:
    """Tell whether this is a list of matrices, a function, or an iterable that is no sequence."""
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
