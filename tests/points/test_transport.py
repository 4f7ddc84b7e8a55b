from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import sq_distances
from scipy.optimize import linprog

from powermeans.mathematics.rules import Hard, Priced
from powermeans.methods.balanced import transport
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.methods.balanced.transport import Assigned, assign_within
from powermeans.points.by_definition import PricedByDefinition
from powermeans.points.nearby import NearbyPoints
from powermeans.points.opening import open_rows
from powermeans.points.protocol import AskedNear, Points, priced_of
from powermeans.points.reference import ReferencePoints
from powermeans.types import FloatArray


def least_cost(distances: FloatArray, weights: FloatArray, limits: SizeLimits) -> float:
    n, k = distances.shape
    of_points = np.kron(np.eye(n), np.ones(k))
    of_centers = np.tile(np.eye(k), n)
    solved = linprog(
        distances.ravel(),
        A_ub=np.vstack([of_centers, -of_centers]),
        b_ub=np.repeat([limits.most, -limits.least], k),
        A_eq=of_points,
        b_eq=weights,
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def assigned(points, centers, limits, weights=None):
    rows = open_rows(points, weights, n_threads=1)
    return assign_within(rows, centers, np.zeros(len(centers)), limits)


def proved(points: FloatArray, centers: FloatArray, limits: SizeLimits, found: Assigned) -> float:
    """Return what the prices prove that no assignment costs less than."""
    objective = open_rows(points).sweep(centers, Priced(tuple(found.prices))).objective
    return limits.bound(objective, found.prices)


def drawn(seed: int) -> tuple[FloatArray, FloatArray, SizeLimits]:
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 7)), int(rng.integers(12, 60))
    points = rng.normal(size=(n, 2)) * rng.choice([0.3, 1.0, 3.0], size=(n, 1))
    if seed % 4 == 0:
        points = np.rint(points)  # many equal distances
    least = int(rng.integers(0, n // k + 1))
    most = int(rng.integers(-(-n // k), n + 1))
    return points, points[rng.choice(n, k, replace=False)], SizeLimits(k, least, most, n)


@pytest.mark.parametrize("seed", range(60))
def test_cost_is_that_of_an_exact_solver_and_prices_prove_it(seed: int) -> None:
    points, centers, limits = drawn(seed)
    found = assigned(points, centers, limits)
    distances = sq_distances(points, centers)
    cost = distances[np.arange(len(points)), found.labels].sum()
    assert cost == pytest.approx(least_cost(distances, np.ones(len(points)), limits), rel=1e-9)
    assert found.inertia == pytest.approx(cost, rel=1e-9)
    assert np.array_equal(found.sizes, np.bincount(found.labels, minlength=len(centers)))
    assert limits.missed_by(found.sizes) == 0
    bound = proved(points, centers, limits, found)
    assert bound == pytest.approx(found.inertia, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rounds", [1, 2, 1000])
def test_gap_is_that_of_the_labels_of_few_listed_points_also_if_rounds_run_out(
    seed, rounds, monkeypatch
):
    points, centers, limits = drawn(seed)
    whole, small = assigned(points, centers, limits), {"_MOST_PAIRS": 4, "_CENTERS_FOR_EACH": 1}
    for name, value in {**small, "_LISTED_FOR_EACH_MISSED": 1, "_MOST_ROUNDS": rounds}.items():
        monkeypatch.setattr(transport, name, value)
    found = assigned(points, centers, limits)
    unproved = found.inertia - proved(points, centers, limits, found)
    assert found.gap == pytest.approx(max(0.0, unproved), rel=1e-9, abs=1e-9)
    if rounds == 1000:
        assert found.inertia == pytest.approx(whole.inertia, rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_sizes_cost_what_the_curve_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, centers, limits = drawn(seed)
    limits = replace(limits, curvature=float(rng.choice([0.01, 0.3])))
    found = assigned(points, centers, limits)
    cost = found.inertia + limits.cost(found.sizes)
    distances = sq_distances(points, centers)
    # No point, and no chain of two, moves to lower cost.
    n = len(points)
    for i in range(n):
        for j in range(len(centers)):
            labels = found.labels.copy()
            labels[i] = j
            sizes = np.bincount(labels, minlength=len(centers))
            if limits.missed_by(sizes) == 0:
                other = distances[np.arange(n), labels].sum() + limits.cost(sizes)
                assert other >= cost - 1e-9
    # The bound allows for sizes that are no whole numbers.
    slack = limits.curvature / 8 * len(centers)
    assert cost - slack - 1e-9 <= proved(points, centers, limits, found) <= cost + 1e-9


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_weights_miss_limits_by_less_than_a_heavy_point(seed: int) -> None:
    points, centers, limits = drawn(seed)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, size=len(points))
    scale = weights.sum() / len(points)
    limits = SizeLimits(limits.n_centers, limits.least * scale, limits.most * scale, weights.sum())
    found = assigned(points, centers, limits, weights)
    sizes = np.bincount(found.labels, weights=weights, minlength=len(centers))
    assert sizes == pytest.approx(found.sizes)
    assert found.missed == pytest.approx(limits.missed_by(sizes), abs=1e-9)
    assert np.all(sizes <= limits.most + weights.max())
    assert np.all(sizes >= limits.least - weights.max())
    distances = sq_distances(points, centers)
    least = least_cost(distances * 1.0, weights, limits)
    # The exact solver splits points.
    if found.missed == 0:
        assert found.inertia >= least - 1e-9


@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_prices_lead_each_point_to_the_center_of_least_cost(n_features: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(700, n_features)).astype(dtype)
    centers, prices = rng.normal(size=(23, n_features)), rng.normal(size=23)
    rows = open_rows(points, n_threads=2)
    costs = sq_distances(points.astype(np.float64), centers) + prices
    sums = rows.sweep(centers, Priced(tuple(prices)))
    labels, margins, labelled = rows.priced.assign(centers, prices)
    objective = labelled.objective
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    assert np.array_equal(labels, costs.argmin(axis=1))
    assert margins == pytest.approx(np.diff(np.sort(costs, axis=1)[:, :2])[:, 0], abs=tolerance)
    assert objective == pytest.approx(costs.min(axis=1).sum(), rel=1e-5)
    assert sums.objective == objective
    assert sums.inertia == pytest.approx(rows.sweep(centers, Hard()).inertia, rel=1e-5)
    assert np.array_equal(sums.weights, np.bincount(labels, minlength=23))


@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize(("reach", "n_most"), [(np.inf, 5), (0.5, 23), (2.0, 4)])
def test_near_centers_are_those_of_least_cost(n_features: int, reach: float, n_most: int) -> None:
    rng = np.random.default_rng(1)
    points, centers = rng.normal(size=(300, n_features)), rng.normal(size=(23, n_features))
    prices, some = rng.normal(size=23), np.arange(0, 300, 3)
    rows = open_rows(points, n_threads=2)
    labels = rows.priced.assign(centers, prices).labels[some]
    asked = AskedNear(some, labels, centers, prices, reach, n_most)
    found = rows.priced.near(asked)
    by_definition = PricedByDefinition(rows, rows._distances_of)
    expected = by_definition.near(asked)
    assert np.array_equal(found.centers, expected.centers)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)
    assert np.all(expected.distances[expected.centers < 0] == np.inf)


@pytest.mark.parametrize("rows", [open_rows(np.eye(3)), ReferencePoints(np.eye(3))])
def test_no_points_have_no_near_centers(rows: Points) -> None:
    none = np.empty(0, dtype=np.int32)
    found = priced_of(rows).near(AskedNear(none, none, np.eye(3), np.zeros(3), 0.5, n_most=2))
    assert found.centers.shape == found.distances.shape == (0, 2)


def test_rows_nearby_price_and_list_centers_as_all_rows_do() -> None:
    rng = np.random.default_rng(2)
    points, centers = rng.normal(size=(900, 20)), rng.normal(size=(30, 20))
    prices = rng.normal(size=30)
    rows = open_rows(points, n_threads=2)
    nearby = NearbyPoints(rows, centers, rows.assign(centers)[0])
    found, expected = nearby.priced.assign(centers, prices), rows.priced.assign(centers, prices)
    assert np.array_equal(found.labels, expected.labels)
    assert found.margins == pytest.approx(expected.margins, abs=1e-9)
    assert found.sums.points == pytest.approx(expected.sums.points, abs=1e-9)
    assert found.sums.objective == pytest.approx(expected.sums.objective, rel=1e-12)
    rng = np.random.default_rng(4)
    centers = np.linspace(0, 300, 301)[:, None] + rng.uniform(-0.2, 0.2, size=(301, 1))
    points = rng.uniform(0, 300, size=(2000, 1))
    points, centers = (np.pad(on_a_line, ((0, 0), (0, 19))) for on_a_line in (points, centers))
    prices = rng.uniform(0, 0.1, size=len(centers))
    rows = open_rows(points, n_threads=2)
    nearby = NearbyPoints(rows, centers, rows.assign(centers)[0])
    labels = nearby.priced.assign(centers, prices).labels
    some = rng.permutation(len(points))[:500]
    asked = AskedNear(some, labels[some], centers, prices, 2.0, n_most=4)
    found, expected = (kind.priced.near(asked) for kind in (nearby, rows))
    assert np.array_equal(found.centers, expected.centers)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)
    none = np.empty(0, dtype=np.int32)
    found = nearby.priced.near(AskedNear(none, none, centers, prices, 2.0, n_most=4))
    assert found.centers.shape == (0, 4)
