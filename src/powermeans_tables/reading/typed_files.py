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
            for batch in _open_batches(stored)[1]:
                batch.validate(full=True)  # a damaged file may have texts that end elsewhere
                for start in range(0, batch.num_rows, n_at_once):
                    yield batch.slice(start, n_at_once)

    with refusing_damage(file.name, "Feather or Arrow"), pa.memory_map(str(file.path)) as stored:
        schema, _ = _open_batches(stored)
        n_rows, n_bytes = map(sum, zip((0, 0), *map(_sizes_of, _messages(stored)), strict=True))
        _refuse_growth(file, n_bytes, n_rows * len(schema.names))
        return _rows_of(file, "Feather or Arrow", schema, n_rows, batches)


def _refuse_growth(file: File, n_bytes: int, n_values: int = 0) -> None:
    # A number takes a byte at least, even where nothing is stored of it.
    limits.refuse_growth(file.name, file.path.stat().st_size, max(n_bytes, n_values))


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

    return Rows.widened(file.name, read, pa.schema([schema.field(p) for p in places]), names, {})


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


def _open_batches(stored: Any) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the batches of a file, or of a stream, which has none of its marks."""
    stored.seek(0)
    if stored.read(6) != b"ARROW1":
        stored.seek(0)
        stream = ipc.open_stream(stored)
        return stream.schema, iter(stream)
    opened = ipc.open_file(stored)
    return opened.schema, map(opened.get_batch, range(opened.num_record_batches))


def _messages(stored: Any) -> Iterator[Any]:
    """Yield the messages that a file names at its end, or those of a stream."""
    stored.seek(0)
    if stored.read(6) != b"ARROW1":
        stored.seek(0)
        with contextlib.suppress(StopIteration):
            yield from iter(ipc.MessageReader.open_stream(stored).read_next_message, None)
        return
    size = stored.size() - 10
    (n_bytes,) = struct.unpack("<i", stored.read_at(4, size))
    footer = _Buffers(stored.read_at(n_bytes, size - n_bytes))
    for place in (2, 3):  # dictionaries and batches of rows
        blocks = footer.field(footer.number("I", 0), place)
        n_blocks = footer.number("I", blocks) if blocks else 0
        for start in np.frombuffer(footer.data, "<i8", 3 * n_blocks, blocks + 4)[::3]:
            stored.seek(int(start))
            yield ipc.read_message(stored)


class _Buffers:
    """What a table of FlatBuffers has, by which Arrow describes what it then unpacks."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def number(self, form: str, at: int) -> int:
        return int(struct.unpack_from(f"<{form}", self.data, at)[0])

    def field(self, table: int, place: int, *, is_far: bool = True) -> int:
        """Return where a field of a table is, or what it refers to; 0 if it has none."""
        places = table - self.number("i", table)
        is_there = 4 + 2 * place < self.number("H", places)
        at = self.number("H", places + 4 + 2 * place) if is_there else 0
        return (table + at + is_far * self.number("I", table + at)) if at else 0


def _sizes_of(message: Any) -> tuple[int, int]:
    """Return how many rows a message adds, and how many bytes its buffers take."""
    if message.type not in ("record batch", "dictionary"):
        return 0, 0
    told, body, is_dictionary = _Buffers(message.metadata), message.body, message.type[0] == "d"
    batch = told.field(told.number("I", 0), 2)
    batch = told.field(batch, 1) if is_dictionary else batch
    length, buffers = told.field(batch, 0, is_far=False), told.field(batch, 2)
    n_buffers = told.number("I", buffers) if buffers else 0
    places = np.frombuffer(told.data, "<i8", 2 * n_buffers, buffers + 4).reshape(-1, 2).tolist()
    is_packed = told.field(batch, 3) or b"ARROW:experimental_compression" in bytes(told.data)
    sizes = [
        max(struct.unpack_from("<q", body, start)[0], n_bytes) if is_packed else n_bytes
        for start, n_bytes in places
        if n_bytes
    ]
    return (told.number("q", length) if length and not is_dictionary else 0), sum(sizes)


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
