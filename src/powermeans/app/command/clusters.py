"""Label rows, count them by cluster, and show the clusters as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.app.command.outputs import RowColumns
from powermeans.app.command.screen import Screen, number
from powermeans.app.report.rows import ways_to_others
from powermeans.app.report.summaries import ClusterSummary, Columns, summaries_of_sums
from powermeans.estimators.base import CenterEstimator
from powermeans.points.needs import Measure, Needs
from powermeans.scale.executors import read_ahead
from powermeans.scale.parted_data import PartedData
from powermeans.types import FloatArray, Labels, Points


class Sizes:
    """Count the rows of each cluster and their weight, and hold the score of the model."""

    def __init__(self, n_clusters: int) -> None:
        self.sizes, self.weights = np.zeros(n_clusters, dtype=np.int64), np.zeros(n_clusters)
        self.score = 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    def add(self, points: Points, labels: Labels, weights: FloatArray | None = None) -> None:
        """Count some rows."""
        self.sizes += np.bincount(labels, minlength=len(self.sizes))
        self.weights += np.bincount(labels, weights, minlength=len(self.sizes))


class Tally(Sizes):
    """Sum over the rows of each cluster, about the mean of its first rows so that no digits cancel.

    A center would not do: with cosine distances it has length one, wherever its rows are.
    """

    def __init__(self, centers: Points) -> None:
        super().__init__(len(centers))
        self.centers = np.asarray(centers, dtype=np.float64)
        self._origins = self.centers.copy()
        self._deviations, self._squares = np.zeros((2, *centers.shape))
        self._lowest, self._highest = np.full((2, centers.shape[1]), np.nan)
        self._is_placed = np.zeros(len(centers), dtype=bool)

    def add(self, points: Points, labels: Labels, weights: FloatArray | None = None) -> None:
        """Add some rows; a missing value counts as the value of the center."""
        super().add(points, labels, weights)
        n_at_once = max(1, 2**20 // points.shape[1])
        for start in range(0, len(points), n_at_once):
            rows = slice(start, start + n_at_once)
            self._add(points[rows], labels[rows], None if weights is None else weights[rows])

    def _add(self, points: Points, labels: Labels, weights: FloatArray | None) -> None:
        members = self._members(labels, np.ones(len(labels)) if weights is None else weights)
        self._place_origins(points, labels)
        deviations = points - self._origins[labels]
        deviations[np.isnan(deviations)] = 0.0
        self._deviations += members @ deviations
        self._squares += members @ np.square(deviations)
        self._lowest = np.fmin(self._lowest, np.fmin.reduce(points, axis=0))
        self._highest = np.fmax(self._highest, np.fmax.reduce(points, axis=0))

    def _members(self, labels: Labels, counts: FloatArray) -> Any:
        shape = (len(self.centers), len(labels))
        return sparse.csr_array((counts, (labels, np.arange(len(labels)))), shape=shape)

    def _place_origins(self, points: Points, labels: Labels) -> None:
        """Put the origin of each cluster that is met for the first time at the mean of its rows."""
        sizes = np.bincount(labels, minlength=len(self.centers))
        is_new = (sizes > 0) & ~self._is_placed
        if is_new.any():
            ones = np.ones(len(labels))
            sums = self._members(labels, ones) @ points.astype(np.float64, copy=False)
            means = sums[is_new] / sizes[is_new, None]
            # A column with a missing value keeps the value of the center.
            self._origins[is_new] = np.where(np.isnan(means), self._origins[is_new], means)
            self._is_placed |= is_new

    def summaries(self, names: list[str]) -> tuple[Columns, list[ClusterSummary]]:
        """Summarize the columns and the clusters, as `powermeans.app.report.summaries` does."""
        means, squares = self._about_means()
        total = float(self.weights.sum())
        overall = self.weights @ means / total
        of_column = squares.sum(axis=0) + self.weights @ np.square(means - overall)
        of_column[self._lowest == self._highest] = 0.0
        columns = Columns(names, overall, np.sqrt(of_column / total))
        of_clusters = squares.sum(axis=1)
        return columns, summaries_of_sums(columns, self.sizes, self.weights, means, of_clusters)

    def spreads_in(self, units: FloatArray) -> list[float]:
        """Return the spreads of the clusters after each column is multiplied by its unit."""
        of_clusters = self._about_means()[1] @ np.square(units)
        return [float(spread) for spread in np.sqrt(of_clusters / self._divisors())]

    def _about_means(self) -> tuple[FloatArray, FloatArray]:
        """Return the means, and by column the sums of squares about them."""
        apart = self._deviations / self._divisors()[:, None]
        squares = self._squares - self.weights[:, None] * np.square(apart)
        return self._origins + apart, np.maximum(squares, 0.0)

    def _divisors(self) -> FloatArray:
        return np.where(self.weights > 0, self.weights, 1.0)


def told_of_rows(
    model: Any, points: Points, labels: Labels, added: Sequence[str] = ("cluster",)
) -> RowColumns:
    """Return what is written of each row: its cluster, and how near and how sure that is."""
    found: RowColumns = {"cluster": labels}
    if {*added} - {"cluster"} and hasattr(model, "transform"):
        found |= _nearest_of_rows(model, points, labels)
    return {name: found[name] for name in added if name in found}


def _nearest_of_rows(model: Any, points: Points, labels: Labels) -> RowColumns:
    """Return the distance to the own center, the next cluster, and how sure the own one is.

    A row is sure by 1 at its center, and by 0 from halfway to another one on.
    """
    n_points = len(points)
    own, sure, seconds = np.zeros(n_points), np.ones(n_points), np.full_like(labels, -1)
    n_at_once = 2**14
    for start in range(0, n_points, n_at_once):
        rows = slice(start, start + n_at_once)
        distances = np.array(model.transform(points[rows]), dtype=np.float64)
        place = np.arange(len(distances))
        own[rows] = distances[place, labels[rows]]
        if distances.shape[1] > 1:
            ways = ways_to_others(model, points[rows], labels[rows], distances)
            sure[rows] = np.clip(1 - 2 * ways, 0.0, 1.0)
            distances[place, labels[rows]] = np.inf
            seconds[rows] = np.argmin(distances, axis=1)
    return {"distance": own, "second_cluster": seconds, "sure": sure}


def labelled(model: Any, data: PartedData, tally: Sizes) -> Iterator[RowColumns]:
    """Yield what is written of the rows of each part, and count them."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    has_missing = getattr(last, "missing", "error") == "observed"
    needs = Needs(name="predict", measure=Measure(has_missing=has_missing))
    parts: Iterator[Any] = read_ahead(data.partition(needs).read())
    for points, weights in parts:
        labels, score = labels_and_score(model, points, weights)
        tally.add(points, labels, weights)
        tally.score += score
        told = told_of_rows(model, points, labels)
        del points, weights  # so that the part is freed while the caller writes
        yield told


def labels_and_score(
    model: Any, points: Points, weights: FloatArray | None
) -> tuple[Labels, float]:
    """Predict labels and score points, in one pass where the model inherits both methods."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    kind, base = type(last), CenterEstimator
    if not issubclass(kind, base) or (kind.predict, kind.score) != (base.predict, base.score):
        return model.predict(points), float(model.score(points, sample_weight=weights))
    if last is not model:
        points = model[:-1].transform(points)
    found: tuple[Labels, float] = last._labels_and_score(points, weights)
    return found


def show_clusters(
    screen: Screen, clusters: Sequence[ClusterSummary], names: list[str], *, has_weights: bool
) -> None:
    """Show size, share, spread and the columns in which each cluster differs most from the rest."""
    shown = sorted(clusters, key=lambda cluster: -cluster.weight)[:40]
    header = ["cluster", "size", *(["weight"] if has_weights else []), "share", "spread"]
    screen.show(
        [*header, "what sets it apart"],
        [
            [
                str(cluster.label),
                f"{cluster.size:,}",
                *([number(cluster.weight)] if has_weights else []),
                f"{cluster.share:.1%}",
                f"{cluster.spread:#.4g}".rstrip("."),
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


def _apart(cluster: ClusterSummary, names: list[str]) -> str:
    if cluster.size == 0:
        return "empty"
    if cluster.weight == 0:
        return "weighs nothing"
    found = cluster.distinguishing(names)
    return ", ".join(f"{name} {height:+.1f} sd" for name, height in found) or "near the mean of all"


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
