"""What holds for estimators of every kind: errors name the parameter, and scikit-learn's checks."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import powermeans as pm
from powermeans.points.observed import ObservedRows

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
REFUSED: list[tuple[Any, ...]] = [
    *((kind(3, random_state=0), *of) for kind in (pm.KMeans, pm.PowerKMeans) for of in OF_CENTERS),
    (pm.PowerKMeans(3), "power", [0, 0.0, 0.5, 1, 2, NAN, INF, "automatic", None]),
    (pm.PowerKMeans(3), "schedule", [1, 1.0, 0.9, -2, NAN, INF, "fast", None]),
    (pm.PowerKMeans(3), "schedule", [[], [1.0], [-1, -2, 3.0], [NAN], iter([-1.0])]),
    (pm.PowerKMeans(3), "n_threads", [0, 1.5, "all", True]),
    (pm.PowerKMeans(3), "divergence", ["chebyshev"], r"'mahalanobis'.*Got 'chebyshev'"),
    (pm.PowerKMeans(3), "polish", ["yes"]),
    (pm.PowerKMeans(3), "callback", ["print"]),
    (pm.PowerKMeans(3), "stop", [0.1, "LabelsSettled", pm.MaxSeconds]),
    (pm.FuzzyCMeans(2), "fuzzifier", [1.0, 0.5, NAN, 100.0]),
    (pm.KHarmonicMeans(2), "p", [0, -1.0, "two", 50.1, 1000.0, INF]),
    (pm.SphericalMixture(2), "variance", [0.0, -1.0, INF, "fixed", 1.7e308]),
    (pm.SphericalMixture(2), "shares", [[0.5, 0.5]]),
    (pm.SphericalMixture(2), "temperature", [0, "hot"]),
    (pm.SphericalMixture(2), "init", ["kmeans", [[1.0, 2.0]]]),
    (pm.SphericalMixture(2), "n_clusters", [0]),
    (pm.SphericalMixture(2), "tol", [-1]),
    (pm.DPMeans(), "penalty", [0, 0.0, -1.0, NAN, INF, "from k", None]),
    (pm.DPMeans(), "n_clusters_wanted", [0, 2.5, "three"]),
    (pm.EntropyWeightedPowerKMeans(2), "penalty", [0, -1.0]),
    (pm.GradientKMeans(4), "learning_rate", [-0.1, NAN, INF, "fast", lambda t: -1.0]),
    (pm.KernelPowerKMeans(2), "kernel", ["no such", 3]),
    (pm.KernelPowerKMeans(2), "gamma", [-1.0, "auto"]),
    (pm.KernelPowerKMeans(2), "n_landmarks", [0]),
    (pm.KernelPowerKMeans(2), "degree", [-1]),
    (pm.KernelPowerKMeans(2), "init", [np.zeros((2, 2))]),
    (pm.RobustPowerKMeans(2), "trim", [-0.1, 1.0, 1.5, NAN, "some", None]),
    (pm.RobustPowerKMeans(2), "divergence", ["manhattan", "mahalanobis"], "divergence='ma"),
    (pm.SelfOrganizingMap(), "shape", [(0, 3), (2.5, 3), (2, 3, 4), 7]),
    (pm.SelfOrganizingMap(), "topology", ["torus"]),
    (pm.SelfOrganizingMap(), "radius", [0.0, 0.2]),
    (pm.SelfOrganizingMap(), "final_radius", [-1.0]),
    (pm.SelfOrganizingMap(), "n_epochs", [0]),
    (pm.SelfOrganizingMap(), "init", [np.zeros((3, 2)), "linear"]),
    (pm.MiniBatchPowerKMeans(12), "batch_size", [0]),
    (pm.MiniBatchPowerKMeans(12), "max_iter", [0]),
    (pm.MiniBatchPowerKMeans(12), "power", [1.0, "soft"]),
    (pm.MiniBatchPowerKMeans(12), "growth", [1.0]),
    (pm.MiniBatchPowerKMeans(12), "memory", [0.0]),
    (pm.MiniBatchPowerKMeans(12), "reassignment_ratio", [-1.0]),
    (pm.MiniBatchPowerKMeans(12), "init_size", [3], "init_size=3 is less than n_clusters=12"),
    (pm.MiniBatchPowerKMeans(12), "init", [np.zeros((3, 2))], "n_clusters=12"),
    (pm.OnlineKMeans(4), "learning_rate", [-0.1, 1.1, NAN, "slow", True, [0.5] * 200]),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: 2.0], "2.0 at step 1"),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: "a"], "learning_rate is 'a' at step 1:"),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: np.ones(2)], "at step 1"),
    (pm.OnlineKMeans(4), "n_epochs", [0]),
    (pm.OnlineKMeans(4), "batch", ["yes"]),
    (pm.OnlineKMeans(4), "init", [np.zeros((3, 2))], "n_clusters=4"),
    (pm.OnlineKMeans(4), "init_size", [0]),
]  # fmt: skip


def refused() -> Iterator[Any]:
    for estimator, parameter, values, *message in REFUSED:
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
    pm.KHarmonicMeans(),
    pm.FuzzyCMeans(),
    pm.PowerKMeans(polish=False, init="plain-k-means++"),
    pm.KMeans(),
    pm.KMeans("auto"),
    pm.OnlineKMeans(),
    pm.GradientKMeans(),
    pm.MiniBatchKMeans(),
    pm.MiniBatchPowerKMeans(),
    pm.MiniBatchPowerKMeans(max_iter=2, effort="balanced", power=-math.inf),
    pm.DPMeans(),
    pm.SelfOrganizingMap(shape=(1, 3)),  # one check wants few clusters
    pm.SelfOrganizingMap(shape=(2, 3), topology="hexagonal", init="random"),
    pm.KernelPowerKMeans(),
    pm.KernelPowerKMeans(kernel="precomputed"),
    pm.KernelPowerKMeans(kernel="linear", n_landmarks=5),
    pm.SpectralClustering(),
    pm.SpectralClustering(affinity="nearest_neighbors", n_neighbors=3),
    pm.SphericalMixture(),
    pm.SphericalMixture(shares="learned", variance=0.5, init="random", n_init=2, random_state=0),
    pm.BalancedKMeans(effort="fast"),
    pm.RobustPowerKMeans(),
    pm.EntropyWeightedPowerKMeans(),
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


def test_sample_weight_is_routed_through_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(40, 2)), rng.uniform(size=40)
    estimator = pm.PowerKMeans(3, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = sklearn.clone(estimator).set_fit_request(sample_weight=True)
        through_pipeline = make_pipeline(asked).fit(points, sample_weight=weights)[-1]
    alone = estimator.fit(points, sample_weight=weights)
    np.testing.assert_array_equal(through_pipeline.cluster_centers_, alone.cluster_centers_)


@pytest.mark.parametrize(
    "kind", [pm.KMeans, pm.KHarmonicMeans, pm.MiniBatchPowerKMeans, pm.RobustPowerKMeans]
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (pm.EntropyWeightedPowerKMeans, {}),
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
    [pm.OnlineKMeans(6, random_state=0), pm.PowerKMeans(6, divergence="manhattan", random_state=0)],
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
    of_weights = ObservedRows(X, weights.astype(float)).critical_power()
    of_copies = ObservedRows(np.repeat(X, weights, axis=0)).critical_power()
    assert of_weights == pytest.approx(of_copies, rel=1e-4)


@pytest.mark.parametrize("options", [{"balance": 0.01}, {"balance": 0.3}, {"size_min": 0.1}])
@pytest.mark.parametrize("seed", range(4))
def test_whole_points_reach_sizes_that_copies_reach(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)) + 3 * rng.normal(size=(4, 2))[rng.integers(4, size=60)]
    weights = rng.integers(1, 8, size=60)
    model = pm.BalancedKMeans(4, effort="fast", random_state=0, **options)
    model.fit(X, sample_weight=weights)
    inertia, sizes, gap = model.inertia_, model.sizes_, model.assignment_gap_
    assert sizes.min() > 0
    assert gap <= 0.05
    assert inertia <= 1.05 * model.fit(np.repeat(X, weights, axis=0)).inertia_
