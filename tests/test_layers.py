"""The folder is the layer: a module imports only what its room may, and there is no circle."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import structure
from structure import PACKAGE, Source, arrows_between, circles_in, imports_in, lift, running

# What lies loose in the package: the words that all rooms share, and the mathematics.
SHARED = {"errors", "types"}
MATHEMATICS = {
    "criteria",
    "critical",
    "metrics",
    "power_mean",
    "principal_axes",
    "rules",
    "schedules",
    "size_limits",
    "sums",
    "weighted_draws",
}
FORMULAS = MATHEMATICS | {"divergences", "system"}
POINTS = FORMULAS | {"inputs", "parts", "rows", "sources"}
FITS = POINTS | {"bounds", "loop", "seeds"}

# What each room may import besides itself and `SHARED`, from the bottom. A room without an entry is
# found, and CONTRIBUTING.md has the same table.
MAY_IMPORT: dict[str, set[str]] = {
    **{room: set() for room in (*SHARED, "divergences", "system", "tables")},
    "datasets": {"system"},
    **dict.fromkeys(MATHEMATICS, FORMULAS),
    "metrics": FORMULAS | {"inputs"},
    "bounds": FORMULAS,
    "inputs": FORMULAS,
    "sources": FORMULAS | {"inputs", "tables"},
    "rows": FORMULAS | {"inputs"},
    "loop": MATHEMATICS | {"rows"},
    "parts": FORMULAS | {"inputs", "rows", "sources"},
    "seeds": FORMULAS | {"loop", "parts", "rows"},
    "callbacks": {"loop", "system"},
    "plots": MATHEMATICS | {"callbacks", "system"},
    "estimators": FITS | {"callbacks"},
    "saving": FITS | {"estimators"},
    "choosing_k": FITS | {"callbacks", "estimators"},
    "reporting": FITS | {"callbacks", "plots"},
}
EVERYTHING = {"command_line", "__main__", "__init__"}
ROOMS = MAY_IMPORT.keys() | EVERYTHING
LOOSE = SHARED | MATHEMATICS | {"__init__", "__main__", "callbacks", "saving"}

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
    "rich": {"command_line"},
    "torch": {"rows"},
    "tqdm": {"callbacks"},
    "typer": {"command_line"},
}

SOURCES = structure.read_sources(PACKAGE)


def place_of(source: Source) -> str:
    """Return the room of a module, or its own name where it is loose in the package."""
    first = source.file.partition("/")[0].removesuffix(".py")
    assert first in ROOMS, f"{first} is no room yet: say in this test what it may import"
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
            is_face = first not in ROOMS
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
    allowed = {"__init__", *ROOMS} if here in EVERYTHING else {here} | SHARED | MAY_IMPORT[here]
    faults = []
    for target in sorted(targets_of(source)):
        there = target.split(".")[1]
        is_inside = here == "loop" and there == "rows" and target != PROTOCOL
        if there not in allowed or is_inside:
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


def test_the_table_for_contributors_says_what_each_room_may_import() -> None:
    text = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = {}
    for places, allowed in re.findall(r"^\| (`\w+/`.*?) \| .* \| (.*?) \|$", text, flags=re.M):
        rooms = set(re.findall(r"`(\w+)/?`", allowed)) | {
            name for name in MATHEMATICS if "mathematics" in allowed
        }
        told |= dict.fromkeys(re.findall(r"`(\w+)/`", places), rooms)
    assert told.pop("command_line") == set()  # everything
    assert told == {room: MAY_IMPORT[room] for room in MAY_IMPORT.keys() - SHARED - MATHEMATICS}


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
