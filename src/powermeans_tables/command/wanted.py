"""What commands are to do: the options of ``powermeans fit``, and those of what is written."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from powermeans_tables.command.failures import Failure
from powermeans_tables.command.sources import (
    DataFiles,
    Scale,
    flag,
    known,
    numbers_in,
    option,
    split_names,
)

# The columns that are added to the rows of a file, if not others are asked for.
ADDED = ("cluster", "distance", "second_cluster", "sure")
_OF_THE_MODEL = (
    *("clusters", "scale", "as_", "order", "divergence", "effort", "max_seconds"),
    *("size_min", "size_max", "seed"),
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
        """Return the same for an output that has room for columns of the file, or not.

        `shows_rows` says that JSON has what is asked for of rows.
        """
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
            if not (has_name and label.strip().isdecimal() and name.strip()):
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
        "count, share, log, yes/no, category, ordered, date, place and ignore.",
        "--as",
        metavar="COLUMN=KIND",
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
    max_seconds: float | None = option("Stop after about this many seconds.", min=0)
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
    seed: int = option("The same seed gives the same result.", min=0, default=0)
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
        if self.rules != "auto" and not (self.rules.isdecimal() and int(self.rules)):
            raise Failure(f"--rules must be a number from 1 on, or auto, not {self.rules!r}")
        return self.rules if self.rules == "auto" else int(self.rules)


def _size(size: float | None) -> float | None:
    """Return a whole number as one, so that 1 is a row and not the share of all."""
    return int(size) if size is not None and size.is_integer() else size


def _has_clusters_only(output: str | None) -> bool:
    return output is not None and output.lower().endswith(".npy")
