"""Files that are either written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise if there is no folder for this file."""
    folder = os.path.dirname(os.fspath(path)) or os.curdir
    if not os.path.isdir(os.path.realpath(folder)):
        problem = f"there is no folder {folder}: make it first"
        raise FileNotFoundError(errno.ENOENT, problem, os.fspath(path))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a file to write to, which takes its name, and the mode of an older one, at the end.

    Until then it has another name in the same folder, and it vanishes if writing fails. What is no
    plain file, such as ``/dev/stdout``, is written to directly.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(os.path.join(folder, "greeting")) as file:
    ...         _ = file.write(b"hello")
    ...     os.listdir(folder)
    ['greeting']
    """
    check_folder(path)
    wanted = Path(os.path.realpath(path))
    if wanted.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", os.fspath(path))
    if wanted.exists() and not wanted.is_file():
        with open(wanted, "wb") as file:
            yield file
        return
    partial = wanted.with_name(f".{wanted.name[:200]}.{os.getpid()}.part")
    try:
        with _open(partial, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if wanted.exists():
            shutil.copymode(wanted, partial)
        os.replace(partial, wanted)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _open(partial: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return open(partial, "wb")
    except OSError as error:  # which is to name the file that was asked for
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
