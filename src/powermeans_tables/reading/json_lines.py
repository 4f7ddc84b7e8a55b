"""Lines of JSON, and one array of JSON, alone or in an object, each an object for a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from powermeans.errors import TableError, some
from powermeans.scale.limits import LARGEST_ARRAY, LONGEST_LINE, refuse_long_line, refuse_sparse
from powermeans_tables.cells.column import as_frame
from powermeans_tables.reading.table import File, Rows

_OF_ROWS = ("data", "features", "records", "results", "rows")


def is_json(_: Path, start: bytes) -> bool:
    """Return whether a file begins with an object or an array of objects."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith((b'{"', b"{ ", b"{}", b"{\n", b"[{", b"[ {", b"[\n", b"[\r"))


def read(file: File) -> Rows:
    """Return the objects as rows, with doubts about what is absent."""
    name = file.name
    rows = list(_objects(file.path, name))
    if not rows:
        raise TableError(f"{name} contains no JSON objects")
    flat = [dict(_flat(row)) for row in rows]
    names = list(dict.fromkeys(key for row in flat for key in row))
    refuse_sparse(name, len(flat), len(names), sum(map(len, flat)))
    columns = {key: [row.get(key) for row in flat] for key in names}
    zeros = [key for key in names if _leaves_zeros_out(columns[key])]
    for key in zeros:
        columns[key] = [0 if value is None else value for value in columns[key]]
    said = [f"absent counts are taken for 0 in {some(zeros, 8)}"] if zeros else []
    return Rows.of(as_frame(columns), name, doubts=said)


def _objects(path: Path, name: str) -> Iterator[dict[str, Any]]:
    rows, line = list[Any](), 0
    try:
        with open(path, "rb") as file:
            lines = iter(partial(file.readline, LONGEST_LINE + 1), b"")
            first = next(filter(None, map(bytes.strip, lines)), b"")
            file.seek(0)
            is_cut = len(first) <= LONGEST_LINE and not first.endswith(b"}")
            if is_cut or first.removeprefix(b"\xef\xbb\xbf").startswith(b"["):
                refuse_long_line(name, path.stat().st_size, LARGEST_ARRAY)
                found = json.loads(file.read().decode("utf-8-sig", errors="replace"))
                rows = found if isinstance(found, list) else [found]
            else:
                while each := file.readline(LONGEST_LINE + 1):
                    line += 1
                    refuse_long_line(name, len(each))
                    text = each.decode("utf-8-sig" if line == 1 else "utf-8", errors="replace")
                    rows += [json.loads(text)] if text.strip() else []
    except TableError:
        raise
    except (ValueError, RecursionError) as error:
        where = f"line {line} of {name}" if line > 1 else name
        raise TableError(f"{where} is no JSON: {error!s:.100}") from None
    if len(rows) == 1 and isinstance(rows[0], dict):  # as in {"data": [{...}, ...]} and GeoJSON
        lists = [rows[0][key] for key in _OF_ROWS if isinstance(rows[0].get(key), list)]
        rows = next((each for each in lists if each and isinstance(each[0], dict)), rows)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TableError(f"{name}: row {number} is no object of JSON")
        yield row


def _flat(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of objects and pairs within objects, with a point between their names."""
    for key, value in row.items():
        if key == "coordinates" and isinstance(value, list) and len(value) == 2:
            value = dict(zip("xy", value, strict=True))
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _leaves_zeros_out(values: list[Any]) -> bool:
    """Return whether whole numbers from one on are absent where others are counts."""
    there = [value for value in values if value is not None]
    are_counts = all(type(value) is int and value > 0 for value in there)
    n_absent = len(values) - len(there)
    return are_counts and n_absent > 0.1 * len(values) and min(there, default=0) == 1
