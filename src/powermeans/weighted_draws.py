"""Draws in proportion to a mass."""

from __future__ import annotations

import math

import numpy as np

from powermeans.types import FloatArray, IndexArray


def draw_indices(mass: FloatArray, uniforms: FloatArray) -> IndexArray:
    """Invert the cumulative mass: draw index i with probability mass[i] / sum(mass).

    Each number of [0, 1) draws the first index whose cumulative mass exceeds its share of the
    total. Masses are not negative and finite; an index without mass is never drawn.
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
