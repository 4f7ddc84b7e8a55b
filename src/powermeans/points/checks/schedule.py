"""Schedules of powers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from powermeans.mathematics.rules import Power, Rule


def check_schedule(schedule: Iterable[float | Rule], n_powers: int = 1000) -> None:
    """Raise unless the schedule gives powers or rules each time it is iterated."""
    powers: Iterator[object] = iter(schedule)
    if powers is schedule:
        raise ValueError(
            f"schedule={schedule!r} can be iterated only once: pass a list of powers, "
            "Geometric(start, growth) or Fixed(power)"
        )
    n_checked, numbers = 0, (int, float, np.integer, np.floating)
    for power in itertools.islice(powers, n_powers):
        is_power = isinstance(power, numbers) and power <= Power.highest
        if not is_power and not isinstance(power, Rule):
            raise ValueError(
                f"schedule={schedule!r} has {power!r} at index {n_checked}: pass powers of at most "
                f"{Power.highest}, for example Geometric(-3.0, 1.05), or rules"
            )
        n_checked += 1
    if n_checked == 0:
        raise ValueError(
            f"schedule={schedule!r} is empty: pass powers, for example Geometric(-3.0, 1.05)"
        )
