"""The standard streams: what they cannot take is told, or printed in other letters."""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from powermeans_tables.command import failures

# What stands for signs of ours, and for units, where the encoding of a stream lacks them.
STAND_INS = dict(zip("✓−–“”’·µ\u00a0", '*--""\'-u ', strict=True))
STAND_INS |= {"…": "...", "°": " deg", "²": "^2", "³": "^3", "€": "EUR", "£": "GBP"}


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(STAND_INS.get(letter, ascii(letter)[1:-1]) for letter in lost), error.end


codecs.register_error("powermeans", _stand_in)


class _Stream:
    """A standard stream whose failures name it, and which fails from the first one on."""

    def __init__(self, stream: Any, name: str, errors: list[Exception] | None = None) -> None:
        self._stream, self._name = stream, name
        self._errors = [] if errors is None else errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> Any:
        return _Stream(self._stream.buffer, self._name, self._errors)

    def write(self, text: Any) -> None:
        self._do(lambda: self._stream.write(text))

    def flush(self) -> None:
        self._do(self._stream.flush)

    def _do(self, act: Callable[[], object]) -> None:
        try:
            with failures.writing(self._name):
                act()
        except (failures.Failure, BrokenPipeError) as error:
            self._errors.append(error)
            # Without this, Python's flush at exit would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        if self._errors and self._name != "standard error":  # where nobody is left to be told
            raise self._errors[0]


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Let the standard streams of a command take what they can, and say what they cannot."""
    # Files would get the numbers of closed streams, and what libraries print would go into them.
    for number, flags in enumerate([os.O_WRONLY, os.O_RDONLY, os.O_WRONLY]):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the output for reading: writing fails, as it should
    before = sys.stdout, sys.stderr
    out, err = (
        stream or os.fdopen(number, "w", encoding="utf-8", closefd=False)
        for number, stream in enumerate(before, start=1)
    )
    for stream in (out, err):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="powermeans")
    sys.stdout, sys.stderr = _Stream(out, "standard output"), _Stream(err, "standard error")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def size_for(stream: Any) -> dict[str, int]:
    """Return the size in which Rich prints; nothing where it asks the terminal."""
    if stream.isatty() and not {"COLUMNS", "LINES"} & {*os.environ}:
        return {}
    size = shutil.get_terminal_size((100, 24))  # which passes over what is no number
    return {"width": size.columns, "height": size.lines}
