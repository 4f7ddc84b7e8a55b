"""scikit-learn's checks of an estimator, all of them, and metadata routing."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from powermeans import FuzzyCMeans, KHarmonicMeans, KMeans, PowerKMeans

ESTIMATORS = [
    PowerKMeans(),
    KHarmonicMeans(),
    FuzzyCMeans(),
    FuzzyCMeans(fuzzifier=1.5, init="random"),
    PowerKMeans(polish=False, init="plain-k-means++"),
    PowerKMeans(power=-1.0, growth=1.5, n_init=2),
    KMeans(),
    KMeans(init="random", n_init=2),
]


# Some checks have fewer distinct points than clusters, and we say so.
@pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check_passes(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", [PowerKMeans(3, random_state=0), KMeans(3, random_state=0)])
def test_sample_weight_is_routed_through_a_pipeline(estimator) -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(40, 2)), rng.uniform(size=40)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = sklearn.clone(estimator).set_fit_request(sample_weight=True)
        through_pipeline = make_pipeline(asked).fit(points, sample_weight=weights)[-1]
    alone = estimator.fit(points, sample_weight=weights)
    unweighted = sklearn.clone(estimator).fit(points)
    np.testing.assert_array_equal(through_pipeline.cluster_centers_, alone.cluster_centers_)
    assert not np.array_equal(unweighted.cluster_centers_, alone.cluster_centers_)
