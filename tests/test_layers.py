"""The folder is the floor: a module imports its own floor and those below, and none in a circle."""

import ast
import re

import numpy as np
import structure

from powermeans import KMeans, PowerKMeans

# The floors of the package, from below. A folder that is missing here is found, and CONTRIBUTING.md
# has the same table.
FLOORS = [
    {"errors", "types", "system"},
    {"divergences", "mathematics"},
    {"points", "optimality"},
    {"engine", "metrics", "versions"},
    {"choosing_k"},
    {"methods"},
    {"plots", "saving"},
    {"explaining"},
    {"scale", "tensors"},
    {"tables"},
]
FLOOR_OF = {place: number for number, floor in enumerate(FLOORS) for place in floor}
FACE = {"__init__", "__main__", "datasets"}

# The only file of `points` that the loop knows; seeds, in a folder of their own, know more.
PROTOCOL = "powermeans.points.protocol"

# Which folders import a library that is optional, slow to import, or compiled.
IMPORTERS = {
    "PIL": set(),
    "dask": {"scale"},
    "distributed": {"scale"},
    "matplotlib": {"plots"},
    "pandas": set(),
    "duckdb": {"tables/reading"},
    "openpyxl": {"tables/reading"},
    "pyarrow": set(),
    "python_calamine": {"tables/reading"},
    "rich": {"tables/command"},
    "torch": {"tensors"},
    "tqdm": {"methods"},
    "typer": {"tables/command"},
}

# What the code may take at most. Who lifts a number says in the message of the commit what the
# growth replaces, and why nothing else goes for it.
BUDGET = {
    "lines of powermeans": 36965,
    "lines of powermeans_tables": 11007,
    "lines of native": 13417,
    "lines of tests": 27890,
    "lines of benchmarks": 5998,
    "lines of reproduce": 7986,
    "classes": 312,
    "files until the first sweep of PowerKMeans": 30,
    "functions until the first sweep of PowerKMeans": 160,
    "depth of the first sweep of PowerKMeans": 15,
    "files until the first sweep of KMeans": 22,
    "functions until the first sweep of KMeans": 94,
    "depth of the first sweep of KMeans": 10,
    "parameters of PowerKMeans": 16,
    "words on PowerKMeans": 961,
}

SOURCES = structure.read_sources(structure.PACKAGE, structure.TABLES)
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
    if here in FACE or here == "tables":
        return []
    taken = (one for one in structure.imports_in(source.tree) if one.name != "_native")
    faults = []
    for target in sorted({structure.target_of(one, SOURCES) for one in taken} - {None}):
        place = SOURCES[target].file.partition("/")[0].removesuffix(".py")
        there = place if place in FLOOR_OF else "__init__"
        is_up = there in FACE or floor_of(there) > floor_of(here)
        is_past_protocol = source.file.count("/") == 1 and there == "points" and target != PROTOCOL
        if is_up or (here == "engine" and is_past_protocol):
            faults.append(target)
    return faults


def importers_of(library: str) -> set[str]:
    return {name for name, one in IMPORTS if f"{one.module}.{one.name}.".startswith(f"{library}.")}


def test_imports_run_down_and_libraries_are_imported_only_where_they_belong() -> None:
    faults = {name: faults_of(source) for name, source in SOURCES.items()}
    assert {name: targets for name, targets in faults.items() if targets} == {}
    assert (
        structure.circles_in(structure.running(structure.lift(ARROWS, FOLDERS), FOLDERS.values()))
        == []
    )
    assert structure.circles_in(structure.running(ARROWS, SOURCES)) == []
    # Entry points lead to people's tables; only the public face knows their package.
    knowing = {name for name, source in SOURCES.items() if "powermeans_tables" in source.text}
    assert {FOLDERS[name] for name in knowing if "tables" not in name} == {structure.FACE}
    text = (structure.PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", text, flags=re.M)
    told = {place: int(floor) for floor, places in rows for place in re.findall(r"`(\w+)", places)}
    assert told == {place: number + 1 for place, number in FLOOR_OF.items()}
    found = {library: {FOLDERS[name] for name in importers_of(library)} for library in IMPORTERS}
    assert found == IMPORTERS
    assert importers_of("powermeans._native") == {"powermeans.points.compiled"}
    # The reference rows are for tests only.
    assert "powermeans.points.reference" not in {end for _, end in ARROWS}
    for folder in sorted(set(FOLDERS.values())):
        dotted = folder.replace("/", ".").replace("tables.", "powermeans_tables.", 1)
        source = SOURCES.get(dotted if "powermeans" in dotted else f"powermeans.{dotted}")
        if source is None or not source.file.endswith("__init__.py"):
            assert folder in {structure.FACE, *FLOOR_OF}, f"{folder} lies in no folder"
            continue
        words = ast.get_docstring(source.tree) or ""
        assert words.count(".") >= 2, f"{folder}/__init__.py: say what belongs there"


def test_an_import_that_runs_up_is_found() -> None:
    text = "import numpy, powermeans.engine.fit\ndef late(): import powermeans.methods.kmeans"
    source = structure.Source("powermeans.engine.novelty", "engine/novelty.py", text)
    assert faults_of(source) == ["powermeans.methods.kmeans"]


def spent() -> dict[str, int]:
    root = structure.PACKAGE.parents[1]
    src = {"powermeans": "src/powermeans", "powermeans_tables": "src/powermeans_tables"}
    found = {}
    for name in ("powermeans", "powermeans_tables", "native", "tests", "benchmarks", "reproduce"):
        found[f"lines of {name}"] = structure.lines_of(root / src.get(name, name))
    trees = [source.tree for name, source in SOURCES.items() if "powermeans_tables" not in name]
    nodes = (node for tree in trees for node in ast.walk(tree))
    found["classes"] = sum(isinstance(node, ast.ClassDef) for node in nodes)
    points = np.random.default_rng(0).normal(size=(500, 3))
    for kind in (PowerKMeans, KMeans):
        kind(8, random_state=0).fit(points)  # which imports what comes late
        course = structure.path_to_first_sweep(lambda: kind(8, random_state=0).fit(points))  # noqa: B023
        found[f"files until the first sweep of {kind.__name__}"] = course.files
        found[f"functions until the first sweep of {kind.__name__}"] = course.functions
        found[f"depth of the first sweep of {kind.__name__}"] = course.depth
    found["parameters of PowerKMeans"] = len(PowerKMeans().get_params())
    found["words on PowerKMeans"] = len((PowerKMeans.__doc__ or "").split())
    return found


def test_the_package_keeps_to_its_budget() -> None:
    found = spent()
    assert {name: n for name, n in found.items() if n > BUDGET[name]} == {}
    assert found.keys() == BUDGET.keys()


def users_of(module: str) -> set[str]:
    """Name the methods and the other folders that import a module."""
    users = {start for start, end in ARROWS if end == module}
    methods = "powermeans.methods."
    return {one.removeprefix(methods).split(".")[0] if methods in one else one for one in users}


def test_what_only_one_method_uses_lies_with_it() -> None:
    shared = {"base", "functions"}  # which are no methods
    of_methods = {file.stem for file in (structure.PACKAGE / "methods").iterdir()} - shared
    lonely = {}
    for name in SOURCES:
        if name.startswith(("powermeans.points.", "powermeans.engine.", "powermeans.mathematics.")):
            users = users_of(name)
            if len(users) == 1 and users <= of_methods:
                lonely[name] = users
    assert lonely == {}
