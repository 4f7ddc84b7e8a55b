"""The clusters of a fit as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from powermeans.cluster_summary import ClusterSummary, Columns, summarize
from powermeans.command_line.screen import Screen, number
from powermeans.types import Labels, Points

_MOST_SHOWN = 40
_MOST_RATIO = 100.0


def summaries_of(
    points: Points, labels: Labels, centers: Points, names: Sequence[str]
) -> tuple[Columns, list[ClusterSummary]]:
    """All points, and each cluster; values that are missing count as those of the center."""
    is_missing = np.isnan(points)
    filled: Any = np.where(is_missing, centers[labels], points) if is_missing.any() else points
    return summarize(filled, labels, len(centers), list(names))


def hint_at_scale(columns: Columns) -> str | None:
    """What to say where one column decides nearly everything."""
    widths = columns.deviations
    if not widths.any():
        return None
    largest, least = int(np.argmax(widths)), int(np.argmin(np.where(widths > 0, widths, np.inf)))
    ratio = widths[largest] / widths[least]
    if ratio < _MOST_RATIO:
        return None
    return (
        f'note: "{columns.names[largest]}" spreads {ratio:.0f} times as far as '
        f'"{columns.names[least]}" and so counts for more: --scale standard makes columns count '
        "alike"
    )


def show_clusters(screen: Screen, clusters: Sequence[ClusterSummary], names: list[str]) -> None:
    """Size, share, spread, and the columns in which each differs most from all."""
    shown = sorted(clusters, key=lambda cluster: -cluster.size)[:_MOST_SHOWN]
    screen.show(
        ["cluster", "size", "share", "spread", "what sets it apart"],
        [
            [
                str(cluster.label),
                str(cluster.size),
                f"{cluster.share:.1%}",
                f"{cluster.spread:.4g}",
                _apart(cluster, names),
            ]
            for cluster in sorted(shown, key=lambda cluster: cluster.label)
        ],
        left=[4],
    )
    if len(clusters) > len(shown):
        screen.say(f"... and {len(clusters) - len(shown)} smaller ones, which --json shows")


def clusters_for_machines(
    clusters: Sequence[ClusterSummary], centers: Points, names: list[str]
) -> list[dict[str, Any]]:
    """The same, with the centers."""
    return [
        {
            "label": cluster.label,
            "size": cluster.size,
            "share": cluster.share,
            "spread": cluster.spread,
            "center": dict(zip(names, centers[cluster.label].tolist(), strict=True)),
            "distinguishing": [
                {"column": name, "deviations": height}
                for name, height in cluster.distinguishing(names)
            ],
        }
        for cluster in clusters
    ]


def _apart(cluster: ClusterSummary, names: list[str]) -> str:
    if cluster.size == 0:
        return "empty"
    found = cluster.distinguishing(names)
    return ", ".join(f"{name} {height:+.1f} sd" for name, height in found) or "near the mean of all"


def totals(inertia: float, n_sweeps: int | None = None) -> str:
    """The inertia, and how it was reached."""
    return f"inertia {number(inertia)}" + (f" after {n_sweeps} sweeps" if n_sweeps else "")
