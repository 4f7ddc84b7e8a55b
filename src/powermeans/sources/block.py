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

    Points are dense in C order, or CSR; weights are float64. `where` is what errors call the place
    they are from, and `first_row` the number that the first of them has there: rows of files count
    from one, as people do.
    """

    points: Points | SparsePoints
    weights: FloatArray | None
    where: str
    first_row: int = 0


class Source(Protocol):
    """Rows that can be read again and again; errors call them by their name."""

    name: str
    feature_names: tuple[str, ...] | None
    n_features: int
    dtype: np.dtype[np.floating[Any]]

    @property
    def n_rows(self) -> int | None:
        """Number of rows, None if only reading all of them would tell."""
        ...

    @property
    def can_skip(self) -> bool:
        """Whether rows can be skipped without reading them."""
        ...

    def fingerprint(self) -> str:
        """Return a text that differs for other rows."""
        ...

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield all rows from this one on, in an order that never changes.

        `at_once` is how many at a time, for a source that can choose.
        """
        ...
