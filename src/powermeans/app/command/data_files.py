"""Read the data files of a command, and scale their columns."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.app.command import failures
from powermeans.points.checks.points import unlike_scales
from powermeans.scale.tables import Missing, Table, TableError, read_table
from powermeans.scale.tables.checking import has_no_name, without_missing, without_rows
from powermeans.scale.tables.formats import options_of
from powermeans.scale.tables.number_forms import Dates
from powermeans.scale.tables.table import listed
from powermeans.types import FloatArray

Chooser = Callable[[Sequence[str]], Sequence[str] | None]
Scale = Literal["auto", "standard", "minmax", "none"]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Paths of data and how to read them, as in `powermeans.read_table`.

    Several files, or a folder, are read part by part, and so is one file with a limit of memory or
    a checkpoint.
    """

    paths: tuple[str, ...]
    columns: str | None = None
    weights: str | None = None
    missing: Missing | Literal["auto"] | None = None
    delimiter: str | None = None
    header: bool | None = None
    array: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    dates: Dates | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None
    skip_rows: tuple[int, ...] = ()
    memory_limit: str | None = None
    checkpoint: str | None = None
    checkpoint_seconds: float | None = None

    @property
    def first(self) -> str:
        """The first path, which stands for all in the JSON output."""
        return self.paths[0]

    @property
    def name(self) -> str:
        """The data, as messages call it."""
        if len(self.paths) > 1:
            return f"{self.first} and {len(self.paths) - 1} more"
        return "standard input" if self.first == "-" else self.first

    @property
    def is_missing_open(self) -> bool:
        """Whether the data are to tell what to do with missing values."""
        return self.missing in (None, "auto")

    def with_missing(self, missing: Missing) -> DataFiles:
        """Return the same with what the data told to do with missing values, if anything."""
        is_told = self.is_missing_open and missing != "error"
        return replace(self, missing=missing) if is_told else self

    @property
    def missing_in_fit(self) -> Literal["error", "observed"]:
        """What an estimator does with missing values, once rows to drop are gone."""
        return "observed" if self.missing == "observed" else "error"

    @property
    def missing_in_table(self) -> Missing:
        """What the reader of a table does with missing values."""
        return "observed" if self.missing is None or self.missing == "auto" else self.missing

    @property
    def asked_columns(self) -> list[str] | None:
        """The columns that were asked for."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def reading(self) -> dict[str, Any]:
        """How to read a file, whichever columns are wanted."""
        form = ("delimiter", "header", "array", "decimal", "thousands", "dates", "encoding")
        names = (*form, "missing_values")
        return {name: getattr(self, name) for name in names}

    def read(self, choose: Chooser | None = None) -> tuple[Table, float]:
        """Return the table and the seconds it took; `choose` overrides the columns asked for."""
        started = time.perf_counter()
        with failures.refusing(TableError):
            table = read_table(
                self.first,
                columns=choose or self.asked_columns,
                weights=self.weights,
                missing=self.missing_in_table,
                skip_rows=self.skip_rows,
                **self.reading,
            )
        return table, time.perf_counter() - started

    def reading_of(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of `read_table`, besides the path, that read these columns again."""
        return {
            "columns": list(names) if are_names(names) else self.asked_columns,
            "weights": self.weights,
            "missing": "error" if self.is_missing_open else self.missing,
            **self.reading,
            "skip_rows": self.skip_rows,
        }

    def to_remember(self, decimal: str) -> dict[str, Any]:
        """Return how to read other files of this form; a point is a decimal mark anyway."""
        how = {"missing": None if self.is_missing_open else self.missing, **self.reading}
        how["decimal"] = self.decimal or ("," if decimal == "," else None)
        return {name: value for name, value in how.items() if value is not None}

    def as_remembered(self, reading: dict[str, Any]) -> DataFiles:
        """Return the same with options that were not given as they are in `reading`."""
        is_file = os.path.isfile(self.first)
        options = options_of(Path(self.first)) if is_file else tuple(self.reading)
        not_given = {
            name: value
            for name, value in reading.items()
            if name in ("missing", *options) and getattr(self, name) is None
        }
        return replace(self, **not_given)


@dataclass(frozen=True, slots=True)
class FitData:
    """Scaled points in memory, or rows that are read part by part."""

    points: Any  # an array or PartedData
    names: list[str]
    weights: FloatArray | None = None
    is_kept: NDArray[np.bool_] | None = None
    scaler: Any = None
    seconds_reading: float | None = None  # None for rows that are read for each sweep
    how_read: str = ""
    scale: Scale = "none"
    why_scaled: str = ""
    decimal: str = ""
    missing: Missing = "error"
    why_missing: Sequence[str] = ()
    n_skipped: int = 0


def read_scaled(
    files: DataFiles, scale: Scale, n_clusters: int, option: str, *, takes_missing: bool = True
) -> FitData:
    """Read and scale a table; refuse fewer rows than the clusters that the option asks for.

    With "auto" the columns are scaled if one spreads a hundred times as far as another.
    `takes_missing` tells whether distances go by the values that are there.
    """
    table, elapsed = files.read()
    table, missing, why_missing = settle_missing(table, files, takes_missing=takes_missing)
    n_rows = len(table.points)
    if n_clusters > n_rows:
        raise failures.Failure(
            f"{option} {n_clusters} is more than the {n_rows} rows of {files.name}: ask for fewer "
            "clusters"
        )
    points, scaler, weights = table.points, None, table.weights
    names, why_scaled = list(table.names), ""
    if scale == "auto":
        why_scaled = why_scale(points, names)
        scale = "standard" if why_scaled else "none"
    if scale != "none":
        # Scaling in place saves the memory of a copy; a memory map, say, is read-only.
        kind = StandardScaler if scale == "standard" else MinMaxScaler
        scaler = kind(copy=not points.flags.writeable)
        with failures.refusing():
            points = scaler.fit_transform(
                points, **({"sample_weight": weights} if scale == "standard" else {})
            )
        scaler.set_params(copy=True)
    return FitData(
        points,
        names,
        weights,
        table.is_kept,
        scaler,
        elapsed,
        table.how_read,
        scale,
        why_scaled,
        table.decimal,
        missing,
        why_missing,
        len(set(files.skip_rows)),
    )


def settle_missing(
    table: Table, files: DataFiles, *, takes_missing: bool, has_all_columns: bool = False
) -> tuple[Table, Missing, list[str]]:
    """Decide what to do with missing values, and return lines on that.

    Columns with hardly any value are left out, unless they were asked for or `has_all_columns`.
    """
    if not files.is_missing_open:
        return table, files.missing_in_table, []
    n_rows, n_missing = len(table.points), np.isnan(table.points).sum(axis=0)
    if not n_missing.any():
        return table, "error", []
    is_bare = n_missing > 0.9 * n_rows
    said = []
    if is_bare.any() and not is_bare.all() and files.columns is None and not has_all_columns:
        bare = [name for name, is_so in zip(table.names, is_bare, strict=True) if is_so]
        said.append(f"left out {listed(bare)} (hardly any values; --columns has them all the same)")
        names = tuple(name for name in table.names if name not in bare)
        table = replace(table, points=table.points[:, ~is_bare], names=names)
        n_missing = n_missing[~is_bare]
    is_missing = np.isnan(table.points)
    is_left_out: Any = is_missing.all(axis=1) if takes_missing else is_missing.any(axis=1)
    if is_left_out.all():
        with failures.refusing(TableError):
            without_missing(table, "error", files.name)
    if is_left_out.any():
        table = without_rows(table, is_left_out)
    by_column = [(int(n), name) for n, name in zip(n_missing, table.names, strict=True) if n]
    if by_column:
        said.append(_missing_in_words(by_column, n_rows, takes_missing=takes_missing))
    is_whole = not np.isnan(table.points).any()
    missing: Missing = "drop" if is_left_out.any() else "error"
    return table, missing if is_whole else "observed", said


def _missing_in_words(by_column: list[tuple[int, str]], n_rows: int, *, takes_missing: bool) -> str:
    most = sorted(by_column, key=lambda pair: -pair[0])
    shown = ", ".join(f'{n} in "{name}"' for n, name in most[:4])
    n_more = len(most) - 4
    more = f" and more in {n_more} other{'s' * (n_more > 1)}" if n_more > 0 else ""
    values = f"missing values: {shown}{more}, of {n_rows} rows"
    if takes_missing:
        values += "; distances use the values that are there"
        return f"{values} (--missing drop leaves those rows out)"
    return f"{values}; such rows are left out, since this divergence needs whole rows"


def why_scale(points: Any, names: Sequence[str]) -> str:
    """Return a sentence on columns whose scales differ, empty if none do."""
    found = unlike_scales(points)
    if found is None:
        return ""
    widest, narrowest = (
        names[column] if names else f"c{column + 1}" for column in (found.widest, found.narrowest)
    )
    return (
        f'scaled: "{widest}" spreads {found.times} times as far as "{narrowest}" '
        "(--scale none leaves columns as they are)"
    )


def notes_on(data: FitData | Table) -> Iterator[str]:
    """Yield how the numbers were read, if not as they are, and how many rows were left out."""
    if data.how_read:
        yield f"read: {data.how_read}"
    if isinstance(data, FitData):
        yield from filter(None, (*data.why_missing, data.why_scaled))
        if data.n_skipped:
            rows = "1 row is" if data.n_skipped == 1 else f"{data.n_skipped} rows are"
            yield f"{rows} left out by --skip-rows"
    if data.is_kept is not None:
        n_left_out = int(np.count_nonzero(~data.is_kept))
        if isinstance(data, FitData):
            n_left_out -= data.n_skipped
    if data.is_kept is not None and n_left_out:
        what = "without any value" if np.isnan(data.points).any() else "with missing values"
        were = f"row {what} was" if n_left_out == 1 else f"rows {what} were"
        yield f"{n_left_out} {were} left out"


def row_numbers(is_kept: NDArray[np.bool_] | None) -> NDArray[np.intp] | None:
    """Return the numbers, from 1, of the rows that were kept; None if all were."""
    return None if is_kept is None else np.flatnonzero(is_kept) + 1


def are_names(names: Sequence[str]) -> bool:
    """Return whether the columns have names of their own, and not just c1, c2, …."""
    return bool(names) and not all(map(has_no_name, names))


def split_names(names: str) -> list[str]:
    """Split names at commas and line ends; quotes hold a name together."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise failures.Failure(f"{names!r} is not a list of names: {error}") from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise failures.Failure(f"{names!r} names nothing: leave it out")
    return found
