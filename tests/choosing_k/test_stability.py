"""How often each cluster comes back, by hand and against what is known of stable clusters."""

import numpy as np
import pytest
from problems import on_lattice
from sklearn.cluster import AgglomerativeClustering
from sklearn.cluster import KMeans as TheirKMeans
from threadpoolctl import threadpool_limits

from powermeans import KMeans, PowerKMeans, choose_k, stability
from powermeans.choosing_k.stability import jaccards, mean_jaccards
from powermeans.types import FloatArray


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
    points = on_lattice(3, n_points=300)
    found = stability(model.fit(points), points, n_samples=10, random_state=0)
    np.testing.assert_allclose(found.jaccard, 1.0)
    assert str(found).splitlines()[0] == "cluster 0 comes back in 100 % of the samples"


def test_the_number_of_samples_is_checked() -> None:
    with pytest.raises(ValueError, match="The 'n_samples' parameter of stability"):
        stability(KMeans(2).fit([[0.0], [9.0]]), [[0.0], [9.0]], n_samples=0)


def test_the_halves_of_a_round_cluster_do_not_come_back() -> None:
    points = on_lattice(3, n_points=300)
    points[::3] = points[::3] * 3 - 40.0  # one wide cluster far from two others
    model = KMeans(4, n_init=10, random_state=0).fit(points)
    found = stability(model, points, random_state=0)
    is_half = np.bincount(model.labels_) < 90
    assert is_half.sum() == 2
    assert found.jaccard[is_half].max() < 0.85
    assert found.jaccard[~is_half].min() > 0.95


def as_clusterboot(
    points: FloatArray, labels: np.ndarray, n_starts: int, n_samples: int
) -> FloatArray:
    """Return the similarities of each sample as fpc computes them: unique points, cold starts."""
    rng, n_clusters = np.random.default_rng(1), labels.max() + 1
    found = np.empty((n_samples, n_clusters))
    for b in range(n_samples):
        drawn = np.unique(rng.integers(len(points), size=len(points)))
        model = TheirKMeans(n_clusters, n_init=n_starts, random_state=b)
        with threadpool_limits(1):  # of few points several threads are slow
            model.fit(points[drawn])
        for j in range(n_clusters):
            own = labels[drawn] == j
            others = [model.labels_ == i for i in range(n_clusters)]
            found[b, j] = max((own & other).sum() / (own | other).sum() for other in others)
    return found


@pytest.mark.parametrize(("apart", "n_clusters"), [(12.0, 3), (12.0, 4), (2.5, 3)])
def test_shares_are_those_of_clusterboot_up_to_the_error_of_their_means(
    apart: float, n_clusters: int
) -> None:
    """Three clusters are apart, or one of them is cut in two, or all overlap."""
    points = on_lattice(3, n_points=240, apart=apart)
    model = KMeans(n_clusters, n_init=10, random_state=0).fit(points)
    expected = as_clusterboot(points, model.labels_, n_starts=5, n_samples=40)
    found = stability(model, points, n_samples=100, random_state=0).jaccard
    errors = expected.std(axis=0, ddof=1) * np.sqrt(1 / 40 + 1 / 100)
    assert (np.abs(found - expected.mean(axis=0)) <= 4 * errors + 1e-12).all()
    assert (errors.max() > 0) == (n_clusters == 4 or apart < 12)


def test_a_warm_start_finds_halves_again_that_one_cold_start_misses() -> None:
    points = on_lattice(3, n_points=240)
    model = KMeans(4, n_init=10, random_state=0).fit(points)
    is_half = np.bincount(model.labels_) < 60
    cold = as_clusterboot(points, model.labels_, n_starts=1, n_samples=40).mean(axis=0)
    found = stability(model, points, n_samples=40, random_state=0).jaccard
    assert is_half.sum() == 2
    assert (found[is_half] > cold[is_half]).all()


def test_a_choice_tells_how_much_of_each_cluster_comes_back() -> None:
    choice = choose_k(on_lattice(3, n_points=300), range(2, 7), random_state=0)
    np.testing.assert_allclose(choice.stability, np.ones(3))
    assert "comes back in 100 % of bootstrap samples" in choice._repr_html_()
    assert choose_k(on_lattice(3, n_points=30), range(2, 4), random_state=0).stability is None
