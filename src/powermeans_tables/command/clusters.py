"""Label rows, count them by cluster, write them, and show the clusters as a table."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from powermeans.explaining.summaries import NOTABLE, ClusterSummary, Tally
from powermeans.explaining.sureness import nearness_of_rows
from powermeans.methods.base import CenterEstimator
from powermeans.optimality.gap import OptimalityGap
from powermeans.points.needs import Measure, Needs
from powermeans.scale.executors import read_ahead
from powermeans.types import FloatArray, Labels, Matrix
from powermeans_tables.command import failures
from powermeans_tables.command.data import naming_entries
from powermeans_tables.command.options import DataFiles, Results
from powermeans_tables.command.outputs import RowColumns, write_rows
from powermeans_tables.command.screen import Screen, waiting_for
from powermeans_tables.opening import PreparedRows
from powermeans_tables.preparing.notes import Note
from powermeans_tables.report.profile import Profile, check_names

_ROWS_AT_ONCE = 2**16


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, and how it was found."""

    files: DataFiles
    data: PreparedRows
    model: Any
    seconds: Mapping[str, float | None]  # None for rows that are read for each sweep
    was_interrupted: bool = False
    choice: Any = None  # of the number of clusters, by `choose_k`
    why_k: Sequence[Note] = ()  # the number of clusters, where it was chosen
    changes: Sequence[str] = ()  # from the model that the fit goes on from
    optimality: OptimalityGap | None = None
    names: Mapping[int, str] = field(default_factory=dict)  # of clusters, as they were given
    file: str | None = None  # of the model, where code that repeats the fit would not give it


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows that are counted by cluster, and what clusters contain."""

    tally: Tally
    profile: Profile
    labels: Labels | None  # None where rows are read part by part, and no columns
    columns: RowColumns  # what was asked for of each row


def labelled(
    fitted: Fitted, results: Results, done: list[str], labels: Labels | None = None
) -> Labelled:
    """Count the rows of each cluster, and write them if asked for; predict those without labels."""

    def every_group() -> dict[str, list[Any]]:
        return groups(_profile(tally, data, names))

    model, data, output, names = fitted.model, fitted.data, results.output, fitted.names
    tally, columns = _tally(model, data), RowColumns()
    with failures.refusing():
        check_names(names, len(tally.sizes))
    if data.is_in_parts:
        if "name" in results.added:  # all rows make the names
            collections.deque(_in_parts(fitted, tally, results, names), maxlen=0)
            names = dict(enumerate(_profile(tally, data, names).names))
            tally = _tally(model, data)
        pieces = _in_parts(fitted, tally, results, names)
    else:
        with failures.refusing(), naming_entries(data):
            if labels is None:
                labels, tally.score = labels_and_score(model, data.points, data.weights)
            tally.add(data.points, labels, data.weights)
            every_name = _profile(tally, data, names).names
            columns = about_rows(model, data.points, labels, results.added, every_name)
        parts = gen_batches(len(labels), _ROWS_AT_ONCE)
        pieces = ({name: each[part] for name, each in columns.items()} for part in parts)
    is_quiet, is_bare = results.quiet or data.is_in_parts, results.labels_only
    with failures.refusing():
        if output is not None:
            with waiting_for(f"writing {output}", is_quiet=is_quiet):
                write_rows(output, data, pieces, every_group, labels_only=is_bare)
            done.append(output)
        collections.deque(pieces, maxlen=0)  # labelling a part counts its rows
    return Labelled(tally, _profile(tally, data, names), labels, columns)


def _tally(model: Any, data: PreparedRows) -> Tally:
    """Return sums over no rows, about the centers, whose values stand for missing ones."""
    if hasattr(model, "cluster_centers_"):
        return Tally(model.cluster_centers_)
    return Tally(np.zeros((len(model.dual_coef_), data.n_features)))


def _profile(tally: Tally, data: PreparedRows, names: Mapping[int, str]) -> Profile:
    scalers = [data.prepare, *data.scalers]
    return Profile.of(tally, [*data.feature_names], scalers, names)


def about_rows(
    model: Any, points: Matrix, labels: Labels, added: Sequence[str], names: Sequence[str] = ()
) -> RowColumns:
    """Return the columns to add to the rows, such as their cluster and how sure it is."""
    found: RowColumns = {"cluster": labels}
    if {"distance", "second_cluster", "sure"} & {*added} and hasattr(model, "transform"):
        found |= nearness_of_rows(model, points, labels)
    if "name" in added:
        found["name"] = np.array(names, dtype=object)[labels]
    return {name: found[name] for name in added if name in found}


def _in_parts(
    fitted: Fitted, tally: Tally, results: Results, names: Mapping[int, str]
) -> Iterator[RowColumns]:
    """Yield what is added to the rows of each part, and count them."""
    model, data = fitted.model, fitted.data
    has_missing = getattr(model, "missing", "error") == "observed"
    needs = Needs(name="predict", measure=Measure(has_missing=has_missing))
    parts: Iterator[Any] = read_ahead(data.points.partition(needs).read())
    all_names = [names.get(label, str(label)) for label in range(len(tally.sizes))]
    is_quiet, n_rows = results.quiet, data.points.n_rows
    with (
        failures.reading(fitted.files.name),
        waiting_for("labelling the rows", is_quiet=is_quiet, n_rows=n_rows) as say,
    ):
        for points, weights in parts:
            with naming_entries(data, tally.n_rows):
                labels, score = labels_and_score(model, points, weights)
            tally.add(points, labels, weights)
            tally.score += score
            say(tally.n_rows)
            columns = about_rows(model, points, labels, results.added, all_names)
            del points, weights  # so that the part is freed while the caller writes
            yield columns


def labels_and_score(
    model: Any, points: Matrix, weights: FloatArray | None
) -> tuple[Labels, float]:
    """Predict labels and score points, in one pass where the model inherits both methods."""
    kind, base = type(model), CenterEstimator
    if not issubclass(kind, base) or (kind.predict, kind.score) != (base.predict, base.score):
        return model.predict(points), float(model.score(points, sample_weight=weights))
    found: tuple[Labels, float] = model._labels_and_score(points, weights)
    return found


def show_clusters(screen: Screen, profile: Profile, *, has_weights: bool) -> None:
    """Show size, share, spread, name and in which columns each cluster differs from the rest."""
    largest = sorted(profile.clusters, key=lambda cluster: -cluster.weight)[:40]
    shown = _about(profile, sorted(largest, key=lambda cluster: cluster.label))
    if not has_weights:
        del shown["weight"]
    forms: dict[str, Callable[[Any], str]] = {
        "size": "{:,}".format,
        "weight": "{:.6g}".format,
        "share": lambda share: f"{100 * share:.1f} %",
        "spread": lambda spread: f"{spread:#.4g}".rstrip("."),
    }
    columns = [map(forms.get(name, str), values) for name, values in shown.items()]
    rows = [[*row] for row in zip(*columns, strict=True)]
    screen.show([*shown], rows, left=range(len(shown) - 2, len(shown)))
    if has_weights:
        screen.say("size: rows; share: of the weight")
    if len(profile.clusters) > len(largest):
        n_more = len(profile.clusters) - len(largest)
        screen.say(f"... and {n_more} smaller ones, which --json shows")


def _about(profile: Profile, clusters: Sequence[ClusterSummary]) -> dict[str, list[Any]]:
    """Return what is shown of clusters, as columns."""
    names = "label", "size", "weight", "share", "spread"
    numbers = {name: [getattr(one, name) for one in clusters] for name in names}
    return {
        "cluster": numbers.pop("label"),
        **numbers,
        "name": [profile.names[one.label] for one in clusters],
        "what sets it apart": [_apart(one, profile) for one in clusters],
    }


def groups(profile: Profile) -> dict[str, list[Any]]:
    """Return what is shown of all clusters, and their means in each column of the table."""
    found = _about(profile, profile.clusters)
    if found["weight"] == found["size"]:
        del found["weight"]
    for one in profile.fields:
        means = profile.means[:, one.places]
        is_number = one.is_number and one.column.unit != "%"
        values = [float(f"{mean[0]:.6g}") if is_number else one.mean(mean) for mean in means]
        found[f"mean {one.name}"] = values
    return found


def _apart(cluster: ClusterSummary, profile: Profile) -> str:
    if cluster.size == 0:
        return "empty"
    if cluster.weight == 0:
        return "weighs nothing"
    found = [" ".join(fact).rstrip() for fact in profile.facts(cluster.label, NOTABLE)]
    means = "; ".join(f"{name} {value}" for name, value, _ in profile.facts(cluster.label))
    near = "near the mean of all: " * (len(profile.clusters) > 1)
    return "; ".join(found) or f"{near}{means}"


def clusters_for_machines(
    profile: Profile, centers: Matrix, spreads: Iterable[float]
) -> list[dict[str, Any]]:
    """Return the clusters for JSON, with these centers and spreads."""
    names = profile.columns.names
    return [
        {
            **{name: getattr(cluster, name) for name in ("label", "size", "weight", "share")},
            "name": profile.names[cluster.label],
            "spread": spread,
            "center": dict(zip(names, centers[cluster.label].tolist(), strict=True)),
            "distinguishing": [
                {"column": name, "deviations": height}
                for name, height in cluster.distinguishing(names)
            ],
        }
        for cluster, spread in zip(profile.clusters, spreads, strict=True)
    ]
