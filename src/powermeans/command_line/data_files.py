"""The files that a command reads, and what it fits."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.command_line import failures
from powermeans.tables import Missing, Table, TableError, read_table
from powermeans.types import FloatArray

Chooser = Callable[[Sequence[str]], Sequence[str] | None]
Scale = Literal["standard", "minmax", "none"]

_NO_NAME = re.compile(r"c\d+")


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Files of data, and how to read them; see `powermeans.tables.read_table`.

    Only what is read part by part may be several files or a folder.
    """

    paths: tuple[str, ...]
    columns: str | None = None
    weights: str | None = None
    missing: Missing = "error"
    delimiter: str | None = None
    header: bool | None = None
    array: str | None = None
    decimal: str | None = None

    @property
    def first(self) -> str:
        """The first path, which stands for all in what machines are told."""
        return self.paths[0]

    @property
    def name(self) -> str:
        """The data, as messages call it."""
        if len(self.paths) > 1:
            return f"{self.first} and {len(self.paths) - 1} more"
        return "standard input" if self.first == "-" else self.first

    @property
    def asked_columns(self) -> list[str] | None:
        """The columns that were asked for."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def reading(self) -> dict[str, Any]:
        """How to read a file, whichever columns are wanted."""
        names = ("delimiter", "header", "array", "decimal")
        return {name: getattr(self, name) for name in names}

    def read(self, choose: Chooser | None = None) -> tuple[Table, float]:
        """Return the table, and how many seconds it took to read.

        Parameters
        ----------
        choose : callable, optional
            Chooses the columns among the names; by default they are those asked for.
        """
        started = time.perf_counter()
        with failures.refusing(TableError):
            table = read_table(
                self.first,
                columns=choose or self.asked_columns,
                weights=self.weights,
                missing=self.missing,
                **self.reading,
            )
        return table, time.perf_counter() - started

    def reading_of(self, names: Sequence[str]) -> dict[str, Any]:
        """Return how to read a table of these columns again: `read_table`'s other arguments."""
        how = {name: value for name, value in asdict(self).items() if name != "paths"}
        return {**how, "columns": list(names) if are_names(names) else self.asked_columns}


@dataclass(frozen=True, slots=True)
class FitData:
    """What to fit: scaled points in memory, or rows that are read part by part."""

    points: Any  # an array or PartedData
    names: list[str]
    weights: FloatArray | None = None
    is_kept: NDArray[np.bool_] | None = None
    scaler: Any = None
    seconds_reading: float | None = None  # None for rows that are read for each sweep


def read_scaled(files: DataFiles, scale: Scale, n_clusters: int, option: str) -> FitData:
    """Read a table of enough rows for the clusters that an option asks for, and scale it."""
    table, elapsed = files.read()
    n_rows = len(table.points)
    if n_clusters > n_rows:
        raise failures.Failure(
            f"{option} {n_clusters} is more than the {n_rows} rows of {files.name}: ask for fewer "
            "clusters"
        )
    points, scaler, weights = table.points, None, table.weights
    if scale != "none":
        # Points that may be written to are scaled in place, which saves their memory.
        kind = StandardScaler if scale == "standard" else MinMaxScaler
        scaler = kind(copy=not points.flags.writeable)
        with failures.refusing():
            points = scaler.fit_transform(
                points, **({"sample_weight": weights} if scale == "standard" else {})
            )
        scaler.set_params(copy=True)
    return FitData(points, list(table.names), weights, table.is_kept, scaler, elapsed)


def rows_left_out(is_kept: NDArray[np.bool_] | None) -> str:
    """Return what to say of rows that were left out; empty where there are none."""
    if is_kept is None:
        return ""
    n_left_out = int(np.count_nonzero(~is_kept))
    if n_left_out == 1:
        return "1 row with missing values was left out"
    return f"{n_left_out} rows with missing values were left out"


def are_names(names: Sequence[str]) -> bool:
    """Tell whether columns have names of their own, and not only numbers."""
    return bool(names) and not all(_NO_NAME.fullmatch(name) for name in names)


def split_names(names: str) -> list[str]:
    """Split names at commas and line ends; quotes hold a name together."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise failures.Failure(f"{names!r} is no list of names: {error}") from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise failures.Failure(f"{names!r} names nothing: leave it out")
    return found
