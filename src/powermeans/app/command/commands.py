"""The arguments and options of each command."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

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
_ONE_FILE: Any = typer.Argument(metavar="DATA", help=_KINDS_OF_DATA)
_SEVERAL_FILES: Any = typer.Argument(
    metavar="DATA...",
    help=f"{_KINDS_OF_DATA} Several files, and folders of them, are read part by part.",
)
DataParts = Annotated[list[str], _SEVERAL_FILES]
DataAfterModel = Annotated[list[str] | None, _SEVERAL_FILES]
OneAfterModel = Annotated[str | None, _ONE_FILE]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="File that fit --model wrote.")]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", metavar="FILE", help="The same as MODEL.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Read part by part within 500MB, 2GiB, ..."
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(help="File that keeps the state of the fit, which resumes there if killed."),
]
CheckpointSeconds = Annotated[
    float | None,
    typer.Option(min=0, help="Least time between writes of the checkpoint; 60 by default."),
]
Columns = Annotated[
    str | None,
    typer.Option(help="Columns to use, with commas: names, numbers from 1, ranges as 2-4 or a-c."),
]
Weights = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of weights.")]
MissingValues = Annotated[
    Literal["auto", "error", "drop", "observed"] | None,
    typer.Option(
        help="What to do with missing values; auto: go by the values that are there, or else drop "
        "the row, and say so."
    ),
]
Codes = Annotated[
    str | None,
    typer.Option(
        metavar="VALUES",
        help="Values that mean a missing one, with commas: -999 anywhere, age=99 in a column, "
        "q1-q9=99 in a range of columns.",
    ),
]
SkipRows = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS", help="Rows to leave out, such as totals: numbers from 1, ranges as 5-9."
    ),
]
Delimiter = Annotated[str | None, typer.Option(help="Character between columns of text.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="The first row holds names, or data.")
]
Array = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Array of an NPZ file, sheet, table of a database, or file in a zip."
    ),
]
Decimal = Annotated[str | None, typer.Option(metavar="MARK", help="Decimal mark of text: . or ,")]
Thousands = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Mark between thousands: . or , or ' or space, or none."),
]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Encoding of text: cp1252, ...")]
Dates = Annotated[
    Literal["days", "day-first", "month-first"] | None,
    typer.Option(help="Read dates as days; 3/4/2024 begins with the day or the month."),
]
Scaling = Annotated[
    Literal["auto", "standard", "minmax", "none"],
    typer.Option(help="How to scale columns; auto: to variance one unless all share a unit."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COLUMN=KIND",
        help="What columns hold: plan=category,visits=count,id=ignore; number, amount, count, "
        "share, log, yes/no, category, ordered, date, place, ignore.",
    ),
]
Orders = Annotated[
    list[str] | None,
    typer.Option(metavar="WORDS", help='Words from the lowest on: "low<mid<high"; once for each.'),
]
KeepCodes = Annotated[
    bool, typer.Option("--keep-codes", help="Read -9, 99, 999 and the like as numbers.")
]
KeepTotals = Annotated[bool, typer.Option("--keep-totals", help="Keep rows that sum up others.")]
Database = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="SQLite or DuckDB, of which DATA is then a query in SQL."),
]
Added = Annotated[
    str | None,
    typer.Option(
        "--add",
        metavar="COLUMNS",
        help="Columns to add to the rows: cluster, distance, second_cluster, sure; all by default.",
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
Search = Annotated[
    Literal["fast", "balanced", "thorough"],
    typer.Option(help="How long to search for lower inertia."),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads.")]
Seconds = Annotated[float | None, typer.Option(help="Stop after about this many seconds.")]
LeastSize = Annotated[
    float | None,
    typer.Option(help="Least size of a cluster: rows, sum of weights, or share such as 0.1."),
]
LargestSize = Annotated[float | None, typer.Option(help="Largest size of a cluster, likewise.")]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="CLUSTER=NAME",
        help='Name of a cluster in the report, such as 1="Loyal"; once for each.',
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


def _files(
    data: str | list[str],
    columns: Columns = None,
    weights: Weights = None,
    missing: MissingValues = None,
    missing_values: Codes = None,
    skip_rows: SkipRows = None,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    dates: Dates = None,
    encoding: Encoding = None,
    as_kinds: Kinds = None,
    order: Orders = None,
    keep_codes: KeepCodes = False,
    keep_totals: KeepTotals = False,
    database: Database = None,
) -> Any:
    from powermeans.app.command.data_files import DataFiles

    mark = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if mark is not None and len(mark) != 1:
        raise typer.BadParameter(f"--delimiter must be one character, not {delimiter!r}")
    if decimal not in (None, ".", ","):
        raise typer.BadParameter(f"--decimal must be . or , and not {decimal!r}")
    between = {"space": " ", "none": ""}.get(thousands or "", thousands)
    if between not in (None, "", ".", ",", "'", " ") or (between and between == decimal):
        other = " other than --decimal" if between == decimal else ""
        raise typer.BadParameter(
            f"--thousands must be . or , or ' or space or none{other}, not {thousands!r}"
        )
    return DataFiles(
        (data,) if isinstance(data, str) else tuple(data),
        columns,
        weights,
        missing,
        mark,
        header,
        array,
        decimal,
        between,
        dates,
        encoding,
        ("none",) if keep_codes else _codes(missing_values),
        _rows_in(skip_rows),
        keep_totals,
        _kinds(as_kinds),
        tuple(tuple(word.strip() for word in each.split("<")) for each in order or ()),
        database,
    )


def _kinds(given: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the columns and kinds of texts such as plan=category,visits=count."""
    from powermeans.app.command.data_files import split_names

    pairs = []
    for text in [name for each in given or () for name in split_names(each)]:
        column, is_there, kind = text.rpartition("=")
        if not is_there:
            raise typer.BadParameter(
                f"--as must be columns and their kinds, such as plan=category, not {text!r}"
            )
        pairs.append((column.strip(), kind.strip()))
    return tuple(pairs)


def _codes(given: str | None) -> tuple[str, ...] | None:
    from powermeans.app.command.data_files import split_names

    return None if given is None else tuple(split_names(given))


def _rows_in(given: str | None) -> tuple[int, ...]:
    """Return the numbers of rows given by number and range."""
    rows: list[int] = []
    for text in [] if given is None else given.split(","):
        first, is_range, last = text.strip().partition("-")
        ends = first, last if is_range else first
        if not all(end.isdecimal() and int(end) > 0 for end in ends) or int(ends[0]) > int(ends[1]):
            raise typer.BadParameter(
                f"--skip-rows must be numbers from 1 and ranges such as 5-9, not {given!r}"
            )
        rows += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(rows)


def _reading(
    data: Any, *, is_needed: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the argument `data` and the options of `_files` in place of a command's `files`."""
    _, *options = inspect.signature(_files, eval_str=True).parameters.values()

    def give_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            reading = {option.name: given.pop(option.name) for option in options}
            if "model_option" in given:
                _take_model_from_option(given)
            command(files=_files(given.pop("data"), **reading), **given)

        own = dict(inspect.signature(command, eval_str=True).parameters)
        default = inspect.Parameter.empty if is_needed else None
        own["files"] = own["files"].replace(name="data", annotation=data, default=default)
        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in (*own.values(), *options)]
        # Typer reads the arguments and options of a command from its signature.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return give_options


def _take_model_from_option(given: dict[str, Any]) -> None:
    """Make --model FILE DATA the same as FILE DATA, in place."""
    named, data = given.pop("model_option"), given["data"]
    if named is None and not data:
        raise typer.BadParameter("DATA is missing: name the model, and then the data")
    if named is None:
        return
    if isinstance(data, str):
        raise typer.BadParameter(
            f"there are two models, {given['model']} and --model {named}: leave one of them out"
        )
    first = given["model"]
    given["model"], given["data"] = named, first if data is None else [first, *data]


def _screen(*, as_json: bool, output: str | None = None) -> Any:
    from powermeans.app.command.screen import Screen

    return Screen(as_json=as_json, to_stderr=output == "-")


class _Fit(TyperCommand):
    """The command `fit`, whose help lists the divergences, which take long to import."""

    def format_options(self, *of_help: Any) -> None:
        """Write the help of the options."""
        from powermeans.divergences import NAMES

        option: Any = next(each for each in self.params if each.name == "divergence")
        option.help = f"Distance: {', '.join(sorted(NAMES))}."
        super().format_options(*of_help)


@app.command(cls=_Fit)
@_reading(DataParts)
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
    divergence: Annotated[str, typer.Option(help="Distance: a name.")] = "squared_euclidean",
    trials: Annotated[float | None, typer.Option(help="Number of trials of binomial data.")] = None,
    power: Annotated[
        str, typer.Option(help='Power of the first sweep, negative; "auto" fits it to the data.')
    ] = "auto",
    effort: Annotated[
        Literal["none", "fast", "balanced", "thorough"],
        typer.Option(help="How long to search for lower inertia; none is one descent."),
    ] = "balanced",
    runs: Annotated[int, typer.Option(min=1, help="Number of runs; the best is kept.")] = 1,
    max_seconds: Seconds = None,
    size_min: LeastSize = None,
    size_max: LargestSize = None,
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
    checkpoint: Checkpoint = None,
    checkpoint_seconds: CheckpointSeconds = None,
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
        _refuse_beside_like({**locals(), "columns": files.columns, "as": files.kinds or None})
    from powermeans.app.command.fitting import Wanted
    from powermeans.app.command.fitting import fit as run

    _check_max_seconds(max_seconds)
    if prove is not None and not prove > 0:
        raise typer.BadParameter(f"--prove must be above 0 seconds, not {prove:g}")
    if checkpoint is None and checkpoint_seconds is not None:
        raise typer.BadParameter("--checkpoint-seconds needs --checkpoint: name a file with it")
    settings = {
        "n_clusters": _whole_or_auto(clusters),
        "divergence": _divergence(divergence, trials),
        "power": _power(power),
        "effort": effort,
        "n_init": runs,
        "max_seconds": max_seconds,
        "size_min": _size(size_min, "--size-min"),
        "size_max": _size(size_max, "--size-max"),
        "missing": files.missing_in_fit,
        "random_state": seed,
        "n_threads": threads,
    }
    shown: dict[str, Any] = {"divergence": divergence}
    shown |= {} if trials is None else {"trials": trials}
    names = _names_of_clusters(name)
    outputs = (output, model, report, quiet, shown, prove, names, _added(add), labels_only)
    wanted = Wanted(settings, scale, *outputs, is_verbose=verbose, like=like)
    where = {"checkpoint": checkpoint, "checkpoint_seconds": checkpoint_seconds}
    files = replace(files, memory_limit=memory_limit, **where)
    run(files, wanted, _screen(as_json=as_json, output=output))


_OF_THE_MODEL = (
    *("clusters", "scale", "divergence", "trials", "power", "effort", "runs", "max_seconds"),
    *("size_min", "size_max", "seed", "columns", "as"),
)


def _refuse_beside_like(given: dict[str, Any]) -> None:
    """Refuse options that say what the model says."""
    defaults = {name: one.default for name, one in inspect.signature(fit).parameters.items()}
    told = [name for name in _OF_THE_MODEL if given[name] != defaults.get(name)]
    options = ", ".join(f"--{name.replace('_', '-')}" for name in told)
    if told:
        raise typer.BadParameter(f"--like takes that from the model: leave out {options}")


def _size(given: float | None, option: str) -> float | None:
    """Return a whole number as one, so that 1 is a row and not the share of all."""
    if given is not None and not 0 < given < math.inf:
        raise typer.BadParameter(f"{option} must be above 0, not {given:g}")
    return int(given) if given is not None and given.is_integer() else given


def _check_max_seconds(max_seconds: float | None) -> None:
    if max_seconds is not None and not max_seconds >= 0:
        raise typer.BadParameter(f"--max-seconds must be at least 0, not {max_seconds:g}")


def _names_of_clusters(given: list[str] | None) -> dict[int, str]:
    names = {}
    for text in given or []:
        label, is_there, name = text.partition("=")
        if not (is_there and label.strip().isdecimal() and name.strip()):
            raise typer.BadParameter(
                f'--name must be a cluster and its name, such as 1="Loyal", not {text!r}'
            )
        names[int(label)] = name.strip()
    return names


def _whole_or_auto(clusters: str) -> int | None:
    """Return a number of clusters, or None where the data are to tell it."""
    if clusters == "auto":
        return None
    if not clusters.isdecimal() or int(clusters) < 1:
        raise typer.BadParameter(f"-k must be a number from 1 on, or auto, not {clusters!r}")
    return int(clusters)


def _divergence(name: str, trials: float | None) -> Any:
    from powermeans.divergences import NAMES, Binomial
    from powermeans.errors import nearest

    if name not in NAMES:
        hint = nearest(name, NAMES) or f": there are {', '.join(sorted(NAMES))}"
        raise typer.BadParameter(f"--divergence {name!r} is not known{hint}")
    if name != "binomial":
        if trials is not None:
            raise typer.BadParameter(f"--trials is for --divergence binomial, not {name}")
        return name
    if trials is None:
        raise typer.BadParameter("--divergence binomial needs --trials: pass the number of trials")
    if not 0 < trials < math.inf:
        raise typer.BadParameter(f"--trials must be above 0, not {trials:g}")
    return Binomial(trials)


def _power(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        raise typer.BadParameter(f'--power must be a number or "auto", not {text!r}') from None
    if not value < 0:
        raise typer.BadParameter(f"--power must be below 0, not {text}")
    return value


@app.command()
@_reading(DataAfterModel, is_needed=False)
def predict(
    model: Model,
    files: Any,
    model_option: ModelOption = None,
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
    files, columns = replace(files, memory_limit=memory_limit), _added(add)
    run(model, files, output, screen, added=columns, labels_only=labels_only)


def _added(given: str | None) -> list[str]:
    from powermeans.app.command.data_files import ADDED, split_names
    from powermeans.errors import nearest

    if given is None:
        return [*ADDED]
    asked = split_names(given)
    for name in asked:
        if name not in ADDED:
            hint = nearest(name, ADDED) or f": there are {', '.join(ADDED)}"
            raise typer.BadParameter(f"--add {name!r} is not known{hint}")
    return asked


@app.command(name="choose-k")
@_reading(DataParts)
def choose_k(
    files: Any,
    least: Annotated[int, typer.Option("--from", min=1, help="Smallest k.")] = 2,
    most: Annotated[int, typer.Option("--to", min=1, help="Largest k.")] = 20,
    criteria: Annotated[str, typer.Option(help='Names with commas, or "all".')] = "all",
    scale: Scaling = "auto",
    effort: Search = "balanced",
    max_seconds: Seconds = None,
    memory_limit: Memory = None,
    plot: Annotated[str | None, typer.Option(help="File for a picture: .png, .svg, .pdf.")] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try several numbers of clusters, and recommend one."""
    from powermeans.app.command.choosing import choose

    if most < least:
        raise typer.BadParameter(f"--to {most} is less than --from {least}")
    _check_max_seconds(max_seconds)
    choose(
        replace(files, memory_limit=memory_limit),
        range(least, most + 1),
        {
            "effort": effort,
            "max_seconds": max_seconds,
            "random_state": seed,
            "n_threads": threads,
        },
        criteria=criteria,
        scale=scale,
        plot=plot,
        is_quiet=quiet,
        screen=_screen(as_json=as_json),
    )


@app.command()
@_reading(OneAfterModel, is_needed=False)
def report(
    model: Model,
    files: Any,
    model_option: ModelOption = None,
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
@_reading(OneAfterModel, is_needed=False)
def explain(
    model: Model,
    files: Any,
    model_option: ModelOption = None,
    rules: Annotated[
        int | None,
        typer.Option(min=1, help="Number of rules; by default as many as are worth it."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Print a query that labels this table by the rules."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="With --sql, label by the model and not by rules.")
    ] = False,
    dialect: Annotated[
        Literal["duckdb", "sqlite", "postgresql", "bigquery", "snowflake"],
        typer.Option(help="The database of the query."),
    ] = "duckdb",
    as_json: Json = False,
) -> None:
    """Explain the clusters of a saved model by rules, and say what the rules cost."""
    from powermeans.app.command.explaining import explain_model

    if exact and sql is None:
        raise typer.BadParameter("--exact is for a query: name the table with --sql")
    explain_model(model, files, rules, sql, exact, dialect, _screen(as_json=as_json))


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
    from powermeans.app.command.demonstration import fetch_all, list_all

    screen = _screen(as_json=as_json)
    if names:
        fetch_all(names, file or [], folder, screen)
    else:
        list_all(folder, screen)


@app.command()
def info(as_json: Json = False) -> None:
    """Show versions, instruction set and threads, for a bug report."""
    from powermeans.app.report.versions import versions

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
