"""Clustering around centers: power k-means and its family, with scikit-learn's interface."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path
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


# Limits that threadpoolctl sets from now on hold for what is imported later. It takes no time.
for _name in ("_native", "system.threads"):
    importlib.import_module(f"{__name__}.{_name}")
