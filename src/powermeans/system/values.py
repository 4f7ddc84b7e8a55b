"""Values as JSON and arrays, and back, for model files and checkpoints.

A value that JSON lacks becomes an object with one entry, whose key is the name of its form. Reading
executes no code, and accepts only the forms that the decoder is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.system.host_memory import on_host

DTYPES = frozenset(
    ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
)


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of values: which values it fits, how to write one, and how to read it."""

    name: str
    fits: Callable[[Any], bool]
    write: Callable[[Encoder, Any, str], Any]
    read: Callable[[Decoder, Any], Any]


class Encoder:
    """Writes values as JSON, and collects their arrays by name."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, name: str) -> Any:
        """Return the JSON of a value; errors call it `name`."""
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
            return self.entries(value, name)
        value = on_host(value)  # so a tensor is read back as an array
        for form in self._forms:
            if form.fits(value):
                return {form.name: form.write(self, value, name)}
        what = getattr(value, "__name__", None) or type(value).__name__
        raise TypeError(
            f"{name} is {what}, which cannot be saved without saving code: replace it with "
            f"model.set_params({name}=...) if you need it no more, or use pickle"
        )

    def entries(self, values: Iterable[Any], name: str) -> list[Any]:
        """Return the JSON of each of these values."""
        return [self.encode(value, name) for value in values]

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON of each of these values under its name."""
        return {name: self.encode(value, name) for name, value in values.items()}

    def array(self, value: NDArray[Any], name: str) -> str:
        """Keep an array, and return its key."""
        stored = np.asarray(value, dtype=value.dtype.newbyteorder("<"))
        if stored.dtype.str not in DTYPES:
            raise TypeError(f"{name} is an array of dtype {value.dtype}, which cannot be saved")
        key = f"a{len(self.arrays)}"
        self.arrays[key] = stored
        return key


class Decoder:
    """Reads values from the JSON of `source`, and takes each array by its key."""

    def __init__(
        self, forms: Sequence[Form], take_array: Callable[[Any], NDArray[Any]], source: str
    ) -> None:
        self._forms = {form.name: form for form in forms}
        self.array, self.source = take_array, source

    def decode(self, encoded: Any) -> Any:
        """Return the value that `Encoder.encode` wrote."""
        if isinstance(encoded, list):
            return [self.decode(entry) for entry in encoded]
        if not isinstance(encoded, dict):
            if is_int(encoded) and abs(encoded) >= 2**64:
                raise ValueError(f"{self.source} has a whole number of more than 64 bits")
            return encoded
        if len(encoded) != 1:
            raise ValueError(f"{self.source} has an object of {len(encoded)} entries")
        ((name, content),) = encoded.items()
        if name == "float":
            return self._float(content)
        if name not in self._forms:
            raise ValueError(f"{self.source} has a value of the kind {name!r:.40}")
        return self._forms[name].read(self, content)

    def _float(self, text: Any) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise ValueError(f"{self.source} has {text!r:.40} for a number")
        return float(text)

    def entries(self, content: Any, n_entries: int | None = None) -> list[Any]:
        """Return the values in a list, which must have `n_entries` if given."""
        return [self.decode(entry) for entry in self.listed(content, n_entries)]

    def listed(self, content: Any, n_entries: int | None = None) -> list[Any]:
        """Return a list as it is; raise if it is none or has other than `n_entries`."""
        if not isinstance(content, list) or n_entries not in (None, len(content)):
            raise ValueError(f"{self.source} has {content!r:.40} for a list")
        return content

    def named(self, content: Any) -> dict[str, Any]:
        """Return the values of a JSON object by their names."""
        if not isinstance(content, dict):
            raise ValueError(f"{self.source} has {content!r:.40} for named values")
        return {name: self.decode(value) for name, value in content.items()}


ARRAY = Form(
    "array",
    lambda value: isinstance(value, np.ndarray),
    lambda encoder, value, name: encoder.array(value, name),
    lambda decoder, key: decoder.array(key),
)
TUPLE = Form(
    "tuple",
    lambda value: isinstance(value, tuple),
    lambda encoder, value, name: encoder.entries(value, name),
    lambda decoder, entries: tuple(decoder.entries(entries)),
)
DICT = Form(
    "dict",
    lambda value: isinstance(value, dict) and all(isinstance(key, str) for key in value),
    lambda encoder, value, name: encoder.named(value),
    lambda decoder, content: decoder.named(content),
)


def form_of_dataclasses(kinds: Mapping[str, type[Any]]) -> Form:
    """Return the form of instances of these dataclasses, keyed by class name."""

    def write(encoder: Encoder, value: Any, name: str) -> list[Any]:
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return [type(value).__name__, encoder.named(parts)]

    def read(decoder: Decoder, content: Any) -> Any:
        name, parts = decoder.listed(content, 2)
        kind, found = named_kind(name, kinds), decoder.named(parts)
        # Fields with a default may have come after the file was written.
        needed = {field.name for field in fields(kind) if field.default is MISSING}
        if not needed <= set(found) <= {field.name for field in fields(kind)}:
            raise ValueError(f"{name} has the fields {', '.join(sorted(found))[:100]}")
        return kind(**found)

    return Form("value", lambda value: kinds.get(type(value).__name__) is type(value), write, read)


def named_kind(name: Any, kinds: Mapping[str, type[Any]]) -> type[Any]:
    """Return the class that a file names; raise if it is unknown."""
    if not isinstance(name, str) or name not in kinds:
        raise ValueError(f"{name!r:.40} is none of {', '.join(sorted(kinds))}")
    return kinds[name]


def is_int(value: Any) -> bool:
    """Return whether a value is an int other than True and False."""
    return isinstance(value, int) and not isinstance(value, bool)
