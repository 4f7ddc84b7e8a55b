"""Centers of clusters that are far too large become several."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powermeans import BalancedKMeans, PowerKMeans
from powermeans.engine.seeds.division import divided
from powermeans.estimators import size_limited
from powermeans.points.opening import open_rows
from powermeans.types import FloatArray


def uneven() -> FloatArray:
    """Return 3000 points in 30 groups of very different sizes."""
    rng = np.random.default_rng(0)
    middles, shares = 4 * rng.normal(size=(30, 8)), rng.dirichlet(np.ones(30))
    return np.asarray(middles[rng.choice(30, 3000, p=shares)] + rng.normal(size=(3000, 8)))


def sizes(points: FloatArray, centers: FloatArray) -> FloatArray:
    labels, _ = open_rows(points).assign(centers)
    return np.bincount(labels, minlength=len(centers))


def test_a_large_cluster_is_divided_and_others_are_joined() -> None:
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


def test_one_heavy_point_is_not_divided() -> None:
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    rows = open_rows(points, np.array([100.0, 1.0, 1.0, 1.0]))
    centers = np.array([[0.0], [1.0], [2.5]])
    assert len(np.unique(divided(rows, centers, 40.0))) == 3


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
