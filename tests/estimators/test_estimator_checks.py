"""scikit-learn's checks of an estimator, all of them, and metadata routing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import powermeans as pm

ESTIMATORS = [
    pm.PowerKMeans(),
    pm.KHarmonicMeans(),
    pm.FuzzyCMeans(),
    pm.PowerKMeans(polish=False, init="plain-k-means++"),
    pm.KMeans(),
    pm.OnlineKMeans(),
    pm.GradientKMeans(),
    pm.MiniBatchKMeans(),
    pm.MiniBatchPowerKMeans(),
    pm.MiniBatchPowerKMeans(max_iter=2, effort="balanced", power=-math.inf),
    pm.DPMeans(),
    pm.SelfOrganizingMap(shape=(1, 3)),  # one check wants few clusters
    pm.SelfOrganizingMap(shape=(2, 3), topology="hexagonal", init="random"),
    pm.KernelPowerKMeans(),
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
    if isinstance(estimator, pm.BalancedKMeans):
        reason = "limits of size divide copies, and no point that weighs as much as they do"
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
    return {}


# Some checks have fewer distinct points than clusters, and we say so.
@pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning"
)
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
