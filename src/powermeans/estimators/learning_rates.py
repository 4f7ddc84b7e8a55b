"""Learning rates: how far a center moves towards a point, or along the gradient, at each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real

import numpy as np

from powermeans.types import FloatArray

LearningRate = float | Callable[[int], float] | Iterable[float]
"""A number, a function of the step t = 1, 2, ..., or an iterable of the rates (no iterator)."""


def rates_of(
    learning_rate: LearningRate | str, first: int, n_steps: int, *, highest: float = 1.0
) -> FloatArray:
    """Return the rates of `n_steps` steps from step `first` on; raise if one is out of range.

    >>> from powermeans.estimators.learning_rates import rates_of
    >>> rates_of(lambda t: 1 / t, first=2, n_steps=3)
    array([0.5       , 0.33333333, 0.25      ])
    """
    steps = range(first, first + n_steps)
    if isinstance(learning_rate, (str, bool)):
        raise ValueError(f'learning_rate={learning_rate!r} is unknown: pass "auto" or numbers')
    if callable(learning_rate):
        rates = _numbers(map(learning_rate, steps), first)
    elif isinstance(learning_rate, Iterable):
        rates = _numbers(_some(learning_rate, first, n_steps), first)
    else:
        rates = np.full(n_steps, float(learning_rate))
    if len(rates) < n_steps:
        raise ValueError(
            f"learning_rate={learning_rate!r} ends before step {first + len(rates)}: "
            "pass more rates, or a function of the step"
        )
    is_good = np.isfinite(rates) & (rates >= 0) & (rates <= highest)
    _refuse(~is_good, rates, steps, highest)
    return rates


def _some(learning_rate: Iterable[float], first: int, n_steps: int) -> Iterator[float]:
    rates = iter(learning_rate)
    if rates is learning_rate:
        raise ValueError(
            f"learning_rate={learning_rate!r} can be iterated only once: "
            "pass a list of rates, or a function of the step"
        )
    return itertools.islice(rates, first - 1, first - 1 + n_steps)


def _numbers(rates: Iterator[object], first: int) -> FloatArray:
    return np.fromiter(itertools.starmap(_number, enumerate(rates, first)), dtype=np.float64)


def _number(step: int, rate: object) -> float:
    if isinstance(rate, np.ndarray) and rate.ndim == 0:
        rate = rate.item()
    if isinstance(rate, float):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise ValueError(f"learning_rate is {rate!r} at step {step}: pass rates that are numbers")
    return float(rate)


def _refuse(is_bad: np.ndarray, rates: FloatArray, steps: range, highest: float) -> None:
    if is_bad.any():
        index = int(np.argmax(is_bad))
        limit = "finite and not negative" if highest == math.inf else f"in [0, {highest:g}]"
        raise ValueError(
            f"learning_rate is {rates[index]} at step {steps[index]}: pass rates that are {limit}"
        )
