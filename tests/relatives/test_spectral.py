"""Spectral clustering separates what is connected, and scikit-learn's solvers agree."""

import itertools
import warnings

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse
from sklearn.datasets import make_circles, make_moons
from sklearn.manifold import spectral_embedding
from sklearn.metrics.pairwise import rbf_kernel

from powermeans import SpectralClustering
from powermeans.relatives import spectral as module

MOONS = make_moons(300, noise=0.05, random_state=0)
RINGS = make_circles(400, factor=0.4, noise=0.04, random_state=0)


def rings_of_nodes(sizes: list[int], link: float = 0.0) -> sparse.csr_array:
    """Cycles, each joined to the next by an edge."""
    ends = np.cumsum([0, *sizes])
    graph = sparse.lil_array((ends[-1], ends[-1]))
    for start, end in itertools.pairwise(ends):
        nodes = np.arange(start, end)
        graph[nodes, np.roll(nodes, 1)] = 1.0
        if link and end < ends[-1]:
            graph[start, end] = link
    return sparse.csr_array(graph.maximum(graph.T))


def labels_of(X, n_clusters: int, **parameters) -> np.ndarray:
    return SpectralClustering(n_clusters, random_state=0, **parameters).fit_predict(X)


def is_same(labels, expected) -> bool:
    pairs = set(zip(labels, expected, strict=True))
    return len(pairs) == len(set(labels)) == len(set(expected))


@pytest.mark.parametrize("points_and_labels", [MOONS, RINGS], ids=["moons", "rings"])
@pytest.mark.parametrize("parameters", [{"gamma": 30.0}, {"affinity": "nearest_neighbors"}])
def test_moons_and_rings_are_separated(points_and_labels, parameters) -> None:
    points, expected = points_and_labels
    assert is_same(labels_of(points, 2, **parameters), expected)


def test_the_embedding_spans_that_of_scikit_learn() -> None:
    points, _ = MOONS
    ours = SpectralClustering(3, gamma=10.0, random_state=0).fit(points)
    theirs = sklearn.cluster.SpectralClustering(3, gamma=10.0, random_state=0).fit(points)
    np.testing.assert_allclose(ours.affinity_matrix_, theirs.affinity_matrix_, atol=1e-12)
    embedding = spectral_embedding(ours.affinity_matrix_, n_components=3, drop_first=False)
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(embedding), atol=1e-5)


@pytest.mark.parametrize("sizes", [[40, 50, 60], [300, 200, 250], [30, 60, 5]])
def test_small_graphs_solved_whole_and_large_ones_iterated_agree(sizes, monkeypatch) -> None:
    graph = rings_of_nodes(sizes, link=1e-3)
    expected = np.repeat(np.arange(3), sizes)
    found = []
    for most in (1, 10_000):
        monkeypatch.setattr(module, "_MOST_NODES_SOLVED", most)
        model = SpectralClustering(3, affinity="precomputed", random_state=0).fit(graph)
        assert is_same(model.labels_, expected)
        found.append(np.abs(model.embedding_[:, 0]))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


@pytest.mark.parametrize("convert", [sparse.csr_array.toarray, sparse.csr_array.copy])
@pytest.mark.parametrize("sizes", [[3, 4, 5], [1, 7, 2], [200, 150, 300], [1, 1, 400]])
def test_pieces_with_no_edge_between_them_are_clusters_and_nothing_warns(sizes, convert) -> None:
    graph = convert(rings_of_nodes(sizes))
    model = SpectralClustering(3, affinity="precomputed", random_state=0).fit(graph)
    assert model.n_pieces_ == 3
    assert is_same(model.labels_, np.repeat(np.arange(3), sizes))


def test_more_pieces_than_clusters_stay_whole() -> None:
    sizes = [4, 60, 5, 80, 3, 70]
    graph = rings_of_nodes(sizes)
    for n_clusters in (1, 3, 5):
        labels = labels_of(graph, n_clusters, affinity="precomputed")
        pairs = set(zip(np.repeat(np.arange(6), sizes), labels, strict=True))
        assert len(pairs) == 6
        assert len(set(labels)) == n_clusters


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        (np.ones((5, 3)), {"affinity": "precomputed"}, r"X has the shape \(5, 3\)"),
        (np.triu(np.ones((5, 5))), {"affinity": "precomputed"}, "X is not symmetric"),
        (-np.eye(5), {"affinity": "precomputed"}, "X has the affinity -1.0, below zero"),
        (np.full((5, 5), np.nan), {"affinity": "precomputed"}, "contains NaN"),
        (np.ones((3, 2)), {}, "n_samples=3 should be >= n_clusters=4"),
        (np.ones((5, 2)), {"affinity": "nearest_neighbors"}, "n_neighbors=10 but n_samples=5"),
        (np.ones((5, 2)), {"affinity": "cosine"}, "'affinity' parameter"),
        (np.ones((5, 2)), {"gamma": 0.0}, "'gamma' parameter"),
        (np.ones((1, 2)), {}, "minimum of 2 is required"),
    ],
)
def test_bad_arguments_are_refused(X, parameters, message) -> None:
    with pytest.raises(ValueError, match=message):
        labels_of(X, 4, **parameters)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_rounding_in_float32_is_no_asymmetry(container) -> None:
    points, expected = MOONS
    affinities = rbf_kernel(points, gamma=30.0).astype(np.float32)
    affinities[np.triu_indices(len(points), 1)] *= np.float32(1 + 2**-20)
    assert not np.array_equal(affinities, affinities.T)
    labels = labels_of(container(affinities), 2, affinity="precomputed")
    assert is_same(labels, expected)
    with pytest.raises(ValueError, match="X is not symmetric"):
        labels_of(affinities.astype(np.float64), 2, affinity="precomputed")


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_far_point_takes_no_digits_from_the_others(convert) -> None:
    points = np.random.default_rng(0).normal([[-3.0, 0.0]], 0.3, size=(100, 2)) + 0.01
    points[::2, 0] += 6
    far = np.vstack([points, [[1e20, 1e20]]])
    labels = labels_of(convert(far), 3)
    assert len(set(labels[:-1:2])) == len(set(labels[1:-1:2])) == 1
    assert len({labels[0], labels[1], labels[-1]}) == 3


def test_where_sparse_points_are_does_not_matter() -> None:
    points, expected = MOONS
    far = np.column_stack([points + 1e6, np.where(points[:, 0] > 0, 1e-3, 0.0)])
    labels = labels_of(sparse.csr_array(far), 2, gamma=30.0)
    assert is_same(labels, expected)
    near = sparse.csr_array(np.column_stack([points, np.zeros(len(points))]))
    model = SpectralClustering(2, gamma=30.0, random_state=0).fit(near)
    np.testing.assert_allclose(model.affinity_matrix_, rbf_kernel(points, gamma=30.0), atol=1e-12)


@pytest.mark.parametrize("far", [15.0, 20.0, 25.0, 26.9, 30.0])
def test_pieces_that_hardly_hang_together_overflow_nowhere(far: float) -> None:
    points = np.array([[0.0, 0.0], [18.9, 0.0], [9.45, np.sqrt(far**2 - 9.45**2)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = SpectralClustering(3, gamma=1.0, random_state=0).fit(points)
    assert sorted(model.labels_) == [0, 1, 2]
