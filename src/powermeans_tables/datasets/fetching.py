"""Real data sets, downloaded and checked.

Where the files of a set are and how they are laid out stands in ``catalogue.json``. The values of
every set have a checksum there, so that it does not matter which copy they come from.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import MissingDataError
from powermeans.system.atomic_write import atomic_write
from powermeans_tables.datasets.real import (
    Entry,
    arrays_of_scikit_learn,
    checked,
    data_folder,
    entry_of,
    how_to_place,
    read_arrays,
)

Arrays = dict[str, NDArray[Any]]
_MICE = ("c-CS-s", "c-CS-m", "c-SC-s", "c-SC-m", "t-CS-s", "t-CS-m", "t-SC-s", "t-SC-m")


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
) -> Path:
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
    entry = entry_of(name)
    rows, columns = entry.shape
    way = f"a copy is at github.com/{entry.copy}"
    if entry.fetch:
        way = f"fetched by powermeans.datasets.fetch({name!r})"
    said = f"{rows} x {columns} numbers by {entry.publisher}; licence: {entry.licence}; {way}"
    return f"{said}. {entry.contents}" if entry.contents else said


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
