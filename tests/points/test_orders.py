"""Orders that depend on what the points are, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from powermeans.engine.seeds import choose
from powermeans.engine.seeds.orders import order_by_chance
from powermeans.points.opening import open_rows


def order(points, seed=0):
    return order_by_chance(points, None, np.random.RandomState(seed))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_it_is_a_permutation_that_follows_the_points(make, dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)).round(2).astype(dtype)
    points[rng.uniform(size=points.shape) < 0.3] = 0
    points[points == 0] *= -1  # minus zero
    walk = order(make(points))
    np.testing.assert_array_equal(np.sort(walk), np.arange(500))
    shuffle = rng.permutation(500)
    np.testing.assert_array_equal(points[shuffle][order(make(points[shuffle]))], points[walk])


def test_copies_follow_one_another():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(40, 2))
    labels = rng.integers(40, size=1000)
    walked = labels[order(places[labels])]
    assert np.count_nonzero(np.diff(walked)) == len(np.unique(labels)) - 1


WHOLE, FRACTIONS = np.arange(4096.0)[:, None], np.linspace(0, 1, 4096)[:, None]


@pytest.mark.parametrize(
    "points", [WHOLE, FRACTIONS, FRACTIONS.astype(np.float32), WHOLE * np.eye(1, 8)]
)
def test_it_knows_nothing_of_places(points):
    """Neither ranks nor steps of sorted points correlate with where they come in the walk."""
    rank = np.empty(len(points))
    rank[order(points)] = np.arange(len(points))
    by_chance = 4 / np.sqrt(len(points))
    assert abs(np.corrcoef(rank, np.arange(len(points)))[0, 1]) < by_chance
    assert abs(np.corrcoef(rank[1:], rank[:-1])[0, 1]) < by_chance
    # Of independent ranks the difference is a third of the number in the mean.
    assert np.abs(np.diff(rank)).mean() == pytest.approx(len(points) / 3, rel=0.05)


@pytest.mark.parametrize("n_places", [1, 3, 400, 3000])
@pytest.mark.parametrize("n_at_once", [7, 2**19])
def test_ties_keep_the_order_of_the_rows(monkeypatch, n_places, n_at_once):
    monkeypatch.setattr(choose, "_POINTS_AT_ONCE", n_at_once)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_places, 2))[rng.integers(n_places, size=500)]
    rows = open_rows(points)
    order, key = choose.order_by_place(rows, np.random.RandomState(0))
    one, other = choose.random_places(rows, np.random.RandomState(0), 2)
    unsorted = sum(rows.nearness(place[None, :]).sq_dist() for place in (one, other))
    np.testing.assert_array_equal(order, np.argsort(unsorted, kind="stable"))
    np.testing.assert_array_equal(key, unsorted[order])
