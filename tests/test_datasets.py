"""Drawn data has the shape that its source says, and a real set is that set or an error."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powermeans import datasets
from powermeans.datasets import (
    load_data_set,
    make_exponential_family,
    make_gaussian_clusters,
    make_grid_gaussians,
    make_polylines,
    real,
)
from powermeans.datasets.real import CATALOGUE, Entry
from powermeans.errors import MissingDataError, WrongDataError

MAKERS = {
    "gaussian clusters": lambda seed: make_gaussian_clusters(200, 7, 3, random_state=seed),
    "drawn sizes": lambda seed: make_gaussian_clusters(200, 7, 3, sizes="drawn", random_state=seed),
    "normal": lambda seed: make_exponential_family("normal", random_state=seed),
    "poisson": lambda seed: make_exponential_family("poisson", random_state=seed),
    "binomial": lambda seed: make_exponential_family("binomial", random_state=seed),
    "gamma": lambda seed: make_exponential_family("gamma", random_state=seed),
    "grid": lambda seed: make_grid_gaussians(random_state=seed),
    "polylines": lambda seed: make_polylines(500, random_state=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_gives_the_same_points_and_another_seed_others(name: str) -> None:
    one, again, other = (MAKERS[name](seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.points, again.points)
    assert not np.array_equal(one.points, other.points)


@pytest.mark.parametrize("name", MAKERS)
def test_a_generator_goes_on_where_it_stands(name: str) -> None:
    rng = np.random.default_rng(0)
    assert not np.array_equal(MAKERS[name](rng).points, MAKERS[name](rng).points)


def test_the_clusters_of_the_tables_are_those_of_the_paper() -> None:
    drawn = make_gaussian_clusters(n_features=10, random_state=1)
    assert drawn.points.shape == (2500, 10)
    assert np.bincount(drawn.labels).tolist() == [50] * 50
    residuals = drawn.points - drawn.centers[drawn.labels]
    # 25 000 standard normal numbers: the errors of mean and variance are 0.006 and 0.009.
    assert abs(residuals.mean()) < 0.03
    assert residuals.var() == pytest.approx(1, abs=0.05)
    assert drawn.centers.min() >= 0
    assert drawn.centers.max() < 60


def test_the_side_of_the_cube_is_drawn_anew_for_each_set() -> None:
    sides = [
        make_gaussian_clusters(50, 50, 40, random_state=seed).centers.max() for seed in range(200)
    ]
    # The largest of 2000 uniform numbers is r itself but for a thousandth.
    assert np.mean(sides) == pytest.approx(45, abs=2)
    assert min(sides) < 33
    assert 57 < max(sides) < 60


@given(n_points=st.integers(1, 60), n_clusters=st.integers(1, 9), seed=st.integers(0, 99))
def test_equal_sizes_differ_by_one_at_most(n_points: int, n_clusters: int, seed: int) -> None:
    drawn = make_gaussian_clusters(n_points, n_clusters, random_state=seed)
    counts = np.bincount(drawn.labels, minlength=n_clusters)
    assert counts.sum() == n_points
    assert counts.max() - counts.min() <= 1


def test_drawn_sizes_differ_by_more() -> None:
    drawn = make_gaussian_clusters(sizes="drawn", random_state=0)
    assert np.bincount(drawn.labels).std() == pytest.approx(7, abs=2.5)


@pytest.mark.parametrize(
    ("family", "variance"),
    [
        ("normal", lambda mean: 16.0),
        ("poisson", lambda mean: mean),
        ("binomial", lambda mean: mean * (1 - mean / 50)),
        ("gamma", lambda mean: mean**2 / 3),
    ],
    ids=["normal", "poisson", "binomial", "gamma"],
)
def test_a_family_has_the_means_and_variances_of_its_law(family, variance) -> None:
    drawn = make_exponential_family(family, n_points=30_000, random_state=0)
    for label, mean in enumerate((10.0, 20.0, 40.0)):
        own = drawn.points[drawn.labels == label]
        assert own.mean() == pytest.approx(mean, rel=0.02)
        assert own.var() == pytest.approx(variance(mean), rel=0.06)


def test_counts_are_whole_numbers_and_of_trials_no_more_than_there_are() -> None:
    for family in ("poisson", "binomial"):
        points = make_exponential_family(family, 600, 5, random_state=0).points
        assert (points == np.rint(points)).all()
        assert points.min() >= 0
    assert points.max() <= 50


def test_centers_are_one_number_or_one_for_each_feature() -> None:
    by_number = make_exponential_family("gamma", 6, 2, centers=[1, 9], random_state=0)
    in_full = make_exponential_family("gamma", 6, 2, centers=[[1, 1], [9, 9]], random_state=0)
    np.testing.assert_array_equal(by_number.points, in_full.points)


def test_nine_gaussians_stand_on_a_grid() -> None:
    drawn = make_grid_gaussians(9000, spacing=10, spread=0.1, random_state=0)
    assert np.abs(drawn.points - drawn.centers[drawn.labels]).max() < 0.6
    assert {tuple(place) for place in np.rint(drawn.points / 10)} == {
        (x, y) for x in (0.0, 1.0, 2.0) for y in (0.0, 1.0, 2.0)
    }


def test_points_along_polylines_lie_along_few_directions() -> None:
    line = make_polylines(400, n_lines=1, n_corners=1, jitter=1e-4, random_state=0).points
    _, lengths, _ = np.linalg.svd(line - line.mean(axis=0), full_matrices=False)
    assert lengths[1] < 0.1 * lengths[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_gaussian_clusters(0), "n_points=0 must be a whole number"),
        (lambda: make_gaussian_clusters(True), "n_points=True must be a whole number"),
        (lambda: make_gaussian_clusters(100.0), "n_points=100.0 must be a whole number"),
        (lambda: make_gaussian_clusters(9, n_features=math.nan), "n_features=nan must be a whole"),
        (lambda: make_grid_gaussians(side="a"), "side='a' must be a whole number"),
        (lambda: make_gaussian_clusters(scale=30), "scale=30 must be two numbers"),
        (lambda: make_exponential_family(centers=[]), r"centers=\[\] is empty"),
        (lambda: make_exponential_family(centers="a"), "centers='a' must be numbers"),
        (lambda: make_grid_gaussians(spread=-1), "spread=-1 must be at least zero"),
        (lambda: make_grid_gaussians(spacing="a"), "spacing='a' must be positive"),
        (lambda: make_polylines(9, jitter=math.nan), "jitter=nan must be at least zero"),
        (lambda: make_polylines(9, jitter=-1), "jitter=-1 must be at least zero"),
        (lambda: make_gaussian_clusters(scale=(60, 30)), "scale=.* low <= high"),
        (lambda: make_gaussian_clusters(sizes="even"), "sizes='even' is unknown: pass \"equal\""),
        (lambda: make_exponential_family("cauchy"), "family='cauchy' is unknown: pass one of"),
        (
            lambda: make_exponential_family("poisson", centers=[0, 1]),
            "poisson points have positive means",
        ),
        (
            lambda: make_exponential_family("binomial", centers=[51]),
            "pass at most 50, the number of trials",
        ),
        (lambda: make_exponential_family(centers=[[1, 2, 3]]), "n_features=2"),
        (lambda: make_grid_gaussians(spacing=0), "spacing=0 must be positive"),
        (lambda: make_polylines(9, 1), "n_features=1 must be at least 2"),
        (lambda: load_data_set("birch4"), "did you mean 'birch"),
    ],
    ids=range(21),
)
def test_arguments_that_make_no_data_are_errors(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Real sets: a small one of the test's own, known by its checksum.

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
