import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powermeans import BalancedKMeans, PowerKMeans
from powermeans.methods.balanced import size_limited
from powermeans.methods.balanced.division import divided
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.methods.balanced.transport import _without_needless, with_better_prices
from powermeans.points.opening import open_rows
from powermeans.types import FloatArray

ALL_STEPS = 40


def improved(points, centers, limits, weights=None):
    """The prices found from zero, with the labels at the first and at these."""
    rows, none = open_rows(points, weights, n_threads=1), np.zeros(len(centers))
    first = rows.priced.assign(centers, none)
    last, prices = with_better_prices(
        rows, centers, first, none, limits, enough=0.0, n_most=ALL_STEPS
    )
    return prices, first, last


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.02]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_prices_never_prove_less_and_go_with_the_labels(seed, curvature, has_weights):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(8, 80)), int(rng.integers(2, 6))
    points = np.round(rng.normal(size=(n, 2)), int(rng.integers(0, 4)))
    weights = rng.uniform(0, 2, size=n) if has_weights else np.ones(n)
    centers = rng.normal(size=(k, 2))
    total = float(weights.sum())
    limits = SizeLimits(k, 0.5 * total / k, 1.3 * total / k, total, curvature)
    prices, first, last = improved(points, centers, limits, weights)
    proved = limits.bound(last.sums.objective, prices)
    assert proved >= limits.bound(first.sums.objective, np.zeros(k))
    again = open_rows(points, weights).priced.assign(centers, prices)
    assert np.array_equal(last.labels, again.labels)
    assert np.all(np.isfinite(prices))


@pytest.mark.parametrize("seed", range(5))
def test_sizes_come_near_to_their_limits_and_to_the_wish_of_balance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, centers = rng.normal(size=(4000, 2)), rng.normal(size=(12, 2))
    limits = SizeLimits(12, 300, 360, 4000)
    _, first, last = improved(points, centers, limits)
    before, after = limits.missed_by(first.sums.weights), limits.missed_by(last.sums.weights)
    assert before > 1000
    assert after < 0.2 * before
    limits = SizeLimits(12, 0, 4000, 4000, curvature=0.01)
    prices, first, last = improved(points, centers, limits)
    before = limits.far_from_wish(np.zeros(12), first.sums.weights)
    assert limits.far_from_wish(prices, last.sums.weights) < 0.15 * before > 90


@pytest.mark.parametrize("curvature", [0.0, 1e-4, 1e-3])
def test_one_step_suffices_where_sizes_follow_prices_in_proportion(curvature: float) -> None:
    """Points lie evenly on a line, so that a border moves in proportion to the prices."""
    points = np.linspace(0, 1, 4001)[:, None]
    centers = np.array([[0.1], [0.3], [0.6], [0.9]])
    limits = SizeLimits(4, 960, 1040, 4001, curvature)
    rows, none = open_rows(points, n_threads=1), np.zeros(4)
    first = rows.priced.assign(centers, none)
    last, prices = with_better_prices(rows, centers, first, none, limits, enough=1.0, n_most=1)
    before = limits.far_from_wish(none, first.sums.weights)
    assert before > 100
    assert limits.far_from_wish(prices, last.sums.weights) < 0.3 * before


def uneven() -> FloatArray:
    rng = np.random.default_rng(0)
    middles, shares = 4 * rng.normal(size=(30, 8)), rng.dirichlet(np.ones(30))
    return np.asarray(middles[rng.choice(30, 3000, p=shares)] + rng.normal(size=(3000, 8)))


def sizes(points: FloatArray, centers: FloatArray) -> FloatArray:
    labels, _ = open_rows(points).assign(centers)
    return np.bincount(labels, minlength=len(centers))


def test_large_clusters_are_divided_and_needless_prices_become_zero() -> None:
    points = uneven()
    centers = PowerKMeans(30, effort="fast", random_state=0).fit(points).cluster_centers_
    found = divided(open_rows(points), centers, 120.0)
    assert found.shape == centers.shape
    before, after = sizes(points, centers), sizes(points, found)
    assert np.maximum(0, after - 120).sum() < np.maximum(0, before - 120).sum() / 2
    assert divided(open_rows(points), centers, 3000.0) is centers  # none is too large
    # Points without weight count nothing.
    far = np.full((5000, points.shape[1]), 50.0)
    weights = np.repeat([1.0, 0.0], [len(points), len(far)])
    rows = open_rows(np.concatenate([points, far]), weights)
    assert divided(rows, centers, 120.0) == pytest.approx(found)
    before, moved = np.array([1.0, -1.0, 2.0, 0.0]), np.array([-0.5, 0.5, 3.0, -2.0])
    has_both, has_most = SizeLimits(4, 5, 20, 40), SizeLimits(4, 0, 20, 40)
    assert np.array_equal(_without_needless(moved, before, has_both), [0.0, 0.0, 3.0, -2.0])
    assert np.array_equal(_without_needless(moved, before, has_most), [0.0, 0.0, 3.0, 0.0])
    is_soft = SizeLimits(4, 5, 20, 40, curvature=1.0)
    assert np.array_equal(_without_needless(moved, before, is_soft), moved)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 40), st.floats(0.3, 30), st.integers(0, 1000))
def test_there_are_as_many_centers_within_the_points(n_centers, n_points, most, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, size=(n_points, 2)).astype(float)  # with many equal ones
    weights = rng.integers(0, 3, size=n_points).astype(float)
    weights[0] = 1.0
    centers = points[rng.integers(n_points, size=n_centers)]
    found = divided(open_rows(points, weights), centers, most)
    assert found.shape == centers.shape
    assert np.all((found >= 0) & (found <= 2))


def test_a_fit_has_less_inertia_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    points, model = uneven(), BalancedKMeans(30, effort="fast", size_max=120, random_state=0)
    inertia = model.fit(points).inertia_
    assert model.sizes_.max() <= 120
    monkeypatch.setattr(size_limited, "divided", lambda rows, centers, most: centers)
    assert inertia < 0.97 * model.fit(points).inertia_
