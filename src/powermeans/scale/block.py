"""A block of rows, and the protocol of the sources that yield blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from powermeans.types import AnyMatrix, FloatArray


class SourceError(ValueError):
    """A source has no rows that can be clustered, or has other rows than before."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a source, as many as suit it."""

    points: AnyMatrix  # dense in C order, or CSR; dense ones may be narrow
    weights: FloatArray | None  # float64
    where: str  # what errors call their place
    first_row: int = 0  # the number of the first row in that place; in files rows count from 1


class Source(Protocol):
    """Rows that can be read any number of times; errors call them `name`."""

    name: str
    feature_names: tuple[str, ...] | None
    n_features: int
    dtype: np.dtype[np.floating[Any]]  # of the points, or of their centers where they are narrow

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None until all of them are read."""

    @property
    def can_skip(self) -> bool:
        """True if rows can be skipped without reading them."""

    def fingerprint(self) -> str:
        """Return a text that differs for different rows."""

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield all rows from this one on in a fixed order, `at_once` at a time if possible."""
