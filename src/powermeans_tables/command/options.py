"""The options of commands: how data are read, what is to be fitted, and what is written."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import typer

from powermeans.errors import nearest
from powermeans.system.threads import positive_number
from powermeans_tables.command.failures import Failure

Scale = Literal["auto", "standard", "minmax", "none"]


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Return a field of a dataclass that is an option of the commands which take this dataclass."""
    return field(default=default, metadata={"option": typer.Option(*names, help=help, **more)})


def flag(help: str, *names: str) -> Any:
    """Return such a field that is True where one of the names is given."""
    return option(help, *names, default=False)


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Paths of data and how to read them."""

    paths: Sequence[str] = ()
    memory_limit: str | None = None
    checkpoint: str | None = None
    verbose: bool = False
    columns: str | None = option(
        "Columns to use, with commas: names, numbers from 1, ranges as 2-4 or a-c."
    )
    weights: str | None = option("Column of weights.", metavar="COLUMN")
    missing: Literal["auto", "error", "drop", "observed"] | None = option(
        "What to do with missing values; auto: use the values that are present; if that is "
        "impossible, drop the row with a note."
    )
    missing_values: str | None = option(
        "Values that mean a missing one, with commas: -999 anywhere, age=99 in a column, q1-q9=99 "
        "in a range of columns.",
        metavar="VALUES",
    )
    keep_codes: bool = flag("Read -9, 99, 999 and the like as numbers.", "--keep-codes")
    skip_rows: str | None = option(
        "Rows to leave out: numbers from 1 below the header, ranges as 5-9.", metavar="ROWS"
    )
    keep_totals: bool = flag("Keep rows that sum up others.", "--keep-totals")
    dates: Literal["days", "day-first", "month-first"] | None = option(
        "Read dates as days; 3/4/2024 begins with the day or the month."
    )
    decimal: Literal[".", ","] | None = option("Decimal mark of text.")
    thousands: Literal[".", ",", "'", "space", "none"] | None = option("Mark between thousands.")
    delimiter: str | None = option("Character between columns of text.")
    header: bool | None = option("Whether the first row contains names.", "--header/--no-header")
    encoding: str | None = option("Encoding of text: cp1252, ...", metavar="NAME")
    array: str | None = option(
        "Array of an NPZ file, sheet, table of a database, or file in a zip.", metavar="NAME"
    )
    database: str | None = option(
        "SQLite or DuckDB, of which DATA is then a query in SQL.", metavar="FILE"
    )

    def __post_init__(self) -> None:
        if self.mark is not None and len(self.mark) != 1:
            raise Failure(f"--delimiter must be one character, not {self.delimiter!r}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise Failure(f"--thousands {self.thousands} is the decimal mark: pass another")

    @property
    def in_parts(self) -> Literal[True] | None:
        """True where rows are to be read part by part; None where their size decides."""
        return None if self.memory_limit is None and self.checkpoint is None else True

    @property
    def first(self) -> str:
        """The first path, which stands for all in the JSON output."""
        return self.paths[0]

    @property
    def name(self) -> str:
        """The data, as messages call it."""
        if len(self.paths) > 1:
            return f"{self.first} and {len(self.paths) - 1} more"
        return "standard input" if self.first == "-" else self.first

    @property
    def mark(self) -> str | None:
        """The delimiter."""
        return {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)

    @property
    def written(self) -> dict[str, Any]:
        """How cells are written, as `Prepare` takes it, which takes an empty mark for none."""
        codes = None if self.missing_values is None else split_names(self.missing_values)
        return {
            "codes": "none" if self.keep_codes else codes or "auto",
            "dates": self.dates,
            "decimal": self.decimal,
            "thousands": {"space": " ", "none": ""}.get(self.thousands or "", self.thousands),
        }

    @property
    def asked_columns(self) -> list[str] | None:
        """The columns that were asked for."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def skipped(self) -> list[range]:
        """The rows to leave out, from 1."""
        what = "--skip-rows must be numbers from 1 and ranges such as 5-9"
        texts = [] if self.skip_rows is None else self.skip_rows.split(",")
        return [numbers_in(text, what) for text in texts]

    @property
    def form(self) -> dict[str, Any]:
        """How the file is written, as `read_frame` takes it."""
        given = {name: getattr(self, name) for name in ("header", "encoding", "array")}
        return {"delimiter": self.mark, **given}


def _pairs(given: Sequence[str] | None, what: str) -> dict[str, str]:
    """Return pairs such as plan=category,visits=count; an error begins with what they must be."""
    pairs = {}
    for text in [name for each in given or () for name in split_names(each)]:
        column, has_value, value = text.rpartition("=")
        if not has_value:
            raise Failure(f"{what}, not {text!r}")
        pairs[column.strip()] = value.strip()
    return pairs


def split_names(names: str) -> list[str]:
    """Split names at commas and line ends; quotes join a name with commas."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise Failure(f"{names!r} is not a list of names: {error}") from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise Failure(f"{names!r} names nothing: leave it out")
    return found


def numbers_in(text: str, what: str) -> range:
    """Return the numbers of a text such as 7 or 5-9; an error begins with what it must be."""
    first, is_range, last = text.strip().partition("-")
    start, end = positive_number(first), positive_number(last if is_range else first)
    if start is None or end is None or not start <= end < sys.maxsize:
        raise Failure(f"{what}, not {text!r}")
    return range(start, end + 1)


def known(asked: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Return the names that were asked for; refuse those that an option does not know."""
    for name in asked:
        if name not in names:
            hint = nearest(name, names) or f": there are {', '.join(names)}"
            raise Failure(f"{option} {name!r} is not known{hint}")
    return list(asked)


# The columns that are added to the rows of a file, if not others are asked for.
ADDED = ("cluster", "distance", "second_cluster", "sure")
_OF_THE_MODEL = (
    *("clusters", "scale", "as_", "share", "per", "as_series", "order", "divergence", "effort"),
    *("max_seconds", "size_min", "size_max", "seed"),
)


@dataclass(frozen=True, slots=True)
class Results:
    """What is written of rows and their clusters, and how much is shown."""

    output: str | None = option(
        "File for the rows with their cluster: .csv, .tsv, .xlsx, .jsonl, .parquet, .feather; "
        "- prints the clusters.",
        "--output",
        "-o",
    )
    add: str | None = option(
        "Columns to write besides cluster: distance, to its center; second_cluster; sure, 1 at the "
        "center and 0 halfway to another; name. By default the first three, with the rows.",
        metavar="COLUMNS",
    )
    labels_only: bool = flag("Write no columns of the file.", "--labels-only")
    report: str | None = option("File for a report, one HTML page.")
    name: list[str] | None = option(
        'Name of a cluster, such as 1="Loyal"; once for each.', metavar="CLUSTER=NAME"
    )
    memory_limit: str | None = option("Read part by part within 500MB, 2GiB, ...", metavar="SIZE")
    quiet: bool = flag("Show no progress.", "--quiet", "-q")
    verbose: bool = flag("Show all columns, notes, powers and numbers of clusters.", "--verbose")

    def __post_init__(self) -> None:
        _ = self.names, self.added  # refuses what is no name

    def settled(self, *, shows_rows: bool = False) -> Self:
        """Return the same for an output that has room for columns, or for JSON of the rows."""
        if (self.add is not None or self.labels_only) and not (self.output or shows_rows):
            option = "--labels-only" if self.add is None else "--add"
            raise Failure(f"{option} is for the rows: name a file for them with --output")
        is_bare = shows_rows or self.output == "-" or _has_clusters_only(self.output)
        return replace(self, labels_only=self.labels_only or is_bare)

    @property
    def added(self) -> list[str]:
        """The columns to add to the rows, first that of the cluster."""
        if self.add is None:
            return [*ADDED[:1]] if self.labels_only else [*ADDED]
        asked = known(split_names(self.add), [*ADDED, "name"], "--add")
        if _has_clusters_only(self.output) and {*asked} - {"cluster"}:
            raise Failure(
                f"{self.output} has room for clusters only: leave out --add, or write .csv"
            )
        return [*dict.fromkeys(["cluster", *asked])]

    @property
    def names(self) -> dict[int, str]:
        """The names of clusters, such as that of 1="Loyal", by the number of the cluster."""
        names = {}
        for text in self.name or []:
            label, has_name, name = text.partition("=")
            number = positive_number(f"1{label.strip()}")  # with a digit before, since 0 is one too
            if not (has_name and number and label.strip() and name.strip()):
                raise Failure(
                    f'--name must be a cluster and its name, such as 1="Loyal", not {text!r}'
                )
            names[int(label)] = name.strip()
        return names


@dataclass(frozen=True, slots=True)
class Wanted(Results):
    """What to fit, and what to write."""

    clusters: str = option(
        "Number of clusters; 2-12 for one of these, or auto for one from 2 to 20: as many as the "
        "criteria recommend.",
        "-k",
        "--clusters",
        metavar="NUMBER",
        default="auto",
    )
    scale: Scale = option(
        "How to scale columns; auto: to variance one unless all share a unit.", default="auto"
    )
    as_: list[str] | None = option(
        "What columns contain, with commas: plan=category,visits=count. Kinds are number, amount, "
        "count, share, log, yes/no, category, choices, ordered, date, clock, place and ignore.",
        "--as",
        metavar="COLUMN=KIND",
    )
    share: list[str] | None = option(
        "How much columns count in distances, where others count 1: region=2,age=0.5.",
        metavar="COLUMN=NUMBER",
    )
    per: str | None = option(
        "Column such as customers, of whom each becomes one row, made of all of theirs.",
        metavar="COLUMN",
    )
    as_series: Literal["shape"] | None = option(
        "Compare the shapes of rows in columns such as 2001, ..., 2020, whatever their level."
    )
    order: list[str] | None = option(
        'Words from the lowest on: "low<mid<high"; once for each.', metavar="WORDS"
    )
    divergence: str = option(
        "Distance: manhattan, cosine, poisson, ...; a wrong name lists all.",
        default="squared_euclidean",
    )
    effort: Literal["none", "fast", "balanced", "thorough"] = option(
        "How long to search for lower inertia; none is one descent.", default="balanced"
    )
    max_seconds: float | None = option("Stop after about this many seconds.", min=0, max=1e9)
    size_min: float | None = option(
        "Least size of a cluster: rows, sum of weights, or share such as 0.1."
    )
    size_max: float | None = option("Largest size of a cluster, likewise.")
    model: str | None = option("File for the model.", "--model", "-m")
    prove: float | None = option(
        "Search this many seconds for a proof of how far from the optimum the clusters are.",
        metavar="SECONDS",
    )
    like: str | None = option(
        "Go on from a saved model: same columns, scaling and numbers of clusters.", metavar="MODEL"
    )
    checkpoint: str | None = option(
        "File for the state of the fit, which goes on from there if killed."
    )
    seed: int = option("The same seed gives the same result.", min=0, max=2**32 - 1, default=0)
    threads: int | None = option("Number of threads.", min=1)

    def __post_init__(self) -> None:
        Results.__post_init__(self)
        for name in ("size_min", "size_max", "prove"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise Failure(f"--{name.replace('_', '-')} must be above 0, not {value:g}")
        _ = self.sizes  # refuses what is no number

    @property
    def sizes(self) -> range:
        """The numbers of clusters to choose from, or the one that was asked for."""
        what = "-k must be a number from 1 on, a range such as 2-12, or auto"
        return numbers_in("2-20" if self.clusters == "auto" else self.clusters, what)

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters, or None where the data decide it."""
        return self.sizes[0] if len(self.sizes) == 1 else None

    @property
    def preparing(self) -> dict[str, Any]:
        """What columns contain and how much they count, as `Prepare` takes it."""
        what = "--share must be columns and numbers above 0, such as region=2"
        try:
            shares = {column: float(share) for column, share in _pairs(self.share, what).items()}
        except ValueError:
            raise Failure(f"{what}, not {self.share}") from None
        return {
            "as_": _pairs(self.as_, "--as must be columns and their kinds, such as plan=category"),
            "order": [[word.strip() for word in each.split("<")] for each in self.order or ()],
            "shares": shares or None,
            "per": self.per,
            "series": self.as_series,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of an estimator."""
        return {
            "n_clusters": self.n_clusters,
            "divergence": self.divergence,
            "effort": self.effort,
            "max_seconds": self.max_seconds,
            "size_min": _size(self.size_min),
            "size_max": _size(self.size_max),
            "random_state": self.seed,
            "n_threads": self.threads,
        }

    @property
    def distance(self) -> Any:
        """The distance between a row and a center."""
        from powermeans.divergences import NAMES, resolve

        if self.divergence == "binomial":
            raise Failure(
                "--divergence binomial: divide by the trials, one number for all columns, and pass "
                "logistic; for other numbers by column, pass Binomial([...]) in Python"
            )
        known([self.divergence], sorted({*NAMES} - {"binomial"}), "--divergence")
        return resolve(self.divergence)

    def refuse_beside_like(self, files: DataFiles) -> None:
        """Refuse options that the model settles."""
        defaults = {one.name: one.default for one in fields(self)}
        asked = [name for name in _OF_THE_MODEL if getattr(self, name) != defaults[name]]
        asked += ["columns"] * (files.columns is not None)
        if asked:
            options = ", ".join(f"--{name.strip('_').replace('_', '-')}" for name in asked)
            raise Failure(f"--like takes these from the model: leave out {options}")


@dataclass(frozen=True, slots=True)
class Rules:
    """How to explain clusters."""

    rules: str = option("Number of rules, or auto: as many as are worth it.", default="auto")
    sql: str | None = option("Print a query that labels this table by the rules.", metavar="TABLE")
    exact: bool = flag("With --sql, label by the model itself, without DATA.", "--exact")
    dialect: Literal["duckdb", "sqlite", "postgresql", "bigquery", "snowflake"] = option(
        "The database of the query.", default="duckdb"
    )

    @property
    def n_leaves(self) -> Any:
        """The number of rules, or "auto"."""
        number = positive_number(self.rules)
        if self.rules != "auto" and number is None:
            raise Failure(f"--rules must be a number from 1 on, or auto, not {self.rules!r}")
        return number or self.rules


def _size(size: float | None) -> float | None:
    """Return a whole number as one, so that 1 is a row and not the share of all."""
    return int(size) if size is not None and size.is_integer() else size


def _has_clusters_only(output: str | None) -> bool:
    return output is not None and output.lower().endswith(".npy")
