"""What can be typed after ``powermeans``: arguments and options, and who does the work."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="powermeans",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Cluster tables of numbers around centers: power k-means and its family.",
    epilog="Exit codes: 0 done, 2 wrong arguments, 3 data that cannot be used, 4 output that "
    "cannot be written, 130 interrupted, 1 anything unforeseen.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Scale(StrEnum):
    """How columns are scaled."""

    standard = "standard"
    minmax = "minmax"
    none = "none"


class Missing(StrEnum):
    """What becomes of missing values."""

    error = "error"
    drop = "drop"
    observed = "observed"


class Effort(StrEnum):
    """How much to search."""

    fast = "fast"
    balanced = "balanced"
    thorough = "thorough"


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, Parquet, Feather, Arrow, NPY or NPZ; - is standard input."
    ),
]
Clusters = Annotated[int, typer.Option("-k", "--clusters", min=1, help="How many clusters.")]
Columns = Annotated[
    str | None, typer.Option(help="Columns to use, by name or number from 1, between commas.")
]
Weights = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of weights.")]
MissingValues = Annotated[Missing, typer.Option(help="What becomes of missing values.")]
Delimiter = Annotated[str | None, typer.Option(help="What stands between columns of text.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first row has names.")
]
Array = Annotated[str | None, typer.Option(metavar="NAME", help="Which array of an NPZ file.")]
Scaling = Annotated[Scale, typer.Option(help="How to scale the columns first.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Search = Annotated[Effort, typer.Option(help="How much to search for lower inertia.")]
Threads = Annotated[int | None, typer.Option(help="How many threads to use.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Labels = Annotated[
    str | None,
    typer.Option("--output", "-o", help="File for labels: .csv, .tsv, .npy, .parquet, .feather."),
]


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere.")
    ] = False,
) -> None:
    pass


def _source(
    data: str,
    columns: str | None,
    weights: str | None,
    missing: Missing,
    delimiter: str | None,
    header: bool | None,
    array: str | None,
) -> Any:
    from powermeans.command_line.sources import Source

    mark = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if mark is not None and len(mark) != 1:
        raise typer.BadParameter(f"--delimiter {delimiter!r} is not one character")
    return Source(data, columns, weights, missing.value, mark, header, array)


def _screen(*, as_json: bool, output: str | None = None) -> Any:
    from powermeans.command_line.screen import Screen

    return Screen(as_json=as_json, to_stderr=output == "-")


@app.command()
def fit(
    data: Data,
    clusters: Clusters,
    columns: Columns = None,
    weights: Weights = None,
    scale: Scaling = Scale.none,
    missing: MissingValues = Missing.error,
    divergence: Annotated[
        str, typer.Option(help="What a distance is, as cosine, poisson, manhattan, mahalanobis.")
    ] = "squared_euclidean",
    power: Annotated[
        str, typer.Option(help='Power of the first sweep, negative; "auto" looks at the data.')
    ] = "auto",
    growth: Annotated[str, typer.Option(help="Factor from one power to the next.")] = "auto",
    effort: Search = Effort.balanced,
    refine: Annotated[int, typer.Option(min=0, help="0: one descent, without a search.")] = 5,
    runs: Annotated[int, typer.Option(min=1, help="Runs, of which the best is kept.")] = 1,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after about this time.")] = None,
    output: Labels = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="File for the model.")] = None,
    report: Annotated[str | None, typer.Option(help="File for a page about it, HTML.")] = None,
    seed: Seed = 0,
    threads: Threads = None,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find clusters, and print a table of them."""
    from powermeans.command_line.fitting import Wanted
    from powermeans.command_line.fitting import fit as run

    settings = {
        "n_clusters": clusters,
        "divergence": _known_divergence(divergence),
        "power": _number_or_auto(power, "--power"),
        "growth": _number_or_auto(growth, "--growth"),
        "effort": effort.value,
        "refine": refine,
        "n_init": runs,
        "max_seconds": max_seconds,
        "missing": "observed" if missing == Missing.observed else "error",
        "random_state": seed,
        "n_threads": threads,
    }
    wanted = Wanted(settings, scale.value, output, model, report, quiet)
    source = _source(data, columns, weights, missing, delimiter, header, array)
    run(source, wanted, _screen(as_json=as_json, output=output))


def _known_divergence(name: str) -> str:
    from powermeans.divergences import NAMES
    from powermeans.tables import nearest

    known = sorted({*NAMES, "mahalanobis"})
    if name not in known:
        hint = nearest(name, known) or f": there are {', '.join(known)}"
        raise typer.BadParameter(f"--divergence {name!r} is not known{hint}")
    return name


def _number_or_auto(text: str, option: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f'{option} is a number or "auto", not {text!r}') from None


@app.command()
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="What fit --model wrote.")],
    data: Data,
    output: Labels = None,
    columns: Columns = None,
    weights: Weights = None,
    missing: MissingValues = Missing.error,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    as_json: Json = False,
) -> None:
    """Label new rows by a saved model; without --output, on the standard output."""
    from powermeans.command_line.predicting import predict as run

    source = _source(data, columns, weights, missing, delimiter, header, array)
    run(model, source, output, _screen(as_json=as_json, output=output or ("" if as_json else "-")))


@app.command(name="choose-k")
def choose_k(
    data: Data,
    least: Annotated[int, typer.Option("--from", min=1, help="The least k.")] = 2,
    most: Annotated[int, typer.Option("--to", min=1, help="The largest k.")] = 20,
    criteria: Annotated[
        str, typer.Option(help='Between commas; "all" takes longer than "default".')
    ] = "default",
    columns: Columns = None,
    weights: Weights = None,
    scale: Scaling = Scale.none,
    missing: MissingValues = Missing.error,
    effort: Search = Effort.balanced,
    plot: Annotated[str | None, typer.Option(help="File for a picture: .png, .svg, .pdf.")] = None,
    seed: Seed = 0,
    threads: Threads = None,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try several numbers of clusters, and recommend one."""
    from powermeans.command_line.choosing import choose

    if most < least:
        raise typer.BadParameter(f"--to {most} is less than --from {least}")
    if missing == Missing.observed:
        raise typer.BadParameter("--missing observed does not go with choose-k: use drop")
    choose(
        _source(data, columns, weights, missing, delimiter, header, array),
        range(least, most + 1),
        {"effort": effort.value, "random_state": seed, "n_threads": threads},
        criteria=criteria,
        scale=scale.value,
        plot=plot,
        is_quiet=quiet,
        screen=_screen(as_json=as_json),
    )


@app.command()
def compare(
    data: Data,
    clusters: Clusters,
    columns: Columns = None,
    weights: Weights = None,
    scale: Scaling = Scale.none,
    missing: MissingValues = Missing.error,
    seed: Seed = 0,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    as_json: Json = False,
) -> None:
    """Compare our methods and those of other packages that are installed."""
    from powermeans.command_line.comparing import compare as run

    if missing == Missing.observed:
        raise typer.BadParameter("--missing observed does not go with compare: use drop")
    source = _source(data, columns, weights, missing, delimiter, header, array)
    run(source, clusters, seed=seed, scale=scale.value, screen=_screen(as_json=as_json))


@app.command()
def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="What fit --model wrote.")],
    data: Data,
    output: Annotated[str, typer.Option("--output", "-o", help="File for the page.")] = (
        "report.html"
    ),
    columns: Columns = None,
    missing: MissingValues = Missing.error,
    delimiter: Delimiter = None,
    header: Header = None,
    array: Array = None,
    as_json: Json = False,
) -> None:
    """Write a page, one HTML file, about a saved model and data."""
    from powermeans.command_line.reporting import write_report

    source = _source(data, columns, None, missing, delimiter, header, array)
    write_report(model, source, output, _screen(as_json=as_json))


@app.command()
def palette(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="A picture, as PNG or JPEG.")],
    clusters: Annotated[
        int, typer.Option("-k", "--colours", "--colors", min=1, help="How many colours.")
    ] = 16,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File for the picture in these colours.")
    ] = None,
    colours: Annotated[
        str | None, typer.Option("--palette", help="File for the colours, one a line.")
    ] = None,
    effort: Search = Effort.fast,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Reduce a picture to few colours, and list them."""
    from powermeans.command_line.palettes import quantise

    quantise(
        image,
        clusters,
        output=output,
        palette=colours,
        settings={"effort": effort.value, "random_state": seed},
        screen=_screen(as_json=as_json),
    )


@app.command()
def demo(
    data: Annotated[
        str, typer.Option("--data", help="Where to write the example.")
    ] = "customers.csv",
    as_json: Json = False,
) -> None:
    """Write a small example, cluster it, and say what to try next."""
    from powermeans.command_line.demonstration import demonstrate

    demonstrate(data, _screen(as_json=as_json))


@app.command()
def info(as_json: Json = False) -> None:
    """Versions, instruction set and threads, for a bug report."""
    from powermeans.command_line.information import inform

    inform(_screen(as_json=as_json))
