"""Labels as one NPY file, written array by array."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from powermeans.system.atomic_write import atomic_write
from powermeans.types import Labels


def write_labels(path: str | os.PathLike[str], pieces: Iterable[Labels]) -> Path:
    """Write arrays of labels as they come; the file has its name once it is complete."""
    with atomic_write(path) as file:
        write_npy(file, pieces)
    return Path(path)


def write_npy(file: IO[bytes], pieces: Iterable[Labels]) -> None:
    """Write arrays of labels in NumPy's format to a seekable file."""
    n_labels = 0
    _write_header(file, n_labels)
    for labels in pieces:
        file.write(np.ascontiguousarray(labels, dtype="<i4").data)
        n_labels += len(labels)
    # NumPy pads headers, so the one with the final count is as long as the first.
    file.seek(0)
    _write_header(file, n_labels)


def _write_header(file: IO[bytes], n_labels: int) -> None:
    header = {"descr": "<i4", "fortran_order": False, "shape": (n_labels,)}
    npy.write_array_header_1_0(file, header)
