"""The two hybrids of Lloyd's algorithm and k-harmonic means by Hamerly and Elkan (2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from powermeans.mathematics.rules import Hard, Harmonic, Rule
from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class _Hybrid(Rule):
    """Take one of the two functions from `Harmonic(p)`, and descend no objective."""

    p: float = 2.0
    unit: float = 1.0
    """As in `Harmonic`."""
    descends: ClassVar[bool] = False

    def __post_init__(self) -> None:
        Harmonic(self.p, self.unit)

    @property
    def harmonic(self) -> Harmonic:
        """The rule that one of the functions is from."""
        return Harmonic(self.p, self.unit)

    @property
    def power(self) -> float:  # type: ignore[override]
        """Power of squared distances, -p / 2."""
        return self.harmonic.power

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """Return the least squared distance: the rule has no objective that it descends."""
        return Hard().objective(sq_dist)


@dataclass(frozen=True, slots=True)
class HardHarmonic(_Hybrid):
    """Hamerly & Elkan's hybrid 1: hard memberships, the weighing of KHM_p."""

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return the memberships of `Hard`."""
        return Hard().memberships(sq_dist)

    def weighing(self, sq_dist: FloatArray) -> FloatArray:
        """Return the weighing of `Harmonic`."""
        return self.harmonic.weighing(sq_dist)


@dataclass(frozen=True, slots=True)
class EvenHarmonic(_Hybrid):
    """Hamerly & Elkan's hybrid 2: memberships of KHM_p, and all points count the same."""

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Return the memberships of `Harmonic`."""
        return self.harmonic.memberships(sq_dist)
