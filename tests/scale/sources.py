"""Every way in which rows may come that are worked on part by part. A new one is one line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from powermeans import Prepare, open_data

N_ROWS, ROWS_PER_PART = 1000, 300
NAMES = ["height", "width", "depth"]


def blobs(seed=0):
    """Points around five centers, and weights."""
    rng = np.random.default_rng(seed)
    means = 5 * np.random.default_rng(99).normal(size=(5, 3))
    points = means[rng.integers(5, size=N_ROWS)] + rng.normal(size=(N_ROWS, 3))
    return points, rng.exponential(size=N_ROWS)


def assert_same_fit(one, other):
    assert one.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()
    assert one.inertia_ == other.inertia_


def table_of(points, weights=None):
    columns = dict(zip(NAMES, points.T, strict=True))
    return pa.table(columns if weights is None else {"weight": weights, **columns})


def frame_of(points, weights=None):
    return pd.DataFrame(points, columns=NAMES)


def matrix_of(points, weights=None):
    return points if weights is None else np.column_stack([points, weights]).astype(points.dtype)


def write_parquet(path, points, weights=None):
    parquet.write_table(table_of(points, weights), path, row_group_size=170)
    return path


def write_folder(path, points, weights=None):
    path.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(points)), 3)):
        of_part = None if weights is None else weights[rows]
        write_parquet(path / f"part-{number}.parquet", points[rows], of_part)
    (path / "_SUCCESS").touch()
    return path


def write_csv(path, points, weights=None):
    csv.write_csv(table_of(points, weights), path)
    return path


def write_npy(path, points, weights=None):
    np.save(path.with_suffix(".npy"), matrix_of(points, weights))
    return path.with_suffix(".npy")


def write_npz(path, points, weights=None):
    np.savez(path.with_suffix(".npz"), rows=matrix_of(points, weights), others=np.ones((2, 2)))
    return path.with_suffix(".npz")


def chunks_of(rows=lambda points: points):
    """A list of chunks of several lengths, with their weights if there are some."""

    def chunks(path, points, weights=None):
        parts = [rows(part) for part in np.split(points, [170, 171, 800])]
        if weights is None:
            return parts
        return list(zip(parts, np.split(weights, [170, 171, 800]), strict=True))

    return chunks


class Chunks:
    def __init__(self, path, points, weights=None):
        self.chunks = chunks_of()(path, points, weights)

    def __iter__(self):
        return iter(self.chunks)


def reader_of(path, points, weights=None):
    return table_of(points, weights).to_reader(max_chunksize=77)


def query_of(path, points, weights=None):
    import duckdb

    return duckdb.from_arrow(table_of(points, weights))


def lazy_frame_of(path, points, weights=None):
    import polars

    return polars.from_arrow(table_of(points, weights)).lazy()


def dask_array_of(path, points, weights=None):
    import dask.array

    return dask.array.from_array(points, chunks=(ROWS_PER_PART, 3))


def dask_frame_of(path, points, weights=None):
    import dask.dataframe

    frame = frame_of(points) if weights is None else frame_of(points).assign(weight=weights)
    return dask.dataframe.from_pandas(frame, chunksize=ROWS_PER_PART, sort=False)


@dataclass(frozen=True)
class Source:
    """A way in which rows come: what a user passes, and what is told of it."""

    make: Callable[..., Any]  # from a path, points, and weights or None
    weights: str = "weight"  # their column, "given" for an array, or "" where chunks have them
    options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = tuple(NAMES)  # of the columns
    place: str = "row 702"  # where row 701 of all, and 102 of its part, is said to be
    needs: str = ""  # a package that may be missing

    def given(self, folder, points, weights=None):
        for package in filter(None, self.needs.split()):
            pytest.importorskip(package, reason=f"{package} is not installed")
        return self.make(folder / "rows", points, weights)

    def open(self, folder, points, weights=None, **options):
        if weights is not None and self.weights:
            options["weights"] = weights if self.weights == "given" else self.weights
        if not self.is_on_dask:
            options.setdefault("rows_per_part", ROWS_PER_PART)
        return open_data(self.given(folder, points, weights), **{**self.options, **options})

    @property
    def is_file(self):
        return self.make.__name__.startswith("write")

    @property
    def is_table(self):
        return "prepare" in self.options

    @property
    def is_on_dask(self):
        return self.make.__name__.startswith("dask")

    @property
    def is_stream(self):
        return self.make.__name__ in ("query_of", "lazy_frame_of", "reader_of")


TABLE = {"options": {"prepare": Prepare(scale="none")}}
CHUNK = {"weights": "", "place": r"chunk 2 .*row 530", "names": ()}
MATRIX = {"weights": "4", "names": ()}
SOURCES = {
    "parquet": Source(write_parquet, **TABLE),
    "folder": Source(write_folder, place="row 35 of .*part-2", **TABLE),
    "csv": Source(write_csv, **TABLE),
    "npy": Source(write_npy, **MATRIX),
    "npz": Source(write_npz, options={"array": "rows"}, **MATRIX),
    "array": Source(lambda path, points, weights=None: points, "given", names=(), place="row 701"),
    "list": Source(chunks_of(), **CHUNK),
    "tuple": Source(lambda *given: tuple(chunks_of()(*given)), **CHUNK),
    "iterable": Source(Chunks, **CHUNK),
    "function": Source(lambda *given: Chunks(*given).__iter__, **CHUNK),
    "frames": Source(chunks_of(frame_of), **{**CHUNK, "names": tuple(NAMES)}),
    "reader": Source(reader_of),
    "query": Source(query_of, needs="duckdb"),
    "lazy frame": Source(lazy_frame_of, needs="polars"),
    "Dask array": Source(
        dask_array_of, "given", names=(), place="partition 2 .*row 101", needs="dask.array"
    ),
    "Dask frame": Source(dask_frame_of, place="partition 2 .*row 101", needs="dask.array"),
}
