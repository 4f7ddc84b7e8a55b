"""The border lets through what the rest can trust, and names what it refuses."""

import numpy as np
import pytest
from scipy import sparse

from powermeans.points.checks.csr import canonical_csr
from powermeans.points.checks.points import check_points

MANY_ROWS = 200_000


def test_wide_indices_become_narrow_where_they_fit() -> None:
    given = sparse.csr_array(np.eye(3))
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    narrow = canonical_csr(given)
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    np.testing.assert_array_equal(narrow.toarray(), np.eye(3))


def test_what_a_matrix_wrongly_remembers_is_tidied_and_left_out() -> None:
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


BROKEN_ENTRIES = [
    ("indptr", 10, 10**8, "indptr falls from 100000000 to 33 at row 10"),
    ("indptr", 10, 26, "indptr falls from 27 to 26 at row 9"),
    ("indptr", 20, 10**8, "indptr ends with 100000000, but only 60 entries are stored"),
    ("indptr", 0, 1, "indptr begins with 1, not 0"),
    ("indptr", 1, -5, "indptr falls from 0 to -5 at row 0"),
    ("indices", 7, 3, "the column index 3 lies outside its 3 columns"),
    ("indices", 7, -1, "the column index -1 lies outside its 3 columns"),
]


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize(("array", "at", "value", "message"), BROKEN_ENTRIES)
def test_index_arrays_that_scipy_would_crash_on_are_refused(
    is_remembered: bool, array: str, at: int, value: int, message: str
) -> None:
    given = sparse.csr_array(np.ones((20, 3)))
    if is_remembered:
        assert given.has_canonical_format
    getattr(given, array)[at] = value
    with pytest.raises(ValueError, match=f"X is not a valid CSR matrix: {message}"):
        canonical_csr(given)


@pytest.mark.parametrize(
    ("array", "n_left", "message"),
    [("indptr", 19, r"indptr has the shape \(19,\), not \(21,\)"), ("data", 59, "only 59 entries")],
)
def test_index_arrays_of_wrong_length_are_refused(array, n_left, message) -> None:
    given = sparse.csr_array(np.ones((20, 3)))
    setattr(given, array, getattr(given, array)[:n_left])
    with pytest.raises(ValueError, match=message):
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


def test_weights_count_in_the_overflow() -> None:
    points = np.array([[1e150], [0.0]])
    check_points(points, total_weight=1.0)
    with pytest.raises(ValueError, match="overflow"):
        check_points(points, total_weight=1e9)


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
