"""Functions of a ratio of two numbers that stay accurate where the ratio is near one."""

from __future__ import annotations

import numpy as np

from powermeans.types import FloatArray

# Closer to one than this, the terms of a divergence cancel, and a series takes their place.
_NEAR = 1 / 64
# A share of a center that changes no digit of its divergence, and whose inverse does not overflow.
_NOTHING = 1e-300
_LEAST_NORMAL = float(np.finfo(np.float64).tiny)


def log_gap(numbers: FloatArray, bases: FloatArray, rise: FloatArray) -> FloatArray:
    """Return t - log(1 + t), where t is the rise, number / base less one.

    With u = t / (2 + t), log(1 + t) is 2 (u + u^3 / 3 + u^5 / 5 + ...) and t - 2 u is t u.
    """
    ratio = numbers / bases
    is_low = rise < -0.5  # where one more than the rise has lost digits of the ratio
    is_lost = ratio < _LEAST_NORMAL  # where the ratio itself has
    logs = np.log1p(rise, where=~is_low, out=np.empty_like(rise))
    np.log(ratio, where=is_low & ~is_lost, out=logs)
    if is_lost.any():
        logs = np.where(is_lost, np.log(numbers) - np.log(bases), logs)
    gap = rise - logs
    near = np.flatnonzero(np.abs(rise) < _NEAR)
    t = rise.flat[near]
    u = t / (2 + t)
    square, tail = u * u, np.zeros_like(u)
    for odd in (9, 7, 5, 3):
        tail = tail * square + 1 / odd
    gap.flat[near] = u * (t - 2 * square * tail)
    return gap


def relative_entropy(points: FloatArray, centers: FloatArray, rise: FloatArray) -> FloatArray:
    """Return x log(x / theta) - x + theta, with 0 log 0 = 0; `rise` is theta - x."""
    is_some = points > _NOTHING * centers
    if is_some.all():
        return points * log_gap(centers, points, rise / points)
    bases = np.where(is_some, points, centers)
    return np.where(is_some, bases * log_gap(centers, bases, rise / bases), centers)


def log_ratio(numbers: FloatArray, bases: FloatArray, rise: FloatArray) -> FloatArray:
    """Return the logarithm of number / base; `rise` is number - base."""
    is_near = np.abs(rise) < bases / 2
    shares = np.divide(rise, bases, where=is_near, out=np.zeros_like(rise))
    return np.log1p(shares, where=is_near, out=np.log(numbers) - np.log(bases))
