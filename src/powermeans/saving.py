"""Models in files: one `.npz` archive for each, which is safe to load from anywhere.

The arrays are members in NumPy's own format, neither compressed nor pickled. The member
``model.json`` says which classes, parameters and attributes they belong to. Attributes are checked
against `_state`, in which each class names its own, before they are written and before they are
used.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import math
import os
import pkgutil
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from powermeans import methods
from powermeans.errors import ModelFileError, printable
from powermeans.methods.documented import Documented
from powermeans.methods.streams.base import Waiting, is_waiting
from powermeans.system.atomic_write import atomic_write
from powermeans.system.attributes import forget, remember
from powermeans.system.containers import is_dask, to_array
from powermeans.system.extensions import extension
from powermeans.system.saved_classes import SAVED_CLASSES

FORMAT = 1
# A file that was tampered with may have names of any length.
_LONGEST_REASON = 1_000
_HEADER, _MAGIC = "model.json", "powermeans model"
_SCALERS: dict[type[Any], str] = {
    StandardScaler: """n_samples_seen_: any! scale_: weight[d]?! mean_: finite[d]?!
        var_: finite[d]?!""",
    MinMaxScaler: """n_samples_seen_: any! scale_: weight[d]! min_: finite[d]! data_min_: finite[d]!
        data_max_: finite[d]! data_range_: finite[d]!""",
}


@functools.cache
def estimators() -> set[type[Any]]:
    """Return the classes of the models that a file may hold."""
    for module in pkgutil.walk_packages(methods.__path__, f"{methods.__name__}."):
        importlib.import_module(module.name)  # where its classes say that they are saved
    return {Pipeline, *(one for one in SAVED_CLASSES.values() if issubclass(one, Documented))}


def _class_called(name: str) -> type[Any] | None:
    """Return a class that files may contain; another package may register some."""
    kinds: list[type[Any]] = [*estimators(), *_SCALERS, *SAVED_CLASSES.values(), dict]
    found = [kind for kind in kinds if kind.__name__ == name]
    found = found or [kind for kind in extension("saved_classes") if kind.__name__ == name]
    return found[0] if found else None


_LEFT_OUT = {
    "contributions_",
    "notes_",
    "callback",
    "divergence_",
    "_metadata_request",
    "_skl_callbacks",
}


def save(
    model: Any, path: str | os.PathLike[str], *, reading: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, from which `load` brings it back.

    The file contains no code and no pickle, so it can be passed on. Use `pickle` or `joblib` if a
    model has functions of your own, as ``init`` or as a divergence. A ``callback``, which belongs
    to one fit, is left out.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package, or a scikit-learn pipeline that ends in one and begins
        with a `StandardScaler` or `MinMaxScaler`. One with `partial_fit` can be saved as soon as it
        has points, even while it waits for more: a stream resumes from the file bit-identically.
    path : str or path
        Where to write. The file takes this name once it is complete.
    reading : dict, optional
        Options by which the points were read from a file, for the command ``powermeans predict``.

    See Also
    --------
    load : Reads the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import powermeans
    >>> stream = powermeans.methods.OnlineKMeans(2, random_state=0).partial_fit([[0.0], [9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     powermeans.save(stream, os.path.join(folder, "stream.npz"))
    """
    if type(model) not in estimators():
        name = type(model).__name__
        raise TypeError(f"model is a {name}, no estimator of powermeans: use pickle or joblib")
    if not is_waiting(model):
        check_is_fitted(model)
    arrays: list[Any] = []
    header = {"format": _MAGIC, "version": FORMAT, "written_by": version("powermeans")}
    header |= {"reading": dict(reading or {}), "model": _encoded(model, arrays, "model")}
    text = json.dumps(header).encode()
    _header(text)  # as `load` will read it
    _try_out(model)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(f"a{number}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that `save` wrote to this file; it predicts as it did before.

    It is safe to load a file from a stranger: nothing in it is executed, everything is checked, and
    loading takes at most about ten times the size of the file and 150 MB. A file that is no saved
    model, is damaged, or has another format raises a `ModelFileError`, which is a `ValueError`.

    Parameters
    ----------
    path : str or path
        Where the file is.

    Returns
    -------
    estimator
        Fitted, with its parameters and attributes.

    See Also
    --------
    save : Writes such files.

    Examples
    --------
    >>> import os, tempfile
    >>> import powermeans
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.npz")
    ...     powermeans.save(powermeans.KMeans.from_centers([[0.0], [9.0]]), file)
    ...     powermeans.load(file).predict([[1.0], [8.0]])
    array([0, 1], dtype=int32)
    """
    with open(path, "rb") as file:
        try:
            model = _read(file)
            _try_out(model)
        except Exception as error:
            reason = printable((str(error).strip() or type(error).__name__)[:_LONGEST_REASON])
            # `from None`: the first error may hold codes that act on a terminal.
            file.seek(0)
            if file.read(1) == b"\x80":
                reason += "; it may be a pickle, which pickle or joblib read if you trust it"
            raise ModelFileError(f"{os.fspath(path)} contains no model: {reason}") from None
    return model


def reading_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the options by which the points of the checked model at `path` were read."""
    with zipfile.ZipFile(path) as archive:
        reading = _header(archive.read(_HEADER)).get("reading")
    given = reading if isinstance(reading, dict) else {}
    kinds = {"header": bool, "missing_values": list}  # all others are texts
    return {name: value for name, value in given.items() if type(value) is kinds.get(name, str)}


# Values as JSON: what JSON lacks becomes an object of one entry, whose key says what it is.


def _csr(content: Any) -> Any:
    data, indices, indptr, *shape = content
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)
    _parts_of_csr(matrix)
    return matrix


def _parts_of_csr(matrix: Any) -> list[Any]:
    n_rows, n_columns = map(int, matrix.shape)
    most = 2**24  # products with a sparse matrix take memory also for columns without entries
    if n_columns > max(n_rows, most):
        raise ValueError(
            f"its sparse matrix has {n_columns:,} columns, and a file may have "
            f"{most:,}: hash them to fewer, or use pickle"
        )
    return [matrix.data, matrix.indices, matrix.indptr, n_rows, n_columns]


def _random_state(content: Any) -> np.random.RandomState:
    key, position, has_gauss, gauss = content
    # NumPy checks the key only: from another position it would read beyond the end of it.
    if type(position) is not int or not 0 <= position <= len(key) or not math.isfinite(gauss):
        raise ValueError(f"its random state is at position {position!r:.40}")
    if not key[0] >> 31 and not key[1:].any():
        raise ValueError("its random state gives zeros forever")  # in which draws would not end
    state = np.random.RandomState(0)
    state.set_state(("MT19937", key, position, has_gauss, gauss))
    return state


# By key: the types of such values, what they are made of, and how they are made of that again.
_FORMS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, list, tuple),
    "csr": ((sparse.sparray, sparse.spmatrix), _parts_of_csr, _csr),
    "random_state": (
        np.random.RandomState,
        lambda state: [*state.get_state(legacy=True)[1:]],
        _random_state,
    ),
}


def _encoded(value: Any, arrays: list[Any], name: str) -> Any:
    """Return the JSON of a value that errors call `name`, and append its arrays to the list."""
    encode = functools.partial(_encoded, arrays=arrays, name=name)
    value = to_array(value)  # a tensor is read back as an array
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(entry) for entry in value]
    if _class_called(kind := type(value).__name__) is type(value):
        entries = _entries_of(value).items()
        return {kind: {key: _encoded(entry, arrays, key) for key, entry in entries}}
    for key, (types, taken_apart, _) in _FORMS.items():
        if isinstance(value, types):
            return {key: encode(taken_apart(value))}
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"names": encode(value.tolist())}
    if not isinstance(value, np.ndarray) or not _holds_numbers(value.dtype):
        what = getattr(value, "__name__", None) or type(value).__name__
        raise TypeError(
            f"{name} is {what}, which cannot be saved without saving code: replace it with "
            f"model.set_params({name}=...), or use pickle"
        )
    arrays.append(np.asarray(value, dtype=value.dtype.newbyteorder("<")))
    return {"array": len(arrays) - 1}


def _holds_numbers(dtype: np.dtype[Any]) -> bool:
    """Return whether an array has numbers for entries, or records of numbers."""
    kinds = [dtype[name] for name in dtype.names] if dtype.names else [dtype]
    return all(kind.kind in "biuf" and kind.itemsize <= 8 for kind in kinds)


def _entries_of(value: Any) -> dict[str, Any]:
    """Return a dict, the fields of a dataclass, or parameters and checked state of a model."""
    if isinstance(value, dict):
        return value
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    entries = {
        name: entry.as_one_chunk() if isinstance(entry, Waiting) else entry
        for name, entry in vars(value).items()
        if name not in _LEFT_OUT and not is_dask(entry)
    }
    names = set(type(value)._get_param_names())
    _check_state(type(value), {name: entries[name] for name in entries if name not in names}, {})
    return entries


def _decoded(encoded: Any, arrays: dict[str, Any]) -> Any:
    """Return the value that was encoded, and take the arrays of it."""
    decode = functools.partial(_decoded, arrays=arrays)
    if isinstance(encoded, list):
        return [decode(entry) for entry in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    if kind in _FORMS:
        return _FORMS[kind][2]([decode(entry) for entry in content])
    if kind == "names":
        return np.array(content, dtype=object)
    if kind != "array" and (made := _class_called(kind)) is not None:
        return _made(made, {name: decode(value) for name, value in content.items()})
    if kind != "array":
        raise ValueError(f"{_HEADER} has a value of the unknown kind {kind!r:.40}")
    if (name := f"a{content}.npy") not in arrays:
        raise ValueError(f"{name:.40} is missing, or is used twice")
    return arrays.pop(name)


def _made(kind: type[Any], entries: dict[str, Any]) -> Any:
    """Make a dict or a dataclass of its entries, or a model of its parameters and its state."""
    if kind is dict:
        return entries
    if is_dataclass(kind):
        if unknown := entries.keys() - {field.name for field in fields(kind) if field.init}:
            raise ValueError(f"{_HEADER} has a {kind.__name__} with the unknown {min(unknown)!r}")
        return kind(**entries)
    names = set(entries) & set(kind._get_param_names()) - _LEFT_OUT
    model = kind(**{name: entries.pop(name) for name in names})
    if isinstance(model, Pipeline):
        _check_steps(model)
    model._validate_params()
    _check_state(kind, entries, {})
    if isinstance(stream := entries.get("_stream"), Waiting):
        entries["_stream"] = stream.checked(entries)
    remember(model, entries)
    if hasattr(model, "check_loaded"):
        model.check_loaded()
    return model


def _check_steps(model: Pipeline) -> None:
    *scalers, last = [type(step) for _, step in model.steps]
    are_named = all(type(step) is tuple and isinstance(step[0], str) for step in model.steps)
    known = {*_SCALERS, *extension("saved_classes")}
    are_right = {*scalers} <= known and last in estimators() and last is not Pipeline
    if not are_named or not are_right or model.memory is not None:
        raise ValueError("its steps are not scalers and an estimator of powermeans")
    if len({_width_of(step) for _, step in model.steps}) != 1:
        raise ValueError("its steps are for different numbers of features")


def _width_of(step: Any) -> int:
    """Return the number of features that a step takes, or gives if it is a transformer."""
    is_estimator = type(step) in estimators()
    return int(step.n_features_in_ if is_estimator else len(step.get_feature_names_out()))


# The archive.


def _read(file: IO[bytes]) -> Any:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"its member {member.filename[:40]!r} is compressed")
        if sum(member.file_size for member in members) > os.fstat(file.fileno()).st_size:
            raise ValueError("its members share their bytes")
        header = _header(archive.read(_HEADER))
        arrays = {name: _array(archive, name) for name in archive.namelist() if name != _HEADER}
    model = _decoded(header["model"], arrays)
    if type(model) not in estimators() or arrays:
        raise ValueError("it is no estimator, or has arrays that belong to none")
    return model


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as member:
        npy.read_magic(member)
        head = npy.read_array_header_1_0(member, max_header_size=1000)
        shape, is_fortran, dtype = head
        if not _holds_numbers(dtype):
            raise ValueError(f"{name[:40]!r} is an array of dtype {dtype!s:.40}")
        entries = np.frombuffer(member.read(), dtype=dtype)
    array = entries.reshape(shape, order="F" if is_fortran else "C")
    array = array.astype(dtype.newbyteorder("="), order="K")
    return array.view(np.recarray) if dtype.names else array


def _header(text: bytes) -> dict[str, Any]:
    """Return the checked header of a file from its text."""
    n_brackets = text.count(b"[") + text.count(b"{")
    # JSON takes up to twelve times its bytes as Python objects, and lists and objects more.
    longest, most_brackets = 2**23, 100_000
    if len(text) > longest or n_brackets > most_brackets:
        raise ValueError(
            f"{_HEADER} takes {len(text):,} bytes with {n_brackets:,} brackets, more than "
            f"{longest:,} and {most_brackets:,}: pass numbers as arrays rather than "
            "lists, and give columns shorter names"
        )
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != _MAGIC or "model" not in header:
        raise ValueError(f"{_HEADER} is that of another format")
    if header.get("version") != FORMAT:
        raise ValueError(
            f"powermeans {header.get('written_by')!s:.20} wrote it in version "
            f"{header.get('version')!r:.20} of the format, and powermeans {version('powermeans')} "
            f"reads version {FORMAT}: pip install --upgrade powermeans"
        )
    return header


# A class says of its state, ``name: kind[axes]`` for each attribute, for example
# ``labels_: label[n]! spread_: finite[k,d]? n_seen_: count _stream: Waiting|Stream``. A kind is one
# of these or "any", "length", a class, or several classes with a bar between them. A question mark
# allows None, and an exclamation mark follows what every fitted model has. Axes of one name have
# the same length throughout a model, and a label is less than the number `k` of centers, which
# stand before it, or without centers than the number `n` of points.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "number": lambda entries: entries.dtype.kind in "iuf",
    "finite": lambda entries: entries.dtype.char in "fd" and bool(np.isfinite(entries).all()),
    "weight": lambda e: e.dtype.kind in "iuf" and bool((np.isfinite(e) & (e >= 0)).all()),
    "count": lambda entries: entries.dtype.kind in "iu" and bool((entries >= 0).all()),
    "label": lambda e: e.dtype.kind == "i" and bool((e >= -1).all()),  # -1: a row left out
    "flag": lambda entries: entries.dtype.kind == "b",
    "names": lambda entries: entries.dtype == object and all(isinstance(e, str) for e in entries),
    "records": lambda entries: entries.dtype.names is not None,
}


def _check_state(kind: type[Any], found: Mapping[str, Any], lengths: dict[str, int]) -> None:
    """Raise where attributes are unknown, lacking, or not as their class says."""
    bases = (kind, Documented) if kind in _SCALERS else kind.__mro__
    states = [_SCALERS.get(base) or getattr(base, "_state", "") for base in reversed(bases)]
    expected = dict(re.findall(r"(\w+): (\S+)", " ".join(states)))
    needed = {name for name, what in expected.items() if what.endswith("!")}
    if isinstance(found.get("_stream"), Waiting):
        needed.discard("cluster_centers_")
    if strange := sorted(set(found) - set(expected)):
        raise ValueError(f"{kind.__name__} has no attribute {strange[0]:.40}: delete it")
    if lacking := sorted(needed - set(found)):
        raise ValueError(f"{kind.__name__} has no {lacking[0]}")
    for name, what in expected.items():
        if name in found and not _is_as_expected(to_array(found[name]), what, lengths):
            raise ValueError(f"{name} of {kind.__name__} is not {what.rstrip('?!')}")


def _is_as_expected(value: Any, what: str, lengths: dict[str, int]) -> bool:
    kind, _, axes = what.rstrip("]?!").partition("[")
    if kind == "any" or (value is None and "?" in what):
        return True
    if kind == "length":
        return type(value) is int and _fits((value,), axes, lengths)
    if kind not in _KINDS:
        if is_dataclass(value):
            _check_state(type(value), _entries_of(value), lengths)
        return type(value).__name__ in kind.split("|")
    is_sparse: bool = sparse.issparse(value)
    if not is_sparse and not isinstance(value, np.ndarray | np.generic | int | float):
        return False
    entries = value.data if is_sparse else np.asarray(value)
    is_right = _fits(np.shape(value), axes, lengths) and _KINDS[kind](entries)
    return is_right and (kind != "label" or int(entries.max()) < lengths.get("k", lengths["n"]))


def _fits(shape: tuple[int, ...], axes: str, lengths: dict[str, int]) -> bool:
    names = axes.split(",") if axes else []
    return len(shape) == len(names) and all(
        0 < length < 2**48
        and length == (int(axis) if axis.isdigit() else lengths.setdefault(axis, length))
        for length, axis in zip(shape, names, strict=True)
    )


def _try_out(model: Any) -> None:
    """Use the model, to find errors that no table shows."""
    if isinstance(model, Pipeline):
        model = model.steps[-1][1]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if (centers := to_array(getattr(model, "cluster_centers_", None))) is not None:
            model._fitted_needs().measure.divergence.check_domain(centers, name="cluster_centers_")
            as_it_is = copy.copy(model)
            forget(as_it_is, "preparation_")  # centers are already prepared
            as_it_is.predict(centers[:1])
        elif hasattr(model, "check_loaded"):
            model.check_loaded()
