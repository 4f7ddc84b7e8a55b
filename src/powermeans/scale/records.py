"""Records of a checkpoint: results of calls on parts as bytes, which execute no code when read.

A record has a head and contents: the length of some JSON, the JSON, in which arrays are dtypes and
shapes, and the values of the arrays one after the other.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.mathematics.sums import RECORDED
from powermeans.system.containers import to_array

# Length of the contents and their checksum, which goes on from that of the first record, so that
# records of the file of another fit do not count.
HEAD = struct.Struct("<QI")


def record(contents: bytes, checksum_before: int = 0) -> bytes:
    """Return contents with their length and checksum before them."""
    return HEAD.pack(len(contents), zlib.crc32(contents, checksum_before)) + contents


def encoded(question: str, result: Any) -> bytes:
    """Return the contents of a record: the digest of a call, and its result."""
    arrays: list[NDArray[Any]] = []

    def form_of(value: Any) -> Any:
        value = to_array(value)
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": [value.dtype.str, value.shape]}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        kind = type(value)
        assert RECORDED.get(kind.__name__) is kind, f"{kind} is not recorded"
        # What is given by name is not known of points in parts.
        by_place = [field.name for field in fields(kind) if not field.kw_only]
        return {kind.__name__: [getattr(value, name) for name in by_place]}

    words = json.dumps([question, result], default=form_of).encode()
    values = b"".join(array.tobytes() for array in arrays)
    return len(words).to_bytes(8, "little") + words + values


def decoded(contents: bytes) -> tuple[str, Any]:
    """Return what `encoded` made contents of; raise any error for other contents."""
    at = 8 + int.from_bytes(contents[:8], "little")
    words = contents[8:at]

    def value_of(form: dict[str, Any]) -> Any:
        nonlocal at
        ((name, content),) = form.items()
        if name == "dtype":
            return np.dtype(content)
        if name != "array":
            return RECORDED[name](*content)
        dtype, shape = content
        values = np.frombuffer(contents, np.dtype(dtype), math.prod(shape), at)
        at += values.nbytes
        return values.reshape(shape).copy()

    question, result = json.loads(words, object_hook=value_of)
    if at != len(contents):
        raise ValueError(f"its arrays end at byte {at} of {len(contents)}")
    return question, result
