"""What saved models are made of, as JSON and arrays, and back.

The estimators, values and attributes that there may be are listed here. What is read is checked
against these lists before it is used, and nothing that is read is ever executed.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from powermeans import divergences, schedules
from powermeans.estimators.base import CenterEstimator
from powermeans.estimators.dp_means import DPMeans
from powermeans.estimators.entropy_weighted import EntropyWeightedPowerKMeans
from powermeans.estimators.gradient_kmeans import GradientKMeans
from powermeans.estimators.kernel_power_kmeans import KernelPowerKMeans
from powermeans.estimators.kmeans import KMeans
from powermeans.estimators.mixture.spherical_mixture import SphericalMixture
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.estimators.robust_power_kmeans import RobustPowerKMeans
from powermeans.estimators.self_organizing_map import SelfOrganizingMap
from powermeans.estimators.soft_means import FuzzyCMeans, KHarmonicMeans
from powermeans.estimators.spectral import SpectralClustering
from powermeans.estimators.streams import mini_batch, online_kmeans
from powermeans.estimators.streams.base import Waiting
from powermeans.estimators.streams.drift import Drift
from powermeans.estimators.streams.mini_batch import MiniBatchPowerKMeans
from powermeans.estimators.streams.online_kmeans import OnlineKMeans
from powermeans.inputs.checks import Admitted, admit
from powermeans.loop.history import Spent, SweepRecords
from powermeans.rows.on_device import on_host
from powermeans.rows.protocol import Placement
from powermeans.sources import Scaling, is_dask
from powermeans.sums import Sums

HEADER = "model.json"

_LONGEST_ARRAY_HEADER = 1000
_DTYPES = frozenset(
    ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
)

# What each attribute has to be. In brackets are the lengths of an array's axes: those of the same
# letter are the same throughout an estimator. A value with [1] is alone in a tuple. A question mark
# allows None as well, and a vertical bar another kind of value.
_OF_ALL = {
    "n_features_in_": "length[d]",
    "feature_names_in_": "names[d]",
    "_sklearn_output_config": "any",
}
_OF_CENTERS = {
    **_OF_ALL,
    "cluster_centers_": "finite[k,d]",
    "labels_": "count[n]",
    "inertia_": "number",
    "n_iter_": "count",
    "n_relocated_": "count",
    "history_": "records",
    "scaling_": "Scaling?",
}
_OF_POWER_KMEANS = {
    **_OF_CENTERS,
    "power_": "number",
    "critical_power_": "number",
    "n_separated_": "count",
    "spent_": "Spent",
    "covariance_": "finite[d,d]",
}
_OF_STREAMS = {**_OF_CENTERS, "n_steps_": "count", "drift_": "Drift"}
_OFSCALERS = {**_OF_ALL, "n_samples_seen_": "any", "scale_": "weight[d]?"}

ESTIMATORS: dict[type[BaseEstimator], dict[str, str]] = {
    PowerKMeans: _OF_POWER_KMEANS,
    RobustPowerKMeans: {**_OF_POWER_KMEANS, "outliers_": "flag[n]", "radius_": "number"},
    KMeans: _OF_CENTERS,
    GradientKMeans: _OF_CENTERS,
    KHarmonicMeans: {**_OF_CENTERS, "objective_": "number"},
    FuzzyCMeans: {**_OF_CENTERS, "objective_": "number"},
    OnlineKMeans: {**_OF_STREAMS, "counts_": "weight[k]", "_stream": "_Counted|Waiting"},
    MiniBatchPowerKMeans: {**_OF_STREAMS, "power_": "number", "_stream": "_Remembered|Waiting"},
    DPMeans: {
        **_OF_CENTERS,
        "penalty_": "number",
        "n_clusters_": "length[k]",
        "objective_": "number",
    },
    SelfOrganizingMap: {
        **_OF_CENTERS,
        "grid_positions_": "finite[k,2]",
        "quantization_error_": "number",
        "topographic_error_": "number",
    },
    EntropyWeightedPowerKMeans: {
        **_OF_CENTERS,
        "penalty_": "number",
        "feature_weights_": "weight[d]",
        "objective_": "number",
    },
    SphericalMixture: {
        **_OF_CENTERS,
        "variance_": "weight",
        "shares_": "weight[k]",
        "log_likelihood_": "number",
        "log_likelihoods_": "number[steps]",
    },
    KernelPowerKMeans: {
        **_OF_ALL,
        "gamma_": "finite?",
        "landmark_indices_": "count[m]",
        "is_exact_": "flag",
        "landmarks_": "finite[m,d]",
        "embedding_": "finite[m,q]",
        "_largest": "finite",
        "n_components_": "length[q]",
        "embedded_": "PowerKMeans",
        "labels_": "count[n]",
        "n_iter_": "count",
        "dual_coef_": "finite[k,m]",
        "inertia_": "number",
    },
    SpectralClustering: {
        **_OF_ALL,
        "affinity_matrix_": "finite[n,n]",
        "n_pieces_": "count",
        "embedding_": "finite[n,q]",
        "labels_": "count[n]",
    },
    StandardScaler: {**_OFSCALERS, "mean_": "finite[d]?", "var_": "finite[d]?"},
    MinMaxScaler: {
        **_OFSCALERS,
        "min_": "finite[d]",
        "data_min_": "finite[d]",
        "data_max_": "finite[d]",
        "data_range_": "finite[d]",
    },
    Pipeline: {},
}
SCALERS = (StandardScaler, MinMaxScaler)
_ESTIMATOR_OF = {kind.__name__: kind for kind in ESTIMATORS}

# Values that parameters and attributes hold, and what their fields have to be; "any" is for those
# that the value checks itself.
_VALUES: dict[type[Any], dict[str, str]] = {
    schedules.Geometric: {"start": "number", "growth": "number"},
    schedules.Fixed: {"power": "number"},
    schedules.AuthorsSchedule: {
        "start": "number",
        "step": "number",
        "growth": "number",
        "sweeps_per_power": "count",
        "lowest": "number",
    },
    divergences.Binomial: {"n_trials": "any"},
    divergences.Gamma: {"shape": "any"},
    divergences.Mahalanobis: {"covariance": "any"},
    divergences.Poisson: {},
    Spent: {
        "n_sweeps": "count",
        "n_breaths": "count",
        "n_crossings": "count",
        "accepted_inertias": "any",
        "seconds": "number",
        "skipped": "number",
    },
    Scaling: {"offsets": "finite[d]", "units": "finite[d]"},
    Sums: {
        "points": "finite[k,d]",
        "weights": "weight[k]",
        "objective": "number",
        "inertia": "number",
        "n_skipped": "number",
    },
    Drift: {
        "center_shifts": "weight[k]",
        "rms_shift": "weight",
        "mean_sq_dist": "number",
        "running_mean_sq_dist": "weight",
        "total_weight": "weight",
    },
    Admitted: {"points": "finite[awaited,d]", "weights": "weight[awaited]?", "largest": "weight"},
    Waiting: {
        "chunks": "Admitted[1]",
        "n_points": "count",
        "learned": "_Counted|_Remembered?",
        "n_seen": "count",
    },
    online_kmeans._Counted: {"centers": "finite[k,d]", "counts": "weight[k]", "n_steps": "count"},
    mini_batch._Remembered: {
        "centers": "finite[k,d]",
        "sums": "Sums",
        "weight": "weight",
        "power": "number",
        "n_steps": "count",
    },
}
_VALUE_OF = {kind.__name__: kind for kind in _VALUES}

# A callback watches one fit; the rest is of no use after one, or elsewhere.
_NOT_SAVED = {
    "callback",
    "placement_",
    "_covariances",
    "_weights_of_run",
    "_tally",
    "_metadata_request",
}


# What JSON has no word for is an object of one entry, named by its kind.


class Encoder:
    """Makes JSON of values, and remembers the arrays in them by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, name: str) -> Any:
        """The JSON of a value; errors call it by this name."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, float | np.floating):
            number = float(value)
            return number if math.isfinite(number) else {"float": repr(number)}
        if isinstance(value, list):
            return [self.encode(entry, name) for entry in value]
        return self._tagged(value, name)

    def _tagged(self, value: Any, name: str) -> dict[str, Any]:
        value = on_host(value)  # a tensor is read again as an array
        value = value.as_one_chunk() if isinstance(value, Waiting) else value
        if type(value) in ESTIMATORS:
            return {"estimator": self._estimator(value)}
        if type(value) in _VALUES:
            parts = {part.name: getattr(value, part.name) for part in fields(value)}
            return {"value": [type(value).__name__, self._entries(parts)]}
        if isinstance(value, tuple):
            return {"tuple": [self.encode(entry, name) for entry in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": self._entries(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if _is_sparse(value) and value.format == "csr":
            kind = "csr_array" if isinstance(value, sparse.sparray) else "csr_matrix"
            csr = [value.data, value.indices, value.indptr, *value.shape]
            return {kind: [self.encode(part, name) for part in csr]}
        if isinstance(value, np.random.RandomState):
            _, *state = value.get_state(legacy=True)
            return {"random_state": [self.encode(part, name) for part in state]}
        raise TypeError(self._cannot(value, name))

    def _estimator(self, model: Any) -> list[Any]:
        kind = type(model)
        params = {k: v for k, v in model.get_params(deep=False).items() if k not in _NOT_SAVED}
        attributes = {
            key: value
            for key, value in vars(model).items()
            if key not in model.get_params(deep=False)
            and key not in _NOT_SAVED
            and not is_dask(value)  # labels that are not computed
        }
        if strange := sorted(set(attributes) - set(ESTIMATORS[kind])):
            raise TypeError(f"{kind.__name__} has the attribute {strange[0]}, which is not its own")
        return [kind.__name__, self._entries(params), self._entries(attributes)]

    def _entries(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.encode(value, key) for key, value in entries.items()}

    def _array(self, value: NDArray[Any], name: str) -> dict[str, Any]:
        if value.dtype.names:
            columns = {part: self.encode(value[part], name) for part in value.dtype.names}
            placement = getattr(value, "placement", None)
            return {"records": columns if placement is None else [columns, placement._asdict()]}
        if value.dtype.kind in "OU" and value.ndim == 1 and all(isinstance(v, str) for v in value):
            return {"strings": [str(entry) for entry in value]}
        stored = np.asarray(value, dtype=value.dtype.newbyteorder("<"))
        if stored.dtype.str not in _DTYPES:
            raise TypeError(f"{name} is an array of dtype {value.dtype}, which cannot be saved")
        key = f"a{len(self.arrays)}"
        self.arrays[key] = stored
        return {"array": key}

    @staticmethod
    def _cannot(value: Any, name: str) -> str:
        what = getattr(value, "__name__", None) or type(value).__name__
        return (
            f"{name} is {what}, which cannot be saved without saving code: replace it with "
            f"model.set_params({name}=...) if it is of no more use, or use pickle"
        )


@dataclass
class Decoder:
    """Makes values of JSON and arrays. Each array is used once."""

    archive: zipfile.ZipFile
    unread: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.unread = {name for name in self.archive.namelist() if name != HEADER}
        self._decoders: dict[str, Callable[[Any], Any]] = {
            "float": self._float,
            "tuple": lambda entries: tuple(self.decode(entry) for entry in _list(entries)),
            "dict": lambda entries: self._entries(entries),
            "array": self._array,
            "strings": lambda entries: _strings(entries),
            "records": self._records,
            "csr_array": lambda parts: self._csr(sparse.csr_array, parts),
            "csr_matrix": lambda parts: self._csr(sparse.csr_matrix, parts),
            "random_state": self._random_state,
            "value": self._value,
            "estimator": self._estimator,
        }

    def decode(self, encoded: Any) -> Any:
        """The value of what `Encoder.encode` made."""
        if isinstance(encoded, list):
            return [self.decode(entry) for entry in encoded]
        if not isinstance(encoded, dict):
            if _is_int(encoded) and abs(encoded) >= 2**64:
                raise ValueError(f"{HEADER} has a whole number of more than 64 bits")
            return encoded
        if len(encoded) != 1:
            raise ValueError(f"{HEADER} has an object of {len(encoded)} entries")
        ((kind, content),) = encoded.items()
        if kind not in self._decoders:
            raise ValueError(f"{HEADER} has a value of the kind {kind!r:.40}")
        return self._decoders[kind](content)

    def _entries(self, entries: Any) -> dict[str, Any]:
        if not isinstance(entries, dict):
            raise ValueError(f"{HEADER} has {entries!r:.40} for named values")
        return {key: self.decode(value) for key, value in entries.items()}

    @staticmethod
    def _float(text: Any) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise ValueError(f"{HEADER} has {text!r:.40} for a number")
        return float(text)

    def _array(self, key: Any) -> NDArray[Any]:
        name = f"{key}.npy"
        if name not in self.unread:
            raise ValueError(f"{name:.40} is missing, or is used twice")
        self.unread.remove(name)
        with self.archive.open(name) as member:
            return _read_array(member, self.archive.getinfo(name).file_size, name)

    def _records(self, content: Any) -> SweepRecords:
        """Columns, and where the sweeps were computed if that was at a device."""
        columns, *where = content if isinstance(content, list) and content else [content]
        arrays = self._entries(columns)
        if not all(isinstance(column, np.ndarray) for column in arrays.values()):
            raise ValueError("its records are not of columns")
        found: np.recarray[Any, Any] = np.rec.fromarrays(
            list(arrays.values()), dtype=[(name, column.dtype) for name, column in arrays.items()]
        )
        records = found.view(SweepRecords)
        records.placement = _placement(*_list(where, 1)) if where else None
        return records

    def _csr(self, kind: Any, parts: Any) -> Any:
        data, indices, indptr, *shape = self.decode(_list(parts))
        if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indptr)):
            raise ValueError("its sparse matrix is not made of arrays")
        if len(shape) != 2 or not all(_is_int(n) and 0 < n < 2**48 for n in shape):
            raise ValueError("its sparse matrix has no shape")
        matrix = kind((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _random_state(self, parts: Any) -> np.random.RandomState:
        state = np.random.RandomState(0)
        state.set_state(("MT19937", *self.decode(_list(parts))))
        return state

    def _value(self, content: Any) -> Any:
        name, parts = _list(content, 2)
        kind = _named(name, _VALUE_OF)
        found = self._entries(parts)
        if set(found) != {part.name for part in fields(kind)}:
            raise ValueError(f"{name} has the fields {', '.join(sorted(found))[:100]}")
        return kind(**found)

    def _estimator(self, content: Any) -> Any:
        name, params, attributes = _list(content, 3)
        kind = _named(name, _ESTIMATOR_OF)
        model = kind(**self._known(params, set(kind._get_param_names()) - _NOT_SAVED, name))
        if kind is Pipeline:
            _check_steps(model)
        model._validate_params()
        found = self._known(attributes, set(ESTIMATORS[kind]), name)
        _check(found, ESTIMATORS[kind], name, {})
        stream = found.get("_stream")
        if isinstance(stream, Waiting):
            found["_stream"] = _checked_waiting(stream, found, name)
        elif issubclass(kind, CenterEstimator) and "cluster_centers_" not in found:
            raise ValueError(f"{name} has no cluster_centers_")
        vars(model).update(found)
        if stream is None:
            check_is_fitted(model)
        return model

    def _known(self, entries: Any, known: set[str], name: str) -> dict[str, Any]:
        found = self._entries(entries)
        if strange := sorted(set(found) - known):
            raise ValueError(f"{name} has no {strange[0][:40]}")
        return found


def _checked_waiting(waiting: Any, found: Mapping[str, Any], owner: str) -> Any:
    """A stream that has not begun, with its points as they leave the border."""
    (chunk,), learned = waiting.chunks, waiting.learned
    kind = "_Counted" if "counts_" in found else "_Remembered"
    is_likely = (
        chunk.points.shape[0] == waiting.n_points >= waiting.n_seen
        and (learned is None) == ("cluster_centers_" not in found)
        and type(learned).__name__ in ("NoneType", kind)
        and chunk.points.dtype in (np.float32, np.float64)
        and "n_features_in_" in found
    )
    if not is_likely:
        raise ValueError(f"_stream of {owner} awaits points in a way that cannot have come about")
    points = chunk.points if _is_sparse(chunk.points) else np.ascontiguousarray(chunk.points)
    return Waiting((admit(points, chunk.weights),), waiting.n_points, learned, waiting.n_seen)


def _read_array(member: IO[bytes], size: int, name: str) -> NDArray[Any]:
    """An array of a member of this size, whose header is believed only where it says the same."""
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
    if dtype.str not in _DTYPES:
        raise ValueError(f"{name} is an array of dtype {dtype!s:.40}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != size - member.tell():
        raise ValueError(f"{name} does not have the size of an array of shape {shape!s:.60}")
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    entries = np.frombuffer(member.read(), dtype=dtype).reshape(shape, order=order)
    return entries.astype(dtype.newbyteorder("="), order=order)


def _list(content: Any, length: int | None = None) -> list[Any]:
    if not isinstance(content, list) or (length is not None and len(content) != length):
        raise ValueError(f"{HEADER} has {content!r:.40} for a list")
    return content


def _placement(entries: Any) -> Placement:
    is_whole = isinstance(entries, dict) and set(entries) == set(Placement._fields)
    if not is_whole or not all(isinstance(entry, str | bool) for entry in entries.values()):
        raise ValueError("its records do not tell where the sweeps were computed")
    return Placement(**entries)


def _strings(entries: Any) -> NDArray[np.object_]:
    if not all(isinstance(entry, str) for entry in _list(entries)):
        raise ValueError(f"{HEADER} has names that are no text")
    return np.array(entries, dtype=object)


def _named(name: Any, kinds: Mapping[str, type[Any]]) -> type[Any]:
    if not isinstance(name, str) or name not in kinds:
        raise ValueError(f"{name!r:.40} is none of {', '.join(sorted(kinds))}")
    return kinds[name]


def _is_sparse(value: Any) -> bool:
    return bool(sparse.issparse(value))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_steps(model: Pipeline) -> None:
    steps = model.steps
    are_pairs = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    if not are_pairs or not steps or model.memory is not None:
        raise ValueError("its steps are not pairs of a name and an estimator")
    *scalers, last = [step for _, step in steps]
    is_last_ours = type(last) in ESTIMATORS and not isinstance(last, (Pipeline, *SCALERS))
    if not is_last_ours or not all(isinstance(scaler, SCALERS) for scaler in scalers):
        raise ValueError("its steps are not scalers and an estimator of powermeans")


# Checking values by what they have to be.

_EXPECTATION = re.compile(r"(?P<kind>[\w|]+)(\[(?P<axes>[\w,]+)\])?(?P<or_none>\??)")


def _check(
    found: Mapping[str, Any], expected: Mapping[str, str], owner: str, lengths: dict[str, int]
) -> None:
    """Raise where a value is not what is expected of it; `lengths` are those known of the axes."""
    for name, value in found.items():
        match = _EXPECTATION.fullmatch(expected[name])
        assert match, expected[name]
        if value is None and match["or_none"]:
            continue
        kind, axes = match["kind"], match["axes"].split(",") if match["axes"] else []
        kinds = kind.split("|")
        if kinds[0] in _VALUE_OF or kind in _ESTIMATOR_OF:
            is_right = not axes or (isinstance(value, tuple) and len(value) == 1)
            value = value[0] if axes and is_right else value
            is_right = is_right and type(value).__name__ in kinds
        elif kind == "length":
            is_right = _is_int(value) and value > 0 and _has_lengths((value,), axes, lengths)
        else:
            is_right = kind == "any" or _is_of(kind, value, axes, lengths)
        if not is_right:
            raise ValueError(f"{name} of {owner} is not {expected[name]}")
        if kinds[0] in _VALUE_OF:
            parts = {part.name: getattr(value, part.name) for part in fields(value)}
            _check(parts, _VALUES[type(value)], type(value).__name__, lengths)


def _is_of(kind: str, value: Any, axes: list[str], lengths: dict[str, int]) -> bool:
    if kind == "records":
        return isinstance(value, np.recarray) and value.ndim == 1
    if kind == "names":
        is_array = isinstance(value, np.ndarray) and value.dtype == object
        return is_array and _has_lengths(value.shape, axes, lengths)
    if not axes and not isinstance(value, bool | int | float):
        return False
    if axes and not (isinstance(value, np.ndarray) or _is_sparse(value)):
        return False
    if axes and not _has_lengths(value.shape, axes, lengths):
        return False
    entries = value.data if _is_sparse(value) else np.asarray(value)
    return _PREDICATES[kind](entries)


def _has_lengths(shape: Iterable[int], axes: list[str], lengths: dict[str, int]) -> bool:
    shape = tuple(shape)
    return len(shape) == len(axes) and all(
        length == (int(axis) if axis.isdigit() else lengths.setdefault(axis, length)) and length > 0
        for length, axis in zip(shape, axes, strict=True)
    )


def _is_number(entries: NDArray[Any]) -> bool:
    return entries.dtype.kind in "iuf"


def _is_finite(entries: NDArray[Any]) -> bool:
    return _is_number(entries) and bool(np.isfinite(entries).all())


def _is_weight(entries: NDArray[Any]) -> bool:
    return _is_finite(entries) and bool((entries >= 0).all())


def _is_count(entries: NDArray[Any]) -> bool:
    return entries.dtype.kind in "iu" and _is_weight(entries)


_PREDICATES: dict[str, Callable[[NDArray[Any]], bool]] = {
    "number": _is_number,
    "finite": _is_finite,
    "weight": _is_weight,
    "count": _is_count,
    "flag": lambda entries: entries.dtype.kind == "b",
}
