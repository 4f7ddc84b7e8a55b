"""The door: which opener gets what a user passes, and what is imported for it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from powermeans import KMeans
from powermeans.points import opening

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
