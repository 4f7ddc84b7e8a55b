"""Tables that arrive as a stream of Arrow batches: a query of DuckDB, a lazy frame, a reader."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

from powermeans.scale.block import SourceError
from powermeans.scale.files import FileSource
from powermeans.system.arrow import pyarrow_part


def spooled(stream: Any, **options: Any) -> FileSource:
    """Return the rows of a stream, copied to a file, since it could perhaps not be read twice.

    The file is removed with the source; the options are those of files.
    """
    descriptor, name = tempfile.mkstemp(prefix="powermeans-", suffix=".arrow")
    os.close(descriptor)
    path, called = Path(name), f"the {type(stream).__name__}"
    try:
        _write(stream, path)
        source = FileSource([path], called=called, are_temporary=True, **options)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    weakref.finalize(source, path.unlink, missing_ok=True)
    return source


def _write(stream: Any, path: Path) -> None:
    if hasattr(stream, "sink_ipc"):  # a lazy frame, which Polars works through in batches
        stream.sink_ipc(path)
        return
    pyarrow = pyarrow_part()
    reader = stream
    if not isinstance(stream, pyarrow.RecordBatchReader):  # which raises what its batches raise
        reader = pyarrow.RecordBatchReader.from_stream(stream)
    if not reader.schema.names:
        raise SourceError(f"the {type(stream).__name__} has no columns: select some")
    with (
        pyarrow.OSFile(os.fspath(path), "wb") as file,
        pyarrow_part("ipc").new_file(file, reader.schema) as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
