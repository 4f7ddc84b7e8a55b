"""A table of numbers, and the error of what is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray, Points

Missing = Literal["error", "drop", "observed"]


class TableError(ValueError):
    """A file is no table of numbers, or not the one that was asked for."""


class NoRowsError(TableError):
    """A file is a table, but has no rows: of several, others may have some."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers, with the names of their columns.

    Attributes
    ----------
    points : ndarray of shape (n_rows, n_columns)
        Float64; float32 where an array of it was read.
    names : tuple of str
        The names of the columns.
    weights : ndarray of shape (n_rows,), optional
        The column that was asked for as weights.
    is_kept : ndarray of shape (n_rows_read,), optional
        False for the rows that were dropped since a value is missing.
    """

    points: Points
    names: tuple[str, ...]
    weights: FloatArray | None = None
    is_kept: NDArray[np.bool_] | None = None
