"""One fit while it goes on."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from powermeans.engine.callbacks import Listener


@dataclass(slots=True)
class Fit:
    """What the runs of one fit share: random numbers, the time left, and who hears of it."""

    rng: np.random.RandomState
    listener: Listener = field(default_factory=Listener)
    end: float = math.inf  # of `max_seconds`, on the monotonic clock
    candidates: Any = None  # for seeds of points in parts, found once

    def seconds_left(self) -> float:
        """Return how long the fit may go on."""
        return self.end - time.monotonic()

    def is_late(self) -> bool:
        """Return whether the fit should end."""
        return self.seconds_left() <= 0
