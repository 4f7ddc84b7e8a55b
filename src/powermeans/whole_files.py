"""Files that are either written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name once all of it is written.

    Until then it has another name in the same folder, and it vanishes where writing fails. What is
    no plain file, as ``/dev/stdout``, is written to as it is.

    Parameters
    ----------
    path : str or path
        Where the file is to be. An older file there is replaced, and its mode is kept.

    Yields
    ------
    binary file

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(os.path.join(folder, "greeting")) as file:
    ...         _ = file.write(b"hello")
    ...     os.listdir(folder)
    ['greeting']
    """
    wanted = Path(os.path.realpath(path))
    if wanted.is_dir():
        raise IsADirectoryError(21, "Is a directory", os.fspath(path))
    if wanted.exists() and not wanted.is_file():
        with open(wanted, "wb") as file:
            yield file
        return
    partial = wanted.with_name(f".{wanted.name[:200]}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if wanted.exists():
            shutil.copymode(wanted, partial)
        os.replace(partial, wanted)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
