"""What is peculiar to Dask collections: what is lazy, who works, and processes that die."""

import pickle
import sys
from importlib.metadata import version

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scale.sources import assert_same_fit, blobs, frame_of
from sklearn.base import clone

import powermeans
from powermeans import KMeans, MiniBatchPowerKMeans, PowerKMeans, open_data
from powermeans.divergences import Generated
from powermeans.engine.seeds import ParallelSeeds
from powermeans.mathematics.rules import Hard
from powermeans.scale import dask_executor, worker_part
from powermeans.scale.checkpoint import CheckpointError
from powermeans.scale.dask_executor import DaskExecutor, threads_of_a_task
from powermeans.scale.dask_points import DaskPoints
from powermeans.scale.executors import MemoryExecutor, PartOpener
from powermeans.scale.parted_rows import PartedPoints
from powermeans.scale.worker_part import make_worker_part

POINTS, WEIGHTS = (values[:748] for values in blobs())
LENGTHS = (400, 1, 0, 97, 250)
LIKE = np.empty((0, 3))


@pytest.fixture
def threads():
    """Dask works in this process, also while there is a cluster."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def pair():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def in_chunks(points=POINTS, lengths=LENGTHS):
    return da.from_array(points, chunks=(lengths, points.shape[1]))


def after(n_sweeps):
    """A callback that stops a fit, so that few questions go to other processes."""
    return lambda state: state.sweep >= n_sweeps


PLANE = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)  # which pickle does not know
ONCE = {"random_state": 0, "effort": "none"}
FITS = {
    "k-means": KMeans(4, random_state=0, n_init=2),
    "k-means||": KMeans(4, init=ParallelSeeds(2, 1.5), tol=0.01, random_state=0),
    "breathing": PowerKMeans(4, effort="fast", random_state=0, callback=after(40)),
    "Poisson": PowerKMeans(4, divergence="poisson", callback=after(9), **ONCE),
    "lambdas": PowerKMeans(3, divergence=PLANE, callback=after(3), **ONCE),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_has_the_bits_of_one_in_parts_in_memory_whoever_works(name, pair):
    points, weights = np.abs(POINTS[:700]).astype(np.float32), WEIGHTS[:700]
    array, model = in_chunks(points, (300, 300, 100)), FITS[name]
    expected = clone(model).fit(open_data(points, weights=weights, rows_per_part=300))
    assert expected.cluster_centers_.dtype == np.float32
    for workers in ([], [*pair.nthreads()][:1])[: 2 if name == "k-means" else 1]:
        with dask.annotate(workers=workers):
            found = clone(model).fit(array, sample_weight=weights)
        assert_same_fit(found, expected)
        assert found.n_iter_ == expected.n_iter_


@pytest.mark.usefixtures("threads")
def test_predictions_compute_nothing_before_they_are_asked_to():
    def refuse(block):
        raise AssertionError("somebody computed this")

    never = in_chunks().map_blocks(refuse, meta=LIKE)
    model = KMeans.from_centers([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    lazy = [model.predict(never), model.transform(never)]
    assert [array.dtype for array in lazy] == [np.int32, np.float64]
    assert [array.shape for array in lazy] == [(748,), (748, 2)]
    with pytest.raises(AssertionError, match="somebody computed this"):
        lazy[0].compute()
    holed = np.where(np.arange(748)[:, None] == 600, np.nan, POINTS)
    with pytest.raises(ValueError, match=r"in partition 4: .*NaN"):
        model.predict(in_chunks(holed)).compute()


def test_each_partition_is_computed_and_opened_once_for_a_whole_fit(threads, monkeypatch):
    numbers, opened, original = [], [], PartOpener.open

    def note(block, block_id=None):
        numbers.append(block_id[0])
        return block

    def count(self, points, *args, **options):
        opened.append(len(points))
        return original(self, points, *args, **options)

    PowerKMeans(3, random_state=0).fit(in_chunks().map_blocks(note, meta=LIKE))
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(PartOpener, "open", count)
    rows = PartedPoints(DaskExecutor(DaskPoints(in_chunks(), None), PartOpener()))
    for _ in range(3):
        rows.sweep(rows.take(np.array([0, 1])), Hard())
    assert sorted(opened) == sorted(filter(None, LENGTHS))


def test_partitions_of_unknown_length_and_parts_without_their_rows_travel(pair, tmp_path):
    some = in_chunks()
    some = some[some[:, 0] > 1.0]
    assert np.isnan(some.shape[0])
    model = KMeans(3, init=POINTS[:3], n_init=1).fit(some)
    expected = KMeans.from_centers(model.cluster_centers_).predict(POINTS[POINTS[:, 0] > 1.0])
    np.testing.assert_array_equal(model.labels_.compute(), expected)

    def fail_once(block, block_id=None):
        try:
            (tmp_path / str(block_id[0])).touch(exist_ok=False)
        except FileExistsError:
            return block
        raise OSError("the disk is busy")

    with dask.annotate(retries=1):
        model = KMeans(2, random_state=0).fit(in_chunks().map_blocks(fail_once, meta=LIKE))
    with dask.config.set(scheduler="threads"):
        assert_same_fit(model, KMeans(2, random_state=0).fit(in_chunks()))
    part = make_worker_part(np.arange(2000.0).reshape(-1, 2), None, PartOpener(), "part 0")
    assert 16_000 <= sys.getsizeof(part) < 17_000
    part.perform(lambda rows, number: rows.mean(), 0, 1)
    again = pickle.loads(pickle.dumps(part))
    assert np.array_equal(again.points, part.points)
    assert again.perform(lambda rows, number: rows.n_points + number, 7, 1) == 1007
    points = np.random.default_rng(0).normal(size=(748, 40))
    assert points[:400].nbytes > dask_executor._BYTES_IN_A_TASK > points[:2].nbytes
    rows = PartedPoints(DaskExecutor(DaskPoints(in_chunks(points), None), PartOpener()))
    kept = [(part, None) for part in np.split(points, np.cumsum(LENGTHS)[:-1]) if len(part)]
    for centers in (points[:400], points[:2]):
        expected = PartedPoints(MemoryExecutor(kept, PartOpener())).sweep(centers, Hard())
        assert rows.sweep(centers, Hard()).points.tobytes() == expected.points.tobytes()


def test_a_stream_computes_one_partition_at_a_time_and_passes_over_empty_ones(threads):
    computed, seen = [], []

    def note(block, block_id=None):
        computed.append(block_id[0])
        return block

    class Noting(MiniBatchPowerKMeans):
        def _advanced(self, *arguments):
            seen.append(len(set(computed)))
            return super()._advanced(*arguments)

    Noting(4, init_size=100).partial_fit(
        in_chunks(POINTS, (249, 0, 249, 250)).map_blocks(note, meta=LIKE)
    )
    assert seen == [1, 3, 4]


def test_frames_have_any_name_for_a_column_and_a_saved_model_has_no_labels(threads, tmp_path):
    frame = dd.from_pandas(frame_of(POINTS).assign(checkpoint=WEIGHTS), npartitions=3)
    some = open_data(frame, columns=["depth", "height"], weights="checkpoint", dtype="float32")
    lone = frame[["depth", "height"]].astype("float32")
    model = KMeans(3, random_state=0).fit(lone, sample_weight=frame["checkpoint"])
    assert_same_fit(KMeans(3, random_state=0).fit(some), model)
    assert KMeans(2).fit(frame).cluster_centers_.shape == (2, 4)
    model = KMeans(3, random_state=0).fit(in_chunks())
    labels = model.to_sklearn().labels_
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(labels, model.labels_.compute())
    powermeans.save(model, tmp_path / "model.pm")
    assert not hasattr(powermeans.load(tmp_path / "model.pm"), "labels_")
    cloudpickle = pytest.importorskip("cloudpickle", reason="it comes with dask")
    labels = pickle.loads(cloudpickle.dumps(model.labels_))
    np.testing.assert_array_equal(labels.compute(), model.labels_.compute())


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_distances_come_in_the_frame_that_is_asked_for(kind):
    pytest.importorskip(kind)
    model = KMeans(3, random_state=0).fit(in_chunks())
    distances = model.transform(in_chunks()).compute()
    table = model.set_output(transform=kind).transform(in_chunks())
    np.testing.assert_array_equal(table.to_numpy(), distances)


@pytest.mark.usefixtures("threads")
def test_a_checkpoint_of_other_partitions_is_refused_and_this_asks_nobody(tmp_path, monkeypatch):
    state = tmp_path / "state"
    first = KMeans(3, random_state=0).fit(open_data(in_chunks(), checkpoint=state))
    with pytest.raises(CheckpointError, match="these rows"):
        KMeans(3, random_state=0).fit(open_data(in_chunks(POINTS, (748,)), checkpoint=state))

    def refuse(*_):
        raise AssertionError("somebody asked")

    monkeypatch.setattr(DaskExecutor, "_performed", refuse)
    assert_same_fit(KMeans(3, random_state=0).fit(open_data(in_chunks(), checkpoint=state)), first)
    never = in_chunks().map_blocks(refuse, dtype=float, meta=np.empty((0, 0)))
    nowhere = open_data(never, checkpoint=tmp_path / "nowhere" / "state")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        KMeans(4, random_state=0).fit(nowhere)


def test_a_worker_of_another_version_is_refused_at_its_first_part(monkeypatch, threads):
    rows = PartedPoints(DaskExecutor(DaskPoints(in_chunks(), None), PartOpener()))
    ours = version("powermeans")
    with monkeypatch.context() as patched:
        patched.setattr(worker_part, "version", lambda name: "99.0")
        with pytest.raises(RuntimeError, match=f"has powermeans 99.0 .*powermeans=={ours} there"):
            rows.mean()
    part = make_worker_part(np.ones((2, 2)), None, PartOpener(), "part 0", "1.2.3")
    again = pickle.loads(pickle.dumps(part))
    with pytest.raises(RuntimeError, match=r"the fit is run by 1\.2\.3"):
        again.perform(lambda rows, number: number, 0, 1)
    monkeypatch.setattr(worker_part, "version", lambda name: "1.2.3")
    assert again.perform(lambda rows, number: number, 7, 1) == 7


@pytest.mark.parametrize(
    ("budget", "n_parts", "n_tasks", "share"),
    [(8, 100, 8, 1), (8, 2, 8, 4), (8, 3, 8, 2), (1, 5, 8, 1), (8, 100, 1, 8), (None, 1, 4, 4)],
)
def test_tasks_share_the_threads_of_a_process(budget, n_parts, n_tasks, share):
    assert threads_of_a_task(n_tasks, budget, n_parts) == share
