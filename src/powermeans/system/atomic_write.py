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
    """Raise where there is no folder that a file could be in.

    Parameters
    ----------
    path : str or path
        Of the file.

    Examples
    --------
    >>> from powermeans.system.atomic_write import check_folder
    >>> check_folder("labels.npy")
    >>> check_folder("nowhere/labels.npy")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] there is no folder nowhere: make it first: 'nowhere/labels.npy'
    """
    folder = os.path.dirname(os.fspath(path)) or os.curdir
    if not os.path.isdir(os.path.realpath(folder)):
        said = f"there is no folder {folder}: make it first"
        raise FileNotFoundError(errno.ENOENT, said, os.fspath(path))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name once all of it is written.

    Until then it has another name in the same folder, and it vanishes where writing fails. What is
    no plain file, as ``/dev/stdout``, is written to as it is.

    Parameters
    ----------
    path : str or path
        Where the file is to be. An older file there is replaced, and its mode is kept.

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
        with _begun(partial, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if wanted.exists():
            shutil.copymode(wanted, partial)
        os.replace(partial, wanted)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _begun(partial: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    """A file to write to; where there can be none, the error names what was asked for."""
    try:
        return open(partial, "wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
