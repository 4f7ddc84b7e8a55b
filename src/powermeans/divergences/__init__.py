"""Distances: squared Euclidean, Bregman, cosine and Manhattan, one file for each.

A new Bregman divergence is one file here, and below an import, an entry of `KINDS` for model files,
and a name. One that is not Bregman needs rows of its own too, as in `points/cosine.py`. It
imports only `types` and `errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

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

# Divergences that model files hold by their fields.
KINDS: tuple[type[Any], ...] = (Binomial, Gamma, Mahalanobis, Poisson)

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
NAMES = frozenset(_BY_NAME) | {"binomial"}


def resolve(divergence: Bregman | str) -> Divergence:
    """Return the divergence of this name; a divergence stays as it is."""
    if isinstance(divergence, Bregman):
        return divergence
    if divergence == "binomial":
        raise ValueError(
            'divergence="binomial" needs the number of trials: pass '
            "powermeans.divergences.Binomial(n_trials)"
        )
    return _BY_NAME[divergence]()
