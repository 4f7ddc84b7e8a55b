"""How far a file may grow as it is read: one rule for what unpacks, streams or is held whole.

A small file that grows to much more is likelier made to fill a disk or a memory than to be read.
"""

from collections.abc import Iterator
from typing import IO

from powermeans.errors import TableError

_TIMES, _LARGE = 200, 10**9
_OF_A_STREAM = 4 * 10**9  # whose size is not known before
_BLOCK, LONGEST_LINE, LARGEST_ARRAY = 2**20, 2**24, 10**8
_CELLS, _CELLS_FOR_EACH_VALUE = 10**7, 20


def most_bytes(n_stored: int) -> int:
    """Return to how many bytes so many may unpack."""
    return max(_LARGE, _TIMES * n_stored)


def refuse_growth(name: str, n_stored: int, n_bytes: int) -> None:
    """Refuse what unpacks from so many bytes to so many."""
    if n_bytes > most_bytes(n_stored):
        raise TableError(
            f"{name} unpacks from {n_stored:,} to {n_bytes:,} bytes or more: unpack it yourself if "
            "you trust it"
        )


def blocks(stream: IO[bytes], name: str, n_stored: int | None) -> Iterator[bytes]:
    """Yield what unpacks from so many bytes, or what a stream gives, as far as it may grow."""
    n_read = 0
    while block := stream.read(_BLOCK):
        n_read += len(block)
        if n_stored is not None:
            refuse_growth(name, n_stored, n_read)
        elif n_read > _OF_A_STREAM:
            raise TableError(
                f"{name} gives more than {_OF_A_STREAM:,} bytes: save it as a file, and pass that"
            )
        yield block


def refuse_long_line(name: str, n_bytes: int, most: int = LONGEST_LINE) -> None:
    """Refuse a line, or an array of JSON, of so many bytes, which is held whole."""
    if n_bytes > most:
        raise TableError(
            f"{name} has a line or an array of more than {most:,} bytes: write each row in a line "
            "of its own"
        )


def refuse_sparse(name: str, n_rows: int, n_columns: int, n_values: int) -> None:
    """Refuse rows of which each has a few of very many columns."""
    if n_rows * n_columns > max(_CELLS, _CELLS_FOR_EACH_VALUE * n_values):
        raise TableError(
            f"{name} has {n_columns:,} names in {n_rows:,} rows, of which each has "
            f"{n_values / n_rows:.0f} in the mean: put each name and its value in a row of its own"
        )
