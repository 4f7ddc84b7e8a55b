"""Draws in proportion to a mass."""

import math

import numpy as np

from powermeans.types import FloatArray, IndexArray


def draw_indices(mass: FloatArray, uniforms: FloatArray) -> IndexArray:
    """Draw index i with probability mass[i] / sum(mass), by inverting the cumulative mass.

    Each number of [0, 1) draws the first index whose cumulative mass exceeds that share of the
    total, never one without mass. Masses are finite and not negative.
    """
    mass = np.asarray(mass, dtype=np.float64)
    largest = mass.max(initial=0.0)
    if not 0 < largest < math.inf:
        raise ValueError(
            f"mass has the maximum {largest}: pass finite masses, not all of them zero"
        )
    # Division by the largest keeps the sum and its share from overflow and underflow.
    cumulative = mass / largest
    np.cumsum(cumulative, out=cumulative)
    drawn = np.searchsorted(cumulative, np.asarray(uniforms) * cumulative[-1], side="right")
    # Rounding may lift a number just below one to the total, beyond the last mass.
    last_with_mass = np.searchsorted(cumulative, cumulative[-1], side="left")
    return np.asarray(np.minimum(drawn, last_with_mass), dtype=np.intp)
