"""Seeds by Markov chains, against the distribution of the chain by powers of its matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from powermeans import KMeans, MarkovChainSeeds, open_data
from powermeans.points.opening import open_rows

POINTS = np.array([[0.0], [1.0], [1.5], [4.0], [9.0]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
N_DRAWN = 2000


def shares_of_pairs(chain_length: int, exponent: float) -> np.ndarray:
    """Return the chance that a point is first and another second."""
    sq_dist = (POINTS - POINTS.T) ** 2
    shares = WEIGHTS / WEIGHTS.sum()
    chances = np.zeros((5, 5))
    for first in range(5):
        inertia = WEIGHTS * sq_dist[first]
        proposed = 0.5 * shares + 0.5 * inertia / inertia.sum()
        wanted = WEIGHTS * sq_dist[first] ** (exponent / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            accepted = np.minimum(1, wanted * proposed[:, None] / (wanted[:, None] * proposed))
        accepted[first] = wanted > 0  # where the wanted mass is zero, any with a mass is taken
        step = proposed * accepted
        np.fill_diagonal(step, 0)
        np.fill_diagonal(step, 1 - step.sum(axis=1))
        end = proposed @ np.linalg.matrix_power(step, chain_length - 1)
        chances[first] = shares[first] * end
    return chances


@pytest.mark.parametrize(("chain_length", "exponent"), [(1, 2.0), (3, 2.0), (4, 1.0)])
def test_pairs_of_seeds_come_as_often_as_the_chain_says(chain_length: int, exponent: float) -> None:
    rows, rng = open_rows(POINTS, WEIGHTS), np.random.RandomState(0)
    way = MarkovChainSeeds(chain_length, exponent)
    counts = np.zeros((5, 5))
    for _ in range(N_DRAWN):
        first, second = np.searchsorted(POINTS[:, 0], way.seeds(rows, 2, rng)[:, 0])
        counts[first, second] += 1
    expected = N_DRAWN * shares_of_pairs(chain_length, exponent)
    is_possible = expected > 0
    assert not counts[~is_possible].any()
    assert chisquare(counts[is_possible], expected[is_possible]).pvalue > 1e-3


def test_equal_points_repeat_as_seeds_and_parts_are_refused_with_another_way() -> None:
    seeds = MarkovChainSeeds(5)(np.ones((4, 2)), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(seeds, np.ones((3, 2)))
    parts = open_data(np.random.default_rng(0).normal(size=(50, 2)), rows_per_part=20)
    with pytest.raises(ValueError, match=r"read part by part: pass .*ParallelSeeds"):
        KMeans(3, init=MarkovChainSeeds()).fit(parts)


@pytest.mark.parametrize(
    ("name", "value"),
    [("chain_length", 0), ("chain_length", 2.5), ("exponent", -1.0), ("exponent", np.nan)],
)
def test_wrong_settings_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value} must be"):
        MarkovChainSeeds(**{name: value})


def test_large_exponents_take_the_farthest_point_seen_and_do_not_overflow() -> None:
    points = np.array([[0.0], [1.0], [2.0], [9.0]]) * 1e100
    seeds = MarkovChainSeeds(chain_length=200, exponent=50.0)
    chosen = seeds(points, 2, np.random.RandomState(0))[:, 0]
    assert chosen[1] == points[np.argmax(abs(points[:, 0] - chosen[0])), 0]
