"""The door: which opener gets what a user passes, and what is imported for it."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from comparator import assert_same_sums

from powermeans import KMeans
from powermeans.mathematics.rules import Hard, Power
from powermeans.points import opening
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
    subprocess.run([sys.executable, "-c", program], check=True)


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


def test_batches_may_share_the_threads_of_other_rows():
    points = np.random.default_rng(0).normal(size=(40_000, 16))
    rows = open_rows(points, n_threads=3)
    batch = open_batch(points[:20_000], n_threads=1, beside=rows)
    assert batch.team is rows.team
    alone = open_batch(points[:20_000], n_threads=1)
    assert alone.team.n_threads == 1
    shared, own = (part.sweep(points[:50], Hard()) for part in (batch, alone))
    assert len(batch.team.stripes_by_worker) > 1
    np.testing.assert_array_equal(shared.points, own.points)
