"""What streams tell of their drift, by hand where it can be."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from powermeans import MiniBatchPowerKMeans, OnlineKMeans, open_data

KINDS = [OnlineKMeans, MiniBatchPowerKMeans]
CENTERS = [[0.0], [9.0]]
THREE = np.array([[1.0], [3.0], [8.0]])


def blobs(n_points=400, seed=0):
    rng = np.random.default_rng(seed)
    means = 5 * np.random.default_rng(99).normal(size=(3, 2))
    return means[rng.integers(3, size=n_points)] + rng.normal(size=(n_points, 2))


def assert_is(drift, shifts, rms_shift, mean_sq_dist, running, total_weight):
    np.testing.assert_allclose(drift.center_shifts, shifts, atol=1e-12)
    found = (drift.rms_shift, drift.mean_sq_dist, drift.running_mean_sq_dist, drift.total_weight)
    np.testing.assert_allclose(found, (rms_shift, mean_sq_dist, running, total_weight), atol=1e-12)


def test_three_points_one_by_one_are_met_by_the_centers_that_those_before_have_moved():
    """1 finds 0 and takes it along, 3 finds it at 1 and takes it to 2, and 8 finds 9."""
    stream = OnlineKMeans.from_centers(CENTERS).partial_fit(THREE)
    assert_is(stream.drift_, [2, 1], math.sqrt((2 * 4 + 1 * 1) / 3), (1 + 4 + 1) / 3, 2.0, 3)
    stream.partial_fit([[2.0]])
    assert_is(stream.drift_, [0, 0], 0.0, 0.0, 2.0 * 3 / 4, 4)


def test_three_points_in_one_batch_are_met_by_the_centers_before_it():
    """1 and 3 find 0, which goes to their mean, and 8 finds 9."""
    stream = MiniBatchPowerKMeans.from_centers(CENTERS).partial_fit(THREE)
    assert_is(stream.drift_, [2, 1], math.sqrt((2 * 4 + 1 * 1) / 3), 11 / 3, 11 / 3, 3)
    stream.partial_fit([[4.0]])
    # What is remembered of 1 and 3 fades to (3 / 4)^2 of itself.
    moved = (9 / 16 * 4 + 4) / (9 / 16 * 2 + 1) - 2
    shares = np.array([9 / 16 * 2 + 1, 9 / 16])
    rms_shift = math.sqrt(shares[0] / shares.sum()) * moved
    assert_is(stream.drift_, [moved, 0], rms_shift, 4.0, (11 + 4) / 4, 4)


def test_the_running_mean_forgets_as_the_centers_do():
    stream = MiniBatchPowerKMeans.from_centers(CENTERS, memory=1.0).partial_fit(THREE)
    stream.partial_fit([[2.0]])
    assert stream.drift_.running_mean_sq_dist == pytest.approx((11 / 3 + 0) / 2)
    assert stream.drift_.total_weight == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_is_copies(kind):
    weights = np.array([1.0, 3.0, 2.0])
    weighted = kind.from_centers(CENTERS).partial_fit(THREE, sample_weight=weights)
    if kind is MiniBatchPowerKMeans:
        copied = kind.from_centers(CENTERS).partial_fit(np.repeat(THREE, [1, 3, 2], axis=0))
        assert_is(copied.drift_, *_values(weighted.drift_))
    assert weighted.drift_.total_weight == 6


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_none_while_there_are_no_centers(kind):
    stream = kind(3, init_size=50, random_state=0).partial_fit(blobs()[:2])
    assert not hasattr(stream, "drift_")
    assert hasattr(stream.partial_fit(blobs()[2:10]), "drift_")


@pytest.mark.parametrize("kind", KINDS)
def test_it_tells_of_a_stream_that_has_jumped(kind):
    stream = kind(3, init_size=400, random_state=0)
    for seed in range(10):
        stream.partial_fit(blobs(seed=seed))
    calm = stream.drift_
    assert calm.mean_sq_dist == pytest.approx(calm.running_mean_sq_dist, rel=0.2)
    stream.partial_fit(blobs(seed=10) + 30)
    jumped = stream.drift_
    assert jumped.mean_sq_dist > 3 * jumped.running_mean_sq_dist
    assert jumped.rms_shift > 10 * calm.rms_shift


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_fit_it_goes_from_the_seeds_to_the_end(kind):
    points = blobs()
    drift = kind(3, random_state=0).fit(points).drift_
    assert drift.total_weight == 400
    assert drift.running_mean_sq_dist == pytest.approx(drift.mean_sq_dist)
    assert 0 < drift.mean_sq_dist < 2 * np.var(points, axis=0).sum()
    assert drift.center_shifts.shape == (3,)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_the_epochs_of_a_fit_are_those_that_were(is_interrupted, monkeypatch):
    points, seeds = blobs(), blobs()[:3]
    model = OnlineKMeans(3, init=seeds, n_epochs=2, random_state=0)
    if is_interrupted:
        monkeypatch.setattr("powermeans.relatives.online_kmeans.RelocateEmpty.after", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(points)
    else:
        model.fit(points)
    assert model.drift_.mean_sq_dist == pytest.approx(model.history_.inertia[:2].sum() / 800)
    shifts = np.linalg.norm(model.cluster_centers_ - seeds, axis=1)
    np.testing.assert_allclose(model.drift_.center_shifts, shifts)


@pytest.mark.parametrize("kind", KINDS)
def test_over_parts_it_goes_from_before_the_first_to_after_the_last(kind):
    points, rest = blobs(), blobs(600, seed=1)
    stream = kind(3, init_size=400, random_state=0).partial_fit(points)
    by_hand = pickle.loads(pickle.dumps(stream))
    before = stream.cluster_centers_
    stream.partial_fit(open_data(rest, rows_per_part=150))
    drifts = [by_hand.partial_fit(part).drift_ for part in np.split(rest, 4)]
    np.testing.assert_array_equal(
        stream.drift_.center_shifts, np.linalg.norm(stream.cluster_centers_ - before, axis=1)
    )
    mean = np.mean([drift.mean_sq_dist for drift in drifts])
    assert stream.drift_.mean_sq_dist == pytest.approx(mean)
    assert stream.drift_.running_mean_sq_dist == pytest.approx(drifts[-1].running_mean_sq_dist)
    assert stream.drift_.total_weight == 1000


def _values(drift):
    return (
        drift.center_shifts,
        drift.rms_shift,
        drift.mean_sq_dist,
        drift.running_mean_sq_dist,
        drift.total_weight,
    )


def _interrupt(*_):
    raise KeyboardInterrupt
