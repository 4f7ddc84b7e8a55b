"""Files as they lie on disk: unpacked, and from standard input."""

from __future__ import annotations

import contextlib
import importlib
import lzma
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO

from powermeans.errors import TableError
from powermeans.scale.tables.formats import PACKED, start_of
from powermeans.scale.tables.table import is_utf8, missing_path

# What the modules that unpack files raise of damaged ones.
UNPACKING = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)


@contextlib.contextmanager
def as_file(source: str | os.PathLike[str]) -> Iterator[tuple[Path, str]]:
    """Yield an unpacked file on disk, and its name for errors."""
    with contextlib.ExitStack() as stack:
        if os.fspath(source) == "-":
            name = "standard input"
            path = stack.enter_context(_copied(sys.stdin.buffer))
        else:
            name = os.fspath(source)
            path = path_of_file(Path(source))
            if not path.is_file():  # a pipe can be read only once
                path = stack.enter_context(_copied(stack.enter_context(open(path, "rb"))))
            elif not is_utf8(path):
                path = stack.enter_context(_linked(path))
        start = start_of(path, name)
        for mark, module in PACKED.items():
            if start.startswith(mark):
                opened = partial(importlib.import_module(module).open, path, "rb")
                path = stack.enter_context(unpacked(opened, name))
        yield path, name


@contextlib.contextmanager
def _linked(path: Path) -> Iterator[Path]:
    """Yield a link to a file whose name PyArrow cannot open."""
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "input"
        link.symlink_to(path.absolute())
        yield link


@contextlib.contextmanager
def _copied(stream: IO[bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        with open(path, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield path


@contextlib.contextmanager
def unpacked(opened: Callable[[], AbstractContextManager[IO[bytes]]], name: str) -> Iterator[Path]:
    """Yield an unpacked copy of a packed file, which a function opens."""
    with contextlib.ExitStack() as stack:
        try:
            copy = stack.enter_context(_copied(stack.enter_context(opened())))
        except UNPACKING as error:
            raise TableError(f"{name} cannot be unpacked: {error}") from None
        yield copy


def path_of_file(path: Path) -> Path:
    """Return the path; raise if there is no file at it."""
    if path.is_dir():
        raise TableError(f"{path} is a directory: name a file in it")
    if not path.exists():
        raise TableError(missing_path(path))
    return path
