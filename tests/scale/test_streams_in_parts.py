"""Streams that learn rows in parts, beside what holds for every source."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import powermeans.estimators.streams.mini_batch as mini_batch
from powermeans import KMeans, MiniBatchPowerKMeans, OnlineKMeans, open_data

KINDS = [OnlineKMeans, MiniBatchPowerKMeans]
of_kinds = pytest.mark.parametrize("kind", KINDS)


def blobs(n_points=1000, n_features=3, n_clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    means = 6 * np.random.default_rng(99).normal(size=(n_clusters, n_features))
    return means[rng.integers(n_clusters, size=n_points)] + rng.normal(size=(n_points, n_features))


def model_of(kind, n_clusters=4, **params):
    return kind(n_clusters, **{"init_size": 100, "random_state": 0, **params})


def by_hand(model, chunks, weights=None):
    for number, chunk in enumerate(chunks):
        model.partial_fit(chunk, sample_weight=None if weights is None else weights[number])
    return model


def assert_same_stream(found, expected):
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert found.n_steps_ == expected.n_steps_
    for one in (found, expected):  # nor does what comes next differ
        one.partial_fit(blobs(seed=5))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "points.npy", blobs())
    return tmp_path / "points.npy"


@pytest.mark.parametrize("init_size", [100, 450], ids=["begun at once", "awaiting parts"])
@of_kinds
def test_each_part_teaches_as_a_chunk_and_their_inertias_add_up(kind, init_size):
    stream, expected = (model_of(kind, init_size=init_size) for _ in range(2))
    stream.partial_fit(open_data(blobs(), rows_per_part=200))
    by_hand(expected, np.split(blobs(), 5))
    assert not hasattr(stream, "labels_")
    assert_same_stream(stream, expected)
    stream.partial_fit(open_data(blobs(), rows_per_part=250))
    inertias = [expected.partial_fit(part).inertia_ for part in np.split(blobs(), 4)]
    assert stream.inertia_ == pytest.approx(sum(inertias))


@of_kinds
def test_rows_of_no_weight_teach_nothing(kind):
    weights = np.repeat([1.0, 0.0, 1.0], [100, 100, 200])
    opened = open_data(blobs(400), weights=weights, rows_per_part=100)
    chunks = [chunk for number, chunk in enumerate(np.split(blobs(400), 4)) if number != 1]
    expected = by_hand(model_of(kind), chunks, np.ones((3, 100)))
    assert_same_stream(model_of(kind).partial_fit(opened), expected)
    opened.source.weights = np.zeros(400)
    with pytest.raises(ValueError, match="all rows of X weigh nothing"):
        model_of(kind).partial_fit(opened)


@of_kinds
def test_what_is_scaled_stays_scaled_and_what_is_not_does_not(kind, file):
    scaled = open_data(file, scale="standard", rows_per_part=500)
    stream = model_of(kind).partial_fit(scaled)
    assert stream.scaling_.equals(scaled.scaling)
    for given, told in ((blobs(), "fitted with scaled columns"), (file, "not scaled in the same")):
        with pytest.raises(ValueError, match=told):
            stream.partial_fit(given)
    stream.partial_fit(open_data(blobs(seed=1), scale=stream.scaling_))
    for n_before in (50, 200):
        stream = model_of(kind).partial_fit(blobs()[:n_before])
        with pytest.raises(ValueError, match="leave scale out"):
            stream.partial_fit(scaled)
        stream.partial_fit(file)


@of_kinds
def test_what_came_before_an_error_has_taught_and_a_fit_that_was_refused_changes_nothing(kind):
    points, stream = blobs(), model_of(kind)
    points[731, 1] = np.nan
    with pytest.raises(ValueError, match=r"chunk 3 contains NaN: .* row 131"):
        stream.partial_fit(open_data(np.split(points, 5), rows_per_part=200))
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(points)
    assert_same_stream(stream, by_hand(model_of(kind), np.split(points[:600], 3)))


def test_a_large_part_is_several_batches(monkeypatch):
    monkeypatch.setattr(mini_batch, "_MOST_ELEMENTS", 300)
    stream, expected = (model_of(MiniBatchPowerKMeans, batch_size=10) for _ in range(2))
    stream.partial_fit(open_data(blobs()))
    assert_same_stream(stream, by_hand(expected, np.split(blobs(), 10)))


@of_kinds
def test_rows_that_are_sorted_are_learned_as_well_as_shuffled_ones(kind):
    rng, inertias = np.random.default_rng(0), []
    points = blobs(10_000, n_clusters=10)
    for order in (np.argsort(points[:, 0]), rng.permutation(len(points))):
        data = open_data(points[order], rows_per_part=500)
        fits = [kind(10, random_state=seed).fit(data) for seed in range(6)]
        # The seeds of the online one are a matter of luck.
        typical = min if kind is OnlineKMeans else np.mean
        inertias.append(typical([model.inertia_ for model in fits]))
    assert inertias[0] < 1.01 * inertias[1]


@pytest.mark.parametrize("n_passes", [1, 3])
@of_kinds
def test_an_interrupt_leaves_what_was_learned(kind, n_passes, interrupt_in_line):
    params = {"max_iter": 5} if kind is MiniBatchPowerKMeans else {"n_epochs": 5}
    model = model_of(kind, verbose=2, **params)
    interrupt_in_line(rf", {n_passes} sweeps?, ")
    with pytest.raises(KeyboardInterrupt):
        model.fit(open_data(blobs()))
    assert len(model.history_) == n_passes
    assert model.drift_.total_weight > 0
    np.testing.assert_array_equal(model.cluster_centers_, model._stream.centers)
    model.set_params(verbose=0).partial_fit(blobs())


def test_a_fit_reads_the_rows_as_often_as_it_says():
    n_read = 0

    def chunks():
        nonlocal n_read
        yield from np.split(blobs(), 4)
        n_read += 1

    data = open_data(chunks, rows_per_part=250)
    model_of(MiniBatchPowerKMeans).partial_fit(data)
    assert n_read == 1
    for max_iter, n_expected in (1, 4), (3, 6):
        n_read = 0
        model_of(MiniBatchPowerKMeans, max_iter=max_iter).fit(data)
        assert n_read == n_expected


def test_a_pass_over_a_file_is_one_hard_sweep_of_all_of_it(file):
    once, twice = (model_of(MiniBatchPowerKMeans, max_iter=n).fit(file) for n in (1, 2))
    assert list(twice.history_.power) == [-np.inf] * 3
    assert twice.inertia_ <= once.inertia_
    lloyd = KMeans(4, init=once.cluster_centers_, max_iter=1).fit(blobs())
    # What is remembered of the pass before counts for less than a third.
    shift = np.linalg.norm(twice.cluster_centers_ - lloyd.cluster_centers_)
    assert shift < 0.3 * np.linalg.norm(once.cluster_centers_ - lloyd.cluster_centers_) + 1e-9


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@of_kinds
def test_memory_does_not_grow_with_the_rows(kind, method):
    """The chunks are made anew, where a file would be read into memory that is not counted."""
    peaks = []
    for n_chunks in (3, 20):

        def chunks(n_chunks=n_chunks):
            return (blobs(8192, seed=number) for number in range(n_chunks))

        data = open_data(chunks, rows_per_part=8192)
        model = model_of(kind, n_threads=1)
        getattr(model, method)(data)  # what is imported once
        tracemalloc.start()
        getattr(model, method)(data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # How many copies there are at a time depends on how far ahead the reader is.
    of_a_chunk = 8192 * 3 * 8
    assert peaks[1] < peaks[0] + 4 * of_a_chunk
