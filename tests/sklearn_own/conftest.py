"""scikit-learn's own tests of k-means, run against ours: what they need, and what is left out.

The file is the one that is installed with scikit-learn, unchanged; `test_k_means.py` reads it with
`sklearn.cluster.KMeans`, `MiniBatchKMeans`, `k_means` and `kmeans_plusplus` replaced.
"""

import re

import numpy as np
import pytest

LEFT_OUT = {
    "tests a compiled helper of scikit-learn that we do not have": (
        "test_relocate_empty_clusters",
        "test_euclidean_distance",
        "test_inertia",
        "test_is_same_clustering",
    ),
    "calls private helpers of scikit-learn's MiniBatchKMeans": (
        "test_minibatch_update_consistency",
        "test_minibatch_reassign",
        "test_minibatch_kmeans_init_size",
    ),
    "an init_size below n_clusters raises, instead of a warning": (
        "test_minibatch_kmeans_warning_init_size",
    ),
    "no ten batches in vain in a row among 28 of other sizes": (
        "test_minibatch_declared_convergence[0-10]",
    ),
    "counts batches of one size, and ours grow": ("test_minibatch_iter_steps",),
    "fewer passes find the same optimum, which is no worse score": (
        "test_score_max_iter[MiniBatchKMeans]",
    ),
    "reads the private attribute _n_init or calls the private method _init_centroids": (
        "test_kmeans_init_auto_with_initial_centroids",
        "test_n_init_auto",
        "test_sample_weight_init",
        "test_sample_weight_zero",
    ),
}
DESELECTED = {name for names in LEFT_OUT.values() for name in names}


@pytest.fixture(params=[42, 0])  # 42 is scikit-learn's own choice for a quick run
def global_random_seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[np.float64, np.float32])
def global_dtype(request: pytest.FixtureRequest) -> type[np.floating]:
    return request.param


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def is_left_out(item: pytest.Item) -> bool:
    if item.path.parent != item.config.rootpath / "tests" / "sklearn_own":
        return False
    names = {getattr(item, "originalname", item.name), item.name}
    return bool(DESELECTED & {*names, re.sub(r"\[\d+-", "[", item.name)})
