"""Parquet, Feather and Arrow files, and arrays of NumPy, by their types."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import TableError
from powermeans.scale import limits
from powermeans.scale.array_files import ArrayFile, open_npy, open_npz
from powermeans_tables.cells.arrow import ipc, pa, parquet, pc, types
from powermeans_tables.cells.column import is_text
from powermeans_tables.reading.damage import NoRowsError, refusing_damage
from powermeans_tables.reading.table import File, Rows
from powermeans_tables.reading.text_form import distinct

_CELLS_AT_ONCE = 2**22


def read_parquet(file: File) -> Rows:
    """Return the rows of a Parquet file, read some at a time."""
    with refusing_damage(file.name, "Parquet"), _open_parquet(file.path) as opened:
        found, schema = opened.metadata, opened.schema_arrow
        groups = [found.row_group(number) for number in range(found.num_row_groups)]
        chunks = [each.column(place) for each in groups for place in range(found.num_columns)]
        n_values = sum(each.num_values for each in chunks)
        _refuse_growth(file, sum(each.total_byte_size for each in groups), n_values)
        # Texts are stored once, and told where they are: as Arrow has them too, they take as much.
        told = {each.path_in_schema for each in chunks if each.has_dictionary_page}
        kinds = zip(schema.names, schema.types, strict=True)
        told &= {name for name, kind in kinds if types.is_string(kind)}
        deltas = [each for each in chunks if "DELTA_BYTE_ARRAY" in each.encodings]
        told -= {each.path_in_schema for each in deltas}
        largest = max((each.total_uncompressed_size for each in deltas), default=0)

    def batches(n_at_once: int) -> Iterator[Any]:
        with _open_parquet(file.path, read_dictionary=told) as opened:
            # A text may repeat the one before, but is no longer than what is stored of all.
            at_once = min(n_at_once, max(1, limits.LARGEST_ARRAY // max(largest, 1)))
            yield from opened.iter_batches(at_once)

    return _rows_of(file, "Parquet", schema, found.num_rows, batches)


def read_arrow(file: File) -> Rows:
    """Return the rows of a file or a stream of Arrow, batch after batch."""

    def batches(n_at_once: int) -> Iterator[Any]:
        with pa.OSFile(str(file.path)) as stored:
            for batch in ipc.open_stream(_at_stream(stored)):
                batch.validate(full=True)  # a damaged file may have texts that end elsewhere
                for start in range(0, batch.num_rows, n_at_once):
                    yield batch.slice(start, n_at_once)

    with refusing_damage(file.name, "Feather or Arrow"), pa.memory_map(str(file.path)) as stored:
        schema = ipc.open_stream(_at_stream(stored)).schema
        sizes = map(_sizes_of, _messages(_at_stream(stored)))
        n_rows, n_bytes = map(sum, zip((0, 0), *sizes, strict=True))
        _refuse_growth(file, n_bytes, n_rows * len(schema.names))
        return _rows_of(file, "Feather or Arrow", schema, n_rows, batches)


def _refuse_growth(file: File, n_bytes: int, n_values: int = 0) -> None:
    # Eight bytes are what a number takes, even where nothing is stored of it.
    n_stored = file.path.stat().st_size
    limits.refuse_growth(file.name, n_stored, max(n_bytes, 8 * n_values))


def _rows_of(file: File, kind: str, schema: Any, n_rows: int, batches: Any) -> Rows:
    if not n_rows:
        raise NoRowsError(f"{file.name} has columns and no rows")
    index, every = _index_of(schema), distinct(schema.names)
    places = [place for place, name in enumerate(schema.names) if name not in index]
    names, kinds = tuple(every[place] for place in places), schema.types

    def read() -> Iterator[Any]:
        n_bytes = 0
        with refusing_damage(file.name, kind):
            for batch in batches(max(1, _CELLS_AT_ONCE // max(len(names), 1))):
                columns = [batch.column(place) for place in places]
                n_bytes += sum(map(_n_bytes, columns))
                _refuse_growth(file, n_bytes)
                columns = [
                    one if one.type == kinds[place] else one.cast(kinds[place])
                    for one, place in zip(columns, places, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))

    return Rows(name=file.name, names=names, read=read)


def _n_bytes(column: Any) -> int:
    """Return how many bytes a column takes where each row has its text, and not a place of it."""
    kind = column.type
    if types.is_dictionary(kind) and is_text(kind.value_type):
        lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
        return pc.sum(lengths.take(column.indices)).as_py() or 0
    if str(kind) == "string_view":
        views = np.frombuffer(column.buffers()[1], np.int32)[::4]  # which begin with the length
        return int(views[column.offset :][: len(column)].sum(dtype=np.int64))
    return int(column.nbytes)


def _open_parquet(path: Path, **how: Any) -> Any:
    # Read little of a column at a time.
    return parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16, **how)


def _at_stream(stored: Any) -> Any:
    """Go to where the stream begins, which a file has behind its mark."""
    stored.seek(0)
    stored.seek(8 if stored.read(6) == b"ARROW1" else 0)
    return stored


def _messages(stored: Any) -> Iterator[Any]:
    with contextlib.suppress(StopIteration):
        yield from iter(ipc.MessageReader.open_stream(stored).read_next_message, None)


def _sizes_of(message: Any) -> tuple[int, int]:
    """Return how many rows a message adds to a stream of Arrow, and how many bytes its buffers.

    They are read from its metadata, tables of FlatBuffers, since Arrow unpacks before it tells.
    """
    data, body = message.metadata, message.body

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(f"<{form}", data, at)[0])

    def field(table: int, place: int, *, is_far: bool = True) -> int:
        """Return where a field of a table is, or what it refers to; 0 if it has none."""
        places = table - number("i", table)
        is_there = 4 + 2 * place < number("H", places)
        at = number("H", places + 4 + 2 * place) if is_there else 0
        return (table + at + is_far * number("I", table + at)) if at else 0

    if message.type not in ("record batch", "dictionary"):
        return 0, 0
    batch, is_dictionary = field(number("I", 0), 2), message.type == "dictionary"
    batch = field(batch, 1) if is_dictionary else batch
    length, buffers = field(batch, 0, is_far=False), field(batch, 2)
    n_buffers = number("I", buffers) if buffers else 0
    places = np.frombuffer(data, "<i8", 2 * n_buffers, buffers + 4).reshape(-1, 2).tolist()
    is_packed = field(batch, 3) or b"ARROW:experimental_compression" in data.to_pybytes()
    sizes = [
        max(struct.unpack_from("<q", body, start)[0], n_bytes) if is_packed else n_bytes
        for start, n_bytes in places
        if n_bytes
    ]
    return (number("q", length) if length and not is_dictionary else 0), sum(sizes)


def _index_of(schema: Any) -> set[str]:
    """Return the columns with an index of pandas, by the metadata of the file."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, TypeError, ValueError):
        return set()


def read_npy(file: File) -> Rows:
    """Return the rows of an NPY file."""
    return _rows_of_array(open_npy(file.path, file.name))


def read_npz(file: File) -> Rows:
    """Return the rows of an array in an NPZ file, which is in memory."""
    return _rows_of_array(open_npz(file.path, file.name, file.options.get("array")))


def _rows_of_array(found: ArrayFile) -> Rows:
    wanted = [place for place in range(len(found.names)) if place not in found.texts]
    if not wanted:
        raise TableError(f"{found.name} contains no numbers")
    names = tuple(found.names[place] for place in wanted)
    dtype: Any = np.dtype(np.float32 if found.stored == np.float32 else np.float64)

    def batches() -> Iterator[Any]:
        for block in found.blocks(wanted, dtype):
            columns = [pa.array(np.ascontiguousarray(column)) for column in block.T]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))

    return Rows(name=found.name, names=names, read=batches, is_array=True)
