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
    FuzzyCMeans,
    Geometric,
    GradientKMeans,
    KernelPowerKMeans,
    KHarmonicMeans,
    KMeans,
    MiniBatchKMeans,
    MiniBatchPowerKMeans,
    OnlineKMeans,
    PowerKMeans,
    SelfOrganizingMap,
    SpectralClustering,
    SphericalMixture,
    kmeans_plusplus,
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


def with_entry(value: float) -> np.ndarray:
    given = three_groups()
    given[7, 1] = value
    return given


# Entries that are not finite.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_an_entry_that_is_not_finite_is_named(estimator, dtype, value: float, kind: str) -> None:
    model = estimator(3, random_state=0)
    with pytest.raises(ValueError, match=f"Input X contains {kind}.*row 7, column 1"):
        model.fit(with_entry(value).astype(dtype))
    model.fit(three_groups())
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=f"Input X contains {kind}.*row 7, column 1"):
            method(with_entry(value).astype(dtype))
    with pytest.raises(ValueError, match=f"Input X contains {kind}.*row 7, column 1"):
        kmeans_plusplus(with_entry(value).astype(dtype), 3)


def test_the_column_is_named_by_its_name(estimator) -> None:
    table = pd.DataFrame(with_entry(np.nan), columns=["width", "height"])
    with pytest.raises(ValueError, match=r"row 7, column 1 \('height'\)"):
        estimator(3).fit(table)


def test_an_entry_of_a_sparse_matrix_is_named(estimator) -> None:
    with pytest.raises(ValueError, match=r"Input X contains NaN.*row 7, column 1"):
        estimator(3).fit(sparse.csr_array(with_entry(np.nan)))


@pytest.mark.parametrize("value", [10**8, 17])
def test_a_broken_sparse_matrix_is_refused_by_each_method(estimator, value: int) -> None:
    broken = sparse.csr_matrix(three_groups())
    assert broken.has_canonical_format
    broken.indptr[10] = value
    model = estimator(3, random_state=0).fit(three_groups())
    for method in (estimator(3).fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="X is not a valid CSR matrix: indptr falls"):
            method(broken)
    with pytest.raises(ValueError, match="X is not a valid CSR matrix: indptr falls"):
        kmeans_plusplus(broken, 3)


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((5, 2)) * 1j, "Complex data not supported"),
        (np.array([["a", "b"]] * 5), "X has the text 'a' in row 0, column 0: leave the column out"),
        (np.array([[{}, 1], [2, 3]], dtype=object), "must be a string or a real number"),
        (
            np.array([[1, 2], [3, 10**400], [5, 6]], dtype=object),
            "X has an integer above 1.8e308 in row 1, column 1",
        ),
        (np.empty((0, 2)), r"Found array with 0 sample\(s\)"),
        (np.empty((5, 0)), r"Found array with 0 feature\(s\)"),
        (np.float64(3.0), "Expected 2D array, got scalar array"),
        (np.ones(5), "Expected 2D array, got 1D array"),
        (np.ones((5, 2, 2)), "Found array with dim 3"),
        (np.ones((2, 2)), "n_samples=2 should be >= n_clusters=3"),
        (np.ones((1, 2)), "n_samples=1 should be >= n_clusters=3"),
        (None, "got scalar array"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(estimator, given, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        estimator(3).fit(given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, huge: SpectralClustering(2).fit(huge), "X has .* in row 1, column 1"),
        (
            lambda X, huge: SpectralClustering(2, affinity="precomputed").fit(huge),
            "X has .* in row 1, column 1",
        ),
        (lambda X, huge: SelfOrganizingMap((2, 1)).fit(huge), "X has .* in row 1, column 1"),
        (lambda X, huge: PowerKMeans(2, init=huge).fit(X), "init has .* in row 1, column 1"),
        (
            lambda X, huge: PowerKMeans(2).fit(X, sample_weight=huge[:, 1]),
            "sample_weight has .* at index 1",
        ),
    ],
)
def test_integers_beyond_float64_are_named_wherever_they_are(call, message: str) -> None:
    huge = np.array([[1, 2], [3, 10**400]], dtype=object)
    with pytest.raises(ValueError, match=message.replace(".*", "an integer above 1.8e308")):
        call(np.eye(2), huge)


def read_only(given: np.ndarray) -> np.ndarray:
    given.setflags(write=False)
    return given


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (np.asfortranarray, np.float64),
        (lambda given: np.repeat(given, 2, axis=1)[:, ::2], np.float64),
        (lambda given: given[::-1][::-1], np.float64),
        (read_only, np.float64),
        (lambda given: given.astype(">f8"), np.float64),
        (lambda given: given.astype(">f4"), np.float32),
        (lambda given: given.astype(np.float32), np.float32),
        (lambda given: given.astype(np.float16), np.float32),
        (lambda given: given.astype(np.longdouble), np.float64),
        (lambda given: given.astype(int), np.float64),
        (lambda given: given.astype(np.uint8), np.float64),
        (lambda given: given.astype(object), np.float64),
        (lambda given: given.astype(str), np.float64),
        (lambda given: given.tolist(), np.float64),
        (pd.DataFrame, np.float64),
        (sparse.csr_matrix, np.float64),
        (sparse.csr_array, np.float64),
        (sparse.csc_array, np.float64),
        (sparse.coo_array, np.float64),
        (sparse.dok_array, np.float64),
        (lambda given: sparse.csr_array(given.astype(np.float32)), np.float32),
    ],
)
def test_every_way_to_hold_numbers_is_understood(points, estimator, convert, dtype) -> None:
    model = estimator(3, random_state=0)
    assert_finds_the_groups(model, convert(np.abs(points)))
    assert model.cluster_centers_.dtype == dtype


def test_a_memory_map_is_understood(points, estimator, tmp_path) -> None:
    np.save(tmp_path / "points.npy", points)
    assert_finds_the_groups(
        estimator(3, random_state=0), np.load(tmp_path / "points.npy", mmap_mode="r")
    )


def test_truth_values_are_numbers(estimator) -> None:
    given = np.array([[False, False], [True, True]] * 10)
    model = estimator(2, random_state=0).fit(given)
    assert model.inertia_ == pytest.approx(0, abs=1e-20)


def test_a_sparse_matrix_with_entries_twice_and_out_of_order_is_understood(points, estimator):
    coo = sparse.coo_array(points)
    rows = np.concatenate([coo.row[::-1], coo.row])
    columns = np.concatenate([coo.col[::-1], coo.col])
    halves = np.concatenate([coo.data[::-1] / 2, coo.data / 2])
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N_POINTS))])
    given = sparse.csr_array((halves[order], columns[order], starts), shape=points.shape)
    indices = given.indices.copy()
    assert_finds_the_groups(estimator(3, random_state=0), given)
    np.testing.assert_array_equal(given.indices, indices)


def test_a_sparse_matrix_without_entries_is_all_zeros(estimator) -> None:
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        model = estimator(3, random_state=0).fit(sparse.csr_array((10, 4)))
    assert model.inertia_ == 0


# Points that are few, equal, or constant.


def test_one_row_is_one_cluster(points, estimator) -> None:
    model = estimator(1).fit(points[:1])
    np.testing.assert_array_equal(model.cluster_centers_, points[:1])
    assert model.inertia_ == 0


def test_one_cluster_is_the_mean(points, estimator) -> None:
    model = estimator(1).fit(points)
    np.testing.assert_allclose(model.cluster_centers_[0], points.mean(axis=0))


def test_as_many_clusters_as_rows_are_the_rows(points, estimator) -> None:
    model = estimator(N_POINTS, random_state=0).fit(points)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(N_POINTS))


def test_constant_columns_do_not_matter(points, estimator) -> None:
    assert_finds_the_groups(
        estimator(3, random_state=0), np.column_stack([np.full(N_POINTS, 7.0), points])
    )


@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 1e150, 1e-150])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_equal_points_are_one_cluster(estimator, value: float, init: str) -> None:
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) .* n_clusters \(3\)"):
        model = estimator(3, random_state=0, init=init).fit(np.full((50, 2), value))
    assert_is_sound(model)
    assert model.inertia_ <= (1e-12 * value) ** 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_fewer_distinct_points_than_clusters_are_each_a_cluster(estimator, dtype, init) -> None:
    distinct = np.random.default_rng(0).normal(size=(4, 3)).astype(dtype)
    given = np.repeat(distinct, 100, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"Number of distinct clusters \(4\)"):
        model = estimator(9, random_state=0, init=init).fit(given)
    assert model.inertia_ == pytest.approx(0, abs=1e-9)
    assert len({tuple(labels) for labels in model.labels_.reshape(4, 100)}) == 4
    assert model.n_iter_ < 200


def test_centers_that_coincide_at_the_start_part(points, estimator) -> None:
    model = estimator(3, init=np.repeat(points[:1], 3, axis=0)).fit(points)
    assert len(set(model.labels_)) == 3


def test_a_center_that_starts_far_away_comes_back(points, estimator) -> None:
    assert_finds_the_groups(estimator(3, init=[[1e100, 0], [0, 0], [30, 0]]), points)


# Weights.


@pytest.mark.parametrize(
    ("value", "message"), [(-1.0, r"contains -1\.0 at index 4"), (np.nan, "NaN"), (np.inf, "inf")]
)
def test_a_bad_weight_is_named(points, estimator, value: float, message: str) -> None:
    weights = np.ones(N_POINTS)
    weights[4] = value
    model = estimator(3, random_state=0)
    with pytest.raises(
        ValueError, match=f"sample_weight {message}|sample_weight contains {message}"
    ):
        model.fit(points, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(points).score(points, sample_weight=weights)


@pytest.mark.parametrize("weights", [np.ones(3), np.ones((N_POINTS, 2)), np.zeros(N_POINTS), "abc"])
def test_weights_of_a_wrong_shape_or_all_zero_are_refused(points, estimator, weights) -> None:
    with pytest.raises(ValueError, match="sample_weight"):
        estimator(3).fit(points, sample_weight=weights)


def test_a_single_point_with_weight_is_the_only_cluster(points, estimator) -> None:
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model = estimator(3, random_state=0).fit(points, sample_weight=np.eye(N_POINTS)[4])
    assert_is_sound(model)
    assert model.inertia_ == 0
    assert model.n_relocated_ == 0


# Values at the ends of the range.


@pytest.mark.parametrize("exponent", [-150, -100, -18, 18, 100, 150])
def test_float64_of_any_size_is_right(points, estimator, exponent: int) -> None:
    model = estimator(3, random_state=0)
    assert_finds_the_groups(model, points * 10.0**exponent)
    distances = model.transform(points * 10.0**exponent) / 10.0**exponent
    np.testing.assert_allclose(
        distances, estimator(3, random_state=0).fit_transform(points), rtol=1e-6
    )


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


@pytest.mark.parametrize("exponent", [154, 200, 306])
def test_values_too_large_to_be_squared_are_refused(points, estimator, exponent: int) -> None:
    with pytest.raises(ValueError, match=r"values as large as .* overflow float64. Scale X"):
        estimator(3).fit(points * 10.0**exponent)
    with pytest.raises(ValueError, match="Input X has values as large as"):
        estimator(3, random_state=0).fit(points).predict(points * 10.0**exponent)


@pytest.mark.parametrize("exponent", [-160, -200, -310])
def test_differences_too_small_to_be_squared_are_refused(points, estimator, exponent: int) -> None:
    with pytest.raises(ValueError, match=r"varies by no more than .* vanish in float64. Scale X"):
        estimator(3).fit(points * 10.0**exponent)


@pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")
def test_subnormal_differences_beside_normal_ones_do_not_matter(points, estimator) -> None:
    assert_finds_the_groups(
        estimator(3, random_state=0), np.column_stack([points, points * 1e-310])
    )


@pytest.mark.parametrize(
    ("dtype", "shift"), [(np.float64, 1e4), (np.float64, 1e10), (np.float32, 1e4)]
)
def test_groups_far_from_the_origin_are_found(points, estimator, dtype, shift: float) -> None:
    assert_finds_the_groups(estimator(3, random_state=0), (points + shift).astype(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_a_million_features_are_no_trouble(estimator, container) -> None:
    given = np.zeros((6, 1_000_000), dtype=np.float32)
    given[:3, :10], given[3:, -10:] = 1, 1
    given[np.arange(6), 100 + np.arange(6)] = 0.1
    # A search would sweep over as many features again and again.
    alone = {} if estimator is KMeans else {"effort": "none", "schedule": 2.0}
    model = estimator(2, random_state=0, **alone).fit(container(given))
    assert model.inertia_ == pytest.approx(6 * (0.1 * 2 / 3) ** 2 + 12 * (0.1 / 3) ** 2, rel=1e-4)


# Parameters.


def test_a_bad_schedule_is_refused_before_any_sweep(points) -> None:
    model = PowerKMeans(3, random_state=0, schedule=[-1, -2, 3.0])
    with pytest.raises(ValueError, match=r"schedule=.* has 3\.0 at index 2"):
        model.fit(points)
    assert not hasattr(model, "cluster_centers_")


@pytest.mark.parametrize("power", [-0.02, -0.1, -1e3, -1e6, -1e300, -math.inf])
def test_every_negative_power_is_right(points, power: float) -> None:
    with warnings.catch_warnings():
        # The nearest to zero take more sweeps to harden than they get.
        warnings.filterwarnings("ignore", ".*cut short", ConvergenceWarning)
        assert_finds_the_groups(PowerKMeans(3, power=power, random_state=0, schedule=1.5), points)


@pytest.mark.parametrize("growth", [1.01, 10, 1e300])
def test_every_growth_above_one_is_right(points, growth: float) -> None:
    assert_finds_the_groups(PowerKMeans(3, schedule=growth, random_state=0), points)


def test_the_wrong_number_of_features_is_refused(points, estimator) -> None:
    model = estimator(3, random_state=0).fit(points)
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2"):
            method(points[:, :1])


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


def test_nan_names_the_parameter_that_takes_it() -> None:
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])
    for takes in (PowerKMeans(2), KMeans(2), KHarmonicMeans(2), FuzzyCMeans(2)):
        with pytest.raises(ValueError, match=r'row 1, column 0\. Pass missing="observed" to use'):
            takes.fit(X)
    for takes_none in (FuzzyCMeans(2), PowerKMeans(2, missing="observed")):
        infinite = np.where(np.isnan(X), np.inf, X)
        with pytest.raises(ValueError, match=r"row 1, column 0\. Leave such rows out"):
            takes_none.fit(infinite)


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
