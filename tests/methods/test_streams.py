"""Estimators with partial_fit: what they do in chunks and in parts."""

import gc
import math
import pickle
import tracemalloc
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import powermeans.methods.streams.mini_batch as mini_batch
from powermeans import KMeans, MiniBatchPowerKMeans, Prepare, open_data
from powermeans.methods import OnlineKMeans
from powermeans.points.checks.points import Admitted


def blobs(n_points=400, n_features=2, n_clusters=3, seed=0):
    rng = np.random.default_rng(seed)
    means = 5 * np.random.default_rng(99).normal(size=(n_clusters, n_features))
    return means[rng.integers(n_clusters, size=n_points)] + rng.normal(size=(n_points, n_features))


POINTS = blobs()
EIGHTHS = np.split(POINTS, 8)
of_kinds = pytest.mark.parametrize("kind", [OnlineKMeans, MiniBatchPowerKMeans])


def fed(kind, calls):
    """A stream that has learned from these chunks and weights, which it may not keep."""
    stream = kind(3, init_size=100, random_state=0)
    for chunk, weights in calls:
        held = chunk.copy()
        stream.partial_fit(held, sample_weight=weights)
        held *= 1e6
    return stream


WEIGHTS = np.random.default_rng(1).integers(1, 4, 100)
SPARSELY = np.where(np.arange(300) % 4 == 0, 2.0, 0.0)
# Two ways to show the same points before and after there are enough for seeds.
SAME = {
    "bits": (
        [(part, None) for part in np.split(POINTS, [1, 2, 30, 31, 80, 100])],
        [(POINTS[:100], None), (POINTS[100:], None)],
    ),
    "weights": (
        [(POINTS[:50], None), (POINTS[50:100], WEIGHTS[50:])],
        [(POINTS[:100], np.r_[np.ones(50), WEIGHTS[50:]])],
    ),
    "rows without weight": (
        [(POINTS[:4], [1.0, 0, 1, 0]), (POINTS[100:], SPARSELY), (POINTS[:50], None)],
        [
            (
                np.r_[POINTS[[0, 2]], POINTS[100::4], POINTS[:50]],
                np.repeat([1.0, 2.0, 1.0], [2, 75, 50]),
            )
        ],
    ),
    "sparse and dense": (
        [(sparse.csr_array(part) if i % 2 else part, None) for i, part in enumerate(EIGHTHS)],
        [(part, None) for part in EIGHTHS],
    ),
}


@of_kinds
class TestStreams:
    @pytest.mark.parametrize("name", SAME)
    def test_the_same_points_teach_the_same(self, kind, name):
        one, other = (fed(kind, calls) for calls in SAME[name])
        rounding = 1e-9 if name == "sparse and dense" else 0.0
        np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rounding, rounding)

    def test_there_are_centers_as_soon_as_there_are_as_many_points(self, kind):
        stream = kind(3, init_size=300, random_state=0)
        for n_points, point in enumerate(POINTS[:60, None], 1):
            stream.partial_fit(point)
            assert hasattr(stream, "cluster_centers_") == (n_points >= 3)
            if n_points >= 3:
                np.testing.assert_array_equal(stream.labels_, stream.predict(point))
            else:
                with pytest.raises(NotFittedError):
                    stream.predict(point)

    @pytest.mark.parametrize("n_points", [4, 49, 180])
    def test_until_then_the_centers_are_those_of_four_fifths_of_the_points(self, kind, n_points):
        stream = kind(3, init_size=300, random_state=0)
        for point in POINTS[:n_points]:
            stream.partial_fit(point[None, :])
        of_parts = [
            kind(3, init_size=300, random_state=0).partial_fit(POINTS[:n_part]).cluster_centers_
            for n_part in range(max(3, math.ceil(0.8 * n_points)), n_points + 1)
        ]
        assert any(np.array_equal(stream.cluster_centers_, part) for part in of_parts)

    @pytest.mark.parametrize("n_before", [0, 50, 200])
    @pytest.mark.parametrize(
        ("chunk", "weights", "message"),
        [
            (np.zeros((0, 2)), None, "0 sample"),
            (np.array([[0.0, np.nan]]), None, "NaN"),
            (np.array([[0.0, 1e300]]), None, "overflow"),
            (np.zeros(2), None, "2D array"),
            (np.ones((2, 2)), [0.0, 0.0], "zero for every row"),
            (np.ones((2, 2)), [1.0], "shape"),
        ],
        ids=["empty", "NaN", "huge", "1-D", "no weight", "short weights"],
    )
    def test_a_bad_chunk_teaches_nothing(self, kind, n_before, chunk, weights, message):
        stream, spared = (kind(3, init_size=100, random_state=0) for _ in range(2))
        for model in (stream, spared)[: 2 if n_before else 0]:
            model.partial_fit(POINTS[:n_before])
        with pytest.raises(ValueError, match=message):
            stream.partial_fit(chunk, sample_weight=weights)
        if n_before:
            with pytest.raises(ValueError, match="X has 3 features"):
                stream.partial_fit(np.zeros((5, 3)))
        for model in (stream, spared):
            model.partial_fit(POINTS[n_before:])
        np.testing.assert_array_equal(stream.cluster_centers_, spared.cluster_centers_)

    @pytest.mark.parametrize("n_before", [50, 200])
    def test_numbers_of_clusters_that_a_stream_cannot_have_are_refused(self, kind, n_before):
        with pytest.raises(ValueError, match="init_size=2 is less than n_clusters=3"):
            kind(3, init_size=2).partial_fit(POINTS)
        stream = kind(3, init_size=100, random_state=0).partial_fit(POINTS[:n_before])
        with pytest.raises(ValueError, match="n_clusters=5, but the stream goes on from 3 centers"):
            stream.set_params(n_clusters=5).partial_fit(POINTS)
        assert len(stream.cluster_centers_) == 3
        assert len(stream.fit(POINTS).partial_fit(POINTS).cluster_centers_) == 5

    def test_memory_does_not_grow_with_the_stream(self, kind):
        rng = np.random.default_rng(0)
        chunk = rng.normal(size=(1000, 10))
        stream = kind(5, init_size=1000, random_state=0).partial_fit(chunk)
        for _ in range(30):  # until all is hard
            stream.partial_fit(chunk)
        size = len(pickle.dumps(stream))
        tracemalloc.start()
        stream.partial_fit(rng.normal(size=(1000, 10)))
        # Caches of the interpreter grow by some kilobytes now and then, but not in every span.
        peaks, kept, n_chunks = [], [], 200
        for _ in range(4):
            gc.collect()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(n_chunks):
                stream.partial_fit(chunk)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] - before)
        tracemalloc.stop()
        assert min(peaks[1:]) < 1.1 * peaks[0] + 1000
        assert min(kept) < 20 * n_chunks  # a number in a list for each chunk is 32 bytes
        assert len(pickle.dumps(stream)) <= size + 50

    def test_an_interrupt_leaves_what_was_there_before_the_chunk(self, kind, monkeypatch):
        stream = kind(3, init_size=100, random_state=0).partial_fit(POINTS[:200])
        spared = pickle.loads(pickle.dumps(stream))
        rows = type(stream._opened(Admitted(POINTS, None, math.nan)))
        with monkeypatch.context() as patched:
            patched.setattr(rows, "sweep", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                stream.partial_fit(POINTS[200:])
        np.testing.assert_array_equal(stream.predict(POINTS), spared.predict(POINTS))
        for model in (stream, spared):
            model.partial_fit(POINTS[200:])
        np.testing.assert_array_equal(stream.cluster_centers_, spared.cluster_centers_)

    @pytest.mark.parametrize("init_size", [3, 150])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
    def test_centers_have_the_widest_dtype_so_far(self, kind, init_size, make):
        stream, widest = kind(3, init_size=init_size, random_state=0), 4
        for chunk, n_bytes in zip(np.split(POINTS, [1, 180, 200]), (4, 4, 8, 4), strict=True):
            stream.partial_fit(make(chunk.astype(f"f{n_bytes}")))
            widest = max(widest, n_bytes)
            if hasattr(stream, "cluster_centers_"):
                assert stream.cluster_centers_.dtype == f"f{widest}"

    @pytest.mark.parametrize("n_before", [50, 200])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
    def test_points_in_float32_do_not_spoil_centers_beyond_it(self, kind, n_before, make):
        small = make(POINTS[n_before:].astype(np.float32))
        stream = kind(3, init_size=100, random_state=0).partial_fit(POINTS[:n_before] * 1e60)
        spared = pickle.loads(pickle.dumps(stream)).partial_fit(small.astype(np.float64))
        stream.partial_fit(small)
        assert np.isfinite(stream.cluster_centers_).all()
        np.testing.assert_allclose(stream.cluster_centers_, spared.cluster_centers_, rtol=1e-12)
        assert stream.inertia_ == pytest.approx(spared.inertia_, rel=1e-12)
        np.testing.assert_array_equal(stream.predict(small), stream.labels_)
        np.testing.assert_array_equal(stream.labels_, spared.labels_)

    def test_what_tells_of_a_fit_stays_in_a_stream(self, kind):
        model = kind(3, random_state=0).fit(POINTS)
        n_iter, history = model.n_iter_, model.history_
        model.partial_fit(blobs(seed=1))
        assert model.n_iter_ == n_iter
        assert model.history_ is history
        assert not hasattr(kind(3, random_state=0).partial_fit(POINTS), "n_iter_")


def triples(n_points=1000, seed=0):
    return blobs(n_points, 3, 4, seed)


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
        one.partial_fit(triples(seed=5))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "points.npy", triples())
    return tmp_path / "points.npy"


@pytest.mark.parametrize("init_size", [100, 450], ids=["begun at once", "awaiting parts"])
@of_kinds
def test_each_part_teaches_as_a_chunk_and_their_inertias_add_up(kind, init_size):
    stream, expected = (model_of(kind, init_size=init_size) for _ in range(2))
    stream.partial_fit(open_data(triples(), rows_per_part=200))
    by_hand(expected, np.split(triples(), 5))
    assert not hasattr(stream, "labels_")
    assert_same_stream(stream, expected)
    stream.partial_fit(open_data(triples(), rows_per_part=250))
    inertias = [expected.partial_fit(part).inertia_ for part in np.split(triples(), 4)]
    assert stream.inertia_ == pytest.approx(sum(inertias))


@of_kinds
def test_rows_of_no_weight_teach_nothing_and_what_came_before_an_error_has_taught(kind):
    weights = np.repeat([1.0, 0.0, 1.0], [100, 100, 200])
    opened = open_data(triples(400), weights=weights, rows_per_part=100)
    chunks = [chunk for number, chunk in enumerate(np.split(triples(400), 4)) if number != 1]
    expected = by_hand(model_of(kind), chunks, np.ones((3, 100)))
    assert_same_stream(model_of(kind).partial_fit(opened), expected)
    opened.source.weights = np.zeros(400)
    with pytest.raises(ValueError, match="all rows of X weigh nothing"):
        model_of(kind).partial_fit(opened)
    points, stream = triples(), model_of(kind)
    points[731, 1] = np.nan
    with pytest.raises(ValueError, match=r"chunk 3 contains NaN: .* row 131"):
        stream.partial_fit(open_data(np.split(points, 5), rows_per_part=200))
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(points)
    assert_same_stream(stream, by_hand(model_of(kind), np.split(points[:600], 3)))


@of_kinds
@pytest.mark.parametrize("rows_per_part", [None, 500])
def test_what_is_prepared_stays_prepared_and_what_is_not_does_not(kind, rows_per_part, tmp_path):
    table = tmp_path / "table.csv"
    np.savetxt(table, triples(), fmt="%.17g", delimiter=",", header="a,b,c", comments="")
    opened, prepare = open_data(table, rows_per_part=rows_per_part), Prepare()
    points = prepare.fit_transform(table)
    stream = model_of(kind).partial_fit(opened)
    assert stream.preparation_.columns_ == prepare.columns_
    with pytest.raises(ValueError, match="fitted to a table"):
        stream.partial_fit(triples())
    same = points if rows_per_part is None else open_data(points, rows_per_part=rows_per_part)
    expected = model_of(kind).partial_fit(same)
    for _ in range(2):
        assert stream.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        stream.partial_fit(table)
        expected.partial_fit(points)
    stream = model_of(kind).partial_fit(triples()[:200])
    expected = model_of(kind).partial_fit(triples()[:200])
    assert_same_stream(stream.partial_fit(table), expected.partial_fit(triples()))


def test_a_large_part_is_several_batches(monkeypatch):
    monkeypatch.setattr(mini_batch, "_MOST_ELEMENTS", 300)
    stream, expected = (model_of(MiniBatchPowerKMeans, batch_size=10) for _ in range(2))
    stream.partial_fit(open_data(triples()))
    assert_same_stream(stream, by_hand(expected, np.split(triples(), 10)))


def test_a_pass_over_a_file_is_one_sweep_of_it_and_made_as_often_as_a_fit_says(file):
    data = open_data(file, rows_per_part=1000)
    once, twice = (model_of(MiniBatchPowerKMeans, max_iter=n).fit(data) for n in (1, 2))
    assert list(twice.history_.power) == [-np.inf] * 3
    assert twice.inertia_ <= once.inertia_
    lloyd = KMeans(4, init=once.cluster_centers_, max_iter=1).fit(triples())
    # What is remembered of the pass before counts for less than a third.
    shift = np.linalg.norm(twice.cluster_centers_ - lloyd.cluster_centers_)
    assert shift < 0.3 * np.linalg.norm(once.cluster_centers_ - lloyd.cluster_centers_) + 1e-9
    n_read = 0

    def chunks():
        nonlocal n_read
        yield from np.split(triples(), 4)
        n_read += 1

    data = open_data(chunks, rows_per_part=250)
    model_of(MiniBatchPowerKMeans).partial_fit(data)
    assert n_read == 1
    for max_iter, n_expected in (1, 4), (3, 6):
        n_read = 0
        model_of(MiniBatchPowerKMeans, max_iter=max_iter).fit(data)
        assert n_read == n_expected


@of_kinds
def test_rows_that_are_sorted_are_learned_as_well_as_shuffled_ones(kind):
    rng, inertias = np.random.default_rng(0), []
    points = blobs(10_000, 3, 10)
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
        model.fit(open_data(triples()))
    assert len(model.history_) == n_passes
    np.testing.assert_array_equal(model.cluster_centers_, model._stream.centers)
    model.set_params(verbose=0).partial_fit(triples())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@of_kinds
def test_memory_does_not_grow_with_the_rows(kind, method):
    """The chunks are made anew, where a file would be read into memory that is not counted."""
    peaks = []
    for n_chunks in (3, 20):

        def chunks(n_chunks=n_chunks):
            return (triples(8192, seed=number) for number in range(n_chunks))

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
