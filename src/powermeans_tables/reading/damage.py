"""Files that are damaged or empty: what libraries raise of them, as one kind of error."""

from __future__ import annotations

import contextlib
import lzma
import zipfile
import zlib
from collections.abc import Iterator

from powermeans.errors import TableError
from powermeans.scale.array_files import NoRowsError as NoRowsError

# What the modules that unpack files raise of damaged ones.
UNPACKING = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)


@contextlib.contextmanager
def refusing_damage(name: str, kind: str) -> Iterator[None]:
    """Turn an error of a library that reads a file into a table error of one line."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, kind, str(error) or type(error).__name__) from None


def damaged(name: str, kind: str, problem: str) -> TableError:
    """Return the error for a file that a library cannot read."""
    return TableError(f"{name} is a damaged {kind} file: {problem.splitlines()[0][:200]}")
