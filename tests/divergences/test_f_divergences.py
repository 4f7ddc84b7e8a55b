"""f-divergences: their centers against roots of slopes by hand, and descents by them."""

from collections.abc import Callable

import numpy as np
import pytest
from attacks import oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import kl_div

from powermeans import PowerKMeans
from powermeans.divergences import ChiSquared, Divergence, FDivergence, Hellinger, Jeffreys
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.opening import open_rows

OWN = {"hellinger": Hellinger(), "chi_squared": ChiSquared(), "jeffreys": Jeffreys()}
names = st.sampled_from(sorted(OWN))
# How fast D(x, theta) rises with theta, derived by hand.
SLOPES: dict[str, Callable] = {
    "hellinger": lambda x, theta: (1 - np.sqrt(x / theta)) / 2,
    "chi_squared": lambda x, theta: 1 - (x / theta) ** 2,
    "jeffreys": lambda x, theta: np.log(theta / x) + 1 - x / theta,
}


def positive(rng: np.random.Generator, n_points: int, n_features: int = 4) -> np.ndarray:
    """Points in three groups, none of whose entries is zero."""
    middles = rng.uniform(1, 40, size=(3, n_features))[rng.integers(3, size=n_points)]
    return rng.gamma(3.0, middles / 3)


def points_of(name: str, rng: np.random.Generator, n_points: int) -> np.ndarray:
    """Points, with zeros where the divergence takes them."""
    points = positive(rng, n_points)
    if name != "jeffreys":
        points[rng.uniform(size=points.shape) < 0.3] = 0
    return points


@pytest.mark.parametrize("name", OWN)
def test_distances_are_those_of_the_oracle(name):
    rng = np.random.default_rng(0)
    x, theta = positive(rng, 20), positive(rng, 20)
    expected = getattr(oracle, name)(*(a.astype(oracle.LONG) for a in (x[:, None], theta[None])))
    np.testing.assert_allclose(OWN[name].pairwise(x, theta), expected.astype(float), rtol=1e-12)


@pytest.mark.parametrize("name", OWN)
def test_a_distance_to_a_near_center_keeps_its_digits(name):
    """Near theta it is f''(1) / (2 theta) times the square of the difference."""
    theta = np.array([[1e8, 3.0]])
    x = theta * (1 + 2.0**-40)
    expected = OWN[name].curvature_at_one / 2 * np.sum((x - theta) ** 2 / theta)
    assert OWN[name].pairwise(x, theta)[0, 0] == pytest.approx(expected, rel=1e-11)
    assert OWN[name].pairwise(theta, theta)[0, 0] == 0


@given(name=names, seed=st.integers(0, 2**32 - 1), power=st.sampled_from([-np.inf, -0.5, -4.0]))
def test_centers_are_where_the_weighted_divergence_is_least(name, seed, power):
    rng = np.random.default_rng(seed)
    points, counts = points_of(name, rng, 40), rng.uniform(0.1, 3, size=40)
    points[0, :] = 7.0  # so that no column is zero
    start = points[rng.choice(40, size=rng.integers(1, 4), replace=False)] + 0.5
    rule = Hard() if power == -np.inf else Power(power)
    weights = counts[:, None] * rule.weigh(OWN[name].pairwise(points, start))[0]
    rows = open_rows(points, counts, divergence=OWN[name])
    found = rows.sweep(start, rule).centers(start)
    about = counts @ OWN[name].pairwise(points, rows.mean()[None])[:, 0]
    assert rows.inertia_about_mean() == pytest.approx(about, rel=1e-12)
    for j in np.flatnonzero(weights.sum(axis=0)):
        for column, theta in zip(points.T, found[j], strict=True):
            x, w = column[weights[:, j] > 0], weights[weights[:, j] > 0, j]
            if not x.any():
                assert theta == 0
                continue
            root = brentq(
                lambda t, x=x, w=w: w @ SLOPES[name](x, t), *(1e-12, 2 * x.max()), xtol=1e-300
            )
            assert theta == pytest.approx(root, rel=1e-11)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=25)
@given(name=names, seed=st.integers(0, 2**32 - 1), power=st.floats(-8, -0.1))
def test_power_k_means_descends(dtype, name, seed, power):
    rng = np.random.default_rng(seed)
    points = points_of(name, rng, 80).astype(dtype)
    counts = rng.uniform(size=80) * (rng.uniform(size=80) < 0.8)
    model = PowerKMeans.as_published(
        4, power=power, divergence=name, random_state=0, max_iter=25, tol=0.0
    )
    with np.errstate(all="raise", under="ignore"):
        falls = np.diff(model.fit(points, sample_weight=counts).history_.objective)
    assert len(falls) == 24
    assert np.all(falls <= 1e-12 * model.history_.objective[0])
    again = PowerKMeans(4, divergence=name, random_state=0, effort="fast")
    inertias = again.fit(points, sample_weight=counts).history_.inertia
    assert again.inertia_ <= inertias[0] * (1 + 1e-6)
    assert again.cluster_centers_.dtype == dtype
    assert np.all(again.cluster_centers_ >= 0)


def test_rows_of_zeros_have_a_center_of_zeros_that_no_other_row_goes_to():
    rng = np.random.default_rng(0)
    counts = np.vstack([np.zeros((20, 3)), rng.poisson(20, size=(20, 3)), np.full((20, 3), 90)])
    for name in ("hellinger", "chi_squared"):
        model = PowerKMeans(3, divergence=name, random_state=0).fit(counts)
        assert np.ptp(model.labels_.reshape(3, 20), axis=1).tolist() == [0, 0, 0]
        assert not model.cluster_centers_[model.labels_[0]].any()


class ReverseEntropy(FDivergence):
    """Relative entropy of the center to the point; centers are geometric means."""

    excludes_lowest = True
    curvature_at_one = 1.0

    def deviance(self, points, centers):
        return kl_div(*np.broadcast_arrays(centers, points))

    def statistics(self, points):
        return np.log(points)

    def center(self, means):
        return np.exp(means)


def test_a_divergence_of_ones_own_needs_nothing_else():
    points = positive(np.random.default_rng(0), 90)
    own: Divergence = ReverseEntropy()
    model = PowerKMeans(3, divergence=own, random_state=0).fit(points)
    for j, center in enumerate(model.cluster_centers_):
        mine = points[model.labels_ == j]
        np.testing.assert_allclose(center, np.exp(np.log(mine).mean(axis=0)), rtol=1e-12)


def test_a_divergence_without_its_curvature_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="Half lacks curvature_at_one"):
        type("Half", (FDivergence,), {})
