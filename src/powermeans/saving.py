"""Models in files: one `.npz` archive for each, which is safe to load from anywhere.

The arrays are members in NumPy's own format, neither compressed nor pickled. The member
``model.json`` says which classes, parameters and attributes they belong to. Attributes are checked
against `_state`, in which each class names its own, before they are written and before they are
used.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from powermeans import divergences
from powermeans.engine.history import Spent
from powermeans.engine.seeds.markov_chain import MarkovChainSeeds
from powermeans.engine.seeds.parallel import ParallelSeeds
from powermeans.engine.seeds.tree import TreeSeeds
from powermeans.errors import ModelFileError, printable
from powermeans.estimators.kmeans import KMeans
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.estimators.robust_power_kmeans import RobustPowerKMeans
from powermeans.estimators.streams import mini_batch
from powermeans.estimators.streams.base import Waiting, is_waiting
from powermeans.estimators.streams.drift import Drift
from powermeans.estimators.streams.mini_batch import MiniBatchPowerKMeans
from powermeans.mathematics import schedules
from powermeans.mathematics.sums import Sums
from powermeans.points.checks.points import Admitted, check_domain
from powermeans.points.scaling import Scaling
from powermeans.relatives import online_kmeans
from powermeans.relatives.dp_means import DPMeans
from powermeans.relatives.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.relatives.gradient_kmeans import GradientKMeans
from powermeans.relatives.kernel_power_kmeans import KernelPowerKMeans
from powermeans.relatives.mini_batch_kmeans import MiniBatchKMeans
from powermeans.relatives.mixture.spherical_mixture import SphericalMixture
from powermeans.relatives.online_kmeans import OnlineKMeans
from powermeans.relatives.self_organizing_map import SelfOrganizingMap
from powermeans.relatives.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.relatives.spectral import SpectralClustering
from powermeans.system.atomic_write import atomic_write
from powermeans.system.attributes import remember
from powermeans.system.host_memory import is_dask, on_host

FORMAT = 1
_HEADER, _MAGIC = "model.json", "powermeans model"
_OF_ALL = "_sklearn_output_config: any n_features_in_: length[d]! feature_names_in_: names[d] "
_STATE_OF_SCIKIT_LEARN: dict[type[Any], str] = {
    StandardScaler: """n_samples_seen_: any! scale_: weight[d]?! mean_: finite[d]?!
        var_: finite[d]?!""",
    MinMaxScaler: """n_samples_seen_: any! scale_: weight[d]! min_: finite[d]! data_min_: finite[d]!
        data_max_: finite[d]! data_range_: finite[d]!""",
    Pipeline: "",
}
_OURS: tuple[type[Any], ...] = (
    *(PowerKMeans, RobustPowerKMeans, KMeans, GradientKMeans, KHarmonicMeans, FuzzyCMeans, DPMeans),
    *(OnlineKMeans, MiniBatchKMeans, MiniBatchPowerKMeans, SelfOrganizingMap, SphericalMixture),
    *(EntropyWeightedPowerKMeans, KernelPowerKMeans, SpectralClustering),
)
ESTIMATORS = (*_OURS, Pipeline)
_VALUES = (schedules.Geometric, schedules.Fixed, schedules.AuthorsSchedule, *divergences.KINDS)
_VALUES += (Spent, Scaling, Sums, Drift, Admitted, Waiting)
_VALUES += (MarkovChainSeeds, ParallelSeeds, TreeSeeds)
_VALUES += (online_kmeans._Counted, mini_batch._Remembered)
_CLASSES = {kind.__name__: kind for kind in (*ESTIMATORS, StandardScaler, MinMaxScaler, *_VALUES)}
_LEFT_OUT = {"callback", "divergence_", "_metadata_request", "_skl_callbacks"}
_DTYPES = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"}
# JSON takes up to twelve times its bytes as Python objects, and lists and objects more.
_LONGEST_HEADER, _MOST_BRACKETS, _LONGEST_ARRAY_HEADER = 2**23, 100_000, 1000
_LONGEST_AXIS = 2**48
# Products with a sparse matrix take memory for each column, also for those without entries.
_MOST_SPARSE_COLUMNS = 2**24
# Options by which points are read from a file, which the command line keeps with a model.
_READING = {"missing": str, "missing_values": list, "delimiter": str, "header": bool, "array": str}
_READING |= {"decimal": str, "thousands": str, "dates": str, "encoding": str}


def save(
    model: Any, path: str | os.PathLike[str], *, reading: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, from which `load` brings it back.

    The file holds no code and no pickle, so it can be passed on. Use `pickle` or `joblib` if a
    model holds functions of your own, as ``init`` or as a divergence. A ``callback``, which belongs
    to one fit, is left out.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package, or a scikit-learn pipeline that ends in one and begins
        with a `StandardScaler` or `MinMaxScaler`. One with `partial_fit` can be saved as soon as it
        has points, even while it waits for more: a stream resumes from the file with the same bits.
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
    >>> model = powermeans.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.npz")
    ...     powermeans.save(model, file)
    ...     again = powermeans.load(file)
    >>> again.predict([[2.0], [8.0]]).tolist() == model.predict([[2.0], [8.0]]).tolist()
    True
    """
    if type(model) not in ESTIMATORS:
        name = type(model).__name__
        raise TypeError(f"model is a {name}, no estimator of powermeans: use pickle or joblib")
    if not is_waiting(model):
        check_is_fitted(model)
    arrays: list[Any] = []
    encoded = _encoded(model, arrays, "model")
    header = {"format": _MAGIC, "version": FORMAT, "written_by": version("powermeans")}
    text = json.dumps(header | {"reading": dict(reading or {}), "model": encoded}).encode()
    _check_size(text)
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
            reason = printable(str(error).strip() or type(error).__name__)
            # `from None`: the first error may hold codes that act on a terminal.
            raise ModelFileError(f"{os.fspath(path)} holds no model: {reason}") from None
    return model


def reading_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the options by which the points of the checked model at `path` were read."""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        reading = _header(archive).get("reading")
    given = reading if isinstance(reading, dict) else {}
    return {name: given[name] for name, kind in _READING.items() if type(given.get(name)) is kind}


# Values as JSON: what JSON lacks becomes an object of one entry, whose key is one of these.


def _csr(content: Any) -> Any:
    data, indices, indptr, *shape = content
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)
    return matrix


def _records(content: Any) -> np.recarray[Any, Any]:
    dtype = [(name, column.dtype) for name, column in content.items()]
    records: np.recarray[Any, Any] = np.rec.fromarrays([*content.values()], dtype=dtype)
    return records


def _is_names(value: Any) -> bool:
    is_list = isinstance(value, np.ndarray) and value.dtype.kind in "OU" and value.ndim == 1
    return is_list and all(isinstance(name, str) for name in value)


def _random_state(content: Any) -> np.random.RandomState:
    key, position, has_gauss, gauss = content
    # NumPy checks the key only: from another position it would read beyond the end of it.
    if not _is_int(position) or not 0 <= position <= len(key) or not math.isfinite(gauss):
        raise ValueError(f"its random state is at position {position!r:.40}")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", key, position, has_gauss, gauss))
    return state


# By key: which values it is for, what they are made of, and how they are made of that again.
_FORMS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (lambda value: isinstance(value, tuple), list, tuple),
    "dict": (lambda value: isinstance(value, dict), lambda value: [*value.items()], dict),
    "names": (_is_names, np.ndarray.tolist, functools.partial(np.array, dtype=object)),
    "records": (
        lambda value: isinstance(value, np.recarray),
        lambda value: {name: np.asarray(value[name]) for name in value.dtype.names},
        _records,
    ),
    "random_state": (
        lambda value: isinstance(value, np.random.RandomState),
        lambda value: [*value.get_state(legacy=True)[1:]],
        _random_state,
    ),
    "csr": (sparse.issparse, lambda m: [m.data, m.indices, m.indptr, *map(int, m.shape)], _csr),
}


def _encoded(value: Any, arrays: list[Any], name: str) -> Any:
    """Return the JSON of a value that errors call `name`, and append its arrays to the list."""
    encode = functools.partial(_encoded, arrays=arrays, name=name)
    value = on_host(value)  # a tensor is read back as an array
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(entry) for entry in value]
    if _CLASSES.get(kind := type(value).__name__) is type(value):
        parts = [
            {key: _encoded(entry, arrays, key) for key, entry in part.items()}
            for part in _parts_of(value)
        ]
        return {kind: parts}
    for key, (fits, taken_apart, _) in _FORMS.items():
        if fits(value):
            parts = taken_apart(value)
            is_named = isinstance(parts, dict)
            return {key: {k: encode(v) for k, v in parts.items()} if is_named else encode(parts)}
    return {"array": _kept(value, arrays, name)}


def _kept(value: Any, arrays: list[Any], name: str) -> int:
    """Append an array to the list, and return its place there."""
    if not isinstance(value, np.ndarray) or value.dtype.newbyteorder("<").str not in _DTYPES:
        what = getattr(value, "__name__", None) or type(value).__name__
        raise TypeError(
            f"{name} is {what}, which cannot be saved without saving code: replace it with "
            f"model.set_params({name}=...), or use pickle"
        )
    arrays.append(np.asarray(value, dtype=value.dtype.newbyteorder("<")))
    return len(arrays) - 1


def _parts_of(value: Any) -> list[dict[str, Any]]:
    """Return the fields of a dataclass, or the parameters and the checked state of a model."""
    if is_dataclass(value):
        return [{field.name: getattr(value, field.name) for field in fields(value)}]
    params = value.get_params(deep=False)
    state = {
        name: entry.as_one_chunk() if isinstance(entry, Waiting) else entry
        for name, entry in vars(value).items()
        if not (name in params or name in _LEFT_OUT or is_dask(entry))
    }
    _check_state(type(value), state)
    return [{name: params[name] for name in params if name not in _LEFT_OUT}, state]


class _Decoder:
    """Return values from the JSON of a header, and take each array of the archive once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.unread = {name for name in archive.namelist() if name != _HEADER}

    def decode(self, encoded: Any) -> Any:
        """Return the value that was encoded."""
        if isinstance(encoded, list):
            return [self.decode(entry) for entry in encoded]
        if not isinstance(encoded, dict):
            return encoded
        ((name, content),) = encoded.items()
        if name == "array":
            return self._array(f"a{content}.npy")
        if name in _FORMS:
            is_named = isinstance(content, dict)
            return _FORMS[name][2](self._named(content) if is_named else self.decode(content))
        if name not in _CLASSES:
            raise ValueError(f"{_HEADER} has a value of the unknown kind {name!r:.40}")
        return _made(_CLASSES[name], [self._named(part) for part in content])

    def _named(self, content: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.decode(value) for name, value in content.items()}

    def _array(self, name: str) -> Any:
        """Read an array from a member whose header agrees with its size."""
        if name not in self.unread:
            raise ValueError(f"{name:.40} is missing, or is used twice")
        self.unread.remove(name)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        with self._archive.open(name) as member:
            magic = npy.read_magic(member)
            shape, is_fortran, dtype = read[magic](member, max_header_size=_LONGEST_ARRAY_HEADER)
            if dtype.str not in _DTYPES:
                raise ValueError(f"{name} is an array of dtype {dtype!s:.40}")
            n_left = self._archive.getinfo(name).file_size - member.tell()
            if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_left:
                raise ValueError(f"{name} does not have the size of its shape {shape!s:.60}")
            entries = np.frombuffer(member.read(), dtype=dtype)
        order: Any = "F" if is_fortran else "C"
        return entries.reshape(shape, order=order).astype(dtype.newbyteorder("="), order=order)


def _made(kind: type[Any], parts: list[dict[str, Any]]) -> Any:
    """Make a dataclass of its fields, or a model of its parameters and its state."""
    if is_dataclass(kind):
        return kind(**parts[0])
    params, state = parts
    if strange := sorted(set(params) - set(kind._get_param_names()) | set(params) & _LEFT_OUT):
        raise ValueError(f"{kind.__name__} has no parameter {strange[0]:.40}")
    model = kind(**params)
    if isinstance(model, Pipeline):
        _check_steps(model)
    model._validate_params()
    _check_state(kind, state)
    if isinstance(stream := state.get("_stream"), Waiting):
        state["_stream"] = stream.checked(state)
    remember(model, state)
    return model


def _check_steps(model: Pipeline) -> None:
    *scalers, last = [type(step) for _, step in model.steps]
    are_named = all(type(step) is tuple and isinstance(step[0], str) for step in model.steps)
    are_scalers = all(scaler in (StandardScaler, MinMaxScaler) for scaler in scalers)
    if not are_named or not are_scalers or last not in _OURS or model.memory is not None:
        raise ValueError("its steps are not scalers and an estimator of powermeans")


# The archive.


def _read(file: IO[bytes]) -> Any:
    with zipfile.ZipFile(file) as archive:
        members, names = archive.infolist(), archive.namelist()
        for member in members:
            if not re.fullmatch(rf"a\d{{1,5}}\.npy|{_HEADER}", member.filename):
                raise ValueError(f"its member {member.filename[:40]!r} is none of a model")
            is_plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 0x1
            if not is_plain or member.compress_size != member.file_size:
                raise ValueError(f"its member {member.filename} is compressed or encrypted")
        n_bytes = sum(member.file_size for member in members)
        if len(set(names)) < len(names) or n_bytes > os.fstat(file.fileno()).st_size:
            raise ValueError("two of its members have one name, or share their bytes")
        decoder = _Decoder(archive)
        model = decoder.decode(_header(archive)["model"])
    if type(model) not in ESTIMATORS or decoder.unread:
        raise ValueError("it is no estimator, or has arrays that belong to none")
    return model


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(_HEADER).file_size > _LONGEST_HEADER:
        raise ValueError(f"{_HEADER} is longer than {_LONGEST_HEADER} bytes")
    text = archive.read(_HEADER)
    _check_size(text)
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


def _check_size(header: bytes) -> None:
    """Raise if a header is too long, in saving as in loading."""
    n_brackets = header.count(b"[") + header.count(b"{")
    if len(header) > _LONGEST_HEADER or n_brackets > _MOST_BRACKETS:
        raise ValueError(
            f"{_HEADER} takes {len(header):,} bytes with {n_brackets:,} brackets, more than "
            f"{_LONGEST_HEADER:,} and {_MOST_BRACKETS:,}: pass numbers as arrays rather than "
            "lists, and give columns shorter names"
        )


# What a class says of its state, ``name: kind[axes]`` for each attribute. A bar separates kinds, a
# question mark allows None, [1] after a dataclass is a tuple of one, and an exclamation mark
# follows what every fitted model has. Axes of one name have the same length throughout a model.
_ATTRIBUTE = re.compile(r"(\w+): ([\w|]+)(?:\[([\w,]+)\])?(\??)(!?)")


def _state_of(kind: type[Any]) -> dict[str, tuple[list[str], list[str], str, str]]:
    """Return the kinds and axes of each attribute, whether it may be None, and if it is needed."""
    text = str(getattr(kind, "_state", _STATE_OF_SCIKIT_LEARN.get(kind) or ""))
    if is_dataclass(kind) and not text:  # which checks its fields itself
        text = " ".join(f"{field.name}: any" for field in fields(kind))
    elif kind in _OURS or kind in (StandardScaler, MinMaxScaler):
        text = f"{_OF_ALL}{text}"
    return {
        name: (kinds.split("|"), axes.split(",") if axes else [], optional, needed)
        for name, kinds, axes, optional, needed in _ATTRIBUTE.findall(text)
    }


def _check_state(kind: type[Any], state: Mapping[str, Any]) -> None:
    """Raise where attributes are unknown, lacking, or not as their class says."""
    expected, stream = _state_of(kind), state.get("_stream")
    awaits_centers = isinstance(stream, Waiting) and stream.learned is None
    needed = {name for name, (*_, needed) in expected.items() if needed}
    needed -= {"cluster_centers_"} if awaits_centers else set()
    if strange := sorted(set(state) - set(expected)):
        raise ValueError(f"{kind.__name__} has no attribute {strange[0]:.40}: delete it")
    if lacking := sorted(needed - set(state)):
        raise ValueError(f"{kind.__name__} has no {lacking[0]}")
    _check_values(state, kind, {})


def _check_values(found: Mapping[str, Any], kind: type[Any], lengths: dict[str, int]) -> None:
    for name, value in found.items():
        kinds, axes, optional, _ = _state_of(kind)[name]
        if value is None and optional:
            continue
        if axes == ["1"]:
            value = value[0] if isinstance(value, tuple) and len(value) == 1 else None
        if kinds[0] in _CLASSES:
            is_right = type(value).__name__ in kinds
        else:
            is_right = _is_as_expected(on_host(value), kinds[0], axes, lengths)
        if not is_right:
            wanted = f"{'|'.join(kinds)}[{','.join(axes)}]" if axes else "|".join(kinds)
            raise ValueError(f"{name} of {kind.__name__} is not {wanted}")
        if is_dataclass(value) and kinds[0] in _CLASSES:
            _check_values(_parts_of(value)[0], type(value), lengths)


def _is_as_expected(value: Any, kind: str, axes: list[str], lengths: dict[str, int]) -> bool:
    if kind == "any":
        return True
    if kind == "records":
        return isinstance(value, np.recarray) and value.ndim == 1
    if kind == "length":
        return _is_int(value) and 0 < value < _LONGEST_AXIS and _fits((value,), axes, lengths)
    if not axes:
        is_number = isinstance(value, bool | int | float | np.generic)
        return is_number and _PREDICATES[kind](np.asarray(value))
    is_sparse = bool(sparse.issparse(value))
    if not is_sparse and not isinstance(value, np.ndarray):
        return False
    if is_sparse and value.shape[-1] > max(value.shape[0], _MOST_SPARSE_COLUMNS):
        raise ValueError(
            f"its sparse matrix has {value.shape[-1]:,} columns, and a file may have "
            f"{_MOST_SPARSE_COLUMNS:,}: hash them to fewer, or use pickle"
        )
    entries = value.data if is_sparse else value
    return _fits(value.shape, axes, lengths) and _PREDICATES[kind](entries)


def _fits(shape: Iterable[int], axes: list[str], lengths: dict[str, int]) -> bool:
    shape = tuple(shape)
    return len(shape) == len(axes) and all(
        length == (int(axis) if axis.isdigit() else lengths.setdefault(axis, length)) and length > 0
        for length, axis in zip(shape, axes, strict=True)
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_PREDICATES: dict[str, Callable[[Any], bool]] = {
    "number": lambda entries: entries.dtype.kind in "iuf",
    "finite": lambda entries: entries.dtype.kind in "iuf" and bool(np.isfinite(entries).all()),
    "weight": lambda entries: _PREDICATES["finite"](entries) and bool((entries >= 0).all()),
    "count": lambda entries: entries.dtype.kind in "iu" and bool((entries >= 0).all()),
    "flag": lambda entries: entries.dtype.kind == "b",
    "names": _is_names,
}


def _try_out(model: Any) -> None:
    """Use the model, to find errors that no table shows."""
    if isinstance(model, Pipeline):
        if len({step.n_features_in_ for _, step in model.steps}) != 1:
            raise ValueError("its steps are for different numbers of features")
        model = model.steps[-1][1]
    centers = getattr(model, "cluster_centers_", None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if centers is not None:
            check_domain(
                on_host(centers), model._fitted_needs().measure.divergence, name="cluster_centers_"
            )
            as_it_is = copy.copy(model)
            as_it_is.scaling_ = None  # centers are already scaled
            as_it_is.predict(on_host(centers)[:1])
        elif (centers := getattr(model, "dual_coef_", None)) is not None:
            if model.kernel != "precomputed":
                model.predict(model.landmarks_[:1])
            elif model.n_features_in_ != len(model.labels_):
                raise ValueError("it has other numbers of labels and of points in its kernel")
            elif int(np.max(model.landmark_indices_)) >= model.n_features_in_:
                raise ValueError("it has landmarks that are no points of its kernel")
    labels = getattr(model, "labels_", 0)
    if centers is not None and not is_dask(labels):
        largest = int(np.max(on_host(labels)))
        if largest >= len(centers):
            raise ValueError(f"it has a label {largest}, and clusters up to {len(centers) - 1}")
