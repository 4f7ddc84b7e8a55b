"""Models in files: one file for each, which is safe to load from anywhere.

A file is an archive that `numpy.load` opens as well: arrays in NumPy's own format, none compressed
and none pickled, and beside them ``model.json``, which says what they are.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from powermeans.errors import ModelFileError, printable
from powermeans.estimators.base import CenterEstimator
from powermeans.estimators.kernel_power_kmeans import KernelPowerKMeans
from powermeans.estimators.streams.base import is_waiting
from powermeans.inputs.points import check_domain
from powermeans.saving.values import ESTIMATORS, FORMS, SCALERS
from powermeans.system.atomic_write import atomic_write
from powermeans.system.values import DTYPES, Decoder, Encoder

FORMAT_VERSION = 1

HEADER = "model.json"

_MAGIC = "powermeans model"
_MEMBER = re.compile(r"a\d{1,5}\.npy")
# JSON takes up to twelve times its bytes as Python objects, and lists and objects more.
_LONGEST_HEADER = 2**23
_MOST_BRACKETS = 100_000
_LONGEST_ARRAY_HEADER = 1000
_LONGEST_NAME, _MOST_NAMES = 200, 1000


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def _are_names(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_NAMES and all(map(_is_name, value))


# The options that a file may hold, and what they may be.
_READING: dict[str, Callable[[Any], bool]] = {
    "missing": lambda value: value in ("error", "drop", "observed"),
    "missing_values": _are_names,
    "delimiter": lambda value: _is_name(value) and len(value) == 1,
    "header": lambda value: isinstance(value, bool),
    "array": _is_name,
    "decimal": lambda value: value in (".", ","),
    "thousands": lambda value: value in ("", ".", ",", "'", " "),
    "dates": lambda value: value in ("days", "day-first", "month-first"),
    "encoding": _is_name,
}


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, from which `load` brings it back.

    The file holds no code and no pickle: it can be passed on, and a later powermeans reads it. Use
    `pickle` or `joblib` if a model holds functions of your own, as ``init`` or as a divergence. A
    ``callback``, which belongs to one fit, is left out.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package, or a scikit-learn pipeline that ends in one and begins
        with a `StandardScaler` or `MinMaxScaler`. One with `partial_fit` can be saved as soon as
        it has points, even while it still waits for more of them: a stream that is killed resumes
        from the last file with the same bits.
    path : str or path
        Where to write. The file takes this name once it is complete.

    See Also
    --------
    load : Reads the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import powermeans
    >>> model = powermeans.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.pm")
    ...     powermeans.save(model, file)
    ...     again = powermeans.load(file)
    >>> again
    KMeans(n_clusters=2, random_state=0)
    >>> bool((again.predict([[2.0], [8.0]]) == model.predict([[2.0], [8.0]])).all())
    True
    """
    save_with(model, path, {})


def save_with(model: BaseEstimator, path: str | os.PathLike[str], reading: dict[str, Any]) -> None:
    """Write a fitted model, and the options by which its data was read."""
    if type(model) not in ESTIMATORS:
        raise TypeError(
            f"model is a {type(model).__name__}, which is no estimator of powermeans: use pickle "
            "or joblib for it"
        )
    if not is_waiting(model):
        check_is_fitted(model)
    encoder = Encoder(FORMS)
    header: dict[str, Any] = {
        "format": _MAGIC,
        "version": FORMAT_VERSION,
        "written_by": version("powermeans"),
    }
    header |= {"reading": reading} if reading else {}
    header["model"] = encoder.encode(model, "model")
    text = json.dumps(header, indent=1, allow_nan=False).encode()
    _check_size(text)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), text)
        for name, array in encoder.arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that `save` wrote to this file; it predicts as it did before.

    It is safe to load a file from a stranger: nothing in it is executed, everything is checked, and
    loading takes at most about ten times the size of the file and 150 MB. A file that `save` wrote
    takes about twice its size.

    Parameters
    ----------
    path : str or path
        Where the file is.

    Returns
    -------
    estimator
        Fitted, with its parameters and attributes.

    Raises
    ------
    ModelFileError
        A `ValueError`: the file is no saved model, is damaged, or is from a newer version.

    See Also
    --------
    save : Writes such files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import powermeans
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.pm")
    ...     _ = file.write_text("something else")
    ...     try:
    ...         powermeans.load(file)
    ...     except ValueError as error:
    ...         print(type(error).__name__)
    ModelFileError
    """
    with open(path, "rb") as file:
        try:
            model = _read(file)
        except Exception as error:
            reason = printable(str(error).strip() or type(error).__name__)
            # `from None`: the first error may hold codes that act on a terminal.
            raise ModelFileError(f"{os.fspath(path)} holds no model: {reason}") from None
    return model


def reading_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the options by which the data of a model was read; a checked model is at `path`."""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        reading = _header(archive).get("reading", {})
    if not isinstance(reading, dict):
        return {}
    return {
        name: reading[name]
        for name, may_be in _READING.items()
        if name in reading and may_be(reading[name])
    }


def _read(file: IO[bytes]) -> Any:
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        _check_members(archive, size)
        header = _header(archive)
        arrays = _Arrays(archive)
        model = Decoder(FORMS, arrays.take, HEADER).decode(header["model"])
        if type(model) not in ESTIMATORS or type(model) in SCALERS:
            raise ValueError("it does not begin with an estimator")
        if arrays.unread:
            raise ValueError(f"{min(arrays.unread)} belongs to nothing")
    _try_out(model)
    return model


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise for unknown or compressed members, or if they are larger than the file together."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("two of its members have the same name")
    for member in members:
        if member.filename != HEADER and not _MEMBER.fullmatch(member.filename):
            raise ValueError(f"its member {member.filename[:40]!r} is none of a model")
        is_stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 0x1
        if not is_stored or member.compress_size != member.file_size:
            raise ValueError(f"its member {member.filename} is compressed or encrypted")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members are larger than the file")


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise ValueError(f"{HEADER} is missing")
    if archive.getinfo(HEADER).file_size > _LONGEST_HEADER:
        raise ValueError(f"{HEADER} is longer than {_LONGEST_HEADER} bytes")
    text = archive.read(HEADER)
    _check_size(text)
    header = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    if not isinstance(header, dict) or header.get("format") != _MAGIC:
        raise ValueError(f"{HEADER} is that of another format")
    found = header.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(f"its version is {found!r:.40}")
    if found > FORMAT_VERSION:
        raise ValueError(
            f"powermeans {header.get('written_by', '?')!s:.20} wrote it in version {found} of the "
            f"format, and powermeans {version('powermeans')} reads up to {FORMAT_VERSION}: "
            "pip install --upgrade powermeans"
        )
    if "model" not in header:
        raise ValueError(f"{HEADER} names no model")
    return header


class _Arrays:
    """The arrays of an archive, each taken once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.unread = {name for name in archive.namelist() if name != HEADER}

    def take(self, key: Any) -> NDArray[Any]:
        name = f"{key}.npy"
        if name not in self.unread:
            raise ValueError(f"{name:.40} is missing, or is used twice")
        self.unread.remove(name)
        with self._archive.open(name) as member:
            return _array_in(member, self._archive.getinfo(name).file_size, name)


def _array_in(member: IO[bytes], size: int, name: str) -> NDArray[Any]:
    """Read an array from a member whose header agrees with its size."""
    read = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
    }.get(npy.read_magic(member))
    if read is None:
        raise ValueError(f"{name} is of an unknown version of NumPy's format")
    try:
        shape, is_fortran, dtype = read(member, max_header_size=_LONGEST_ARRAY_HEADER)
    except ValueError as error:
        raise ValueError(f"{name} has no header of an array") from error
    if dtype.str not in DTYPES:
        raise ValueError(f"{name} is an array of dtype {dtype!s:.40}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != size - member.tell():
        raise ValueError(f"{name} does not have the size of an array of shape {shape!s:.60}")
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    entries = np.frombuffer(member.read(), dtype=dtype).reshape(shape, order=order)
    return entries.astype(dtype.newbyteorder("="), order=order)


def _check_size(header: bytes) -> None:
    """Raise if a header is too long, in saving as in loading."""
    n_brackets = header.count(b"[") + header.count(b"{")
    if len(header) > _LONGEST_HEADER or n_brackets > _MOST_BRACKETS:
        raise ValueError(
            f"the model has more names and lists than fit into {HEADER}, {len(header):,} bytes and "
            f"{n_brackets:,} brackets of at most {_LONGEST_HEADER:,} and {_MOST_BRACKETS:,}: pass "
            "numbers as arrays rather than lists, and give columns shorter names"
        )


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{HEADER} has {text:.40} for a number")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} in {HEADER}")


def _try_out(model: Any) -> None:
    """Use the model, to find errors that no table shows."""
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
        if len({step.n_features_in_ for step in steps}) != 1:
            raise ValueError("its steps are for different numbers of features")
        for step in steps:
            _try_out(step)
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(model, CenterEstimator) and hasattr(model, "cluster_centers_"):
            centers: Any = model.cluster_centers_
            check_domain(centers, model._fitted_spec().divergence, name="cluster_centers_")
            _check_labels(model, len(centers))
            as_it_is = copy.copy(model)
            as_it_is.scaling_ = None  # centers are already scaled
            as_it_is.predict(centers[:1])
        elif isinstance(model, KernelPowerKMeans):
            _check_labels(model, len(model.dual_coef_))
            model.predict(_point_for(model))


def _point_for(model: KernelPowerKMeans) -> Any:
    """Return a point for a prediction, as wide as the file has numbers for."""
    if model.kernel != "precomputed":
        return model.landmarks_[:1]
    if model.n_features_in_ != len(model.labels_):
        raise ValueError(
            f"it has a kernel of {model.n_features_in_} points, and {len(model.labels_)} labels"
        )
    return np.zeros((1, model.n_features_in_))


def _check_labels(model: Any, n_clusters: int) -> None:
    largest = int(np.max(getattr(model, "labels_", 0)))
    if largest >= n_clusters:
        raise ValueError(f"it has a label {largest}, and clusters up to {n_clusters - 1}")
