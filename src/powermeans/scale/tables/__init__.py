"""Files of numbers as tables: CSV, TSV, Parquet, Feather, Arrow, NPY and NPZ.

The content of a file, not its name, decides how it is read. Errors name the place of the fault and
the way out. They import only `types` and `errors`.
"""

from __future__ import annotations

from powermeans.errors import TableError
from powermeans.scale.tables.table import Missing

__all__ = ["Missing", "TableError"]
