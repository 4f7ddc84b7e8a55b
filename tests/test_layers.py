"""The folder is the layer: a module imports only what its room may, and there is no circle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import structure
from structure import PACKAGE, Source, arrows_between, circles_in, imports_in, lift, running

# From the bottom. What lies loose in the package is the mathematics and the words that all share.
FLOORS: list[set[str]] = [
    {"types", "errors"},
    {"datasets", "divergences", "system", "tables"},
    {
        "criteria",
        "critical",
        "metrics",
        "power_mean",
        "principal_axes",
        "rules",
        "schedules",
        "sums",
        "weighted_draws",
    },
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
FLOOR_OF = {place: floor for floor, places in enumerate(FLOORS) for place in places}
LOOSE = FLOORS[0] | FLOORS[2] | {"__init__", "__main__"}

# Rooms that may not import all of what is below them.
NARROW = {
    "tables": FLOORS[0],
    "datasets": FLOORS[0],
    "system": FLOORS[0],
    "loop": FLOORS[0] | FLOORS[2] | {"rows"},
    "callbacks": FLOORS[0] | {"loop", "sources", "system"},
    "plots": FLOORS[0] | FLOORS[2] | {"callbacks", "system"},
}
# The only file of `rows` that the loop knows.
PROTOCOL = "powermeans.rows.protocol"

# Which rooms import a library that is optional, slow to import, or compiled.
IMPORTERS = {
    "PIL": {"command_line"},
    "dask": {"sources"},
    "distributed": {"sources"},
    "matplotlib": {"plots"},
    "pandas": set(),
    "pyarrow": {"command_line"},
    "rich": {"callbacks", "command_line"},
    "torch": {"rows"},
    "tqdm": {"callbacks"},
    "triton": {"rows"},
    "typer": {"command_line"},
    "umap": {"plots"},
}

SOURCES = structure.read_sources(PACKAGE)


def place_of(source: Source) -> str:
    """Return the room of a module, or its own name where it is loose in the package."""
    first = source.file.partition("/")[0].removesuffix(".py")
    assert first in FLOOR_OF, f"{first} is no room yet: give it a floor in this test"
    return first


def targets_of(source: Source) -> set[str]:
    """Return the modules of the package that a source imports, wherever in it.

    What is taken from the package itself comes through its public face.
    """
    found = set()
    for one in imports_in(source.tree):
        root, _, rest = f"{one.module}.{one.name or ''}".partition(".")
        if root == "powermeans" and not rest.startswith("_native"):
            first = rest.partition(".")[0]
            is_face = first not in FLOOR_OF
            found.add("powermeans.__init__" if is_face else longest_module(f"powermeans.{rest}"))
    return found


def longest_module(name: str) -> str:
    """Return the module that a dotted name leads to, which may end in what the module defines."""
    while name not in SOURCES:
        name = name.rpartition(".")[0]
    return name


def faults_of(source: Source) -> list[str]:
    """Return what a source imports and may not."""
    here = place_of(source)
    faults = []
    for target in sorted(targets_of(source)):
        there = target.split(".")[1]
        is_above = FLOOR_OF[there] > FLOOR_OF[here]
        is_foreign = there != here and here in NARROW and there not in NARROW[here]
        is_inside = here == "loop" and there == "rows" and target != PROTOCOL
        if is_above or is_foreign or is_inside:
            faults.append(target)
    return faults


def importers_of(library: str, sources: dict[str, Source]) -> set[str]:
    """Return the places that import a library or a part of it."""
    return {
        place_of(source)
        for source in sources.values()
        for one in imports_in(source.tree)
        if f"{one.module}.{one.name}.".startswith(f"{library}.")
    }


def made_up(text: str, file: str = "loop/novelty.py") -> Source:
    return Source("powermeans." + file.removesuffix(".py").replace("/", "."), file, text)


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_imports_only_what_its_room_may(name: str) -> None:
    assert faults_of(SOURCES[name]) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    places = {name: place_of(source) for name, source in SOURCES.items()}
    arrows = lift(arrows_between(SOURCES), places)
    assert circles_in(running(arrows, places.values())) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles_in(running(arrows_between(SOURCES), SOURCES)) == []


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    assert importers_of(library, SOURCES) == IMPORTERS[library]


def test_only_one_module_imports_the_compiled_core() -> None:
    found = [
        name
        for name, source in SOURCES.items()
        if any("_native" in (one.module + "." + str(one.name)) for one in imports_in(source.tree))
    ]
    assert found == ["powermeans.rows.native"]


@pytest.mark.parametrize("room", sorted({s.file.split("/")[0] for s in SOURCES.values()} - LOOSE))
def test_each_room_says_what_belongs_there(room: str) -> None:
    if room.endswith(".py"):
        assert room.removesuffix(".py") in LOOSE, f"{room} lies in no room"
        return
    words = ast.get_docstring(SOURCES[f"powermeans.{room}"].tree)
    assert words is not None
    assert words.count(".") >= 2, f"{room}/__init__.py: say what belongs there and what it imports"


def test_the_reference_rows_are_for_tests_only() -> None:
    importers = structure.importers_in(arrows_between(SOURCES), SOURCES)
    assert importers["powermeans.rows.reference"] == set()


def test_no_file_has_a_name_that_says_nothing() -> None:
    stems = {Path(source.file).stem for source in SOURCES.values()}
    assert not stems & {"utils", "helpers", "common", "core", "misc"}


# The checks themselves can fail.


@pytest.mark.parametrize(
    "text",
    [
        "from powermeans.estimators.kmeans import KMeans",
        "from powermeans.estimators import kmeans",
        "import powermeans.estimators.kmeans",
        "def late():\n    import powermeans.estimators.kmeans as k",
        "if TYPE_CHECKING:\n    from powermeans.estimators.kmeans import KMeans",
        "import powermeans",
        "from powermeans import KMeans",
        "from powermeans.parts.executors import Executor",
        "from powermeans.rows.native import NativeRows",
        "from powermeans.rows import open_rows",
    ],
)
def test_an_import_that_a_room_may_not_make_is_found(text: str) -> None:
    assert len(faults_of(made_up(text))) == 1


def test_imports_of_the_same_room_and_of_those_below_are_allowed() -> None:
    text = "import powermeans.rules\nfrom powermeans.rows.protocol import Rows\nimport numpy"
    assert faults_of(made_up(text)) == []


def test_a_relative_import_is_found() -> None:
    with pytest.raises(ValueError, match="imports relatively"):
        faults_of(made_up("from . import anneal"))


def test_a_module_without_a_room_is_found() -> None:
    with pytest.raises(AssertionError, match="novelty is no room yet"):
        place_of(made_up("", "novelty.py"))


def test_a_circle_is_found() -> None:
    pair = {
        "powermeans.a": made_up("from powermeans.b import x", "a.py"),
        "powermeans.b": made_up("def late():\n    import powermeans.a", "b.py"),
    }
    assert circles_in(running(arrows_between(pair), pair)) == [["powermeans.a", "powermeans.b"]]
