"""The arguments and options of each command."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import version
from typing import Annotated, Any, get_type_hints

import typer

from powermeans_tables.command.failures import DATA, Failure
from powermeans_tables.command.options import DataFiles, Results, Rules, Wanted

app = typer.Typer(
    name="powermeans",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Cluster tables of numbers around centers: power k-means and its family.",
    epilog="Exit codes: 0 success, 2 wrong arguments, 3 unusable data, 4 unwritable output, 130 "
    "interrupted, 1 unexpected error.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_KINDS_OF_DATA = (
    "CSV, Excel, OpenDocument, JSON lines, SQLite, Parquet, Feather, NPY or NPZ, compressed or "
    "not; - is standard input."
)
_DATA_TO_EXPLAIN = f"{_KINDS_OF_DATA} Only --exact does without."
_Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help=f"{_KINDS_OF_DATA} Several files (of CSV, Parquet, Feather, NPY or NPZ), and folders "
        "of them, are read part by part.",
    ),
]
_Model = Annotated[str, typer.Argument(metavar="MODEL", help="File that fit --model wrote.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"powermeans {version('powermeans')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_tell_version),
    ] = False,
) -> None:
    pass


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command; the options of its dataclasses are options of the command."""
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if is_dataclass(each.annotation)
    }

    @functools.wraps(function)
    def run(**given: Any) -> None:
        _check_addresses()
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in _options_of(kind)})
        function(**given)

    own = [
        each.replace(kind=each.KEYWORD_ONLY)
        for each in signature.parameters.values()
        if each.name not in groups
    ]
    more = [each for kind in groups.values() for each in _options_of(kind)]
    # Typer reads the arguments and options of a command from its signature.
    run.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    registered: Callable[..., None] = app.command()(run)
    return registered


def _check_addresses() -> None:
    """Refuse a limit under which libraries of linear algebra hang or abort while they load."""
    if sys.platform == "win32" or "scipy.linalg" in sys.modules:
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    least = 10**9 + 2**26 * (os.cpu_count() or 1)  # each of their threads has its stack
    if resource.RLIM_INFINITY != limit < least:
        raise Failure(
            f"{limit:,} bytes of addresses, which ulimit -v allows, are not enough memory: "
            f"allow {least:,}",
            DATA,
        )


def _options_of(kind: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields of a dataclass that are options, as parameters of a function."""
    types, only = get_type_hints(kind), inspect.Parameter.KEYWORD_ONLY
    for one in sorted(fields(kind), key=lambda one: one.name not in kind.__annotations__):
        if "option" in one.metadata:
            hint, option = types[one.name], one.metadata["option"]
            annotation: Any = Annotated[hint, option]
            yield inspect.Parameter(one.name, only, default=one.default, annotation=annotation)


def _screen(as_json: bool, output: str | None = None) -> Any:
    from powermeans_tables.command.screen import Screen

    return Screen(as_json=as_json, to_stderr=output == "-")


@_command
def fit(data: _Data, wanted: Wanted, files: DataFiles, as_json: _Json = False) -> None:
    """Find clusters, and print a table of them.

    Of the scaled rows, spread is the root mean square distance from the mean of their cluster, and
    inertia is the sum of squared distances from the centers, or of those that --divergence names.

    Without --output, --model and --report, write the rows with their cluster and a report; of rows
    that are read part by part, the clusters alone.
    """
    if wanted.like is not None:
        wanted.refuse_beside_like(files)
    from powermeans_tables.command.fitting import fit as run

    more = {name: getattr(wanted, name) for name in ("memory_limit", "checkpoint", "verbose")}
    files = replace(files, paths=data, **more)
    run(files, wanted, _screen(as_json, wanted.output))


def _check_order(model: str, data: str) -> None:
    if data.endswith(".pm") and not model.endswith(".pm"):
        raise Failure(f"the model comes first, then the data: {data} {model}")


@_command
def predict(
    model: _Model, data: _Data, results: Results, files: DataFiles, as_json: _Json = False
) -> None:
    """Label new rows by a saved model.

    Without --output and --report, the labels go to the standard output.
    """
    from powermeans_tables.command.applying import predict as run

    _check_order(model, data[0])
    if results.output is None and results.report is None and not as_json:
        results = replace(results, output="-")
    more = {name: getattr(results, name) for name in ("memory_limit", "verbose")}
    files = replace(files, paths=data, **more)
    run(model, files, results, _screen(as_json, results.output))


@_command
def explain(
    model: _Model,
    files: DataFiles,
    asked: Rules,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=_DATA_TO_EXPLAIN)] = None,
    as_json: _Json = False,
) -> None:
    """Explain the clusters of a saved model by rules, and say what the rules cost."""
    from powermeans_tables.command.applying import explain_model, print_exact_query

    if asked.exact and asked.sql is None:
        raise Failure("--exact is for a query: name the table with --sql")
    if not asked.exact and data is None:
        raise Failure("DATA is missing: name the rows to explain after the model")
    _check_order(model, data or "")
    run = print_exact_query if asked.exact else explain_model
    run(model, replace(files, paths=[data or ""]), asked, _screen(as_json))


@app.command()
def info(as_json: _Json = False) -> None:
    """Show versions, instruction set and threads, for a bug report."""
    from powermeans.versions import show_versions, versions

    if as_json:
        _screen(as_json).tell_machines(versions())
    else:
        show_versions()
