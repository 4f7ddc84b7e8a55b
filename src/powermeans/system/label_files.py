"""Labels that are written piece by piece, as one NPY file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from powermeans.system.atomic_write import atomic_write
from powermeans.types import Labels


def write_labels(path: str | os.PathLike[str], pieces: Iterable[Labels]) -> Path:
    """Write labels as they come; the file has its name once all of them are written."""
    wanted, not_ours = Path(path), list[BaseException]()
    try:
        with atomic_write(wanted) as file:
            write_npy(file, _noting_errors(pieces, not_ours))
    except OSError as error:
        if error.filename is not None or error.errno is None or error in not_ours:
            raise
        raise OSError(
            error.errno, f"{error.strerror}: the labels were not written", os.fspath(wanted)
        ) from error
    return wanted


def write_npy(file: IO[bytes], pieces: Iterable[Labels]) -> None:
    """Write labels in NumPy's format, as they come, to a file in which one can seek."""
    n_labels = 0
    _write_header(file, n_labels)
    for labels in pieces:
        file.write(np.ascontiguousarray(labels, dtype="<i4").data)
        n_labels += len(labels)
    # NumPy leaves space in a header, so that one of more rows is as long.
    file.seek(0)
    _write_header(file, n_labels)


def _noting_errors(pieces: Iterable[Labels], errors: list[BaseException]) -> Iterator[Labels]:
    """Yield the same pieces, and put an error of their maker into the list."""
    try:
        yield from pieces
    except OSError as error:
        errors.append(error)
        raise


def _write_header(file: IO[bytes], n_labels: int) -> None:
    header = {"descr": "<i4", "fortran_order": False, "shape": (n_labels,)}
    npy.write_array_header_1_0(file, header)
