"""Points that come part by part: check each part, then all of them together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.errors import FewRowsError
from powermeans.mathematics.arguments import refuse_total, refuse_weights
from powermeans.mathematics.sums import recorded
from powermeans.points.checks.points import (
    bounds,
    check_points,
    refuse_huge,
    refuse_tiny_products,
    refuse_tiny_spread,
    widest,
)
from powermeans.types import AnyMatrix, FloatArray


@recorded
@dataclass(frozen=True, slots=True)
class PartFacts:
    """Facts about a checked part of the points; the facts of several parts add up."""

    n_points: int
    largest: float  # magnitude among the entries
    lowest: FloatArray  # entry of each column; of sparse points (1,), of all columns together
    highest: FloatArray
    total_weight: float
    largest_weight: float

    def __add__(self, other: PartFacts) -> PartFacts:
        return PartFacts(
            self.n_points + other.n_points,
            max(self.largest, other.largest),
            np.fmin(self.lowest, other.lowest),
            np.fmax(self.highest, other.highest),
            self.total_weight + other.total_weight,
            max(self.largest_weight, other.largest_weight),
        )


def check_part(
    points: AnyMatrix,
    weights: FloatArray | None = None,
    *,
    name: str,
    first_row: int = 0,
    feature_names: Iterable[object] | None = None,
    has_missing: bool = False,
    divergence: Divergence = SquaredEuclidean(),
) -> PartFacts:
    """Return the facts about a part of the points and its float64 weights; raise on faults."""
    n_points, n_features = points.shape
    if not n_points:
        nothing = np.full(1 if sparse.issparse(points) else n_features, math.nan)
        return PartFacts(0, 0.0, nothing, nothing, 0.0, 0.0)
    naming: dict[str, Any] = {"name": name, "first_row": first_row}
    largest = check_points(points, feature_names=feature_names, has_missing=has_missing, **naming)
    divergence.check_domain(points, **naming)
    total_weight, largest_weight = float(n_points), 1.0
    if weights is not None:
        refuse_weights(weights, f"the weight of the rows in {name}", first_row)
        with np.errstate(over="ignore"):
            total_weight, largest_weight = float(weights.sum()), float(weights.max())
    return PartFacts(n_points, largest, *bounds(points), total_weight, largest_weight)


def check_parts(facts: PartFacts, *, n_features: int, n_clusters: int = 1, name: str) -> None:
    """Raise where all parts together cannot be clustered."""
    if facts.n_points < n_clusters:
        raise FewRowsError(facts.n_points, n_clusters)
    refuse_total(facts.total_weight, facts.largest_weight)
    total = max(float(facts.n_points), facts.total_weight)
    refuse_huge(facts.largest, total, n_features, name)
    if np.isnan(facts.lowest).any():
        column = int(np.argmax(np.isnan(facts.lowest)))
        raise ValueError(f"{name} has nothing but NaN in column {column}: leave it out")
    lightest = min(1.0, facts.total_weight)
    refuse_tiny_spread(widest(facts.lowest, facts.highest), name, lightest)
    refuse_tiny_products(facts.largest, lightest, name)
