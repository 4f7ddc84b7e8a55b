"""How often each cluster comes back, by hand and against what is known of stable clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from powermeans import KMeans, PowerKMeans, choose_k, stability
from powermeans.choosing_k.stability import jaccards, mean_jaccards
from powermeans.types import FloatArray


def blobs(n_points: int = 300) -> FloatArray:
    places = 12.0 * np.array([[0, 0], [0, 1], [1, 0]])
    return places[np.arange(n_points) % 3] + np.random.default_rng(0).normal(size=(n_points, 2))


def test_similarities_are_those_by_hand() -> None:
    labels, others = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 5, 1, 1, 1, 0])
    np.testing.assert_allclose(jaccards(labels, others, 4), [2 / 3, 2 / 3, 1.0, np.nan])


def test_means_are_over_the_samples_that_have_a_cluster() -> None:
    labels = np.array([0] * 50 + [1])

    def all_in_one(drawn):
        return np.zeros(len(drawn), dtype=int)

    rng, again = np.random.RandomState(0), np.random.RandomState(0)
    found = mean_jaccards(labels, all_in_one, 8, rng)
    drawn = [np.unique(again.randint(51, size=51)) for _ in range(8)]
    shares = [np.mean(labels[some] == 0) for some in drawn]
    assert found[0] == pytest.approx(np.mean(shares))
    assert found[1] == pytest.approx(np.mean([1 - s for s in shares if s < 1]))


@pytest.mark.parametrize("model", [PowerKMeans(3), KMeans("auto"), AgglomerativeClustering(3)])
def test_clusters_that_are_apart_come_back(model) -> None:
    points = blobs()
    found = stability(model.fit(points), points, n_samples=10, random_state=0)
    np.testing.assert_allclose(found.jaccard, 1.0)
    assert str(found).splitlines()[0] == "cluster 0 comes back in 100 % of the samples"


def test_the_halves_of_a_round_cluster_do_not_come_back() -> None:
    points = blobs()
    points[::3] = points[::3] * 3 - 40.0  # one wide cluster far from two others
    model = KMeans(4, n_init=10, random_state=0).fit(points)
    found = stability(model, points, random_state=0)
    is_half = np.bincount(model.labels_) < 90
    assert is_half.sum() == 2
    assert found.jaccard[is_half].max() < 0.85
    assert found.jaccard[~is_half].min() > 0.95


def test_a_choice_tells_how_much_of_each_cluster_comes_back() -> None:
    choice = choose_k(blobs(), range(2, 7), random_state=0)
    np.testing.assert_allclose(choice.stability, np.ones(3))
    assert "comes back in 100 % of bootstrap samples" in choice._repr_html_()
    assert choose_k(blobs(30), range(2, 4), random_state=0).stability is None


def test_the_number_of_samples_is_checked() -> None:
    with pytest.raises(ValueError, match="The 'n_samples' parameter of stability"):
        stability(KMeans(3).fit(blobs()), blobs(), n_samples=0)
