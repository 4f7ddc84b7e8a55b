"""What all estimators with partial_fit do before there are enough points, and with bad chunks."""

from __future__ import annotations

import gc
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from powermeans import MiniBatchPowerKMeans, OnlineKMeans

KINDS = [OnlineKMeans, MiniBatchPowerKMeans]


def blobs(n_points=400, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    means = 5 * np.random.default_rng(99).normal(size=(3, n_features))
    return means[rng.integers(3, size=n_points)] + rng.normal(size=(n_points, n_features))


@pytest.mark.parametrize("kind", KINDS)
class TestStreams:
    def test_points_are_held_back_until_there_are_enough(self, kind):
        points = blobs()
        once = kind(3, init_size=100, random_state=0).partial_fit(points[:100])
        by_bits = kind(3, init_size=100, random_state=0)
        for chunk in np.split(points[:100], [1, 2, 30, 31, 80]):
            by_bits.partial_fit(chunk)
        np.testing.assert_array_equal(by_bits.cluster_centers_, once.cluster_centers_)
        by_bits.partial_fit(points[100:])
        once.partial_fit(points[100:])
        np.testing.assert_array_equal(by_bits.cluster_centers_, once.cluster_centers_)

    def test_there_are_centers_as_soon_as_there_are_as_many_points(self, kind):
        points, stream = blobs(), kind(3, init_size=300, random_state=0)
        for n_points in range(1, 300):
            stream.partial_fit(points[n_points - 1 : n_points])
            assert hasattr(stream, "cluster_centers_") == (n_points >= 3)
            if n_points >= 3:
                np.testing.assert_array_equal(
                    stream.labels_, stream.predict(points[[n_points - 1]])
                )

    @pytest.mark.parametrize("n_points", [4, 49, 180])
    def test_until_then_the_centers_are_those_of_four_fifths_of_the_points(self, kind, n_points):
        points, stream = blobs(), kind(3, init_size=300, random_state=0)
        for point in points[:n_points]:
            stream.partial_fit(point[None, :])
        of_parts = [
            kind(3, init_size=300, random_state=0).partial_fit(points[:n_part]).cluster_centers_
            for n_part in range(max(3, math.ceil(0.8 * n_points)), n_points + 1)
        ]
        assert any(np.array_equal(stream.cluster_centers_, part) for part in of_parts)

    def test_without_centers_it_says_that_it_is_not_fitted(self, kind):
        stream = kind(3, random_state=0).partial_fit(blobs()[:2])
        with pytest.raises(NotFittedError):
            stream.predict(blobs())

    def test_points_held_back_are_copied(self, kind):
        points = blobs()
        expected = kind(3, init_size=100, random_state=0).partial_fit(points[:100].copy())
        memory = points[:50].copy()
        stream = kind(3, init_size=100, random_state=0).partial_fit(memory)
        memory[:] = 1e6
        stream.partial_fit(points[50:100])
        np.testing.assert_array_equal(stream.cluster_centers_, expected.cluster_centers_)

    def test_weights_are_held_back_with_their_points(self, kind):
        points = blobs()
        weights = np.random.default_rng(1).integers(1, 4, 100)
        once = kind(3, init_size=100, random_state=0)
        once.partial_fit(points[:100], sample_weight=np.r_[np.ones(50), weights[50:]])
        twice = kind(3, init_size=100, random_state=0).partial_fit(points[:50])
        twice.partial_fit(points[50:100], sample_weight=weights[50:])
        np.testing.assert_array_equal(twice.cluster_centers_, once.cluster_centers_)

    def test_dense_and_sparse_chunks_may_be_mixed(self, kind):
        points = blobs()
        dense = kind(3, init_size=100, random_state=0)
        mixed = kind(3, init_size=100, random_state=0)
        for number, chunk in enumerate(np.split(points, 8)):
            dense.partial_fit(chunk)
            mixed.partial_fit(sparse.csr_array(chunk) if number % 2 else chunk)
        np.testing.assert_allclose(mixed.cluster_centers_, dense.cluster_centers_, atol=1e-9)

    @pytest.mark.parametrize("when", ["first", "waiting", "begun"])
    @pytest.mark.parametrize(
        ("chunk", "weights", "message"),
        [
            (np.zeros((0, 2)), None, "0 sample"),
            (np.array([[0.0, np.nan]]), None, "contains NaN"),
            (np.array([[0.0, np.inf]]), None, "contains infinity"),
            (np.array([[0.0, 1e300]]), None, "overflow"),
            (np.zeros(2), None, "Expected 2D array"),
            (np.ones((2, 2)), [1.0, -1.0], "at least zero"),
            (np.ones((2, 2)), [0.0, 0.0], "zero for every row"),
            (np.ones((2, 2)), [1.0], "shape"),
        ],
        ids=["empty", "NaN", "infinity", "huge", "1-D", "negative", "no weight", "short weights"],
    )
    def test_a_bad_chunk_is_refused_and_teaches_nothing(self, kind, when, chunk, weights, message):
        points = blobs()
        n_before = {"first": 0, "waiting": 50, "begun": 200}[when]
        stream = kind(3, init_size=100, random_state=0)
        spared = kind(3, init_size=100, random_state=0)
        for model in (stream, spared)[: 2 if n_before else 0]:
            model.partial_fit(points[:n_before])
        with pytest.raises(ValueError, match=message):
            stream.partial_fit(chunk, sample_weight=weights)
        for model in (stream, spared):
            model.partial_fit(points[n_before:])
        np.testing.assert_array_equal(stream.cluster_centers_, spared.cluster_centers_)

    @pytest.mark.parametrize("n_before", [50, 200])
    def test_a_stream_may_not_change_its_width(self, kind, n_before):
        stream = kind(3, init_size=100, random_state=0).partial_fit(blobs()[:n_before])
        with pytest.raises(ValueError, match="X has 3 features"):
            stream.partial_fit(np.zeros((5, 3)))
        stream.partial_fit(blobs())

    def test_a_first_sample_smaller_than_the_clusters_is_refused(self, kind):
        with pytest.raises(ValueError, match="init_size=2 is less than n_clusters=3"):
            kind(3, init_size=2).partial_fit(blobs())

    def test_equal_points_end_in_finite_centers(self, kind):
        stream = kind(3, init_size=10, random_state=0)
        for _ in range(20):
            stream.partial_fit(np.full((5, 2), 4.0))
        assert np.isfinite(stream.cluster_centers_).all()
        assert stream.inertia_ == 0

    def test_labels_and_inertia_are_those_of_the_chunk(self, kind):
        points = blobs()
        stream = kind(3, init_size=100, random_state=0)
        for chunk in np.split(points, 4):
            stream.partial_fit(chunk)
            np.testing.assert_array_equal(stream.labels_, stream.predict(chunk))
            assert stream.inertia_ == pytest.approx(-stream.score(chunk))

    def test_memory_does_not_grow_with_the_stream(self, kind):
        rng = np.random.default_rng(0)
        chunk = rng.normal(size=(1000, 10))
        stream = kind(5, init_size=1000, random_state=0).partial_fit(chunk)
        for _ in range(30):  # until all is hard
            stream.partial_fit(chunk)
        size = len(pickle.dumps(stream))
        tracemalloc.start()
        stream.partial_fit(rng.normal(size=(1000, 10)))
        # Other threads of this process allocate too, but not in every span of 20 chunks.
        peaks, kept = [], []
        for _ in range(11):
            gc.collect()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(20):
                stream.partial_fit(chunk)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] - before)
        tracemalloc.stop()
        assert min(peaks[1:]) < 1.1 * peaks[0] + 1000
        assert min(kept) < 500
        assert len(pickle.dumps(stream)) <= size + 50

    def test_an_interrupt_leaves_what_was_there_before_the_chunk(self, kind, monkeypatch):
        points = blobs()
        stream = kind(3, init_size=100, random_state=0).partial_fit(points[:200])
        spared = pickle.loads(pickle.dumps(stream))
        rows = type(stream._opened(_admitted(points)).rows)

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(rows, "sweep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                stream.partial_fit(points[200:])
        np.testing.assert_array_equal(stream.predict(points), spared.predict(points))
        for model in (stream, spared):
            model.partial_fit(points[200:])
        np.testing.assert_array_equal(stream.cluster_centers_, spared.cluster_centers_)

    @pytest.mark.parametrize("order", [(64, 32, 64, 32), (32, 32, 64, 32)], ids=str)
    @pytest.mark.parametrize("init_size", [3, 150])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
    def test_centers_have_the_widest_dtype_so_far(self, kind, order, init_size, make):
        chunks = np.split(blobs().astype(np.float32), [1, 100, 200])
        stream, widest = kind(3, init_size=init_size, random_state=0), 32
        for chunk, bits in zip(chunks, order, strict=True):
            stream.partial_fit(make(chunk.astype(f"f{bits // 8}")))
            widest = max(widest, bits)
            if hasattr(stream, "cluster_centers_"):
                assert stream.cluster_centers_.dtype == f"f{widest // 8}"

    @pytest.mark.parametrize("n_before", [50, 200])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
    def test_points_in_float32_do_not_spoil_centers_beyond_it(self, kind, n_before, make):
        points = blobs()
        small = make(points[n_before:].astype(np.float32))
        stream = kind(3, init_size=100, random_state=0).partial_fit(points[:n_before] * 1e60)
        spared = pickle.loads(pickle.dumps(stream)).partial_fit(small.astype(np.float64))
        stream.partial_fit(small)
        assert np.isfinite(stream.cluster_centers_).all()
        np.testing.assert_allclose(stream.cluster_centers_, spared.cluster_centers_, rtol=1e-12)
        assert stream.inertia_ == pytest.approx(spared.inertia_, rel=1e-12)
        np.testing.assert_array_equal(stream.predict(small), stream.labels_)
        np.testing.assert_array_equal(stream.labels_, spared.labels_)

    @pytest.mark.parametrize("n_before", [50, 200])
    def test_a_stream_may_not_change_its_number_of_clusters(self, kind, n_before):
        points = blobs()
        stream = kind(3, init_size=100, random_state=0).partial_fit(points[:n_before])
        with pytest.raises(ValueError, match="n_clusters=5, but the stream goes on from 3 centers"):
            stream.set_params(n_clusters=5).partial_fit(points)
        assert len(stream.cluster_centers_) == 3
        assert len(stream.fit(points).partial_fit(points).cluster_centers_) == 5

    def test_points_without_weight_are_not_awaited(self, kind):
        points, stream = blobs(), kind(3, init_size=100, random_state=0)
        stream.partial_fit(points[:4], sample_weight=[1.0, 0.0, 1.0, 0.0])
        assert not hasattr(stream, "cluster_centers_")
        weights = np.zeros(300)
        weights[::4] = 2.0
        stream.partial_fit(points[100:], sample_weight=weights)
        stream.partial_fit(points[:50])
        weighted = np.r_[points[[0, 2]], points[100::4], points[:50]]
        alone = kind(3, init_size=100, random_state=0).partial_fit(
            weighted, sample_weight=np.repeat([1.0, 2.0, 1.0], [2, 75, 50])
        )
        np.testing.assert_array_equal(stream.cluster_centers_, alone.cluster_centers_)

    def test_what_tells_of_a_fit_stays_in_a_stream(self, kind):
        model = kind(3, random_state=0).fit(blobs())
        n_iter, history = model.n_iter_, model.history_
        model.partial_fit(blobs(seed=1))
        assert model.n_iter_ == n_iter
        assert model.history_ is history
        assert not hasattr(kind(3, random_state=0).partial_fit(blobs()), "n_iter_")


def _admitted(points):
    from powermeans.points.checks.points import Admitted

    return Admitted(points, None, math.nan)
