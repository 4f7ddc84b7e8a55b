"""Break the core of the package in many small ways, and count what the tests catch.

    python tests/mutants.py [--number 150] [--seed 1] [--jobs 2]

A mutant is a copy of the package with one expression changed. It is tried with the tests that
execute its lines, fastest first, until one fails. Which tests those are is measured once by a run
of all tests, and kept in `build/mutants` until sources or tests change. Needs fork.
"""

import argparse
import ast
import compileall
import importlib
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import coverage

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "powermeans"
WORK = ROOT / "build" / "mutants"
MAP = WORK / "map"
SECONDS_FOR_EACH = 240.0
# What tests import, so that each fork begins with it.
WARM = [
    "pytest", "hypothesis.extra.numpy", "scipy.optimize", "scipy.spatial", "scipy.stats",
    "sklearn.cluster", "sklearn.mixture", "sklearn.utils.estimator_checks", "pandas",
    "pyarrow.parquet", "matplotlib.pyplot", "dask.dataframe", "distributed",
]  # fmt: skip


ROOMS = ["mathematics", "divergences", "points", "engine", "methods", "optimality", "choosing_k"]
PAIRS = [
    *[(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitOr, ast.BitAnd), (ast.And, ast.Or)],
    *[(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)],
    *[(ast.In, ast.NotIn), (ast.FloorDiv, ast.Mod), (ast.Pow, ast.Mult)],
]
SWAPS = {**{after: before for before, after in PAIRS}, **dict(PAIRS)}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mutant(NamedTuple):
    """A change of one expression of a file, whose lines include the start of its statement."""

    file: str
    kind: str
    lines: list[int]
    begin: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.file}:{self.lines[-1]} {self.kind}: {before} -> {after}"


# Messages, types and decorators stay as they are.
KEPT = (ast.JoinedStr, ast.Raise, ast.Assert)
KEPT_FIELDS = {"annotation", "returns", "decorator_list"}


def walk(node: ast.AST, statement: ast.AST, names: dict[str, int] | None) -> Iterator[Any]:
    """Yield the nodes below with their statement, and with the names of their function."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if field in KEPT_FIELDS or not isinstance(child, ast.AST) or isinstance(child, KEPT):
                continue
            around = child if isinstance(child, ast.stmt) else statement
            inside = names_of(child) if isinstance(child, Function) else names
            yield child, around, inside
            yield from walk(child, around, inside)


def names_of(function: Function) -> dict[str, int]:
    """Return the arguments and variables of a function with the line that sets them first."""
    names = {arg.arg: 0 for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = min(node.lineno, names.get(node.id, node.lineno))
    return {name: line for name, line in names.items() if name not in {"self", "cls"}}


def swapped(node: Any) -> ast.AST | None:
    """Return the expression with another operator, or `None` if it has none that is swapped."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            fields = {**dict(ast.iter_fields(node)), "op": SWAPS[type(op)]()}
        case ast.Compare(ops=[op, *others]) if type(op) in SWAPS:
            fields = {**dict(ast.iter_fields(node)), "ops": [SWAPS[type(op)](), *others]}
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            return operand
        case _:
            return None
    return type(node)(**fields)


def changes(node: Any, names: dict[str, int] | None) -> Iterator[tuple[str, Any, str]]:
    """Yield what a node can become: the kind, the node that is replaced, and its new text."""
    is_type = names is None and isinstance(getattr(node, "op", None), ast.BitOr | ast.BitAnd)
    if not is_type and (other := swapped(node)) is not None:
        text = ast.unparse(ast.fix_missing_locations(other))
        yield "operator", node, text if isinstance(node, ast.AugAssign) else f"({text})"
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", node, str(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", node, repr(value * 1.5 or 1.0)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.UnaryOp) and ast.unparse(test) != "TYPE_CHECKING":
                yield "condition", test, f"(not ({ast.unparse(test)}))"
        case ast.Call():
            yield from (
                ("argument", node, ast.unparse(call)) for call in with_fewer_arguments(node)
            )
        case ast.Return(value=ast.expr() as value):
            known = [name for name, line in (names or {}).items() if line < node.lineno]
            yield from (("return", value, name) for name in known if name != ast.unparse(value))


def with_fewer_arguments(call: ast.Call) -> Iterator[ast.Call]:
    """Yield the call without its last of several positional arguments, and without each keyword."""
    if len(call.args) > 1 and not isinstance(call.args[-1], ast.Starred):
        yield ast.Call(call.func, call.args[:-1], call.keywords)
    for keyword in call.keywords:
        if keyword.arg is not None:
            others = [one for one in call.keywords if one is not keyword]
            yield ast.Call(call.func, call.args, others)


def mutants_of(package: Path, file: str) -> Iterator[Mutant]:
    """Yield all mutants of one file."""
    text = (package / file).read_bytes()
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
    tree = ast.parse(text)
    for node, statement, names in walk(tree, tree, None):
        for kind, old, after in changes(node, names):
            begin = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            lines = [statement.lineno, *range(old.lineno, old.end_lineno + 1)]
            yield Mutant(file, kind, lines, begin, end, text[begin:end].decode(), after)


def draw_mutants(package: Path, number: int, seed: int) -> list[Mutant]:
    """Draw mutants of all kinds in turn."""
    files = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    kinds = defaultdict(list)
    for path in files:
        for mutant in mutants_of(package, str(path.relative_to(package))):
            kinds[mutant.kind].append(mutant)
    by_chance = random.Random(seed)
    drawn = [by_chance.sample(found, min(number, len(found))) for _, found in sorted(kinds.items())]
    in_turn = (one for row in itertools.zip_longest(*drawn) for one in row if one is not None)
    return list(itertools.islice(in_turn, number))


class Recorder:
    """A plugin that notes which lines a test executes, and which ones the fixtures of its file."""

    def __init__(self, cover: Any) -> None:
        self.cover, self.seconds, self.failed = cover, defaultdict(float), set()

    def pytest_runtest_setup(self, item: Any) -> None:
        self.cover.switch_context(file_of(item.nodeid))

    def pytest_runtest_call(self, item: Any) -> None:
        self.cover.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)


class Chosen:
    """A plugin that runs some tests only, and writes down which one is running."""

    def __init__(self, tests: Iterable[str], running: Path) -> None:
        self.tests, self.running = set(tests), running

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running.write_text(nodeid)


def file_of(test: str) -> str:
    return test.partition("::")[0]


def run_pytest(files: Iterable[str], plugin: Any, *options: str) -> int:
    import pytest

    always = ("-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")
    return int(pytest.main([*always, *options, *files], plugins=[plugin]))


@cache
def copied() -> Path:
    """Copy the package with its compiled core for this process, and return the folder around it."""
    copy = WORK / f"copy-{os.getpid()}"
    shutil.copytree(PACKAGE, copy / "powermeans")
    find = [sys.executable, "-c", "import powermeans._native as core; print(core.__file__)"]
    core = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
    shutil.copy2(core, copy / "powermeans")
    compileall.compile_dir(copy, quiet=1)
    return copy


def fork(work: Callable[[], int]) -> int:
    """Start work in a fork that imports the copied package, and return its process id."""
    copy = copied()
    if pid := os.fork():
        return pid
    status = 3
    try:
        os.setsid()
        os.chdir(ROOT)
        with (copy / "log").open("a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        # An editable install would find the package elsewhere, and this script is in `tests`.
        sys.meta_path[:] = [one for one in sys.meta_path if "Redirect" not in type(one).__name__]
        sys.path[:] = [str(copy), *(one for one in sys.path if Path(one) != ROOT / "tests")]
        os.environ.update(PYTHONPATH=str(copy), CI="true", MPLBACKEND="Agg")
        sys.dont_write_bytecode = True
        status = work()
    finally:
        sys.stdout.flush()
        os._exit(status)


class Tests:
    """Which tests execute a line, and how long each takes."""

    def __init__(self) -> None:
        found = ROOT.glob("tests/**/test_*.py")
        self.files = sorted(str(path.relative_to(ROOT)) for path in found)
        self.sound: dict[str, bool] = {}  # whether a test passes alone where nothing is broken

    def needs_record(self) -> bool:
        paths = [*PACKAGE.rglob("*.py"), *(ROOT / file for file in self.files)]
        changed = max(path.stat().st_mtime for path in paths)
        return not MAP.exists() or MAP.stat().st_mtime < changed

    def record(self, share: slice) -> None:
        """Run a share of the files, and keep what passes, its seconds and its lines."""
        stem = MAP / str(share.start)

        def work() -> int:
            rooms = [f"{copied()}/powermeans/{room}/*" for room in ROOMS]
            cover = coverage.Coverage(data_file=f"{stem}.coverage", include=rooms)
            recorder = Recorder(cover)
            cover.start()
            run_pytest(self.files[share], recorder, "--continue-on-collection-errors")
            cover.stop()
            cover.save()
            passed = {k: s for k, s in recorder.seconds.items() if k not in recorder.failed}
            Path(f"{stem}.json").write_text(json.dumps(passed))
            return 0

        if os.waitpid(fork(work), 0)[1]:
            raise RuntimeError(f"the tests ended early: see {copied()}/log")

    @cached_property
    def seconds(self) -> dict[str, float]:
        maps = [json.loads(path.read_text()) for path in MAP.glob("*.json")]
        return {test: seconds for one in maps for test, seconds in one.items()}

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant, or its file if only imports do; fastest first."""
        by_line: dict[int, set[str]] = defaultdict(set)
        for path in MAP.glob("*.coverage"):
            data = coverage.CoverageData(str(path))
            data.read()
            for name in data.measured_files():
                if name.endswith(f"/powermeans/{mutant.file}"):
                    for line, contexts in data.contexts_by_lineno(name).items():
                        by_line[line].update(contexts)
        contexts = set().union(*(by_line[line] for line in mutant.lines)) - {""}
        contexts = contexts or set().union(*by_line.values())
        found = [test for test in self.seconds if {test, file_of(test)} & contexts]
        return sorted(found, key=self.seconds.__getitem__)


def run(chosen: list[str], tests: Tests) -> str:
    """Run tests until one fails, and say how; no word if none does in time."""
    running = copied() / "running"
    running.write_text("")

    def work() -> int:
        for batch in filter(None, (chosen[:40], chosen[40:240], chosen[240:])):
            status = run_pytest(dict.fromkeys(map(file_of, batch)), Chosen(batch, running), "-x")
            if status not in {0, 5}:  # 5: none of these tests is there
                return status
        return 0

    pid, started = fork(work), time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        test, seconds = running.read_text(), time.time() - running.stat().st_mtime
        if ended:
            return f"{'failed' if os.WIFEXITED(status) else 'crashed'} {test}" if status else ""
        hangs = seconds > 60 + 10 * tests.seconds.get(test, 10)
        if hangs or time.monotonic() - started > SECONDS_FOR_EACH:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"hung {test}" if hangs else ""
        time.sleep(0.05)


def judge(mutant: Mutant, tests: Tests) -> tuple[Mutant, str, int]:
    """Try a mutant, and doubt a test that fails alone without it too; count what executes it."""
    path, chosen = copied() / "powermeans" / mutant.file, tests.of(mutant)
    text = path.read_bytes()
    while True:
        path.write_bytes(text[: mutant.begin] + mutant.after.encode() + text[mutant.end :])
        caught = run([test for test in chosen if tests.sound.get(test, True)], tests)
        shutil.copy2(PACKAGE / mutant.file, path)
        if (test := caught.partition(" ")[2]) and test not in tests.sound:
            tests.sound[test] = not run([test], tests)
        if tests.sound.get(test, True):
            return mutant, caught, len(chosen)


def main() -> None:
    """Draw mutants, try them, and print the caught ones by room and the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=150, help="mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    mutants = draw_mutants(PACKAGE, asked.number, asked.seed)
    for name in WARM:
        importlib.import_module(name)
    for copy in WORK.glob("copy-*"):
        shutil.rmtree(copy)
    tests, survivors, n_caught = Tests(), [], Counter[str]()
    with multiprocessing.get_context("fork").Pool(asked.jobs) as pool:
        if tests.needs_record():
            print("running the tests once, to see what they execute", flush=True)
            shutil.rmtree(MAP, ignore_errors=True)
            MAP.mkdir(parents=True)
            pool.map(tests.record, [slice(i, None, asked.jobs) for i in range(asked.jobs)], 1)
        print(f"{len(tests.seconds)} tests pass")
        for mutant, caught, n_tests in pool.imap_unordered(partial(judge, tests=tests), mutants):
            print(mutant, caught or f"survived {n_tests} tests that execute it", flush=True)
            n_caught[mutant.file.split("/")[0]] += bool(caught)
            survivors += [] if caught else [mutant]
    print(
        f"\n{n_caught.total()} of {len(mutants)} are caught: {dict(n_caught)}", *survivors, sep="\n"
    )


if __name__ == "__main__":
    main()
