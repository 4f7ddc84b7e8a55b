"""Python code that repeats a fit."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from powermeans.engine.stopping import StopRule, each_of, seconds_of
from powermeans.preparing.prepare import Prepare
from powermeans.system.attributes import public_module
from powermeans.types import FloatArray

_SHORT = 120


def python_code(
    model: Any,
    source: str | None = None,
    scalers: Sequence[Any] = (),
    *,
    reading: Mapping[str, Any] | None = None,
    model_file: str | None = None,
    weights: FloatArray | None = None,
) -> str:
    """Write code that reads the points of a file and repeats the fit, or loads a saved model.

    Comments name the steps that may end elsewhere. The reader fills in arrays and functions, and
    points and weights that the file does not give; `reading` says which rows and columns of the
    file were read, and how.
    """
    reading = {name: value for name, value in (reading or {}).items() if value or value is False}
    first = scalers[0] if scalers and isinstance(scalers[0], Prepare) else None
    rest = scalers if first is None else scalers[1:]
    if first is None:
        weighting = ["weights = ...  # one for each row, as it was given"] * (weights is not None)
        body = ["X = ...  # the points, one a row", *weighting]
    else:
        body = _reading(source, reading, has_weights=weights is not None)
    if model_file is not None:
        body += _loading(model, model_file, first, drops=reading.get("drops_missing", False))
    else:
        if first is not None:
            body += _preparing(first, reading, has_weights=weights is not None)
        body += _fit(model, rest, weights)
    return "\n".join([*_imports(model, rest, "\n".join(body)), "", *body])


def _imports(model: Any, scalers: Sequence[Any], body: str) -> list[str]:
    """Return the imports that the code uses."""
    values = [
        value
        for given in model.get_params(deep=False).values()
        for value in (each_of(given) if isinstance(given, StopRule) else [given])
        if _is_ours(value)
    ]
    uses = {
        "import math": "math.",
        "import numpy as np": "np.",
        "import powermeans": "powermeans.load(",
        _import_of(model): f"= {type(model).__name__}(",
        **{_import_of(value): f"{type(value).__name__}(" for value in [*scalers, *values]},
        "from powermeans import Prepare": "Prepare(",
        "from powermeans import read_frame": "read_frame(",
    }
    without_text = re.sub(r'"(\\.|[^"\\])*"', "", body)
    return [line for line, use in uses.items() if use in without_text]


def _import_of(value: Any) -> str:
    return f"from {public_module(type(value))} import {type(value).__name__}"


def _fit(model: Any, scalers: Sequence[Any], weights: FloatArray | None) -> list[str]:
    arguments, missing = _arguments(model)
    weighting = "" if weights is None else ", sample_weight=weights"
    call = f"{type(model).__name__}({', '.join(arguments)})"
    return [
        *[f"{name} = ...  # as it was given" for name in missing],
        *[_scaling(scaler, weights) for scaler in scalers],
        *_what_may_differ(model),
        f"model = {call}.fit(X{weighting})",
        f"print({'model.inertia_, ' * hasattr(model, 'inertia_')}model.labels_)",
    ]


def _scaling(scaler: Any, weights: FloatArray | None) -> str:
    is_weighted = weights is not None and _counted_weights(scaler, weights)
    weighting = ", sample_weight=weights" if is_weighted else ""
    call = f"{type(scaler).__name__}({', '.join(_arguments(scaler)[0])})"
    return f"X = {call}.fit_transform(X{weighting})"


def _counted_weights(scaler: Any, weights: FloatArray) -> bool:
    """Tell whether a scaler was fitted with the weights: it then counted their sum."""
    if "sample_weight" not in inspect.signature(scaler.fit).parameters:
        return False
    seen = float(np.max(getattr(scaler, "n_samples_seen_", math.nan)))
    return not abs(seen - weights.sum()) > abs(seen - len(weights))


def _what_may_differ(model: Any) -> list[str]:
    """Write comments on parameters that may make this fit end elsewhere."""
    parameters = model.get_params(deep=False)
    comments = []
    if parameters.get("random_state", 0) is None:
        comments.append("# Without a random_state each fit draws anew: this one may end elsewhere.")
    if math.isfinite(seconds_of(parameters.get("stop"))):
        comments.append("# The clock ends this search: on another machine it may end elsewhere.")
    return comments


def _loading(model: Any, model_file: str, prepare: Prepare | None, *, drops: bool) -> list[str]:
    lines = [f"model = powermeans.load({_quoted(model_file)})"]
    if prepare is None:
        return [*lines, "print(model.predict(X))"]
    whole = ["X = X[~np.isnan(X).any(axis=1)]"] if drops else []
    return [*lines, "X = model[0].transform(frame)", *whole, "print(model[-1].predict(X))"]


def _arguments(model: Any) -> tuple[list[str], list[str]]:
    """Return the arguments that are no defaults, and the names that the reader fills in."""
    arguments, missing = [], []
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(model)).parameters.items()
    }
    for name, value in model.get_params(deep=False).items():
        if name == "callback" or _is_default(value, defaults.get(name)):
            continue
        if _is_plain(value) or _is_ours(value):
            arguments.append(f"{name}={_written(value)}")
        else:
            arguments.append(f"{name}={name}")
            missing.append(name)
    return arguments, missing


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        _is_plain(value) and type(value) is type(default) and value == default
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(repr(value)) <= _SHORT and all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.number | np.bool_)


def _is_ours(value: Any) -> bool:
    """Tell whether the value is small and its `repr` makes it again, as for a schedule."""
    if not (type(value).__module__.startswith("powermeans.") and is_dataclass(value)):
        return False
    text = repr(value)
    return len(text) <= _SHORT and "array(" not in text


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))}{',' * (len(value) == 1)})"
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        return _quoted(plain)
    return re.sub(r"(?<![\w.])(inf|nan)\b", r"math.\1", repr(plain))


def _quoted(text: str) -> str:
    return '"' + repr(text)[1:-1].replace('"', '\\"') + '"'


def _reading(source: str | None, reading: Mapping[str, Any], *, has_weights: bool) -> list[str]:
    """Write the lines that read the columns of a file."""
    form = ("delimiter", "header", "array", "encoding")
    given = "".join(f", {name}={_option(reading[name])}" for name in form if name in reading)
    lines = []
    if source == "-":
        source = "standard-input"
        lines.append(f"# The rows came from standard input: write them to the file {source}.")
    where = "..." if source is None else f"read_frame({_quoted(source)}{given})"
    lines.append(f"frame = {where}")
    if rows := reading.get("skip_rows"):
        lines.append(f"frame = frame.take([i for i in range(len(frame)) if i + 1 not in {rows}])")
    if has_weights and (name := reading.get("weights")):
        column = f'Prepare(as_={{{_quoted(name)}: "number"}}, scale="none")'
        lines.append(f"weights = {column}.fit_transform(frame.select([{_quoted(name)}]))[:, 0]")
        lines += [f"frame = frame.drop_columns([{_quoted(name)}])"] * ("columns" not in reading)
    elif has_weights:
        lines.append("weights = ...  # one for each row, as it was given")
    if columns := reading.get("columns"):
        lines.append(f"frame = frame.select({_option(columns)})")
    return lines


def _preparing(prepare: Prepare, reading: Mapping[str, Any], *, has_weights: bool) -> list[str]:
    """Write the lines that turn the columns into points."""
    options = ", ".join(
        f"{name}={value!r}"
        for name, value in prepare.get_params().items()
        if value not in (None, "auto", (), [], {})
    )
    if not reading.get("drops_missing"):
        weighting = ", sample_weight=weights" if has_weights else ""
        return [f"X = Prepare({options}).fit_transform(frame{weighting})"]
    lines = [f"prepare = Prepare({options})", "X = prepare.understand(frame)"]
    lines.append("is_whole = ~np.isnan(X).any(axis=1)")
    if has_weights:
        lines[-1] += " & ~np.isnan(weights)"
        lines.append("weights = weights[is_whole]")
    return [*lines, f"X = prepare.settle(X[is_whole]{', weights' * has_weights})"]


def _option(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return _written(value)
