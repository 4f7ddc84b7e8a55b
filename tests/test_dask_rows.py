"""Points in a Dask collection give what the same parts give in memory, whoever works on them."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import fits_that_die
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, default_client
from divergence_cases import CASES
from kinds_of_rows import ReadAgain
from scipy import sparse

import powermeans
from powermeans import KMeans, ParallelSeeds, PowerKMeans, divergences, open_data
from powermeans.divergences import Cosine, Divergence, SquaredEuclidean
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power, Rule
from powermeans.scale import dask_executor as rows_of_dask
from powermeans.scale import worker_part as rows_that_are_held
from powermeans.scale.checkpoint import CheckpointError
from powermeans.scale.dask_executor import DaskExecutor, threads_of_a_task
from powermeans.scale.dask_points import DaskPoints
from powermeans.scale.executors import MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedRows
from powermeans.scale.partition import Part
from powermeans.scale.worker_part import WorkerPart, make_worker_part
from powermeans.system.host_memory import is_dask

SECONDS_AT_MOST = 90
LENGTHS = (400, 1, 0, 97, 250)
N_FEATURES = 3
RULES: list[Rule] = [Hard(), Power(-2.0), Harmonic(3.5), Gaussian(4.0)]
DIVERGENCES: dict[str, Callable[[int], Divergence]] = {
    "squared_euclidean": lambda d: SquaredEuclidean(),
    "cosine": lambda d: Cosine(),
    **{name: case.divergence for name, case in CASES.items()},
}


def cluster_of(n_workers: int) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


ENGINES = ["threads", "two workers"]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """What Dask works with."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield request.param
        return
    request.getfixturevalue("pair")
    yield request.param


@pytest.fixture
def threads() -> Iterator[None]:
    """Dask works in this process, also while there is a cluster."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def pair() -> Iterator[Client]:
    """Two workers in processes of their own."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        yield client


def points_for(divergence: str) -> np.ndarray:
    if divergence in CASES:
        return CASES[divergence].points(sum(LENGTHS), N_FEATURES, seed=3)
    return np.random.default_rng(3).normal(size=(sum(LENGTHS), N_FEATURES)) + 1.0


def some_weights() -> np.ndarray:
    weights = np.random.default_rng(4).uniform(0.5, 2.0, size=sum(LENGTHS))
    weights[::7] = 0.0
    return weights


def in_chunks(points: np.ndarray, lengths: tuple[int, ...] = LENGTHS) -> Any:
    return da.from_array(points, chunks=(lengths, points.shape[1]))


def parts_of(
    points: Any, weights: np.ndarray | None, lengths: tuple[int, ...] = LENGTHS
) -> list[Part]:
    ends = np.cumsum([length for length in lengths if length])
    starts = np.concatenate([[0], ends[:-1]])
    return [
        (points[start:end], None if weights is None else weights[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


def on_dask(points: np.ndarray, weights: np.ndarray | None, opener: PartOpener) -> PartedRows:
    return PartedRows(DaskExecutor(DaskPoints(in_chunks(points), weights), opener))


def all_that_rows_say(
    rows: PartedRows, centers: np.ndarray, *, is_brief: bool = False
) -> list[np.ndarray]:
    said: list[Any] = [rows.mean(), rows.inertia_about_mean()]
    for rule in RULES[:2] if is_brief else RULES:
        sums = rows.sweep(centers, rule)
        said += [sums.points, sums.weights, sums.objective, sums.inertia]
    spread = rows.spread(centers)
    said += [spread.error, spread.utility, spread.weights, *rows.assign(centers)]
    if is_brief:
        return [np.asarray(value) for value in said]
    said.append(rows.critical_power())
    nearness = rows.nearness(centers[:2])
    some = np.array([0, 400, 401, 700])
    said += [nearness.draw(np.array([0.1, 0.9])), nearness.potentials(some), nearness.farthest()]
    return [np.asarray(value) for value in [*said, rows.take(some), nearness.sq_dist(some)]]


def assert_same_bits(these: list[np.ndarray], those: list[np.ndarray]) -> None:
    for this, that in zip(these, those, strict=True):
        assert this.dtype == that.dtype
        assert this.tobytes() == that.tobytes()


# The same bits.


# Each question to another process takes its time, so there not everything is crossed.
ROWS = [
    (engine, name, is_weighted)
    for engine, name, is_weighted in itertools.product(ENGINES, DIVERGENCES, [False, True])
    if engine == "threads" or is_weighted or name == "squared_euclidean"
]


@pytest.mark.parametrize(("engine", "name", "is_weighted"), ROWS, indirect=["engine"])
def test_kept_reread_and_dask_rows_say_the_same_to_the_last_bit(
    engine: str, name: str, is_weighted: bool
) -> None:
    points, weights = points_for(name), some_weights() if is_weighted else None
    opener = PartOpener(DIVERGENCES[name](N_FEATURES))
    parts, centers = parts_of(points, weights), points[[5, 450, 640, 600]]
    brief = {"is_brief": engine != "threads" and name != "squared_euclidean"}
    kept = all_that_rows_say(
        PartedRows(MemoryExecutor(parts, opener, n_threads=2)), centers, **brief
    )
    again = PartedRows(ReadingExecutor(ReadAgain(parts), opener, n_threads=1))
    assert_same_bits(all_that_rows_say(again, centers, **brief), kept)
    assert_same_bits(all_that_rows_say(on_dask(points, weights, opener), centers, **brief), kept)


def test_points_with_missing_entries_say_the_same_too(engine: str) -> None:
    points, opener = points_for("squared_euclidean"), PartOpener(has_missing=True)
    points[np.random.default_rng(0).uniform(size=points.shape) < 0.2] = np.nan
    points[np.isnan(points).all(axis=1)] = 0.0
    centers = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 1.0]])
    kept, dasks = (
        PartedRows(MemoryExecutor(parts_of(points, None), opener)).sweep(centers, Power(-1.0)),
        on_dask(points, None, opener).sweep(centers, Power(-1.0)),
    )
    assert_same_bits([dasks.points, dasks.weights], [kept.points, kept.weights])


def test_centers_that_are_sent_but_once_give_the_same_as_those_in_each_task(engine: str) -> None:
    points = np.random.default_rng(0).normal(size=(sum(LENGTHS), 40))
    centers = points[:400]
    assert centers.nbytes > rows_of_dask._BYTES_IN_A_TASK > points[:2].nbytes
    kept = PartedRows(MemoryExecutor(parts_of(points, None), PartOpener()))
    dasks = on_dask(points, None, PartOpener())
    for some in (centers, points[:2]):
        these, those = dasks.sweep(some, Power(-2.0)), kept.sweep(some, Power(-2.0))
        assert_same_bits([these.points, these.weights], [those.points, those.weights])


def test_chunks_of_csr_say_the_same(engine: str) -> None:
    points = sparse.random_array((200, 30), density=0.2, format="csr", rng=0)
    blocks = [
        da.from_delayed(dask.delayed(points[i : i + 50]), (50, 30), float)
        for i in range(0, 200, 50)
    ]
    rows = PartedRows(DaskExecutor(DaskPoints(da.concatenate(blocks)), PartOpener()))
    kept = PartedRows(MemoryExecutor(parts_of(points, None, (50, 50, 50, 50)), PartOpener()))
    centers = points[[0, 60, 120]].toarray()
    these, those = rows.sweep(centers, Hard()), kept.sweep(centers, Hard())
    assert_same_bits([these.points, these.weights], [those.points, those.weights])


def after(n_sweeps: int) -> Callable[[Any], bool]:
    """A callback that stops a fit, so that few questions go to other processes."""
    return lambda state: state.sweep >= n_sweeps


FITS: dict[str, Callable[[], Any]] = {
    "k-means": lambda: KMeans(4, random_state=0, n_init=2),
    "k-means||": lambda: KMeans(4, init=ParallelSeeds(2, 1.5), tol=0.01, random_state=0),
    "power k-means without a search": lambda: PowerKMeans(
        4, effort="none", random_state=0, callback=after(12)
    ),
    "breathing": lambda: PowerKMeans(4, effort="fast", random_state=0, callback=after(40)),
    "breathing, Poisson": lambda: PowerKMeans(
        4, effort="fast", divergence="poisson", random_state=0, callback=after(40)
    ),
}


def assert_that_a_fit_on_dask_has_the_bits_of_one_in_parts(name: str, is_weighted: bool) -> None:
    dtype = np.float64 if is_weighted else np.float32
    points = CASES["poisson"].points(700, 3, seed=1, n_groups=4).astype(dtype)
    weights = np.arange(1.0, 701.0) if is_weighted else None
    in_memory = FITS[name]().fit(open_data(points, weights=weights, rows_per_part=300))
    lengths = (300, 300, 100)
    on_cluster = FITS[name]().fit(in_chunks(points, lengths), sample_weight=weights)
    assert on_cluster.cluster_centers_.dtype == dtype
    assert on_cluster.cluster_centers_.tobytes() == in_memory.cluster_centers_.tobytes()
    assert on_cluster.inertia_ == in_memory.inertia_
    assert on_cluster.n_iter_ == in_memory.n_iter_


WEIGHTED_ON_A_CLUSTER = {"k-means||", "breathing"}
FITS_BY_ENGINE = [
    (engine, name, is_weighted)
    for engine, name, is_weighted in itertools.product(ENGINES, FITS, [False, True])
    if engine == "threads" or is_weighted == (name in WEIGHTED_ON_A_CLUSTER)
]


@pytest.mark.parametrize(("engine", "name", "is_weighted"), FITS_BY_ENGINE, indirect=["engine"])
def test_a_fit_on_dask_has_the_bits_of_one_in_parts_in_memory(
    engine: str, name: str, is_weighted: bool
) -> None:
    assert_that_a_fit_on_dask_has_the_bits_of_one_in_parts(name, is_weighted)


def test_a_divergence_of_lambdas_goes_wherever_dask_works(engine: str) -> None:
    """Pickle knows no lambdas, but what Dask sends things with does."""
    points = points_for("squared_euclidean")
    plane = divergences.Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(plane)
    given: dict[str, Any] = {"effort": "none", "random_state": 0, "divergence": plane}
    array, parts = in_chunks(points[:700], (300, 300, 100)), points[:700]
    model = PowerKMeans(3, callback=after(3), **given).fit(array)
    kept = PowerKMeans(3, callback=after(3), **given).fit(open_data(parts, rows_per_part=300))
    assert model.cluster_centers_.tobytes() == kept.cluster_centers_.tobytes()
    assert model.predict(array).compute().shape == (700,)


def test_a_fit_by_one_worker_has_the_bits_of_one_in_parts_in_memory(pair: Client) -> None:
    one = next(iter(pair.nthreads()))
    with dask.annotate(workers=[one]):
        assert_that_a_fit_on_dask_has_the_bits_of_one_in_parts("k-means", is_weighted=True)


def test_other_partitions_give_the_same_to_nine_digits(engine: str) -> None:
    points = CASES["mahalanobis"].points(900, 3, seed=1, n_groups=4)
    for lengths in ((900,), (1, 2, 3, 894), (300, 300, 300)):
        model = KMeans(4, init=points[[0, 1, 2, 3]], n_init=1, tol=0.05).fit(
            in_chunks(points, lengths)
        )
        plain = KMeans(4, init=points[:4], n_init=1, tol=0.05).fit(points)
        np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, rtol=1e-9)
        np.testing.assert_allclose(model.inertia_, plain.inertia_, rtol=1e-9)


# How many clusters.


@pytest.mark.parametrize("kind", ["none", "counts", "shares"])
@pytest.mark.usefixtures("threads")
def test_k_is_chosen_where_dask_has_the_rows_to_the_same_bits(kind: str) -> None:
    points = CASES["mahalanobis"].points(700, 3, seed=1, n_groups=4)
    counts = np.random.default_rng(2).integers(0, 4, size=700).astype(float)
    weights = {"none": None, "counts": counts, "shares": counts / counts.sum()}[kind]
    asked: dict[str, Any] = {
        "criteria": ["bic", "separation", "silhouette"],
        "silhouette_size": 200,
    }
    array = in_chunks(points, (300, 300, 100))
    found = powermeans.choose_k(array, [2, 3, 4, 5], sample_weight=weights, random_state=0, **asked)
    data = open_data(points, weights=weights, rows_per_part=300)
    expected = powermeans.choose_k(data, [2, 3, 4, 5], random_state=0, **asked)
    assert found.table.keys() == expected.table.keys()
    for name, values in found.table.items():
        assert values.tobytes() == expected.table[name].tobytes(), name
    opened = open_data(array, weights=weights)
    again = powermeans.choose_k(opened, [2, 3, 4, 5], random_state=0, **asked)
    assert again.table["inertia"].tobytes() == found.table["inertia"].tobytes()
    with pytest.raises(ValueError, match="sample_weight is for a Dask collection itself"):
        powermeans.choose_k(opened, [2, 3], sample_weight=counts)


@pytest.mark.usefixtures("pair")
def test_workers_choose_k_to_the_same_bits() -> None:
    points = CASES["mahalanobis"].points(700, 3, seed=1, n_groups=4)
    asked: dict[str, Any] = {"criteria": "bic", "effort": "fast", "random_state": 0}
    found = powermeans.choose_k(in_chunks(points, (400, 300)), [2, 3], **asked)
    expected = powermeans.choose_k(open_data(points, rows_per_part=400), [2, 3], **asked)
    assert found.table["inertia"].tobytes() == expected.table["inertia"].tobytes()


@pytest.mark.usefixtures("threads")
def test_no_report_pulls_all_rows_here(tmp_path: Path) -> None:
    model = KMeans.from_centers(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"X is a Dask collection.* pass some of the rows"):
        powermeans.report(model, in_chunks(points_for("squared_euclidean")), tmp_path / "report")
    with pytest.raises(ValueError, match=r"X is to be read part by part.* pass some of the rows"):
        powermeans.report(model, "points.parquet", tmp_path / "report")


# What is lazy, and what is not.


def test_labels_distances_and_score_are_those_of_points_in_memory(engine: str) -> None:
    points, weights = points_for("squared_euclidean"), some_weights()
    model = PowerKMeans(4, init=points[:4], effort="none", callback=after(3))
    model.fit(in_chunks(points), sample_weight=weights)
    in_memory = PowerKMeans.from_centers(model.cluster_centers_)
    assert isinstance(model.labels_, da.Array)
    assert model.labels_.chunks == (LENGTHS,)
    assert np.array_equal(model.labels_.compute(), in_memory.predict(points))
    assert np.array_equal(model.predict(in_chunks(points)).compute(), in_memory.predict(points))
    distances = model.transform(in_chunks(points))
    assert isinstance(distances, da.Array)
    assert distances.chunks == (LENGTHS, (4,))
    assert np.array_equal(distances.compute(), in_memory.transform(points))
    score = model.score(in_chunks(points), sample_weight=weights)
    assert score == -model.inertia_
    np.testing.assert_allclose(score, in_memory.score(points, sample_weight=weights), rtol=1e-12)


@pytest.mark.usefixtures("threads")
def test_predict_and_transform_compute_nothing_before_they_are_asked_to() -> None:
    def refuse(block: np.ndarray) -> np.ndarray:
        raise AssertionError("somebody computed this")

    never = in_chunks(np.ones((648 + 100, 2)), (748,)).map_blocks(refuse, meta=np.empty((0, 2)))
    model = KMeans.from_centers([[0.0, 0.0], [1.0, 1.0]])
    lazy = [model.predict(never), model.transform(never)]
    assert [array.dtype for array in lazy] == [np.int32, np.float64]
    assert [array.shape for array in lazy] == [(748,), (748, 2)]
    with pytest.raises(AssertionError, match="somebody computed this"):
        lazy[0].compute()


def test_partitions_of_unknown_length_are_counted_once(engine: str) -> None:
    points = points_for("squared_euclidean")
    some = in_chunks(points)
    some = some[some[:, 0] > 1.0]
    assert np.isnan(some.shape[0])
    model = KMeans(3, init=points[:3], n_init=1).fit(some)
    kept = points[points[:, 0] > 1.0]
    labels = model.labels_.compute()
    assert np.array_equal(labels, KMeans.from_centers(model.cluster_centers_).predict(kept))


@pytest.mark.usefixtures("threads")
def test_each_partition_is_computed_once_for_a_whole_fit() -> None:
    numbers: list[int] = []

    def note(block: np.ndarray, block_id: Any = None) -> np.ndarray:
        numbers.append(block_id[0])
        return block

    noted = in_chunks(points_for("squared_euclidean")).map_blocks(note, meta=np.empty((0, 3)))
    PowerKMeans(3, random_state=0).fit(noted)
    assert sorted(numbers) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("threads")
def test_rows_are_opened_once_for_a_whole_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    original = PartOpener.open

    def count(self: PartOpener, points: Any, *args: Any, **options: Any) -> Any:
        opened.append(len(points))
        return original(self, points, *args, **options)

    monkeypatch.setattr(PartOpener, "open", count)
    rows = on_dask(points_for("squared_euclidean"), None, PartOpener())
    for _ in range(3):
        rows.sweep(rows.take(np.array([0, 1])), Hard())
    assert sorted(opened) == sorted(length for length in LENGTHS if length)


def test_frames_have_feature_names_and_series_for_weights(engine: str) -> None:
    points, weights = points_for("squared_euclidean"), some_weights()
    table = pd.DataFrame(points, columns=["a", "b", "c"]).assign(w=weights)
    frame = dd.from_pandas(table, npartitions=3)
    model = KMeans(3, init=points[:3], n_init=1, tol=0.05)
    model.fit(frame[["a", "b", "c"]], sample_weight=frame["w"])
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    labels = model.predict(frame[["a", "b", "c"]]).compute()
    bare = KMeans.from_centers(model.cluster_centers_)
    assert np.array_equal(labels, bare.predict(points))
    np.testing.assert_allclose(
        model.inertia_, -bare.score(points, sample_weight=weights), rtol=1e-12
    )
    with pytest.raises(ValueError, match="a"):
        model.predict(frame[["c", "b", "a"]])


@pytest.mark.usefixtures("threads")
def test_a_model_is_pickled_and_saved_without_labels_that_lie_elsewhere(tmp_path: Path) -> None:
    points = points_for("squared_euclidean")
    model = KMeans(3, random_state=0).fit(in_chunks(points))
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "labels_")
    powermeans.save(model, tmp_path / "model.pm")
    loaded = powermeans.load(tmp_path / "model.pm")
    for copied in (again, loaded):
        assert np.array_equal(copied.predict(points), model.labels_.compute())


# Scaling, columns and checkpoints.


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.usefixtures("threads")
def test_scaling_is_learned_by_sums_and_is_that_of_points_in_memory(
    scale: str, is_weighted: bool
) -> None:
    points = points_for("squared_euclidean") * [1.0, 1e3, 0.0] + [0.0, 50.0, 0.1]
    weights = some_weights() if is_weighted else None
    data = open_data(in_chunks(points), weights=weights, scale=scale)
    plain = open_data(points, weights=weights, scale=scale).scaling
    np.testing.assert_allclose(data.scaling.offsets, plain.offsets, rtol=1e-12)
    np.testing.assert_allclose(data.scaling.units, plain.units, rtol=1e-12)
    np.testing.assert_allclose(data.array.compute(), plain.transform(points), atol=1e-12)


def test_a_fit_of_scaled_points_has_the_bits_of_one_in_memory(engine: str) -> None:
    points, weights = points_for("squared_euclidean")[:700], some_weights()[:700]
    data = open_data(in_chunks(points, (300, 300, 100)), weights=weights, scale="standard")
    same = open_data(points, weights=weights, scale=data.scaling, rows_per_part=300)
    init = points[:3]
    model, kept = (KMeans(3, init=init, n_init=1, tol=0.1).fit(given) for given in (data, same))
    assert model.cluster_centers_.tobytes() == kept.cluster_centers_.tobytes()
    assert model.score(data) == -model.inertia_ == -kept.inertia_
    bare = KMeans.from_centers(model.cluster_centers_)
    assert np.array_equal(model.labels_.compute(), bare.predict(data.scaling.transform(points)))
    assert np.array_equal(model.predict(data).compute(), model.labels_.compute())
    with pytest.raises(ValueError, match=r"X is not scaled in the same way"):
        model.predict(in_chunks(points, (700,)))


@pytest.mark.usefixtures("threads")
def test_columns_and_weights_of_a_frame_are_named() -> None:
    points, weights = points_for("squared_euclidean"), some_weights()
    table = pd.DataFrame(points, columns=["a", "b", "c"]).assign(w=weights)
    frame = dd.from_pandas(table, npartitions=3)
    some = open_data(frame, columns=["c", "a"], weights="w", dtype="float32")
    assert (some.feature_names, some.dtype, some.n_features) == (("c", "a"), np.float32, 2)
    model = KMeans(3, random_state=0).fit(some)
    assert model.cluster_centers_.dtype == np.float32
    lone = frame[["c", "a"]].astype("float32")
    same = KMeans(3, random_state=0).fit(lone, sample_weight=frame["w"])
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()
    assert open_data(frame, weights="w").feature_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"memory_limit": "1GB"}, "memory_limit='1GB' .* workers hold those"),
        ({"rows_per_part": 10}, "rows_per_part=10 .* X.rechunk or X.repartition"),
        ({"delimiter": ";"}, "delimiter=';' is for files"),
        ({"columns": ["a"]}, "a Dask array has none with names"),
        ({"weights": "w"}, "a Dask array has none with names"),
        ({"scale": "log"}, "scale='log' is unknown"),
    ],
    ids=["memory_limit", "rows_per_part", "delimiter", "columns", "weights", "scale"],
)
def test_options_that_are_for_other_rows_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        open_data(da.ones((10, 2)), **options)


def test_what_is_opened_twice_or_weighted_twice_or_misnamed_is_refused() -> None:
    data = open_data(da.ones((10, 2)))
    with pytest.raises(ValueError, match="open already"):
        open_data(data)
    with pytest.raises(ValueError, match=r"open_data\(\.\.\., weights=sample_weight\)"):
        KMeans(1).fit(data, sample_weight=np.ones(10))
    frame = dd.from_pandas(pd.DataFrame({"height": [1.0], "weight": [2.0]}), npartitions=1)
    with pytest.raises(ValueError, match='no column "wieght": did you mean "weight"'):
        open_data(frame, weights="wieght")


@pytest.mark.usefixtures("threads")
def test_a_fit_from_a_checkpoint_asks_nobody_and_one_of_other_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = points_for("squared_euclidean")
    array, state = in_chunks(points), tmp_path / "state"
    first = KMeans(3, random_state=0).fit(open_data(array, checkpoint=state))
    for other in (in_chunks(points + 1.0), array.rechunk(((748,), 3)), array.astype("float32")):
        with pytest.raises(CheckpointError, match="no checkpoint of a fit of these rows"):
            KMeans(3, random_state=0).fit(open_data(other, checkpoint=state))
    with pytest.raises(CheckpointError, match="with other parameters"):
        KMeans(4, random_state=0).fit(open_data(array, checkpoint=state))
    with pytest.raises(ValueError, match="pass an int"):
        KMeans(3).fit(open_data(array, checkpoint=state))

    def refuse(*args: Any) -> Any:
        raise AssertionError("somebody asked for sums")

    monkeypatch.setattr(DaskExecutor, "_performed", refuse)
    again = KMeans(3, random_state=0).fit(open_data(in_chunks(points), checkpoint=state))
    assert again.cluster_centers_.tobytes() == first.cluster_centers_.tobytes()


# Processes that die. Each is another one, so that whatever happens there ends in time.


def run_to_its_end(*what: object) -> tuple[int, str]:
    """The return code and the words of a process that is over, by itself or by us."""
    command = [sys.executable, fits_that_die.__file__, *map(str, what)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=SECONDS_AT_MOST)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    return run.returncode, said


def test_a_client_that_is_killed_goes_on_from_its_checkpoint_to_the_same_bits(
    engine: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    where = [] if engine == "threads" else [default_client().scheduler.address]
    code, _ = run_to_its_end("client", state, *where)
    assert code == -signal.SIGKILL
    n_bytes = state.stat().st_size
    resumed = fits_that_die.fitted(state)
    with dask.config.set(scheduler="threads"):
        undisturbed = fits_that_die.fitted(None)
    assert 0 < n_bytes < state.stat().st_size
    assert resumed.cluster_centers_.tobytes() == undisturbed.cluster_centers_.tobytes()
    assert resumed.history_.inertia.tobytes() == undisturbed.history_.inertia.tobytes()


@pytest.mark.usefixtures("threads")
def test_a_worker_killed_in_the_middle_changes_no_bit() -> None:
    code, said = run_to_its_end("worker")
    assert code == 0
    assert said.strip() == fits_that_die.fitted(None).cluster_centers_.tobytes().hex()


def test_a_fit_goes_on_with_a_worker_that_comes_late() -> None:
    points = points_for("squared_euclidean")
    with (
        LocalCluster(
            n_workers=0, processes=False, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        late = threading.Timer(0.5, cluster.scale, (1,))
        late.start()
        model = KMeans(2, random_state=0).fit(in_chunks(points))
        late.join()
    with dask.config.set(scheduler="threads"):
        same = KMeans(2, random_state=0).fit(in_chunks(points))
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()


def test_partitions_that_fail_once_are_read_again_as_annotated(tmp_path: Path) -> None:
    def fail_once(block: np.ndarray, block_id: Any = None) -> np.ndarray:
        try:
            (tmp_path / str(block_id[0])).touch(exist_ok=False)
        except FileExistsError:
            return block
        raise OSError("the disk is busy")

    points = in_chunks(points_for("squared_euclidean"))
    with dask.annotate(retries=1):
        fails = points.map_blocks(fail_once, meta=np.empty((0, 3)))
    with (
        LocalCluster(
            n_workers=1, processes=False, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        model = KMeans(2, random_state=0).fit(fails)
    with dask.config.set(scheduler="threads"):
        same = KMeans(2, random_state=0).fit(points)
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()


def test_a_scheduler_that_is_gone_ends_a_fit() -> None:
    points = in_chunks(points_for("squared_euclidean"))
    with cluster_of_one_process() as (address, run), Client(address, timeout=2) as client:

        def kill(state: Any) -> None:
            if state.sweep == 3:
                run.kill()
                run.wait()

        model = PowerKMeans(2, effort="none", random_state=0, callback=kill)
        with pytest.raises(CancelledError):
            model.fit(points)
        client.close(timeout=1)


# What is wrong.


@pytest.mark.parametrize(
    ("chunks", "what"),
    [
        (((648 + 100,), (1, 2)), r"cut along its columns into 2 chunks.*X\.rechunk\(\{1: -1\}\)"),
    ],
)
def test_columns_in_chunks_are_refused(chunks: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        KMeans(2).fit(da.ones((748, 3), chunks=chunks))


@pytest.mark.parametrize("shape", [(10,), (10, 2, 2)])
def test_what_has_no_rows_and_columns_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"of {len(shape)} dimensions"):
        KMeans(2).fit(da.ones(shape, chunks=5))


def test_a_bag_is_refused() -> None:
    for method in (KMeans(2).fit, KMeans(2).fit_predict, KMeans(2).fit_transform):
        with pytest.raises(TypeError, match="pass a Dask array or DataFrame"):
            method(dask.delayed(np.ones((3, 2))))


def test_nan_is_found_in_its_partition_and_row(engine: str) -> None:
    points = points_for("squared_euclidean")
    points[[450], 1] = np.nan
    where = "partition 3 contains NaN.*row 49, column 1"
    with pytest.raises(ValueError, match=where):
        KMeans(2).fit(in_chunks(points))
    labels = KMeans.from_centers(np.zeros((1, 3))).predict(in_chunks(points))
    with pytest.raises(ValueError, match=r"partition 3: .*row 49"):
        labels.compute()


@pytest.mark.usefixtures("threads")
def test_negative_weights_are_found_in_their_partition() -> None:
    weights = some_weights()
    weights[402] = -1.0
    with pytest.raises(ValueError, match=r"partition 3 contains -1.0 at index 1"):
        KMeans(2).fit(in_chunks(points_for("squared_euclidean")), sample_weight=weights)


def of_blocks(*blocks: np.ndarray) -> Any:
    """An array that believes all its blocks to be like the first one."""
    first = blocks[0]
    return da.concatenate(
        [da.from_delayed(dask.delayed(block), (np.nan, 2), first.dtype) for block in blocks],
        allow_unknown_chunksizes=True,
    )


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("blocks", "what"),
    [
        (
            [np.ones((3, 2)), np.ones((3, 4))],
            "partition 1 of X has 4 columns and partition 0 has",
        ),
        (
            [np.ones((0, 7)), np.ones((3, 2)), np.ones((3, 2), dtype=np.float32)],
            "partition 2 of X is dense float32 and partition 1 is dense float64",
        ),
        ([np.ones((0, 2)), np.ones((0, 2))], "X has no rows"),
        ([np.ones((2, 2)), np.eye(2)], "n_samples=4 should be >= n_clusters=5"),
        ([np.full((2, 2), "a")], "partition 0"),
    ],
)
def test_partitions_that_do_not_go_together_are_refused(
    blocks: list[np.ndarray], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        KMeans(5).fit(of_blocks(*blocks))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("weights", "what"),
    [
        (np.ones(7), r"shape \(7,\): pass one weight for each of the 748 rows"),
        (da.ones((748, 1)), "sample_weight has 2 dimensions"),
        (np.zeros(748), "sample_weight is zero for every row"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        KMeans(2).fit(in_chunks(points_for("squared_euclidean")), sample_weight=weights)


@pytest.mark.usefixtures("threads")
def test_weights_of_rows_that_nobody_has_counted_need_their_partitions() -> None:
    points = of_blocks(np.ones((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        KMeans(1).fit(points, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match="2 partitions of unknown lengths and sample_weight has 1"):
        KMeans(1).fit(points, sample_weight=da.ones(5))
    with pytest.raises(ValueError, match="partition 0 has 3 rows and weights of the shape"):
        KMeans(1).fit(points, sample_weight=da.ones(5, chunks=((2, 3),)))


@pytest.mark.usefixtures("threads")
def test_what_needs_all_points_at_once_says_so() -> None:
    points = in_chunks(points_for("squared_euclidean"))
    for model in (PowerKMeans(2, divergence="manhattan"), PowerKMeans(2, divergence="mahalanobis")):
        with pytest.raises(ValueError, match=model.divergence):
            model.fit(points)


def test_a_predict_of_other_columns_is_refused_at_once() -> None:
    model = KMeans.from_centers(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="3 columns"):
        model.predict(in_chunks(points_for("squared_euclidean")))


@pytest.mark.usefixtures("threads")
def test_a_worker_of_another_version_that_came_later_is_refused_at_its_first_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = on_dask(points_for("squared_euclidean"), None, PartOpener())
    ours = version("powermeans")
    monkeypatch.setattr(rows_that_are_held, "version", lambda name: "99.0")
    with pytest.raises(RuntimeError, match=f"has powermeans 99.0 and .*powermeans=={ours} there"):
        rows.mean()


def test_a_part_that_travels_tells_for_which_version_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = make_worker_part(np.ones((2, 2)), None, PartOpener(), "part 0", "1.2.3")
    again = pickle.loads(pickle.dumps(part))
    with pytest.raises(RuntimeError, match=r"the fit is run by 1\.2\.3"):
        again.perform(lambda rows, number: number, 0, 1)
    monkeypatch.setattr(rows_that_are_held, "version", lambda name: "1.2.3")
    assert again.perform(lambda rows, number: number, 7, 1) == 7


@contextmanager
def cluster_of_one_process() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A scheduler and a worker, to be killed together."""
    code = (
        "import asyncio; from distributed import Scheduler, Worker\n"
        "async def run():\n"
        "    async with Scheduler(port=0, dashboard=False, host='127.0.0.1') as scheduler:\n"
        "        async with Worker(scheduler.address, nthreads=1):\n"
        "            print(scheduler.address, flush=True)\n"
        "            await scheduler.finished()\n"
        "asyncio.run(run())"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            yield run.stdout.readline().strip(), run
        finally:
            run.kill()


# One part, as a process holds it.


def held_part(n_points: int = 5) -> WorkerPart:
    part = make_worker_part(np.arange(2.0 * n_points).reshape(-1, 2), None, PartOpener(), "part 0")
    assert isinstance(part, WorkerPart)
    return part


def test_a_part_is_as_large_as_its_arrays_and_travels_without_its_rows() -> None:
    part = held_part(1000)
    assert 16_000 <= sys.getsizeof(part) < 17_000
    part.perform(lambda rows, number: rows.mean(), 0, 1)
    again = pickle.loads(pickle.dumps(part))
    assert np.array_equal(again.points, part.points)
    assert again.perform(lambda rows, number: rows.n_points + number, 7, 1) == 1007


@pytest.mark.parametrize(
    ("budget", "n_parts", "n_tasks", "share"),
    [(8, 100, 8, 1), (8, 2, 8, 4), (8, 3, 8, 2), (1, 5, 8, 1), (8, 100, 1, 8), (None, 1, 4, 4)],
)
def test_tasks_share_the_threads_of_a_process(
    budget: int | None, n_parts: int, n_tasks: int, share: int
) -> None:
    assert threads_of_a_task(n_tasks, budget, n_parts) == share


@pytest.mark.parametrize("data", [np.ones((2, 2)), [[1.0]], "points.parquet", None])
def test_nothing_else_is_taken_for_a_thing_of_dask(data: object) -> None:
    assert not is_dask(data)


def test_the_package_does_not_import_dask() -> None:
    code = "import sys, powermeans; powermeans.KMeans(1).fit([[1.0]]); print('dask' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
