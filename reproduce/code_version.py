"""Which code computes the cells of an item, so that rows of other code are not taken for its own.

What only presents the rows, tables and pictures, does not count: it may be mended without an hour
of computing. Comments and docstrings do not count either. Nor does the package itself: whoever
changes that asks for `--fresh`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

_PROJECT = "reproduce"
_START = "cells"

Definitions = dict[str, list[ast.stmt]]


def code_version(module: str) -> str:
    """A few letters that change with what `cells` of this module is made of.

    Parameters
    ----------
    module : str
        Such as `reproduce.items.table3`.

    Returns
    -------
    str
        From the definitions of the module that `cells` leads to, those that they take from other
        modules of `reproduce`, and the version number of powermeans.
    """
    parts = sorted(f"{where}:{ast.dump(_bare(node))}" for where, node in _reached(module))
    parts.append(version("powermeans"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _reached(module: str) -> Iterator[tuple[str, ast.stmt]]:
    """The statements behind `cells` and behind the names that occur in those, each once."""
    definitions = cache(_definitions)
    todo = [(module, _START)]
    seen: set[tuple[str, str]] = set()
    while todo:
        where, name = todo.pop()
        if (where, name) in seen:
            continue
        seen.add((where, name))
        for statement in definitions(where).get(name, []):
            yield where, statement
            todo += _origins(where, statement)


def _bare(statement: ast.stmt) -> ast.stmt:
    """The statement without docstrings; it is this module's own, and may be changed."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return statement


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a string by itself."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _origins(where: str, statement: ast.stmt) -> list[tuple[str, str]]:
    """Which names of which modules a statement leads to."""
    if isinstance(statement, ast.ImportFrom):
        source = statement.module or ""
        if source.partition(".")[0] != _PROJECT:
            return []
        whole = [(f"{source}.{alias.name}", "*") for alias in statement.names]
        parts = [(source, alias.name) for alias in statement.names]
        return [origin for origin in whole if _file_of(origin[0])] or parts
    return [(where, node.id) for node in ast.walk(statement) if isinstance(node, ast.Name)]


def _definitions(module: str) -> Definitions:
    """The statements of a module by the names that they bind; `*` has all of them."""
    file = _file_of(module)
    if file is None:
        return {}
    found: Definitions = {"*": []}
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        found["*"].append(statement)
        for name in _bound(statement):
            found.setdefault(name, []).append(statement)
    return found


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module binds, at any depth in its blocks."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return [node.id for node in stored if isinstance(node.ctx, ast.Store | ast.Del)]


def _file_of(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None
