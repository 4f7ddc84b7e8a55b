"""Small changes of expressions of the package: another operator, constant, name or argument."""

import ast
import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOMS = ["mathematics", "divergences", "points", "engine", "estimators", "optimality", "choosing_k"]
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
