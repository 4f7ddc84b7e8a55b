"""Ward's merges of centers: exact, and in the form of SciPy."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage

from powermeans import KMeans, PowerKMeans, merge_tree


@pytest.mark.parametrize("seed", range(10))
def test_merges_of_single_points_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 60)), int(rng.integers(1, 6))))
    expected = linkage(X, "ward")
    found = merge_tree(KMeans.from_centers(X), X)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert is_valid_linkage(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_merge_adds_half_the_square_of_its_height_to_the_sum_of_squares(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    model = PowerKMeans(8, random_state=0).fit(X, sample_weight=weights)
    merges = merge_tree(model, X, sample_weight=weights)
    former = model.inertia_
    for step, n_groups in enumerate(range(7, 0, -1)):
        groups = fcluster(merges, n_groups, "maxclust")[model.labels_]
        within = 0.0
        for group in range(1, n_groups + 1):
            own, w = X[groups == group], weights[groups == group]
            within += w @ np.square(own - np.average(own, axis=0, weights=w)).sum(axis=1)
        assert within - former == pytest.approx(merges[step, 2] ** 2 / 2, rel=1e-6)
        former = within


def test_ties_and_empty_clusters_merge_first_and_one_cluster_has_no_merges():
    centers = [[0.0], [1.0], [2.0], [3.0], [9.0]]
    merges = merge_tree(KMeans.from_centers(centers), [[0.0], [1.0], [2.0], [3.0]])
    assert is_valid_linkage(merges)
    assert merges[0, 2] == 0
    assert 4 in merges[0, :2]
    assert merges[1, 2] == 1
    assert merge_tree(KMeans.from_centers([[1.0]]), [[1.0]]).shape == (0, 4)


def test_what_ward_does_not_cost_is_refused():
    X = np.abs(np.random.default_rng(0).normal(size=(30, 2))) + 1
    model = PowerKMeans(3, divergence="cosine", random_state=0).fit(X)
    with pytest.raises(ValueError, match="squared Euclidean"):
        merge_tree(model, X)
