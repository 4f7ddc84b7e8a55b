"""The clusters of a fit as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from powermeans.command_line.screen import Screen, number
from powermeans.reporting.summaries import ClusterSummary, Columns, summarize
from powermeans.reporting.warnings_on_data import unlike_scales
from powermeans.types import FloatArray, Labels, Points

_MOST_SHOWN = 40


def summaries_of(
    points: Points,
    labels: Labels,
    centers: Points,
    names: Sequence[str],
    weights: FloatArray | None = None,
) -> tuple[Columns, list[ClusterSummary]]:
    """All points, and each cluster; values that are missing count as those of the center."""
    is_missing = np.isnan(points)
    filled: Any = np.where(is_missing, centers[labels], points) if is_missing.any() else points
    return summarize(filled, labels, len(centers), list(names), weights)


def hint_at_scale(columns: Columns) -> str | None:
    """What to say where one column decides nearly everything."""
    found = unlike_scales(columns)
    if found is None:
        return None
    widest, narrowest, times = found
    return (
        f'note: "{widest}" spreads {times} times as far as "{narrowest}" and so counts for more: '
        "--scale standard makes columns count alike"
    )


def show_clusters(
    screen: Screen, clusters: Sequence[ClusterSummary], names: list[str], *, has_weights: bool
) -> None:
    """Size, share, spread, and the columns in which each differs most from all."""
    shown = sorted(clusters, key=lambda cluster: -cluster.weight)[:_MOST_SHOWN]
    header = ["cluster", "size", *(["weight"] if has_weights else []), "share", "spread"]
    screen.show(
        [*header, "what sets it apart"],
        [
            [
                str(cluster.label),
                str(cluster.size),
                *([number(cluster.weight)] if has_weights else []),
                f"{cluster.share:.1%}",
                _four_digits(cluster.spread),
                _apart(cluster, names),
            ]
            for cluster in sorted(shown, key=lambda cluster: cluster.label)
        ],
        left=[len(header)],
    )
    if has_weights:
        screen.say("size: rows; share: of the weight")
    if len(clusters) > len(shown):
        screen.say(f"... and {len(clusters) - len(shown)} smaller ones, which --json shows")


def clusters_for_machines(
    clusters: Sequence[ClusterSummary],
    centers: Points,
    spreads: Iterable[float],
    names: list[str],
) -> list[dict[str, Any]]:
    """The same, with the centers and spreads in some unit."""
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


def spreads_in(
    units: FloatArray,
    points: Points,
    model: Any,
    clusters: Sequence[ClusterSummary],
    weights: FloatArray | None,
) -> list[float]:
    """The spreads that clusters have where one of each column is so many."""
    labels, centers = model.labels_, model.cluster_centers_
    means = np.array([cluster.mean for cluster in clusters])
    squares = np.zeros(len(clusters))
    for column, unit in enumerate(units):
        values = np.asarray(points[:, column], dtype=np.float64)
        filled = np.where(np.isnan(values), centers[labels, column], values)
        of_row = np.square(unit * (filled - means[labels, column]))
        of_row = np.nan_to_num(of_row) if weights is None else np.nan_to_num(of_row) * weights
        squares += np.bincount(labels, of_row, minlength=len(clusters))
    return [
        float(np.sqrt(square / cluster.weight)) if cluster.weight else 0.0
        for square, cluster in zip(squares, clusters, strict=True)
    ]


def _four_digits(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


def _apart(cluster: ClusterSummary, names: list[str]) -> str:
    if cluster.size == 0:
        return "empty"
    if cluster.weight == 0:
        return "weighs nothing"
    found = cluster.distinguishing(names)
    return ", ".join(f"{name} {height:+.1f} sd" for name, height in found) or "near the mean of all"


def totals(inertia: float, n_sweeps: int | None = None) -> str:
    """The inertia, and how it was reached."""
    return f"inertia {number(inertia)}" + (f" after {n_sweeps} sweeps" if n_sweeps else "")
