"""Label rows, count them by cluster, and show the clusters as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from powermeans.app.command.outputs import RowColumns
from powermeans.app.command.screen import Screen, number
from powermeans.app.report.profile import Profile
from powermeans.estimators.base import CenterEstimator
from powermeans.explaining.summaries import NOTABLE, ClusterSummary, Tally
from powermeans.explaining.sureness import nearness_of_rows
from powermeans.points.needs import Measure, Needs
from powermeans.scale.executors import read_ahead
from powermeans.scale.parted_data import PartedData
from powermeans.types import FloatArray, Labels, Points


def about_rows(
    model: Any,
    points: Points,
    labels: Labels,
    added: Sequence[str] = ("cluster",),
    names: Mapping[int, str] | None = None,
) -> RowColumns:
    """Return the columns to add to the rows, such as their cluster and how sure it is."""
    found: RowColumns = {"cluster": labels}
    if {"distance", "second_cluster", "sure"} & {*added} and hasattr(model, "transform"):
        found |= nearness_of_rows(model, points, labels)
    if "name" in added:
        every = [(names or {}).get(label, str(label)) for label in range(int(labels.max()) + 1)]
        found["name"] = np.array(every, dtype=object)[labels]
    return {name: found[name] for name in added if name in found}


def labels_in_parts(
    model: Any,
    data: PartedData,
    tally: Tally,
    added: Sequence[str] = ("cluster",),
    names: Mapping[int, str] | None = None,
    say: Callable[[int], object] = bool,
) -> Iterator[RowColumns]:
    """Yield what is added to the rows of each part, and count them; `say` takes their number."""
    has_missing = getattr(model, "missing", "error") == "observed"
    needs = Needs(name="predict", measure=Measure(has_missing=has_missing))
    parts: Iterator[Any] = read_ahead(data.partition(needs).read())
    for points, weights in parts:
        labels, score = labels_and_score(model, points, weights)
        tally.add(points, labels, weights)
        tally.score += score
        say(tally.n_rows)
        columns = about_rows(model, points, labels, added, names)
        del points, weights  # so that the part is freed while the caller writes
        yield columns


def labels_and_score(
    model: Any, points: Points, weights: FloatArray | None
) -> tuple[Labels, float]:
    """Predict labels and score points, in one pass where the model inherits both methods."""
    kind, base = type(model), CenterEstimator
    if not issubclass(kind, base) or (kind.predict, kind.score) != (base.predict, base.score):
        return model.predict(points), float(model.score(points, sample_weight=weights))
    found: tuple[Labels, float] = model._labels_and_score(points, weights)
    return found


def show_clusters(
    screen: Screen, profile: Profile, *, has_weights: bool, names: Mapping[int, str] | None = None
) -> None:
    """Show size, share, spread and the columns in which each cluster differs most from the rest."""
    shown = sorted(profile.clusters, key=lambda cluster: -cluster.weight)[:40]
    header = ["cluster", "size", *["weight"] * has_weights, "share", "spread"]
    words = [*["name"] * bool(names), "what sets it apart"]
    screen.show(
        [*header, *words],
        [
            [
                str(cluster.label),
                f"{cluster.size:,}",
                *([number(cluster.weight)] if has_weights else []),
                f"{100 * cluster.share:.1f} %",
                f"{cluster.spread:#.4g}".rstrip("."),
                *([names.get(cluster.label, "")] if names else []),
                _apart(cluster, profile),
            ]
            for cluster in sorted(shown, key=lambda cluster: cluster.label)
        ],
        left=range(len(header), len(header) + len(words)),
    )
    if has_weights:
        screen.say("size: rows; share: of the weight")
    if len(profile.clusters) > len(shown):
        n_more = len(profile.clusters) - len(shown)
        screen.say(f"... and {n_more} smaller ones, which --json shows")


def _apart(cluster: ClusterSummary, profile: Profile) -> str:
    if cluster.size == 0:
        return "empty"
    if cluster.weight == 0:
        return "weighs nothing"
    found = [" ".join(fact).rstrip() for fact in profile.facts(cluster.label, NOTABLE)]
    near = (f"{name} {value}" for name, value, _ in profile.facts(cluster.label))
    return "; ".join(found) or f"near the mean of all: {'; '.join(near)}"


def clusters_for_machines(
    clusters: Sequence[ClusterSummary],
    centers: Points,
    spreads: Iterable[float],
    names: list[str],
) -> list[dict[str, Any]]:
    """Return the clusters for JSON, with these centers and spreads."""
    return [
        {
            "label": cluster.label,
            "size": cluster.size,
            "weight": cluster.weight,
            "share": cluster.share,
            "spread": spread,
            "center": dict(zip(names, centers[cluster.label].tolist(), strict=True)),
            "distinguishing": [
                {"column": name, "deviations": height}
                for name, height in cluster.distinguishing(names)
            ],
        }
        for cluster, spread in zip(clusters, spreads, strict=True)
    ]
