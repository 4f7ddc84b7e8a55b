"""Measure how the package is laid out: folders, imports, circles, lines and functions.

Folders are those of `powermeans` to the second level, and those of `powermeans_tables` below
`tables/`; a loose module of a root counts as one. The public face (`__init__.py`, `__main__.py` and
`datasets.py` of the root) is none: it may import everything.

An arrow leads from a module to one that it imports, inside functions and under `TYPE_CHECKING`
too. A name that an `__init__.py` only passes on leads to the module that defines it, and such an
`__init__.py` counts as the importer of none. Circles leave out imports under `TYPE_CHECKING`, which
never run. Imports by `importlib` are not seen.

The length of a body is its lines of code: no docstring, comment or blank line. Bodies without
code, such as those of a protocol, do not count.
"""

import ast
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "powermeans"
TABLES = PACKAGE.with_name("powermeans_tables")
FACE = "public face"
LONGEST_BODY, SHORT_BODY = 40, 13

Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = dict[str, set[str]]
# Whether the first module imports the second only for types.
Arrows = dict[tuple[str, str], bool]


class Import(NamedTuple):
    """What one import takes: a name of a module, or the module itself where the name is `None`."""

    module: str
    name: str | None
    only_for_types: bool


@dataclass(frozen=True)
class Source:
    """One file of Python, with its dotted name and its path in the package."""

    name: str
    file: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def passes_on(self) -> bool:
        return Path(self.file).name == "__init__.py" and all(
            isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
            for node in self.tree.body
        )

    def length(self, function: Function) -> int:
        body = function.body[ast.get_docstring(function) is not None :]
        lines = self.lines[body[0].lineno - 1 : function.end_lineno] if body else []
        return sum(not re.match(r"\s*(#|$)", line) for line in lines)


def read_sources(*packages: Path) -> dict[str, Source]:
    sources = {}
    for path in sorted(path for package in packages for path in package.rglob("*.py")):
        place = path.relative_to(PACKAGE.parent)
        parts = place.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        root = "tables" if parts[0] == TABLES.name else ""
        file = Path(root, *place.parts[1:]).as_posix()
        sources[name] = Source(name, file, path.read_text(encoding="utf-8"))
    return sources


def folder_of(file: str) -> str:
    """Name the folder of a file, whose path is relative to the package, to the second level."""
    folder, _, name = file.rpartition("/")
    if folder:
        return "/".join(folder.split("/")[:2])
    is_face = name in {"__init__.py", "__main__.py", "datasets.py"}
    return FACE if is_face else name.removesuffix(".py")


def imports_in(node: ast.AST, only_for_types: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, None, only_for_types) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.level or child.module is None:
                raise ValueError(f"line {child.lineno} imports relatively: name the package")
            yield from (Import(child.module, alias.name, only_for_types) for alias in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from imports_in(ast.Module(child.body, []), only_for_types=True)
            yield from imports_in(ast.Module(child.orelse, []), only_for_types)
        else:
            yield from imports_in(child, only_for_types)


def target_of(found: Import, sources: Mapping[str, Source]) -> str | None:
    """Name the module that an import leads to, `None` for one that is not among the sources."""
    as_module = f"{found.module}.{found.name}"
    if found.name is not None and as_module in sources:
        return as_module
    source = sources.get(found.module)
    if source is not None and source.passes_on:
        for passed in imports_in(source.tree):
            if passed.name == found.name:
                return target_of(passed, sources)
    return None if source is None else source.name


def arrows_between(sources: Mapping[str, Source]) -> Arrows:
    arrows: Arrows = {}
    for source in sources.values():
        for found in imports_in(source.tree):
            target = target_of(found, sources)
            if target is not None and target != source.name:
                pair = source.name, target
                arrows[pair] = arrows.get(pair, True) and found.only_for_types
    return arrows


def lift(arrows: Arrows, place: Mapping[str, str]) -> Arrows:
    lifted: Arrows = {}
    for (start, end), only_for_types in arrows.items():
        pair = place[start], place[end]
        if pair[0] != pair[1]:
            lifted[pair] = lifted.get(pair, True) and only_for_types
    return lifted


def running(arrows: Arrows, nodes: Iterable[str]) -> Graph:
    """Return what each node leads to, without arrows that are only for types."""
    graph: Graph = {node: set() for node in nodes}
    for (start, end), only_for_types in arrows.items():
        graph[start] |= set() if only_for_types else {end}
    return graph


def circles_in(graph: Graph) -> list[list[str]]:
    reached: Graph = {}
    for start in graph:
        reached[start], waiting = set(), [start]
        while waiting:
            new = graph[waiting.pop()] - reached[start]
            reached[start] |= new
            waiting.extend(new)
    circles = {
        frozenset(other for other in reached[node] if node in reached[other])
        for node in graph
        if node in reached[node]
    }
    return sorted(sorted(circle) for circle in circles)


def functions_in(node: ast.AST, where: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        inner = f"{where}.{child.name}" if isinstance(child, Function | ast.ClassDef) else where
        if isinstance(child, Function):
            yield inner, child
        yield from functions_in(child, inner)


class Course(NamedTuple):
    """What runs of this package from the call of a function until the first sweep ends."""

    files: int
    functions: int
    depth: int  # of calls within each other


def path_to_first_sweep(call: Callable[[], object]) -> Course:
    seen, depth, deepest, is_over = set[Any](), 0, 0, False

    def watch(frame: Any, event: str, _: object) -> None:
        nonlocal depth, deepest, is_over
        code = frame.f_code
        if is_over or event not in ("call", "return") or str(PACKAGE) not in code.co_filename:
            return
        if event == "call":
            seen.add(code)
        depth += 1 if event == "call" else -1
        deepest = max(deepest, depth)
        is_over = event == "return" and code.co_name == "sweep"

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    names = {code for code in seen if not code.co_name.startswith("<")}
    return Course(len({code.co_filename for code in names}), len(names), deepest)


def lines_of(folder: Path) -> int:
    """Count the lines of code in a folder."""
    files = (file for file in folder.rglob("*") if file.suffix in {".py", ".pyi", ".cpp", ".hpp"})
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def report_on_folders(arrows: Arrows, sources: Mapping[str, Source]) -> Iterator[str]:
    folders = {name: folder_of(source.file) for name, source in sources.items()}
    between = lift(arrows, folders)
    yield "## Folders\n\n| folder | files | lines | imports |\n|---|---:|---:|---|"
    for folder in sorted(set(folders.values())):
        lengths = [len(s.lines) for name, s in sources.items() if folders[name] == folder]
        imported = ", ".join(sorted(end for start, end in between if start == folder))
        yield f"| {folder} | {len(lengths)} | {sum(lengths)} | {imported} |"
    for what, found, nodes in (
        ("folders", between, folders.values()),
        ("modules", arrows, sources),
    ):
        graph = running(found, nodes)
        circles = circles_in(graph)
        yield f"\n{len(graph)} {what}, {len(found)} arrows, {len(circles)} circles"
        yield from (f"- circle: {' ↔ '.join(circle)}" for circle in circles)


def report_on_code(sources: Mapping[str, Source]) -> Iterator[str]:
    yield "\n## Functions"
    functions = [(s, *found) for s in sources.values() for found in functions_in(s.tree, s.name)]
    lengths = {name: source.length(function) for source, name, function in functions}
    bodies = [length for length in lengths.values() if length]
    short = sum(length < SHORT_BODY for length in bodies) / len(bodies)
    yield f"{len(bodies)} bodies, median {statistics.median(bodies)} lines"
    yield f"{short:.1%} of the bodies under {SHORT_BODY} lines"
    large = sorted((-n, name) for name, n in lengths.items() if n > LONGEST_BODY)
    yield f"\n{len(large)} functions with more than {LONGEST_BODY} lines"
    yield from (f"- {-n} {name}" for n, name in large)


def main() -> None:
    everything = read_sources(PACKAGE, TABLES)
    sources = {name: s for name, s in everything.items() if folder_of(s.file) != FACE}
    print(*report_on_folders(arrows_between(sources), sources), sep="\n")
    print(*report_on_code(everything), sep="\n")


if __name__ == "__main__":
    main()
