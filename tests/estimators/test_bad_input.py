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
from sklearn.exceptions import ConvergenceWarning

from powermeans import (
    AuthorsSchedule,
    DPMeans,
    EntropyWeightedPowerKMeans,
    Fixed,
    Geometric,
    GradientKMeans,
    KernelPowerKMeans,
    KMeans,
    MiniBatchKMeans,
    MiniBatchPowerKMeans,
    OnlineKMeans,
    PowerKMeans,
    SelfOrganizingMap,
    SpectralClustering,
    SphericalMixture,
)

N_POINTS = 90
LABELS = np.repeat([0, 1, 2], 30)


def three_groups() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N_POINTS, 2)) + np.array([[0, 0], [30, 0], [0, 40]])[LABELS]


@pytest.fixture
def points() -> np.ndarray:
    return three_groups()


@pytest.fixture(params=[KMeans, PowerKMeans])
def estimator(request: pytest.FixtureRequest) -> type[KMeans] | type[PowerKMeans]:
    return request.param


def assert_finds_the_groups(model, given) -> None:
    labels = model.fit_predict(given)
    assert len(set(zip(labels, LABELS, strict=True))) == 3
    assert_is_sound(model)
    np.testing.assert_array_equal(model.predict(given), labels)


def assert_is_sound(model) -> None:
    assert np.isfinite(model.cluster_centers_).all()
    assert math.isfinite(model.inertia_)
    assert model.inertia_ >= 0


# Entries that are not finite.


# Centers that the user assigns.


@pytest.mark.parametrize(
    ("centers", "message"),
    [
        (np.full((3, 2), np.nan), "Input cluster_centers_ contains NaN.*row 0, column 0"),
        (np.full((3, 2), np.inf), "Input cluster_centers_ contains infinity"),
        (np.full((3, 2), 1e200), "Input cluster_centers_ has values as large as"),
        (np.ones((3, 5)), r"cluster_centers_ has the shape \(3, 5\): assign one row of 2 numbers"),
        (np.ones(6), r"cluster_centers_ has the shape \(6,\)"),
        (np.ones((0, 2)), r"cluster_centers_ has the shape \(0, 2\)"),
        (None, "cluster_centers_ "),
        (np.array([["a", "b"]]), "cluster_centers_ has the dtype <U1"),
    ],
)
def test_bad_centers_assigned_to_an_estimator_are_refused(estimator, centers, message: str) -> None:
    model = estimator(3, random_state=0).fit(three_groups())
    model.cluster_centers_ = centers
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            method(three_groups())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, int, object])
def test_good_centers_assigned_to_an_estimator_serve(estimator, dtype) -> None:
    model = estimator(3, random_state=0).fit(three_groups())
    model.cluster_centers_ = np.array(
        [[0, 40], [0, 0], [30, 0], [500, 500]], dtype=dtype, order="F"
    )
    np.testing.assert_array_equal(model.predict(three_groups()), np.array([1, 2, 0])[LABELS])
    assert model.transform(three_groups()).shape == (N_POINTS, 4)


# Kinds of arrays.


def test_a_sparse_matrix_without_entries_is_all_zeros(estimator) -> None:
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        model = estimator(3, random_state=0).fit(sparse.csr_array((10, 4)))
    assert model.inertia_ == 0


# Points that are few, equal, or constant.


def test_one_cluster_is_the_mean(points, estimator) -> None:
    model = estimator(1).fit(points)
    np.testing.assert_allclose(model.cluster_centers_[0], points.mean(axis=0))


def test_as_many_clusters_as_rows_are_the_rows(points, estimator) -> None:
    model = estimator(N_POINTS, random_state=0).fit(points)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(N_POINTS))


def test_a_center_that_starts_far_away_comes_back(points, estimator) -> None:
    assert_finds_the_groups(estimator(3, init=[[1e100, 0], [0, 0], [30, 0]]), points)


# Weights.


def test_a_single_point_with_weight_is_the_only_cluster(points, estimator) -> None:
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model = estimator(3, random_state=0).fit(points, sample_weight=np.eye(N_POINTS)[4])
    assert_is_sound(model)
    assert model.inertia_ == 0
    assert model.n_relocated_ == 0


# Values at the ends of the range.


@pytest.mark.parametrize("exponent", [-40, -36, -18, 18, 36])
def test_float32_of_any_size_is_right(points, estimator, exponent: int) -> None:
    given = (points * 10.0**exponent).astype(np.float32)
    model = estimator(3, random_state=0)
    assert_finds_the_groups(model, given)
    middles = given.reshape(3, 30, 2).mean(axis=1, dtype=np.float64)
    expected = np.sort(middles, axis=0)
    np.testing.assert_allclose(
        np.sort(model.cluster_centers_.astype(float), axis=0), expected, rtol=1e-4, atol=1e-45
    )
    distances = model.transform(given)
    expected = np.linalg.norm(given[:, None, :] - model.cluster_centers_.astype(float), axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-4)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)


@pytest.mark.parametrize("exponent", [-160, -200, -310])
def test_differences_too_small_to_be_squared_are_refused(points, estimator, exponent: int) -> None:
    with pytest.raises(ValueError, match=r"varies by no more than .* vanish in float64. Scale X"):
        estimator(3).fit(points * 10.0**exponent)


@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
def test_subnormal_differences_beside_normal_ones_do_not_matter(points, estimator) -> None:
    assert_finds_the_groups(
        estimator(3, random_state=0), np.column_stack([points, points * 1e-310])
    )


# Parameters.


# Anything at all.


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
    given = (rng.choice(kinds) * 10.0 ** rng.integers(-20, 20)).astype(
        rng.choice([np.float32, np.float64])
    )
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
    return PowerKMeans(
        n_clusters,
        schedule=schedules[rng.integers(4)],
        polish=bool(rng.integers(2)),
        **options,
    )


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


def test_text_in_a_table_is_named_by_its_column() -> None:
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": ["Bern", "Rom", "Oslo"]})
    with pytest.raises(ValueError, match="X has the text 'Bern' in column 'city': leave the col"):
        PowerKMeans(2).fit(table)
    with pytest.raises(ValueError, match="X has the text 'Rom' in row 1, column 0"):
        PowerKMeans(2).fit([["1.5", 2.0], ["Rom", 3.0]])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (DPMeans(), "distances, which are shorter"),
        (EntropyWeightedPowerKMeans(2), "would look tighter"),
        (GradientKMeans(2), "the weight of a center"),
        (KernelPowerKMeans(2), "all entries of two rows"),
        (MiniBatchKMeans(2), "one running weight"),
        (MiniBatchPowerKMeans(2), "one running weight"),
        (OnlineKMeans(2), "one running weight"),
        (SelfOrganizingMap((1, 2)), "the weight of their points"),
        (SpectralClustering(2), "all entries of two rows"),
        (SphericalMixture(2), "means over all columns"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nan_is_refused_with_the_reason_where_no_entry_may_be_missing(model, reason) -> None:
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])
    with pytest.raises(ValueError, match=rf"row 1, column 0\. .*{reason}.*: leave such rows out"):
        model.fit(X)
    with pytest.raises(ValueError, match=r"row 1, column 0\. Leave such rows out"):
        model.fit(np.where(np.isnan(X), np.inf, X))


@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
@pytest.mark.parametrize("divergence", ["squared_euclidean", "manhattan", "poisson"])
def test_distances_beyond_float32_are_refused_and_those_within_are_not(divergence: str) -> None:
    X = np.array([[1e30, 1], [1, 1e30], [2, 2], [3, 3]], dtype=np.float32)
    model = PowerKMeans(2, divergence=divergence, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    far = np.array([[2, 2], [3e38, 3e38]], dtype=np.float32)
    with pytest.raises(ValueError, match="row 1 of X is too far from a center for float32: pass"):
        model.transform(far)
    model.predict(far)
