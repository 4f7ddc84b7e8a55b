"""Columns from Parquet, Feather and Arrow files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from powermeans.scale.tables.checking import names_identifiers
from powermeans.scale.tables.table import TableError, distinct
from powermeans.types import Points

# The values of all columns that stay in the cache while they are written as rows.
_VALUES_IN_CACHE = 2**14


@dataclass(frozen=True)
class ArrowColumns:
    """What a Parquet, Feather or Arrow file tells of its columns; see `tables.table.Columns`."""

    name: str
    keys: tuple[str, ...]
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    index: frozenset[int]
    dates: frozenset[int]
    beside: dict[int, str]
    fits_float32: frozenset[int]
    decimal: ClassVar[str] = ""

    @classmethod
    def of(cls, schema: Any, name: str, *, reads_dates: bool) -> ArrowColumns:
        """Find the kinds of the columns in the schema of a file."""
        types, keys = pyarrow_part("types"), tuple(schema.names)

        def those_of(is_kind: Callable[[Any], bool]) -> frozenset[int]:
            return frozenset(j for j, kind in enumerate(schema.types) if is_kind(kind))

        names, whole, dates = distinct(keys), those_of(types.is_integer), those_of(_is_date_type)
        texts = {
            j: f"of the type {kind}"
            for j, kind in enumerate(schema.types)
            if j not in dates and not _is_number_type(kind)
        }
        beside = {j: "identifiers" for j in whole if names_identifiers(names[j])}
        beside |= {} if reads_dates else dict.fromkeys(dates, "dates")
        narrow = those_of(types.is_float32) | those_of(types.is_float16)
        return cls(name, keys, names, texts, whole, _index_of(schema), dates, beside, narrow)

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how dates are read, which are no numbers in the file."""
        dates = [f'"{self.names[number]}"' for number in wanted if number in self.dates]
        return f"{', '.join(dates)}: dates as days since 1970" if dates else ""


def places_among(schema: Any, keys: Sequence[str], wanted: Iterable[int]) -> list[int]:
    """Return where the wanted columns of a file are in a batch that has all columns of their names.

    `keys` are the names of all columns of the file, perhaps with repetitions.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(schema.names):
        places.setdefault(name, []).append(place)
    n_before: dict[str, int] = {}
    ranks = []
    for key in keys:
        ranks.append(n_before.get(key, 0))
        n_before[key] = ranks[-1] + 1
    return [places[keys[number]][ranks[number]] for number in wanted]


def _index_of(schema: Any) -> frozenset[int]:
    """Return the columns that hold an index of pandas, by the metadata of the file."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return frozenset()
    return frozenset(number for number, key in enumerate(schema.names) if key in index)


def matrix_of(columns: Iterable[Any], dtype: np.dtype[np.floating[Any]]) -> Points:
    """Return columns of Arrow or NumPy in C order, with NaN for missing values."""
    arrays = [values_of(column, dtype) for column in columns]
    points: Points = np.empty((len(arrays[0]), len(arrays)), dtype=dtype)
    n_tile = max(1, _VALUES_IN_CACHE // len(arrays))
    for start in range(0, len(points), n_tile):
        tile = slice(start, start + n_tile)
        for number, array in enumerate(arrays):
            points[tile, number] = array[tile]
    return points


def _is_number_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    names = ("integer", "floating", "boolean", "decimal", "null")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def _is_date_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def values_of(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column as an array, without a copy if it can be used in place."""
    if isinstance(column, np.ndarray):
        return column
    if _is_date_type(column.type):
        return _days_in(column).astype(dtype)
    wanted = pyarrow_part().from_numpy_dtype(dtype)
    of_dtype = column if column.type == wanted else column.cast(wanted, safe=False)
    values: NDArray[Any] = of_dtype.to_numpy(zero_copy_only=False)
    return values


def _days_in(column: Any) -> NDArray[Any]:
    """Return dates as days since 1970, with NaN for missing ones."""
    pa = pyarrow_part()
    zone = getattr(column.type, "tz", None)
    microseconds = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    days: NDArray[Any] = microseconds.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return days / 86400e6


def pyarrow_part(part: str | None = None) -> Any:
    """Import PyArrow, or one of its modules, on first use."""
    try:
        return importlib.import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise TableError('this kind of file needs PyArrow: pip install "powermeans[cli]"') from None
