"""PyArrow, which is optional and slow to import."""

import importlib
from typing import Any

from powermeans.errors import TableError


def pyarrow_part(part: str | None = None) -> Any:
    """Import PyArrow, or one of its modules, on first use."""
    try:
        return importlib.import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError as error:  # also where an installed one does not fit NumPy
        raise TableError(f'this needs PyArrow ({error}): pip install "powermeans[cli]"') from None
