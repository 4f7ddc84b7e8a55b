"""Real data sets, read from a folder of the user or from scikit-learn, or downloaded.

The environment variable POWERMEANS_DATA names the folder, ``powermeans_data`` in the home directory
by default. The file `<name>.npz` there contains the points as the array `X` and the labels, counted
from 0, as `y`. Checksums are of the values, not of the bytes of the file, so that anybody can make
it: ``numpy.savez("iris.npz", X=X, y=y)``. The shapes, sources and licences of all sets, and how the
files of their places are laid out, are in ``catalogue.json`` beside this module.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powermeans.errors import MissingDataError, WrongDataError, nearest
from powermeans.system.atomic_write import atomic_write
from powermeans.types import FloatArray, Labels, Matrix

Arrays = dict[str, NDArray[Any]]

DATA_VARIABLE = "POWERMEANS_DATA"
_CHUNK = 2**20
_MICE = ("c-CS-s", "c-CS-m", "c-SC-s", "c-SC-m", "t-CS-s", "t-CS-m", "t-SC-s", "t-SC-m")


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

    @property
    def described(self) -> str:
        """Its size, publisher and licence, and how to get it."""
        rows, columns = self.shape
        ways = [f"fetched by powermeans.datasets.fetch({self.name!r})"] * bool(self.fetch)
        way = ", or ".join([*ways, f"a copy is at github.com/{self.copy}"])
        said = f"{rows} x {columns} numbers by {self.publisher}; licence: {self.licence}; {way}"
        return f"{said}. {self.contents}" if self.contents else said


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

    points: Matrix
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


def fetch(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path:
    """Download a real data set, and check its values.

    The set is then found by `load_data_set` and the other loaders, if `folder` is not given. Not
    all sets can be downloaded by a program: the error for others names their place and licence.
    Mind the licence of what you fetch; `powermeans.datasets.about` names it.

    Parameters
    ----------
    name : str
        One of `powermeans.datasets.names()`.
    folder : path, optional
        Where the file goes. By default the folder that the environment variable POWERMEANS_DATA
        names, or else ``powermeans_data`` in the home directory.

    Returns
    -------
    Path
        The file with the set, which is not touched if it is there and right.

    Raises
    ------
    MissingDataError
        If the set cannot be downloaded.
    WrongDataError
        If the values in the files are not those of the set.

    See Also
    --------
    load_data_set : Reads it.

    Examples
    --------
    >>> import tempfile
    >>> from powermeans.datasets import fetch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch("iris", folder=folder).name
    'iris.npz'
    """
    entry = entry_of(name)
    path = (data_folder() if folder is None else Path(folder)) / f"{entry.name}.npz"
    if path.is_file():
        read_arrays(entry, path)  # which checks them
        return path
    arrays = _obtained(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return path


def about(name: str) -> str:
    """Describe a real data set: its publisher, its licence, and how to get it.

    Parameters
    ----------
    name : str
        One of `powermeans.datasets.names()`.

    Returns
    -------
    str

    See Also
    --------
    fetch : Gets it.

    Examples
    --------
    >>> from powermeans.datasets import about
    >>> print(about("ruspini"))  # doctest: +ELLIPSIS
    75 x 2 numbers by Ruspini 1970 (R package cluster); licence: R cluster GPL>=2; ...
    """
    return entry_of(name).described


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


def arrays_of_scikit_learn(entry: Entry) -> Arrays:
    """Return the arrays of a set that comes with scikit-learn."""
    from sklearn import datasets

    found: Any = getattr(datasets, f"load_{entry.name}")()
    X, y = np.asarray(found.data, np.float64), np.asarray(found.target, np.int32)
    return checked(entry, {"X": X, "y": y}, "scikit-learn")


def read_arrays(entry: Entry, file: Path) -> Arrays:
    """Return the checked arrays in an NPZ file."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            arrays = dict(archive)
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for a damaged archive
        why = str(error) or type(error).__name__
        raise WrongDataError(f"{file} cannot be read ({why}): {how_to_place(entry)}") from error
    return checked(entry, arrays, file)


def checked(entry: Entry, arrays: Arrays, origin: str | Path) -> Arrays:
    """Return the arrays; raise unless they are those of the entry."""
    wanted = {"X": entry.points_sha256, "y": entry.labels_sha256}
    for name, checksum in wanted.items():
        if checksum is not None and (problem := _problem(entry, arrays, name, checksum)):
            raise WrongDataError(f"{origin} has {problem}: {how_to_place(entry)}")
    return arrays


def _problem(entry: Entry, arrays: Arrays, name: str, checksum: str) -> str | None:
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
    labels = "" if entry.labels_sha256 is None else " and its labels, from 0, as y"
    return (
        f"the data set {entry.name!r} does not come with powermeans ({entry.described}). You may "
        f"also save its points as the array X{labels} with numpy.savez in {entry.name}.npz, and "
        f"put that file in the folder that the environment variable {DATA_VARIABLE} names "
        "(powermeans_data in the home directory if it is not set)"
    )


def _obtained(entry: Entry) -> Arrays:
    """Return the arrays of a set from scikit-learn, or from the first place that has them."""
    if not entry.fetch:
        raise MissingDataError(f"no program can fetch {entry.name!r}: {how_to_place(entry)}")
    if entry.is_in_scikit_learn:
        return arrays_of_scikit_learn(entry)
    problems = []
    for urls in entry.fetch["places"]:
        try:
            arrays = _PARSERS[entry.fetch["format"]](_downloaded(urls))
        except (OSError, ValueError, IndexError, struct.error) as error:
            problems.append(f"{urls[0]}: {error}")
            continue
        return checked(entry, arrays, urls[0])
    raise MissingDataError(
        f"{entry.name!r} could not be downloaded ({'; '.join(problems)}): {how_to_place(entry)}"
    )


def _downloaded(urls: Sequence[str]) -> list[bytes]:
    """Return the contents of files, whose values are checked once they are read."""
    try:
        import pooch
    except ImportError:
        raise ImportError(
            'data sets are downloaded by pooch: pip install "powermeans[datasets]"'
        ) from None
    pooch.get_logger().setLevel("WARNING")
    with tempfile.TemporaryDirectory() as folder:
        contents = [
            Path(pooch.retrieve(url, None, fname=str(number), path=folder)).read_bytes()
            for number, url in enumerate(urls)
        ]
    return [gzip.decompress(one) if one.startswith(b"\x1f\x8b") else one for one in contents]


def _plain_table(contents: Sequence[bytes]) -> Arrays:
    """Numbers with blanks or commas between them; a second file has labels that count from 1."""
    text = contents[0].decode().replace(",", " ")
    arrays: Arrays = {"X": np.loadtxt(io.StringIO(text), ndmin=2)}
    if len(contents) == 2:
        arrays["y"] = np.loadtxt(io.BytesIO(contents[1])).astype(np.int32) - 1
    return arrays


def _proteins(contents: Sequence[bytes]) -> Arrays:
    """The CSV file of UCI 342: features end in _N, entries may be empty, and a class has a name."""
    head, *lines = [line.split(",") for line in contents[0].decode("utf-8-sig").splitlines()]
    places = [place for place, name in enumerate(head) if name.endswith("_N")]
    of_class = head.index("class")
    points = [[float(line[place] or "nan") for place in places] for line in lines]
    labels = [_MICE.index(line[of_class]) for line in lines]
    return {"X": np.array(points), "y": np.array(labels, np.int32)}


def _images(contents: Sequence[bytes]) -> Arrays:
    """Images and labels in the IDX format of MNIST."""
    images, labels = (_idx(content) for content in contents)
    return {"X": images.reshape(len(images), -1), "y": labels.astype(np.int32)}


def _idx(content: bytes) -> NDArray[np.uint8]:
    n_axes = content[3]
    begin = 4 + 4 * n_axes
    shape = struct.unpack(f">{n_axes}I", content[4:begin])
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


_PARSERS: dict[str, Callable[[Sequence[bytes]], Arrays]] = {
    "plain table": _plain_table,
    "proteins": _proteins,
    "images": _images,
}
