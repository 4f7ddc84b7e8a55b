"""Files of numbers as tables: CSV, TSV, Parquet, Feather, Arrow, NPY and NPZ.

The content of a file decides how it is read, not its name. An error says where the file cannot be
read and what to do about it. This room imports only `types` and `errors`.
"""

from __future__ import annotations

from powermeans.tables.reading import read_table
from powermeans.tables.table import Missing, Table, TableError, nearest

__all__ = ["Missing", "Table", "TableError", "nearest", "read_table"]
