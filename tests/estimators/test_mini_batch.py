"""Power k-means in batches: as good as all at once, nearly, and the same where it can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import blobs
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from powermeans import MiniBatchPowerKMeans, PowerKMeans
from powermeans.estimators.streams.running_sums import FADING


def test_a_fit_is_nearly_as_good_as_power_k_means_and_better_than_batches_of_lloyds():
    inertias = np.zeros(3)
    for seed in range(3):
        points = blobs(10_000, 2, 30, scale=4.0, seed=seed)
        with threadpool_limits(1):  # more of them wait for one another
            for number, kind in enumerate((PowerKMeans, MiniBatchPowerKMeans, MiniBatchKMeans)):
                inertias[number] += kind(30, random_state=seed).fit(points).inertia_
    whole, batches, theirs = inertias
    assert batches < 1.03 * whole
    assert batches < 0.98 * theirs


def test_few_points_are_the_first_sample_and_end_as_power_k_means_does():
    points = blobs(1800, 4, 12)
    model = MiniBatchPowerKMeans(12, random_state=0).fit(points)
    assert model.n_steps_ == 1
    fast = PowerKMeans(12, init=model.cluster_centers_, effort="none", power=-math.inf)
    assert model.inertia_ < (1 + 1e-4) * fast.fit(points).inertia_


def test_powers_go_from_the_automatic_one_to_minus_infinity():
    points = blobs(60_000, 4, 12)
    model = MiniBatchPowerKMeans(12, random_state=0).fit(points)
    power = model.history_.power
    start = min(2 * PowerKMeans(12, effort="none").fit(points[:3072]).critical_power_ - 1, -1)
    assert power[0] == -math.inf  # the first sample, which is hard by then
    assert power[1] == pytest.approx(start, rel=0.5)
    soft = power[1:][np.isfinite(power[1:])]
    np.testing.assert_allclose(soft[1:] / soft[:-1], 1.2)
    assert (power[1 + len(soft) :] == -math.inf).all()
    assert 3 < len(soft) < len(power) - 5
    assert model.power_ == -math.inf


def test_a_chunk_is_one_step_of_the_recursion():
    """Hard sums of a chunk are added to what is left of those before."""
    points = blobs(3000, 4, 3)
    stream = MiniBatchPowerKMeans(3, init_size=1000, power=-math.inf, random_state=0)
    stream.partial_fit(points[:1000])
    centers = stream.cluster_centers_
    chosen = PowerKMeans(3, effort="fast", power=-math.inf, random_state=0).fit(points[:1000])
    labels = chosen.predict(points[:1000])
    weights = np.bincount(labels, minlength=3).astype(float)
    sums = np.array([points[:1000][labels == j].sum(axis=0) for j in range(3)])
    np.testing.assert_allclose(centers, sums / weights[:, None])
    for start, end in ((1000, 1500), (1500, 3000)):
        chunk = points[start:end]
        labels = ((chunk[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        kept = (start / end) ** FADING
        sums = kept * sums + np.array([chunk[labels == j].sum(axis=0) for j in range(3)])
        weights = kept * weights + np.bincount(labels, minlength=3)
        centers = sums / weights[:, None]
        stream.partial_fit(chunk)
        np.testing.assert_allclose(stream.cluster_centers_, centers)


def test_a_stream_of_the_batches_of_a_fit_is_the_fit(monkeypatch):
    points, batches = blobs(20_000, 4, 12), []
    part = MiniBatchPowerKMeans._part

    def noted(self, data, indices):
        batches.append(data.points[indices])
        return part(self, data, indices)

    with monkeypatch.context() as patched:
        patched.setattr(MiniBatchPowerKMeans, "_part", noted)
        fitted = MiniBatchPowerKMeans(12, power=-math.inf, random_state=0).fit(points)
    assert sum(map(len, batches)) == len(points)
    # The fit draws its order before the seeds.
    rng = np.random.RandomState(0)
    rng.randint(2**31)
    stream = MiniBatchPowerKMeans(12, power=-math.inf, random_state=rng)
    for batch in batches:
        stream.partial_fit(batch)
    np.testing.assert_array_equal(stream.cluster_centers_, fitted.cluster_centers_)
    assert stream.n_steps_ == fitted.n_steps_


def test_with_a_memory_the_centers_follow_clusters_that_move():
    rng = np.random.default_rng(0)
    given = {"init_size": 100, "random_state": 0}
    streams = [MiniBatchPowerKMeans(2, memory=memory, **given) for memory in (None, 500.0)]
    for shift in np.linspace(0, 40, 400):
        chunk = rng.choice([-5.0, 5.0], size=(50, 1)) + rng.normal(size=(50, 1)) + shift
        for stream in streams:
            stream.partial_fit(chunk)
    faithful, forgetful = (np.sort(stream.cluster_centers_[:, 0]) for stream in streams)
    np.testing.assert_allclose(forgetful, [35, 45], atol=2)
    assert np.abs(faithful - [35, 45]).max() > 5


def test_lost_centers_are_found_again_where_clusters_come_and_go():
    rng = np.random.default_rng(0)
    stream = MiniBatchPowerKMeans(
        3, init_size=300, memory=500.0, reassignment_ratio=0.01, random_state=0
    )
    first, later = [[-10.0], [0.0], [1.0]], [[-10.0], [0.0], [50.0]]
    for means in [first] * 30 + [later] * 60:
        chunk = np.array(means)[rng.integers(3, size=100)] + 0.1 * rng.normal(size=(100, 1))
        stream.partial_fit(chunk)
    np.testing.assert_allclose(np.sort(stream.cluster_centers_[:, 0]), [-10, 0, 50], atol=0.1)


@pytest.mark.parametrize("n_batches", [1, 3, 20])
def test_an_interrupt_after_a_batch_leaves_one_state(n_batches, interrupt_in_line):
    """One falls into the line that is printed, when the history has the batch."""
    points = blobs(10_000, 4, 12)
    model = MiniBatchPowerKMeans(12, max_iter=5, verbose=2, init_size=2000, random_state=0)
    interrupt_in_line(rf", {n_batches} sweeps?, ")
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    assert len(model.history_) == model.n_steps_ == n_batches
    # The first pass has nine batches, the first of 2000 points, and later ones have fewer.
    assert model.n_iter_ == {1: 1, 3: 1, 20: 3}[n_batches]
    np.testing.assert_array_equal(model.cluster_centers_, model._stream.centers)
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    assert not hasattr(model, "_in_fit")
    model.set_params(verbose=0).partial_fit(points[:100])
    assert model.n_steps_ == n_batches + 1


@pytest.mark.parametrize("power", ["auto", -1.0, -math.inf])
@pytest.mark.parametrize("n_places", [1, 2])
def test_places_of_the_first_sample_that_were_too_few_are_made_up_for(power, n_places):
    stream = MiniBatchPowerKMeans(4, init_size=5, power=power, random_state=0)
    places = np.array([[1.0, 1.0], [2.0, 5.0], [9.0, 9.0], [-5.0, 3.0]])
    for _ in range(3):
        stream.partial_fit(np.repeat(places[:n_places], 4, axis=0))
    for _ in range(30):
        stream.partial_fit(np.repeat(places[::-1], 20, axis=0))
    assert stream.score(places) > -1e-2
