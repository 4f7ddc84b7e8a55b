"""Errors as the command line tells them: one line each, and an exit code."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from powermeans.errors import (
    Argument,
    ArgumentError,
    Explained,
    NoRoomError,
    NotInPartsError,
    TableError,
    printable,
)

BUG = 1
USAGE = 2
DATA = 3
OUTPUT = 4
INTERRUPTED = 130
PIPE_CLOSED = 141

# The other options have the names of the arguments.
_OPTIONS = {
    "as_": "--as",
    "codes": "--missing-values",
    "k": "-k",
    "k_range": "-k",
    "n_clusters": "--clusters",
    "names": "--name",
    "n_leaves": "--rules",
    "n_threads": "--threads",
    "series": "--as-series",
    "random_state": "--seed",
    "shares": "--share",
}


class Failure(Exception):
    """A foreseen error: a line that names the problem and the way out, and the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def refusing(kind: type[Exception] = ValueError, *, name: str = "") -> Iterator[None]:
    """End the command on an error in options or data; name the file of columns that it names."""
    try:
        yield
    except kind as error:
        is_option, said = isinstance(error, ArgumentError) and error.argument, in_options(error)
        if isinstance(error, TableError) and not is_option and name not in error.problem:
            said = f"{name}: {said}"
        raise Failure(said, USAGE if is_option else DATA) from error


def in_options(message: Exception) -> str:
    """Return the text of an error or warning, with options in place of Python's arguments."""
    if not isinstance(message, Explained):
        return one_line(str(message))
    value = message.value
    said = _typed_names(value) if isinstance(value, list) else repr(value)
    said = f"{value[0]}-{value[-1]}" if isinstance(value, range) else said
    subject = f"{_option(message.argument)} {said} " if message.argument else ""
    if isinstance(value, bool):
        subject = f"--{'no-' * (not value)}{message.argument} "
    way_out = typed(message.way_out)
    if isinstance(message, NotInPartsError):
        way_out = (
            "that takes one file that fits into memory, and neither --memory-limit nor --checkpoint"
        )
    return one_line(subject + ": ".join(filter(None, [message.problem, way_out])))


def typed(way_out: Iterable[str | Argument]) -> str:
    """Return a way out with options in place of Python's arguments."""
    return "".join(each if isinstance(each, str) else _as_option(each) for each in way_out)


def _as_option(argument: Argument) -> str:
    option, value = _option(argument.name), argument.value
    if isinstance(value, dict):
        value = [f"{name}={text}" for name, text in value.items()]
    value = _typed_names(value) if isinstance(value, list) else value
    return option if value is None else f"{option} {value}"


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def _typed_names(names: list[str]) -> str:
    """Return names as one types them: in CSV's quotes at commas, in the shell's at blanks."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue())


@contextlib.contextmanager
def reading(name: str = "", *, writes: Any = None) -> Iterator[None]:
    """Name the data that the system cannot read, or the file `writes` that it cannot write."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        is_output = writes is not None and (not name or error.filename == writes)
        is_written = is_output or isinstance(error, NoRoomError)
        done, code = ("written", OUTPUT) if is_written else ("read", DATA)
        path = os.fspath(writes) if is_output else error.filename or name
        raise Failure(f"{path} cannot be {done}: {error.strerror or error}", code) from error


def writing(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Name the file that the system cannot write."""
    return reading(writes=path)


def one_line(message: str) -> str:
    """Return a message as one line of at most 600 letters."""
    line = printable(" ".join(message.split()))
    return line if len(line) <= 600 else f"{line[:600]}..."
