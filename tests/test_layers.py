"""The folder is the floor: a module imports its own floor and those below, and none in a circle."""

import ast
import re

import pytest
import structure

# The floors of the package, from below. A folder that is missing here is found, and CONTRIBUTING.md
# has the same table.
FLOORS = [
    {"errors", "types", "system"},
    {"divergences", "mathematics"},
    {"points", "optimality"},
    {"engine", "metrics"},
    {"choosing_k"},
    {"estimators"},
    {"datasets", "plots", "relatives", "saving"},
    {"scale", "tensors"},
    {"app"},
]
FLOOR_OF = {place: number for number, floor in enumerate(FLOORS) for place in floor}
FACE = {"__init__", "__main__"}

# The only file of `points` that the loop knows; seeds, in a folder of their own, know more.
PROTOCOL = "powermeans.points.protocol"

# Which folders import a library that is optional, slow to import, or compiled.
IMPORTERS = {
    "PIL": {"app/command"},
    "dask": {"scale"},
    "distributed": {"scale"},
    "matplotlib": {"plots"},
    "pandas": set(),
    "pyarrow": {"app/command"},
    "rich": {"app/command"},
    "torch": {"tensors"},
    "tqdm": {"engine"},
    "typer": {"app/command"},
}

SOURCES = structure.read_sources(structure.PACKAGE)
FOLDERS = {name: structure.folder_of(source.file) for name, source in SOURCES.items()}
ARROWS = structure.arrows_between(SOURCES)
IMPORTS = [
    (name, one) for name, source in SOURCES.items() for one in structure.imports_in(source.tree)
]


def floor_of(place: str) -> int:
    assert place in FLOOR_OF, f"{place} is on no floor yet: say in this test which one"
    return FLOOR_OF[place]


def faults_of(source: structure.Source) -> list[str]:
    here = source.file.partition("/")[0].removesuffix(".py")  # the top folder, or a loose module
    if here in FACE or here == "app":
        return []
    taken = (one for one in structure.imports_in(source.tree) if one.name != "_native")
    faults = []
    for target in sorted({structure.target_of(one, SOURCES) for one in taken} - {None}):
        there = target.split(".")[1] if "." in target else "__init__"
        is_up = there in FACE or floor_of(there) > floor_of(here)
        is_past_protocol = source.file.count("/") == 1 and there == "points" and target != PROTOCOL
        if is_up or (here == "engine" and is_past_protocol):
            faults.append(target)
    return faults


def importers_of(library: str) -> set[str]:
    return {name for name, one in IMPORTS if f"{one.module}.{one.name}.".startswith(f"{library}.")}


def made_up(text: str, file: str = "engine/novelty.py") -> structure.Source:
    return structure.Source("powermeans." + file.removesuffix(".py").replace("/", "."), file, text)


def test_imports_run_down_and_libraries_are_imported_only_where_they_belong() -> None:
    faults = {name: faults_of(source) for name, source in SOURCES.items()}
    assert {name: targets for name, targets in faults.items() if targets} == {}
    assert (
        structure.circles_in(structure.running(structure.lift(ARROWS, FOLDERS), FOLDERS.values()))
        == []
    )
    assert structure.circles_in(structure.running(ARROWS, SOURCES)) == []
    text = (structure.PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (.*?) \|", text, flags=re.M)
    told = {place: int(floor) for floor, places in rows for place in re.findall(r"`(\w+)", places)}
    assert told == {place: number + 1 for place, number in FLOOR_OF.items()}
    found = {library: {FOLDERS[name] for name in importers_of(library)} for library in IMPORTERS}
    assert found == IMPORTERS
    assert importers_of("powermeans._native") == {"powermeans.points.compiled"}
    # The reference rows are for tests only.
    assert "powermeans.points.reference" not in {end for _, end in ARROWS}
    for folder in sorted(set(FOLDERS.values())):
        if folder == structure.FACE or not (structure.PACKAGE / folder).is_dir():
            assert folder in {*FLOOR_OF, structure.FACE}, f"{folder} lies in no folder"
            continue
        words = ast.get_docstring(SOURCES["powermeans." + folder.replace("/", ".")].tree) or ""
        assert words.count(".") >= 2, f"{folder}/__init__.py: say what belongs there"


FAULTY = """\
from powermeans.estimators.kmeans import KMeans
from powermeans.estimators import kmeans
import powermeans.estimators.kmeans
def late(): import powermeans.estimators.kmeans as k
if TYPE_CHECKING: from powermeans.estimators.kmeans import KMeans
import powermeans
from powermeans import KMeans
from powermeans.scale.executors import Executor
from powermeans.points.compiled import EuclideanRows
from powermeans.points.opening import open_rows
""".splitlines()


def test_what_the_engine_may_not_import_is_found_and_nothing_else_is() -> None:
    assert [len(faults_of(made_up(text))) for text in FAULTY] == [1] * len(FAULTY)
    below = "import powermeans.mathematics.rules\nfrom powermeans.points.protocol import Rows"
    assert faults_of(made_up(f"{below}\nimport numpy\nimport powermeans.engine.anneal")) == []
    with pytest.raises(ValueError, match="imports relatively"):
        faults_of(made_up("from . import anneal"))
    with pytest.raises(AssertionError, match="novelty is on no floor yet"):
        faults_of(made_up("import powermeans.errors", "novelty.py"))
    pair = {
        "powermeans.a": made_up("from powermeans.b import x", "a.py"),
        "powermeans.b": made_up("def late():\n    import powermeans.a", "b.py"),
    }
    assert structure.circles_in(structure.running(structure.arrows_between(pair), pair)) == [
        ["powermeans.a", "powermeans.b"]
    ]
