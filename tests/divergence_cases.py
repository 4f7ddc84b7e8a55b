"""Points in the domain of each Bregman divergence, for tests of all of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans import divergences as own
from powermeans.divergences.ratios import relative_entropy


def _covariance(n_features: int) -> np.ndarray:
    root = np.random.default_rng(7).normal(size=(n_features, n_features))
    return root @ root.T + 0.1 * np.eye(n_features)


@dataclass(frozen=True)
class OfTwoTerms(own.Separable):
    """The divergence of 3 x log x + x^2 / 8, as a user may define one."""

    lowest = 0.0
    moves = own.Phi(x_log_x=3.0, square=0.125)

    def deviance(self, points: np.ndarray, centers: np.ndarray) -> np.ndarray:
        rise = centers - points
        return 3 * relative_entropy(points, centers, rise) + rise**2 / 8

    def slope(self, centers: np.ndarray) -> np.ndarray:
        return 3 * np.log(centers) + centers / 4


@dataclass(frozen=True)
class Case:
    """A divergence, and how to draw points of its domain around places."""

    divergence: Callable[[int], own.Bregman]
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]

    def points(self, n_points: int, n_features: int, seed: int, n_groups: int = 3) -> np.ndarray:
        """Points in groups, with rows of this many features."""
        rng = np.random.default_rng(seed)
        middles = rng.uniform(3, 30, size=(n_groups, n_features))
        return self.draw(rng, middles[rng.integers(n_groups, size=n_points)])


CASES = {
    "poisson": Case(lambda d: own.Poisson(), lambda rng, m: rng.poisson(m).astype(float)),
    "poisson with many zeros": Case(
        lambda d: own.Poisson(),
        lambda rng, m: rng.poisson(m) * (rng.uniform(size=m.shape) < 0.4) * 1.0,
    ),
    "binomial": Case(lambda d: own.Binomial(40), lambda rng, m: 1.0 * rng.binomial(40, m / 40)),
    "logistic": Case(lambda d: own.Binomial(1), lambda rng, m: rng.beta(m / 4, (40 - m) / 4)),
    "gamma": Case(lambda d: own.Gamma(3.0), lambda rng, m: rng.gamma(3.0, m / 3)),
    "itakura-saito": Case(lambda d: own.Gamma(), lambda rng, m: rng.gamma(5.0, m / 5)),
    "inverse gaussian": Case(lambda d: own.InverseGaussian(), lambda rng, m: rng.wald(m, 3 * m)),
    "of two terms": Case(lambda d: OfTwoTerms(), lambda rng, m: rng.poisson(m).astype(float)),
    "mahalanobis": Case(
        lambda d: own.Mahalanobis(_covariance(d)), lambda rng, m: rng.normal(m, 4.0)
    ),
    "given by its function": Case(
        lambda d: own.Generated(lambda x: np.exp(x).sum(axis=1), np.exp),
        lambda rng, m: rng.normal(m / 20, 0.2),
    ),
}
