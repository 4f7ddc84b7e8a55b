"""Lines of JSON, and one array of JSON, alone or in an object, each an object for a row."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from powermeans.errors import TableError, some
from powermeans.scale.limits import LARGEST_ARRAY, LONGEST_LINE, refuse_long_line, refuse_sparse
from powermeans_tables.cells.arrow import pa, pc, types
from powermeans_tables.cells.column import as_column, of_parts
from powermeans_tables.reading.table import File, Rows

_MARK = b"\xef\xbb\xbf"  # of UTF-8
_OF_ROWS = ("data", "features", "records", "results", "rows")
_BYTES_AT_ONCE, _ROWS_AT_ONCE = 2**22, 2**17
_NEXT: Any = re.compile(r"\s*(,?)\s*")


def is_json(_: Path, start: bytes) -> bool:
    """Return whether a file begins with an object or an array of objects."""
    text = start.removeprefix(_MARK).lstrip()
    return text.startswith((b'{"', b"{ ", b"{}", b"{\n", b"[{", b"[ {", b"[\n", b"[\r"))


def read(file: File) -> Rows:
    """Return the objects as rows, with doubts about what is absent."""
    name, n_rows, n_values = file.name, 0, 0
    parts, names = list[tuple[int, dict[str, Any]]](), dict[str, None]()
    for rows in _blocks(file.path, name):
        wrong = next((number for number, row in enumerate(rows, 1) if type(row) is not dict), None)
        if wrong is not None:
            raise TableError(f"{name}: row {n_rows + wrong} is no object of JSON")
        kinds = {*map(type, chain.from_iterable(map(dict.values, rows)))}
        flat = [dict(_flat(row)) for row in rows] if kinds & {dict, list} else rows
        here = dict.fromkeys(chain.from_iterable(flat))
        n_rows, n_values, names = n_rows + len(flat), n_values + sum(map(len, flat)), names | here
        refuse_sparse(name, n_rows, len(names), n_values)
        parts.append((len(flat), {key: as_column([row.get(key) for row in flat]) for key in here}))
    if not names:
        raise TableError(f"{name} contains no JSON objects{' with values' * bool(n_rows)}")
    columns = {
        key: of_parts([there[key] if key in there else pa.nulls(n) for n, there in parts])
        for key in names
    }
    zeros = [key for key, column in columns.items() if _leaves_zeros_out(column)]
    columns |= {key: pc.fill_null(columns[key], 0) for key in zeros}
    said = [f"absent counts are taken for 0 in {some(zeros, 8)}"] if zeros else []
    return Rows.of(pa.table(columns), name, doubts=said)


def _blocks(path: Path, name: str) -> Iterator[list[Any]]:
    """Yield rows some at a time, since objects take much more memory than columns."""
    found = filter(None, _values(path, name))
    first, second = next(found, []), next(found, [])
    if len(first) == 1 and not second and isinstance(first[0], dict):
        # As in {"data": [{...}, ...]} and GeoJSON.
        lists = [first[0][key] for key in _OF_ROWS if isinstance(first[0].get(key), list)]
        first = next((each for each in lists if each and isinstance(each[0], dict)), first)
    yield from chain([first, second], found)


def _values(path: Path, name: str) -> Iterator[list[Any]]:
    with open(path, "rb") as file:
        lines = iter(partial(file.readline, LONGEST_LINE + 1), b"")
        first = next(filter(None, map(bytes.strip, lines)), b"")
        first = first.removeprefix(_MARK)
        file.seek(0)
        file.seek(len(_MARK) * (file.read(len(_MARK)) == _MARK))
        is_cut = len(first) <= LONGEST_LINE and not first.endswith(b"}")
        if not is_cut and not first.startswith(b"["):
            yield from _of_lines(file, name)
            return
        refuse_long_line(name, path.stat().st_size, LARGEST_ARRAY)
        text = file.read().decode(errors="replace").strip()
    with _refusing(name):
        yield from _of_array(text) if text.startswith("[") else [[json.loads(text)]]


@contextlib.contextmanager
def _refusing(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise TableError(f"{where} is no JSON: {error!s:.100}") from None


def _of_array(text: str) -> Iterator[list[Any]]:
    rows, decode, at = list[Any](), json.JSONDecoder().raw_decode, _NEXT.match(text, 1).end()
    while not text.startswith("]", at):
        row, at = decode(text, at)
        rows.append(row)
        found = _NEXT.match(text, at)
        at = found.end()
        if not found[1] and not text.startswith("]", at):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        if len(rows) == _ROWS_AT_ONCE:
            yield rows
            rows = []
    if at + 1 < len(text):
        raise json.JSONDecodeError("Extra data", text, at + 1)
    yield rows


def _of_lines(file: IO[bytes], name: str) -> Iterator[list[Any]]:
    n_before, rest = 0, b""
    for block in chain(iter(partial(file.read, _BYTES_AT_ONCE), b""), [b""]):
        *lines, rest = (rest + block).split(b"\n") if block else (rest, b"")
        refuse_long_line(name, max(map(len, [*lines, rest])))
        texts = b"\n".join(lines).decode(errors="replace").split("\n")
        there = [*filter(str.strip, texts)]
        with contextlib.suppress(ValueError, RecursionError):
            rows = json.loads(f"[{','.join(there)}]")  # which is faster than one after the other
            are_objects = all(each.lstrip()[0] + each.rstrip()[-1] == "{}" for each in there)
            if are_objects and len(rows) == len(there):
                yield rows
                texts = []
        for number, text in enumerate(texts, n_before + 1):
            with _refusing(f"line {number} of {name}" if number > 1 else name):
                yield [json.loads(text)] if text.strip() else []
        n_before += len(lines)


def _flat(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of objects and pairs within objects, with a point between their names."""
    for key, value in row.items():
        if key == "coordinates" and isinstance(value, list) and len(value) == 2:
            value = dict(zip("xy", value, strict=True))
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _leaves_zeros_out(column: Any) -> bool:
    """Return whether whole numbers from one on are absent where others are counts."""
    is_lacking = column.null_count > 0.1 * len(column)
    return bool(types.is_integer(column.type) and is_lacking and pc.min(column).as_py() == 1)
