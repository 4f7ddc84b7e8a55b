"""Python code that repeats a fit."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from powermeans.engine.stopping import seconds_of
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.report.subject import Subject

_SHORT = 120
_LEFT_OUT: tuple[Any, ...] = (None, "auto", {}, [], ())


def python_code(
    subject: Subject,
    source: str | None = None,
    reading: Mapping[str, Any] | None = None,
    model_file: str | None = None,
) -> str:
    """Write code that reads the points of a file and repeats the fit, or loads a saved model.

    Comments name the steps that may end elsewhere. The reader fills in arrays and functions, and
    points and weights that the file does not give; `reading` says which rows and columns of the
    file were read, and how.
    """
    model, prepare = subject.model, subject.prepare
    scalers = [] if prepare is None else subject.scalers[1:]
    reading = {name: value for name, value in (reading or {}).items() if value or value is False}
    has_weights, drops = subject.weights is not None, reading.get("drops_lacking", "")
    if prepare is None:
        body = ["X = ...  # the points, one a row, as they were fitted"]
        body += ["weights = ...  # one for each row, as it was given"] * has_weights
    else:
        body = _reading(source, reading, has_weights=has_weights)
    if model_file is not None:
        body += _loading(model_file, has_frame=prepare is not None, drops=drops)
    else:
        body += [] if prepare is None else _preparing(prepare, drops, has_weights)
        for call, missing in map(_call_of, scalers):
            body += [*missing, f"X = {call}.fit_transform(X)"]
        body += _fit(model, has_weights=has_weights)
    return "\n".join([*_imports(model, scalers, "\n".join(body)), "", *body])


def _imports(model: Any, scalers: Sequence[Any], body: str) -> list[str]:
    """Return the imports of the names that the code uses."""
    given = [*model.get_params(deep=False).values()]
    inner = [part for value in given for part in getattr(value, "rules", ())]
    known = {type(one).__name__: _module_of(type(one)) for one in (model, *scalers, *given, *inner)}
    known |= {"Prepare": "powermeans", "read_frame": "powermeans", "inf": "math", "nan": "math"}
    bare = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", body)
    uses = [name for name in known if re.search(rf"(?<![\w.]){name}\b", bare)]
    modules = {"import numpy as np": "np.", "import powermeans": "powermeans.load"}
    lines = [line for line, use in modules.items() if use in bare]
    return [*lines, *(f"from {known[name]} import {name}" for name in uses)]


def _module_of(kind: type) -> str:
    """Return the public module of a class, such as that of `sklearn.preprocessing._data`."""
    module = kind.__module__.partition("._")[0]
    public = __import__(module.partition(".")[0])
    return public.__name__ if kind.__name__ in dir(public) else module


def _fit(model: Any, *, has_weights: bool) -> list[str]:
    (call, missing), parameters = _call_of(model), model.get_params(deep=False)
    weighting, comments = ", sample_weight=weights" * has_weights, []
    if parameters.get("random_state", 0) is None:
        comments.append("# Without a random_state each fit draws anew: this one may end elsewhere.")
    if math.isfinite(seconds_of(parameters.get("stop"))):
        comments.append("# The clock ends this search: on another machine it may end elsewhere.")
    return [
        *missing,
        *comments,
        f"model = {call}.fit(X{weighting})",
        f"print({'model.inertia_, ' * hasattr(model, 'inertia_')}model.labels_)",
    ]


def _loading(model_file: str, *, has_frame: bool, drops: str) -> list[str]:
    lines = [f"model = powermeans.load({model_file!r})"]
    if not has_frame:
        return [*lines, "print(model.predict(X))"]
    whole = [f"X = X[~np.isnan(X).{drops}(axis=1)]"] * bool(drops)
    return [*lines, "X = model[0].transform(frame)", *whole, "print(model[-1].predict(X))"]


def _call_of(estimator: Any) -> tuple[str, list[str]]:
    """Return code that makes an estimator, and lines in which the reader fills in the rest."""
    signature, arguments, missing = inspect.signature(type(estimator)).parameters, [], []
    for name, value in estimator.get_params(deep=False).items():
        text, default = repr(value), repr(signature[name].default)
        if name == "callback" or text == default:
            continue
        # What is long, or shown in angles, cannot be made from its text again.
        is_whole = len(text) <= _SHORT and not re.search(r"array\(|^<|=<", text)
        arguments.append(f"{name}={text if is_whole else name}")
        missing += [] if is_whole else [f"{name} = ...  # as it was given"]
    return f"{type(estimator).__name__}({', '.join(arguments)})", missing


def _reading(source: str | None, reading: Mapping[str, Any], *, has_weights: bool) -> list[str]:
    """Write the lines that read the columns of a file."""
    form = ("delimiter", "header", "array", "encoding")
    given = "".join(f", {name}={reading[name]!r}" for name in form if name in reading)
    lines = []
    if source == "-":
        source = "standard-input"
        lines.append(f"# The rows came from standard input: write them to the file {source}.")
    lines.append("frame = ..." if source is None else f"frame = read_frame({source!r}{given})")
    if rows := reading.get("skip_rows"):
        lines.append(f"frame = frame.take([i for i in range(len(frame)) if i + 1 not in {rows}])")
    if has_weights and (name := reading.get("weights")):
        numbers = f"Prepare(as_={{{name!r}: 'number'}}, scale='none')"
        lines.append(f"weights = {numbers}.fit_transform(frame.select([{name!r}]))[:, 0]")
        lines += [f"frame = frame.drop_columns([{name!r}])"] * ("columns" not in reading)
    elif has_weights:
        lines.append("weights = ...  # one for each row, as it was given")
    if columns := reading.get("columns"):
        lines.append(f"frame = frame.select({columns})")
    return lines


def _preparing(prepare: Prepare, drops: str, has_weights: bool) -> list[str]:
    """Write the lines that turn the columns into points."""
    given = prepare.get_params().items()
    options = [f"{name}={value!r}" for name, value in given if value not in _LEFT_OUT]
    call = f"Prepare({', '.join(options)})"
    if not drops:
        return [f"X = {call}.fit_transform(frame{', sample_weight=weights' * has_weights})"]
    is_used = f"is_used = ~np.isnan(X).{drops}(axis=1)" + " & ~np.isnan(weights)" * has_weights
    lines = [f"prepare = {call}", "X = prepare.understand(frame)", is_used]
    lines += ["weights = weights[is_used]"] * has_weights
    return [*lines, f"X = prepare.settle(X[is_used]{', weights' * has_weights})"]
