"""Greedy k-means++ by its definition, for rows that know no faster way and other exponents."""

from __future__ import annotations

import numpy as np

from powermeans.rows.protocol import Nearness, Rows
from powermeans.types import FloatArray, IndexArray


def greedy_seeds(
    rows: Rows, order: IndexArray, first: float, others: FloatArray, exponent: float
) -> IndexArray:
    """Which points are the seeds: each the best of some drawn by their distance to those before.

    Parameters
    ----------
    rows : Rows
    order : (n_points,)
        How the draws walk along the points.
    first : float
        Number of [0, 1) that draws the first seed.
    others : (n_seeds - 1, n_candidates)
        Numbers that draw the candidates for each other seed.
    exponent : float
        Of the distance, in the probability to be drawn.

    Returns
    -------
    (n_seeds,)
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
