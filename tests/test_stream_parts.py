"""Streams and rows in parts: files, what open_data opens, chunks and Dask collections."""

from __future__ import annotations

import pickle
import re
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import powermeans.estimators.streams.mini_batch as mini_batch
from powermeans import KMeans, MiniBatchPowerKMeans, OnlineKMeans, PowerKMeans, open_data

KINDS = [OnlineKMeans, MiniBatchPowerKMeans]


def blobs(n_points=1000, n_features=3, n_clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    means = 6 * np.random.default_rng(99).normal(size=(n_clusters, n_features))
    return means[rng.integers(n_clusters, size=n_points)] + rng.normal(size=(n_points, n_features))


def model_of(kind, n_clusters=4, **params):
    return kind(n_clusters, **{"init_size": 100, "random_state": 0, **params})


def assert_same_stream(found, expected):
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert found.n_steps_ == expected.n_steps_
    assert pickle.dumps(found._stream) == pickle.dumps(expected._stream)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, blobs())
    return path


@pytest.mark.parametrize("kind", KINDS)
class TestPartialFit:
    @pytest.mark.parametrize("init_size", [100, 450], ids=["begun at once", "awaiting parts"])
    def test_each_part_of_a_file_teaches_as_a_chunk(self, kind, init_size, file):
        by_hand = model_of(kind, init_size=init_size)
        for chunk in np.split(blobs(), [200, 400, 600, 800]):
            by_hand.partial_fit(chunk)
        stream = model_of(kind, init_size=init_size)
        stream.partial_fit(open_data(file, rows_per_part=200))
        assert_same_stream(stream, by_hand)
        assert stream.n_features_in_ == 3

    def test_whatever_the_rows_come_in_the_bits_are_the_same(self, kind, tmp_path, file):
        points = blobs()
        table = tmp_path / "points.parquet"
        parquet.write_table(pa.table(dict(zip("abc", points.T, strict=True))), table)
        sources = [file, table, points, lambda: iter(np.split(points, [17, 500, 501]))]
        first, *others = [
            model_of(kind).partial_fit(open_data(source, rows_per_part=200)) for source in sources
        ]
        for other in others:
            assert_same_stream(other, first)

    def test_a_path_alone_is_read_and_there_are_no_labels(self, kind, file, tmp_path):
        stream = model_of(kind).partial_fit(blobs()[:300])
        assert stream.labels_.shape == (300,)
        stream.partial_fit(file)
        with pytest.raises(AttributeError, match="call predict"):
            stream.labels_  # noqa: B018
        labels = stream.predict(file, output=tmp_path / "labels.npy")
        np.testing.assert_array_equal(np.load(labels), stream.predict(blobs()))
        assert stream.score(file) == pytest.approx(stream.score(blobs()))
        assert stream.partial_fit(blobs()[:9]).labels_.shape == (9,)

    def test_inertia_adds_up_that_of_the_parts_each_at_the_centers_after_it(self, kind, file):
        stream, by_hand = (model_of(kind).partial_fit(blobs(seed=1)) for _ in range(2))
        stream.partial_fit(open_data(file, rows_per_part=250))
        inertias = [by_hand.partial_fit(part).inertia_ for part in np.split(blobs(), 4)]
        assert stream.inertia_ == pytest.approx(sum(inertias))

    def test_a_column_of_weights_is_taken(self, kind, tmp_path):
        points, weights = blobs(), np.random.default_rng(1).integers(0, 4, 1000)
        path = tmp_path / "points.parquet"
        columns = dict(zip("abc", points.T, strict=True))
        parquet.write_table(pa.table({**columns, "w": weights.astype(float)}), path)
        opened = open_data(path, weights="w", rows_per_part=500)
        stream, by_hand = model_of(kind).partial_fit(opened), model_of(kind)
        for half in (slice(500), slice(500, 1000)):
            by_hand.partial_fit(points[half], sample_weight=weights[half])
        assert_same_stream(stream, by_hand)
        assert list(stream.feature_names_in_) == ["a", "b", "c"]

    def test_rows_of_no_weight_teach_nothing(self, kind):
        points, weights = blobs(400), np.ones(400)
        weights[100:200] = 0
        opened = open_data(points, weights=weights, rows_per_part=100)
        by_hand = model_of(kind)
        for chunk in np.split(points, 4)[:1] + np.split(points, 4)[2:]:
            by_hand.partial_fit(chunk, sample_weight=np.ones(100))
        assert_same_stream(model_of(kind).partial_fit(opened), by_hand)
        with pytest.raises(ValueError, match="all rows of X weigh nothing"):
            model_of(kind).partial_fit(_weightless(points))

    def test_what_is_scaled_stays_scaled(self, kind, file):
        data = open_data(file, scale="standard", rows_per_part=500)
        stream = model_of(kind).partial_fit(data)
        assert stream.scaling_.equals(data.scaling)
        with pytest.raises(ValueError, match="fitted with scaled columns"):
            stream.partial_fit(blobs())
        with pytest.raises(ValueError, match="not scaled in the same way"):
            stream.partial_fit(file)
        stream.partial_fit(open_data(blobs(seed=1), scale=stream.scaling_))

    @pytest.mark.parametrize("n_before", [50, 200])
    def test_a_stream_that_is_not_scaled_takes_no_scaled_rows(self, kind, n_before, file):
        stream = model_of(kind).partial_fit(blobs()[:n_before])
        with pytest.raises(ValueError, match="leave scale out"):
            stream.partial_fit(open_data(file, scale="standard"))
        stream.partial_fit(file)

    def test_what_came_before_an_error_has_taught(self, kind, tmp_path):
        points = blobs()
        points[731, 1] = np.nan
        np.save(tmp_path / "points.npy", points)
        stream, by_hand = model_of(kind), model_of(kind)
        data = open_data(tmp_path / "points.npy", rows_per_part=200)
        with pytest.raises(ValueError, match=r"points.npy contains NaN: .* row 732"):
            stream.partial_fit(data)
        for chunk in np.split(points[:600], 3):
            by_hand.partial_fit(chunk)
        assert_same_stream(stream, by_hand)

    def test_a_generator_is_to_be_passed_chunk_by_chunk(self, kind):
        with pytest.raises(ValueError, match="its chunks to partial_fit, one by one"):
            model_of(kind).partial_fit(chunk for chunk in np.split(blobs(), 4))

    def test_sparse_parts_are_dense_ones(self, kind):
        points = np.random.default_rng(0).poisson(0.4, size=(600, 12)).astype(float)
        dense = model_of(kind).partial_fit(open_data(points, rows_per_part=200))
        given = open_data(sparse.csr_array(points), rows_per_part=200)
        np.testing.assert_allclose(
            model_of(kind).partial_fit(given).cluster_centers_, dense.cluster_centers_, atol=1e-9
        )


def test_a_large_part_is_several_batches(monkeypatch):
    monkeypatch.setattr(mini_batch, "_MOST_ELEMENTS", 300)
    stream = model_of(MiniBatchPowerKMeans, batch_size=10).partial_fit(open_data(blobs()))
    by_hand = model_of(MiniBatchPowerKMeans, batch_size=10)
    for chunk in np.split(blobs(), 10):
        by_hand.partial_fit(chunk)
    assert_same_stream(stream, by_hand)


@pytest.mark.parametrize("kind", KINDS)
class TestFit:
    def test_a_path_is_fitted(self, kind, file, tmp_path):
        model = model_of(kind).fit(file)
        assert model.inertia_ == pytest.approx(-model.score(file))
        assert model.inertia_ < 1.02 * PowerKMeans(4, random_state=0).fit(blobs()).inertia_
        assert not hasattr(model, "labels_")
        labels = model.predict(file, output=tmp_path / "labels.npy")
        table = pd.DataFrame(blobs(), columns=model.feature_names_in_)
        np.testing.assert_array_equal(np.load(labels), model.predict(table))
        assert model.partial_fit(table).labels_.shape == (1000,)

    def test_whatever_the_rows_come_in_the_bits_are_the_same(self, kind, file):
        dask_array = pytest.importorskip("dask.array")
        points = blobs()
        opened = [
            open_data(source, rows_per_part=300)
            for source in (file, points, lambda: iter(np.split(points, [17, 500, 501])))
        ]
        opened.append(dask_array.from_array(points, chunks=(300, -1)))
        first, *others = [model_of(kind).fit(source) for source in opened]
        for other in others:
            assert_same_stream(other, first)
            assert other.inertia_ == first.inertia_
            assert other.drift_ == first.drift_

    def test_a_weight_is_copies(self, kind):
        points, weights = blobs(300), np.random.default_rng(1).integers(0, 4, 300)
        params = {"init": blobs()[[3, 7, 50, 51]], "init_size": 1000}
        if kind is OnlineKMeans:
            params["shuffle"] = False
        opened = open_data(points, weights=weights, rows_per_part=90)
        weighted = model_of(kind, **params).fit(opened)
        copied = model_of(kind, **params).fit(open_data(np.repeat(points, weights, axis=0)))
        np.testing.assert_allclose(weighted.cluster_centers_, copied.cluster_centers_, atol=1e-9)
        assert weighted.inertia_ == pytest.approx(copied.inertia_)

    def test_rows_that_are_sorted_are_learned_as_well_as_shuffled_ones(self, kind):
        """Structure or none."""
        rng = np.random.default_rng(0)
        for points in (blobs(20_000, n_clusters=10), rng.normal(size=(20_000, 2))):
            inertias = []
            for order in (np.argsort(points[:, 0]), rng.permutation(len(points))):
                data = open_data(points[order], rows_per_part=1000)
                fits = [kind(10, random_state=seed).fit(data) for seed in range(8)]
                # The seeds of the online one are a matter of luck.
                typical = min if kind is OnlineKMeans else np.mean
                inertias.append(typical([model.inertia_ for model in fits]))
            assert inertias[0] < 1.01 * inertias[1]

    def test_a_checkpoint_of_its_own_is_refused(self, kind, file, tmp_path):
        data = open_data(file, checkpoint=tmp_path / "state")
        for learn in (model_of(kind).fit, model_of(kind).partial_fit):
            with pytest.raises(ValueError, match=r"powermeans\.save"):
                learn(data)
        assert not (tmp_path / "state").exists()

    @pytest.mark.parametrize("n_passes", [1, 3])
    def test_an_interrupt_leaves_what_was_learned(self, kind, n_passes, file, monkeypatch):
        params = {"max_iter": 5} if kind is MiniBatchPowerKMeans else {"n_epochs": 5}
        model = model_of(kind, verbose=2, **params)

        with monkeypatch.context() as patched:

            def interrupted(line, file=None):
                if re.search(rf", {n_passes} sweeps?, ", line):
                    patched.undo()
                    raise KeyboardInterrupt

            patched.setattr("builtins.print", interrupted)
            with pytest.raises(KeyboardInterrupt):
                model.fit(file)
        assert len(model.history_) == n_passes
        np.testing.assert_array_equal(model.cluster_centers_, model._stream.centers)
        assert model.drift_.total_weight > 0
        model.set_params(verbose=0).partial_fit(file)


@pytest.mark.parametrize(("max_iter", "n_expected"), [(1, 4), (3, 6)])
def test_a_fit_reads_the_rows_as_often_as_it_says(max_iter, n_expected):
    n_read = 0

    def chunks():
        nonlocal n_read
        yield from np.split(blobs(), 4)
        n_read += 1

    model_of(MiniBatchPowerKMeans, max_iter=max_iter).fit(open_data(chunks, rows_per_part=250))
    assert n_read == n_expected
    model_of(MiniBatchPowerKMeans).partial_fit(open_data(chunks, rows_per_part=250))
    assert n_read == n_expected + 1


def test_a_pass_over_a_file_is_one_hard_sweep_of_all_of_it(file):
    once, twice = (model_of(MiniBatchPowerKMeans, max_iter=n).fit(file) for n in (1, 2))
    assert list(twice.history_.power) == [-np.inf] * 3
    lloyd = KMeans(4, init=once.cluster_centers_, max_iter=1).fit(blobs())
    # What is remembered of the pass before counts for less than a third.
    assert twice.inertia_ <= once.inertia_
    shift = np.linalg.norm(twice.cluster_centers_ - lloyd.cluster_centers_)
    assert shift < 0.3 * np.linalg.norm(once.cluster_centers_ - lloyd.cluster_centers_) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
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


@pytest.mark.parametrize("kind", KINDS)
class TestDask:
    @pytest.fixture(autouse=True)
    def _needs_dask(self):
        pytest.importorskip("dask.array")

    def test_each_partition_teaches_as_a_chunk(self, kind):
        import dask.array as da

        points, weights = blobs(), np.random.default_rng(1).integers(1, 4, 1000).astype(float)
        stream = model_of(kind)
        stream.partial_fit(da.from_array(points, chunks=(250, -1)), sample_weight=weights)
        by_hand = model_of(kind)
        for quarter in np.split(np.arange(1000), 4):
            by_hand.partial_fit(points[quarter], sample_weight=weights[quarter])
        assert_same_stream(stream, by_hand)
        assert stream.drift_.total_weight == weights.sum()

    def test_a_table_with_partitions_that_are_empty(self, kind):
        dd = pytest.importorskip("dask.dataframe")
        table = pd.DataFrame(blobs(), columns=list("abc"))
        frame = dd.from_pandas(table, npartitions=4)
        frame = frame.map_partitions(lambda part: part[part.index < 600])
        stream = model_of(kind).partial_fit(frame)
        by_hand = model_of(kind)
        for chunk in (table[:250], table[250:500], table[500:600]):
            by_hand.partial_fit(chunk)
        assert_same_stream(stream, by_hand)
        assert list(stream.feature_names_in_) == list("abc")
        assert model_of(kind).fit(frame).labels_.compute().shape == (600,)

    def test_one_partition_is_computed_at_a_time(self, kind):
        import dask.array as da

        computed = []

        def noted(block, block_id=None):
            computed.append(block_id[0])
            return block

        lazy = da.from_array(blobs(), chunks=(250, -1)).map_blocks(
            noted, dtype=float, meta=blobs(0)
        )
        seen = []

        class Noting(kind):
            def _advanced(self, *arguments):
                seen.append(sorted(set(computed)))
                return super()._advanced(*arguments)

        model_of(Noting).partial_fit(lazy)
        assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]

    def test_nan_in_a_partition_is_told(self, kind):
        import dask.array as da

        points = blobs()
        points[731, 1] = np.nan
        with pytest.raises(ValueError, match="X in partition 2 contains NaN"):
            model_of(kind).partial_fit(da.from_array(points, chunks=(250, -1)))


def _weightless(points):
    data = open_data(points, weights=np.ones(len(points)))
    data.source.weights = np.zeros(len(points))
    return data
