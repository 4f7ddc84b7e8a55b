"""Distances: squared Euclidean, Bregman, f-divergences, cosine, Manhattan, one file for each.

A new Bregman or f-divergence is one file here, and below an import and an entry of `KINDS`: it says
all about itself. Any other needs rows of its own too, as in `points/cosine.py`. It imports only
`types` and `errors`.
"""

from __future__ import annotations

from typing import Any

from powermeans.divergences.base import Divergence, Phi
from powermeans.divergences.binomial import Binomial
from powermeans.divergences.bregman import Bregman, Generated, Separable
from powermeans.divergences.chi_squared import ChiSquared
from powermeans.divergences.cosine import Cosine
from powermeans.divergences.f_divergence import FDivergence
from powermeans.divergences.gamma import Gamma
from powermeans.divergences.hellinger import Hellinger
from powermeans.divergences.inverse_gaussian import InverseGaussian
from powermeans.divergences.jeffreys import Jeffreys
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.divergences.manhattan import Manhattan
from powermeans.divergences.poisson import Poisson
from powermeans.divergences.squared_euclidean import SquaredEuclidean

__all__ = [
    "Binomial",
    "Bregman",
    "ChiSquared",
    "Cosine",
    "Divergence",
    "FDivergence",
    "Gamma",
    "Generated",
    "Hellinger",
    "InverseGaussian",
    "Jeffreys",
    "Mahalanobis",
    "Manhattan",
    "Phi",
    "Poisson",
    "Separable",
    "SquaredEuclidean",
]

# Those that have names, which model files hold by their fields and the documentation lists.
KINDS: tuple[type[Divergence], ...] = (
    *(SquaredEuclidean, Poisson, Gamma, InverseGaussian, Binomial, Mahalanobis, Manhattan, Cosine),
    *(Hellinger, ChiSquared, Jeffreys),
)
_KIND_OF = {name: kind for kind in KINDS for name in kind.names}
NAMES = frozenset(_KIND_OF)


def kind_of(divergence: Any) -> type[Divergence]:
    """Return the class of a divergence or a name, or `Divergence` if it is none of either."""
    kind = _KIND_OF.get(divergence) if isinstance(divergence, str) else type(divergence)
    return kind if kind is not None and issubclass(kind, Divergence) else Divergence


def resolve(divergence: Divergence | str) -> Divergence:
    """Return the divergence of this name; a divergence stays as it is."""
    return kind_of(divergence).named(divergence) if isinstance(divergence, str) else divergence
