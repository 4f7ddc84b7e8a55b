"""No input crashes, hangs or gives NaN: each gets a clear error or a right answer."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from powermeans import KMeans, PowerKMeans
from tests.attacks import numbers
from tests.attacks.running import REFUSED, RIGHT

LABELS = np.repeat([0, 1, 2], 30)
POINTS = (
    np.random.default_rng(0).normal(size=(90, 2)) + np.array([[0, 0], [30, 0], [0, 40]])[LABELS]
)
of_both = pytest.mark.parametrize("kind", [KMeans, PowerKMeans])


def assert_is_sound(model) -> None:
    assert np.isfinite(model.cluster_centers_).all()
    assert math.isfinite(model.inertia_)
    assert model.inertia_ >= 0


def assert_finds_the_groups(model, given) -> None:
    labels = model.fit_predict(given)
    assert len(set(zip(labels, LABELS, strict=True))) == 3
    assert_is_sound(model)
    np.testing.assert_array_equal(model.predict(given), labels)


@pytest.mark.parametrize(
    ("centers", "message"),
    [
        (np.full((3, 2), np.nan), "NaN.*row 0, column 0"),
        (np.full((3, 2), np.inf), "infinity"),
        (np.full((3, 2), 1e200), "1e\\+200"),
        (np.ones((3, 5)), r"shape \(3, 5\): assign one row of 2 numbers"),
        (np.ones(6), r"shape \(6,\)"),
        (np.ones((0, 2)), r"shape \(0, 2\)"),
        (None, ""),
        (np.array([["a", "b"]]), "dtype <U1"),
    ],
)
def test_bad_centers_assigned_to_an_estimator_are_refused(centers, message: str) -> None:
    model = KMeans(3, random_state=0).fit(POINTS)
    model.cluster_centers_ = centers
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=f"cluster_centers_ .*{message}"):
            method(POINTS)


@pytest.mark.parametrize(
    ("entry", "message"), [(np.nan, "contains NaN"), (1e200, "has values as large as 1e\\+200")]
)
def test_initial_centers_that_no_point_can_be_near_are_refused(entry, message: str) -> None:
    with pytest.raises(ValueError, match=f"Input init {message}"):
        KMeans(3, init=np.full((3, 2), entry)).fit(POINTS)


@of_both
@pytest.mark.parametrize("dtype", [np.float32, int, object])
def test_good_centers_assigned_to_an_estimator_serve(kind, dtype) -> None:
    model = kind(3, random_state=0).fit(POINTS)
    centers = [[0, 40], [0, 0], [30, 0], [500, 500]]
    model.cluster_centers_ = np.array(centers, dtype=dtype, order="F")
    np.testing.assert_array_equal(model.predict(POINTS), np.array([1, 2, 0])[LABELS])
    assert model.transform(POINTS).shape == (90, 4)


@of_both
def test_few_places_and_far_starts(kind) -> None:
    np.testing.assert_allclose(kind(1).fit(POINTS).cluster_centers_[0], POINTS.mean(axis=0))
    model = kind(90, random_state=0).fit(POINTS)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(90))
    assert_finds_the_groups(kind(3, init=[[1e100, 0], [0, 0], [30, 0]]), POINTS)
    for given, weights in ((sparse.csr_array((10, 4)), None), (POINTS, np.eye(90)[4])):
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
            model = kind(3, random_state=0).fit(given, sample_weight=weights)
        assert_is_sound(model)
        assert model.inertia_ == model.n_relocated_ == 0


@of_both
@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
def test_differences_too_small_to_be_squared_are_refused_where_there_are_no_others(kind) -> None:
    for exponent in (-160, -310):
        with pytest.raises(ValueError, match=r"varies by no more than .* Scale X"):
            kind(3).fit(POINTS * 10.0**exponent)
    both = np.column_stack([POINTS, POINTS * 1e-310])
    assert_finds_the_groups(kind(3, random_state=0), both)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_estimator_and_the_points_the_oracle_finds_no_fault(seed, tmp_path) -> None:
    assert numbers.prepare(tmp_path)(random.Random(seed)) in (RIGHT, REFUSED)


def test_text_is_named_by_its_column_or_its_row() -> None:
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": ["Bern", "Rom", "Oslo"]})
    for given, told in (
        (table, "'Bern' in column 'city'"),
        ([["1.5", 2.0], ["Rom", 3.0]], "'Rom' in row 1, column 0"),
    ):
        with pytest.raises(ValueError, match=told):
            PowerKMeans(2).fit(given)


@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
@pytest.mark.parametrize("divergence", ["squared_euclidean", "manhattan", "poisson"])
def test_distances_beyond_float32_are_refused_and_those_within_are_not(divergence: str) -> None:
    X = np.array([[1e30, 1], [1, 1e30], [2, 2], [3, 3]], dtype=np.float32)
    model = PowerKMeans(2, divergence=divergence, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    far = np.array([[2, 2], [3e38, 3e38]], dtype=np.float32)
    with pytest.raises(ValueError, match="row 1 of X is too far from a center for float32"):
        model.transform(far)
    model.predict(far)
