"""Online k-means against its recursion, in fits and in streams."""

from __future__ import annotations

import numpy as np
import pytest
from problems import blobs

from powermeans import KMeans, OnlineKMeans

POINTS = blobs(600)


def macqueen(points, centers):
    """Equation 7: the mean of the points that each center has won so far."""
    won = [[] for _ in centers]
    centers = centers.copy()
    for point in points:
        j = int(((centers - point) ** 2).sum(axis=1).argmin())
        won[j].append(point)
        centers[j] = np.mean(won[j], axis=0)
    return centers, [len(points) for points in won]


def plain(**params):
    """One pass over the points as they come, and nothing else."""
    return OnlineKMeans(4, batch=False, shuffle=False, **params)


def test_a_second_epoch_goes_on_with_the_counts_of_the_first():
    centers, counts = macqueen(np.concatenate([POINTS, POINTS]), POINTS[:4])
    model = plain(init=POINTS[:4], n_epochs=2).fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)
    np.testing.assert_array_equal(model.counts_, counts)
    assert model.n_steps_ == 1200


@pytest.mark.parametrize("rates", [0.05, lambda t: 0.5 / t])
def test_a_learning_rate_makes_it_the_online_gradient(rates):
    centers = POINTS[:4].copy()
    for t, point in enumerate(POINTS, start=1):
        j = int(((centers - point) ** 2).sum(axis=1).argmin())
        rate = rates(t) if callable(rates) else rates
        centers[j] += rate * (point - centers[j])
    model = plain(init=POINTS[:4], learning_rate=rates).fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)


@pytest.mark.parametrize("sizes", [(1, 2, 597), (100,) * 6, (1,) * 600], ids=len)
@pytest.mark.parametrize("rates", ["auto", lambda t: t**-0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stream_in_chunks_is_one_pass_to_the_last_bit(sizes, rates, dtype):
    points = POINTS.astype(dtype)
    whole = plain(init=points[:4], learning_rate=rates).fit(points)
    stream = plain(init=points[:4], learning_rate=rates)
    for chunk in np.split(points, np.cumsum(sizes)[:-1]):
        stream.partial_fit(chunk)
    np.testing.assert_array_equal(stream.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(stream.counts_, whole.counts_)
    assert stream.n_steps_ == whole.n_steps_ == 600
    assert stream.cluster_centers_.dtype == dtype


def test_batch_sweeps_follow_and_end_where_lloyds_do():
    online = plain(init=POINTS[:4]).fit(POINTS)
    both = OnlineKMeans(4, init=POINTS[:4], shuffle=False, tol=0.0).fit(POINTS)
    lloyd = KMeans(4, init=online.cluster_centers_, tol=0.0).fit(POINTS)
    np.testing.assert_allclose(both.cluster_centers_, lloyd.cluster_centers_, atol=1e-12)
    assert both.n_iter_ == 1 + lloyd.n_iter_
    assert both.inertia_ == pytest.approx(lloyd.inertia_)
    assert both.inertia_ < online.inertia_
    np.testing.assert_array_equal(both.counts_, np.bincount(both.labels_))
    np.testing.assert_array_equal(both.labels_, both.predict(POINTS))


def test_a_constant_rate_follows_points_that_move():
    rng, init = np.random.default_rng(0), [[-1.0], [1.0]]
    streams = [OnlineKMeans(2, init=init, learning_rate=rate) for rate in (0.05, "auto")]
    for shift in np.linspace(0, 40, 400):
        chunk = rng.choice([-5.0, 5.0], size=(20, 1)) + rng.normal(size=(20, 1)) + shift
        for stream in streams:
            stream.partial_fit(chunk)
    forgetful, faithful = (np.sort(stream.cluster_centers_[:, 0]) for stream in streams)
    np.testing.assert_allclose(forgetful, [35, 45], atol=2)
    assert np.abs(faithful - [35, 45]).max() > 10


def test_places_that_the_first_points_have_too_few_of_are_made_up_for():
    stream = OnlineKMeans(3, init_size=5, random_state=0)
    for _ in range(3):
        stream.partial_fit(np.ones((4, 2)))
    for _ in range(20):
        stream.partial_fit(np.repeat([[5.0, 5.0], [9.0, 9.0], [1.0, 1.0]], 20, axis=0))
    np.testing.assert_allclose(np.sort(stream.cluster_centers_[:, 0]), [1, 5, 9], atol=1e-9)
    assert stream.counts_.sum() == 12 + 20 * 60


def test_a_seed_that_has_won_no_point_yet_stays():
    stream = OnlineKMeans.from_centers([[0.0], [9.0]]).partial_fit([[1.0], [2.0]])
    stream.partial_fit([[1.0], [3.0]])
    np.testing.assert_array_equal(stream.cluster_centers_, [[1.75], [9.0]])


def test_after_a_fit_a_stream_goes_on_from_its_clusters():
    model = OnlineKMeans(4, random_state=0).fit(POINTS)
    before, counts = model.cluster_centers_.copy(), model.counts_.copy()
    new = np.array([[100.0, 100.0]])
    j = model.predict(new)[0]
    model.partial_fit(new)
    expected = before[j] + (new[0] - before[j]) / (counts[j] + 1)
    np.testing.assert_allclose(model.cluster_centers_[j], expected)
    others = np.delete(np.arange(4), j)
    np.testing.assert_array_equal(model.cluster_centers_[others], before[others])
    np.testing.assert_array_equal(model.labels_, [j])
    assert model.inertia_ == pytest.approx(((new[0] - expected) ** 2).sum())
