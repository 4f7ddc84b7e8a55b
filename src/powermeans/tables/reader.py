"""What every kind of file offers once it is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from powermeans.types import Points


class Reader(Protocol):
    """An open file with columns."""

    @property
    def name(self) -> str:
        """What errors call the file."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    @property
    def texts(self) -> dict[int, str]:
        """For each column that holds no numbers, what it holds."""
        ...

    @property
    def whole(self) -> frozenset[int]:
        """The columns that look like whole numbers."""
        ...

    @property
    def index(self) -> frozenset[int]:
        """The columns that only name the rows, and are read where they are asked for."""
        ...

    def read(self, wanted: Sequence[int]) -> Points:
        """The columns of these numbers, in this order."""
        ...
