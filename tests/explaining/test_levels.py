"""Ward's merges of centers: exact, in the form of SciPy, and cut into groups."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage

from powermeans import KMeans, PowerKMeans, merge_tree, plots


@pytest.mark.parametrize("seed", range(10))
def test_merges_of_single_points_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 60)), int(rng.integers(1, 6))))
    expected = linkage(X, "ward")
    found = merge_tree(KMeans.from_centers(X), X).linkage
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert is_valid_linkage(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_merge_adds_half_the_square_of_its_height_to_the_sum_of_squares(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    model = PowerKMeans(8, random_state=0).fit(X, sample_weight=weights)
    tree = merge_tree(model, X, sample_weight=weights)
    former = model.inertia_
    for step, n_groups in enumerate(range(7, 0, -1)):
        groups = tree.cut(n_groups)[model.labels_]
        within = 0.0
        for group in range(n_groups):
            own, w = X[groups == group], weights[groups == group]
            within += w @ np.square(own - np.average(own, axis=0, weights=w)).sum(axis=1)
        assert within - former == pytest.approx(tree.linkage[step, 2] ** 2 / 2, rel=1e-6)
        former = within


def test_cuts_are_those_of_scipy_numbered_by_their_first_clusters():
    X = np.random.default_rng(0).normal(size=(30, 2))
    tree = merge_tree(KMeans.from_centers(X), X)
    for n_groups in (1, 2, 7, 30):
        groups = tree.cut(n_groups)
        theirs = fcluster(tree.linkage, n_groups, "maxclust")
        assert len(set(zip(groups, theirs, strict=True))) == n_groups == len(set(groups))
        firsts = [int(np.argmax(groups == g)) for g in range(n_groups)]
        assert firsts == sorted(firsts)


def test_ties_and_empty_clusters_merge_first():
    centers = [[0.0], [1.0], [2.0], [3.0], [9.0]]
    tree = merge_tree(KMeans.from_centers(centers), [[0.0], [1.0], [2.0], [3.0]])
    assert is_valid_linkage(tree.linkage)
    assert tree.linkage[0, 2] == 0
    assert 4 in tree.linkage[0, :2]
    assert tree.linkage[1, 2] == 1


def test_the_next_level_is_at_the_widest_gap():
    centers = np.array([[0.0], [1], [100], [101], [102], [500], [501]])
    tree = merge_tree(KMeans.from_centers(centers), centers)
    said = "7 groups, which are 3 at the next level: 0 and 1; 2 and 3 and 4; 5 and 6"
    assert str(tree) == said
    ax = tree.plot()
    assert plots.dendrogram(tree).get_title() == "7 clusters, 3 groups at the next level"
    assert len(ax.lines) == 7
    one = merge_tree(KMeans.from_centers([[1.0]]), [[1.0]])
    assert one.linkage.shape == (0, 4)
    assert one.cut(1).tolist() == [0]
    one.plot()


def test_what_ward_does_not_cost_is_refused():
    X = np.abs(np.random.default_rng(0).normal(size=(30, 2))) + 1
    model = PowerKMeans(3, divergence="cosine", random_state=0).fit(X)
    with pytest.raises(ValueError, match="squared Euclidean"):
        merge_tree(model, X)
    with pytest.raises(ValueError, match="n_groups=5 is not possible: pass 1 to 4"):
        merge_tree(KMeans(4, random_state=0).fit(X), X).cut(5)
