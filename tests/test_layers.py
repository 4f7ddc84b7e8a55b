"""A module imports from its own layer and those below, and each library only where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import powermeans

PACKAGE = Path(powermeans.power_mean.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# From the bottom. A folder is a room, and all its files are on its floor; what lies loose in the
# package is the mathematics, whose paths the documentation names.
MATHEMATICS = {
    "criteria",
    "critical",
    "metrics",
    "power_mean",
    "principal_axes",
    "rules",
    "schedules",
    "sums",
    "weighted_draws",
}
LAYERS: list[set[str]] = [
    {"errors", "types"},
    {"datasets", "divergences", "system", "tables"},
    MATHEMATICS,
    {"inputs"},
    {"sources"},
    {"rows"},
    {"loop", "parts"},
    {"seeds"},
    {"callbacks"},
    {"plots"},
    {"estimators"},
    {"choosing_k", "saving"},
    {"reporting"},
    {"command_line"},
    {"__main__"},
    {"__init__"},
]
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}

# Who may import what does not belong to the lower layers.
IMPORTERS = {
    "powermeans._native": {"rows/native.py"},
    "matplotlib": {"plots/canvas.py"},
    "dask": {"sources/cluster.py", "sources/dask.py"},
    "distributed": {"sources/cluster.py"},
    "typer": {"command_line/commands.py"},
    "rich": {
        "callbacks/progress_bar.py",
        "command_line/palettes.py",
        "command_line/screen.py",
    },
    "pyarrow": {"command_line/outputs.py"},
    "PIL": {"command_line/palettes.py"},
    "torch": {
        "rows/torch/admission.py",
        "rows/torch/divergences.py",
        "rows/torch/formulas.py",
        "rows/torch/fused.py",
        "rows/torch/nearness.py",
        "rows/torch/placing.py",
        "rows/torch/rows.py",
    },
    "tqdm": {"callbacks/progress_bar.py"},
    "triton": {"rows/torch/kernels.py"},
    "umap": {"plots/plane.py"},
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
    """The part of the package that a module belongs to, `None` for what is not ours or native.

    What is taken from the package itself comes through its public face.
    """
    root, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    if root != "powermeans" or part == "_native":
        return None
    return part if part in LAYER_OF else "__init__"


def upward_imports(layer: int, source: str) -> list[str]:
    """What a source in this layer imports from those above it."""
    parts = ((module, part_of(module)) for module in imported_modules(source))
    return [module for module, part in parts if part and LAYER_OF[part] > layer]


def layer_of(file: str) -> int:
    part = file.partition("/")[0].removesuffix(".py")
    assert part in LAYER_OF, f"{part} has no layer yet: give it one in this test"
    return LAYER_OF[part]


def importers_of(library: str, sources: dict[str, str]) -> set[str]:
    """Of these sources by file, those that import the library or a part of it."""
    return {
        file
        for file, source in sources.items()
        if any(f"{module}.".startswith(f"{library}.") for module in imported_modules(source))
    }


SOURCES = {file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8") for file in FILES}


@pytest.mark.parametrize("file", SOURCES)
def test_no_module_imports_upward(file: str) -> None:
    assert upward_imports(layer_of(file), SOURCES[file]) == []


def rooms_of_points(source: str) -> set[str]:
    """What a source imports from where points live, but the protocol."""
    return {
        module
        for module in imported_modules(source)
        if part_of(module) in {"parts", "rows", "sources"}
        and not module.startswith("powermeans.rows.protocol.")
    }


def test_the_loop_knows_points_only_through_the_protocol_of_rows() -> None:
    files = [file for file in SOURCES if file.startswith("loop/")]
    assert {file: found for file in files if (found := rooms_of_points(SOURCES[file]))} == {}
    assert rooms_of_points("from powermeans.rows import open_rows\nimport powermeans.parts")


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    assert importers_of(library, SOURCES) == IMPORTERS[library]


@pytest.mark.parametrize(
    "source",
    [
        "from powermeans.loop.anneal import anneal",
        "from powermeans import anneal",
        "import powermeans.loop.anneal",
        "def late():\n    import powermeans.loop.anneal as a",
        "if TYPE_CHECKING:\n    from powermeans.loop.anneal import anneal",
        "import powermeans",
        "from powermeans import KMeans",
    ],
)
def test_an_upward_import_is_found(source: str) -> None:
    assert len(upward_imports(layer_of("rows/reference.py"), source)) == 1


def test_imports_of_the_same_layer_and_of_those_below_are_not_upward() -> None:
    source = "import powermeans.rules\nfrom powermeans.rows.protocol import Rows\nimport numpy"
    assert upward_imports(layer_of("rows/reference.py"), source) == []


def test_a_relative_import_is_found() -> None:
    with pytest.raises(AssertionError, match="imports are absolute"):
        upward_imports(0, "from . import anneal")


def test_a_module_without_a_layer_is_found() -> None:
    with pytest.raises(AssertionError, match="novelty has no layer yet"):
        layer_of("novelty.py")


@pytest.mark.parametrize(
    "source",
    [
        "from powermeans import _native",
        "import powermeans._native",
        "from powermeans._native import Team",
        "def late():\n    from powermeans import errors, _native",
    ],
)
def test_a_second_importer_of_the_native_core_is_found(source: str) -> None:
    assert importers_of("powermeans._native", {"anneal.py": source}) == {"anneal.py"}


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert not {file.stem for file in FILES} & {"utils", "helpers", "common", "core", "misc"}
