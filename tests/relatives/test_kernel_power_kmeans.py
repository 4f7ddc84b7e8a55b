"""Kernel power k-means against explicit features, against distances by the kernel, and by hand."""

import numpy as np
import pytest
from problems import blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import cross_val_score

from powermeans import IndefiniteKernelWarning, KernelPowerKMeans, PowerKMeans

POINTS, NEW = np.split(blobs(160, noise=0.6), [120])


def products(points: np.ndarray) -> np.ndarray:
    """The features of which (<x, z> + 1)^2 is the inner product, in two dimensions."""
    x, y = points.T
    root = np.sqrt(2)
    return np.stack([x * x, y * y, root * x * y, root * x, root * y, np.ones_like(x)], axis=1)


def distances_by_the_kernel(model, gram: np.ndarray, of_new: np.ndarray, itself: np.ndarray):
    """The squared distances of the paper, from K of landmarks, of points with them, and K(x, x)."""
    a = model.dual_coef_
    within = np.einsum("jl,lm,jm->j", a, gram, a)
    return itself[:, None] - 2 * of_new @ a.T + within


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_power_k_means_on_the_features_of_a_polynomial(weighted: bool) -> None:
    points = POINTS
    weights = np.random.default_rng(1).uniform(size=len(points)) if weighted else None
    kernel = KernelPowerKMeans(4, kernel="poly", degree=2, gamma=1, random_state=0)
    kernel.fit(points, sample_weight=weights)
    plain = PowerKMeans(4, random_state=0).fit(products(points), sample_weight=weights)
    assert kernel.n_components_ == 6
    assert kernel.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
    assert adjusted_rand_score(kernel.labels_, plain.labels_) == 1.0


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


def test_a_precomputed_kernel_is_the_kernel() -> None:
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


@pytest.mark.parametrize("kernel", [RBF(0.9), lambda x, z: np.exp(-((x - z) @ (x - z)) / 1.62)])
def test_a_callable_is_a_kernel(kernel) -> None:
    points, new = POINTS[:40], NEW[:10]
    called = KernelPowerKMeans(3, kernel=kernel, random_state=0).fit(points)
    named = KernelPowerKMeans(3, gamma=1 / 1.62, random_state=0).fit(points)
    np.testing.assert_array_equal(called.labels_, named.labels_)
    np.testing.assert_allclose(called.transform(new), named.transform(new), atol=1e-6)


def test_all_points_as_landmarks_are_exact_and_fewer_come_near() -> None:
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


def test_landmarks_are_no_copies_and_five_hundred_of_many_points() -> None:
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


def test_negative_eigenvalues_are_taken_as_zero() -> None:
    """The eigenvalues are 1 and -1; along that of 1 both points have the same coordinate."""
    model = KernelPowerKMeans(1, kernel="precomputed")
    with pytest.warns(IndefiniteKernelWarning, match="from -1 to 1"):
        model.fit([[0.0, 1.0], [1.0, 0.0]])
    coordinates = model.embed([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(np.abs(coordinates), np.sqrt([[0.5], [0.5]]))
    assert coordinates[0] == pytest.approx(coordinates[1])
    assert model.inertia_ == pytest.approx(0.0, abs=1e-15)


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


def test_a_precomputed_kernel_is_cut_into_folds_by_rows_and_columns() -> None:
    gram = rbf_kernel(POINTS, gamma=0.3)
    scores = cross_val_score(KernelPowerKMeans(3, kernel="precomputed", random_state=0), gram, cv=3)
    assert (scores < 0).all()
