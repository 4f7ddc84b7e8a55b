"""Rows of every distance: what they return is what its definition says, point by point."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from comparator import greedy_seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power
from powermeans.points.compiled import EuclideanRows
from powermeans.points.cosine import CosineRows
from powermeans.points.feature_weighted import FeatureWeightedRows
from powermeans.points.manhattan import ManhattanRows
from powermeans.points.observed import ObservedRows
from powermeans.points.reference import ReferenceRows

RULES = [Hard(), Power(-1.0), Power(-7.3), Harmonic(3.0), Gaussian(2.0)]
SHARES = np.array([0.5, 0.25, 0.15, 0.1])


def median_of(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the middle of the values at which the weighted distances add up to the least."""
    values, weights = values[weights > 0], weights[weights > 0]
    cost = np.abs(values[:, None] - values) @ weights
    best = values[cost <= cost.min() * (1 + 1e-12)]
    return (best.min() + best.max()) / 2


def medians(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.array([[median_of(column, w) for column in points.T] for w in weights.T])


def observed_means(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # where no point of a center has a feature
        return weights.T @ np.nan_to_num(points) / (weights.T @ ~np.isnan(points))


def means(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights.T @ points / weights.sum(axis=0)[:, None]


def unit(points: np.ndarray) -> np.ndarray:
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def weighted_by_feature(points: np.ndarray, weights: np.ndarray | None) -> FeatureWeightedRows:
    rows = FeatureWeightedRows(points, weights, n_threads=2)
    rows.feature_weights = SHARES
    return rows


@dataclass(frozen=True)
class Kind:
    """How to open rows, their distances, and the centers of points by weights w_ij."""

    open: Callable[..., Any]
    distances: Callable[[np.ndarray, np.ndarray], np.ndarray]
    centers: Callable[[np.ndarray, np.ndarray], np.ndarray]
    has_gaps: bool = False


def differences(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return points[:, None, :] - centers[None, :, :]


SQUARED = Kind(
    ReferenceRows,
    lambda points, centers: np.square(differences(points, centers)).sum(axis=2),
    means,
)
KINDS = {
    "reference": SQUARED,
    "native": replace(SQUARED, open=EuclideanRows),
    "manhattan": Kind(
        lambda points, weights: ManhattanRows(points, weights, n_threads=2),
        lambda points, centers: np.abs(differences(points, centers)).sum(axis=2),
        medians,
    ),
    "observed": Kind(
        lambda points, weights: ObservedRows(points, weights, n_threads=2),
        lambda points, centers: np.nansum(differences(points, centers) ** 2, axis=2),
        observed_means,
        has_gaps=True,
    ),
    "features": Kind(
        weighted_by_feature,
        lambda points, centers: (SHARES * differences(points, centers) ** 2).sum(axis=2),
        means,
    ),
    "cosine": Kind(
        lambda points, weights: CosineRows(points, weights, n_threads=2),
        lambda points, centers: 1 - unit(points) @ unit(centers).T,
        lambda points, weights: unit(means(unit(points), weights)),
    ),
}


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), is_single=st.booleans(), is_weighted=st.booleans())
@pytest.mark.parametrize("name", KINDS)
def test_quantities_are_those_of_the_definition(name, seed, is_single, is_weighted):
    kind, rng = KINDS[name], np.random.default_rng(seed)
    dtype, rtol = (np.float32, 2e-5) if is_single else (np.float64, 1e-9)
    points = 3 * rng.integers(-2, 3, size=(90, 1)) + rng.normal(size=(90, 4))
    if kind.has_gaps:
        gaps = rng.uniform(size=points.shape) < 0.3
        gaps[np.arange(90), rng.integers(4, size=90)] = False
        points[gaps] = np.nan
    points = points.astype(dtype)
    counts = rng.integers(0, 4, size=90).astype(float) if is_weighted else np.ones(90)
    rows = kind.open(points, counts if is_weighted else None)
    points = points.astype(np.float64)
    centers = np.where(np.isnan(points[:5]), rng.normal(size=(5, 4)), points[:5]) + 0.1
    if name == "cosine":
        centers = unit(centers)
    y = kind.distances(points, centers)
    close = {"rtol": rtol, "atol": rtol * y.max()}
    for rule in RULES:
        sums = rows.sweep(centers, rule)
        weights, objectives = rule.weigh(y)
        weights *= counts[:, None]
        np.testing.assert_allclose(sums.weights, weights.sum(axis=0), **close)
        is_empty, has_weight = weights.sum(axis=0) == 0, weights.sum(axis=0) > 1e-9
        found = sums.centers(fallback=centers)
        np.testing.assert_allclose(found[is_empty], centers[is_empty], rtol=1e-14)
        expected = kind.centers(points, weights[:, has_weight])
        if not (is_single and name == "manhattan"):  # where rounding decides which is the median
            expected = np.where(np.isnan(expected), centers[has_weight], expected)
            np.testing.assert_allclose(found[has_weight], expected, **close)
        assert sums.objective == pytest.approx(counts @ objectives, rel=rtol)
        assert sums.inertia == pytest.approx(counts @ y.min(axis=1), rel=rtol)
    labels, inertia = rows.assign(centers)
    own, nearest = y[np.arange(90), labels], y.min(axis=1)
    np.testing.assert_allclose(own, nearest, **close)
    assert labels.dtype == np.int32
    assert rows.assign(np.vstack([centers, centers]))[0].max() < 5  # the first of equal ones
    assert inertia == pytest.approx(counts @ nearest, rel=rtol)
    found = rows.sq_distances(centers)
    assert found.dtype == rows.dtype
    np.testing.assert_allclose(found, y, **close)
    spread = rows.spread(centers)
    for j in range(5):
        mine = labels == j
        assert spread.weights[j] == pytest.approx(counts[mine].sum())
        assert spread.error[j] == pytest.approx(counts[mine] @ y[mine, j], rel=rtol, abs=rtol)
        without = counts @ np.delete(y, j, axis=1).min(axis=1)
        assert spread.utility[j] == pytest.approx(without - inertia, abs=10 * rtol * without)
    assert rows.spread(centers[:1]).utility == [np.inf]
    assert rows.total_weight == pytest.approx(counts.sum())
    mean = kind.centers(points, counts[:, None])
    if not (is_single and name == "manhattan"):
        np.testing.assert_allclose(rows.mean(), mean[0], **close)
    about = counts @ kind.distances(points, mean)[:, 0]
    assert rows.inertia_about_mean() == pytest.approx(about, rel=rtol)


@pytest.mark.parametrize("name", KINDS)
def test_nearness_and_seeds_are_those_of_the_definition(name: str) -> None:
    kind, rng = KINDS[name], np.random.default_rng(4)
    points = 3 * rng.integers(-2, 3, size=(90, 1)) + rng.normal(size=(90, 4))
    counts = rng.integers(0, 4, size=90).astype(float)
    rows = kind.open(points, counts)
    between = kind.distances(points, points)
    nearness, nearest = rows.nearness(rows.take(np.array([1, 2]))), between[:, 1:3].min(axis=1)
    mass = counts * nearest
    np.testing.assert_allclose(nearness.sq_dist(np.arange(90)), nearest, atol=1e-9)
    assert nearness.inertia() == pytest.approx(mass.sum())
    assert nearness.farthest() == mass.argmax()
    uniforms = rng.uniform(size=50)
    passed = np.cumsum(mass) / mass.sum()
    np.testing.assert_array_equal(nearness.draw(uniforms), np.searchsorted(passed, uniforms))
    candidates = np.array([3, 8, 20])
    left = counts @ np.minimum(nearest[:, None], between[:, candidates])
    np.testing.assert_allclose(nearness.potentials(candidates), left)
    order, others = rng.permutation(90), rng.uniform(size=(4, 3))
    passed = np.cumsum(counts[order]) / counts.sum()
    seeds = [order[np.searchsorted(passed, 0.3)]]
    for uniforms in others:
        nearest = between[:, seeds].min(axis=1)
        mass = (counts * nearest)[order]
        drawn = order[np.searchsorted(np.cumsum(mass) / mass.sum(), uniforms)]
        left = counts @ np.minimum(nearest[:, None], between[:, drawn])
        seeds.append(drawn[left.argmin()])
    np.testing.assert_array_equal(greedy_seeds(rows, order, 0.3, others), seeds)
