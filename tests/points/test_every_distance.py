"""Rows of every distance: what they return is what its definition says, point by point."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from attacks import oracle
from comparator import greedy_seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix.data import with_gaps
from problems import blobs

from powermeans import KMeans, PowerKMeans
from powermeans.divergences import ChiSquared, Hellinger, Jeffreys, Poisson
from powermeans.engine.updates import RelocateEmpty, Sweep
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power, Rule
from powermeans.methods.entropy_weighted.feature_weighted import FeatureWeightedPoints
from powermeans.points import manhattan as module
from powermeans.points.bregman import open_bregman
from powermeans.points.cosine import CosinePoints
from powermeans.points.manhattan import ManhattanPoints
from powermeans.points.observed import ObservedPoints
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints

PoissonPoints = partial(open_bregman, divergence=Poisson())
RULES = [Hard(), Power(-1.0), Power(-7.3), Harmonic(3.0), Gaussian(2.0)]
SHARES = np.array([0.5, 0.25, 0.15, 0.1])
F_DIVERGENCES = (Hellinger, ChiSquared, Jeffreys)


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


def weighted_by_feature(points: np.ndarray, weights: np.ndarray | None) -> FeatureWeightedPoints:
    rows = FeatureWeightedPoints(points, weights, n_threads=2)
    rows.feature_weights = SHARES
    return rows


@dataclass(frozen=True)
class Kind:
    """How to open rows, their distances, and the centers of points by weights w_ij."""

    open: Callable[..., Any]
    formula: oracle.Distances
    centers: Callable[[np.ndarray, np.ndarray], np.ndarray]
    has_gaps: bool = False
    is_positive: bool = False

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        points = 3 * rng.integers(-2, 3, size=(90, 1)) + rng.normal(size=(90, 4))
        return np.exp(points / 4) if self.is_positive else points

    def distances(self, points: np.ndarray, centers: np.ndarray) -> np.ndarray:
        return self.formula(points[:, None], centers[None]).astype(np.float64)


# Others of squared distances are compared with the reference.
KINDS = {
    "reference": Kind(ReferencePoints, oracle.squared_euclidean, means),
    "manhattan": Kind(partial(ManhattanPoints, n_threads=2), oracle.manhattan, medians),
    "observed": Kind(
        partial(ObservedPoints, n_threads=2),
        oracle.squared_euclidean,
        observed_means,
        has_gaps=True,
    ),
    "features": Kind(weighted_by_feature, oracle.weighted_euclidean(SHARES), means),
    "cosine": Kind(
        partial(CosinePoints, n_threads=2),
        oracle.cosine,
        lambda points, weights: unit(means(unit(points), weights)),
    ),
    "chi-squared": Kind(
        partial(open_rows, divergence=ChiSquared(), n_threads=2),
        oracle.chi_squared,
        lambda points, weights: np.sqrt(means(points**2, weights)),
        is_positive=True,
    ),
}


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), is_single=st.booleans(), is_weighted=st.booleans())
@pytest.mark.parametrize("name", KINDS)
def test_quantities_are_those_of_the_definition(name, seed, is_single, is_weighted):
    kind, rng = KINDS[name], np.random.default_rng(seed)
    dtype, rtol = (np.float32, 2e-5) if is_single else (np.float64, 1e-9)
    points = kind.drawn(rng)
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
    points = kind.drawn(rng)
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


@pytest.mark.parametrize("rule", [Hard(), Power(-1.0)], ids=str)
def test_rounding_of_the_weights_does_not_decide_between_two_halves(rule: Rule) -> None:
    """Each half has the weights 0.1, 0.2 and 0.3, whose sum depends on their order."""
    points, nowhere = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]), np.zeros((1, 1))
    sums = set()
    for halves in itertools.product(itertools.permutations([0.1, 0.2, 0.3]), repeat=2):
        weights = np.concatenate(halves)
        sums.add(2 * np.cumsum(weights)[2] - np.cumsum(weights)[5])
        assert ManhattanPoints(points, weights).sweep(nowhere, rule).centers(nowhere) == [[4.5]]
    assert len(sums) > 1
    for weight in (5e-324, 1e-310, 1e-200, 1e200):
        rows = ManhattanPoints(points, np.full(6, weight))
        assert rows.sweep(nowhere, rule).centers(nowhere) == [[4.5]]


def test_groups_of_centers_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    points, centers = blobs(200, 3), blobs(7, 3, seed=3)
    whole = ManhattanPoints(points).sweep(centers, Power(-2.0))
    monkeypatch.setattr(module, "_MOST_WEIGHTS_KEPT", 3 * len(points))
    rows = ManhattanPoints(points)
    assert [group.stop - group.start for group in rows._groups(7)] == [3, 3, 1]
    parts = rows.sweep(centers, Power(-2.0))
    np.testing.assert_array_equal(parts.medians, whole.medians)
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=1e-14)
    assert parts.objective == whole.objective
    with pytest.raises(TypeError, match="do not add up"):
        parts + parts


@pytest.mark.parametrize("rule", [Hard(), Power(-3.0)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_features_one_by_one_have_the_medians_of_features_together(rule, weighted, monkeypatch):
    points = blobs(200, 11)
    weights = np.random.default_rng(1).uniform(size=200) if weighted else None
    together = ManhattanPoints(points, weights).sweep(points[:4], rule)
    monkeypatch.setattr(module, "_CHUNK_ELEMENTS", 1)
    one_by_one = ManhattanPoints(points, weights).sweep(points[:4], rule)
    np.testing.assert_allclose(one_by_one.medians, together.medians, rtol=1e-12)


def test_manhattan_steps_know_their_unit() -> None:
    points = blobs(200, 4)
    rows = ManhattanPoints(points)
    mean_distance = np.abs(points - np.median(points, axis=0)).sum(axis=1).mean()
    spread = math.sqrt(rows.inertia_about_mean() / rows.total_weight)
    assert spread * rows.unit_steps() == pytest.approx(mean_distance / 2, rel=1e-12)
    assert ManhattanPoints(np.ones((5, 2))).unit_steps() == 0


def test_an_empty_cluster_of_medians_takes_the_farthest_point() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [9.0, 9.0], [9.0, 10.0]])
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [9.0, 9.0]])
    rows = ManhattanPoints(points)
    sums, sweep = rows.sweep(centers, Hard()), Sweep(rows, centers, -math.inf)
    repaired = RelocateEmpty().after(sweep, sums)
    assert sweep.n_relocated == 1
    np.testing.assert_array_equal(
        repaired.centers(fallback=centers), [[0.0, 0.0], [4.0, 0.0], [9.0, 9.5]]
    )
    np.testing.assert_array_equal(repaired.weights, [2, 1, 2])


NORMAL = [np.random.default_rng(0).normal(size=(20_000, n_features)) for n_features in (4, 12)]
ISOTROPIC = np.random.default_rng(0).gamma(400.0, 1 / 4, size=(4000, 4))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        *((ManhattanPoints(points), 1 - 2 * points.shape[1] / math.pi) for points in NORMAL),
        *((open_rows(ISOTROPIC, divergence=kind()), 1 - 4 / 2) for kind in F_DIVERGENCES),
    ],
)
def test_centers_near_the_middle_come_together_above_the_critical_power(rows, expected) -> None:
    middle = rows.mean()
    critical = rows.critical_power()
    assert critical == pytest.approx(expected, rel=0.1)
    apart = 0.05 * np.sign(np.random.default_rng(1).normal(size=len(middle)))
    start = np.stack([middle - apart, middle + apart])

    def growth(power: float) -> float:
        moved = rows.sweep(start, Power(power)).centers(fallback=start)
        return float(np.linalg.norm(moved[1] - moved[0]) / np.linalg.norm(start[1] - start[0]))

    assert growth(1 - 0.7 * (1 - critical)) < 1
    assert growth(1 - 1.3 * (1 - critical)) > 1


def test_one_observed_entry_is_enough_to_predict():
    points = with_gaps(240)
    model = KMeans(3, missing="observed", random_state=0).fit(points)
    row = np.full((1, 3), np.nan)
    with pytest.raises(ValueError, match="nothing but NaN in row 0"):
        model.predict(row)
    row[0, 1] = model.cluster_centers_[2, 1]
    assert model.predict(row)[0] == 2


@pytest.mark.parametrize("missing", ["error", "observed"])
@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e22), (np.float64, 1e150)])
def test_labels_do_not_depend_on_a_point_far_away(dtype, far, missing):
    points = np.random.default_rng(0).normal(size=(300, 17)).astype(dtype)
    points[9] *= far
    points[50:100, 3] = np.nan if missing == "observed" else 0
    model = KMeans.from_centers(points[:5]).set_params(missing=missing)
    others = np.delete(np.arange(300), 9)
    np.testing.assert_array_equal(model.predict(points)[others], model.predict(points[others]))


@pytest.mark.parametrize("kind", [ObservedPoints, PoissonPoints])
def test_a_point_at_several_centers_has_the_first_whatever_lies_beside_it(kind):
    rng, labels = np.random.default_rng(0), set()
    centers = rng.uniform(0.5, 2.0, size=(6, 3))
    centers[:, 1] = 1.09237042
    if kind is PoissonPoints:
        centers[:] = centers[0]
    for n_beside in range(30):
        points = rng.uniform(0.5, 2.0, size=(n_beside + 1, 3))
        points[0] = centers[0] if kind is PoissonPoints else [np.nan, 1.09237042, np.nan]
        labels.add(int(kind(points).assign(centers)[0][0]))
    assert labels == {0}


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (5, np.nan, "nothing but NaN in row 5"),
        ((slice(None), 2), np.nan, "nothing but NaN in column 2"),
        ((1, 1), np.inf, "contains infinity"),
    ],
)
def test_what_cannot_be_compared_is_named(at, value, message):
    points = with_gaps(240)
    points[at] = value
    with pytest.raises(ValueError, match=message):
        KMeans(3, missing="observed").fit(points)
    with pytest.raises(ValueError, match="entries may be missing from"):
        PowerKMeans(2, missing="observed", divergence="poisson").fit(points)
