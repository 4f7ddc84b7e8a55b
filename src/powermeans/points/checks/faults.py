"""Where in the points a fault is, in words."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.errors import ArgumentError
from powermeans.types import AnyMatrix


def refuse_dates(X: Any, name: str) -> None:
    """Raise if there are dates or durations, which NumPy would count in units of its own."""
    for label, dtype in _dtypes_of(X):
        # NumPy has letters for its kinds, and Arrow and Polars spell theirs.
        kind = getattr(dtype, "kind", None) or str(dtype).lower()[:4]
        if kind in ("M", "m", "date", "time", "dura"):
            place = "" if label is None else f" in column {label!r}"
            raise ArgumentError(
                f"{name} has dates or durations{place}",
                "leave them out, or encode them as numbers, for example with powermeans.Prepare",
            )


def _dtypes_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield label and dtype of each column of a frame, or the dtype of an array without a label."""
    if _is_frame(X):
        yield from zip(X.columns, X.dtypes, strict=True)
    elif hasattr(X, "schema") and hasattr(X, "column_names"):  # a table of Arrow
        yield from zip(X.column_names, X.schema.types, strict=True)
    else:
        yield None, getattr(X, "dtype", None)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def explain_fault(X: Any, name: str, error: Exception) -> None:
    """Raise what says the fault of the points and the way out, where this error does not."""
    said = str(error).strip()
    if X is None or type(X) is dict:  # a kind of sparse matrix is a dict too
        kind = "None" if X is None else "a dict"
        raise ArgumentError(
            f"{name} is {kind}", "pass an array or a table with one row for each point"
        ) from error
    if "could not convert" in said or (_is_frame(X) and said.startswith(("float()", "setting"))):
        _refuse_text(X, name, error)
    elif isinstance(error, OverflowError):
        raise ArgumentError(
            f"{name} has an integer above 1.8e308, beyond the range of float64",
            "divide by a power of ten, or take logarithms",
        ) from error
    elif "inhomogeneous" in said:
        sizes = [np.size(row) for row in X]
        row = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if row is not None:
            raise ArgumentError(
                f"{name} has {sizes[0]} values in row 0 and {sizes[row]} in row {row}",
                "give all rows the same number of values",
            ) from error
    elif said.startswith("Complex data not supported"):  # and then all of the data
        raise ValueError(
            f"Complex data not supported: pass numpy.hstack([{name}.real, {name}.imag])"
        ) from None
    elif said.startswith("Found array with dim"):
        raise ValueError(
            f"{said} Pass one row for each point, for example {name}.reshape(len({name}), -1)"
        ) from error
    elif said.endswith("must be in the same order as they were in fit."):
        raise ValueError(f"{said} Pass {name}[model.feature_names_in_]") from error
    if type(error) in (TypeError, ValueError) and name not in said:
        raise type(error)(f"{name} has not one row of numbers for each point. {said}") from error


def _refuse_text(X: Any, name: str, error: Exception) -> None:
    for place, value in _texts_in(X):
        raise ArgumentError(
            f"{name} has the {'text' if isinstance(value, str) else type(value).__name__} "
            f"{value!r:.60} in {place}",
            "leave the column out, or encode it as numbers, for example with powermeans.Prepare",
        ) from error


def _texts_in(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield where entries are that are no numbers, in words, and the entries."""
    if _is_frame(X):
        for label in X.columns:
            entries = np.asarray(X[label])
            for entry in entries if entries.dtype.kind not in "biuf" else ():
                if np.ndim(entry) or _is_text(entry):
                    yield f"column {label!r}", entry
        return
    for row, of_row in enumerate(np.atleast_2d(np.asarray(X, dtype=object))):
        for column, entry in enumerate(of_row):
            if _is_text(entry):
                yield f"row {row}, column {column}", entry


def _is_text(entry: Any) -> bool:
    try:
        float(entry)
    except ValueError:
        return True
    except TypeError:
        return type(entry).__module__ == "builtins" and entry is not None
    return False


def first_not_finite(
    points: AnyMatrix, feature_names: Iterable[object] | None, first_row: int
) -> tuple[str, float]:
    """Return where the first entry is that is not finite, in words, and its value."""
    row, column, value = _place_of_first(points)
    kind = "NaN" if math.isnan(value) else "infinity"
    label = "" if feature_names is None else f" ({list(feature_names)[column]!r})"
    first = (
        f"the first entry that is not finite is in row {first_row + row}, column {column}{label}"
    )
    return f"{kind}: {first}", value


def way_out_of(value: float, *, offers_missing: bool = False, why_whole: str | None = None) -> str:
    """Say what to do about an entry that is not finite."""
    if math.isnan(value) and offers_missing:
        return (
            'Pass missing="observed" to use only the observed entries, leave such rows out, or '
            "fill the entries in"
        )
    if math.isnan(value) and why_whole is not None:
        return f"{why_whole}: leave such rows out, or fill the entries in"
    return "Leave such rows out, or fill the entries in"


def _place_of_first(points: AnyMatrix) -> tuple[int, int, float]:
    if sparse.issparse(points):
        entry = int(np.argmin(np.isfinite(points.data)))
        row = int(np.searchsorted(points.indptr, entry, side="right")) - 1
        return row, int(points.indices[entry]), float(points.data[entry])
    n_at_once = max(1, 2**17 // points.shape[1])
    for start in range(0, len(points), n_at_once):
        is_finite = np.isfinite(points[start : start + n_at_once])
        if not is_finite.all():
            row, column = divmod(int(np.argmin(is_finite)), points.shape[1])
            return start + row, column, float(points[start + row, column])
    raise AssertionError("every entry is finite")
