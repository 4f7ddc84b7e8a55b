"""What can go wrong at the command line, in one line each, and the exit code that tells of it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

Piece = TypeVar("Piece")

BUG = 1
USAGE = 2
DATA = 3
OUTPUT = 4
INTERRUPTED = 130
PIPE_CLOSED = 141

_OPTIONS = {
    "n_clusters": "--clusters",
    "n_threads": "--threads",
    "n_init": "--runs",
    "n_trials": "--trials",
    "max_seconds": "--max-seconds",
    "random_state": "--seed",
    "growth": "--growth",
    "criteria": "--criteria",
    "memory_limit": "--memory-limit",
}
_IN_OPTIONS: dict[str, str] = {
    r"\bk_range goes to (\d+), but X has": r"--to \1 is too large: the data has",
    r"\bk_range=\[.*?\]": "these k",
    r"\bcriteria=\[.*?\] names": "--criteria names",
    r"\bScale X, divide it": "Scale the data, divide it",
    r"\bbut X has": "but the data has",
    r"^X is (.*), to be read part by part, but (.*): read it into one array first.*": (
        r"\1 is read part by part, but \2: that takes one file that fits into memory, and neither "
        "--memory-limit nor --checkpoint"
    ),
    r"^n_samples=(\d+) should be >= n_clusters=(\d+): .*": (
        r"--clusters \2 is more than the \1 rows: ask for fewer clusters"
    ),
    r"^(.*) is a checkpoint of a fit with other parameters: .*": (
        r"--checkpoint \1 is of a fit with other options: give those again, or remove the file"
    ),
    r"^(.*) is no checkpoint of a fit of these rows.*": (
        r"--checkpoint \1 is of other rows, or of none: name another file, or remove this one"
    ),
    r"^(.*) is no checkpoint: .*": r"--checkpoint \1 is no checkpoint: name another file",
    r"^(.*) is in use by another fit: .*": (
        r"--checkpoint \1 is in use by another fit: wait until that has ended, or name another file"
    ),
}

_COLUMNS_NAMED = re.compile(r"\bwith columns=\[(.*)\]")
_IN_OPTIONS_OF_TABLES: dict[str, str] = {
    r"\bpass the right delimiter=": "name the right --delimiter",
    r"\bpass decimal=\"(.)\"": r"pass --decimal \1",
    r"\bmissing=\"(\w+)\"": r"--missing \1",
    r"\bwith (columns|array)=": r"with --\1",
}


class Failure(Exception):
    """An end that was foreseen.

    Parameters
    ----------
    message : str
        For people, in one line: what it is about, what is wrong, and the way out.
    code : int
        With which the command ends.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def needing(package: str, what_for: str, extra: str = "cli") -> Failure:
    """What to say where a package is missing that not everybody needs."""
    return Failure(f'{what_for} needs {package}: pip install "powermeans[{extra}]"', USAGE)


@contextlib.contextmanager
def refusing(code: int, *kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds are the user's to mend, and end with this code."""
    try:
        yield
    except kinds as error:
        raise Failure(of_tables(one_line(str(error))), code) from error


@contextlib.contextmanager
def refusing_fit() -> Iterator[None]:
    """What estimators say against their arguments is said of options, or else of the data."""
    try:
        yield
    except ValueError as error:
        said = _of_options(one_line(str(error)))
        raise Failure(said, USAGE if said.startswith("--") else DATA) from error


def _of_options(message: str) -> str:
    """What is said to those who write Python, to those who type a command."""
    message = of_tables(message)
    for pattern, words in _IN_OPTIONS.items():
        message = re.sub(pattern, words, message)
    named = "|".join(_OPTIONS)
    message = re.sub(rf"The '({named})' parameter of \w+", lambda m: _OPTIONS[m[1]], message)
    return re.sub(rf"(?<![-\w])({named})=", lambda m: f"{_OPTIONS[m[1]]} ", message)


def of_tables(message: str) -> str:
    """What is said of a table to those who write Python, to those who type a command."""
    message = _COLUMNS_NAMED.sub(
        lambda found: "with --columns " + found[1].strip('"').replace('", "', ","), message
    )
    for pattern, words in _IN_OPTIONS_OF_TABLES.items():
        message = re.sub(pattern, words, message)
    return message


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says against writing a file is said of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"{os.fspath(path)} cannot be written: {reason}", OUTPUT) from error


@contextlib.contextmanager
def reading(name: str, *, writes: str | None = None) -> Iterator[None]:
    """What the system says is said of the data of this name, or of the file that is written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if writes is not None and error.filename == writes:
            raise Failure(f"{writes} cannot be written: {reason}", OUTPUT) from error
        raise Failure(f"{error.filename or name} cannot be read: {reason}", DATA) from error


def read_from(name: str, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same pieces; that they cannot be read is not said of what is written from them."""
    with reading(name):
        yield from pieces


def one_line(message: str) -> str:
    """A message as one line, with no more than is worth reading."""
    line = " ".join(message.split())
    return line if len(line) <= 600 else f"{line[:600]}..."
