"""What ``powermeans fit`` is to do: its options, some of which other commands have too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import typer

from powermeans.app.command.failures import Failure
from powermeans.app.command.sources import ADDED, DataFiles, Scale, known, split_names

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
        help=f"Columns to write besides cluster: {', '.join(ADDED[1:])}, by default with the rows; "
        "name, that of the cluster.",
    ),
]
LabelsOnly = Annotated[bool, typer.Option("--labels-only", help="Write no columns of the file.")]
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

_OF_THE_MODEL = (
    *("clusters", "scale", "divergence", "trials", "effort", "max_seconds"),
    *("size_min", "size_max", "seed"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fit, and where to write it."""

    clusters: Annotated[
        str,
        typer.Option(
            "-k",
            "--clusters",
            metavar="NUMBER",
            help="Number of clusters, or auto: as many as the criteria of choose-k recommend.",
        ),
    ] = "auto"
    scale: Scaling = "auto"
    divergence: Annotated[
        str, typer.Option(help="Distance: manhattan, cosine, poisson, ...; a wrong name lists all.")
    ] = "squared_euclidean"
    trials: Annotated[float | None, typer.Option(help="Number of trials of binomial data.")] = None
    effort: Annotated[
        Literal["none", "fast", "balanced", "thorough"],
        typer.Option(help="How long to search for lower inertia; none is one descent."),
    ] = "balanced"
    max_seconds: Seconds = None
    size_min: Annotated[
        float | None,
        typer.Option(help="Least size of a cluster: rows, sum of weights, or share such as 0.1."),
    ] = None
    size_max: Annotated[float | None, typer.Option(help="Largest size of a cluster, likewise.")] = (
        None
    )
    output: Output = None
    add: Added = None
    labels_only: LabelsOnly = False
    model: Annotated[str | None, typer.Option("--model", "-m", help="File for the model.")] = None
    report: Annotated[str | None, typer.Option(help="File for a report, one HTML page.")] = None
    name: Names = None
    prove: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Search so long for a proof of how far from the optimum the clusters are.",
        ),
    ] = None
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Go on from a saved model: same columns, scaling and numbers of clusters.",
        ),
    ] = None
    memory_limit: Memory = None
    checkpoint: Annotated[
        str | None,
        typer.Option(help="File for the state of the fit, which goes on from there if killed."),
    ] = None
    seed: Seed = 0
    threads: Threads = None
    quiet: Quiet = False
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Show all columns and notes, and powers in the progress."),
    ] = False

    def __post_init__(self) -> None:
        for name in ("trials", "size_min", "size_max", "prove"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                option = name.replace("_", "-")
                raise Failure(f"--{option} must be above 0, not {value:g}")
        _ = self.n_clusters, self.names, self.added  # refuses what is no number or name

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters, or None where the data decide it."""
        if self.clusters == "auto":
            return None
        if not self.clusters.isdecimal() or int(self.clusters) < 1:
            raise Failure(f"-k must be a number from 1 on, or auto, not {self.clusters!r}")
        return int(self.clusters)

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of an estimator."""
        return {
            "n_clusters": self.n_clusters,
            "divergence": self.divergence if self.trials is None else self.distance,
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
        from powermeans.divergences import NAMES, Binomial, resolve

        known([self.divergence], sorted(NAMES), "--divergence")
        if self.divergence != "binomial" and self.trials is not None:
            raise Failure(f"--trials is for --divergence binomial, not {self.divergence}")
        if self.divergence == "binomial" and self.trials is None:
            raise Failure("--divergence binomial needs --trials: pass the number of trials")
        return resolve(self.divergence) if self.trials is None else Binomial(self.trials)

    @property
    def names(self) -> dict[int, str]:
        """The names of clusters, by their number."""
        return names_of_clusters(self.name)

    @property
    def added(self) -> list[str]:
        """The columns to add to the rows."""
        return added_columns(self.add, self.output, labels_only=self.labels_only)

    def refuse_beside_like(self, files: DataFiles) -> None:
        """Refuse options that the model settles."""
        defaults = {one.name: one.default for one in fields(self)}
        asked = [name for name in _OF_THE_MODEL if getattr(self, name) != defaults[name]]
        asked += ["columns"] * (files.columns is not None) + ["as"] * (files.as_ is not None)
        if asked:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
            raise Failure(f"--like takes that from the model: leave out {options}")


def _size(size: float | None) -> float | None:
    """Return a whole number as one, so that 1 is a row and not the share of all."""
    return int(size) if size is not None and size.is_integer() else size


def names_of_clusters(given: Sequence[str] | None) -> dict[int, str]:
    """Return names such as that of 1="Loyal", by the number of the cluster."""
    names = {}
    for text in given or []:
        label, has_name, name = text.partition("=")
        if not (has_name and label.strip().isdecimal() and name.strip()):
            raise Failure(f'--name must be a cluster and its name, such as 1="Loyal", not {text!r}')
        names[int(label)] = name.strip()
    return names


def added_columns(given: str | None, output: str | None, *, labels_only: bool) -> list[str]:
    """Return the columns to write besides those of the file, first that of the cluster."""
    if given is None:
        return [*ADDED[:1]] if labels_only else [*ADDED]
    asked = known(split_names(given), [*ADDED, "name"], "--add")
    if has_labels_only(output) and {*asked} - {"cluster"}:
        raise Failure(f"{output} has room for clusters only: leave out --add, or write .csv")
    return [*dict.fromkeys(["cluster", *asked])]


def has_labels_only(output: str | None) -> bool:
    """Return whether a file has room for clusters only."""
    return output is not None and output.lower().endswith(".npy")
