"""Tables that arrive as a stream of Arrow batches: a query of DuckDB, a lazy frame, a reader."""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

from powermeans.scale.block import SourceError
from powermeans.scale.files import FileSource
from powermeans.scale.tables.arrow import pyarrow_part


class SpooledSource(FileSource):
    """The rows of a stream in a temporary file, since it could perhaps not be read twice.

    The file is removed with this object; the options are those of files.
    """

    def __init__(self, stream: Any, **options: Any) -> None:
        descriptor, name = tempfile.mkstemp(prefix="powermeans-", suffix=".arrow")
        os.close(descriptor)
        self._spool = Path(name)
        self._remove = weakref.finalize(self, self._spool.unlink, missing_ok=True)
        try:
            _write(stream, self._spool)
            super().__init__([self._spool], called=f"the {type(stream).__name__}", **options)
        except BaseException:
            self._remove()
            raise

    def _identity_of_files(self) -> Any:
        # The rows, since the file has another name and time each time.
        with self._spool.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _write(stream: Any, path: Path) -> None:
    if hasattr(stream, "sink_ipc"):  # a lazy frame, which Polars works through in batches
        stream.sink_ipc(path)
        return
    pyarrow = pyarrow_part()
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    if not reader.schema.names:
        raise SourceError(f"the {type(stream).__name__} has no columns: select some")
    with (
        pyarrow.OSFile(os.fspath(path), "wb") as file,
        pyarrow_part("ipc").new_file(file, reader.schema) as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
