"""Arrays from NPY and NPZ files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import Argument
from powermeans.tables.table import NoRowsError, TableError, distinct, listed, nearest
from powermeans.types import Points

_KEYS_OF_SPARSE = {"format", "shape", "data"}


@dataclass(frozen=True)
class Arrays:
    """A reader of a plain or structured NumPy array."""

    name: str
    path: Path
    array: NDArray[Any]
    index: ClassVar[frozenset[int]] = frozenset()
    beside: ClassVar[dict[int, str]] = {}
    decimal: ClassVar[str] = ""

    @property
    def names(self) -> Sequence[str]:
        """Names of the fields; for a plain array, numbers."""
        fields = self.array.dtype.names
        return fields or distinct([""] * (1 if self.array.ndim == 1 else self.array.shape[1]))

    @property
    def texts(self) -> dict[int, str]:
        """The dtype of each column that holds no numbers."""
        return {
            number: f"of dtype {dtype}"
            for number, dtype in enumerate(self._dtypes())
            if dtype.kind not in "biuf"
        }

    @property
    def whole(self) -> frozenset[int]:
        """The columns of whole numbers."""
        dtypes = self._dtypes()
        return frozenset(number for number, dtype in enumerate(dtypes) if dtype.kind in "iu")

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return nothing: an array is read as it is."""
        return ""

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in float32 if the array is, else in float64."""
        if self.array.dtype.names:
            names = [self.names[number] for number in wanted]
            return np.stack([self.array[name].astype(np.float64) for name in names], axis=1)
        array = self.array.reshape(len(self.array), -1)
        if list(wanted) != list(range(array.shape[1])):
            array = array[:, list(wanted)]
        is_float = array.dtype in (np.float32, np.float64)
        points: Points = np.asarray(array, dtype=array.dtype if is_float else np.float64, order="C")
        return points

    def _dtypes(self) -> list[np.dtype[Any]]:
        dtype = self.array.dtype
        return [dtype[name] for name in self.names] if dtype.names else [dtype] * len(self.names)


def array_of_npy(path: Path, name: str) -> NDArray[Any]:
    """Return the array of an NPY file as a memory map."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a mangled header fails in Python's tokenizer and parser
        raise TableError(f"{name} is no array that can be read: {error!s:.200}") from None
    return _checked_array(array, name)


def array_of_npz(path: Path, name: str, wanted: str | None) -> NDArray[Any]:
    """Return the array of this name in an NPZ file, or its only array."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if set(arrays.files) >= _KEYS_OF_SPARSE and wanted is None:
                raise TableError(
                    f"{name} holds a sparse matrix of SciPy: in Python, fit "
                    "scipy.sparse.load_npz(...), or save its toarray() as NPY"
                )
            key = _key_of(list(arrays.files), wanted, name)
            array = arrays[key]
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{name} is no archive of arrays: {error!s:.200}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{name} is no archive of arrays")
    return _checked_array(array, f"{name}: {key}")


def _key_of(keys: Sequence[str], wanted: str | None, name: str) -> str:
    if wanted is not None and wanted not in keys:
        suggestion = nearest(wanted, keys) or f": there are {listed(keys)}"
        raise TableError(f'{name} has no array "{wanted}"{suggestion}')
    if wanted is None and len(keys) != 1:
        raise TableError(
            f"{name} has {len(keys)} arrays",
            "choose with ",
            Argument("array"),
            f" one of {listed(keys)}",
        )
    return wanted or keys[0]


def _checked_array(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim not in (1, 2) or (array.dtype.names and array.ndim == 2):
        raise TableError(f"{name} has the shape {array.shape}: pass rows and columns")
    if not array.size:
        kind = TableError if len(array) else NoRowsError
        raise kind(f"{name} has the shape {array.shape} and is empty")
    return array
