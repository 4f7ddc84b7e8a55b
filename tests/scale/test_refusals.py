"""What cannot be opened, read or fitted part by part, and what its error names."""

import functools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scale.sources import NAMES, blobs, chunks_of, frame_of, table_of, write_parquet
from scipy import sparse

import powermeans
from powermeans import KMeans, MiniBatchPowerKMeans, PowerKMeans, choose_k, open_data
from powermeans.errors import NotInPartsError, TableError
from powermeans.methods import (
    DPMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    OnlineKMeans,
    SpectralClustering,
    moment_estimates,
)
from powermeans.scale.block import SourceError
from powermeans_tables.reading.files import open_table

POINTS, WEIGHTS = blobs()
CHUNKS = chunks_of()(None, POINTS)
DASK = da.from_array(POINTS, chunks=(300, 3))
FRAME = dd.from_pandas(frame_of(POINTS), npartitions=3)
TWO = np.ones((3, 2))
WORDS = table_of(POINTS).append_column("word", [["a"] * len(POINTS)])
TEXTS = {
    "points.csv": "x,y\n1,2\n3,4\n",
    "other_mark/a.csv": "x;n\n1,5;1\n",
    "other_mark/b.csv": "x;n\n1.5;1\n",
    "other_unit/a.csv": "x,y\nEUR 1,5%\nEUR 2,6%\n",
    "other_unit/b.csv": "x,y\n$1,5%\n$2,6%\n",
    "other_unit/c.csv": "x,y\n€1,5\n€2,6\n",
    "packed/part-0.csv": "x\n1\n",
    "packed/part-1.csv.gz": "",
    "empty/.part.crc": "",
    "blank/a.parquet": "",
}


def fit(X, k=2, **options):
    return KMeans(k, random_state=0, **options).fit(X)


def opened(X, **options):
    return fit(open_data(X, **options))


def drained():
    reader = table_of(POINTS).to_reader()
    reader.read_all()
    return reader


def failing():
    """A reader whose batches end in an error of its own."""
    table = table_of(POINTS)

    def batches():
        yield from table.to_batches()
        raise LookupError("the connection was lost")

    return type(table.to_reader()).from_batches(table.schema, batches())


def partitions(*blocks):
    """An array that believes all its blocks to be like the first one."""
    first = blocks[0]
    return da.concatenate(
        [da.from_delayed(dask.delayed(block), (np.nan, 2), first.dtype) for block in blocks],
        allow_unknown_chunksizes=True,
    )


NEGATIVE = np.where(np.arange(len(POINTS)) == 601, -1.0, 1.0)
F32, THREE = np.float32, np.ones((3, 3))
PLUS = pd.DataFrame(POINTS, columns=["a", "b", "c"])
# Each call, the type of its error, and what this names, one after the other.
FILES = [
    (lambda: open_data("pints.csv"), SourceError, "pints.csv .*points.csv"),
    (lambda: open_data("empty"), SourceError, "empty has no files"),
    (lambda: fit(""), SourceError, 'path is ""'),
    (lambda: open_data("blank"), TableError, "a.parquet is empty"),
    (lambda: open_data("packed"), TableError, r"part-1\.csv\.gz is empty"),
    (lambda: fit("other_mark"), TableError, r'b.csv has the decimal mark "\." .* has ","'),
    (lambda: fit("other_unit"), TableError, r'b.csv has "x" in \$ where .*a.csv .* in EUR'),
    (lambda: opened(["other_unit/a.csv", "other_unit/c.csv"], rows_per_part=3), TableError,
     'c.csv has "y" without a unit where .*a.csv has it in %'),
    (lambda: open_table("a.parquet", delimiter="x"), TableError, "^delimiter='x' .*a.parquet"),
    (lambda: open_data("a.h5"), TableError, "^a.h5 is HDF5, .* a function that yields blocks"),
    (lambda: fit(WORDS.to_reader()), TableError, 'Reader has .* "word": .*Prepare'),
    (lambda: open_data("a.npy", array="x"), TableError, "^array='x' .*a.npy"),
    (lambda: open_data("points.csv", array="x"), ValueError, r"open_table\(source, array"),
    (lambda: open_data("a.parquet", columns="height"), TableError, r"columns='height' .*\["),
    (lambda: open_data("a.parquet", columns=["heihgt"]), TableError, '"heihgt".* "height"'),
    *((lambda one=one: open_data("a.parquet", columns=[one]), TableError, f"column {one}: .*1 to 3")
      for one in (0, 4, -1, 1.5, True)),
    (lambda: open_data(["points.csv"], weights=np.ones(3)), ValueError, "weights.* pass its name"),
    (lambda: open_data("a.parquet", memory_limit="much"), ValueError, "much.* is no size"),
    *((lambda one=one: open_data(POINTS, dtype=one), ValueError, "float32.* or .*float64")
      for one in ("foo", "int32", object(), 3)),
    (lambda: open_data(3), SourceError, "source is a int"),
    (lambda: open_data(POINTS, columns=["a"]), ValueError, "columns is for files"),
    (lambda: open_data(drained()), TableError, "^the RecordBatchReader has columns and no rows"),
    (lambda: open_data(failing()), LookupError, "^the connection was lost"),
    (lambda: open_data(table_of(POINTS).to_reader(), weights=WEIGHTS), ValueError, "weights"),
    (lambda: opened(POINTS, memory_limit=1000), ValueError, "fewer than 256 rows"),
    *((lambda one=one: open_data(POINTS, checkpoint="x", checkpoint_seconds=one), ValueError,
       f"checkpoint_seconds={one!r} must be a number") for one in (-1, np.nan, "60", None, True)),
    # A checkpoint of a fit by chance would never be of the next one.
    *((lambda one=one: KMeans(2, random_state=one).fit(open_data(POINTS, checkpoint="x")),
       ValueError, "pass an int") for one in (None, np.random.RandomState(0))),
]  # fmt: skip
IN_CHUNKS = [
    (lambda: opened([TWO, THREE]), SourceError, "chunk 1 has 3 columns .*chunk 0 has 2"),
    (lambda: opened([TWO, TWO.astype(F32)]), SourceError, "chunk 1 has .* float32"),
    (lambda: opened([TWO, sparse.csr_array(TWO)]), SourceError, "1 has .* sparse .* dense"),
    (lambda: opened([TWO, (TWO, np.ones(3))]), SourceError, "with weights and chunk 0 .*without"),
    (lambda: opened([(TWO, np.ones(2))]), SourceError, "3 rows and weights of the shape"),
    (lambda: opened([(TWO, np.array([1, -1, 1.0]))]), ValueError, "chunk 0 .*-1.0 at index 1"),
    (lambda: opened([np.ones(3)]), SourceError, "chunk 0 is of the dtype float64 and the shape"),
    (lambda: opened([np.array([["a"]])]), SourceError, "chunk 0 is of the dtype <U1"),
    (lambda: opened([]), SourceError, "there are no chunks"),
    (lambda: opened([np.empty((0, 2))]), SourceError, "no rows"),
    (lambda: fit(lambda: 3), SourceError, "returns a value of type int"),
    (lambda: fit(lambda: POINTS), SourceError, r"chunk 0 .*float64 .*\(3,\)"),
    *((lambda once=once, use=use: use(once()), SourceError, "only once.*powermeans.open_data")
      for once in (lambda: (part for part in CHUNKS), lambda: iter(CHUNKS),
                   lambda: map(abs, CHUNKS))
      for use in (fit, lambda X: choose_k(X, [2, 3]))),
    *((lambda kind=kind: kind(2).partial_fit(iter(CHUNKS)), ValueError, "partial_fit, one by one")
      for kind in (OnlineKMeans, MiniBatchPowerKMeans)),
    (lambda: KMeans(2).fit(lambda: CHUNKS, sample_weight=WEIGHTS), ValueError, "chunks come with"),
    (lambda: KMeans(2).fit(open_data(CHUNKS), sample_weight=WEIGHTS), ValueError, 'weights="col'),
    (lambda: fit([PLUS, PLUS[["c", "a", "b"]]]), SourceError, "chunk 1 .*'c', 'a', 'b'.* chunk 0"),
    (lambda: fit([PLUS, PLUS[["a", "b"]]]), SourceError, r"chunk 1 .*\['a', 'b'\].* chunk 0 has"),
    (lambda: fit([PLUS, pd.DataFrame(POINTS)]), SourceError, r"chunk 1 .*\[0, 1, 2\].* chunk 0"),
    (lambda: fit([PLUS, POINTS]), SourceError, "chunk 1 has no names.* chunk 0 has .*'a', 'b'"),
    (lambda: FuzzyCMeans(2, random_state=0).fit(POINTS).memberships(CHUNKS), ValueError,
     "memberships returns an array"),
    (lambda: fit(open_data(POINTS[:40], rows_per_part=3), 41), ValueError, "=40 .*n_clusters=41"),
    (lambda: PowerKMeans(2, divergence="poisson").fit(open_data([-POINTS])), ValueError, "Poisson"),
]  # fmt: skip
# What needs more than sums, or all points at once.
ALL_AT_ONCE = [
    *((lambda model=model, X=X: model.fit(X), ValueError, reason)
      for X in (open_data(POINTS), DASK)
      for model, reason in (
          (PowerKMeans(2, divergence="mahalanobis"), "mahalanobis|learns its covariance"),
          (PowerKMeans(2, divergence="manhattan"), "manhattan|has medians"),
          (PowerKMeans(2, divergence="hellinger"), "hellinger|on one array in memory"),
          (powermeans.RobustPowerKMeans(2), "left out|Dask"),
          (KMeans(2, init=lambda X, k, random_state: X[:k]), "init is a function"))),
    *((lambda use=use, X=X: use(X), NotInPartsError, "^X is read part by part")
      for X in ("points.parquet", CHUNKS)
      for use in (
          KernelPowerKMeans(2).fit, SpectralClustering(2).fit,
          powermeans.critical_power, functools.partial(powermeans.kmeans_plusplus, n_clusters=2),
          functools.partial(moment_estimates, n_clusters=2),
          functools.partial(DPMeans.penalty_for, n_clusters=2))),
    *((lambda X=X: powermeans.report(fit(POINTS), X, "report"), ValueError, "pass some of the rows")
      for X in (DASK, "points.parquet")),
    (lambda: choose_k(open_data(POINTS), [2, 3], sample_weight=WEIGHTS), ValueError, "weights="),
    (lambda: choose_k(open_data(POINTS, checkpoint="x"), [2]), ValueError, "choose_k writes no ch"),
    *((lambda kind=kind, learn=learn: getattr(kind(2), learn)(open_data(POINTS, checkpoint="x")),
       ValueError, r"powermeans\.save")
      for kind in (OnlineKMeans, MiniBatchPowerKMeans) for learn in ("fit", "partial_fit")),
]  # fmt: skip
ON_DASK = [
    (lambda: open_data(DASK, memory_limit="1GB"), ValueError, "memory_limit='1GB'"),
    (lambda: open_data(DASK, rows_per_part=10), ValueError, r"rows_per_part=10 .*rechunk"),
    (lambda: open_data(DASK, array="a"), ValueError, "array='a'"),
    (lambda: open_data(DASK, columns=["a"]), ValueError, "Dask array has none with names"),
    (lambda: open_data(DASK, weights="w"), ValueError, "Dask array has none with names"),
    (lambda: open_data(open_data(DASK)), ValueError, "open already"),
    (lambda: open_data(FRAME, weights="wdth"), ValueError, '"wdth".* "width"'),
    (lambda: KMeans(2).fit(open_data(DASK), sample_weight=WEIGHTS), ValueError, "weights=sample_w"),
    (lambda: choose_k(open_data(DASK), [2], sample_weight=WEIGHTS), ValueError, "^sample_weight"),
    (lambda: fit(da.ones((9, 3), chunks=(9, (1, 2)))), ValueError, r"2 chunks.*X\.rechunk"),
    (lambda: fit(da.ones(9)), ValueError, "of 1 dimensions"),
    (lambda: fit(da.ones((9, 2, 2))), ValueError, "of 3 dimensions"),
    *((lambda method=method: getattr(KMeans(2), method)(dask.delayed(TWO)), TypeError, "Dask array")
      for method in ("fit", "fit_predict", "fit_transform")),
    (lambda: fit(partitions(TWO, np.ones((3, 4)))), ValueError, "ion 1 .* 4 columns .*ion 0"),
    (lambda: fit(partitions(TWO[:0], TWO, TWO.astype(F32))), ValueError, "ion 2 .* float32 .*n 1 "),
    (lambda: fit(partitions(TWO[:0], TWO[:0])), ValueError, "no rows"),
    (lambda: fit(partitions(TWO[:2], TWO[:2]), 5), ValueError, "=4 .*n_clusters=5"),
    (lambda: fit(partitions(np.full((2, 2), "a"))), ValueError, "partition 0"),
    (lambda: KMeans(2).fit(DASK, sample_weight=np.ones(7)), ValueError, r"\(7,\).* 1000 rows"),
    (lambda: KMeans(2).fit(DASK, sample_weight=da.ones((1000, 1))), ValueError, "2 dimensions"),
    (lambda: KMeans(2).fit(DASK, sample_weight=np.zeros(1000)), ValueError, "is zero"),
    (lambda: KMeans(2).fit(DASK, sample_weight=NEGATIVE), ValueError, "n 2 .*-1.0 at .* 1"),
    (lambda: KMeans(1).fit(partitions(TWO, TWO), sample_weight=np.ones(6)), ValueError,
     "compute_chunk_sizes"),
    (lambda: KMeans(1).fit(partitions(TWO, TWO), sample_weight=da.ones(6)), ValueError,
     "2 partitions .*sample_weight has 1"),
    (lambda: KMeans(1).fit(partitions(TWO, TWO), sample_weight=da.ones(6, chunks=((2, 4),))),
     ValueError, "partition 0 has 3 rows"),
    (lambda: KMeans.from_centers(TWO).predict(DASK), ValueError, "3 columns"),
    (lambda: fit(FRAME).predict(FRAME[NAMES[::-1]]), ValueError, "height"),
]  # fmt: skip
BY_ROOM = {"file": FILES, "chunks": IN_CHUNKS, "at once": ALL_AT_ONCE, "dask": ON_DASK}


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        pytest.param(*case, id=f"{room} {number}: {case[2]}")
        for room, cases in BY_ROOM.items()
        for number, case in enumerate(cases)
    ],
)
def test_what_is_wrong_is_named(call, kind, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    write_parquet(tmp_path / "a.parquet", POINTS)
    np.save("a.npy", POINTS)
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with dask.config.set(scheduler="threads"), pytest.raises(kind, match=named) as told:
        call()
    assert "--" not in str(told.value)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("model", "X", "weights", "named"),
    [
        (KMeans(3), POINTS[:60], np.full(60, 5e-324), "is at most 4.94e-324.* by 5e-324"),
        (KMeans(3), POINTS[:60] * 1e-20, np.full(60, 1e-290), "sample_weight adds up to 6e-289 "),
        (PowerKMeans(2, divergence="gamma"), np.full((7, 2), 1e-142), np.full(7, 1e-295),
         "sample_weight adds up to 7e-295 .* 1e-142.* by 7e-295"),
        (KMeans(3), POINTS[:60] * 1e-200, None, "squared distances would vanish"),
    ],
)  # fmt: skip
def test_what_would_lose_its_digits_is_refused_in_memory_and_in_parts(model, X, weights, named):
    with pytest.raises(ValueError, match=named):
        model.fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=named):
        model.fit(open_data(X, weights=weights, rows_per_part=3))
