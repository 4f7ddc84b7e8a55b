"""What holds for estimators of every kind: errors and warnings, and no input crashes."""

import itertools
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import powermeans as pm
from powermeans import KMeans, PowerKMeans, Prepare
from powermeans.engine.seeds import MarkovChainSeeds, TreeSeeds
from powermeans.engine.stopping import MaxSeconds
from powermeans.errors import UnlikeScalesWarning, warn_caller
from powermeans.methods import (
    DPMeans,
    EntropyWeightedPowerKMeans,
    FuzzyCMeans,
    GradientKMeans,
    KernelPowerKMeans,
    KHarmonicMeans,
    OnlineKMeans,
    SelfOrganizingMap,
    SpectralClustering,
    SphericalMixture,
)
from powermeans.methods.base import CenterEstimator
from powermeans.points.checks import points as scales
from powermeans.points.checks.points import unlike_scales
from powermeans.points.observed import ObservedPoints
from powermeans.saving import estimators
from tests.attacks import numbers
from tests.attacks.running import REFUSED, RIGHT

POINTS = np.random.default_rng(0).normal(size=(200, 2))
NAN, INF = math.nan, math.inf
OF_CENTERS = [
    ("n_clusters", [0, -1, 3.0]),
    ("init", ["k-means", np.ones((2, 2)), np.ones((3, 5)), np.ones(6)]),
    ("init", [np.full((3, 2), NAN), np.full((3, 2), 1e200), [["a", "b"]] * 3]),
    ("init", [lambda X, n_clusters, random_state: X[:2]]),
    ("n_init", [0]),
    ("max_iter", [0]),
    ("tol", [-1e-3, NAN]),
    ("random_state", ["a"]),
]
# An estimator, its parameter, values; then what the error says where that is more than the name.
BAD: list[tuple[Any, ...]] = [
    *((kind(3, random_state=0), *of) for kind in (pm.KMeans, pm.PowerKMeans) for of in OF_CENTERS),
    (pm.PowerKMeans(3), "power", [0, 0.0, 0.5, 1, 2, NAN, INF, "automatic", None]),
    (pm.PowerKMeans(3), "schedule", [1, 1.0, 0.9, -2, NAN, INF, "fast", None]),
    (pm.PowerKMeans(3), "schedule", [[], [1.0], [-1, -2, 3.0], [NAN], iter([-1.0])]),
    (pm.PowerKMeans(3), "n_threads", [0, 1.5, "all", True]),
    (pm.PowerKMeans(3), "divergence", ["chebyshev"], r"'mahalanobis'.*Got 'chebyshev'"),
    (pm.PowerKMeans(3), "polish", ["yes"]), (pm.PowerKMeans(3), "callback", ["print"]),
    (pm.PowerKMeans(3), "stop", [0.1, "LabelsSettled", MaxSeconds]),
    (FuzzyCMeans(2), "fuzzifier", [1.0, 0.5, NAN, 100.0]),
    (KHarmonicMeans(2), "p", [0, -1.0, "two", 50.1, 1000.0, INF]),
    (SphericalMixture(2), "variance", [0.0, -1.0, INF, "fixed", 1.7e308]),
    (SphericalMixture(2), "shares", [[0.5, 0.5]]),
    (SphericalMixture(2), "temperature", [0, "hot"]),
    (SphericalMixture(2), "init", ["kmeans", [[1.0, 2.0]]]),
    (SphericalMixture(2), "n_clusters", [0]), (SphericalMixture(2), "tol", [-1]),
    (DPMeans(), "penalty", [0, 0.0, -1.0, NAN, INF, "from k", None]),
    (DPMeans(), "n_clusters_wanted", [0, 2.5, "three"]),
    (EntropyWeightedPowerKMeans(2), "penalty", [0, -1.0]),
    (GradientKMeans(4), "learning_rate", [-0.1, NAN, INF, "fast", lambda t: -1.0]),
    (KernelPowerKMeans(2), "kernel", ["no such", 3]),
    (KernelPowerKMeans(2), "gamma", [-1.0, "auto"]),
    (KernelPowerKMeans(2), "n_landmarks", [0]), (KernelPowerKMeans(2), "degree", [-1]),
    (KernelPowerKMeans(2), "init", [np.zeros((2, 2))]),
    (pm.RobustPowerKMeans(2), "init", [TreeSeeds(), MarkovChainSeeds()], 'pass init="k-me'),
    (pm.RobustPowerKMeans(2), "n_clusters", ["auto"]),
    (pm.BalancedKMeans(2), "n_clusters", ["auto"]),
    (pm.RobustPowerKMeans(2), "trim", [-0.1, 1.0, 1.5, NAN, "some", None]),
    (pm.RobustPowerKMeans(2), "divergence", ["manhattan", "mahalanobis"], "divergence='ma"),
    (pm.RobustPowerKMeans(2), "divergence", ["hellinger"], "centers, which are no means"),
    (SelfOrganizingMap(), "shape", [(0, 3), (2.5, 3), (2, 3, 4), 7]),
    (SelfOrganizingMap(), "topology", ["torus"]), (SelfOrganizingMap(), "radius", [0.0, 0.2]),
    (SelfOrganizingMap(), "final_radius", [-1.0]), (SelfOrganizingMap(), "n_epochs", [0]),
    (SelfOrganizingMap(), "init", [np.zeros((3, 2)), "linear"]),
    (pm.LinkedKMeans(3), "n_clusters", [0, "auto"]), (pm.LinkedKMeans(3), "effort", ["much"]),
    (pm.MiniBatchPowerKMeans(12), "batch_size", [0]),
    (pm.MiniBatchPowerKMeans(12), "max_iter", [0]),
    (pm.MiniBatchPowerKMeans(12), "power", [1.0, "soft"]),
    (pm.MiniBatchPowerKMeans(12), "growth", [1.0]), (pm.MiniBatchPowerKMeans(12), "memory", [0.0]),
    (pm.MiniBatchPowerKMeans(12), "reassignment_ratio", [-1.0]),
    (pm.MiniBatchPowerKMeans(12), "init_size", [3], "init_size=3 is less than n_clusters=12"),
    (pm.MiniBatchPowerKMeans(12), "init", [np.zeros((3, 2))], "n_clusters=12"),
    (OnlineKMeans(4), "learning_rate", [-0.1, 1.1, NAN, "slow", True, [0.5] * 200]),
    (OnlineKMeans(4), "learning_rate", [lambda t: 2.0], "2.0 at step 1"),
    (OnlineKMeans(4), "learning_rate", [lambda t: "a"], "learning_rate is 'a' at step 1:"),
    (OnlineKMeans(4), "learning_rate", [lambda t: np.ones(2)], "at step 1"),
    (OnlineKMeans(4), "n_epochs", [0, 2**63, 10**400]), (OnlineKMeans(4), "batch", ["yes"]),
    (OnlineKMeans(4), "init", [np.zeros((3, 2))], "n_clusters=4"),
    (OnlineKMeans(4), "init_size", [0]),
]  # fmt: skip


def refused() -> Iterator[Any]:
    for estimator, parameter, values, *message in BAD:
        name = f"{type(estimator).__name__} {parameter}"
        for value in values:
            yield pytest.param(
                estimator, parameter, value, *(message or [rf"\b{parameter}\b"]), id=name
            )


@pytest.mark.parametrize(("estimator", "parameter", "value", "message"), list(refused()))
def test_a_parameter_that_cannot_be_used_is_named(estimator, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**{parameter: value}).fit(POINTS)


ESTIMATORS = [
    pm.PowerKMeans(),
    KHarmonicMeans(),
    FuzzyCMeans(),
    pm.PowerKMeans(polish=False, init="plain-k-means++"),
    pm.KMeans(),
    pm.KMeans("auto"),
    OnlineKMeans(),
    GradientKMeans(),
    pm.MiniBatchKMeans(),
    pm.MiniBatchPowerKMeans(),
    pm.MiniBatchPowerKMeans(max_iter=2, effort="balanced", power=-math.inf),
    DPMeans(),
    SelfOrganizingMap(shape=(1, 3)),  # one check wants few clusters
    SelfOrganizingMap(shape=(2, 3), topology="hexagonal", init="random"),
    KernelPowerKMeans(),
    KernelPowerKMeans(kernel="precomputed"),
    KernelPowerKMeans(kernel="linear", n_landmarks=5),
    SpectralClustering(),
    SpectralClustering(affinity="nearest_neighbors", n_neighbors=3),
    SphericalMixture(),
    SphericalMixture(shares="learned", variance=0.5, init="random", n_init=2, random_state=0),
    pm.BalancedKMeans(effort="fast"),
    pm.LinkedKMeans(effort="fast"),
    pm.RobustPowerKMeans(),
    EntropyWeightedPowerKMeans(),
    pm.PowerKMeans(divergence="cosine"),
    pm.PowerKMeans(divergence="mahalanobis", effort="fast"),
    pm.PowerKMeans(divergence="manhattan", effort="fast"),
    pm.PowerKMeans(missing="observed"),
]


def checks_that_cannot_pass(estimator) -> dict[str, str]:
    """Names of checks whose data the method is not for, with the reason."""
    if getattr(estimator, "divergence", None) == "cosine":
        reason = "their points have rows of zeros, which have no direction"
        of_zeros = ("s_dtypes", "_sparse_tag", "_sparse_array", "_sparse_matrix")
        return {f"check_estimator{name}": reason for name in of_zeros}
    if getattr(estimator, "kernel", None) == "precomputed":
        return {"check_clustering": "it knows no clustering of a precomputed kernel"}
    if isinstance(estimator, pm.BalancedKMeans):
        reason = "limits of size divide copies, and no point that weighs as much as they do"
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
    return {}


# Some checks have fewer distinct points than clusters, and we say so.
@pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.filterwarnings("ignore:the kernel is not positive")  # one makes a matrix indefinite
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=checks_that_cannot_pass)
def test_scikit_learn_check_passes(estimator, check) -> None:
    learns_covariance = getattr(estimator, "divergence", None) == "mahalanobis"
    if learns_covariance and check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("15 points of 30 features have no covariance: what is found hangs on rounding")
    check(estimator)


def test_errors_list_the_words_of_a_parameter_in_the_same_order_always() -> None:
    for kind in [*estimators() - {Pipeline}, Prepare]:
        for one in itertools.chain.from_iterable(kind._parameter_constraints.values()):
            words = [*getattr(one, "options", [])]
            assert words == sorted(words), kind


def test_weights_are_routed_through_a_pipeline() -> None:
    weights = np.random.default_rng(1).uniform(size=len(POINTS))
    estimator = pm.PowerKMeans(3, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(estimator).set_fit_request(sample_weight=True)
        through_pipeline = make_pipeline(asked).fit(POINTS, sample_weight=weights)[-1]
    alone = estimator.fit(POINTS, sample_weight=weights)
    np.testing.assert_array_equal(through_pipeline.cluster_centers_, alone.cluster_centers_)


@pytest.mark.parametrize(
    "kind", [pm.KMeans, KHarmonicMeans, pm.MiniBatchPowerKMeans, pm.RobustPowerKMeans]
)
@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("far", [1e8, 1e30, 1e-30])
def test_a_distance_does_not_change_with_the_rows_beside_it(kind, n_features, far):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(9, n_features)).astype(np.float32)
    centers = np.vstack([points[:2] + 0.1, np.full((1, n_features), 1e8)]).astype(np.float32)
    model = kind.from_centers(centers)
    among = np.vstack([points, np.full((90, n_features), far, dtype=np.float32)])
    alone = np.vstack([model.transform(points[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(model.transform(among)[:9], alone, rtol=1e-5)
    np.testing.assert_allclose(alone, cdist(points, centers), rtol=1e-5)


def test_distances_that_vanish_as_squares_in_float32_keep_their_digits():
    points = np.vstack([1e-23 * np.arange(1, 9)[:, None], [[20]]]).astype(np.float32)
    model = pm.KMeans.from_centers(points[:2])
    np.testing.assert_allclose(model.transform(points), cdist(points, points[:2]), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EntropyWeightedPowerKMeans, {}),
        (pm.PowerKMeans, {"missing": "observed"}),
        (pm.PowerKMeans, {"divergence": "poisson"}),
        (pm.KMeans, {}),
    ],
)
def test_a_label_does_not_change_with_the_rows_beside_it(kind, options, dtype):
    rng = np.random.default_rng(0)
    ties = rng.integers(0, 40, size=(60, 1)) / 10  # many lie as far from two centers
    far = 10.0 ** rng.uniform(-3, 3, size=(60, 1))
    X = np.concatenate([ties, far]).astype(dtype)
    model = kind.from_centers(np.array([[0.1], [0.3], [1.2], [2.0], [3.1]], dtype), **options)
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(model.predict(X), alone)


@pytest.mark.parametrize(
    "model",
    [OnlineKMeans(6, random_state=0), pm.PowerKMeans(6, divergence="manhattan", random_state=0)],
)
@pytest.mark.parametrize("exponent", [-105, 1, 433])
def test_points_times_a_power_of_two_give_the_same_bits(model, exponent):
    X = np.random.default_rng(0).normal(size=(88, 1))
    centers = model.fit(X).cluster_centers_
    scaled = model.fit(np.ldexp(X, exponent)).cluster_centers_
    np.testing.assert_array_equal(np.ldexp(scaled, -exponent), centers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_at_the_mean_have_no_direction_with_weights_or_as_copies(dtype):
    X = np.array([[1001, np.nan], [np.nan, 0.1], [999.1, 0.3], [1001.3, 0.2]], dtype)
    weights = np.array([1, 3, 2, 1])
    of_weights = ObservedPoints(X, weights.astype(float)).critical_power()
    of_copies = ObservedPoints(np.repeat(X, weights, axis=0)).critical_power()
    assert of_weights == pytest.approx(of_copies, rel=1e-4)


LABELS = np.repeat([0, 1, 2], 30)
GROUPS = (
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
    model = KMeans(3, random_state=0).fit(GROUPS)
    model.cluster_centers_ = centers
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=f"cluster_centers_ .*{message}"):
            method(GROUPS)


@of_both
@pytest.mark.parametrize("dtype", [np.float32, int, object])
def test_good_centers_assigned_to_an_estimator_serve(kind, dtype) -> None:
    model = kind(3, random_state=0).fit(GROUPS)
    centers = [[0, 40], [0, 0], [30, 0], [500, 500]]
    model.cluster_centers_ = np.array(centers, dtype=dtype, order="F")
    np.testing.assert_array_equal(model.predict(GROUPS), np.array([1, 2, 0])[LABELS])
    table = model.set_output(transform="pandas").transform(GROUPS)
    assert (*table.shape, table.columns[3]) == (90, 4, f"{kind.__name__.lower()}3")


@of_both
def test_few_places_and_far_starts(kind) -> None:
    np.testing.assert_allclose(kind(1).fit(GROUPS).cluster_centers_[0], GROUPS.mean(axis=0))
    model = kind(90, random_state=0).fit(GROUPS)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(90))
    assert_finds_the_groups(kind(3, init=[[1e100, 0], [0, 0], [30, 0]]), GROUPS)
    for given, weights in ((sparse.csr_array((10, 4)), None), (GROUPS, np.eye(90)[4])):
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
            model = kind(3, random_state=0).fit(given, sample_weight=weights)
        assert_is_sound(model)
        assert model.inertia_ == model.n_relocated_ == 0


@of_both
@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
def test_differences_too_small_to_be_squared_are_refused_where_there_are_no_others(kind) -> None:
    for exponent in (-160, -310):
        with pytest.raises(ValueError, match=r"varies by no more than .* Scale X"):
            kind(3).fit(GROUPS * 10.0**exponent)
    both = np.column_stack([GROUPS, GROUPS * 1e-310])
    assert_finds_the_groups(kind(3, random_state=0), both)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_estimator_and_the_points_the_oracle_finds_no_fault(seed, tmp_path) -> None:
    assert numbers.prepare(tmp_path)(random.Random(seed)) in (RIGHT, REFUSED)


@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
@pytest.mark.parametrize("divergence", ["squared_euclidean", "manhattan", "poisson"])
def test_distances_beyond_float32_are_refused_and_those_within_are_not(divergence: str) -> None:
    X = np.array([[1e30, 1], [1, 1e30], [2, 2], [3, 3]], dtype=np.float32)
    model = PowerKMeans(2, divergence=divergence, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    far = np.array([[2, 2], [3e38, 3e38]], dtype=np.float32)
    with pytest.raises(ValueError, match="row 1 of X is too far from a center for float32"):
        model.transform(far)
    model.predict(far)


def test_scales_that_are_called_alike_by_their_ranges_are_so_by_all_measures(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    tables = [rng.normal(size=(50, 6)) * 10 ** rng.uniform(-1.2, 1.2, 6) for _ in range(200)]
    tables += [table * 1e300 for table in tables[:9]] + [
        np.ones((50, 6)),
        tables[0] * [0, *[1] * 5],
    ]
    tables += [np.where(rng.random(table.shape) < 0.1, np.nan, table) for table in tables[:9]]
    found = [unlike_scales(table) for table in tables]
    monkeypatch.setattr(scales, "_have_like_ranges", lambda points: False)
    assert found == [unlike_scales(table) for table in tables]
    assert {one is None for one in found} == {True, False}


THREE_COLUMNS = np.random.default_rng(0).normal(size=(60, 3))
COPIES = np.repeat(THREE_COLUMNS[:2], 10, axis=0)
INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])
MANY_STEPS = {"n_clusters": 5, "max_iter": 1, "random_state": 0}
CASES: list[tuple[Any, Any]] = [
    (pm.KMeans(4), COPIES),
    (pm.KMeans(2), THREE_COLUMNS * [1.0, 1.0, 1e6]),
    (pm.KMeans(2, init=THREE_COLUMNS[:2], n_init=3), THREE_COLUMNS),
    (pm.KMeans(1, algorithm="elkan"), THREE_COLUMNS),
    (pm.PowerKMeans(4), COPIES),
    (pm.PowerKMeans(**MANY_STEPS, effort="none"), THREE_COLUMNS),
    (pm.PowerKMeans(2, init=THREE_COLUMNS[:2], n_init=3), THREE_COLUMNS),
    (pm.RobustPowerKMeans(**MANY_STEPS, effort="none"), THREE_COLUMNS),
    (pm.LinkedKMeans(2), THREE_COLUMNS * [1.0, 1.0, 1e6]),
    (KHarmonicMeans(**MANY_STEPS), THREE_COLUMNS),
    (FuzzyCMeans(**MANY_STEPS), THREE_COLUMNS),
    (GradientKMeans(**MANY_STEPS), THREE_COLUMNS),
    (EntropyWeightedPowerKMeans(4), COPIES),
    (SphericalMixture(**MANY_STEPS), THREE_COLUMNS),
    (DPMeans(n_clusters_wanted=5), COPIES),
    (OnlineKMeans(4), COPIES),
    (pm.MiniBatchPowerKMeans(4), COPIES),
    (KernelPowerKMeans(2, kernel="precomputed"), INDEFINITE),
    (make_pipeline(StandardScaler(), pm.KMeans(4)), COPIES),
]


def warned(call: Callable[[Any], object], X: Any) -> set[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(X)
    return {warning.filename for warning in told}


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize(("model", "points"), CASES)
def test_a_warning_names_the_line_of_the_caller(model: Any, points: Any, method: str) -> None:
    assert warned(getattr(model, method), points) == {__file__}


def test_only_lines_of_ours_are_passed_over_by_warnings() -> None:
    assert warned(lambda X: pm.k_means(X, 4), COPIES) == {__file__}
    scope: dict[str, Any] = {"__name__": "sklearn_of_another", "warn_caller": warn_caller}
    exec(compile("def act(_): warn_caller('note', UserWarning)", "other.py", "exec"), scope)
    assert warned(scope["act"], None) == {"other.py"}


def test_nothing_hides_that_scales_are_unlike() -> None:
    X = scaled_apart(1e150)
    X[::7, 0] = np.nan
    with pytest.warns(UnlikeScalesWarning, match="column 2 varies .*e\\+150 times"):
        KMeans(2, missing="observed", random_state=0).fit(X)
    X = np.abs(scaled_apart(1e4)) + 1
    PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(X)
    model = PowerKMeans(2, divergence="gamma", random_state=0).fit(X)
    model.predict(X)
    with pytest.warns(UnlikeScalesWarning):
        KMeans(2, random_state=0).fit(X).predict(X)


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.uniform(20, 70, 200), "income": rng.uniform(2e4, 9e4, 200), "one": np.ones(200)}
    )


FITS = [
    KMeans(3, random_state=0).fit,
    PowerKMeans(3, random_state=0).fit,
    PowerKMeans(3, divergence="manhattan", random_state=0).fit,
    pm.MiniBatchPowerKMeans(3, random_state=0).fit,
    partial(pm.choose_k, k_range=range(2, 4), random_state=0),
]


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_warns_once_and_names_the_columns(fit) -> None:
    with pytest.warns(UnlikeScalesWarning) as told:
        fit(people())
    assert len(told) == 1
    text = str(told[0].message)
    ratio = people()["income"].std() / people()["age"].std()
    assert f"varies {ratio:,.0f} times as much as" in text
    assert "'income'" in text or "column 1" in text


def scaled_apart(times: float) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(100, 3)) * [1.0, 1.0, times]


QUIET = {
    "scales a little apart": scaled_apart(50.0),
    "pixels": load_digits().data,
    "rare marks in the same unit": np.eye(300)[:, :2] + np.arange(300)[:, None] % 2 * [0, 1],
    "heavy tails": np.random.default_rng(5).standard_cauchy((300, 4)) ** 3,
    "one column varies": np.column_stack([np.arange(50.0), np.full(50, 7.0)]),
}


@pytest.mark.parametrize("points", QUIET.values(), ids=QUIET)
def test_columns_in_one_unit_get_no_warning(points: np.ndarray) -> None:
    PowerKMeans(2, effort="fast", random_state=0).fit(points)  # warnings are errors here


@pytest.mark.parametrize("value", [5e-324, 1e-310])
def test_constant_columns_of_subnormal_size_do_not_vary(value):
    points = np.full((6, 3), value)
    assert unlike_scales(points) is None
    points[:, 0] = np.arange(6.0)
    assert unlike_scales(points) is None


def test_the_base_of_estimators_names_all_that_they_override() -> None:
    def private(*kinds: type) -> set[str]:
        return {name for kind in kinds for name in vars(kind) if re.match("_[a-z]", name)}

    kinds = {kind for model in ESTIMATORS for kind in type(model).__mro__}
    below = {kind for kind in kinds if issubclass(kind, CenterEstimator)}
    ours = [kind for kind in CenterEstimator.__mro__ if kind.__module__.startswith("powermeans.")]
    hooks = private(*below - {CenterEstimator}) & private(*ours)
    assert len(hooks) > 12
    of_scikit_learn = {"_abc_impl", "_sklearn_auto_wrap_output_keys", "_parameter_constraints"}
    assert hooks - of_scikit_learn <= {*re.findall(r"`(_\w+)`", CenterEstimator.__doc__)}
