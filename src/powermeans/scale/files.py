"""Rows of files: Parquet, Feather, Arrow, CSV and similar text, NPY, HDF5 and Zarr."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import Argument, TableError
from powermeans.points.checks.points import NARROW_DTYPES
from powermeans.scale.block import Block, SourceError
from powermeans.scale.tables.checking import (
    check_whole_numbers,
    wanted_columns,
    with_declared_missing,
)
from powermeans.scale.tables.formats import ENDINGS, format_of, read_whole
from powermeans.scale.tables.table import FileFormat, NoRowsError, missing_path
from powermeans.types import FloatArray, Points
from powermeans_tables.preparing.cells import is_same_unit


def _state_of(path: Path) -> tuple[int, int, int]:
    """Return bytes, time of the last change and inode of a file, or of a folder that is one array.

    They tell whether it has changed.
    """
    try:
        inside = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else []
        found = [file.stat() for file in [path, *inside]]
    except OSError as error:
        raise SourceError(
            f"{path} is gone ({error.strerror}): rows on disk are read once for each sweep, so "
            "keep the file in its place until the fit is done"
        ) from None
    last_change = max(one.st_mtime_ns for one in found)
    return sum(one.st_size for one in found), last_change, found[0].st_ino


class FileSource:
    """The rows of files and folders, one file after the other, in a folder by name.

    `columns`, `weights` and `options` are those of `open_data`. Messages have `called`
    in place of the paths. Temporary files are identified by their contents.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        columns: Sequence[str | int] | None = None,
        weights: str | None = None,
        dtype: np.dtype[np.floating[Any]] | None = None,
        options: dict[str, Any] | None = None,
        called: str | None = None,
        are_temporary: bool = False,
    ) -> None:
        if any(os.fspath(path) == "" for path in paths):
            raise SourceError('a path is "": pass the name of a file or a folder, "." for this one')
        self._places, self._called = [Path(path) for path in paths], called
        self._options, self._are_temporary = options or {}, are_temporary
        self._missing_values = self._options.get("missing_values")
        there = [file for path in self._places for file in files_at(path)]
        self.name = called or (os.fspath(paths[0]) if len(paths) == 1 else f"{len(there)} files")
        found = _with_rows(there, called, self._options)
        first = found[0][1]
        self._is_all = columns is None
        self._has_weights = weights is not None
        self._wanted = wanted_columns(first, columns, weights)
        n_features = len(self._wanted) - self._has_weights
        self.feature_names: tuple[str, ...] | None = tuple(
            first.names[place] for place in self._wanted[:n_features]
        )
        self.n_features = n_features
        self.how_read, self.decimal = first.how_read(self._wanted), first.decimal
        self.dtype = dtype or _dtype_of(first, self._wanted[:n_features])
        for file, form in found[1:]:
            self._check_like(first, file, form, is_dtype_given=dtype is not None)
        self._files, self._states = found, {file: _state_of(file) for file, _ in found}
        self._read_as = self._dtype_to_read(found[0][1].stored if dtype is None else None)
        self._without_rows = set(there) - {file for file, _ in found}

    @property
    def paths(self) -> list[Path]:
        """The files, and the folders in which they were found."""
        folders = [place for place in self._places if place.is_dir()]
        return [*folders, *(path for path, _ in self._files), *self._without_rows]

    @property
    def can_skip(self) -> bool:
        """True if rows of all files can be skipped without reading them."""
        return all(form.can_skip for _, form in self._files)

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None until all of them are read."""
        counts = [form.n_rows for _, form in self._files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def fingerprint(self) -> str:
        """Return a text that identifies the files, and how they are read."""
        options = sorted(item for item in self._options.items() if item[1] is not None)
        how = [list(self._wanted), self._has_weights, self.dtype.str, options]
        return json.dumps([self._identity_of_files(), *how], default=sorted)

    def _identity_of_files(self) -> Any:
        if self._are_temporary:
            return [_digest_of(path) for path, _ in self._files]
        return [[path.name, *self._states[path][:2]] for path, _ in self._files]

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield file after file; files that end before `first_row` stay closed."""
        for path, form in self._files:
            self._check_unchanged(path)
            if form.n_rows is not None and form.n_rows <= first_row:
                first_row -= form.n_rows
                continue
            n_read = 0
            for points in self._blocks_of(path, form, first_row, at_once):
                points = with_declared_missing(points, self._wanted, self._missing_values, form)
                check_whole_numbers(form, self._wanted, points, first_row + n_read)
                block, n_read = self._block(points, path, first_row + n_read), n_read + len(points)
                del points  # frees the buffer for the next block
                yield block
                del block
            self._check_unchanged(path)
            _check_length(path, form, first_row + n_read)
            first_row = 0

    def _blocks_of(
        self, path: Path, form: FileFormat, first_row: int, at_once: int | None
    ) -> Iterator[Points]:
        try:
            yield from form.blocks(self._wanted, self._read_as, first_row, at_once)
        except TableError:
            self._check_unchanged(path)
            raise
        except OSError as error:
            self._check_unchanged(path)
            raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None

    def _check_unchanged(self, path: Path) -> None:
        if _state_of(path) != self._states[path]:
            raise SourceError(
                f"{path} has changed since it was opened: rows on disk are read once for each "
                "sweep, so start again once no program writes to it"
            )

    def _dtype_to_read(self, stored: np.dtype[Any] | None) -> np.dtype[Any]:
        """Return the stored dtype if it is narrow, that of all files, and needs no change."""
        if self._has_weights:  # they come with the points, and need float64
            return np.dtype(np.float64)
        are_alike = all(form.stored == stored for _, form in self._files)
        if stored is not None and are_alike and str(stored) in NARROW_DTYPES:
            return self.dtype if self._missing_values else stored
        return self.dtype

    def _block(self, points: Points, path: Path, first_row: int) -> Block:
        where = self._called or os.fspath(path)
        if not self._has_weights:
            return Block(points, None, where, first_row + 1)
        weights: FloatArray = np.ascontiguousarray(points[:, -1], dtype=np.float64)
        narrow: Points = np.ascontiguousarray(points[:, :-1], dtype=self.dtype)
        return Block(narrow, weights, where, first_row + 1)

    def refuse_entries(self, block: Block, *, has_missing: bool, offers_missing: bool) -> None:
        """Raise on an entry or a weight of a block that cannot be used; name its column and row."""
        points: Any = block.points
        is_bad = np.isinf(points) if has_missing else ~np.isfinite(points)
        if is_bad.any():
            row, column = divmod(int(np.argmax(is_bad)), self.n_features)
            name, value = (self.feature_names or ())[column], points[row, column]
            found = "no value" if np.isnan(value) else f"{value:g}"
            way_out: list[str | Argument] = ["correct it, or leave the row or the column out"]
            if np.isnan(value) and offers_missing:
                way_out = ["leave such rows out, or pass ", Argument("missing", "observed")]
        elif block.weights is not None:
            is_weight = (block.weights >= 0) & np.isfinite(block.weights)
            if is_weight.all():
                return
            row, form = int(np.argmin(is_weight)), self._files[0][1]
            name, found = form.names[self._wanted[-1]], f"{block.weights[row]:g}"
            way_out = ["weights are finite and not negative"]
        else:
            return
        place = f'column "{name}" has {found} in row {block.first_row + row} of the data'
        raise TableError(f"{block.where}: {place}", *way_out)

    def _check_like(
        self, first: FileFormat, path: Path, form: FileFormat, *, is_dtype_given: bool
    ) -> None:
        names = [first.names[place] for place in self._wanted]
        there = [form.names[place] for place in self._wanted if place < len(form.names)]
        has_more = self._is_all and _columns_in(form) != _columns_in(first)
        if there != names or has_more or form.texts.keys() & set(self._wanted):
            raise SourceError(
                f"{path} has the columns {list(form.names)[:20]} where {first.name} has "
                f"{list(first.names)[:20]}: give all files the same columns in the same order"
            )
        if {form.decimal, first.decimal} == {".", ","}:
            raise SourceError(
                f'{path} has the decimal mark "{form.decimal}" where {first.name} has '
                f'"{first.decimal}": write all files with the same'
            )
        for place, name in zip(self._wanted, names, strict=True):
            unit, other = form.unit(place), first.unit(place)
            if unit is None or other is None or is_same_unit(unit, other):
                continue
            ours, theirs = (f"in {each}" if each else "without a unit" for each in (unit, other))
            raise SourceError(
                f'{path} has "{name}" {ours} where {first.name} has it {theirs}: write all '
                "files in the same unit"
            )
        found = _dtype_of(form, self._wanted[: self.n_features])
        if found != self.dtype and not is_dtype_given:
            raise SourceError(
                f"{path} holds {found} where {first.name} holds {self.dtype}: write all files in "
                'one precision, or pass dtype="float64"'
            )


def _check_length(path: Path, form: FileFormat, n_rows: int) -> None:
    if form.n_rows is None:
        form.n_rows = n_rows
    elif form.n_rows != n_rows:
        raise SourceError(
            f"{path} has {n_rows} rows now, where it had {form.n_rows}: keep the file as it is "
            "until the fit is done"
        )


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_rows(
    files: Sequence[Path], called: str | None, options: dict[str, Any]
) -> list[tuple[Path, FileFormat]]:
    # Programs that write one file for each partition also write empty files.
    found, problem = list[tuple[Path, FileFormat]](), None
    for file in files:
        if what := read_whole(file):
            raise SourceError(
                f"{file} is {what}, which is read whole: pass a table of powermeans.read_frame to "
                "powermeans.Prepare, or write CSV"
            )
        try:
            found.append((file, format_of(file, called, **options)))
        except NoRowsError as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    return found


def _dtype_of(form: FileFormat, wanted: Sequence[int]) -> np.dtype[np.floating[Any]]:
    return np.dtype(np.float32 if form.fits_float32(wanted) else np.float64)


def _columns_in(form: FileFormat) -> list[str]:
    # Only files with rows may have an index of pandas.
    return [name for place, name in enumerate(form.names) if place not in form.index]


def is_passed_over(path: Path) -> bool:
    """Return whether a file at this path in a folder is left out when the folder is read."""
    return any(part.startswith((".", "_")) for part in path.parts)


def files_at(path: Path) -> list[Path]:
    """Return a file, or a folder that is one Zarr array; else the files in the folder, by name."""
    if not path.exists():
        raise SourceError(missing_path(path))
    if path.is_file() or (path / ".zarray").exists() or (path / "zarr.json").exists():
        return [path]
    there = sorted(
        file
        for file in path.rglob("*")
        if not is_passed_over(file.relative_to(path)) and file.is_file()
    )
    found = [file for file in there if file.suffix.lower() in ENDINGS]
    if not found:
        raise SourceError(
            f"{path} has no files that end in one of {', '.join(ENDINGS)}: name a folder of such "
            "files"
        )
    if len(found) < len(there):
        others = [str(file.relative_to(path)) for file in there if file not in set(found)]
        raise SourceError(
            f"{path} has files that end in none of {', '.join(ENDINGS)}: "
            f"{', '.join(others[:5])}{', ...' * (len(others) > 5)}. Pass a list of the files to "
            "read, or begin the names of the others with _"
        )
    return found
