"""scikit-learn's own tests of k-means, run against ours: what they need, and what is left out.

The file is the one that is installed with scikit-learn, unchanged; `test_k_means.py` reads it with
`sklearn.cluster.KMeans`, `MiniBatchKMeans`, `k_means` and `kmeans_plusplus` replaced.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

CYTHON = "tests a compiled helper of scikit-learn that we do not have"
MINI_BATCH = "calls private helpers of scikit-learn's MiniBatchKMeans"
INIT_SIZE = "an init_size below n_clusters raises, instead of a warning"
FEW_BATCHES = "no ten batches in vain in a row among 28 of other sizes"
STEPS = "counts batches of one size, and ours grow"
SAME_OPTIMUM = "fewer passes find the same optimum, which is no worse score"
PRIVATE_N_INIT = "reads the private attribute _n_init"
PRIVATE_INIT_CENTROIDS = "calls the private method _init_centroids"

DESELECTED = {
    "test_relocate_empty_clusters": CYTHON,
    "test_euclidean_distance": CYTHON,
    "test_inertia": CYTHON,
    "test_is_same_clustering": CYTHON,
    "test_minibatch_update_consistency": MINI_BATCH,
    "test_minibatch_kmeans_warning_init_size": INIT_SIZE,
    "test_minibatch_reassign": MINI_BATCH,
    "test_minibatch_kmeans_init_size": MINI_BATCH,
    "test_minibatch_iter_steps": STEPS,
    "test_score_max_iter[MiniBatchKMeans]": SAME_OPTIMUM,
    "test_minibatch_declared_convergence[0-10]": FEW_BATCHES,
    "test_kmeans_init_auto_with_initial_centroids": PRIVATE_N_INIT,
    "test_n_init_auto": PRIVATE_N_INIT,
    "test_sample_weight_init": PRIVATE_INIT_CENTROIDS,
    "test_sample_weight_zero": PRIVATE_INIT_CENTROIDS,
}

SEEDS = (42, 0, 1)
"""42 is scikit-learn's own choice for a quick run."""


@pytest.fixture(params=SEEDS)
def global_random_seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[np.float64, np.float32])
def global_dtype(request: pytest.FixtureRequest) -> type[np.floating]:
    return request.param


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the deselected functions and cases."""
    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def is_left_out(item: pytest.Item) -> bool:
    if item.path.parent != item.config.rootpath / "tests" / "sklearn_own":
        return False
    name = getattr(item, "originalname", item.name)
    return (
        bool({name, item.name} & DESELECTED.keys())
        or re.sub(r"\[\d+-", "[", item.name) in DESELECTED
    )
