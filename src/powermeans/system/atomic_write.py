"""Files that are either written whole or not at all."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise if the folder of this file does not exist."""
    folder = os.path.dirname(os.fspath(path)) or os.curdir
    if not os.path.isdir(os.path.realpath(folder)):
        problem = f"there is no folder {folder}: make it first"
        raise FileNotFoundError(errno.ENOENT, problem, os.fspath(path))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a temporary file in the same folder, which replaces `path` once it is complete.

    It takes the mode of the file that it replaces, and is removed if writing fails. A path that is
    no plain file, such as ``/dev/stdout``, is written to directly.
    """
    check_folder(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", os.fspath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            yield file
        return
    # Threads, and processes of containers with equal numbers, may write to one path at a time.
    partial = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.part")
    try:
        with _open(partial, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _open(partial: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return open(partial, "xb")
    except OSError as error:  # name the file that the user asked for
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
