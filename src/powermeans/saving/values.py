"""Tables of the estimators, attributes and values in model files, and their reading and writing.

The reader checks every value against these tables before it uses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from powermeans import divergences, schedules
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
from powermeans.estimators.streams.mini_batch_kmeans import MiniBatchKMeans
from powermeans.estimators.streams.online_kmeans import OnlineKMeans
from powermeans.inputs.points import Admitted, admit
from powermeans.loop.history import Spent, SweepRecords
from powermeans.rows.protocol import Placement
from powermeans.sources import Scaling, is_dask
from powermeans.sums import Sums
from powermeans.system.values import (
    ARRAY,
    DICT,
    TUPLE,
    Decoder,
    Encoder,
    Form,
    form_of_dataclasses,
    is_int,
    named_kind,
)


@dataclass(frozen=True, slots=True)
class _Expected:
    """The kind and the axes of a value.

    Axes with the same name have the same length throughout an estimator; a digit is a length.
    """

    text: str
    kinds: tuple[str, ...]
    axes: tuple[str, ...]
    may_be_none: bool
    is_needed: bool


def _expected(text: str) -> dict[str, _Expected]:
    """Read a table of ``name: kind[axes]``.

    A bar separates kinds, a question mark allows None, and [1] after a dataclass is a tuple of one.
    An exclamation mark follows what every fitted model has, and what methods rely on.
    """
    table = {}
    for name, wanted in re.findall(r"(\w+): (\S+)", text):
        match = re.fullmatch(r"([\w|]+)(?:\[([\w,]+)\])?(\??)(!?)", wanted)
        assert match, wanted
        axes = tuple(match[2].split(",")) if match[2] else ()
        kinds, shown = tuple(match[1].split("|")), wanted.removesuffix("!")
        table[name] = _Expected(shown, kinds, axes, bool(match[3]), bool(match[4]))
    return table


_OF_ALL = " n_features_in_: length[d]! feature_names_in_: names[d] _sklearn_output_config: any "
_OF_CENTERS = f"""{_OF_ALL} cluster_centers_: finite[k,d]! labels_: count[n] inertia_: number
    n_iter_: count n_relocated_: count history_: records scaling_: Scaling? """
_OF_POWER_KMEANS = f"""{_OF_CENTERS} power_: number! critical_power_: number n_separated_: count
    spent_: Spent covariance_: finite[d,d] sizes_: weight[k] prices_: finite[k]
    assignment_gap_: number """
_OF_STREAMS = f"{_OF_CENTERS} n_steps_: count drift_: Drift "
_OF_SCALERS = f"{_OF_ALL} n_samples_seen_: any! scale_: weight[d]?! "

_ATTRIBUTES: dict[type[BaseEstimator], str] = {
    PowerKMeans: _OF_POWER_KMEANS,
    RobustPowerKMeans: f"{_OF_POWER_KMEANS} outliers_: flag[n] radius_: number",
    KMeans: _OF_CENTERS,
    GradientKMeans: _OF_CENTERS,
    KHarmonicMeans: f"{_OF_CENTERS} objective_: number",
    FuzzyCMeans: f"{_OF_CENTERS} objective_: number",
    OnlineKMeans: f"{_OF_STREAMS} counts_: weight[k] _stream: _Counted|Waiting",
    MiniBatchKMeans: f"{_OF_STREAMS} power_: number _stream: _Remembered|Waiting",
    MiniBatchPowerKMeans: f"{_OF_STREAMS} power_: number _stream: _Remembered|Waiting",
    DPMeans: f"{_OF_CENTERS} penalty_: number n_clusters_: length[k] objective_: number",
    SelfOrganizingMap: f"""{_OF_CENTERS} grid_positions_: finite[k,2]! quantization_error_: number
        topographic_error_: number""",
    EntropyWeightedPowerKMeans: f"""{_OF_CENTERS} penalty_: number feature_weights_: weight[d]!
        feature_scales_: weight[d]! objective_: number""",
    SphericalMixture: f"""{_OF_CENTERS} n_iter_: count! variance_: weight! variances_: weight[k]!
        shares_: weight[k]! log_likelihood_: number log_likelihoods_: number[steps]""",
    KernelPowerKMeans: f"""{_OF_ALL} gamma_: finite?! landmark_indices_: count[m]! is_exact_: flag!
        landmarks_: finite[m,d] embedding_: finite[m,q]! _largest: finite! n_components_: length[q]!
        embedded_: PowerKMeans! labels_: count[n]! n_iter_: count! dual_coef_: finite[k,m]!
        inertia_: number!""",
    SpectralClustering: f"""{_OF_ALL} affinity_matrix_: finite[n,n]! n_pieces_: count!
        embedding_: finite[n,q]! labels_: count[n]!""",
    StandardScaler: f"{_OF_SCALERS} mean_: finite[d]?! var_: finite[d]?!",
    MinMaxScaler: f"""{_OF_SCALERS} min_: finite[d]! data_min_: finite[d]! data_max_: finite[d]!
        data_range_: finite[d]!""",
    Pipeline: "",
}
ESTIMATORS = {kind: _expected(text) for kind, text in _ATTRIBUTES.items()}
SCALERS = (StandardScaler, MinMaxScaler)
_ESTIMATOR_OF: dict[str, type[Any]] = {kind.__name__: kind for kind in ESTIMATORS}

# Fields of dataclasses; "any" is for those that the dataclass checks itself.
_FIELDS: dict[type[Any], str] = {
    schedules.Geometric: "start: number growth: number",
    schedules.Fixed: "power: number",
    schedules.AuthorsSchedule: """start: number step: number growth: number
        sweeps_per_power: count lowest: number""",
    **{
        kind: " ".join(f"{name}: any" for name in kind.__dataclass_fields__)
        for kind in divergences.KINDS
    },
    Spent: """n_sweeps: count n_breaths: count n_crossings: count accepted_inertias: any
        seconds: number skipped: number n_moves: count n_swaps: count""",
    Scaling: "offsets: finite[d] units: finite[d]",
    Sums: """points: finite[k,d] weights: weight[k] objective: number inertia: number
        n_skipped: number""",
    Drift: """center_shifts: weight[k] rms_shift: weight mean_sq_dist: number
        running_mean_sq_dist: weight total_weight: weight""",
    Admitted: "points: finite[awaited,d] weights: weight[awaited]? largest: weight",
    Waiting: """chunks: Admitted[1] n_points: count learned: _Counted|_Remembered?
        n_seen: count""",
    online_kmeans._Counted: "centers: finite[k,d] counts: weight[k] n_steps: count",
    mini_batch._Remembered: """centers: finite[k,d] sums: Sums weight: weight power: number
        n_steps: count""",
}
# Sparse matrices of nothing may be this wide.
_LONGEST_AXIS = 2**48
_VALUES = {kind: _expected(text) for kind, text in _FIELDS.items()}
_VALUE_OF = {kind.__name__: kind for kind in _VALUES}

# A callback watches one fit; the others are of no use after it, or on another machine.
_NOT_SAVED = {
    "callback",
    "placement_",
    "_few_axes",  # which follow from the covariance
    "_metadata_request",
}


def _write_estimator(encoder: Encoder, model: Any, name: str) -> list[Any]:
    kind, params = type(model), model.get_params(deep=False)
    attributes = {
        key: value.as_one_chunk() if isinstance(value, Waiting) else value
        for key, value in vars(model).items()
        if not (key in params or key in _NOT_SAVED or is_dask(value))
    }
    if strange := sorted(set(attributes) - set(ESTIMATORS[kind])):
        raise TypeError(
            f"{kind.__name__} has the attribute {strange[0]}, which powermeans did not set: delete "
            "it before saving"
        )
    saved = {key: value for key, value in params.items() if key not in _NOT_SAVED}
    return [kind.__name__, encoder.named(saved), encoder.named(attributes)]


def _read_estimator(decoder: Decoder, content: Any) -> Any:
    name, params, attributes = decoder.listed(content, 3)
    kind = named_kind(name, _ESTIMATOR_OF)
    known = set(kind._get_param_names()) - _NOT_SAVED
    model = kind(**_known(decoder.named(params), known, name))
    if kind is Pipeline:
        _check_steps(model)
    model._validate_params()
    found = _known(decoder.named(attributes), set(ESTIMATORS[kind]), name)
    _check(found, ESTIMATORS[kind], name, {})
    stream = found.get("_stream")
    _check_complete(found, kind, awaits_centers=_awaits_centers(stream))
    if isinstance(stream, Waiting):
        found["_stream"] = _checked_waiting(stream, found, name)
    vars(model).update(found)
    if stream is None:
        check_is_fitted(model)
    return model


def _known(found: dict[str, Any], known: set[str], name: str) -> dict[str, Any]:
    if strange := sorted(set(found) - known):
        raise ValueError(f"{name} has no {strange[0][:40]}")
    return found


def _awaits_centers(stream: Any) -> bool:
    return isinstance(stream, Waiting) and stream.learned is None


def _check_complete(found: Mapping[str, Any], kind: type[Any], *, awaits_centers: bool) -> None:
    """Raise if an attribute is lacking on which the methods of a fitted estimator rely."""
    needed = {name for name, expected in ESTIMATORS[kind].items() if expected.is_needed}
    if awaits_centers:
        needed.discard("cluster_centers_")
    if lacking := sorted(needed - set(found)):
        raise ValueError(f"{kind.__name__} has no {lacking[0]}")


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


def _checked_waiting(waiting: Any, found: Mapping[str, Any], owner: str) -> Any:
    """Check a stream that has not begun, and return it with its points admitted as inputs are."""
    (chunk,), learned = waiting.chunks, waiting.learned
    kind = "_Counted" if "counts_" in found else "_Remembered"
    is_consistent = (
        chunk.points.shape[0] == waiting.n_points >= waiting.n_seen
        and (learned is None) == ("cluster_centers_" not in found)
        and type(learned).__name__ in ("NoneType", kind)
        and chunk.points.dtype in (np.float32, np.float64)
    )
    if not is_consistent:
        raise ValueError(f"_stream of {owner} contradicts itself")
    points = chunk.points if _is_sparse(chunk.points) else np.ascontiguousarray(chunk.points)
    return Waiting((admit(points, chunk.weights),), waiting.n_points, learned, waiting.n_seen)


def _write_records(encoder: Encoder, value: Any, name: str) -> Any:
    columns = {column: encoder.encode(value[column], name) for column in value.dtype.names}
    placement = getattr(value, "placement", None)
    return columns if placement is None else [columns, placement._asdict()]


def _read_records(decoder: Decoder, content: Any) -> SweepRecords:
    columns, *where = content if isinstance(content, list) and content else [content]
    arrays = decoder.named(columns)
    if not all(isinstance(column, np.ndarray) for column in arrays.values()):
        raise ValueError("its records are not of columns")
    found: np.recarray[Any, Any] = np.rec.fromarrays(
        list(arrays.values()), dtype=[(name, column.dtype) for name, column in arrays.items()]
    )
    records = found.view(SweepRecords)
    records.placement = _placement(*decoder.listed(where, 1)) if where else None
    return records


def _placement(entries: Any) -> Placement:
    is_whole = isinstance(entries, dict) and set(entries) == set(Placement._fields)
    if not is_whole or not all(isinstance(entry, str | bool) for entry in entries.values()):
        raise ValueError("its records do not tell where the sweeps were computed")
    return Placement(**entries)


def _are_strings(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "OU" or value.ndim != 1:
        return False
    return all(isinstance(entry, str) for entry in value)


def _read_strings(decoder: Decoder, content: Any) -> NDArray[np.object_]:
    if not all(isinstance(entry, str) for entry in decoder.listed(content)):
        raise ValueError(f"{decoder.source} has names that are no text")
    return np.array(content, dtype=object)


def _is_sparse(value: Any) -> bool:
    return bool(sparse.issparse(value))


def _form_of_csr(kind: type[Any]) -> Form:
    def write(encoder: Encoder, value: Any, name: str) -> list[Any]:
        return encoder.entries([value.data, value.indices, value.indptr, *value.shape], name)

    def read(decoder: Decoder, content: Any) -> Any:
        data, indices, indptr, *shape = decoder.entries(content)
        if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indptr)):
            raise ValueError("its sparse matrix is not made of arrays")
        if len(shape) != 2 or not all(is_int(n) and 0 < n < _LONGEST_AXIS for n in shape):
            raise ValueError("its sparse matrix has no shape")
        matrix = kind((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    return Form(kind.__name__, lambda value: isinstance(value, kind), write, read)


_WORDS_OF_MT19937 = 624


def _read_random_state(decoder: Decoder, content: Any) -> np.random.RandomState:
    key, position, has_gauss, gauss = decoder.entries(content, 4)
    # NumPy checks the key only: from another position it would read beyond the end of it.
    if not is_int(position) or not 0 <= position <= _WORDS_OF_MT19937:
        raise ValueError(f"its random state is at position {position!r:.40}")
    if has_gauss not in (0, 1) or not isinstance(gauss, float | int) or not math.isfinite(gauss):
        raise ValueError("its random state holds no normal number")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", key, position, has_gauss, gauss))
    return state


FORMS = (
    Form("estimator", lambda value: type(value) in ESTIMATORS, _write_estimator, _read_estimator),
    form_of_dataclasses(_VALUE_OF),
    TUPLE,
    DICT,
    Form(
        "records",
        lambda value: isinstance(value, np.ndarray) and bool(value.dtype.names),
        _write_records,
        _read_records,
    ),
    Form(
        "strings",
        _are_strings,
        lambda encoder, value, name: [str(entry) for entry in value],
        _read_strings,
    ),
    ARRAY,
    _form_of_csr(sparse.csr_array),
    _form_of_csr(sparse.csr_matrix),
    Form(
        "random_state",
        lambda value: isinstance(value, np.random.RandomState),
        lambda encoder, value, name: encoder.entries(value.get_state(legacy=True)[1:], name),
        _read_random_state,
    ),
)


def _check(
    found: Mapping[str, Any], table: Mapping[str, _Expected], owner: str, lengths: dict[str, int]
) -> None:
    """Raise if a value is not as expected; `lengths` holds the axes known so far."""
    for name, value in found.items():
        expected = table[name]
        if value is None and expected.may_be_none:
            continue
        inner = value if expected.axes != ("1",) else _only_entry(value)
        if not _is_as_expected(inner, expected, lengths):
            raise ValueError(f"{name} of {owner} is not {expected.text}")
        if expected.kinds[0] in _VALUE_OF:
            parts = {field.name: getattr(inner, field.name) for field in fields(inner)}
            _check(parts, _VALUES[type(inner)], type(inner).__name__, lengths)


def _only_entry(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else None


def _is_as_expected(value: Any, expected: _Expected, lengths: dict[str, int]) -> bool:
    kind, axes = expected.kinds[0], expected.axes
    if kind in _VALUE_OF or kind in _ESTIMATOR_OF:
        return type(value).__name__ in expected.kinds
    if kind == "any":
        return True
    if kind == "length":
        return is_int(value) and 0 < value < _LONGEST_AXIS and _has_lengths((value,), axes, lengths)
    if kind == "records":
        return isinstance(value, np.recarray) and value.ndim == 1
    if kind == "names":
        is_array = isinstance(value, np.ndarray) and value.dtype == object
        return is_array and _has_lengths(value.shape, axes, lengths)
    if not axes:
        return isinstance(value, bool | int | float) and _PREDICATES[kind](np.asarray(value))
    if not isinstance(value, np.ndarray) and not _is_sparse(value):
        return False
    entries = value.data if _is_sparse(value) else value
    return _has_lengths(value.shape, axes, lengths) and _PREDICATES[kind](entries)


def _has_lengths(shape: Iterable[int], axes: tuple[str, ...], lengths: dict[str, int]) -> bool:
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


_PREDICATES: dict[str, Callable[[NDArray[Any]], bool]] = {
    "number": _is_number,
    "finite": _is_finite,
    "weight": _is_weight,
    "count": lambda entries: entries.dtype.kind in "iu" and _is_weight(entries),
    "flag": lambda entries: entries.dtype.kind == "b",
}
