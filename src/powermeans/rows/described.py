"""What an opening is, in words that another process finds again."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from powermeans.divergences.bregman import Bregman
from powermeans.rows.places import Opening


def described(opening: Opening) -> str:
    """The same text for the same opening in every process, and another one for another.

    A divergence of one's own is told by its class, its attributes, and the code of its functions.
    What these take from global variables is not looked at.

    Parameters
    ----------
    opening : Opening

    Returns
    -------
    str
    """
    try:
        return repr([_described(opening.divergence), opening.has_missing, opening.device])
    except (_Unknown, RecursionError) as error:
        what = error.args[0] if isinstance(error, _Unknown) else "a function within itself"
        raise ValueError(
            f"divergence={opening.divergence!r:.200} has {what!r:.200}, which another "
            "process cannot tell from others, so that no fit with it can go on from a checkpoint: "
            "let attributes be numbers, strings, arrays, lists and plain functions, or leave "
            "checkpoint out"
        ) from None


class _Unknown(Exception):
    """A value that has no description."""


def _described(value: Any) -> Any:
    if value is None or value is Ellipsis or isinstance(value, bool | int | str | bytes | complex):
        return repr(value)
    if isinstance(value, float | np.generic):
        return [
            type(value).__name__,
            repr(value.item() if isinstance(value, np.generic) else value),
        ]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return [value.dtype.str, value.shape, digest]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(_described, value)]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(repr(_described(entry)) for entry in value)]
    if isinstance(value, dict):
        return ["dict", *([_described(key), _described(entry)] for key, entry in value.items())]
    if isinstance(value, np.ufunc):
        return ["ufunc", value.__name__]
    return _described_by_code(value)


def _described_by_code(value: Any) -> Any:
    if isinstance(value, CodeType):
        constants = [_described(constant) for constant in value.co_consts]
        return [value.co_code.hex(), value.co_names, value.co_varnames, constants]
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        kept = [held, value.__defaults__, value.__kwdefaults__]
        return [value.__module__, value.__qualname__, _described(value.__code__), _described(kept)]
    if isinstance(value, BuiltinFunctionType) and isinstance(value.__module__, str):
        return [value.__module__, value.__qualname__]
    if isinstance(value, type):
        return [value.__module__, value.__qualname__, *_functions_of(value)]
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    if isinstance(value, Bregman):
        return [_described(type(value)), *_attributes_of(value)]
    raise _Unknown(value)


def _functions_of(kind: type[Any]) -> Iterator[Any]:
    """Those of the class and its bases that are not the package's own."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("powermeans", "builtins", "abc"):
            for name, content in vars(base).items():
                # A function that names its class is in a cell of that class's own making.
                if isinstance(content, FunctionType):
                    yield [name, _described(content.__code__), _described(content.__defaults__)]
                elif isinstance(content, int | float | np.ndarray):
                    yield [name, _described(content)]


def _attributes_of(value: Any) -> Iterator[Any]:
    """Each name with its value, but for what was computed from the others."""
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    else:
        names = sorted(getattr(value, "__dict__", {}))
    for name in names:
        if not isinstance(getattr(type(value), name, None), functools.cached_property):
            yield [name, _described(getattr(value, name))]
