"""Tables of numbers from files: CSV, TSV, Parquet, Feather and Arrow, NPY and NPZ.

What is in a file decides how it is read, not its name. Of what cannot be read the error says where
it is and what to do, in one line.
"""

from __future__ import annotations

from powermeans.tables.reading import read_table
from powermeans.tables.table import Missing, Table, TableError, nearest

__all__ = ["Missing", "Table", "TableError", "nearest", "read_table"]
