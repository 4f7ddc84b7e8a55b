"""Errors and warnings of the package."""

from __future__ import annotations

import contextlib
import copyreg
import difflib
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "IndefiniteKernelWarning",
    "MissingDataError",
    "ModelFileError",
    "ObjectiveRoseWarning",
    "UnlikeScalesWarning",
    "WrongDataError",
]


def warn_caller(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn about the nearest calling line outside the package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    ours = ("powermeans.", "powermeans_", "sklearn.", "functools")  # the last dispatches
    while frame.f_globals.get("__name__", "").startswith(ours) and frame.f_back:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def printable(text: str) -> str:
    """Escape characters that act on a terminal or turn the order of others; keep spaces."""
    spaces = "\u00a0\u2009\u200c\u200d\u202f\u3000"
    return "".join(
        letter if letter.isprintable() or letter in spaces else ascii(letter)[1:-1]
        for letter in text
    )


def some(words: Sequence[str], most: int = 5) -> str:
    """Join the first words by commas, and say how many more there are."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def listed(names: Iterable[str], length: int = 200) -> str:
    """Return names in quotes for an error, cut off after `length` characters."""
    text = ", ".join(f'"{name}"' for name in names)
    return text if len(text) <= length else f"{text[:length]}..."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of an error, such as ': did you mean "height"?'; empty if none is similar."""
    by_lower = {other.lower(): other for other in reversed(list(names))}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f': did you mean "{by_lower[found[0]]}"?' if found else ""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a way out names, with the value to pass if there is one."""

    name: str
    value: str | list[str] | dict[str, str] | None = None

    def __str__(self) -> str:
        match self.value:
            case None:
                return f"{self.name}="
            case str():
                return f'{self.name}="{self.value}"'
            case dict():
                return f"{self.name}={self.value}"
            case names:
                return f"{self.name}=[{listed(names, 300)}]"


class Explained(Exception):
    """A message in fields, so that the command line can name options in place of arguments.

    Its text is "argument=value problem: way out"; without an argument, the problem names its file.
    """

    def __init__(
        self, problem: str, *way_out: str | Argument, argument: str = "", value: Any = None
    ) -> None:
        self.problem, self.way_out, self.argument, self.value = problem, way_out, argument, value
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructors take parts, and not the text that `args` holds.
        of_exception: Any = super().__reduce__()
        kind, args, fields = of_exception
        return copyreg.__newobj__, (kind, *args), fields  # type: ignore[attr-defined]

    def __str__(self) -> str:
        subject = f"{self.argument}={self.value!r} " if self.argument else ""
        return subject + ": ".join(filter(None, [self.problem, "".join(map(str, self.way_out))]))


class ArgumentError(Explained, ValueError):
    """An argument, or a file that it names, cannot be used."""


class TableError(ArgumentError):
    """A file or a frame is no table that can be used, or lacks what was asked for."""


class EntryError(ArgumentError):
    """An entry of the data cannot be used; `name`, `row` and `column` say which one."""

    def __init__(self, name: str, row: int, column: int, value: Any, way_out: str) -> None:
        super().__init__(f"{name} has {value} in row {row}, column {column}", way_out)
        self.name, self.row, self.column, self.value = name, row, column, value


class NotInPartsError(ArgumentError):
    """A fit that needs all rows at once was given rows that are read part by part."""


class FewRowsError(ArgumentError):
    """There are fewer rows than clusters; scikit-learn's checks match the text."""

    def __init__(self, n_rows: int, n_clusters: int) -> None:
        self.n_rows = n_rows
        super().__init__(
            f"is more than the {n_rows} rows",
            "ask for fewer clusters",
            argument="n_clusters",
            value=n_clusters,
        )

    def __str__(self) -> str:
        return (
            f"n_samples={self.n_rows} should be >= n_clusters={self.value}: "
            f"pass more rows, or n_clusters of at most {self.n_rows}"
        )


class NoRoomError(OSError):
    """Temporary files cannot be written."""


@contextlib.contextmanager
def writing_temporarily() -> Iterator[None]:
    """Name the folder of temporary files where one of them cannot be written."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error}: make room there, or set TMPDIR to another folder"
        raise NoRoomError(
            error.errno or 0, why, tempfile.tempdir or "the temporary folder"
        ) from None


class ObjectiveRoseWarning(RuntimeWarning):
    """The objective rose between two sweeps at equal power by more than rounding.

    See Also
    --------
    powermeans.PowerKMeans : Issues it after a sweep.

    Examples
    --------
    Stop a program instead of using a wrong result:

    >>> import warnings
    >>> from powermeans import PowerKMeans
    >>> from powermeans.errors import ObjectiveRoseWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ObjectiveRoseWarning)
    ...     model = PowerKMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    """


class UnlikeScalesWarning(UserWarning):
    """One column varies so much more than another that the other hardly counts in distances.

    See Also
    --------
    powermeans.open_data : Scales the columns of files and chunks.

    Examples
    --------
    >>> import warnings
    >>> from powermeans import PowerKMeans
    >>> people = [[31, 52_000.0], [64, 18_000.0], [29, 49_000.0], [60, 21_000.0]]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = PowerKMeans(2).fit(people)
    >>> "UnlikeScalesWarning" in [warning.category.__name__ for warning in caught]
    True
    """


class IndefiniteKernelWarning(UserWarning):
    """A kernel has negative eigenvalues, which the fit replaces with zero.

    See Also
    --------
    powermeans.methods.KernelPowerKMeans : Issues it.

    Examples
    --------
    >>> import warnings
    >>> from powermeans.methods import KernelPowerKMeans
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = KernelPowerKMeans(2, kernel="precomputed").fit([[0.0, 1.0], [1.0, 0.0]])
    >>> "IndefiniteKernelWarning" in [warning.category.__name__ for warning in caught]
    True
    """


class ModelFileError(ValueError):
    """A file contains no model, or a model that only a newer powermeans can read.

    See Also
    --------
    powermeans.load : Raises it.
    powermeans.save : Writes model files.

    Examples
    --------
    >>> import tempfile
    >>> import powermeans
    >>> with tempfile.NamedTemporaryFile(suffix=".pm") as file:
    ...     try:
    ...         powermeans.load(file.name)
    ...     except powermeans.errors.ModelFileError:
    ...         print("an empty file contains no model")
    an empty file contains no model
    """


class MissingDataError(FileNotFoundError):
    """The file of a real data set is missing; the message says where to get it.

    See Also
    --------
    powermeans.datasets.load_data_set : Raises it.
    powermeans.errors.WrongDataError : The file contains other data.

    Examples
    --------
    >>> from powermeans import datasets
    >>> from powermeans.errors import MissingDataError
    >>> try:
    ...     mice = datasets.load_data_set("mice_protein")
    ... except MissingDataError as error:
    ...     print(error)  # doctest: +SKIP
    """


class WrongDataError(ValueError):
    """The file of a real data set contains other data.

    See Also
    --------
    powermeans.datasets.load_data_set : Raises it.
    powermeans.errors.MissingDataError : There is no file.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> import numpy as np
    >>> from powermeans import datasets
    >>> from powermeans.errors import WrongDataError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "ruspini.npz"), X=np.zeros((75, 3)))
    ...     with mock.patch.dict(os.environ, POWERMEANS_DATA=folder):
    ...         try:
    ...             datasets.load_data_set("ruspini")
    ...         except WrongDataError as error:
    ...             print("the shape is wrong:", "(75, 3)" in str(error))
    the shape is wrong: True
    """
