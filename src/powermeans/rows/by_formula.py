"""A sweep with any rule, by the rule's own formulas, some points at a time."""

from __future__ import annotations

import numpy as np

from powermeans.divergences import squared_euclidean
from powermeans.rules import Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints


def sweep_by_formula(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None,
    centers: FloatArray,
    rule: Rule,
) -> Sums:
    """What rows do with a rule that they have no kernel for: the same, slower.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    sample_weight : (n_points,), optional
    centers : (n_centers, n_features)
    rule : Rule

    Returns
    -------
    Sums
    """
    sums = Sums(np.zeros(centers.shape), np.zeros(len(centers)), 0.0, 0.0)
    for chunk, sq_dist in squared_euclidean.in_chunks(points, centers):
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
