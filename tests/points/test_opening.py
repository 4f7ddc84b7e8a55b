"""The door: what it lets through, what it refuses, and which opener gets what a user passes."""

import importlib

import numpy as np
import pytest
from comparator import assert_same_sums
from problems import output_of
from scipy import sparse

from powermeans import KMeans
from powermeans.mathematics.rules import Hard, Power
from powermeans.points import opening
from powermeans.points.checks.csr import canonical_csr
from powermeans.points.checks.points import check_points
from powermeans.points.opening import open_batch, open_rows

ROWS = """
class Rows:
    def __iter__(self):
        return iter([])
"""
OPENER = """
from powermeans.points.opening import open_points
from rows_of_a_user import Rows

@open_points.register(Rows)
def _open_rows(X, sample_weight, needs):
    return open_points([[0.0], [1.0], [9.0]], sample_weight, needs)
"""


def test_the_opener_of_a_type_comes_before_that_of_chunks(tmp_path, monkeypatch) -> None:
    (tmp_path / "rows_of_a_user.py").write_text(ROWS)
    (tmp_path / "opener_of_a_user.py").write_text(OPENER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(opening._OPENERS, "rows_of_a_user", "opener_of_a_user")
    rows = importlib.import_module("rows_of_a_user").Rows()  # which can be iterated
    model = KMeans(2, random_state=0).fit(rows)
    assert model.inertia_ == 0.5
    assert model.predict(rows).tolist() == model.labels_.tolist()


@pytest.mark.parametrize("rows", ["powermeans.KMeans(2)", "powermeans.open_data([[[1.0]]])"])
def test_objects_of_this_package_are_opened_without_dask(rows: str) -> None:
    program = f"""
import sys
sys.modules["dask"] = None
import powermeans
try:
    powermeans.KMeans(1).fit({rows})
except TypeError as error:
    assert "must be a string or a real number, not 'KMeans'" in str(error)
"""
    output_of(program)


@pytest.mark.parametrize("shape", [(30_000, 2, 100), (5_000, 40, 64)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_and_sums_are_the_same(shape, dtype):
    n_points, n_features, n_centers = shape
    points = np.random.default_rng(0).normal(size=(n_points, n_features)).astype(dtype)
    centers = points[:n_centers].astype(np.float64)
    often, once = open_rows(points), open_batch(points)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for rule in (Hard(), Power(-20.0), Hard()):
        expected, swept = often.sweep(centers, rule), once.sweep(centers, rule)
        assert_same_sums(swept, expected, tolerance)
        moved = swept.centers(centers)
        np.testing.assert_array_equal(once.assign(moved)[0], often.assign(moved)[0])


def test_batches_may_share_the_threads_of_others_and_weights_count_in_the_overflow():
    points = np.random.default_rng(0).normal(size=(40_000, 16))
    rows = open_rows(points, n_threads=3)
    batch = open_batch(points[:20_000], n_threads=1, beside=rows)
    assert batch.team is rows.team
    alone = open_batch(points[:20_000], n_threads=1)
    assert alone.team.n_threads == 1
    shared, own = (part.sweep(points[:50], Hard()) for part in (batch, alone))
    assert len(batch.team.stripes_by_worker) > 1
    np.testing.assert_array_equal(shared.points, own.points)
    points = np.array([[1e150], [0.0]])
    check_points(points, total_weight=1.0)
    with pytest.raises(ValueError, match="overflow"):
        check_points(points, total_weight=1e9)


MANY_ROWS = 200_000


def test_indices_become_narrow_and_tidy_and_what_is_wrongly_remembered_is_left_out() -> None:
    given = sparse.csr_array(np.eye(3))
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    narrow = canonical_csr(given)
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    np.testing.assert_array_equal(narrow.toarray(), np.eye(3))
    given = sparse.csr_array(np.ones((2, 3)))
    assert given.has_canonical_format
    given.indices[:3] = [2, 0, 2]
    tidy = canonical_csr(given)
    np.testing.assert_array_equal(tidy.indices, [0, 2, 0, 1, 2])
    np.testing.assert_array_equal(tidy.toarray(), [[1.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    given = sparse.csr_array(np.ones((2, 3)))
    given.indptr[-1] = 5  # one entry lies behind the last row
    trimmed = canonical_csr(given)
    assert trimmed.data.size == trimmed.indices.size == 5
    np.testing.assert_array_equal(trimmed.toarray(), [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    given.data[0] = 0.0
    assert canonical_csr(given).nnz == 4
    assert given.data[0] == 0.0


BROKEN_ENTRIES = [
    *(("indptr", at, value) for at, value in ((10, 10**8), (10, 26), (20, 10**8), (0, 1), (1, -5))),
    *(("indices", 7, value) for value in (3, -1)),
]


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize(("array", "at", "value"), BROKEN_ENTRIES)
def test_index_arrays_that_scipy_would_crash_on_are_refused(is_remembered, array, at, value):
    given = sparse.csr_array(np.ones((20, 3)))
    if is_remembered:
        assert given.has_canonical_format
    getattr(given, array)[at] = value
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        canonical_csr(given)


@pytest.mark.parametrize(("array", "n_left"), [("indptr", 19), ("data", 59), ("indices", 59)])
def test_index_arrays_of_wrong_length_are_refused(array, n_left) -> None:
    given = sparse.csr_array(np.ones((20, 3)))
    setattr(given, array, getattr(given, array)[:n_left])
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        canonical_csr(given)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("row", [0, 5, MANY_ROWS - 1])
@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_the_first_bad_entry_is_named(make, row: int, bad: float, kind: str) -> None:
    points = np.zeros((MANY_ROWS, 3), dtype=np.float32)
    points[row, 1] = bad
    points[-1, 2] = np.nan
    says = f"Input X contains {kind}.* row {row}, column 1 .*'height'"
    with pytest.raises(ValueError, match=says):
        check_points(make(points), feature_names=["a", "height", "c"])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_differences_too_small_to_be_squared_are_refused(kind) -> None:
    points = kind([[1e-170, 0.0], [3e-170, 0.0]])
    with pytest.raises(ValueError, match=r"varies by no more than [23]e-170.*Scale X"):
        check_points(points, must_differ=True)
    check_points(points)
    for row in range(3):  # one that differs is enough
        points = np.array([[5.0, 0.0], [5.0, 1e-170], [5.0, 0.0]])
        points[row, 0] = 6.0
        assert check_points(kind(points), must_differ=True) == 6.0
