"""No input crashes, hangs or gives NaN: each gets a clear error or a right answer."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import AuthorsSchedule, Fixed, Geometric, KMeans, PowerKMeans

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
@pytest.mark.parametrize("exponent", [-40, -36, 18, 36])
def test_float32_of_any_size_is_right(kind, exponent: int) -> None:
    given = (POINTS * 10.0**exponent).astype(np.float32)
    model = kind(3, random_state=0)
    assert_finds_the_groups(model, given)
    middles = given.reshape(3, 30, 2).mean(axis=1, dtype=np.float64)
    centers = model.cluster_centers_.astype(float)
    expected = np.sort(middles, axis=0)
    np.testing.assert_allclose(np.sort(centers, axis=0), expected, rtol=1e-4, atol=1e-45)
    distances = model.transform(given)
    np.testing.assert_allclose(distances, cdist(given, centers), rtol=1e-4)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)


@of_both
@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
def test_differences_too_small_to_be_squared_are_refused_where_there_are_no_others(kind) -> None:
    for exponent in (-160, -310):
        with pytest.raises(ValueError, match=r"varies by no more than .* Scale X"):
            kind(3).fit(POINTS * 10.0**exponent)
    both = np.column_stack([POINTS, POINTS * 1e-310])
    assert_finds_the_groups(kind(3, random_state=0), both)


def anything(rng: np.random.Generator) -> tuple[object, np.ndarray | None, int]:
    """Points of some kind and size, some weights, and a number of clusters."""
    n_points, n_features = int(rng.integers(1, 200)), int(rng.choice([1, 2, 5, 40]))
    plain = rng.normal(size=(n_points, n_features))
    kinds = [
        plain,
        np.round(plain),
        plain[rng.integers(0, 1 + n_points // 10, n_points)],
        plain * 10.0 ** rng.integers(-6, 6, size=(n_points, 1)),
        plain + 10.0 ** rng.integers(0, 9),
        plain * (rng.random(plain.shape) < 0.3),
    ]
    given = rng.choice(kinds) * 10.0 ** rng.integers(-20, 20)
    given = given.astype(rng.choice([np.float32, np.float64]))
    weights = [None, rng.integers(1, 4, n_points), 10.0 ** rng.uniform(-10, 10, n_points)]
    container = [np.asarray, sparse.csr_array][rng.integers(2)]
    return container(given), weights[rng.integers(3)], int(rng.integers(1, min(n_points, 40) + 1))


def any_estimator(rng: np.random.Generator, n_clusters: int) -> KMeans | PowerKMeans:
    options = {
        "init": str(rng.choice(["k-means++", "random"])),
        "tol": float(rng.choice([0, 1e-6, 1e-3])),
        "random_state": int(rng.integers(1000)),
    }
    if rng.random() < 0.3:
        return KMeans(n_clusters, **options)
    power = -float(10 ** rng.uniform(-1.5, 3))
    schedules = ["auto", Fixed(power), Geometric(power, 1.2), AuthorsSchedule(-0.3)]
    chosen = {"schedule": schedules[rng.integers(4)], "polish": bool(rng.integers(2))}
    return PowerKMeans(n_clusters, **chosen, **options)


@for_all(st.integers(0, 2**32 - 1))
def test_whatever_the_points_the_result_is_sound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given, weights, n_clusters = anything(rng)
    model = any_estimator(rng, n_clusters)
    with warnings.catch_warnings():
        # Too few distinct points, too few sweeps: both may be, and are said.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(given, sample_weight=weights)
    assert_is_sound(model)
    np.testing.assert_array_equal(model.labels_, model.predict(given))
    assert np.isfinite(model.transform(given)).all()
    if isinstance(model, PowerKMeans):
        np.testing.assert_allclose(model.memberships(given).sum(axis=1), 1)


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
