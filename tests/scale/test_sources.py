"""What is peculiar to files, to chunks and to what becomes of them while a fit reads them."""

import itertools
import os
import tempfile
from collections import deque
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scale.sources import (
    N_ROWS,
    NAMES,
    SOURCES,
    blobs,
    frame_of,
    table_of,
    write_folder,
    write_parquet,
)
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans import KMeans, PowerKMeans, Prepare, open_data
from powermeans.divergences import resolve
from powermeans.errors import TableError
from powermeans.mathematics.rules import Hard
from powermeans.methods import FuzzyCMeans
from powermeans.points.streams import is_stream
from powermeans.scale.array_files import Buffers
from powermeans.scale.block import SourceError
from powermeans.scale.executors import PartOpener, ReadingExecutor
from powermeans.scale.parted_data import PartedData
from powermeans.scale.parted_rows import PartedPoints
from powermeans.system.containers import is_dask

POINTS, WEIGHTS = blobs()
FILES = {name: source for name, source in SOURCES.items() if source.is_file}


def kmeans(init=POINTS[:5], **params):
    return KMeans(5, init=init, n_init=1, random_state=0, **params)


def rows_of(data):
    return np.concatenate([points for points, _ in data.partition().read()])


def thirds(points=POINTS):
    return np.array_split(points, 3)


# Parts.


@given(sizes=st.lists(st.integers(0, 90), min_size=1, max_size=12), n_rows=st.integers(1, 70))
def test_parts_do_not_depend_on_the_chunks(sizes, n_rows):
    ends = np.cumsum(sizes)
    assume(ends[-1])
    points = np.arange(2.0 * ends[-1]).reshape(-1, 2)
    data = open_data(np.split(points, ends[:-1]), rows_per_part=n_rows)
    parts = [part for part, _ in data.partition().read()]
    assert [len(part) for part in parts[:-1]] == [n_rows] * (len(parts) - 1)
    assert 0 < len(parts[-1]) <= n_rows
    np.testing.assert_array_equal(np.concatenate(parts), points)
    numbers = range(0, len(parts), 2)
    for number, (part, _) in zip(numbers, data.partition().read([*numbers]), strict=True):
        np.testing.assert_array_equal(part, parts[number])


def test_memory_limits_make_parts_smaller_and_buffers_are_used_again():
    most = 2**20 // 24
    for options, n_rows in (
        ({}, 2**24 // 24 // 256 * 256),
        ({"memory_limit": "6 MiB"}, most // 256 * 256),
        ({"memory_limit": 6e6}, 10**6 // 24 // 256 * 256),
        ({"memory_limit": "6 MiB", "rows_per_part": most}, most),
    ):
        assert open_data(POINTS, **options).rows_per_part == n_rows
    with pytest.raises(ValueError, match=f"at most {most} rows"):
        _ = open_data(POINTS, memory_limit="6 MiB", rows_per_part=most + 1).rows_per_part
    buffers, rng = Buffers(), np.random.default_rng(0)
    points = rng.normal(size=(40, 3))
    found = buffers.array(points.size, points.dtype).reshape(points.shape)
    found[:] = points
    address, rows, centers = found.ctypes.data, PartOpener().open(found), points[:2]
    expected = PartOpener().open(points).sweep(centers, Hard()).points
    del found
    buffers.array(points.size, points.dtype)[:] = 0.0
    assert np.array_equal(rows.sweep(centers, Hard()).points, expected)
    del rows
    assert buffers.array(points.size, points.dtype).ctypes.data == address
    assert buffers.array(999, points.dtype).shape == (999,)
    points = np.where(POINTS > 0, POINTS, 0)
    rows = open_data([*map(sparse.csr_array, thirds(points))], rows_per_part=400)
    found, expected = (kmeans(points[:5]).fit(X) for X in (rows, sparse.csr_array(points)))
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-9)


@pytest.mark.parametrize(("kind", "n_starts"), [("npy", 3), ("csv", 3), ("list", 1)])
def test_what_cannot_be_skipped_is_read_once(tmp_path, kind, n_starts, monkeypatch):
    source = SOURCES[kind].open(tmp_path, POINTS, rows_per_part=50).source
    starts, blocks = [], source.blocks
    monkeypatch.setattr(source, "blocks", lambda *how: starts.append(how) or blocks(*how))
    list(PartedData(source, 50).partition().read([2, 5, 19]))
    assert len(starts) == n_starts


@pytest.mark.parametrize("theirs", [StandardScaler, MinMaxScaler])
def test_scaling_is_that_of_scikit_learn(theirs):
    points, weights = POINTS + 1e4, np.ceil(4 * WEIGHTS)
    scale = theirs.__name__.removesuffix("Scaler").lower()
    how = {"prepare": Prepare(scale=scale), "rows_per_part": 400}
    data = open_data(table_of(points, weights), weights="weight", **how)
    scaler = theirs().fit(points, **({"sample_weight": weights} if scale == "standard" else {}))
    np.testing.assert_allclose(rows_of(data), scaler.transform(points), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.full((9, 3), np.nan), POINTS[:2]], ids=["NaN", "too few"])
def test_centers_keep_their_preparation_after_a_fit_that_was_refused(bad):
    for X, other in ((open_data(frame_of(POINTS), prepare=Prepare()), bad),
                     (POINTS, open_data(frame_of(bad), prepare=Prepare()))):  # fmt: skip
        model = kmeans("random").fit(X)
        score = model.score(X)
        with pytest.raises(ValueError, match=r"NaN|n_clusters|no column can be clustered"):
            model.fit(other)
        assert model.score(X) == score


def test_labels_are_not_written_into_what_is_read(tmp_path):
    rows = write_folder(tmp_path / "rows", POINTS)
    (rows / "deep").mkdir()
    parts = [rows / "part-0.parquet", write_parquet(tmp_path / "none.parquet", POINTS[:0])]
    model = kmeans().fit(rows)
    for X, output in [(rows, rows / "labels.npy"), ([os.fspath(rows)], rows / "deep" / "l.npy"),
                      (rows, rows / ".." / "rows" / "labels.txt"), (parts, parts[1]),
                      (open_data(parts), tmp_path / "." / "none.parquet")]:  # fmt: skip
        with pytest.raises(ValueError, match="is a file that X is read from"):
            model.predict(X, output=output)
    assert open_data(rows).n_rows == N_ROWS
    # What is passed over may be there, and so may what is beside the files that are read.
    model.predict(rows, output=rows / "_labels.npy")
    model.predict(parts, output=rows / "labels.npy")


# Files.


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", "<i2"])
def test_npy_files_are_read_by_position(tmp_path, dtype):
    values = np.arange(600).reshape(200, 3).astype(dtype)
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(values, order=order))
        data = open_data(tmp_path / "a.npy", rows_per_part=64)
        assert data.dtype == (np.float32 if dtype[1:] == "f4" else np.float64)
        np.testing.assert_array_equal(rows_of(data), values)
        (one, _), (other, _) = data.partition().read([1, 3])
        np.testing.assert_array_equal(one, values[64:128])
        np.testing.assert_array_equal(other, values[192:])


def largest_in(path):
    files = (file for file in [path, *path.rglob("*")] if file.is_file())
    return max(files, key=os.path.getsize)


# NumPy leaves a broken archive open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_cut_off_or_empty_is_damaged(tmp_path, kind):
    path = FILES[kind].given(tmp_path, POINTS)
    broken = largest_in(path)
    if kind != "csv":  # whose last number is shorter then
        broken.write_bytes(broken.read_bytes()[:-100])
        with pytest.raises(TableError, match=r"damaged|ends after|no archive"):
            kmeans("random").fit(open_data(path, **FILES[kind].options))
    broken.write_bytes(b"")
    with pytest.raises(TableError, match=r"is empty"):
        kmeans("random").fit(path)


def watched(at_sweep, happens):
    def watch(state):
        if state.sweep == at_sweep:
            happens()

    return PowerKMeans(5, effort="none", random_state=0, callback=watch)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("happens", ["touched", "rewritten", "removed"])
def test_a_file_must_stay_as_it_is(tmp_path, happens, kind):
    source, given = FILES[kind], FILES[kind].given(tmp_path, POINTS)
    path, data = largest_in(given), open_data(given, rows_per_part=300, **source.options)
    do = {
        "touched": lambda: os.utime(path, ns=(1, 1)),
        "rewritten": lambda: path.write_bytes(path.read_bytes()[:-8]),
        "removed": path.unlink,
    }[happens]
    model = watched(2, (lambda: None) if source.is_table else do)

    def use():
        model.fit(data)
        do()  # to tables, which a fit reads once, and predictions once more
        model.score(data)

    with pytest.raises(SourceError, match=r"has changed since|is gone"):
        use()


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_files_of_a_folder_are_alike(tmp_path, kind):
    """Empty ones are passed over, as Spark and Dask write them; no file has more columns."""
    write, options = SOURCES[kind].make, SOURCES[kind].options
    rows = write(tmp_path / f"b.{kind}", POINTS)
    for name in ("a", "c"):
        write(tmp_path / f"{name}.{kind}", POINTS[:0])
    if kind == "csv":
        (tmp_path / "d.csv").write_text("")
    found = open_data(tmp_path, rows_per_part=300, **options)
    np.testing.assert_array_equal(rows_of(found), POINTS)
    rows.unlink()
    with pytest.raises(TableError, match=rf"a\.{kind}.* (no rows|empty|\(0, 3\))"):
        open_data(tmp_path)
    narrow, wide = tmp_path / f"narrow.{kind}", write(tmp_path / f"b.{kind}", POINTS)
    if kind == "npy":
        np.save(narrow, POINTS[:, :2])
    else:
        frame = frame_of(POINTS)[NAMES[:2]]
        (frame.to_csv if kind == "csv" else frame.to_parquet)(narrow, index=False)
    for paths in ([narrow, wide], [wide, narrow]):
        with pytest.raises(ValueError, match="same columns in the same order"):
            open_data(paths)


def test_files_of_a_folder_have_one_precision_and_an_index_is_no_column(tmp_path):
    for name, dtype in ("a", np.float32), ("b", np.float64):
        np.save(tmp_path / f"{name}.npy", POINTS.astype(dtype))
        write_parquet(tmp_path / f"{name}.parquet", POINTS.astype(dtype))
    arrays = [tmp_path / "a.npy", tmp_path / "b.npy"]
    with pytest.raises(SourceError, match=r"holds float64 where .* holds float32"):
        open_data(arrays)
    assert open_data(arrays, dtype="float64").dtype == np.float64
    tables = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert open_data(tables, rows_per_part=300).dtype == np.float64
    frame_of(POINTS).query("height > 0").to_parquet(tables[1])
    assert pa.parquet.read_schema(tables[1]).names == [*NAMES, "__index_level_0__"]
    assert open_data(tables).feature_names == tuple(NAMES)


# Streams and chunks.


@pytest.mark.parametrize("kind", ["reader", "query", "lazy frame", "csv"])
def test_what_rows_are_spooled_to_is_removed_with_them(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    opened = SOURCES[kind].open(tmp_path, POINTS)
    assert opened.fingerprint() == SOURCES[kind].open(tmp_path, POINTS).fingerprint()
    spools = list(tmp_path.glob("powermeans-*.npy"))
    assert len(spools) == 1
    del opened
    assert not spools[0].exists()


@pytest.mark.parametrize(
    "data",
    [
        POINTS, POINTS.tolist(), list(POINTS), tuple(POINTS), deque(POINTS), [(1.0, 2.0)],
        [(POINTS[0], POINTS[1])], [[[1.0]]], [["a"]], frame_of(POINTS), pd.Series([1.0]),
        table_of(POINTS), sparse.csr_array(POINTS), memoryview(POINTS), range(3), {1: 2},
        {"a": [1.0]}, {1.0, 2.0}, str, 3, None, [], (),
    ],
    ids=lambda data: type(data).__name__,
)  # fmt: skip
def test_what_scikit_learn_takes_or_refuses_is_left_to_it(data):
    assert not is_stream(data)
    assert not is_dask(data)
    assert is_stream([Path("a"), "b"])


def passes(chunks_of_pass):
    """A function of chunks, which are made by the number of the pass."""
    numbers = itertools.count(1)
    return lambda: chunks_of_pass(next(numbers))


def always(rows):
    return lambda: rows


OTHERS = {
    "empty": (lambda: passes(lambda n: [POINTS] * (n < 3)), "the same in every pass"),
    "shorter": (lambda: passes(lambda n: [POINTS[: 900 - 100 * n]]), "the same in every pass"),
    "longer": (lambda: passes(lambda n: [POINTS[: 300 * n]]), "the same in every pass"),
    "one generator": (lambda: always(part for part in thirds()), "a new iterator in each call"),
    "one map": (lambda: always(map(abs, thirds())), "a new iterator in each call"),
    "around one": (lambda: partial(map, abs, iter(thirds())), "a new iterator in each call"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("seeds", ["k-means++", POINTS[:5]], ids=["seeds", "init"])
def test_rows_that_are_others_the_next_time_are_found(name, seeds, tmp_path):
    make, message = OTHERS[name]
    model = kmeans().fit(POINTS)

    def use():
        data = open_data(make(), rows_per_part=200)
        kmeans(seeds).fit(data)
        model.predict(data, output=tmp_path / "labels.npy")

    with pytest.raises(SourceError, match=message):
        use()
    assert not list(tmp_path.iterdir())


def test_chunks_may_be_cut_elsewhere_in_each_pass_and_have_numbers_for_labels():
    cut = passes(lambda n: [POINTS[:0], *np.array_split(POINTS, n)])
    model = kmeans().fit(open_data(cut, rows_per_part=300))
    same = kmeans().fit(open_data(POINTS, rows_per_part=300))
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()
    rows = [POINTS[:500], pd.DataFrame(POINTS[500:])]
    np.testing.assert_array_equal(rows_of(open_data(rows)), POINTS)
    chunks = [POINTS[:500]]
    partition = open_data(chunks, rows_per_part=300).partition()
    assert [len(points) for points, _ in partition.read()] == [300, 200]
    chunks.append(POINTS[500:550])
    with pytest.raises(SourceError, match="the same in every pass"):
        list(partition.read([1]))


@pytest.mark.parametrize("wrap", [iter, partial(map, abs)])
def test_a_pass_that_ends_early_has_nothing_open(wrap):
    n_open = 0

    def chunks():
        nonlocal n_open
        n_open += 1
        try:
            yield from thirds()
        finally:
            n_open -= 1

    data = open_data(lambda: wrap(chunks()), rows_per_part=300)
    partition = data.partition()
    for ask in (data.fingerprint, partition.found, lambda: list(partition.read([0]))):
        ask()
        assert n_open == 0


def going_bad(first_bad, value=np.nan, points=POINTS):
    """Chunks, of which number 6 has a bad value from some pass on."""

    def of_pass(number):
        chunks = np.array_split(points, 10)
        if number >= first_bad:
            chunks[6] = chunks[6].copy()
            chunks[6][7, 1] = value
        return chunks

    return passes(of_pass)


MODELS = {
    "k-means": KMeans(4, n_init=1, random_state=0),
    "power": PowerKMeans(4, random_state=0),
    "cosine": PowerKMeans(4, divergence="cosine", random_state=0),
    "fuzzy": FuzzyCMeans(4, random_state=0),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_value_that_is_no_longer_finite_is_found_and_named(kind):
    for first_bad in (3, 4, 6, 9):
        data = open_data(going_bad(first_bad), rows_per_part=300)
        with pytest.raises(SourceError, match=r"chunk 6 contains NaN.*row 7, column 1.*every pass"):
            MODELS[kind].fit(data)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_missing_entries_are_no_fault_and_infinite_ones_and_weights_are():
    gaps = POINTS.copy()
    gaps[::5, 2] = np.nan
    model = PowerKMeans(4, missing="observed", random_state=0)
    whole = model.fit(gaps).cluster_centers_
    in_parts = model.fit(open_data([gaps], rows_per_part=300)).cluster_centers_
    np.testing.assert_allclose(in_parts, whole, rtol=1e-9)  # in the same order
    for first_bad in (3, 5):
        chunks = going_bad(first_bad, np.inf, gaps)
        with pytest.raises(SourceError, match=r"chunk 6 contains infinity.*row 7, column 1"):
            model.fit(open_data(chunks, rows_per_part=300))
    weights = np.where(np.arange(N_ROWS) == 700, np.nan, 1.0)
    for only_bad in (3, 4, 5, 6):

        def of_pass(number, only_bad=only_bad):
            given = weights if number == only_bad else np.ones(N_ROWS)
            return zip(thirds(), thirds(given), strict=True)

        with pytest.raises(SourceError, match=r"contains NaN at index (33|700)"):
            kmeans("k-means++").fit(open_data(passes(of_pass), rows_per_part=300))


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_that_are_known_give_the_same_bits(dtype, divergence):
    points = np.random.default_rng(0).normal(size=(5000, 20)).astype(dtype) + 3
    opener, centers = PartOpener(resolve(divergence)), points[:7].astype(np.float64)
    partition = open_data([points], rows_per_part=2048).partition()
    rows = PartedPoints(ReadingExecutor(partition, opener, n_threads=1))
    one, other = (rows.sweep(centers, Hard()) for _ in range(2))
    # The last part is short, and not worth remembering.
    assert list(rows.executor._known) == [0, 1]
    assert np.array_equal(one.points, other.points)
    known = opener.open(points).known
    one, other = (opener.open(points, known=state, n_threads=1) for state in (None, known))
    assert np.array_equal(one.sweep(centers, Hard()).points, other.sweep(centers, Hard()).points)
    assert np.array_equal(one.column_moments().squares, other.column_moments().squares)
    with pytest.raises(ValueError, match="moments of points with other features"):
        opener.open(points[:, :5].copy(), known=known)
