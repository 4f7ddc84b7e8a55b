"""Rules that choose the number of clusters, the sets that they are tried on, and their rates."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from benchmarks.choosing_k import compared_rates, counts, of_one_cluster, rate
from benchmarks.rules_for_k import _strength, gap, prediction_strength
from benchmarks.sets_of_known_k import FAMILIES, WITHOUT_CLUSTERS, family_of, generated


def test_the_rates_of_the_measurement_count_what_is_right() -> None:
    cells = [
        {"k": 3, "said": {"bic": 3, "the decision": 3}, "is_clear": True, "tellable": 0.99},
        {"k": 3, "said": {"bic": None, "the decision": 4}, "is_clear": True, "tellable": 0.6},
        {"k": 1, "said": {"bic": 1, "the decision": 7}, "is_clear": False, "tellable": None},
        {"k": 1, "said": {"bic": 2, "the decision": 2}, "is_clear": True, "tellable": None},
    ]
    assert rate(cells, "bic") == rate(cells, "the decision") == pytest.approx(2 / 4)
    assert [counts(cell) for cell in cells] == [True, False, False, False]


def test_rules_are_compared_by_what_they_say_without_doubt() -> None:
    def cell(group: str, k: int, said: int | None, *, is_clear: bool) -> dict:
        ours = {"the decision": said or 2, "gap": said}
        of_all = {**ours, "silhouette": 2, "prediction strength": k}
        return {"group": group, "k": k, "said": of_all, "is_clear": is_clear, "tellable": 0.99}

    cells = [
        cell("judge", 3, 3, is_clear=True),
        cell("judge", 3, 4, is_clear=True),
        cell("judge", 3, 4, is_clear=False),
        cell("judge", 4, None, is_clear=False),
        cell("one cluster", 1, 2, is_clear=False),
        cell("one cluster", 1, 1, is_clear=False),
        cell("tune", 3, 9, is_clear=True),
        {**cell("judge", 3, 9, is_clear=True), "said": {"silhouette": 3}},
    ]
    assert compared_rates(cells)[1:] == [
        ["(sets)", "4", "4", "2"],
        ["`choose_k`", "25", "25", "0"],
        ["silhouette", "0", "100", "100"],
        ["gap", "25", "50", "50"],
        ["prediction strength", "100", "0", "0"],
    ]


def test_single_clusters_of_the_comparison_are_small_and_of_all_shapes() -> None:
    some = list(of_one_cluster(100))
    assert len({known.name.split(",")[0] for known in some}) >= 40
    assert max(known.points.size for known in some) <= 20_000
    assert {known.n_clusters for known in some} == {1}


def test_sets_of_known_k_are_of_all_families_and_drawn_as_they_say() -> None:
    for first in (0, 1):
        assert {family_of(i) for i in range(first, 50, 2)} == {*FAMILIES, *WITHOUT_CLUSTERS}
    known = generated(3)
    np.testing.assert_array_equal(known.points, generated(3).points)
    assert len(np.unique(known.labels)) == known.n_clusters
    means = [known.points[known.labels == j].mean(axis=0) for j in range(known.n_clusters)]
    near = cdist(known.points, means).argmin(axis=1)
    # Round clusters of equal share: the nearest mean is as good as the true Gaussians.
    assert known.name.startswith("round")
    assert (near == known.labels).mean() == pytest.approx(known.tellable, abs=0.03)


BLOBS = make_blobs(200, centers=[[0, 0], [12, 0], [0, 12], [12, 12]], random_state=0)[0]


CLOUD = np.random.default_rng(0).uniform(size=(200, 2))


def test_the_strength_is_that_of_the_worst_cluster_by_hand() -> None:
    # Of the three pairs of the first cluster one stays together, of the second its only one.
    own, predicted = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert _strength(own, predicted, 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("rule", [gap, prediction_strength])
def test_a_rule_counts_four_blobs_and_one_cloud(rule) -> None:
    assert rule(BLOBS, [1, 2, 3, 4, 5, 6], np.random.default_rng(0)) == 4
    assert rule(CLOUD, [1, 2, 3, 4], np.random.default_rng(0)) == 1
