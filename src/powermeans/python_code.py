"""The Python code that makes an estimator again."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np

_SHORT = 120
_INFINITY = re.compile(r"(?<![\w.])inf\b")


def python_code(model: Any, source: str | None = None, scalers: Sequence[Any] = ()) -> str:
    """Code that reads the points and fits the same.

    Parameters
    ----------
    model : estimator
        Its parameters that are not the default are written out. Arrays and functions cannot be
        and become a name to fill in.
    source : str, optional
        The file of the points; without it X is left to the reader.
    scalers : sequence of transformer
        What the points go through before, of `sklearn.preprocessing`.

    Returns
    -------
    str

    Examples
    --------
    >>> import math
    >>> from powermeans import Fixed, PowerKMeans
    >>> print(python_code(PowerKMeans(3, schedule=Fixed(-math.inf)), "points.npy"))
    import math
    import numpy as np
    from powermeans import PowerKMeans
    from powermeans.schedules import Fixed
    <BLANKLINE>
    X = np.load("points.npy")
    model = PowerKMeans(n_clusters=3, schedule=Fixed(power=-math.inf)).fit(X)
    print(model.labels_)
    """
    arguments, imports, missing = _arguments(model)
    reading, libraries = _reading(source)
    call = f"{type(model).__name__}({', '.join(arguments)})"
    if "math." in call:
        libraries = ["import math", *libraries]
    package = type(model).__module__.partition(".")[0]
    package = "sklearn.cluster" if package == "sklearn" else package
    lines = [
        *libraries,
        f"from {package} import {type(model).__name__}",
        *[f"from sklearn.preprocessing import {type(scaler).__name__}" for scaler in scalers],
        *imports,
        "",
        *[f"{name} = ...  # as it was given" for name in missing],
        reading,
        *[f"X = {type(scaler).__name__}().fit_transform(X)" for scaler in scalers],
        f"model = {call}.fit(X)",
        f"print({'model.inertia_, ' * hasattr(model, 'inertia_')}model.labels_)",
    ]
    return "\n".join(lines)


def _arguments(model: Any) -> tuple[list[str], list[str], list[str]]:
    """Arguments, what is imported for them, and the names that the reader must fill in."""
    arguments, imports, missing = [], [], []
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(model)).parameters.items()
    }
    for name, value in model.get_params(deep=False).items():
        if name == "callback" or _is_default(value, defaults.get(name)):
            continue
        if _is_plain(value):
            arguments.append(f"{name}={_written(value)}")
        elif _is_ours(value):
            arguments.append(f"{name}={_written(value)}")
            imports.append(f"from {type(value).__module__} import {type(value).__name__}")
        else:
            arguments.append(f"{name}={name}")
            missing.append(name)
    return arguments, imports, missing


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        _is_plain(value) and type(value) is type(default) and value == default
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.number | np.bool_)


def _is_ours(value: Any) -> bool:
    """A small value such as a schedule, whose text makes it again."""
    is_ours = type(value).__module__.startswith("powermeans.")
    return (
        is_ours
        and is_dataclass(value)
        and len(text := repr(value)) <= _SHORT
        and "array(" not in text
    )


def _written(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return repr(plain) if isinstance(plain, str) else _INFINITY.sub("math.inf", repr(plain))


def _reading(source: str | None) -> tuple[str, list[str]]:
    """The line that reads the points, and what it imports."""
    if source is None:
        return "X = ...  # the points, one a row", []
    text = '"' + repr(source)[1:-1].replace('"', '\\"') + '"'
    readers = {
        ".npy": ("np.load({})", "import numpy as np"),
        ".parquet": ("pd.read_parquet({})", "import pandas as pd"),
        ".feather": ("pd.read_feather({})", "import pandas as pd"),
        ".tsv": ('pd.read_csv({}, sep="\\t")', "import pandas as pd"),
    }
    ending = source[source.rfind(".") :].lower() if "." in source else ""
    reader, library = readers.get(ending, ("pd.read_csv({})", "import pandas as pd"))
    return f"X = {reader.format(text)}", [library]
