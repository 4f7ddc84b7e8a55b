"""A module imports from its own layer and those below, and each library only where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import powermeans

PACKAGE = Path(powermeans.power_mean.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# A folder stands for all the files in it. The public face imports from every layer.
LAYERS: list[set[str]] = [
    {"errors", "types"},
    {
        "critical_power",
        "divergences",
        "input_checks",
        "metrics",
        "power_mean",
        "rules",
        "schedules",
        "seeding",
        "sums",
        "threads",
    },
    {"rows"},
    {"anneal", "extent", "history", "repairs", "seeds", "stopping"},
    {"center_estimator", "functions", "kmeans", "power_kmeans"},
    {"versions"},
    {"__init__"},
]
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}

# Who may import what does not belong to the lower layers.
IMPORTERS = {
    "powermeans._native": {"rows/native.py"},
    "sklearn": {
        "center_estimator.py",
        "functions.py",
        "kmeans.py",
        "metrics.py",
        "power_kmeans.py",
    },
    "matplotlib": set(),
    "pandas": set(),
}


def imported_modules(source: str) -> Iterator[str]:
    """Each module that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str | None:
    """The part of the package that a module belongs to, `None` for what is not ours or native."""
    root, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    return part if root == "powermeans" and part != "_native" else None


def upward_imports(part: str, source: str) -> list[str]:
    """What a source in this part imports from layers above its own."""
    parts = ((module, part_of(module)) for module in imported_modules(source))
    return [module for module, other in parts if other and LAYER_OF[other] > LAYER_OF[part]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_module_imports_upward(file: Path) -> None:
    part = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert part in LAYER_OF, f"{part} has no layer yet: give it one in this test"
    assert upward_imports(part, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    importers = {
        file.relative_to(PACKAGE).as_posix()
        for file in FILES
        for module in imported_modules(file.read_text(encoding="utf-8"))
        if f"{module}.".startswith(f"{library}.")
    }
    assert importers == IMPORTERS[library]


def test_an_upward_import_is_found() -> None:
    source = "def late():\n    from powermeans.anneal import anneal\n"
    assert upward_imports("rows", source) == ["powermeans.anneal.anneal"]
    assert upward_imports("anneal", source) == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert not {file.stem for file in FILES} & {"utils", "helpers", "common", "core", "misc"}
