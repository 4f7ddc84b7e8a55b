"""The arguments and options of each command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

from powermeans.app.command.failures import Failure
from powermeans.app.command.sources import DataFiles
from powermeans.app.command.wanted import (
    Added,
    Json,
    LabelsOnly,
    Memory,
    Names,
    Output,
    Quiet,
    Scaling,
    Seconds,
    Seed,
    Threads,
    Wanted,
    names_of_clusters,
)

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
_ONE_FILE: Any = Annotated[str, typer.Argument(metavar="DATA", help=_KINDS_OF_DATA)]
_FILE_OR_NONE: Any = Annotated[str | None, typer.Argument(metavar="DATA", help=_KINDS_OF_DATA)]
_FILES: Any = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help=f"{_KINDS_OF_DATA} Several files, and folders of them, are read part by part.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="File that fit --model wrote.")]


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"powermeans {_version('powermeans')}")
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


def _options_of(kind: type) -> list[inspect.Parameter]:
    """Return the annotated fields of a dataclass as parameters of a command."""
    types, named = get_type_hints(kind, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(one.name, named, default=one.default, annotation=types[one.name])
        for one in fields(kind)
        if get_origin(types[one.name]) is Annotated
    ]


def _reading(
    data: Any, default: Any = inspect.Parameter.empty, wanted: type | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the argument `data` and options in place of a command's `files` and `wanted`."""
    options = _options_of(DataFiles)
    of_wanted = [] if wanted is None else _options_of(wanted)

    def give_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(data: str | list[str] | None, **given: Any) -> None:
            reading = {option.name: given.pop(option.name) for option in options}
            if wanted is not None:
                given["wanted"] = wanted(**{one.name: given.pop(one.name) for one in of_wanted})
            paths = [data] if isinstance(data, str) else data or []
            command(files=DataFiles(tuple(paths), **reading), **given)

        own = dict(inspect.signature(command, eval_str=True).parameters)
        own["files"] = own["files"].replace(name="data", annotation=data, default=default)
        own.pop("wanted", None)
        every = (*own.values(), *of_wanted, *options)
        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in every]
        # Typer reads the arguments and options of a command from its signature.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return give_options


def _screen(*, as_json: bool, output: str | None = None) -> Any:
    from powermeans.app.command.screen import Screen

    return Screen(as_json=as_json, to_stderr=output == "-")


@app.command()
@_reading(_FILES, wanted=Wanted)
def fit(files: Any, wanted: Any, as_json: Json = False) -> None:
    """Find clusters, and print a table of them.

    Without --output, --model and --report, write the rows with their cluster and a report.
    """
    if wanted.like is not None:
        wanted.refuse_beside_like(files)
    from powermeans.app.command.fitting import fit as run

    files = replace(files, memory_limit=wanted.memory_limit, checkpoint=wanted.checkpoint)
    run(files, wanted, _screen(as_json=as_json, output=wanted.output))


@app.command()
@_reading(_FILES)
def predict(
    model: Model,
    files: Any,
    output: Output = None,
    add: Added = None,
    labels_only: LabelsOnly = False,
    memory_limit: Memory = None,
    as_json: Json = False,
) -> None:
    """Label new rows by a saved model.

    Without --output, the labels go to the standard output.
    """
    from powermeans.app.command.predicting import predict as run

    screen = _screen(as_json=as_json, output=output or ("" if as_json else "-"))
    files = replace(files, memory_limit=memory_limit)
    run(model, files, output, screen, add=add, labels_only=labels_only)


@app.command(name="choose-k")
@_reading(_FILES)
def choose_k(
    files: Any,
    least: Annotated[int, typer.Option("--from", min=1, help="Smallest k.")] = 2,
    most: Annotated[int, typer.Option("--to", min=1, help="Largest k.")] = 20,
    criteria: Annotated[str, typer.Option(help='Names with commas, or "all".')] = "all",
    scale: Scaling = "auto",
    effort: Annotated[
        Literal["fast", "balanced", "thorough"],
        typer.Option(help="How long to search for lower inertia."),
    ] = "balanced",
    max_seconds: Seconds = None,
    memory_limit: Memory = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try several numbers of clusters, and recommend one."""
    from powermeans.app.command.choosing import choose

    if most < least:
        raise Failure(f"--to {most} is less than --from {least}")
    settings = {"effort": effort, "max_seconds": max_seconds}
    settings |= {"random_state": seed, "n_threads": threads}
    choose(
        replace(files, memory_limit=memory_limit),
        range(least, most + 1),
        settings,
        criteria=criteria,
        scale=scale,
        is_quiet=quiet,
        screen=_screen(as_json=as_json),
    )


@app.command()
@_reading(_ONE_FILE)
def report(
    model: Model,
    files: Any,
    output: Annotated[str, typer.Option("--output", "-o", help="File for the page.")] = (
        "report.html"
    ),
    name: Names = None,
    as_json: Json = False,
) -> None:
    """Write a report on a saved model and data, one HTML page."""
    from powermeans.app.command.predicting import report as run

    names = names_of_clusters(name)
    run(model, files, output, names, _screen(as_json=as_json))


@app.command()
@_reading(_FILE_OR_NONE, default=None)
def explain(
    model: Model,
    files: Any,
    rules: Annotated[
        int | None,
        typer.Option(min=1, help="Number of rules; by default as many as are worth it."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Print a query that labels this table by the rules."),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="With --sql, label by the model itself; DATA is not needed."),
    ] = False,
    dialect: Annotated[
        Literal["duckdb", "sqlite", "postgresql", "bigquery", "snowflake"],
        typer.Option(help="The database of the query."),
    ] = "duckdb",
    as_json: Json = False,
) -> None:
    """Explain the clusters of a saved model by rules, and say what the rules cost."""
    from powermeans.app.command.explaining import explain_model, print_exact_query

    if exact and sql is None:
        raise Failure("--exact is for a query: name the table with --sql")
    screen = _screen(as_json=as_json)
    if exact and sql is not None:
        print_exact_query(model, sql, dialect, screen)
    elif not files.paths:
        raise Failure("DATA is missing: name the rows to explain after the model")
    else:
        explain_model(model, files, rules, sql, dialect, screen)


@app.command()
def demo(
    data: Annotated[
        str, typer.Option("--data", help="Where to write the example.")
    ] = "customers.csv",
    as_json: Json = False,
) -> None:
    """Write a small example, cluster it, and say what to try next."""
    from powermeans.app.command.demonstration import demonstrate

    demonstrate(data, _screen(as_json=as_json))


@app.command()
def datasets(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Data sets to fetch.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(help="A file that you downloaded, to convert; once for each file of the set."),
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Where they go; by default where the loaders look.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List real data sets, or fetch some and check their values."""
    from powermeans.app.command.demonstration import data_sets

    data_sets(names or [], file or [], folder, _screen(as_json=as_json))


@app.command()
def info(as_json: Json = False) -> None:
    """Show versions, instruction set and threads, for a bug report."""
    from powermeans.versions import versions

    optional = ("typer", "rich", "pyarrow", "matplotlib")
    found = versions() | {name: _version(name) for name in optional}
    screen = _screen(as_json=as_json)
    for name, value in found.items():
        screen.say(f"{name:16} {value}")
    screen.tell_machines(found)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
