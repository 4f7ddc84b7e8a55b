"""A sweep with any rule, by the rule's own formulas, some points at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from powermeans.rows.protocol import Nearness, Rows
from powermeans.rules import Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints


def sweep_by_formula(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None,
    distances: Iterable[tuple[slice, FloatArray]],
    n_centers: int,
    rule: Rule,
) -> Sums:
    """What rows do with a rule that they have no kernel for: the same, slower.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    distances : iterable of (slice, (n_rows, n_centers))
        Those of some points at a time to all centers, with the points they are of.
    """
    sums = Sums(np.zeros((n_centers, points.shape[1])), np.zeros(n_centers), 0.0, 0.0)
    for chunk, sq_dist in distances:
        counts = np.ones(len(sq_dist)) if sample_weight is None else sample_weight[chunk]
        weights, objectives = rule.weigh(sq_dist)
        weighted = counts[:, None] * weights
        sums += Sums(
            points=np.asarray((points[chunk].T @ weighted).T, dtype=np.float64),
            weights=weighted.sum(axis=0),
            objective=float(counts @ objectives),
            inertia=float(counts @ sq_dist.min(axis=1)),
        )
    return sums


def greedy_seeds(
    rows: Rows, order: IndexArray, first: float, others: FloatArray, exponent: float
) -> IndexArray:
    """Which points are the seeds: each the best of some drawn by their distance to those before.

    Parameters
    ----------
    order : (n_points,)
        How the draws walk along the points.
    first : float
        Number of [0, 1) that draws the first seed.
    others : (n_seeds - 1, n_candidates)
        Numbers that draw the candidates for each other seed.
    exponent : float
        Of the distance, in the probability to be drawn.
    """
    nearness = rows.nearness(np.empty((0, rows.n_features)), order)
    chosen = np.empty(1 + len(others), dtype=np.intp)
    for seed in range(len(chosen)):
        uniforms = others[seed - 1] if seed else np.array([first])
        chosen[seed] = _best(nearness, nearness.draw(uniforms, exponent))
        nearness.add(rows.take(chosen[seed : seed + 1])[0])
    return chosen


def _best(nearness: Nearness, candidates: IndexArray) -> int:
    if len(candidates) == 1:
        return int(candidates[0])
    return int(candidates[np.argmin(nearness.potentials(candidates))])
