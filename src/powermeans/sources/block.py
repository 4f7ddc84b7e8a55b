"""Some rows of a source, and what every kind of source can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from powermeans.types import FloatArray, Points, SparsePoints


class SourceError(ValueError):
    """A source gives no rows that can be clustered, or not the same ones each time."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows as a source hands them out, as many as suit it.

    Attributes
    ----------
    points : (n_rows, n_features)
        Dense in C order, or CSR.
    weights : (n_rows,), optional
        Float64.
    where : str
        What errors call the place they are from.
    first_row : int
        Which row of that place the first of them is: those of files count from one, as people do.
    """

    points: Points | SparsePoints
    weights: FloatArray | None
    where: str
    first_row: int = 0


class Source(Protocol):
    """Rows that can be read again and again."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns, where they have names."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns."""
        ...

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Float32 or float64."""
        ...

    @property
    def n_rows(self) -> int | None:
        """Number of rows, None where only reading all of them would tell."""
        ...

    @property
    def can_skip(self) -> bool:
        """Whether rows can be skipped without reading them."""
        ...

    def fingerprint(self) -> str:
        """Another one where the rows are others."""
        ...

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """All rows from this one on, in an order that never changes.

        So many of them at a time, where the source does not mind.
        """
        ...
