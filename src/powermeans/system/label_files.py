"""Labels as one NPY file, written array by array."""

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
    """Write arrays of labels as they come; the file has its name once it is complete."""
    wanted, errors_of_pieces = Path(path), list[BaseException]()
    try:
        with atomic_write(wanted) as file:
            write_npy(file, _noting_errors(pieces, errors_of_pieces))
    except OSError as error:
        # Only an error of writing to the file itself lacks its name.
        if error.filename is not None or error.errno is None or error in errors_of_pieces:
            raise
        raise OSError(
            error.errno, f"{error.strerror}: the labels were not written", os.fspath(wanted)
        ) from error
    return wanted


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


def _noting_errors(pieces: Iterable[Labels], errors: list[BaseException]) -> Iterator[Labels]:
    """Yield the same pieces, and append an error of their generator to the list."""
    try:
        yield from pieces
    except OSError as error:
        errors.append(error)
        raise


def _write_header(file: IO[bytes], n_labels: int) -> None:
    header = {"descr": "<i4", "fortran_order": False, "shape": (n_labels,)}
    npy.write_array_header_1_0(file, header)
