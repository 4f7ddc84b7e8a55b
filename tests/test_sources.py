"""Rows that need not fit into memory: read from anything, they are the same rows."""

from __future__ import annotations

import copy
import errno
import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans import (
    DPMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    KHarmonicMeans,
    KMeans,
    MiniBatchPowerKMeans,
    PowerKMeans,
    RobustPowerKMeans,
    Scaling,
    SpectralClustering,
    critical_power,
    k_means,
    kmeans_plusplus,
    load,
    moment_estimates,
    open_data,
    save,
)
from powermeans.divergences import resolve
from powermeans.errors import NotInPartsError
from powermeans.mathematics.rules import Hard
from powermeans.points.needs import Measure, Needs
from powermeans.points.streams import is_stream
from powermeans.scale.block import SourceError
from powermeans.scale.executors import PartOpener, ReadingExecutor
from powermeans.scale.parted_data import PartedData
from powermeans.scale.parted_rows import PartedRows
from powermeans.scale.tables import TableError
from powermeans.scale.tables.array_files import Buffers

N_ROWS, N_CLUSTERS = 2500, 5
NAMES = ["height", "width", "depth"]


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    means = 5 * rng.normal(size=(N_CLUSTERS, 3))
    points = means[rng.integers(N_CLUSTERS, size=N_ROWS)] + rng.normal(size=(N_ROWS, 3))
    return points, rng.exponential(size=N_ROWS)


def table_of(points, weights=None):
    columns = dict(zip(NAMES, points.T, strict=True))
    return pa.table(columns if weights is None else {"weight": weights, **columns})


def write_parquet(path, points, weights=None):
    parquet.write_table(table_of(points, weights), path, row_group_size=300)


def write_folder(path, points, weights=None):
    path.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(points)), 3)):
        of_part = None if weights is None else weights[rows]
        write_parquet(path / f"part-{number}.parquet", points[rows], of_part)
    (path / "_SUCCESS").touch()


def write_arrow(path, points, weights=None):
    table = table_of(points, weights)
    with pa.OSFile(os.fspath(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=170)


def write_stream(path, points, weights=None):
    table = table_of(points, weights)
    with pa.OSFile(os.fspath(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=170)


WRITERS = {
    "parquet": write_parquet,
    "folder": write_folder,
    "feather": lambda path, *columns: feather.write_feather(table_of(*columns), os.fspath(path)),
    "arrow": write_arrow,
    "stream": write_stream,
    "csv": lambda path, *columns: csv.write_csv(table_of(*columns), path),
}


def kmeans(init, **params):
    return KMeans(N_CLUSTERS, init=init, n_init=1, **params)


def same_fit(one, other):
    return np.array_equal(one.cluster_centers_, other.cluster_centers_) and (
        one.inertia_ == other.inertia_
    )


def everything(data):
    """All points and weights, as they are cut into parts."""
    parts = list(data.partition().read())
    weights = [weights for _, weights in parts]
    return np.concatenate([points for points, _ in parts]), (
        None if weights[0] is None else np.concatenate(weights)
    )


# The same rows.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_files_give_the_bits_of_the_array(tmp_path, blobs, kind, is_weighted, dtype):
    points, weights = blobs[0].astype(dtype), blobs[1] if is_weighted else None
    path = tmp_path / "rows"
    WRITERS[kind](path, points, weights)
    column = "weight" if is_weighted else None
    # Text has no precision of its own.
    wanted = np.dtype(dtype).name if kind == "csv" else None
    data = open_data(path, weights=column, rows_per_part=400, dtype=wanted)
    read, read_weights = everything(data)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, points)
    if is_weighted:
        np.testing.assert_array_equal(read_weights, weights)
    expected = kmeans(points[:5]).fit(open_data(points, weights=weights, rows_per_part=400))
    assert same_fit(kmeans(points[:5]).fit(data), expected)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_copy_of_opened_rows_has_the_same_rows(tmp_path, blobs, kind):
    WRITERS[kind](tmp_path / "rows", blobs[0])
    data = open_data(tmp_path / "rows")
    np.testing.assert_array_equal(everything(copy.deepcopy(data))[0], everything(data)[0])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", "<i2"])
def test_npy_files_are_read_by_position(tmp_path, dtype, order):
    values = np.arange(600).reshape(200, 3).astype(dtype)
    np.save(tmp_path / "a.npy", np.asarray(values, order=order))
    data = open_data(tmp_path / "a.npy", rows_per_part=64)
    assert data.dtype == (np.float32 if dtype[1:] == "f4" else np.float64)
    np.testing.assert_array_equal(everything(data)[0], values)
    found = list(data.partition().read([1, 3]))
    np.testing.assert_array_equal(found[0][0], values[64:128])
    np.testing.assert_array_equal(found[1][0], values[192:])


@given(sizes=st.lists(st.integers(0, 90), min_size=1, max_size=12), n_rows=st.integers(1, 70))
def test_parts_do_not_depend_on_the_chunks(sizes, n_rows):
    ends = np.cumsum(sizes)
    if not ends[-1]:
        return
    points = np.arange(2.0 * ends[-1]).reshape(-1, 2)
    chunks = [points[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    parts = list(open_data(chunks, rows_per_part=n_rows).partition().read())
    assert [len(part) for part, _ in parts[:-1]] == [n_rows] * (len(parts) - 1)
    assert 0 < len(parts[-1][0]) <= n_rows
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), points)
    numbers = list(range(0, len(parts), 2))
    some = list(open_data(chunks, rows_per_part=n_rows).partition().read(numbers))
    for number, (part, _) in zip(numbers, some, strict=True):
        np.testing.assert_array_equal(part, parts[number][0])


@pytest.mark.parametrize("kind", ["parquet", "folder", "arrow", "csv"])
def test_some_parts_are_read_alone(tmp_path, blobs, kind):
    WRITERS[kind](tmp_path / "rows", blobs[0])
    partition = open_data(tmp_path / "rows", rows_per_part=130).partition()
    for numbers in ([0], [3, 4, 11], [19]):
        for number, (part, _) in zip(numbers, partition.read(numbers), strict=True):
            np.testing.assert_array_equal(part, blobs[0][number * 130 : (number + 1) * 130])


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(N_CLUSTERS, random_state=0),
        PowerKMeans(N_CLUSTERS, divergence="cosine", random_state=0),
        KMeans(N_CLUSTERS, init="random", n_init=2, random_state=0),
        KHarmonicMeans(N_CLUSTERS, random_state=0),
        FuzzyCMeans(N_CLUSTERS, random_state=0),
    ],
    ids=repr,
)
def test_estimators_of_sums_give_the_same_bits_from_chunks_of_any_size(blobs, model, is_weighted):
    points, weights = blobs[0], blobs[1] if is_weighted else np.ones(N_ROWS)

    def chunks(n_rows):
        starts = range(0, N_ROWS, n_rows)
        return [(points[i : i + n_rows], weights[i : i + n_rows]) for i in starts]

    expected = model.fit(open_data(points, weights=weights, rows_per_part=700))
    centers, inertia = expected.cluster_centers_, expected.inertia_
    for n_rows in (N_ROWS, 333):
        found = model.fit(open_data(chunks(n_rows), rows_per_part=700))
        np.testing.assert_array_equal(found.cluster_centers_, centers)
        assert found.inertia_ == inertia
    whole = model.fit(open_data(points, weights=weights, rows_per_part=N_ROWS))
    np.testing.assert_allclose(whole.cluster_centers_, centers, rtol=1e-9)
    assert whole.inertia_ == pytest.approx(inertia, rel=1e-9)


def test_a_fit_in_parts_is_that_of_one_array(blobs):
    points, weights = blobs
    params = {"init": points[:5], "random_state": 0}
    whole = PowerKMeans(N_CLUSTERS, **params).fit(points, sample_weight=weights)
    data = open_data(points, weights=weights, rows_per_part=300)
    parted = PowerKMeans(N_CLUSTERS, **params).fit(data)
    np.testing.assert_allclose(parted.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    assert parted.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)
    assert parted.critical_power_ == pytest.approx(whole.critical_power_, rel=1e-9)


def test_sparse_chunks_and_missing_entries_fit_too(blobs):
    points = np.where(blobs[0] > 0, blobs[0], 0)
    csr = sparse.csr_array(points)
    chunks = [csr[i : i + 333] for i in range(0, N_ROWS, 333)]
    found = kmeans(points[:5]).fit(open_data(chunks, rows_per_part=400))
    np.testing.assert_allclose(
        found.cluster_centers_, kmeans(points[:5]).fit(csr).cluster_centers_, rtol=1e-9
    )
    gaps = blobs[0].copy()
    gaps[::7, 1] = np.nan
    found = kmeans(points[:5], missing="observed").fit(open_data(gaps, rows_per_part=400))
    whole = kmeans(points[:5], missing="observed").fit(gaps)
    np.testing.assert_allclose(found.cluster_centers_, whole.cluster_centers_, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hdf5_files_are_read_by_rows(tmp_path, blobs, dtype):
    h5py = pytest.importorskip("h5py", reason="h5py reads HDF5, and is not installed")
    points = blobs[0].astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("group/points", data=points, chunks=(100, 2))
        file.create_dataset("others", data=points[:5])
    with pytest.raises(TableError, match="choose with array="):
        open_data(tmp_path / "a.h5")
    data = open_data(tmp_path / "a.h5", array="group/points", rows_per_part=400)
    read, _ = everything(data)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, points)


@pytest.mark.parametrize(
    ("file", "option"), [("a.parquet", "delimiter"), ("a.npy", "array"), ("a.csv", "array")]
)
def test_an_option_of_another_format_is_refused(tmp_path, blobs, file, option):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    np.save(tmp_path / "a.npy", blobs[0])
    np.savetxt(tmp_path / "a.csv", blobs[0], delimiter=",")
    with pytest.raises(
        TableError, match=f"^{option}='x' is no option of .*{file} is: leave it out"
    ):
        open_data(tmp_path / file, **{option: "x"})


def test_named_fields_of_an_array_are_columns(tmp_path, blobs):
    fields = np.rec.fromarrays(blobs[0].T, names=["größe", "width", "depth"])
    np.save(tmp_path / "a.npy", np.asarray(fields))
    data = open_data(tmp_path / "a.npy", columns=["depth", "größe"], rows_per_part=400)
    np.testing.assert_array_equal(everything(data)[0], blobs[0][:, [2, 0]])


def test_damaged_hdf5_files_are_said_to_be_so(tmp_path, blobs):
    h5py = pytest.importorskip("h5py", reason="h5py reads HDF5, and is not installed")
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("points", data=blobs[0], chunks=(100, 3), compression="gzip")
        file["nothing"] = h5py.Empty("f8")
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(TableError, match=r"a\.hdf5 is a damaged HDF5 file: .*truncated"):
        open_data(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(3000) + whole[middle + 3000 :])
    with pytest.raises(TableError, match=r"a\.hdf5 is a damaged HDF5 file: "):
        kmeans("random").fit(tmp_path)
    with h5py.File(path, "w"):
        pass
    with pytest.raises(TableError, match="has no arrays"):
        open_data(path)


def test_damaged_and_changed_zarr_arrays_are_said_to_be_so(tmp_path, blobs):
    zarr = pytest.importorskip("zarr", reason="zarr reads Zarr, and is not installed")
    path = tmp_path / "a.zarr"
    stored = zarr.open(path, mode="w", shape=blobs[0].shape, chunks=(99, 3), dtype="f8")
    stored[:] = blobs[0]
    chunk = next(file for file in sorted(path.rglob("*")) if file.is_file() and file.parent != path)

    def lose_a_chunk(state):
        if state.sweep == 2:
            chunk.unlink()  # which Zarr would take for zeros

    model = PowerKMeans(N_CLUSTERS, effort="none", random_state=0, callback=lose_a_chunk)
    contents = chunk.read_bytes()
    with pytest.raises(SourceError, match="has changed since"):
        model.fit(open_data(path, rows_per_part=400))
    chunk.write_bytes(contents[:50])
    with pytest.raises(TableError, match=r"a\.zarr is a damaged Zarr file"):
        kmeans("random").fit(path)
    for file in path.glob("*zar*"):
        file.write_text("{")
    with pytest.raises(TableError, match=r"a\.zarr is a damaged Zarr file"):
        open_data(path)


def test_zarr_arrays_are_read_by_rows(tmp_path, blobs):
    zarr = pytest.importorskip("zarr", reason="zarr reads Zarr, and is not installed")
    stored = zarr.open(
        tmp_path / "a.zarr", mode="w", shape=blobs[0].shape, chunks=(99, 3), dtype="f8"
    )
    stored[:] = blobs[0]
    data = open_data(tmp_path / "a.zarr", rows_per_part=400)
    np.testing.assert_array_equal(everything(data)[0], blobs[0])
    fitted = kmeans(blobs[0][:5]).fit(data)
    assert same_fit(fitted, kmeans(blobs[0][:5]).fit(open_data(blobs[0], rows_per_part=400)))


# Columns and scaling.


def test_columns_are_chosen_by_name_and_number(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", *blobs)
    data = open_data(tmp_path / "a.parquet", columns=["depth", "2"], weights="weight")
    assert data.feature_names == ("depth", "height")
    np.testing.assert_array_equal(everything(data)[0], blobs[0][:, [2, 0]])
    model = KMeans(2, random_state=0).fit(data)
    assert list(model.feature_names_in_) == ["depth", "height"]
    with pytest.raises(TableError, match='did you mean "height"'):
        open_data(tmp_path / "a.parquet", columns=["heihgt"])


@pytest.mark.parametrize(
    ("scale", "theirs"), [("standard", StandardScaler), ("minmax", MinMaxScaler)]
)
def test_scaling_is_that_of_scikit_learn(tmp_path, blobs, scale, theirs):
    points, weights = blobs[0] + 1e4, blobs[1]
    points[:, 1] = 7.0
    write_parquet(tmp_path / "a.parquet", points, weights)
    data = open_data(tmp_path / "a.parquet", weights="weight", scale=scale, rows_per_part=400)
    scaler = theirs()
    scaler.fit(points, **({"sample_weight": weights} if scale == "standard" else {}))
    np.testing.assert_allclose(everything(data)[0], scaler.transform(points), rtol=1e-9, atol=1e-9)
    back = data.scaling.inverse_transform(data.scaling.transform(points))
    np.testing.assert_allclose(back, points, rtol=1e-12)


def test_new_rows_must_be_scaled_as_those_of_the_fit(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    write_parquet(tmp_path / "b.parquet", 2 * blobs[0])
    model = kmeans("k-means++", random_state=0)
    model.fit(open_data(tmp_path / "a.parquet", scale="standard"))
    with pytest.raises(ValueError, match=r"scale=model\.scaling_"):
        model.score(tmp_path / "b.parquet")
    same = model.score(open_data(tmp_path / "a.parquet", scale=model.scaling_))
    assert -same == pytest.approx(model.inertia_, rel=1e-12)
    save(model, tmp_path / "model.pmk")
    assert model.scaling_.equals(load(tmp_path / "model.pmk").scaling_)
    assert not Scaling(np.zeros(3), np.ones(3)).equals(model.scaling_)


def test_arrays_do_not_say_how_they_are_scaled(blobs):
    model = kmeans(blobs[0][:5]).fit(open_data(blobs[0], scale="standard"))
    for ask in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=r"open_data\(X, scale=model\.scaling_\)"):
            ask(blobs[0])
    same = KMeans.from_centers(model.cluster_centers_)
    expected = model.score(open_data(blobs[0], scale=model.scaling_))
    assert same.score(model.scaling_.transform(blobs[0])) == pytest.approx(expected, rel=1e-12)
    assert model.fit(blobs[0]).score(blobs[0]) == pytest.approx(-model.inertia_, rel=1e-12)


def test_a_fit_without_scaling_refuses_rows_opened_with_it(blobs):
    scaled = open_data(blobs[0], scale="standard")
    for X in (blobs[0], open_data(blobs[0])):
        model = kmeans(blobs[0][:5]).fit(X)
        with pytest.raises(ValueError, match="fitted without scaling"):
            model.score(scaled)
    points = scaled.scaling.transform(blobs[0])
    elsewhere = KMeans.from_centers(points[:5])
    assert elsewhere.score(scaled) == pytest.approx(elsewhere.score(points), rel=1e-12)


def test_whole_numbers_are_scaled_to_floats():
    scaling = Scaling(np.array([1.0]), np.array([4.0]))
    whole = np.array([[2], [3]])
    np.testing.assert_array_equal(scaling.transform(whole), [[0.25], [0.5]])
    np.testing.assert_array_equal(scaling.inverse_transform(np.array([[1]])), [[5.0]])
    assert scaling.transform(whole).dtype == np.float64
    assert scaling.transform(whole.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="toarray"):
        scaling.transform(sparse.csr_array(whole))


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_scaling_is_the_same_bits_from_chunks_of_any_size(tmp_path, blobs, scale):
    points, weights = blobs
    write_parquet(tmp_path / "a.parquet", points, weights)
    opened = [open_data(tmp_path / "a.parquet", weights="weight", scale=scale, rows_per_part=700)]
    for n in (7, 333, N_ROWS):
        chunks = [(points[i : i + n], weights[i : i + n]) for i in range(0, N_ROWS, n)]
        opened.append(open_data(chunks, scale=scale, rows_per_part=700))
    expected = open_data(points, weights=weights, scale=scale, rows_per_part=700).scaling
    assert all(data.scaling.equals(expected) for data in opened)


def test_memory_limits_make_parts_smaller(blobs):
    points = blobs[0]
    assert open_data(points).rows_per_part == 2**24 // 24 // 256 * 256
    assert open_data(points, memory_limit="6 MiB").rows_per_part == 2**20 // 24 // 256 * 256
    assert open_data(points, memory_limit=1e6).rows_per_part < 10**6 / 24 / 6
    with pytest.raises(ValueError, match="leaves room for fewer than 256 rows"):
        open_data(points, memory_limit=1000)
    with pytest.raises(ValueError, match="is no size"):
        open_data(points, memory_limit="much")
    of_both = open_data(points, memory_limit="6 MiB", rows_per_part=2**20 // 24)
    assert of_both.rows_per_part == 2**20 // 24
    with pytest.raises(ValueError, match=f"at most {2**20 // 24} rows, or one of the two"):
        open_data(points, memory_limit="6 MiB", rows_per_part=2**20 // 24 + 1)


# After a fit.


def test_labels_of_a_file_go_to_a_file(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    model = kmeans(blobs[0][:5]).fit(open_data(tmp_path / "a.parquet", rows_per_part=400))
    whole = kmeans(blobs[0][:5]).fit(blobs[0])
    with pytest.raises(AttributeError, match="were read part by part"):
        _ = model.labels_
    assert not hasattr(model, "labels_")
    assert hasattr(whole, "labels_")
    with pytest.raises(ValueError, match="pass predict"):
        model.predict(tmp_path / "a.parquet")
    written = model.predict(tmp_path / "a.parquet", output=tmp_path / "labels.npy")
    labels = np.load(written)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, whole.labels_)
    assert -model.score(tmp_path / "a.parquet") == pytest.approx(whole.inertia_, rel=1e-9)
    for call in (model.fit_predict, model.transform, model.fit_transform):
        with pytest.raises(ValueError, match="read part by part"):
            call(tmp_path / "a.parquet")
    assert hasattr(model.fit(blobs[0]), "labels_")
    assert not hasattr(model, "scaling_")


def test_a_full_disk_leaves_nothing_half_written(tmp_path, blobs, monkeypatch):
    model = kmeans(blobs[0][:5]).fit(open_data(blobs[0], rows_per_part=400))
    target = tmp_path / "labels.npy"
    target.write_bytes(b"as before")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"the labels were not written: .*labels\.npy"):
        model.predict(open_data(blobs[0]), output=target)
    assert [file.name for file in tmp_path.iterdir()] == ["labels.npy"]
    assert target.read_bytes() == b"as before"


def test_an_error_while_predicting_leaves_nothing_half_written(tmp_path, blobs):
    model = kmeans(blobs[0][:5]).fit(open_data(blobs[0], rows_per_part=400))
    bad = [blobs[0][:1000], np.full((10, 3), np.inf)]
    with pytest.raises(ValueError, match="chunk 1 contains infinity"):
        model.predict(open_data(bad, rows_per_part=100), output=tmp_path / "labels.npy")
    assert not list(tmp_path.iterdir())


# What cannot be clustered.


def test_the_place_of_a_fault_is_named(tmp_path, blobs):
    chunks = [blobs[0][:3]] * 800
    chunks[731] = np.array([[0.0, 1.0, 2.0], [3.0, np.nan, 4.0]])
    with pytest.raises(ValueError, match=r"chunk 731 contains NaN.*row 1, column 1"):
        kmeans("random").fit(open_data(chunks))
    points = blobs[0].copy()
    points[1701, 2] = np.inf
    write_folder(tmp_path / "rows", points)
    # The parts have 834, 833 and 833 rows, and rows of files count from one.
    place = r"part-2\.parquet contains infinity.*row 35, column 2 \('depth'\)"
    with pytest.raises(ValueError, match=place):
        kmeans("random").fit(tmp_path / "rows")
    with pytest.raises(ValueError, match=r"chunk 0 contains -1\.0 at index 1"):
        kmeans("random").fit(open_data([(blobs[0][:3], np.array([1.0, -1.0, 1.0]))]))
    with pytest.raises(ValueError, match="Poisson is for"):
        PowerKMeans(2, divergence="poisson").fit(open_data([-blobs[0]]))


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([np.ones((3, 2)), np.ones((3, 3))], "chunk 1 has 3 columns and chunk 0 has 2"),
        ([np.ones((3, 2)), np.ones((3, 2), np.float32)], "chunk 1 has the dtype float32"),
        ([np.ones((3, 2)), sparse.csr_array(np.ones((3, 2)))], "chunk 1 differs from chunk 0"),
        ([np.ones((3, 2)), (np.ones((3, 2)), np.ones(3))], "chunk 1 differs from chunk 0"),
        ([(np.ones((3, 2)), np.ones(2))], "has 3 rows and weights of the shape"),
        ([np.ones(3)], "chunk 0 is of the dtype float64 and the shape"),
        ([np.array([["a"]])], "chunk 0 is of the dtype <U1"),
        ([], "there are no chunks"),
        ([np.empty((0, 2))], "has no rows"),
    ],
)
def test_chunks_must_be_of_one_kind(chunks, message):
    with pytest.raises(SourceError, match=message):
        KMeans(1).fit(open_data(chunks))


def test_a_generator_is_refused_and_its_function_is_not(blobs):
    def halves():
        yield blobs[0][:1000]
        yield blobs[0][1000:]

    with pytest.raises(SourceError, match=r"can be iterated only once.*without calling it"):
        open_data(halves())
    found = kmeans(blobs[0][:5]).fit(open_data(halves, rows_per_part=400))
    assert same_fit(found, kmeans(blobs[0][:5]).fit(open_data(blobs[0], rows_per_part=400)))


def test_chunks_that_are_others_the_next_time_are_found(blobs):
    passes = []

    def shrinking():
        passes.append(0)
        yield blobs[0][: 2000 - 100 * len(passes)]

    with pytest.raises(SourceError, match="must be the same in every pass"):
        kmeans(blobs[0][:5]).fit(open_data(shrinking, rows_per_part=300))


def test_chunks_that_grow_are_found(blobs):
    passes = []

    def growing():
        passes.append(0)
        yield blobs[0][: 300 + 300 * len(passes)]

    for seeds in ("k-means++", blobs[0][:5]):
        passes.clear()
        with pytest.raises(SourceError, match="must be the same in every pass"):
            kmeans(seeds, random_state=0).fit(open_data(growing, rows_per_part=200))


def test_some_parts_must_be_as_long_as_before(blobs):
    chunks = [blobs[0][:500]]
    partition = open_data(chunks, rows_per_part=300).partition()
    assert [len(points) for points, _ in partition.read()] == [300, 200]
    chunks.append(blobs[0][500:550])
    with pytest.raises(SourceError, match="must be the same in every pass"):
        list(partition.read([1]))


@pytest.mark.parametrize("name", ["labels.npy", "deep/labels.npy", "../rows/labels.txt"])
def test_labels_are_not_written_into_a_folder_that_is_read(tmp_path, blobs, name):
    write_folder(tmp_path / "rows", blobs[0])
    (tmp_path / "rows" / "deep").mkdir()
    model = kmeans(blobs[0][:5]).fit(tmp_path / "rows")
    for X in (tmp_path / "rows", [os.fspath(tmp_path / "rows")]):
        with pytest.raises(ValueError, match="or in a folder that is read"):
            model.predict(X, output=tmp_path / "rows" / name)
    assert open_data(tmp_path / "rows").n_rows == N_ROWS
    # What is passed over may be there, and so may what is beside the files that are read.
    model.predict(tmp_path / "rows", output=tmp_path / "rows" / "_labels.npy")
    model.predict([tmp_path / "rows" / "part-0.parquet"], output=tmp_path / "rows" / "labels.npy")


def test_labels_are_not_written_over_a_file_without_rows(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    write_parquet(tmp_path / "b.parquet", blobs[0][:0])
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(ValueError, match="is a file that X is read from"):
        kmeans(blobs[0][:5]).fit(paths).predict(paths, output=paths[1])


def test_labels_are_not_written_over_the_rows(tmp_path, blobs):
    path = tmp_path / "p.npy"
    np.save(path, blobs[0])
    model = kmeans(blobs[0][:5]).fit(path)
    for X in (path, open_data([path])):
        with pytest.raises(ValueError, match="is a file that X is read from"):
            model.predict(X, output=tmp_path / "." / "p.npy")
    np.testing.assert_array_equal(np.load(path), blobs[0])


def test_a_folder_is_not_read_in_part(tmp_path, blobs):
    write_folder(tmp_path / "rows", blobs[0])
    (tmp_path / "rows" / ".part.crc").touch()
    assert open_data(tmp_path / "rows").n_rows == N_ROWS
    (tmp_path / "rows" / "part-3.csv.gz").touch()
    with pytest.raises(SourceError, match=r"end in none of.*part-3\.csv\.gz"):
        open_data(tmp_path / "rows")


@pytest.mark.parametrize("kind", ["csv", "stream", "arrow", "parquet"])
def test_what_cannot_be_skipped_is_read_once(tmp_path, blobs, kind, monkeypatch):
    WRITERS[kind](tmp_path / "rows", blobs[0])
    source = open_data(tmp_path / "rows", rows_per_part=100).source
    starts, blocks = [], source.blocks
    monkeypatch.setattr(source, "blocks", lambda *how: starts.append(how) or blocks(*how))
    data = PartedData(source, 100)
    for number, (part, _) in zip((2, 5, 20), data.partition().read([2, 5, 20]), strict=True):
        np.testing.assert_array_equal(part, blobs[0][number * 100 : (number + 1) * 100])
    assert len(starts) == (3 if kind == "parquet" else 1)


def change_length(path):
    write_parquet(path, np.ones((9, 3)))


def touch(path):
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize(
    ("happens", "message"),
    [(touch, "has changed since"), (change_length, "has changed since"), (Path.unlink, "is gone")],
    ids=["touched", "rewritten", "removed"],
)
def test_a_file_must_stay_as_it_is(tmp_path, blobs, happens, message):
    path = tmp_path / "a.parquet"
    write_parquet(path, blobs[0])

    def after_two_sweeps(state):
        if state.sweep == 2:
            happens(path)

    model = PowerKMeans(N_CLUSTERS, effort="none", random_state=0, callback=after_two_sweeps)
    with pytest.raises(SourceError, match=message):
        model.fit(open_data(path, rows_per_part=400))


def test_a_packed_feather_file_is_not_kept_in_memory(tmp_path) -> None:
    file, before = tmp_path / "points.feather", pa.total_allocated_bytes()
    feather.write_feather(pa.table({"x": np.arange(2.0**19)}), os.fspath(file), compression="lz4")
    data = open_data(file)
    assert data.n_rows == 2**19
    assert pa.total_allocated_bytes() - before < 2**20  # of 4 MiB


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_a_truncated_file_is_said_to_be_damaged(tmp_path, blobs, kind):
    path = tmp_path / "rows"
    WRITERS[kind](path, blobs[0])
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(TableError, match="rows is a damaged"):
        kmeans("random").fit(path)


def test_a_truncated_array_is_found_when_it_is_opened(tmp_path, blobs):
    np.save(tmp_path / "a.npy", blobs[0])
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    with pytest.raises(TableError, match="ends after"):
        open_data(tmp_path / "a.npy")


def test_files_of_a_folder_must_be_alike(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    write_parquet(tmp_path / "b.parquet", blobs[0].astype(np.float32))
    with pytest.raises(SourceError, match=r"holds float32 where .* holds float64"):
        open_data(tmp_path)
    assert open_data(tmp_path, dtype="float64").dtype == np.float64
    parquet.write_table(table_of(blobs[0]).drop_columns("depth"), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="same columns in the same order"):
        open_data(tmp_path)


def write_npy(path, points):
    np.save(path, points)


def write_csv(path, points):
    csv.write_csv(pa.table({f"f{f}": column for f, column in enumerate(points.T)}), path)


def write_unnamed_parquet(path, points):
    parquet.write_table(pa.table({f"f{f}": column for f, column in enumerate(points.T)}), path)


PLAIN_WRITERS = {"npy": write_npy, "csv": write_csv, "parquet": write_unnamed_parquet}


@pytest.mark.parametrize("kind", PLAIN_WRITERS)
def test_no_file_has_more_columns_than_the_first(tmp_path, blobs, kind):
    narrow, wide = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    PLAIN_WRITERS[kind](narrow, blobs[0][:, :2])
    PLAIN_WRITERS[kind](wide, blobs[0])
    for paths in ([narrow, wide], [wide, narrow]):
        with pytest.raises(SourceError, match="same columns in the same order"):
            open_data(paths)
    # What was asked for is there.
    assert open_data([narrow, wide], columns=["1", "2"]).n_rows in (None, 2 * N_ROWS)


def test_an_index_that_only_some_files_have_is_no_column(tmp_path, blobs):
    pandas = pytest.importorskip("pandas", reason="pandas writes an index, and is not installed")
    frame = pandas.DataFrame(blobs[0], columns=NAMES)
    frame.to_parquet(tmp_path / "a.parquet")
    frame[frame["height"] > 0].to_parquet(tmp_path / "b.parquet")
    assert pa.parquet.read_schema(tmp_path / "b.parquet").names == [*NAMES, "__index_level_0__"]
    data = open_data(tmp_path)
    assert data.feature_names == tuple(NAMES)
    assert data.n_rows > N_ROWS


EMPTY = {
    "parquet": lambda path: write_unnamed_parquet(path, np.empty((0, 3))),
    "csv": lambda path: path.write_text("f0,f1,f2\n"),
    "blank csv": lambda path: path.write_text(""),
    "npy": lambda path: np.save(path, np.empty((0, 3))),
    "npz": lambda path: np.savez(path, points=np.empty((0, 3))),
}


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("place", ["a", "c"], ids=["first", "last"])
def test_files_without_rows_are_passed_over(tmp_path, blobs, kind, place):
    """As Spark and Dask write them for partitions that are empty."""
    ending = kind.split()[-1]
    if ending == "npz":
        np.savez(tmp_path / "b.npz", points=blobs[0])
    else:
        PLAIN_WRITERS[ending](tmp_path / f"b.{ending}", blobs[0])
    EMPTY[kind](tmp_path / f"{place}.{ending}")
    data = open_data(tmp_path, rows_per_part=400)
    np.testing.assert_array_equal(everything(data)[0], blobs[0])
    assert same_fit(
        kmeans(blobs[0][:5]).fit(data),
        kmeans(blobs[0][:5]).fit(open_data(blobs[0], rows_per_part=400)),
    )
    (tmp_path / f"b.{ending}").unlink()
    with pytest.raises(TableError, match=rf"{place}\.{ending}.* (no rows|empty|\(0, 3\))"):
        open_data(tmp_path)


def test_a_file_of_nothing_that_is_no_text_is_damaged(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    (tmp_path / "b.parquet").touch()
    with pytest.raises(TableError, match=r"b\.parquet is empty"):
        open_data(tmp_path)


def test_columns_may_be_numbers(tmp_path, blobs):
    write_parquet(tmp_path / "a.parquet", blobs[0])
    assert open_data(tmp_path, columns=[3, np.int64(1)]).feature_names == ("depth", "height")
    for unknown in (0, 4, -1, 1.5, True):
        with pytest.raises(TableError, match=rf"no column {unknown}: .*from 1 to 3"):
            open_data(tmp_path, columns=[unknown])
    with pytest.raises(TableError, match=r"columns='height' is one name: pass a list"):
        open_data(tmp_path, columns="height")


@pytest.mark.parametrize("dtype", ["foo", "int32", object(), 3])
def test_a_dtype_that_is_none_is_named(blobs, dtype):
    with pytest.raises(ValueError, match='is not for points: pass "float32" or "float64"'):
        open_data(blobs[0], dtype=dtype)


def test_errors_name_arguments_and_not_options(tmp_path):
    for name, text, options in [
        ("text", "x,kind\n1,red\n", {"columns": ["kind"]}),
        ("late", "x,y\n" + "1,2\n" * 300 + "1,abc\n", {}),
        ("ragged", "x,y\n1,2\n3\n4,5\n", {}),
        ("commas", "x|y\n1,234|2\n", {"delimiter": "|"}),
        ("huge", "n,x\n7,1\n12345678901234567,2\n", {}),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=r"columns=|delimiter=|decimal=") as caught:
            kmeans("random").fit(open_data(tmp_path / name, **options))
        assert "--" not in str(caught.value)


def test_what_is_no_source_is_named(tmp_path, blobs):
    (tmp_path / "points.csv").touch()
    with pytest.raises(SourceError, match="does not exist: did you mean"):
        open_data(tmp_path / "pints.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="has no files that end in"):
        open_data(tmp_path / "empty")
    with pytest.raises(SourceError, match='a path is "": pass the name of a file'):
        KMeans(2).fit("")
    with pytest.raises(SourceError, match="source is a int"):
        open_data(3)
    with pytest.raises(ValueError, match="columns is for files"):
        open_data(blobs[0], columns=["a"])
    with pytest.raises(ValueError, match="pass its name"):
        open_data([tmp_path / "points.csv"], weights=np.ones(3))


def test_more_clusters_than_rows_in_all_is_an_error_and_in_a_part_is_not(blobs):
    points = blobs[0][:40]
    assert KMeans(20, random_state=0).fit(open_data(points, rows_per_part=3)).inertia_ > 0
    with pytest.raises(ValueError, match="n_samples=40 should be >= n_clusters=41"):
        KMeans(41).fit(open_data(points, rows_per_part=3))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (PowerKMeans(2, divergence="mahalanobis"), "learns its covariance"),
        (PowerKMeans(2, divergence="manhattan"), "has medians for centers"),
        (RobustPowerKMeans(2), "which points are left out"),
        (KMeans(2, init=lambda X, k, random_state: X[:k]), "init is a function of all points"),
    ],
    ids=["mahalanobis", "manhattan", "robust", "callable init"],
)
def test_what_needs_more_than_sums_says_so(blobs, model, reason):
    with pytest.raises(ValueError, match=reason):
        model.fit(open_data(blobs[0]))


@pytest.mark.parametrize("rows", ["points.parquet", [np.ones((2, 1)), np.ones((3, 1))]])
@pytest.mark.parametrize(
    "use",
    [
        KernelPowerKMeans(2).fit,
        SpectralClustering(2).fit,
        critical_power,
        functools.partial(kmeans_plusplus, n_clusters=2),
        functools.partial(moment_estimates, n_clusters=2),
        functools.partial(DPMeans.penalty_for, n_clusters=2),
    ],
)
def test_what_takes_only_arrays_refuses_rows_in_parts(use, rows):
    with pytest.raises(NotInPartsError, match=r"X is read part by part, but .* all points at once"):
        use(rows)


def test_a_function_that_returns_labels_refuses_rows_in_parts_before_a_fit():
    with pytest.raises(ValueError, match=r"call KMeans\(n_clusters\).fit"):
        k_means(["does not exist.npy"], 2)


def test_messages_about_a_stream_name_no_temporary_file() -> None:
    table = _table()
    reader = _reader_of(table)
    reader.read_all()
    with pytest.raises(TableError, match=r"^the RecordBatchReader has columns and no rows"):
        open_data(reader)
    holed = table.set_column(0, "age", [[None, *range(499)]])
    with pytest.raises(ValueError, match="Input the RecordBatchReader contains NaN"):
        KMeans(2).fit(_reader_of(holed))


def test_sample_weights_are_part_of_the_data(blobs):
    with pytest.raises(ValueError, match=r'weights="column"'):
        KMeans(2).fit(open_data(blobs[0]), sample_weight=blobs[1])


def test_paths_are_told_from_points():
    assert is_stream("a.csv")
    assert is_stream([Path("a"), "b"])
    assert not is_stream([])
    assert not is_stream([["a"]])
    assert not is_stream(np.ones((2, 2)))


def test_what_is_missing_is_refused_where_it_was_not_announced():
    points = np.array([[1.0, np.nan], [2.0, 1.0]])
    data = open_data([points])
    assert (
        len(list(data.partition(Needs(name="test", measure=Measure(has_missing=True))).read())) == 1
    )
    with pytest.raises(ValueError, match="contains NaN"):
        list(data.partition().read())


def test_empty_clusters_find_points_in_any_part(blobs):
    points = blobs[0]
    init = np.vstack([points[:3], points[:1] + 1e6, points[:1] + 2e6])
    whole = kmeans(init).fit(points)
    parted = kmeans(init).fit(open_data(points, rows_per_part=300))
    assert parted.n_relocated_ == whole.n_relocated_ > 0
    np.testing.assert_allclose(parted.cluster_centers_, whole.cluster_centers_, rtol=1e-9)


def test_memory_is_used_again_once_nobody_looks_at_it():
    buffers, dtype = Buffers(), np.dtype(np.float64)
    first = buffers.array(8, dtype)
    first[:] = 1.0
    address, view = first.ctypes.data, first.reshape(4, 2)[1:3]
    del first
    second = buffers.array(8, dtype)
    second[:] = 2.0
    assert second.ctypes.data != address
    assert (view == 1.0).all()
    del view
    assert buffers.array(4, dtype).ctypes.data == address
    assert buffers.array(99, dtype).shape == (99,)


def test_rows_hold_the_memory_that_they_look_at():
    buffers, rng = Buffers(), np.random.default_rng(0)
    points = rng.normal(size=(40, 3))
    found = buffers.array(points.size, points.dtype).reshape(points.shape)
    found[:] = points
    rows, centers = PartOpener().open(found), points[:2]
    expected = PartOpener().open(points).sweep(centers, Hard()).points
    del found
    buffers.array(points.size, points.dtype)[:] = 0.0
    assert np.array_equal(rows.sweep(centers, Hard()).points, expected)


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_that_are_known_give_the_same_bits(tmp_path, dtype, divergence):
    points = np.random.default_rng(0).normal(size=(5000, 20)).astype(dtype) + 3
    np.save(tmp_path / "points.npy", points)
    opener = PartOpener(resolve(divergence))
    partition = open_data(tmp_path / "points.npy", rows_per_part=2048).partition()
    rows = PartedRows(ReadingExecutor(partition, opener, n_threads=1))
    centers = points[:7].astype(np.float64)
    sweeps = [rows.sweep(centers, Hard()) for _ in range(2)]
    # The last part is short, and not worth remembering.
    assert list(rows.executor._known) == [0, 1]
    one, other = (
        opener.open(points, known=known, n_threads=1) for known in (None, opener.open(points).known)
    )
    assert np.array_equal(sweeps[0].points, sweeps[1].points)
    assert np.array_equal(one.sweep(centers, Hard()).points, other.sweep(centers, Hard()).points)
    assert np.array_equal(one.column_moments().squares, other.column_moments().squares)
    with pytest.raises(ValueError, match="moments of points with other features"):
        opener.open(points[:, :5].copy(), known=one.known)


def test_the_decimal_mark_of_text_may_be_given(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("a;b\n1.500;2.250\n3.500;4.125\n")
    told = open_data(file, decimal=".")
    assert everything(told)[0].tolist() == [[1.5, 2.25], [3.5, 4.125]]
    commas = tmp_path / "commas.csv"
    commas.write_text("a;b\n1,5;2,25\n3,5;4,125\n")
    assert everything(open_data(commas, decimal=","))[0].tolist() == [[1.5, 2.25], [3.5, 4.125]]
    with pytest.raises(ValueError, match="decimal is for files"):
        open_data(np.ones((2, 2)), decimal=",")


def _table() -> Any:
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    return pa.table({"age": rng.normal(size=500), "income": rng.normal(size=500), "n": [2.0] * 500})


def _reader_of(table: Any) -> Any:
    return table.to_reader(max_chunksize=77)


def _query_of(table: Any) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


def _lazy_frame_of(table: Any) -> Any:
    return pytest.importorskip("polars").from_arrow(table).lazy()


@pytest.mark.parametrize("stream_of", [_reader_of, _query_of, _lazy_frame_of])
def test_a_stream_of_arrow_batches_is_read_once_and_gives_the_same_fit(stream_of) -> None:
    table = _table()
    points = np.column_stack([table["age"], table["income"], table["n"]])
    expected = KMeans(3, random_state=0).fit(open_data(points, rows_per_part=100))
    opened = open_data(stream_of(table), rows_per_part=100)
    model = KMeans(3, random_state=0).fit(opened)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert model.feature_names_in_.tolist() == ["age", "income", "n"]
    assert model.score(stream_of(table)) == pytest.approx(-model.inertia_)
    assert opened.fingerprint() == open_data(stream_of(table), rows_per_part=100).fingerprint()
    (spool,) = opened.source.paths
    assert spool.is_file()
    del opened
    assert not spool.exists()


def test_a_stream_of_arrow_batches_is_learned_part_by_part() -> None:
    model = MiniBatchPowerKMeans(2, random_state=0).partial_fit(_reader_of(_table()))
    points = np.column_stack([_table()[name] for name in ("age", "income", "n")])
    expected = MiniBatchPowerKMeans(2, random_state=0).partial_fit(open_data(points))
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


def test_columns_and_weights_of_a_stream_are_chosen_by_name() -> None:
    opened = open_data(_reader_of(_table()), columns=["income", "age"], weights="n")
    assert opened.feature_names == ("income", "age")
    assert KMeans(2, random_state=0).fit(opened).inertia_ > 0
    with pytest.raises(ValueError, match="weights of files are one of their columns"):
        open_data(_reader_of(_table()), weights=np.ones(500))


def test_tables_in_memory_are_no_streams() -> None:
    table = _table()
    assert not is_stream(table)
    assert not is_stream(table.to_pandas())
    assert KMeans(2, random_state=0).fit(table).labels_.shape == (500,)


@pytest.mark.parametrize(
    ("data", "is_read_in_parts"),
    [
        (np.ones((3, 2)), False),
        ([[1.0, 2.0], [3.0, 4.0]], False),
        (sparse.csr_array(np.eye(3)), False),
        ("points.npy", True),
        (["one.npy", "two.npy"], True),
        ([np.ones((2, 1)), np.ones((3, 1))], True),
        (lambda: iter([np.ones((2, 1))]), True),
        (open_data(np.ones((3, 2))), True),
        ({"a": [1.0]}, False),  # which scikit-learn refuses
    ],
    ids=["array", "list", "CSR", "path", "paths", "chunks", "function", "open", "dict"],
)
def test_streams_are_known_before_they_are_opened(data: Any, is_read_in_parts: bool) -> None:
    assert is_stream(data) == is_read_in_parts
