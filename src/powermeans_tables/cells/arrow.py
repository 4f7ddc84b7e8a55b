"""PyArrow and its modules, each of which is imported where it is first used."""

from __future__ import annotations

from typing import Any

from powermeans.system.arrow import pyarrow_part


class _Part:
    def __init__(self, *name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(pyarrow_part(*self._name), name)
        return found


pa: Any = _Part()
pc: Any = _Part("compute")
csv: Any = _Part("csv")
ipc: Any = _Part("ipc")
parquet: Any = _Part("parquet")
types: Any = _Part("types")
