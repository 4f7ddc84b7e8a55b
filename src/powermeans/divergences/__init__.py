"""What a distance is: squared Euclidean, Bregman, angles, and sums of absolute differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from powermeans.divergences.binomial import Binomial
from powermeans.divergences.bregman import Bregman, Generated, Separable
from powermeans.divergences.gamma import Gamma
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.divergences.poisson import Poisson

__all__ = [
    "Binomial",
    "Bregman",
    "Divergence",
    "Gamma",
    "Generated",
    "Mahalanobis",
    "Poisson",
    "Separable",
    "resolve",
]

Divergence = Bregman | Literal["squared_euclidean", "cosine", "manhattan"]

_BY_NAME: dict[str, Callable[[], Divergence]] = {
    "squared_euclidean": lambda: "squared_euclidean",
    "cosine": lambda: "cosine",
    "manhattan": lambda: "manhattan",
    "poisson": Poisson,
    "kl": Poisson,
    "logistic": lambda: Binomial(1.0),
    "gamma": Gamma,
    "exponential": Gamma,
    "itakura_saito": Gamma,
}
NAMES = frozenset(_BY_NAME)


def resolve(divergence: Bregman | str) -> Divergence:
    """The divergence of this name; one that is given is itself.

    Parameters
    ----------
    divergence : Bregman or str
        "squared_euclidean", "cosine", "manhattan", "poisson" or "kl", "logistic", "gamma" or
        "exponential" or "itakura_saito".

    Returns
    -------
    Bregman or str
    """
    return divergence if isinstance(divergence, Bregman) else _BY_NAME[divergence]()
