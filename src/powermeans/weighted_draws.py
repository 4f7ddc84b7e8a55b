"""The arithmetic of seeding: how many candidates to try, and drawing in proportion to a mass."""

from __future__ import annotations

import math

import numpy as np

from powermeans.types import FloatArray, IndexArray


def n_greedy_candidates(n_clusters: int) -> int:
    """Candidates of greedy k-means++ for each new center, 2 + floor(ln k), as in scikit-learn."""
    return 2 + int(math.log(n_clusters))


def draw_indices(mass: FloatArray, uniforms: FloatArray) -> IndexArray:
    """Invert the cumulative mass: index i has probability mass[i] / sum(mass).

    Parameters
    ----------
    mass : (n,)
        Not negative, finite, not all zero. An index without mass is never drawn.
    uniforms : (...)
        Numbers of [0, 1), one for each draw.

    Returns
    -------
    (...)
        The first index whose cumulative mass exceeds the uniform number's share of the total.
    """
    mass = np.asarray(mass, dtype=np.float64)
    largest = mass.max(initial=0.0)
    if not 0 < largest < math.inf:
        raise ValueError(
            f"mass has the maximum {largest}: pass finite masses, not all of them zero"
        )
    # Divided by the largest, so that neither the sum nor its share can overflow or vanish.
    cumulative = mass / largest
    np.cumsum(cumulative, out=cumulative)
    drawn = np.searchsorted(cumulative, np.asarray(uniforms) * cumulative[-1], side="right")
    last_with_mass = np.searchsorted(cumulative, cumulative[-1], side="left")
    return np.asarray(np.minimum(drawn, last_with_mass), dtype=np.intp)
