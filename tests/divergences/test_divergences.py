"""Bregman divergences against their definition, SciPy and, of far points, long double."""

import math
from dataclasses import is_dataclass

import numpy as np
import pytest
from attacks import oracle
from divergence_cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from problems import sq_distances
from scipy import sparse, stats
from scipy.spatial.distance import cdist
from scipy.special import kl_div

from powermeans import PowerKMeans, divergences, open_data
from powermeans.divergences import (
    Binomial,
    Gamma,
    Generated,
    InverseGaussian,
    Mahalanobis,
    Manhattan,
    Poisson,
    Separable,
    SquaredEuclidean,
    resolve,
)
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Power
from powermeans.points.bregman import DirectBregmanPoints
from powermeans.points.opening import open_rows

cases = st.sampled_from(sorted(CASES))


COUNTS, SIZES = np.arange(0.0, 13), np.linspace(0.1, 9, 9)


@pytest.mark.parametrize(
    ("divergence", "log_likelihood", "x"),
    [
        (Poisson(), lambda x, m: stats.poisson.logpmf(x, m), COUNTS),
        (Binomial(12), lambda x, m: stats.binom.logpmf(x, 12, m / 12), COUNTS),
        (Gamma(3.0), lambda x, m: stats.gamma.logpdf(x, 3.0, scale=m / 3), SIZES),
        (InverseGaussian(), lambda x, m: stats.invgauss.logpdf(x, m / 2, scale=2), SIZES),
    ],
)
def test_a_divergence_is_what_the_log_likelihood_lacks_of_its_most(divergence, log_likelihood, x):
    """D(x, a) = log p(x | x) - log p(x | a), whatever the normalisation."""
    for a in (2.5, 6.0):
        distances = divergence.pairwise(x[:, None], np.array([[a]]))[:, 0]
        expected = log_likelihood(x, x) - log_likelihood(x, a)
        np.testing.assert_allclose(distances, expected, rtol=1e-10, atol=1e-10)


@given(name=cases, seed=st.integers(0, 2**32 - 1))
def test_the_weighted_mean_is_the_best_center(name, seed):
    points, rng = CASES[name].points(15, 3, seed), np.random.default_rng(seed)
    divergence, weights = CASES[name].divergence(3), rng.uniform(0.1, 2, size=15)
    mean = weights @ points / weights.sum()
    others = mean * rng.uniform(0.8, 1.2, size=(6, 3))
    if name == "logistic":
        others = np.clip(others, 0.01, 0.99)
    totals = weights @ divergence.pairwise(points, np.vstack([mean, others]))
    assert totals[0] <= totals[1:].min() * (1 + 1e-9)


@given(seed=st.integers(0, 99), exponent=st.integers(-300, 150))
def test_only_the_directions_of_given_centers_count(seed, exponent):
    points, scales = np.random.default_rng(seed).normal(size=(20, 3)), np.ones((3, 1))
    labels = []
    for scales[:2] in (1.0, 10.0**exponent):  # of two centers, and not of the third
        model = PowerKMeans(3, divergence="cosine", effort="none", init=points[:3] * scales)
        labels.append(model.fit(points).labels_)
    np.testing.assert_array_equal(*labels)


def test_mahalanobis_is_euclidean_after_whitening():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    divergence = Mahalanobis(root @ root.T)
    x, theta = rng.normal(size=(7, 5)), rng.normal(size=(3, 5))
    by_hand = [[(a - b) @ np.linalg.solve(root @ root.T, a - b) for b in theta] for a in x]
    np.testing.assert_allclose(divergence.pairwise(x, theta), by_hand, rtol=1e-6)
    whitened = sq_distances(divergence.whitened(x), divergence.whitened(theta))
    np.testing.assert_allclose(whitened, by_hand, rtol=1e-6)


class Exponential(Separable):
    """That of the docstring of `Separable`."""

    def deviance(self, points, centers):
        return np.exp(points) - np.exp(centers) * (1 + (points - centers))

    def slope(self, centers):
        return np.exp(centers)


@given(seed=st.integers(0, 2**32 - 1), n_parts=st.integers(1, 3))
def test_a_distance_of_a_users_own_is_not_negative_and_zero_at_itself(seed, n_parts):
    rng, divergence = np.random.default_rng(seed), Exponential()
    X = rng.normal(scale=rng.choice([1e-3, 1.0, 3.0]), size=(30, 2))
    pairwise = divergence.pairwise(X, X)
    assert (pairwise >= 0).all()
    assert (np.diag(pairwise) == 0).all()
    points = open_data(np.array_split(X, n_parts)) if n_parts > 1 else X
    model = PowerKMeans.from_centers(X[:3], divergence=divergence)
    assert -model.score(points) == pytest.approx(pairwise[:, :3].min(axis=1).sum(), abs=1e-9)
    assert model.score(X[:3]) == 0


@pytest.mark.parametrize("name", sorted(CASES))
def test_curvature_is_the_second_derivative_at_the_center(name):
    """Near the center D(center + e, center) is about half the curvature times e^2."""
    case = CASES[name]
    center = case.points(40, 3, 0).mean(axis=0)
    divergence, step = case.divergence(3), 1e-3 * np.abs(center)
    for feature in range(3):
        nearby = center + step[feature] * np.eye(3)[feature]
        value = divergence.between(nearby[None], center[None])[0]
        half = divergence.curvature(center)[feature] * step[feature] ** 2 / 2
        assert value == pytest.approx(half, rel=1e-2)


def test_centers_on_the_border_come_inside_by_a_hair_whatever_the_bound():
    inner = Poisson().inside(np.array([[0.0, 2.0], [4.0, 0.0]]))
    np.testing.assert_allclose(inner, [[1e-30, 2.0], [4.0, 2e-30]])
    alone = Poisson().inside(np.array([[0.0, 2.0]]))
    np.testing.assert_array_equal(alone[0], inner[0])
    all_of_it = Binomial(8).inside(np.array([[8.0, 0.0], [4.0, 8.0]]))
    assert ((all_of_it > 0) & (all_of_it < 8)).all()
    assert np.isfinite(Binomial(8).slope(all_of_it)).all()
    assert np.isfinite(Poisson().slope(Poisson().inside(np.zeros((2, 2))))).all()
    subnormal = Poisson().inside(np.array([[6e-314, 0.0]]))
    np.testing.assert_array_equal(subnormal, [[6e-314, np.finfo(np.float64).tiny]])
    inner = BelowOrAbove().inside(np.array([[0.0, 7.0], [-3.0, 9.0]]))
    assert -1e-29 < inner[0, 0] < 0
    np.testing.assert_array_equal(inner.ravel()[1:], [np.nextafter(7.0, np.inf), -3.0, 9.0])
    rng = np.random.default_rng(0)
    counts = np.repeat([[0.0, 5.0], [9.0, 0.0]], 20, axis=0)
    counts[:20, 1], counts[20:, 0] = rng.poisson(5, size=20), rng.poisson(9, size=20)
    of_zero = PowerKMeans(2, divergence="poisson", random_state=0).fit(counts)
    moved = PowerKMeans(2, divergence=BelowOrAbove(), random_state=0).fit(counts * [-1, 1] + [0, 7])
    assert moved.inertia_ == pytest.approx(of_zero.inertia_, rel=1e-12)


@pytest.mark.parametrize("center", [6e-314, 5e-324, 1e-300])
def test_shares_of_points_that_float64_cannot_hold_have_logarithms(center):
    points, centers = np.array([[5e12], [1e200], [0.0]]), np.array([[center]])
    long_points, long_centers = points.astype(np.longdouble), centers.astype(np.longdouble)
    some = long_points > 0
    logs = np.where(some, np.log(np.where(some, long_points, 1)) - np.log(long_centers), 0)
    expected = (long_points * logs - long_points + long_centers).astype(np.float64)
    np.testing.assert_allclose(Poisson().pairwise(points, centers), expected, rtol=1e-13)
    ratios = np.log(long_centers) - np.log(np.longdouble(1e200))
    of_gamma = Gamma().pairwise(centers, np.array([[1e200]]))
    np.testing.assert_allclose(of_gamma, (-1 - ratios).astype(np.float64), rtol=1e-13)


class BelowOrAbove(Separable):
    """Relative entropies of feature 0 from its upper, feature 1 from its lower bound."""

    lowest, highest = np.array([-np.inf, 7.0]), np.array([0.0, np.inf])

    def deviance(self, points, centers):
        return kl_div(np.abs(points - [0.0, 7.0]), np.abs(centers - [0.0, 7.0]))

    def slope(self, centers):
        return np.array([-1.0, 1.0]) * np.log(np.abs(centers - [0.0, 7.0]))


def test_divergences_have_names_can_be_compared_hashed_and_told_apart():
    assert resolve("kl") == resolve("poisson")
    assert resolve("logistic") == Binomial(1.0)
    assert resolve("exponential") == resolve("itakura_saito") == Gamma(1.0)
    assert resolve("wald") == resolve("inverse_gaussian") == InverseGaussian()
    given = Gamma(2.0)
    assert resolve(given) is given
    names = [name for kind in divergences.KINDS for name in kind.names]
    assert len(names) == len(set(names)) == len(divergences.NAMES)
    one, same, other = Mahalanobis(np.eye(2)), Mahalanobis([[1, 0], [0, 1]]), Mahalanobis([[2]])
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert repr(one) != repr(Mahalanobis(2 * np.eye(2)))
    assert Binomial(np.array([3.0, 4.0])) == Binomial((3, 4))
    given = np.eye(2)
    kept = Mahalanobis(given)
    given[0, 0] = 7.0
    assert kept == one


OF_ALL = Generated(lambda x: x.sum(), lambda x: 2 * x)
INFINITE = Generated(lambda x: (x * x).sum(axis=1), lambda x: x * np.inf)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OF_ALL.pairwise(np.ones((3, 2)), np.ones((1, 2))), r"phi gave the shape \(\)"),
        (lambda: INFINITE.pairwise(np.ones((3, 2)), np.ones((1, 2))), "grad_phi is not finite"),
        (lambda: Binomial(0), "n_trials=0 must be positive"),
        *((lambda n=n: Binomial(n), "must be positive") for n in ([3, math.nan], [], [[1]], "a")),
        (lambda: Mahalanobis("x"), "pass a matrix of numbers"),
        (lambda: Mahalanobis([[math.nan]]), "not finite"),
        (lambda: Mahalanobis(np.empty((0, 0))), "pass a square matrix"),
        (lambda: Generated(None, np.exp), "phi=None is not callable"),
        (lambda: resolve("binomial"), "Binomial\\(n_trials\\)"),
        (lambda: Mahalanobis([[1.0, 2.0]]), "pass a square matrix"),
        (lambda: Mahalanobis([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (lambda: Mahalanobis([[1.0, 2.0], [2.0, 1.0]]), "has the eigenvalue -1"),
    ],
)
def test_parameters_that_make_no_divergence_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_classes_are_those_of_model_files_and_derived_ones_say_anew_what_they_allow():
    class Halved(Poisson):
        def deviance(self, points, centers):
            return super().deviance(points, centers) / 2

    assert (Halved().moves, Halved.names, Halved().adds_nothing_for_zeros) == (None, (), False)
    assert Poisson().moves is not None
    assert Halved.wanted == Poisson.wanted
    public = {getattr(divergences, name) for name in divergences.__all__}
    assert set(divergences.KINDS) == {kind for kind in public if is_dataclass(kind)} - {Generated}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9000, 50, 7), (3, 2, 300_000)], ids=str)
@pytest.mark.parametrize(
    ("divergence", "metric"), [(SquaredEuclidean(), "sqeuclidean"), (Manhattan(), "cityblock")]
)
def test_chunks_together_cover_all_points(divergence, metric, shape, dtype):
    n_points, n_centers, n_features = shape
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_points, n_features)).astype(dtype)
    centers = rng.normal(size=(n_centers, n_features))
    chunks = list(divergence.in_chunks(points, centers))
    assert len(chunks) > 1
    covered = np.concatenate([np.arange(n_points)[rows] for rows, _ in chunks])
    np.testing.assert_array_equal(covered, np.arange(n_points))
    found = divergence.pairwise(points, centers)
    np.testing.assert_allclose(found, cdist(points, centers, metric), rtol=1e-12)


def test_nothing_cancels_far_from_the_origin_where_points_are_measured_one_by_one():
    center = np.array([[1e8, 1e8]])
    point = center + np.array([2.0**-20, 0.0])
    assert SquaredEuclidean().pairwise(point, center)[0, 0] == 2.0**-40
    points = np.array([[1.0 + 2.0**-20]], dtype=np.float32)
    sq_dist = SquaredEuclidean().pairwise(points, np.array([[1.0 + 2.0**-40]]))
    assert sq_dist.dtype == np.float64
    assert math.sqrt(sq_dist[0, 0]) == pytest.approx(2.0**-20 - 2.0**-40, rel=1e-12)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(500, 30)) * (rng.uniform(size=(500, 30)) < 0.2)
    centers = rng.normal(size=(100, 30))
    of_sparse = SquaredEuclidean().pairwise(sparse.csr_array(points), centers)
    np.testing.assert_array_equal(of_sparse, SquaredEuclidean().pairwise(points, centers))
    far = open_rows(with_an_outlier(1e100), divergence=Gamma())
    assert isinstance(far, DirectBregmanPoints)
    for divergence, points in [(Poisson(), far_counts(0)), (Gamma(), with_an_outlier(3.0))]:
        assert not isinstance(open_rows(points, divergence=divergence), DirectBregmanPoints)


Long = np.longdouble


def truth(distances, points, centers):
    return distances(points.astype(Long)[:, None, :], centers.astype(Long)[None])


def far_counts(offset):
    return np.random.default_rng(0).poisson(5, size=(300, 3)) + offset + 1.0


def with_an_outlier(size):
    points = np.random.default_rng(0).gamma(2, 1, size=(300, 3))
    points[0] = size
    return points


FAR = {
    **{f"about {n:g}": (Poisson(), oracle.poisson, far_counts(n)) for n in (1e6, 1e8, 1e12)},
    "a count of 1e12": (Poisson(), oracle.poisson, np.vstack([far_counts(0), [[1e12] * 3]])),
    "shares of one size": (Binomial(40), oracle.binomial(40), 20 + 1e-7 * far_counts(0)),
    "sizes about 1e8": (Gamma(), oracle.gamma, far_counts(1e8)),
    **{f"a {n:g}": (Gamma(), oracle.gamma, with_an_outlier(n)) for n in (1e9, 1e100)},
}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", FAR)
def test_sweeps_and_spreads_of_far_points_have_all_digits(name, kind):
    divergence, deviance, points = FAR[name]
    weights = np.random.default_rng(1).uniform(1, 2, size=len(points))
    centers = np.vstack([points[1:30].mean(axis=0), points[30:90].mean(axis=0), points[0]])
    rows = open_rows(kind(points), weights, divergence=divergence, n_threads=1)
    distances = truth(deviance, points, centers).astype(np.float64)
    objective = rows.sweep(centers, Power(-3.0)).objective
    assert objective == pytest.approx(weights @ power_mean(distances, -3.0), rel=1e-6)
    inertia, error = weights @ distances.min(axis=1), rows.spread(centers).error
    assert rows.nearness(centers).inertia() == pytest.approx(inertia, rel=1e-6)
    assert (error >= 0).all()
    assert error.sum() == pytest.approx(inertia, rel=1e-6)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e9), (np.float64, 1e23)])
def test_small_sizes_beside_huge_ones_keep_centers_of_their_own(dtype, size):
    small, huge = np.random.default_rng(0).uniform(20, 60, size=(2, 10, 17))
    points = np.vstack([small, huge * size]).astype(dtype)
    model = PowerKMeans(2, divergence="gamma", random_state=0).fit(points)
    assert set(model.labels_[:10]) != set(model.labels_[10:])
    centers = np.sort(model.cluster_centers_, axis=0)
    np.testing.assert_allclose(centers[0], points[:10].mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_far_entries_hide_no_nearer_center(dtype):
    rng = np.random.default_rng(0)
    points = (rng.poisson(5, size=(400, 6)) * (rng.random((400, 6)) < 0.4)).astype(dtype)
    points[:200, 0] = 2.0**48 + 2.0**25 * rng.integers(99, size=200)
    centers = points[rng.choice(400, size=30, replace=False)] + 0.5
    distances = truth(oracle.poisson, points, centers)
    for kind in (np.asarray, sparse.csr_array):
        rows = open_rows(kind(points), divergence=Poisson())
        labels, inertia = rows.assign(centers.astype(np.float64))
        own = distances[np.arange(400), labels]
        assert (own <= distances.min(axis=1) * (1 + 1e-9)).all()
        assert inertia == pytest.approx(float(distances.min(axis=1).sum()), rel=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_convex_function_that_leaves_distances_no_digits_is_warned_of(kind):
    squares = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)
    points = np.random.default_rng(0).normal(size=(60, 2))
    open_rows(kind(points + 1e3), divergence=squares)
    with pytest.warns(RuntimeWarning, match="few digits, and labels may be wrong: subtract"):
        open_rows(kind(points + 1e8), divergence=squares)
