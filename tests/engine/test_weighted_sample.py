"""A sample of rows in parts: whoever is in it stands for those who are not."""

from __future__ import annotations

import numpy as np
import pytest
from kinds_of_rows import in_parts
from scipy import sparse

from powermeans.engine.seeds.samples import weighted_sample
from powermeans.scale.executors import MemoryExecutor, PartOpener
from powermeans.scale.parted_rows import PartedRows


def drawn(points, weights, n_drawn, seed=0, n_rows=7, **options):
    rows = in_parts(points, weights, n_rows)
    return weighted_sample(rows, n_drawn, np.random.RandomState(seed), **options)


class Listening(MemoryExecutor):
    """Parts that look at what calls say of their results, as places that send them do."""

    def total(self, call):
        for found in self.each(call):
            n_bytes = found.points.nbytes + found.times.nbytes + found.weights.nbytes
            assert n_bytes <= call.n_bytes_given <= 2 * n_bytes + 100
        return super().total(call)


def test_a_part_says_how_much_it_sends_since_a_cluster_adds_by_that():
    points = np.random.default_rng(0).normal(size=(900, 5))
    rows = PartedRows(Listening([(points[:450], None), (points[450:], None)], PartOpener()))
    assert len(weighted_sample(rows, 300, np.random.RandomState(0)).points) == 300


def numbered(n_points):
    return np.arange(n_points, dtype=float)[:, None]


def test_where_all_are_kept_they_have_their_weights():
    weights = np.arange(1.0, 31.0)
    sample = drawn(numbered(30), weights, 30)
    assert sample.is_all
    order = np.argsort(sample.points[:, 0])
    np.testing.assert_array_equal(sample.points[order], numbered(30))
    np.testing.assert_array_equal(sample.weights[order], weights)
    assert not drawn(numbered(30), weights, 29).is_all


@pytest.mark.parametrize("n_rows", [1, 13, 100])
def test_it_does_not_depend_on_where_the_rows_are_cut(n_rows):
    weights = np.random.default_rng(0).uniform(size=100)
    one, other = (drawn(numbered(100), weights, 20, n_rows=n) for n in (7, n_rows))
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)


def test_every_row_is_as_likely_wherever_it_stands():
    rows, counts = in_parts(numbered(40), None, 7), np.zeros(40)
    for seed in range(2000):
        sample = weighted_sample(rows, 10, np.random.RandomState(seed))
        counts[sample.points[:, 0].astype(int)] += 1
    # Each count has the mean 500 and the standard deviation 19.4.
    assert np.abs(counts - 500).max() < 5 * 19.4


def test_what_it_stands_for_has_no_bias():
    """Sums over any rows are estimated without bias, also where weights differ widely."""
    rng = np.random.default_rng(0)
    weights, wanted = rng.lognormal(sigma=1.5, size=60), rng.uniform(size=60) < 0.5
    rows, estimates = in_parts(numbered(60), weights, 7), []
    for seed in range(1500):
        sample = weighted_sample(rows, 20, np.random.RandomState(seed))
        is_wanted = wanted[sample.points[:, 0].astype(int)]
        estimates.append(sample.weights[is_wanted].sum() / sample.weights.sum())
    share = weights[wanted].sum() / weights.sum()
    standard_error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - share) < 4 * standard_error + 0.005


def test_heavy_rows_come_and_stand_for_no_more_than_themselves():
    weights = np.ones(100)
    weights[50] = 1e6
    for seed in range(20):
        sample = drawn(numbered(100), weights, 10, seed)
        assert sample.points[0, 0] == 50
        share = sample.weights[0] / sample.weights.sum()
        assert share == pytest.approx(1e6 / (1e6 + 99), rel=1e-3)


def test_weights_add_up_to_what_as_many_rows_weigh():
    weights = np.random.default_rng(0).uniform(size=100)
    sample = drawn(numbered(100), weights, 25)
    assert sample.weights.sum() == pytest.approx(25 * weights.mean())
    np.testing.assert_allclose(drawn(numbered(100), None, 25).weights, 1.0)


@pytest.mark.parametrize("n_least", [1, 4])
def test_rows_of_no_weight_come_only_where_there_are_too_few(n_least):
    weights = np.zeros(20)
    weights[[3, 8]] = 1.0
    sample = drawn(numbered(20), weights, 10, n_least=n_least)
    assert sample.is_all
    assert len(sample.points) == max(2, n_least)
    assert set(sample.points[sample.weights > 0, 0]) == {3, 8}


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_points_stay_in_their_kind(make):
    points = make(np.random.default_rng(0).poisson(0.5, size=(50, 4)).astype(np.float32))
    sample = drawn(points, None, 10)
    assert sample.points.dtype == np.float32
    assert sparse.issparse(sample.points) == sparse.issparse(points)
    assert sample.points.shape == (10, 4)
