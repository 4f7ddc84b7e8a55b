"""A real set is that set or an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from powermeans import datasets
from powermeans.datasets import (
    load_data_set,
    real,
)
from powermeans.datasets.real import CATALOGUE, Entry
from powermeans.errors import MissingDataError, WrongDataError

# A small set of the test's own, known by its checksum.

POINTS = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int16)
LABELS = np.array([0, 1, 1])


@pytest.fixture
def own_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of a set `own` that the loaders know, with nothing in its folder yet."""
    entry = Entry(
        "own",
        [3, 2],
        real.sha256_of_values(POINTS),
        "somebody, Journal 1",
        "some/where data.csv",
        "CC BY 4.0",
        real.sha256_of_values(LABELS),
    )
    monkeypatch.setitem(CATALOGUE, "own", entry)
    monkeypatch.setenv(real.DATA_VARIABLE, str(tmp_path))
    return tmp_path / "own.npz"


def test_a_set_is_read_whatever_its_numbers_are_stored_as(own_set: Path) -> None:
    for dtype in (np.int16, np.uint8, np.float32, np.float64):
        np.savez(own_set, X=np.asfortranarray(POINTS.astype(dtype)), y=LABELS, note=["a"])
        found = load_data_set("own")
        assert found.points.dtype == np.float64
        np.testing.assert_array_equal(found.points, POINTS)
        np.testing.assert_array_equal(found.labels, LABELS)
        assert list(found.extras) == ["note"]
    assert load_data_set("own", dtype=np.float32).points.dtype == np.float32


def test_a_missing_set_says_where_it_comes_from_and_how_to_place_it(own_set: Path) -> None:
    with pytest.raises(MissingDataError) as caught:
        load_data_set("own")
    for part in (str(own_set), "somebody, Journal 1", "CC BY 4.0", "3 x 2", real.DATA_VARIABLE):
        assert part in str(caught.value)


def test_without_the_variable_sets_are_looked_for_in_the_home_directory(
    own_set, monkeypatch
) -> None:
    monkeypatch.delenv(real.DATA_VARIABLE)
    monkeypatch.setattr(Path, "home", lambda: own_set.parent)
    with pytest.raises(FileNotFoundError, match=r"powermeans_data/own\.npz is missing: "):
        load_data_set("own")
    own_set.with_name("powermeans_data").mkdir()
    np.savez(own_set.with_name("powermeans_data") / "own.npz", X=POINTS, y=LABELS)
    np.testing.assert_array_equal(load_data_set("own").labels, LABELS)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": POINTS[:2], "y": LABELS}, r"has X of shape \(2, 2\)"),
        ({"X": POINTS + 1, "y": LABELS}, "has X with other values, by its SHA-256"),
        ({"X": POINTS, "y": 1 - LABELS}, "has y with other values"),
        ({"X": POINTS}, "has no array y"),
        ({"points": POINTS, "y": LABELS}, "has no array X"),
        ({"X": POINTS.astype(str), "y": LABELS}, "has X of dtype"),
    ],
    ids=["rows", "values", "labels", "no labels", "no points", "text"],
)
def test_another_set_under_its_name_is_an_error(own_set, arrays, message) -> None:
    np.savez(own_set, **arrays)
    with pytest.raises(WrongDataError, match=message):
        load_data_set("own")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("kept", [0, 1, 4, 40, 200, -100, -1])
def test_a_torn_file_is_an_error(own_set: Path, save, kept: int) -> None:
    save(own_set, X=POINTS, y=LABELS)
    own_set.write_bytes(own_set.read_bytes()[:kept])
    with pytest.raises(WrongDataError, match="cannot be read"):
        load_data_set("own")


@pytest.mark.filterwarnings("ignore")
def test_a_changed_byte_anywhere_gives_the_same_numbers_or_that_error(own_set: Path) -> None:
    np.savez_compressed(own_set, X=POINTS, y=LABELS)
    whole = own_set.read_bytes()
    n_errors = 0
    for place in range(len(whole)):
        own_set.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            np.testing.assert_array_equal(load_data_set("own").points, POINTS)
        except WrongDataError:
            n_errors += 1
    assert n_errors > len(whole) / 3


def test_an_unknown_name_suggests_another() -> None:
    with pytest.raises(ValueError, match="did you mean 'birch"):
        load_data_set("birch4")


def test_points_are_given_in_floats_only(own_set: Path) -> None:
    np.savez(own_set, X=POINTS, y=LABELS)
    with pytest.raises(ValueError, match="cannot hold the points: pass float64 or float32"):
        load_data_set("own", dtype=np.int8)


def test_nothing_is_unpickled(own_set: Path) -> None:
    np.savez(own_set, X=np.array([Trap()]), y=LABELS)
    with pytest.raises(WrongDataError, match="allow_pickle"):
        load_data_set("own")
    assert not Trap.sprung


class Trap:
    """What makes a note of being unpickled."""

    sprung = False

    def __reduce__(self) -> tuple:
        return setattr, (Trap, "sprung", True)


def test_the_checksum_sees_every_value_and_its_place() -> None:
    values = np.arange(12.0).reshape(6, 2)
    moved, changed = values[::-1], values + np.eye(6, 2) * 1e-12
    digests = {real.sha256_of_values(v) for v in (values, moved, changed, values.T)}
    assert len(digests) == 4
    assert real.sha256_of_values(-0.0 * values) == real.sha256_of_values(0 * values)


def test_the_checksum_does_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.where(np.arange(20.0) % 7 == 3, np.nan, np.arange(20.0)).reshape(10, 2)
    whole = real.sha256_of_values(values)
    monkeypatch.setattr(real, "_CHUNK", 6)
    assert real.sha256_of_values(values) == whole


def test_iris_comes_with_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(real.DATA_VARIABLE, str(tmp_path))
    iris = load_data_set("iris")
    assert iris.points.shape == (150, 4)
    assert np.bincount(iris.labels).tolist() == [50, 50, 50]


def test_importing_the_data_sets_imports_no_scikit_learn() -> None:
    code = "import sys, powermeans; powermeans.datasets.names(); print('sklearn' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in datasets.names() if name != "mnist_train"])
def test_every_known_set_is_the_one_that_is_there(data_folder: Path, name: str) -> None:
    found = load_data_set(name, dtype=np.float32)
    assert found.points.shape == tuple(CATALOGUE[name].shape)


@pytest.mark.data
def test_real_sets_hold_what_the_catalogue_says(data_folder: Path) -> None:
    mice = load_data_set("mice_protein")
    assert np.isnan(mice.points).sum() == 1396
    assert (mice.labels < 4).sum() == 570
    assert len(mice.extras["class_names"]) == 8
    assert load_data_set("birch1").centers.shape == (100, 2)
    assert load_data_set("birch3").labels is None
