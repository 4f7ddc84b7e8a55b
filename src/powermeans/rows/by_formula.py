"""A sweep with any rule, by the rule's own formulas, some points at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from powermeans.rules import Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints


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
    sample_weight : (n_points,), optional
    distances : iterable of (slice, (n_rows, n_centers))
        Those of some points at a time to all centers, with the points they are of.
    n_centers : int
    rule : Rule

    Returns
    -------
    Sums
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
