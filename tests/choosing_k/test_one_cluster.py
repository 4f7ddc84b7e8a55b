"""One cluster is never clear, and the null hypothesis is one cluster of the same shape."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from threadpoolctl import threadpool_limits

import powermeans.choosing_k.evaluate
from powermeans import choose_k
from powermeans.choosing_k.one_cluster import draws_by_distance, draws_by_feature
from powermeans.types import FloatArray


def mixed(root: FloatArray) -> Callable[[FloatArray], FloatArray]:
    return lambda normal: normal @ root.T


def in_a_ball(normal: FloatArray) -> FloatArray:
    """Return points of even density, in the same directions."""
    n, d = normal.shape
    lengths = np.linalg.norm(normal, axis=1)
    shares = (np.argsort(np.argsort(lengths)) + 0.5) / n
    return normal / lengths[:, None] * shares[:, None] ** (1 / d)


LAGS = np.abs(np.arange(30)[:, None] - np.arange(30))
SHAPES: list[tuple[Callable[[FloatArray], FloatArray], int, int]] = [
    (lambda normal: normal, 3_000, 20),
    (norm.cdf, 4_000, 15),
    (lambda normal: np.exp(0.6 * normal), 4_000, 12),
    (lambda normal: normal[:, 1:] + 1.5 * normal[:, :1], 2_000, 13),
    (mixed(np.linalg.cholesky(0.9**LAGS)), 2_000, 30),  # autoregressive
    (mixed(np.diag(np.arange(1, 51) ** -0.5)), 1_000, 50),
    (lambda normal: softmax(normal, axis=1)[:, :8], 2_000, 9),
    (in_a_ball, 5_000, 2),
    (in_a_ball, 5_000, 3),
    (lambda normal: 1.0 * (normal[:, 1:] + normal[:, :1] > 0.3), 1_000, 7),  # zeros and ones
]


@pytest.mark.parametrize(("shape", "n", "d"), SHAPES)
def test_one_cluster_is_not_clear(shape, n: int, d: int) -> None:
    points = shape(np.random.default_rng(0).normal(size=(n, d)))
    choice = choose_k(points, criteria="separation", effort="fast", random_state=0)
    assert not choice.is_clear


def test_a_single_cluster_that_is_as_far_apart_takes_clearness_away(monkeypatch) -> None:
    points = np.random.default_rng(0).normal(size=(300, 2))
    points[::2] += 8.0

    def themselves(points, counts, rng):
        return itertools.repeat(points)

    assert choose_k(points, range(2, 5), random_state=0).is_clear
    monkeypatch.setattr(powermeans.choosing_k.evaluate, "draws_by_feature", themselves)
    choice = choose_k(points, range(2, 5), random_state=0)
    assert (choice.recommended, choice.is_clear) == (2, False)


def test_draws_keep_the_shape_of_one_cluster() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4_000, 2))
    points = np.column_stack([np.exp(0.5 * z[:, 0]), z[:, 0] + z[:, 1]])
    drawn = next(draws_by_feature(points, np.ones(4_000), np.random.RandomState(0)))
    np.testing.assert_allclose(drawn.mean(axis=0), points.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), points.std(axis=0), rtol=0.1)
    together = np.corrcoef(np.log(drawn[:, 0]), drawn[:, 1])[0, 1]
    assert together == pytest.approx(np.sqrt(0.5), abs=0.05)


def test_draws_have_the_noise_of_correlations_once() -> None:
    normal = np.random.default_rng(0).normal(size=(2_000, 30))
    drawn = next(draws_by_feature(normal, np.ones(2_000), np.random.RandomState(0)))
    between = np.corrcoef(drawn, rowvar=False)[np.triu_indices(30, 1)]
    assert 0.7 < np.mean(between**2) * 2_000 < 1.4  # one on average, and two if they had it twice


def test_draws_by_distance_have_a_density_that_falls_from_the_mean_alike() -> None:
    ball = in_a_ball(np.random.default_rng(0).normal(size=(4_000, 3)))
    points = ball * [1.0, 10.0, 0.0] + [5.0, 0.0, 2.0]  # a disk in the middle is dense
    drawn, other = itertools.islice(
        draws_by_distance(points, np.ones(4_000), np.random.RandomState(0)), 2
    )
    assert not np.array_equal(drawn, other)
    np.testing.assert_allclose(drawn.mean(axis=0), points.mean(axis=0), atol=0.3)
    np.testing.assert_allclose(drawn.std(axis=0), points.std(axis=0), rtol=0.05, atol=1e-12)
    shares = [
        np.quantile(np.hypot(p[:, 0] - 5, p[:, 1] / 10), [0.1, 0.5, 0.9]) for p in (points, drawn)
    ]
    np.testing.assert_allclose(*shares, atol=0.03)


def test_draws_fill_the_valley_between_two_clusters() -> None:
    points = np.random.default_rng(0).normal(size=(3_000, 1))
    points[::2] += 8.0
    drawn = next(draws_by_feature(points, np.ones(3_000), np.random.RandomState(0)))
    in_the_valley = ((drawn > 3) & (drawn < 5)).mean()
    assert ((points > 3) & (points < 5)).mean() < 0.01
    assert in_the_valley > 0.1


def test_draws_of_counts_are_counts_with_the_same_shares() -> None:
    points = 2.5 * np.random.default_rng(0).poisson(1.5, size=(4_000, 1))
    points[points == 5.0] = 7.5  # a hole that one cluster does not have
    drawn = next(draws_by_feature(points, np.ones(4_000), np.random.RandomState(0)))
    np.testing.assert_array_equal(drawn % 2.5, 0.0)
    assert (drawn == 5.0).mean() > 0.1
    assert (drawn == 0.0).mean() == pytest.approx((points == 0.0).mean(), abs=0.03)


@pytest.mark.parametrize("draws", [draws_by_feature, draws_by_distance])
def test_draws_have_the_same_bits_for_any_number_of_threads_of_blas(draws) -> None:
    points, counts = np.random.default_rng(0).normal(size=(600, 300)), np.ones(600)
    drawn = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            drawn.append(next(draws(points, counts, np.random.RandomState(0))))
    assert np.array_equal(*drawn)
