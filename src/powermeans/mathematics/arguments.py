"""Arguments of formulas: values of any type become real numbers, labels and sample weights."""

import functools
import inspect
import math
from collections.abc import Callable
from numbers import Number
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powermeans.system.containers import check_count, check_number, to_array
from powermeans.types import FloatArray, IndexArray

Formula = TypeVar("Formula", bound=Callable[..., Any])

# What the arguments of public formulas are, by their names: the axes of arrays, as long as in the
# arguments before but for the number of centers, and the intervals of numbers.
_AXES = {
    "points": "n_points, n_features",
    **dict.fromkeys(
        ("centers", "reference_centers", "centers_a", "centers_b"), "n_centers, n_features"
    ),
    "sq_dist": "..., n_centers",
    "distances": "n_points, n_points",
    "cluster_counts": "n_centers",
    **dict.fromkeys(("sizes", "inertias"), "n_sizes"),
}
_NOT_NEGATIVE = ("sq_dist", "distances", "cluster_counts", "sizes", "inertias")
_INTERVALS = dict.fromkeys(("inertia", "inertia_of_one", "n_points"), "[0, inf]")
_INTERVALS["power"] = "[-inf, inf]"
_COUNTS = ("n_centers", "n_features")
_LABELS = ("labels", "labels_true", "labels_pred")
_WEIGHTS = ("sample_weight", "counts")


def checked(formula: Formula) -> Formula:
    """Check the arguments of a public formula by their names, and make arrays (a decorator).

    Labels come as numbers from zero. Points are rows of an array or a CSR array.
    """
    signature = inspect.signature(formula)

    @functools.wraps(formula)
    def checking(*args: Any, **options: Any) -> Any:
        bound, lengths = signature.bind(*args, **options), dict[str, tuple[int, str]]()
        for name, value in bound.arguments.items():
            if name in _AXES:
                bound.arguments[name] = _numbers(value, name, lengths)
            elif name in _LABELS:
                bound.arguments[name] = _labels(value, name, lengths)
            elif name in _WEIGHTS:
                bound.arguments[name] = check_sample_weight(value, lengths["n_points"][0], name)
            elif name in _INTERVALS:
                check_number(value, name, _INTERVALS[name], "one")
            elif name in _COUNTS:
                check_count(value, name, 1, "one")
        return formula(*bound.args, **bound.kwargs)

    return cast(Formula, checking)


def _labels(values: ArrayLike, name: str, lengths: dict[str, Any]) -> IndexArray:
    """Return labels of any names as numbers from zero, in the order of the names."""
    labels = _as_array(values, name)
    labels = labels.ravel() if labels.shape[1:] == (1,) else labels
    _check_shape(labels.shape, "n_points", name, lengths)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(f"{name} contains NaN: pass a label for each point")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"{name} has labels without an order: pass numbers or text") from error


def _numbers(values: Any, name: str, lengths: dict[str, Any]) -> Any:
    """Return real numbers in float64 or wider; points, also sparse ones, in their own dtype."""
    is_sparse = sparse.issparse(values) and name == "points"
    numbers: Any = sparse.csr_array(values) if is_sparse else _as_array(values, name)
    if numbers.dtype.kind not in "fiub":
        numbers = real_numbers(numbers, name)
    _check_shape(numbers.shape, _AXES[name], name, lengths)
    entries = numbers.data if is_sparse else numbers
    most = math.inf if name == "sq_dist" else np.finfo(np.float64).max
    is_right = (entries >= (0 if name in _NOT_NEGATIVE else -most)) & (entries <= most)
    if not is_right.all():
        wanted = "numbers of at least 0" if name in _NOT_NEGATIVE else "finite numbers"
        raise ValueError(f"{name} contains {entries[~is_right][0]}: pass {wanted}")
    wide = np.result_type(numbers.dtype, np.float64)
    return numbers if name == "points" else numbers.astype(wide, copy=False)


def _check_shape(shape: tuple[int, ...], axes: str, name: str, lengths: dict[str, Any]) -> None:
    names = axes.removeprefix("..., ").split(", ")
    own = shape[-1:] if axes.startswith("...") else shape
    if len(own) == len(names) and (0 not in own or name in _LABELS):
        pairs = zip(names, own, strict=True)
        if all(lengths.setdefault(axis, (n, name))[0] == n for axis, n in pairs):
            lengths.pop("n_centers", None)
            return
    for axis, (n, other) in lengths.items():
        axes = axes.replace(axis, f"{axis} ({n} in {other})")
    raise ValueError(f"{name} has the shape {shape}: pass an array with the axes {axes}")


def _as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    given = to_array(values, name)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name} has rows of unlike lengths: pass rows of one length") from error


def real_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64 in C order, copied only if they are not."""
    given = _as_array(values, name)
    if given.dtype.kind not in "biufO" and given.dtype.name != "bfloat16":
        raise ValueError(f"{name} has the dtype {given.dtype}: pass real numbers")
    try:
        return np.ascontiguousarray(given, dtype=np.float64) if given.ndim else given.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} holds {error}: pass real numbers") from error


def check_sample_weight(
    sample_weight: ArrayLike | None, n_points: int, name: str = "sample_weight"
) -> FloatArray | None:
    """Return the weights as float64, one number for each point; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_points, sample_weight)
    weights = real_numbers(sample_weight, name)
    if weights.shape != (n_points,):
        raise ValueError(
            f"{name} has the shape {weights.shape}: "
            f"pass one weight for each of the {n_points} rows, shape ({n_points},)"
        )
    refuse_weights(weights, name)
    with np.errstate(over="ignore"):
        refuse_total(float(weights.sum()), float(weights.max()), name)
    return weights


def refuse_weights(weights: FloatArray, name: str = "sample_weight", first_row: int = 0) -> None:
    """Raise on the first weight that is not finite, or else on the first that is negative."""
    for is_bad, way_out in (
        (~np.isfinite(weights), "pass finite weights"),
        (weights < 0, "pass weights of at least zero; zero leaves a row out"),
    ):
        if is_bad.any():
            first = int(np.argmax(is_bad))
            value = "NaN" if math.isnan(weights[first]) else str(weights[first])
            raise ValueError(f"{name} contains {value} at index {first_row + first}: {way_out}")


def refuse_total(total_weight: float, largest_weight: float, name: str = "sample_weight") -> None:
    """Raise if all weights are zero, or add up to more than float64 holds."""
    if largest_weight == 0:
        raise ValueError(f"{name} is zero for every row: give some row a positive weight")
    if largest_weight < np.finfo(np.float64).tiny:
        raise ValueError(
            f"{name} is at most {largest_weight:.3g}, which float64 stores with few digits: "
            f"divide it by {largest_weight:.0e}"
        )
    if not math.isfinite(total_weight):
        raise ValueError(
            f"{name} adds up to more than float64 can store: "
            f"divide it by its largest, {largest_weight:.3g}"
        )
