"""The arguments and options of each command."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

from powermeans.app.command.failures import Failure
from powermeans.app.command.sources import ADDED, DataFiles, Scale, known, split_names

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
    "CSV, Excel, OpenDocument, JSON lines, SQLite, Parquet, Feather, NPY or NPZ, packed or not; "
    "- is standard input."
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
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Read part by part within 500MB, 2GiB, ..."
    ),
]
Scaling = Annotated[
    Scale, typer.Option(help="How to scale columns; auto: to variance one unless all share a unit.")
]
Added = Annotated[
    str | None,
    typer.Option(
        "--add",
        metavar="COLUMNS",
        help=f"Columns to add to the rows: {', '.join(ADDED)}; all by default. Also name, that of "
        "the cluster.",
    ),
]
LabelsOnly = Annotated[bool, typer.Option("--labels-only", help="Write the clusters alone.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="File for the rows with their cluster: .csv, .tsv, .xlsx, .jsonl, .parquet, .feather; "
        "- prints the clusters.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Stop after about this many seconds.")]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="CLUSTER=NAME",
        help='Name of a cluster, such as 1="Loyal"; once for each.',
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


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


def _reading(
    data: Any, default: Any = inspect.Parameter.empty
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the argument `data` and the options of `DataFiles` in place of a command's `files`."""
    types = get_type_hints(DataFiles, include_extras=True)
    options = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=types[one.name],
        )
        for one in fields(DataFiles)
        if get_origin(types[one.name]) is Annotated
    ]

    def give_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(data: str | list[str] | None, **given: Any) -> None:
            reading = {option.name: given.pop(option.name) for option in options}
            paths = [data] if isinstance(data, str) else data or []
            command(files=DataFiles(tuple(paths), **reading), **given)

        own = dict(inspect.signature(command, eval_str=True).parameters)
        own["files"] = own["files"].replace(name="data", annotation=data, default=default)
        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in (*own.values(), *options)]
        # Typer reads the arguments and options of a command from its signature.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return give_options


def _screen(*, as_json: bool, output: str | None = None) -> Any:
    from powermeans.app.command.screen import Screen

    return Screen(as_json=as_json, to_stderr=output == "-")


@app.command()
@_reading(_FILES)
def fit(
    files: Any,
    clusters: Annotated[
        str,
        typer.Option(
            "-k",
            "--clusters",
            metavar="NUMBER",
            help="Number of clusters, or auto: as many as the criteria of choose-k recommend.",
        ),
    ] = "auto",
    scale: Scaling = "auto",
    divergence: Annotated[
        str, typer.Option(help="Distance: manhattan, cosine, poisson, ...; a wrong name lists all.")
    ] = "squared_euclidean",
    trials: Annotated[float | None, typer.Option(help="Number of trials of binomial data.")] = None,
    effort: Annotated[
        Literal["none", "fast", "balanced", "thorough"],
        typer.Option(help="How long to search for lower inertia; none is one descent."),
    ] = "balanced",
    max_seconds: Seconds = None,
    size_min: Annotated[
        float | None,
        typer.Option(help="Least size of a cluster: rows, sum of weights, or share such as 0.1."),
    ] = None,
    size_max: Annotated[
        float | None, typer.Option(help="Largest size of a cluster, likewise.")
    ] = None,
    output: Output = None,
    add: Added = None,
    labels_only: LabelsOnly = False,
    model: Annotated[str | None, typer.Option("--model", "-m", help="File for the model.")] = None,
    report: Annotated[str | None, typer.Option(help="File for a report, one HTML page.")] = None,
    name: Names = None,
    prove: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Search so long for a proof of how far from the optimum the clusters are.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Go on from a saved model: same columns, scaling and numbers of clusters.",
        ),
    ] = None,
    memory_limit: Memory = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="File for the state of the fit, which goes on from there if killed."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Show all columns and notes, and powers in the progress."),
    ] = False,
) -> None:
    """Find clusters, and print a table of them.

    Without --output, --model and --report, write the rows with their cluster and a report.
    """
    if like is not None:
        _refuse_beside_like({**locals(), "columns": files.columns, "as": files.as_})
    from powermeans.app.command.fitting import Wanted
    from powermeans.app.command.fitting import fit as run

    wanted = Wanted(
        settings={
            "n_clusters": _whole_or_auto(clusters),
            "divergence": _divergence(divergence, trials),
            "effort": effort,
            "max_seconds": max_seconds,
            "size_min": _size(size_min, "--size-min"),
            "size_max": _size(size_max, "--size-max"),
            "random_state": seed,
            "n_threads": threads,
        },
        scale=scale,
        output=output,
        model=model,
        report=report,
        is_quiet=quiet,
        is_verbose=verbose,
        shown={"divergence": divergence, **({} if trials is None else {"trials": trials})},
        prove=_positive(prove, "--prove"),
        names=_names_of_clusters(name),
        added=_added(add),
        labels_only=labels_only,
        like=like,
    )
    files = replace(files, memory_limit=memory_limit, checkpoint=checkpoint)
    run(files, wanted, _screen(as_json=as_json, output=output))


_OF_THE_MODEL = (
    *("clusters", "scale", "divergence", "trials", "effort", "max_seconds"),
    *("size_min", "size_max", "seed", "columns", "as"),
)


def _refuse_beside_like(given: dict[str, Any]) -> None:
    """Refuse options that the model settles."""
    defaults = {name: one.default for name, one in inspect.signature(fit).parameters.items()}
    asked = [name for name in _OF_THE_MODEL if given[name] != defaults.get(name)]
    if asked:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise Failure(f"--like takes that from the model: leave out {options}")


def _positive(given: float | None, option: str) -> float | None:
    if given is not None and not 0 < given < math.inf:
        raise Failure(f"{option} must be above 0, not {given:g}")
    return given


def _size(given: float | None, option: str) -> float | None:
    """Return a whole number as one, so that 1 is a row and not the share of all."""
    size = _positive(given, option)
    return int(size) if size is not None and size.is_integer() else size


def _names_of_clusters(given: list[str] | None) -> dict[int, str]:
    names = {}
    for text in given or []:
        label, has_name, name = text.partition("=")
        if not (has_name and label.strip().isdecimal() and name.strip()):
            raise Failure(f'--name must be a cluster and its name, such as 1="Loyal", not {text!r}')
        names[int(label)] = name.strip()
    return names


def _whole_or_auto(clusters: str) -> int | None:
    """Return a number of clusters, or None where the data decide it."""
    if clusters == "auto":
        return None
    if not clusters.isdecimal() or int(clusters) < 1:
        raise Failure(f"-k must be a number from 1 on, or auto, not {clusters!r}")
    return int(clusters)


def _divergence(name: str, trials: float | None) -> Any:
    from powermeans.divergences import NAMES, Binomial

    known([name], sorted(NAMES), "--divergence")
    if name != "binomial" and trials is not None:
        raise Failure(f"--trials is for --divergence binomial, not {name}")
    if name == "binomial" and trials is None:
        raise Failure("--divergence binomial needs --trials: pass the number of trials")
    of_trials = _positive(trials, "--trials")
    return name if of_trials is None else Binomial(of_trials)


def _added(given: str | None) -> list[str]:
    asked = [*ADDED] if given is None else split_names(given)
    return known(asked, [*ADDED, "name"], "--add")


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
    run(model, files, output, screen, added=_added(add), labels_only=labels_only)


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
    from powermeans.app.command.predicting import write_report

    names = _names_of_clusters(name)
    write_report(model, files, output, names, _screen(as_json=as_json))


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
