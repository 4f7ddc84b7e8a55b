"""What can go wrong at the command line, in one line each, and the exit code that tells of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

BUG = 1
USAGE = 2
DATA = 3
OUTPUT = 4
INTERRUPTED = 130
PIPE_CLOSED = 141


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
        raise Failure(one_line(str(error)), code) from error


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


def one_line(message: str) -> str:
    """A message as one line, with no more than is worth reading."""
    line = " ".join(message.split())
    return line if len(line) <= 600 else f"{line[:600]}..."
