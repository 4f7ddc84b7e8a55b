import itertools
import warnings

import numpy as np
import pytest
import sklearn.cluster
from problems import blobs
from scipy import sparse
from sklearn.datasets import make_circles, make_moons
from sklearn.gaussian_process.kernels import RBF
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import cross_val_score

from powermeans.errors import IndefiniteKernelWarning
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.methods import spectral as module

POINTS, NEW = np.split(blobs(160, noise=0.6), [120])


def distances_by_the_kernel(model, gram: np.ndarray, of_new: np.ndarray, itself: np.ndarray):
    """The squared distances of the paper, from K of landmarks, of points with them, and K(x, x)."""
    a = model.dual_coef_
    within = np.einsum("jl,lm,jm->j", a, gram, a)
    return itself[:, None] - 2 * of_new @ a.T + within


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize(
    ("kernel", "gamma"), [("rbf", 0.3), ("laplacian", 0.2), ("poly", 0.1), ("cosine", None)]
)
def test_distances_are_those_of_the_kernel(kernel, gamma, n_landmarks) -> None:
    given = {"kernel": kernel, "gamma": gamma, "n_landmarks": n_landmarks}
    model = KernelPowerKMeans(4, random_state=0, **given).fit(POINTS)
    assert model.is_exact_ == (n_landmarks is None)

    def k(x, z):
        given = {} if gamma is None else {"gamma": gamma}
        return pairwise_kernels(x, z, metric=kernel, filter_params=True, coef0=1, **given)

    gram = k(model.landmarks_, model.landmarks_)
    np.testing.assert_array_equal(model.landmarks_, POINTS[model.landmark_indices_])
    for of in (POINTS, NEW):
        expected = distances_by_the_kernel(model, gram, k(of, model.landmarks_), np.diag(k(of, of)))
        np.testing.assert_allclose(np.square(model.transform(of)), expected, atol=1e-7)
        np.testing.assert_array_equal(model.predict(of), expected.argmin(axis=1))
        assert model.score(of) == pytest.approx(-expected.min(axis=1).sum(), rel=1e-7)
    np.testing.assert_array_equal(model.predict(POINTS), model.labels_)
    assert model.score(POINTS) == pytest.approx(-model.inertia_, rel=1e-9)


@pytest.mark.parametrize("kernel", [RBF(0.9), lambda x, z: np.exp(-((x - z) @ (x - z)) / 1.62)])
def test_a_callable_is_a_kernel(kernel) -> None:
    points, new = POINTS[:40], NEW[:10]
    called = KernelPowerKMeans(3, kernel=kernel, random_state=0).fit(points)
    named = KernelPowerKMeans(3, gamma=1 / 1.62, random_state=0).fit(points)
    np.testing.assert_array_equal(called.labels_, named.labels_)
    np.testing.assert_allclose(called.transform(new), named.transform(new), atol=1e-6)


def test_landmarks_are_no_copies_and_a_precomputed_kernel_is_the_kernel() -> None:
    points = np.repeat(POINTS[:30], 3, axis=0)
    weights = np.ones(90)
    weights[:6] = 0.0
    model = KernelPowerKMeans(2, n_landmarks=28, random_state=0).fit(points, sample_weight=weights)
    assert model.is_exact_
    assert len(model.landmark_indices_) == 28
    assert len(np.unique(points[model.landmark_indices_], axis=0)) == 28
    assert model.landmark_indices_.min() >= 6
    points = np.random.default_rng(0).normal(size=(2001, 2))
    model = KernelPowerKMeans(3, effort="none", random_state=0).fit(points)
    assert not model.is_exact_
    assert len(model.landmark_indices_) == 500
    assert model.score(points) == pytest.approx(-model.inertia_, rel=1e-9)
    points = blobs(300, noise=0.6)
    exact = KernelPowerKMeans(4, gamma=1.0, random_state=0).fit(points)
    everything = KernelPowerKMeans(4, gamma=1.0, n_landmarks=300, random_state=0).fit(points)
    assert everything.is_exact_
    assert everything.inertia_ == exact.inertia_
    np.testing.assert_array_equal(np.sort(exact.landmark_indices_), np.arange(300))
    models = [KernelPowerKMeans(4, gamma=1.0, n_landmarks=n, random_state=0) for n in (5, 40, 299)]
    excess = [model.fit(points).inertia_ / exact.inertia_ - 1 for model in models]
    # One landmark short, hardly anything lies outside.
    assert excess[0] > excess[1] > abs(excess[2])
    assert abs(excess[2]) < 1e-4
    named = KernelPowerKMeans(4, gamma=0.3, random_state=0).fit(POINTS)
    model = KernelPowerKMeans(4, kernel="precomputed", random_state=0)
    model.fit(rbf_kernel(POINTS, gamma=0.3))
    assert model.inertia_ == pytest.approx(named.inertia_, rel=1e-9)
    assert adjusted_rand_score(model.labels_, named.labels_) == 1.0
    of_new = rbf_kernel(NEW, POINTS, gamma=0.3)
    assert adjusted_rand_score(model.predict(of_new), named.predict(NEW)) == 1.0
    assert not hasattr(model, "landmarks_")
    # What of new points is outside of the span does not count.
    gram = rbf_kernel(POINTS, gamma=0.3)[np.ix_(*2 * [model.landmark_indices_])]
    with_landmarks = of_new[:, model.landmark_indices_]
    within = np.square(model.embed(of_new)).sum(axis=1)
    expected = distances_by_the_kernel(model, gram, with_landmarks, within)
    np.testing.assert_allclose(np.square(model.transform(of_new)), expected, atol=1e-7)
    assert (within < 1).any()
    gram = rbf_kernel(POINTS, gamma=0.3)
    scores = cross_val_score(KernelPowerKMeans(3, kernel="precomputed", random_state=0), gram, cv=3)
    assert (scores < 0).all()


def test_negative_eigenvalues_are_zero_and_embeddings_span_those_of_scikit_learn() -> None:
    """The eigenvalues are 1 and -1; along that of 1 both points have the same coordinate."""
    model = KernelPowerKMeans(1, kernel="precomputed")
    with pytest.warns(IndefiniteKernelWarning, match="from -1 to 1"):
        model.fit([[0.0, 1.0], [1.0, 0.0]])
    coordinates = model.embed([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(np.abs(coordinates), np.sqrt([[0.5], [0.5]]))
    assert coordinates[0] == pytest.approx(coordinates[1])
    assert model.inertia_ == pytest.approx(0.0, abs=1e-15)
    points, _ = MOONS
    ours = SpectralClustering(3, gamma=10.0, random_state=0).fit(points)
    theirs = sklearn.cluster.SpectralClustering(3, gamma=10.0, random_state=0).fit(points)
    np.testing.assert_allclose(ours.affinity_matrix_, theirs.affinity_matrix_, atol=1e-12)
    embedding = spectral_embedding(ours.affinity_matrix_, n_components=3, drop_first=False)
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(embedding), atol=1e-5)


@pytest.mark.parametrize(
    ("given", "X", "message"),
    [
        ({"kernel": "precomputed"}, np.ones((3, 2)), r"shape \(3, 2\)"),
        ({"kernel": "precomputed"}, [[1.0, 0.5], [0.4, 1.0]], r"not symmetric: X\[0, 1\] is 0.5"),
        ({"kernel": "precomputed"}, [[1.0, np.nan], [np.nan, 1.0]], "NaN"),
        ({"kernel": "poly", "degree": 500}, 1e3 * POINTS, "not finite for all pairs"),
        ({"kernel": "poly", "degree": 2.5}, POINTS - POINTS.mean(axis=0), "pass a whole degree"),
    ],
)
@pytest.mark.filterwarnings("ignore:the kernel is not positive")
def test_what_is_no_kernel_is_refused(given, X, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelPowerKMeans(1, **given).fit(X)


@pytest.mark.filterwarnings("ignore:the kernel is not positive")
def test_a_broken_degree_is_for_products_that_are_not_negative() -> None:
    X = np.abs(POINTS)
    model = KernelPowerKMeans(2, kernel="poly", degree=2.5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


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


def test_pieces_stay_whole_and_where_sparse_points_are_does_not_matter() -> None:
    sizes = [4, 60, 5, 80, 3, 70]
    graph = rings_of_nodes(sizes)
    for n_clusters in (1, 3, 5):
        labels = labels_of(graph, n_clusters, affinity="precomputed")
        pairs = set(zip(np.repeat(np.arange(6), sizes), labels, strict=True))
        assert len(pairs) == 6
        assert len(set(labels)) == n_clusters
    points, expected = MOONS
    far = np.column_stack([points + 1e6, np.where(points[:, 0] > 0, 1e-3, 0.0)])
    labels = labels_of(sparse.csr_array(far), 2, gamma=30.0)
    assert is_same(labels, expected)
    near = sparse.csr_array(np.column_stack([points, np.zeros(len(points))]))
    model = SpectralClustering(2, gamma=30.0, random_state=0).fit(near)
    np.testing.assert_allclose(model.affinity_matrix_, rbf_kernel(points, gamma=30.0), atol=1e-12)


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


@pytest.mark.parametrize("far", [15.0, 20.0, 25.0, 26.9, 30.0])
def test_pieces_that_hardly_hang_together_overflow_nowhere(far: float) -> None:
    points = np.array([[0.0, 0.0], [18.9, 0.0], [9.45, np.sqrt(far**2 - 9.45**2)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = SpectralClustering(3, gamma=1.0, random_state=0).fit(points)
    assert sorted(model.labels_) == [0, 1, 2]
