"""Learning rates: how far a center moves towards a point, or along the gradient, at each step."""

import math
from collections.abc import Callable
from numbers import Real

import numpy as np

from powermeans.types import FloatArray

LearningRate = float | Callable[[int], float]
"""A number, or a function of the step t = 1, 2, ..."""


def rates_of(
    learning_rate: LearningRate | str, first: int, n_steps: int, *, highest: float = 1.0
) -> FloatArray:
    """Return the rates of `n_steps` steps from step `first` on; raise if one is out of range.

    >>> from powermeans.methods.learning_rates import rates_of
    >>> rates_of(lambda t: 1 / t, first=2, n_steps=3)
    array([0.5       , 0.33333333, 0.25      ])
    """
    steps = range(first, first + n_steps)
    if isinstance(learning_rate, (str, bool)):
        raise ValueError(f'learning_rate={learning_rate!r} is unknown: pass "auto" or a number')
    if callable(learning_rate):
        rates = np.array([_number(learning_rate(step), step) for step in steps])
    else:
        rates = np.full(n_steps, float(learning_rate))
    is_bad = ~(np.isfinite(rates) & (rates >= 0) & (rates <= highest))
    if is_bad.any():
        index = int(np.argmax(is_bad))
        limit = "finite and not negative" if highest == math.inf else f"in [0, {highest:g}]"
        raise ValueError(
            f"learning_rate is {rates[index]} at step {steps[index]}: pass rates that are {limit}"
        )
    return rates


def _number(rate: object, step: int) -> float:
    if isinstance(rate, np.ndarray) and rate.ndim == 0:
        rate = rate.item()
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise ValueError(f"learning_rate is {rate!r} at step {step}: pass rates that are numbers")
    return float(rate)
