"""Rows that come as chunks: what counts as such, and what is said where they are not the same."""

from __future__ import annotations

import copy
import pickle
from collections import deque

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from powermeans import FuzzyCMeans, KMeans, PowerKMeans, choose_k, open_data
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.streams import is_stream
from powermeans.scale.block import SourceError
from powermeans.scale.executors import PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedRows

NAMES = ["a", "b", "c"]
POINTS = np.random.default_rng(0).normal(size=(3000, 3))
SEEDS = POINTS[:4]


def thirds():
    return (POINTS[start : start + 1000] for start in (0, 1000, 2000))


class Thirds:
    def __iter__(self):
        return thirds()


def kmeans(**params):
    return KMeans(4, init=SEEDS, n_init=1, **params)


def expected():
    return kmeans().fit(open_data(POINTS))


def same_bits(one, other):
    return np.array_equal(one.cluster_centers_, other.cluster_centers_)


# What counts as chunks.

CHUNKS = {
    "function": thirds,
    "iterable": Thirds(),
    "list": list(thirds()),
    "tuple": tuple(thirds()),
    "pairs": [(points, np.ones(1000)) for points in thirds()],
    "frames": [pd.DataFrame(points) for points in thirds()],
}


@pytest.mark.parametrize("kind", CHUNKS)
def test_chunks_are_fitted_as_they_are(tmp_path, kind):
    chunks = CHUNKS[kind]
    model = kmeans().fit(chunks)
    assert np.array_equal(model.cluster_centers_, expected().cluster_centers_)
    assert not hasattr(model, "labels_")
    assert -model.score(chunks) == model.inertia_
    written = model.predict(chunks, output=tmp_path / "labels.npy")
    assert np.array_equal(np.load(written), kmeans().fit(POINTS).labels_)


def test_sparse_chunks_are_fitted_as_they_are():
    chunks = [sparse.csr_array(points) for points in thirds()]
    found = kmeans().fit(chunks).cluster_centers_
    np.testing.assert_allclose(found, expected().cluster_centers_, rtol=1e-9)


def test_chunks_have_their_k_chosen_as_they_are():
    params = {"criteria": ["bic"], "effort": "fast", "random_state": 0}
    of_chunks = choose_k(thirds, range(2, 4), **params)
    of_all = choose_k(open_data(POINTS), range(2, 4), **params)
    assert of_chunks.table["inertia"].tolist() == of_all.table["inertia"].tolist()


@pytest.mark.parametrize(
    "data",
    [
        POINTS,
        POINTS.tolist(),
        list(POINTS),
        tuple(POINTS),
        deque(POINTS),
        [(1.0, 2.0), (3.0, 4.0)],
        [(POINTS[0], POINTS[1])],
        [[[1.0]]],
        pd.DataFrame(POINTS),
        pd.Series([1.0]),
        pa.table({"a": [1.0]}),
        sparse.csr_array(POINTS),
        memoryview(POINTS),
        range(3),
        {1: 2},
        {1.0, 2.0},
        str,
        3,
        None,
        [],
        (),
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_scikit_learn_takes_or_refuses_is_left_to_it(data):
    assert not is_stream(data)


def test_lists_of_rows_are_points_as_ever():
    labels = kmeans().fit(POINTS).labels_
    for same in (POINTS.tolist(), list(POINTS), tuple(POINTS)):
        assert np.array_equal(kmeans().fit(same).labels_, labels)


@pytest.mark.parametrize("make", [thirds, lambda: iter(list(thirds())), lambda: map(abs, thirds())])
@pytest.mark.parametrize("fit", [kmeans().fit, lambda X: choose_k(X, range(2, 4))])
def test_what_can_be_iterated_once_is_told_what_could_be(make, fit):
    with pytest.raises(
        SourceError, match=r"only once.*__iter__ starts anew.*see powermeans\.open_data"
    ):
        fit(make())


def test_a_function_of_no_chunks_is_told_so():
    with pytest.raises(SourceError, match="returns a int and no chunks"):
        kmeans().fit(lambda: 3)
    with pytest.raises(SourceError, match=r"chunk 0 is of the dtype float64 and the shape \(3,\)"):
        kmeans().fit(lambda: POINTS)


def test_weights_of_chunks_come_with_them():
    with pytest.raises(ValueError, match="those of chunks come with them"):
        kmeans().fit(thirds, sample_weight=np.ones(3000))


@pytest.mark.parametrize("method", ["fit_predict", "fit_transform", "transform", "memberships"])
def test_what_has_a_row_for_each_point_names_itself_where_chunks_are_refused(method):
    model = FuzzyCMeans(2, random_state=0) if method == "memberships" else kmeans()
    model.fit(POINTS)
    with pytest.raises(ValueError, match=rf"^{method} returns an array") as told:
        getattr(model, method)([POINTS[:1000], POINTS[1000:]])
    assert "memory" not in str(told.value)


# A pass that gives other rows than the one before.


def test_a_function_must_make_a_new_iterator_each_time(tmp_path):
    model, rows = expected(), thirds()
    for ask in (
        lambda data: model.predict(data, output=tmp_path / "labels.npy"),
        model.score,
        kmeans().fit,
    ):
        with pytest.raises(SourceError, match="returns the same generator each time"):
            ask(open_data(lambda rows=rows: rows))
    assert not list(tmp_path.iterdir())


def test_a_map_must_be_a_new_one_too():
    rows = map(abs, thirds())
    with pytest.raises(SourceError, match="returns the same map each time"):
        kmeans().fit(open_data(lambda: rows))


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: map(abs, rows)])
def test_a_pass_that_ends_early_has_nothing_open(wrap):
    n_open = 0

    def chunks():
        nonlocal n_open
        n_open += 1
        try:
            yield from thirds()
        finally:
            n_open -= 1

    data = open_data(lambda: wrap(chunks()), rows_per_part=1000)
    data.fingerprint()
    assert n_open == 0
    partition = data.partition()
    partition.found()
    list(partition.read([0]))
    assert n_open == 0


def test_what_is_opened_has_no_pass_open():
    left = []

    def chunks():
        try:
            yield from thirds()
        finally:
            left.append(None)

    data = open_data(chunks)
    assert left == [None]
    data.fingerprint()
    assert left == [None, None]


def test_a_pass_must_begin_where_the_first_did(tmp_path):
    """A new wrapper each time, around the same iterator: its rows are there but once."""
    model, rows = expected(), iter(thirds())
    data = open_data(lambda: (points for points in rows))
    with pytest.raises(SourceError, match="begin with another row than the first time"):
        model.predict(data, output=tmp_path / "labels.npy")
    assert not list(tmp_path.iterdir())


def test_chunks_that_are_gone_are_missed(tmp_path):
    chunks = list(thirds())
    data = open_data(chunks, checkpoint=tmp_path / "state")
    chunks.clear()
    with pytest.raises(SourceError, match="must be the same in every pass"):
        kmeans(random_state=0).fit(data)


def test_what_is_opened_can_be_copied():
    data = open_data(thirds)
    for same in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        assert same_bits(kmeans().fit(same), kmeans().fit(data))


def test_chunks_may_be_cut_elsewhere_in_each_pass():
    n_passes = 0

    def chunks():
        nonlocal n_passes
        n_passes += 1
        yield POINTS[:0]
        yield from np.array_split(POINTS, n_passes)

    model = kmeans().fit(open_data(chunks, rows_per_part=500))
    same = kmeans().fit(open_data(POINTS, rows_per_part=500))
    assert n_passes > 3
    assert np.array_equal(model.cluster_centers_, same.cluster_centers_)


# Values that are no longer finite.


def going_bad(points, first_bad, value=np.nan, only_once=False):
    """Chunks, of which number 6 has a bad value from some pass on."""
    n_passes = 0

    def chunks():
        nonlocal n_passes
        n_passes += 1
        is_bad = n_passes == first_bad if only_once else n_passes >= first_bad
        for number, chunk in enumerate(np.array_split(points, 10)):
            if number == 6 and is_bad:
                chunk = chunk.copy()
                chunk[7, 1] = value
            yield chunk

    return chunks


MODELS = {
    "k-means": KMeans(4, n_init=1, random_state=0),
    "power": PowerKMeans(4, random_state=0),
    "cosine": PowerKMeans(4, divergence="cosine", random_state=0),
    "fuzzy": FuzzyCMeans(4, random_state=0),
}


@pytest.mark.parametrize("first_bad", [3, 4, 6, 9])
@pytest.mark.parametrize("kind", MODELS)
def test_a_value_that_is_no_longer_finite_is_found_and_named(kind, first_bad):
    data = open_data(going_bad(POINTS, first_bad), rows_per_part=700)
    place = r"chunk 6 contains NaN.*row 7, column 1.*the same in every pass"
    with pytest.raises(SourceError, match=place):
        MODELS[kind].fit(data)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("rule", [Hard(), Power(-3.0)], ids=["hard", "power"])
@pytest.mark.parametrize(("n_features", "n_centers"), [(3, 4), (40, 50)])
def test_sums_tell_of_a_value_that_is_not_finite(n_features, n_centers, rule, value):
    """Of wide rows and many centers the objective does not, only the sums of points do."""
    points = np.random.default_rng(1).normal(size=(1000, n_features))
    source = open_data(going_bad(points, 3, value, only_once=True), rows_per_part=300)
    rows = PartedRows(ReadingExecutor(source.partition(), PartOpener(), n_threads=1))
    assert rows.n_points == 1000
    # It is gone when it is looked for again, so that only the row is known, of all rows.
    place = r"X contains (NaN|infinity).*row 607, column 1.*in every pass"
    with pytest.raises(SourceError, match=place):
        rows.sweep(points[:n_centers], rule)
    rows.sweep(points[:n_centers], rule)


def test_weights_that_are_no_longer_finite_are_found():
    n_passes = 0

    def chunks():
        nonlocal n_passes
        n_passes += 1
        for number, points in enumerate(thirds()):
            weights = np.ones(1000)
            weights[5] = np.nan if number == 2 and n_passes > 4 else 1.0
            yield points, weights

    with pytest.raises(SourceError, match=r"weight of the rows in chunk 2 contains NaN at index 5"):
        kmeans().fit(open_data(chunks, rows_per_part=700))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_missing_entries_are_no_fault_and_infinite_ones_are():
    gaps = POINTS.copy()
    gaps[::5, 2] = np.nan
    model = PowerKMeans(4, missing="observed", random_state=0)
    assert np.isfinite(
        model.fit(open_data(lambda: [gaps], rows_per_part=700)).cluster_centers_
    ).all()
    for first_bad in (3, 5):
        with pytest.raises(SourceError, match=r"chunk 6 contains infinity.*row 7, column 1"):
            model.fit(open_data(going_bad(gaps, first_bad, np.inf), rows_per_part=700))


def test_rows_that_stay_fine_are_not_checked_twice(monkeypatch):
    partition = open_data(thirds, rows_per_part=700).partition()
    monkeypatch.setattr(partition, "recheck", lambda *part: pytest.fail("there is no need"))
    rows = PartedRows(ReadingExecutor(partition, PartOpener(), n_threads=1))
    rows.sweep(SEEDS, Hard())
    assert rows.nearness(SEEDS).farthest() >= 0
    assert rows.assignment(SEEDS).inertia > 0


# Tables as chunks.


def test_names_of_columns_are_those_of_the_chunks():
    frames = [pd.DataFrame(points, columns=NAMES) for points in thirds()]
    data = open_data(frames)
    assert data.feature_names == tuple(NAMES)
    model = kmeans().fit(data)
    assert list(model.feature_names_in_) == NAMES
    assert np.array_equal(model.predict(frames[0]), kmeans().fit(POINTS).labels_[:1000])
    with pytest.raises(ValueError, match=r"fitted with 3, \['a', 'b', 'c'\]"):
        model.score(open_data([frame[["c", "a", "b"]] for frame in frames]))
    frames[1].loc[7, "b"] = np.nan
    with pytest.raises(ValueError, match=r"chunk 1 contains NaN.*row 7, column 1 \('b'\)"):
        kmeans().fit(frames)


def test_names_of_arrow_tables_are_those_of_their_columns():
    tables = [pa.table(dict(zip(NAMES, points.T, strict=True))) for points in thirds()]
    assert open_data(tables).feature_names == tuple(NAMES)
    assert open_data(tables[0]).feature_names == tuple(NAMES)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (pd.DataFrame(POINTS, columns=["c", "a", "b"]), r"\['c', 'a', 'b'\]"),
        (pd.DataFrame(POINTS[:, :2], columns=["a", "b"]), r"\['a', 'b'\]"),
        (pd.DataFrame(POINTS), r"\[0, 1, 2\]"),
        (POINTS, "no names of columns"),
    ],
    ids=["moved", "fewer", "numbered", "array"],
)
def test_chunks_must_have_the_same_columns(other, told):
    first = pd.DataFrame(POINTS, columns=NAMES)
    message = rf"chunk 1 has .*{told}.* and chunk 0 has the columns \['a', 'b', 'c'\]"
    with pytest.raises(SourceError, match=message):
        kmeans().fit([first, other])


def test_columns_without_names_are_points():
    chunks = [POINTS[:1000], pd.DataFrame(POINTS[1000:])]
    data = open_data(chunks)
    assert data.feature_names is None
    assert np.array_equal(kmeans().fit(data).cluster_centers_, expected().cluster_centers_)
    swapped = pd.DataFrame(POINTS)[[2, 0, 1]]
    with pytest.raises(SourceError, match=r"chunk 1 has the columns \[2, 0, 1\]"):
        kmeans().fit([pd.DataFrame(POINTS), swapped])
