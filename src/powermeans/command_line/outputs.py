"""The files that commands write: whole ones, or none."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powermeans.command_line import failures
from powermeans.types import Labels
from powermeans.whole_files import whole_file

_KINDS_OF_LABELS = (".csv", ".tsv", ".txt", ".npy", ".parquet", ".feather")
_AT_ONCE = 2**16


def check_outputs(*paths: str | None, labels: str | None = None) -> None:
    """Refuse what cannot be written before anything is computed."""
    for path in (*paths, labels):
        if path is not None and path != "-":
            _check_place(path)
    if labels not in (None, "-") and Path(str(labels)).suffix.lower() not in _KINDS_OF_LABELS:
        raise failures.Failure(
            f"{labels}: labels are written as {', '.join(_KINDS_OF_LABELS)}",
            failures.USAGE,
        )


def _check_place(path: str) -> None:
    place = Path(path)
    if place.is_dir():
        raise failures.Failure(f"{path} is a directory: name a file in it", failures.OUTPUT)
    if not place.parent.is_dir():
        raise failures.Failure(
            f"{path} cannot be written: there is no folder {place.parent}", failures.OUTPUT
        )
    if not place.exists() or place.is_file():
        with failures.writing(path), tempfile.TemporaryFile(dir=place.parent):
            pass


def write_labels(path: str, labels: Labels, is_kept: NDArray[np.bool_] | None = None) -> None:
    """One label for each row that was read; a row that was left out has none."""
    labels = everywhere(labels, is_kept)
    if path == "-":
        text = _as_text(labels)
        for start in range(0, len(text), _AT_ONCE):  # so that a reader who has enough is noticed
            sys.stdout.buffer.write(text[start : start + _AT_ONCE])
            sys.stdout.buffer.flush()
        return
    with failures.writing(path), whole_file(path) as file:
        _write_labels(file, labels, Path(path).suffix.lower())


def everywhere(labels: Labels, is_kept: NDArray[np.bool_] | None) -> Labels:
    """One label for each row that was read, -1 for those that were left out."""
    if is_kept is None:
        return labels
    found = np.full(len(is_kept), -1, dtype=np.int32)
    found[is_kept] = labels
    return found


def _write_labels(file: IO[bytes], labels: Labels, suffix: str) -> None:
    if suffix == ".npy":
        np.save(file, labels)
    elif suffix in (".parquet", ".feather"):
        _write_column(file, labels, suffix)
    else:
        file.write(_as_text(labels))


def _as_text(labels: Labels) -> bytes:
    words = ["cluster", *("" if label < 0 else str(label) for label in labels.tolist())]
    return "\n".join(words).encode() + b"\n"


def _write_column(file: IO[bytes], labels: Labels, suffix: str) -> None:
    try:
        import pyarrow as pa
        import pyarrow.feather as feather
        import pyarrow.parquet as parquet
    except ImportError:
        raise failures.needing("PyArrow", f"writing {suffix}") from None
    table = pa.table({"cluster": pa.array(labels, mask=labels < 0)})
    write: Any = parquet.write_table if suffix == ".parquet" else feather.write_feather
    write(table, file)


def write_text(path: str, text: str) -> None:
    """A file of text."""
    with failures.writing(path), whole_file(path) as file:
        file.write(text.encode())


def listed(*paths: str | os.PathLike[str] | None) -> str:
    """The names of those that were written."""
    return ", ".join(os.fspath(path) for path in paths if path is not None and path != "-")
