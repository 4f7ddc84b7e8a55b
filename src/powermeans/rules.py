"""Rules: how a point's distances to the centers become weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powermeans.power_mean import power_mean, power_mean_weights
from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class Hard:
    """All the weight of a point to its nearest center: Lloyd's rule, `Power` at -inf."""

    power: ClassVar[float] = -math.inf

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights and objective of each point; of several nearest centers the first takes all."""
        nearest = np.argmin(sq_dist, axis=1)
        weights = np.zeros_like(sq_dist)
        weights[np.arange(len(sq_dist)), nearest] = 1.0
        return weights, np.min(sq_dist, axis=1)


@dataclass(frozen=True, slots=True)
class Power:
    """Weights are the gradient of the power mean M_s (Xu & Lange 2019, equation 5)."""

    power: float
    highest: ClassVar[float] = -0.02
    """Nearer to zero the weights k^(1/s) of many centers leave the range of float64."""

    def __post_init__(self) -> None:
        if not -math.inf < self.power <= self.highest:
            raise ValueError(
                f"power={self.power!r} must be finite and at most {self.highest}: pass for example "
                "power=-3.0, or use Hard() for the limit at -inf"
            )

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights k^(1/s) w_ij, which lie in [0, 1], and the objective M_s of each point."""
        return power_mean_weights(sq_dist, self.power), power_mean(sq_dist, self.power)


Rule = Hard | Power


def rule_at(power: float) -> Rule:
    """`Hard` at minus infinity, `Power` elsewhere."""
    return Hard() if power == -math.inf else Power(power)
