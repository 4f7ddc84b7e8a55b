"""Data that is read part by part: when, how it is opened, and how far a reader is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from powermeans.callbacks.progress_bar import FitProgress
from powermeans.command_line import failures
from powermeans.command_line.memory import free_memory
from powermeans.command_line.sources import Source, split_names
from powermeans.sources import PartedData, open_data
from powermeans.sources.block import Block
from powermeans.sources.files import files_at
from powermeans.sources.formats import FileFormat, format_of
from powermeans.sources.pass_clock import PassClock

# Reading a table takes three times its memory, and a fit some more.
_SHARE_OF_MEMORY = 4
_BYTES_OF_A_NUMBER = 8
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_HDF5 = b"\x89HDF"


@dataclass(frozen=True, slots=True)
class Limits:
    """What was asked for that only reading part by part can give."""

    memory: str | None = None
    checkpoint: str | None = None
    checkpoint_seconds: float | None = None


def why_in_parts(source: Source, limits: Limits) -> str | None:
    """Why data is read part by part; None where it is read as a whole.

    Returns
    -------
    str or None
        Empty where there is no other way, or it was asked for.
    """
    if limits.memory is not None or limits.checkpoint is not None:
        return ""
    if source.data == "-":
        return None
    path = Path(source.data)
    if source.others or path.is_dir():
        return ""
    if not path.is_file():
        return None
    n_bytes, free = _bytes_as_table(path, source), free_memory()
    if n_bytes is None:
        return ""
    if free is None or n_bytes * _SHARE_OF_MEMORY <= free:
        return None
    return f"it is {n_bytes / 1e9:.3g} GB in memory, of which {free / 1e9:.3g} GB are free"


def _bytes_as_table(path: Path, source: Source) -> int | None:
    """About how much memory a table takes; None for what is never read as a whole."""
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(_HDF5):
        return None
    if start.startswith(_PACKED) or not start.startswith(b"PAR1"):
        return path.stat().st_size
    form = _form_of(path, source)
    n_columns = len(form.names) if source.columns is None else len(split_names(source.columns))
    return int(form.n_rows or 0) * n_columns * _BYTES_OF_A_NUMBER


def _form_of(path: Path, source: Source) -> FileFormat:
    with failures.refusing():
        return format_of(files_at(path)[0], **source.reading)


def files_of(source: Source) -> list[str]:
    """All that is read: folders, the files in them, and other files."""
    if source.data == "-":
        return []
    folders = [str(path) for path in source.paths if Path(path).is_dir()]
    with failures.refusing():
        return folders + [str(file) for path in source.paths for file in files_at(Path(path))]


def names_in(source: Source) -> list[str]:
    """The columns of the first file."""
    return list(_form_of(Path(source.data), source).names)


def opened(
    source: Source,
    limits: Limits,
    *,
    columns: Sequence[str] | None = None,
    scale: str = "none",
) -> PartedData:
    """The data, to be read part by part.

    Parameters
    ----------
    columns : sequence of str, optional
        By default those that `source` asks for.
    """
    if source.data == "-":
        raise failures.Failure(
            "standard input can be read but once, and rows are read once for each sweep: write "
            "them to a file, or leave --memory-limit and --checkpoint out",
            failures.USAGE,
        )
    if source.missing == "drop":
        raise failures.Failure(
            f"{source.name} is read part by part, where --missing is error or observed: leave out "
            "such rows in the file",
            failures.USAGE,
        )
    if columns is None and source.columns is not None:
        columns = split_names(source.columns)
    wanted: Any = {"scale": None if scale == "none" else scale, "memory_limit": limits.memory}
    if limits.checkpoint_seconds is not None:
        wanted["checkpoint_seconds"] = limits.checkpoint_seconds
    with failures.refusing():
        data: PartedData = open_data(
            source.paths,
            columns=columns,
            weights=source.weights,
            checkpoint=limits.checkpoint,
            **wanted,
            **source.reading,
        )
    if data.checkpoint is not None:
        data.checkpoint = replace(
            data.checkpoint, when_used=lambda: _note_checkpoint(limits.checkpoint)
        )
    return data


def _note_checkpoint(path: str | None) -> None:
    warnings.warn(
        f"the fit goes on from {path}: what is in there is not computed again", stacklevel=2
    )


def note_parts(source: Source, why: str) -> None:
    """Say that rows are read part by part, if that was not asked for."""
    if why:
        warnings.warn(f"{source.name} is read part by part, since {why}", stacklevel=2)


class Watched:
    """A source that tells how many rows of a pass were read.

    Parameters
    ----------
    tell : callable
        Of the number of rows, after each piece.
    """

    def __init__(self, source: Any, tell: Callable[[int], None]) -> None:
        self.source, self._tell = source, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Those of the source."""
        n_read = first_row
        for block in self.source.blocks(first_row, at_once):
            n_read += block.points.shape[0]
            yield block
            del block
            self._tell(n_read)


class ProgressInParts(FitProgress):
    """Progress of sweeps, and of passes that take long.

    Parameters
    ----------
    n_rows : int, optional
        How many rows there are, where that is known.
    """

    def __init__(self, n_rows: int | None = None) -> None:
        super().__init__()
        self._n_rows, self._n_before = n_rows, 0
        self._clock = PassClock("rows")

    def read(self, n_rows: int) -> None:
        """So many rows of a pass are read."""
        if n_rows <= self._n_before and self._n_rows is None:
            self._n_rows = self._n_before  # since a pass has come to its end
        self._n_before = n_rows
        super().pass_goes_on(n_rows, self._n_rows)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Nothing: rows that are read tell more, and scaling is no pass over parts."""

    def watch(self, data: PartedData) -> None:
        """Tell how far passes over these rows are."""
        self._n_rows = data.n_rows
        data.source = Watched(data.source, self.read)

    @staticmethod
    def leave(data: PartedData) -> None:
        """Tell no more of them."""
        if isinstance(data.source, Watched):
            data.source = data.source.source

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, where that is known by now."""
        return self._n_rows
