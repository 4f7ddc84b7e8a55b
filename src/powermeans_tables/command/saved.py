"""Saved models, and how the files of their fits were read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from powermeans.errors import ModelFileError, nearest
from powermeans.estimators.streams.base import is_waiting
from powermeans_tables.command import failures
from powermeans_tables.command.data import Data
from powermeans_tables.command.options import DataFiles
from powermeans_tables.reading.formats import PACKED, File, format_of

_REMEMBERED = ("delimiter", "header", "encoding", "array", "missing")


@dataclass(frozen=True, slots=True)
class Saved:
    """A model from a file."""

    model: Any
    reading: Mapping[str, Any]

    def read_like(self, files: DataFiles) -> DataFiles:
        """Return the data with options that were not given as they were in the fit."""
        path, options = Path(files.first), tuple[str, ...](_REMEMBERED)
        with failures.refusing():
            if path.is_file() and not File(path, files.name).start.startswith(tuple(PACKED)):
                options = ("missing", *format_of(File(path, files.name)).options)
        not_given = {
            name: self.reading[name]
            for name in _REMEMBERED
            if name in options and name in self.reading and getattr(files, name) is None
        }
        return replace(files, **not_given)

    @property
    def names(self) -> dict[int, str]:
        """The names of the clusters, as far as they are known."""
        names = self.reading.get("names")
        return {} if names is None else dict(enumerate(names.split("\n")))


def to_remember(files: DataFiles, data: Data, names: Sequence[str]) -> dict[str, Any]:
    """Return how to read other files of this form, and the names of the clusters."""
    how = {name: getattr(files, name) for name in _REMEMBERED}
    if files.is_missing_open:
        how["missing"] = None if data.missing == "error" else data.missing
    how["names"] = "\n".join(" ".join(name.split()) for name in names)
    return {name: value for name, value in how.items() if value is not None}


def load_model(path: str) -> Saved:
    """Load a model that can predict."""
    from powermeans.saving import load, reading_of

    try:
        with failures.refusing(ModelFileError):
            model, reading = load(path), reading_of(path)
    except OSError as error:
        others = os.listdir(os.path.dirname(path) or ".") if not os.path.isdir(path) else []
        hint = nearest(os.path.basename(path), others)
        raise failures.Failure(
            f"{path} cannot be read: {error.strerror}{hint}", failures.DATA
        ) from error
    if not hasattr(model, "predict"):
        raise failures.Failure(
            f"{path} is a {type(model).__name__}, which has labels only for the rows of its fit",
            failures.DATA,
        )
    if is_waiting(model) and not hasattr(model, "cluster_centers_"):
        raise failures.Failure(
            f"{path} is a stream that waits for more points and has no centers yet: load it in "
            "Python, give it points by partial_fit, and save it again",
            failures.DATA,
        )
    return Saved(model, reading)
