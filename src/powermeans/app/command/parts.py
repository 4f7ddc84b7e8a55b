"""Decide when to read data part by part, and open it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.app.command import failures
from powermeans.app.command.data_files import (
    DataFiles,
    FitData,
    Scale,
    read_scaled,
    scale_of,
)
from powermeans.app.reading.sheets import is_workbook
from powermeans.preparing.prepare import Note
from powermeans.scale.checkpoint import is_checkpoint
from powermeans.scale.files import files_at
from powermeans.scale.parted_data import PartedData, open_data
from powermeans.scale.tables import Missing
from powermeans.scale.tables.formats import format_at, format_of, start_of
from powermeans.scale.tables.table import FileFormat
from powermeans.system.free_memory import free_memory

_IN_PARTS = (
    "read part by part: columns of words do not count, and codes for missing values are not found"
)


def why_in_parts(files: DataFiles) -> str | None:
    """Return why data is read part by part: empty if by option or format; None if read whole."""
    is_limited = files.memory_limit is not None or files.checkpoint is not None
    path, is_asked = Path(files.first), is_limited or len(files.paths) > 1
    pipe = next((each for each in files.paths if each == "-" or _is_pipe(Path(each))), None)
    if pipe is not None:
        if not is_asked:
            return None
        name = "standard input" if pipe == "-" else pipe
        raise failures.Failure(
            f"{name} can be read only once, and each sweep reads the rows: write them to a "
            "file, or leave out --memory-limit, --checkpoint and other files"
        )
    for each in files.paths if is_asked else ():
        if Path(each).is_file() and is_workbook(Path(each), start_of(Path(each))):
            raise failures.Failure(
                f"{each} is a workbook, which is read whole and alone: pass one file, or CSV files"
            )
    if is_asked or path.is_dir():
        return ""
    if not path.is_file():
        return None
    n_bytes, free = _bytes_as_table(path, files), free_memory()
    if n_bytes is None:
        return ""
    # Reading a table takes three times its memory, and a fit some more.
    if free is None or n_bytes * 4 <= free:
        return None
    return f"it is {n_bytes / 1e9:.3g} GB in memory, and {free / 1e9:.3g} GB are free"


def _is_pipe(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _bytes_as_table(path: Path, files: DataFiles) -> int | None:
    """Estimate the memory of a table; None for a format that is never read as a whole."""
    kind = format_at(path).kind
    if kind == "HDF5":
        return None
    if kind != "Parquet":
        return path.stat().st_size
    form = _format_of(path, files)
    n_columns = len(files.asked_columns or form.names)
    return int(form.n_rows or 0) * n_columns * 8


def _format_of(path: Path, files: DataFiles) -> FileFormat:
    with failures.refusing():
        return format_of(files_at(path)[0], **files.reading)


def all_paths(files: DataFiles) -> list[str]:
    """Return every path that is read: folders, the files in them, and other files."""
    folders = [path for path in files.paths if Path(path).is_dir()]
    with failures.refusing():
        return folders + [str(file) for path in files.paths for file in files_at(Path(path))]


def names_in(files: DataFiles) -> list[str]:
    """Return the columns of the first file."""
    return list(_format_of(Path(files.first), files).names)


def data_to_fit(
    files: DataFiles,
    why: str | None,
    scale: Scale,
    n_clusters: int,
    option: str,
    *,
    takes_missing: bool = True,
) -> FitData:
    """Read the data whole, or open it for reading part by part if there is a reason why."""
    if why is None:
        return read_scaled(files, scale, n_clusters, option, takes_missing=takes_missing)
    columns, why_scaled = files.asked_columns, ""
    missing: Missing = files.missing_in_fit
    if scale == "auto" or files.is_missing_open:
        # The first rows tell, which saves a pass over all of them.
        start = open_parts(replace(files, checkpoint=None), columns=columns)
        with failures.refusing():
            points: Any = next(iter(start.source.blocks())).points
        if files.is_missing_open and takes_missing and np.isnan(points).any():
            missing = "observed"
        if scale == "auto":
            scale, why_scaled = scale_of(points, list(start.feature_names or ()))
    data = open_parts(files, columns=columns, scale=scale)
    note_parts(files, why)
    is_told = missing == "observed" and files.is_missing_open
    why_missing = ["values are missing: distances use those that are there"] if is_told else []
    return FitData(
        data,
        list(data.feature_names or ()),
        how_read=getattr(data.source, "how_read", ""),
        scale=scale,
        why_scaled=why_scaled,
        missing=missing,
        why_missing=why_missing,
        decimal=getattr(data.source, "decimal", ""),
        notes=[Note(_IN_PARTS, is_doubt=True)],
    )


def open_parts(
    files: DataFiles, columns: Sequence[str] | None, scale: Scale = "none"
) -> PartedData:
    """Open the data for reading part by part."""
    if files.skip_rows:
        raise failures.Failure(
            f"{files.name} is read part by part, which --skip-rows does not support: remove those "
            "rows from the file"
        )
    if files.missing == "drop":
        raise failures.Failure(
            f"{files.name} is read part by part, which --missing drop does not support: remove "
            "those rows from the file, or pass --missing observed"
        )
    checkpoint: Any = {"checkpoint": files.checkpoint}
    if files.checkpoint_seconds is not None:
        checkpoint["checkpoint_seconds"] = files.checkpoint_seconds
    with failures.refusing():
        data: PartedData = open_data(
            files.paths,
            columns=columns,
            weights=files.weights,
            scale=scale if scale in ("standard", "minmax") else None,
            memory_limit=files.memory_limit,
            **checkpoint,
            **files.reading,
        )
    if files.checkpoint is not None and is_checkpoint(files.checkpoint):
        warnings.warn(f"the fit resumes from {files.checkpoint}", stacklevel=2)
    return data


def note_parts(files: DataFiles, why: str) -> None:
    """Warn of reading part by part where no option asked for it."""
    if why:
        warnings.warn(f"{files.name} is read part by part, since {why}", stacklevel=2)
