"""Divergences of points far from zero, or far from each other, against long double."""

import numpy as np
import pytest
from attacks import oracle
from scipy import sparse

from powermeans import PowerKMeans
from powermeans.divergences import Binomial, Gamma, Generated, Poisson
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Power
from powermeans.points.bregman import DirectBregmanRows
from powermeans.points.opening import open_rows

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
    "counts about 1e6": (Poisson(), oracle.poisson, far_counts(1e6)),
    "counts about 1e8": (Poisson(), oracle.poisson, far_counts(1e8)),
    "counts about 1e12": (Poisson(), oracle.poisson, far_counts(1e12)),
    "a count of 1e12": (
        Poisson(),
        oracle.poisson,
        np.vstack([far_counts(0), np.full((1, 3), 1e12)]),
    ),
    "shares of one size": (Binomial(40), oracle.binomial(40), 20 + 1e-7 * far_counts(0)),
    "sizes about 1e8": (Gamma(), oracle.gamma, far_counts(1e8)),
    "a size of 1e100": (Gamma(), oracle.gamma, with_an_outlier(1e100)),
    "a size of 1e9": (Gamma(), oracle.gamma, with_an_outlier(1e9)),
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
    for given in (points, sparse.csr_array(points)):
        rows = open_rows(given, divergence=Poisson())
        labels, inertia = rows.assign(centers.astype(np.float64))
        own = distances[np.arange(400), labels]
        assert (own <= distances.min(axis=1) * (1 + 1e-9)).all()
        assert inertia == pytest.approx(float(distances.min(axis=1).sum()), rel=1e-12)


def test_only_points_that_products_cannot_measure_are_measured_one_by_one():
    far = open_rows(with_an_outlier(1e100), divergence=Gamma())
    assert isinstance(far, DirectBregmanRows)
    for divergence, points in [(Poisson(), far_counts(0)), (Gamma(), with_an_outlier(3.0))]:
        assert not isinstance(open_rows(points, divergence=divergence), DirectBregmanRows)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_convex_function_that_leaves_distances_no_digits_is_warned_of(kind):
    squares = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)
    points = np.random.default_rng(0).normal(size=(60, 2))
    open_rows(kind(points + 1e3), divergence=squares)
    with pytest.warns(RuntimeWarning, match="few digits, and labels may be wrong: subtract"):
        open_rows(kind(points + 1e8), divergence=squares)
