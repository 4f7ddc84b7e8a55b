"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _homes() -> dict[str, str]:
    """In which module each public name lives, by the stub beside this file, where to add one."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    return {
        alias.asname or alias.name: node.module
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


_HOMES = _homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """What is public is imported when it is asked for, and so are modules of the package.

    All of it takes a second, which nobody wants to wait for ``powermeans --help``.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("powermeans")
    if name in _HOMES and _HOMES[name] != __name__:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """Where a function and its module share a name, the package has the function."""

    def __setattr__(self, name: str, value: object) -> None:
        is_module = isinstance(value, ModuleType)
        if not (is_module and _HOMES.get(name, __name__) != __name__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

# Limits that threadpoolctl sets from now on hold for what is imported later. It takes no time.
for _name in ("_native", "threads"):
    importlib.import_module(f"{__name__}.{_name}")
