"""Rows of NPY and NPZ files, and paths of files in folders."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import TableError, nearest
from powermeans.points.checks.csr import stacked
from powermeans.points.checks.points import NARROW_DTYPES
from powermeans.scale.array_files import NPY, NPZ, ArrayFile, NoRowsError, open_npy, open_npz
from powermeans.scale.block import Block, SourceError
from powermeans.scale.named_columns import places_of
from powermeans.system.free_memory import fits_into_memory
from powermeans.types import FloatArray, Matrix

_ENDINGS = (".npy", ".npz")


class FileSource:
    """The rows of NPY and NPZ files and of folders of them, one file after the other.

    `columns` and `weights` are those of `open_data`. Messages have `called` in place of the paths,
    and columns are called `names`. Temporary files are identified by their contents.
    """

    can_skip = True

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        columns: Sequence[str | int] | None = None,
        weights: str | None = None,
        *,
        dtype: np.dtype[np.floating[Any]] | None = None,
        array: str | None = None,
        called: str | None = None,
        are_temporary: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        self._places, self._called, self._array = [Path(path) for path in paths], called, array
        self._are_temporary = are_temporary
        there = [file for path in self._places for file in files_at(path, _ENDINGS)]
        self.name = called or (os.fspath(paths[0]) if len(paths) == 1 else f"{len(there)} files")
        found = _with_rows(there, called, array)
        first, self._has_weights = found[0][1], weights is not None
        known = tuple(names or first.names)
        self._wanted = places_of(columns, weights, known, first.name)
        self.n_features = len(self._wanted) - self._has_weights
        self.feature_names = None  # an array of numbers has none; its numbers serve as options
        if names or first.stored.names:
            self.feature_names = tuple(known[place] for place in self._wanted[: self.n_features])
        self.dtype = dtype or _dtype_of(first)
        for place in self._wanted:
            if place in first.texts:
                raise TableError(
                    f'{first.name}: column "{known[place]}" has no numbers: it is '
                    f"{first.texts[place]}"
                )
        for file, form in found[1:]:
            self._check_like(first, file, form, is_dtype_given=dtype is not None)
        self._files, self._states = found, {file: state_of(file) for file, _ in found}
        self._read_as = self._dtype_to_read(found[0][1].stored if dtype is None else None)
        self._without_rows = set(there) - {file for file, _ in found}

    @property
    def paths(self) -> list[Path]:
        """The files, and the folders in which they were found."""
        folders = [place for place in self._places if place.is_dir()]
        return [*folders, *(path for path, _ in self._files), *self._without_rows]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(form.n_rows for _, form in self._files)

    def fingerprint(self) -> str:
        """Return a text that identifies the files, and how they are read."""
        files: list[Any] = [[path.name, *self._states[path][:2]] for path, _ in self._files]
        if self._are_temporary:
            files = [_digest_of(path) for path, _ in self._files]
        how = [list(self._wanted), self._has_weights, self.dtype.str, self._array]
        return json.dumps([files, *how])

    def whole(self) -> tuple[Any, Any] | None:
        """Return all points and weights where they fit into memory, else None."""
        if not fits_into_memory(self.n_rows * self.n_features * self.dtype.itemsize):
            return None
        blocks = [*self.blocks(at_once=self.n_rows)]
        points = stacked([block.points for block in blocks])
        return points, stacked([block.weights for block in blocks]) if self._has_weights else None

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield file after file; files that end before `first_row` stay closed."""
        for path, form in self._files:
            check_unchanged(path, self._states[path])
            if form.n_rows <= first_row:
                first_row -= form.n_rows
                continue
            for points in self._blocks_of(path, form, first_row, at_once):
                block, first_row = self._block(points, path, first_row), first_row + len(points)
                del points  # frees the buffer for the next block
                yield block
                del block
            check_unchanged(path, self._states[path])
            first_row = 0

    def _blocks_of(
        self, path: Path, form: ArrayFile, first_row: int, at_once: int | None
    ) -> Iterator[Matrix]:
        try:
            yield from form.blocks(self._wanted, self._read_as, first_row, at_once)
        except (TableError, OSError) as error:
            check_unchanged(path, self._states[path])
            if isinstance(error, TableError):
                raise
            raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None

    def _dtype_to_read(self, stored: np.dtype[Any] | None) -> np.dtype[Any]:
        """Return the stored dtype if it is narrow, that of all files, and needs no change."""
        if self._has_weights:  # they come with the points, and need float64
            return np.dtype(np.float64)
        are_alike = all(form.stored == stored for _, form in self._files)
        is_kept = stored is not None and are_alike and str(stored) in NARROW_DTYPES
        return stored if is_kept and stored is not None else self.dtype

    def _block(self, points: Matrix, path: Path, first_row: int) -> Block:
        where = self._called or os.fspath(path)
        if not self._has_weights:
            return Block(points, None, where, first_row + 1)
        weights: FloatArray = np.ascontiguousarray(points[:, -1], dtype=np.float64)
        narrow: Matrix = np.ascontiguousarray(points[:, :-1], dtype=self.dtype)
        return Block(narrow, weights, where, first_row + 1)

    def _check_like(
        self, first: ArrayFile, path: Path, form: ArrayFile, *, is_dtype_given: bool
    ) -> None:
        if form.names != first.names or form.texts.keys() & set(self._wanted):
            raise SourceError(
                f"{path} has the columns {list(form.names)[:20]} where {first.name} has "
                f"{list(first.names)[:20]}: give all files the same columns in the same order"
            )
        found = _dtype_of(form)
        if found != self.dtype and not is_dtype_given:
            raise SourceError(
                f"{path} holds {found} where {first.name} holds {self.dtype}: write all files in "
                'one precision, or pass dtype="float64"'
            )


def are_arrays(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether paths are NPY and NPZ files, or folders of nothing else."""
    for path in map(Path, paths):
        files = [path]
        if path.is_dir():
            inside = (file for file in path.rglob("*") if file.is_file())
            files = [file for file in inside if not is_passed_over(file.relative_to(path))]
        if not files or not all(map(_is_array, files)):
            return False
    return bool(paths)


def _is_array(path: Path) -> bool:
    if path.suffix.lower() not in _ENDINGS and not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError:
        return False
    return start.startswith(NPY) or (start.startswith(NPZ) and path.suffix.lower() == ".npz")


def state_of(path: Path) -> tuple[int, int, int]:
    """Return bytes, time of the last change and inode of a file, which tell whether it changed."""
    try:
        found = path.stat()
    except OSError as error:
        raise SourceError(
            f"{path} is gone ({error.strerror}): rows on disk are read once for each sweep, so "
            "keep the file in its place until the fit is done"
        ) from None
    return found.st_size, found.st_mtime_ns, found.st_ino


def check_unchanged(path: Path, state: tuple[int, int, int]) -> None:
    """Raise if a file is not in the state that it had when it was opened."""
    if state_of(path) != state:
        raise SourceError(
            f"{path} has changed since it was opened: rows on disk are read once for each "
            "sweep, so start again once no program writes to it"
        )


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_rows(
    files: Sequence[Path], called: str | None, array: str | None
) -> list[tuple[Path, ArrayFile]]:
    # Programs that write one file for each partition also write empty files.
    found, problem = list[tuple[Path, ArrayFile]](), None
    for file in files:
        name = called or os.fspath(file)
        with file.open("rb") as opened:
            is_npy = opened.read(8).startswith(NPY)
        if is_npy and array is not None:
            raise TableError(
                f"is no option of NPY, which {name} is",
                "leave it out",
                argument="array",
                value=array,
            )
        try:
            form = open_npy(file, name) if is_npy else open_npz(file, name, array)
            found.append((file, form))
        except NoRowsError as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    return found


def _dtype_of(form: ArrayFile) -> np.dtype[np.floating[Any]]:
    is_narrow = form.stored.kind == "f" and form.stored.itemsize <= 4
    return np.dtype(np.float32 if is_narrow else np.float64)


def is_utf8(path: Path) -> bool:
    """Return whether the name of a file is UTF-8, as PyArrow needs it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_path(path: Path) -> str:
    """Return the error for a path that does not exist, with the nearest name beside it."""
    if re.match(r"\w+:/", str(path)):
        return f"{path} is an address: download it, and pass the file"
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, where there is no file"
    others = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
    return f"{path} does not exist{nearest(path.name, others)}"


def is_passed_over(path: Path) -> bool:
    """Return whether a file at this path in a folder is left out when the folder is read."""
    return any(part.startswith((".", "_")) for part in path.parts)


def files_at(path: Path, endings: Sequence[str]) -> list[Path]:
    """Return a file, or the files in a folder, by name, which end in one of these endings."""
    if not path.exists():
        raise SourceError(missing_path(path))
    if not path.is_dir():
        return [path]
    there = sorted(
        file
        for file in path.rglob("*")
        if not is_passed_over(file.relative_to(path)) and file.is_file()
    )
    found = [file for file in there if _ending_of(file) in endings]
    if not found:
        raise SourceError(
            f"{path} has no files that end in one of {', '.join(endings)}: name a folder of such "
            "files"
        )
    if len(found) < len(there):
        others = [str(file.relative_to(path)) for file in there if file not in set(found)]
        raise SourceError(
            f"{path} has files that end in none of {', '.join(endings)}: "
            f"{', '.join(others[:5])}{', ...' * (len(others) > 5)}. Pass a list of the files to "
            "read, or begin the names of the others with _"
        )
    return found


def _ending_of(file: Path) -> str:
    """Return the ending of a file, before that of a packed one."""
    is_packed = file.suffix.lower() in (".gz", ".bz2", ".xz")
    return (Path(file.stem) if is_packed else file).suffix.lower()
