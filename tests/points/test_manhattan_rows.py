"""Rows of Manhattan distances against definitions: every median minimises, every sweep descends."""

import itertools
import math

import numpy as np
import pytest
from problems import blobs

from powermeans.engine.updates import RelocateEmpty, Sweep
from powermeans.mathematics.rules import Hard, Power, Rule
from powermeans.points import manhattan as module
from powermeans.points.manhattan import ManhattanRows


def distances(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.abs(points[:, None, :].astype(float) - centers[None, :, :]).sum(axis=2)


@pytest.mark.parametrize("rule", [Hard(), Power(-1.0)], ids=str)
def test_rounding_of_the_weights_does_not_decide_between_two_halves(rule: Rule) -> None:
    """Each half has the weights 0.1, 0.2 and 0.3, whose sum depends on their order."""
    points, nowhere = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]), np.zeros((1, 1))
    sums = set()
    for halves in itertools.product(itertools.permutations([0.1, 0.2, 0.3]), repeat=2):
        weights = np.concatenate(halves)
        sums.add(2 * np.cumsum(weights)[2] - np.cumsum(weights)[5])
        assert ManhattanRows(points, weights).sweep(nowhere, rule).centers(nowhere) == [[4.5]]
    assert len(sums) > 1
    for weight in (5e-324, 1e-310, 1e-200, 1e200):
        rows = ManhattanRows(points, np.full(6, weight))
        assert rows.sweep(nowhere, rule).centers(nowhere) == [[4.5]]


def test_groups_of_centers_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    points, centers = blobs(200, 3), blobs(7, 3, seed=3)
    whole = ManhattanRows(points).sweep(centers, Power(-2.0))
    monkeypatch.setattr(module, "_MOST_WEIGHTS_KEPT", 3 * len(points))
    rows = ManhattanRows(points)
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
    together = ManhattanRows(points, weights).sweep(points[:4], rule)
    monkeypatch.setattr(module, "_CHUNK_ELEMENTS", 1)
    one_by_one = ManhattanRows(points, weights).sweep(points[:4], rule)
    np.testing.assert_allclose(one_by_one.medians, together.medians, rtol=1e-12)


def test_an_empty_cluster_takes_the_farthest_point_and_the_others_stay() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [9.0, 9.0], [9.0, 10.0]])
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [9.0, 9.0]])
    rows = ManhattanRows(points)
    sums = rows.sweep(centers, Hard())
    sweep = Sweep(rows, centers, -math.inf)
    repaired = RelocateEmpty().after(sweep, sums)
    assert sweep.n_relocated == 1
    np.testing.assert_array_equal(
        repaired.centers(fallback=centers), [[0.0, 0.0], [4.0, 0.0], [9.0, 9.5]]
    )
    np.testing.assert_array_equal(repaired.weights, [2, 1, 2])


def test_steps_are_those_of_the_mean_distance_and_know_their_unit() -> None:
    points = blobs(200, 4)
    rows = ManhattanRows(points)
    mean_distance = np.abs(points - np.median(points, axis=0)).sum(axis=1).mean()
    spread = math.sqrt(rows.inertia_about_mean() / rows.total_weight)
    assert spread * rows.unit_steps() == pytest.approx(mean_distance / 2, rel=1e-12)
    assert ManhattanRows(np.ones((5, 2))).unit_steps() == 0


@pytest.mark.parametrize("n_features", [4, 12])
def test_centers_of_normal_points_come_together_above_the_critical_power(n_features: int) -> None:
    points = np.random.default_rng(0).normal(size=(20_000, n_features))
    rows = ManhattanRows(points)
    middle = rows.mean()
    critical = rows.critical_power()
    assert critical == pytest.approx(1 - 2 * n_features / math.pi, rel=0.1)
    apart = 0.05 * np.sign(np.random.default_rng(1).normal(size=n_features))
    start = np.stack([middle - apart, middle + apart])

    def growth(power: float) -> float:
        moved = rows.sweep(start, Power(power)).centers(fallback=start)
        return float(np.linalg.norm(moved[1] - moved[0]) / np.linalg.norm(start[1] - start[0]))

    assert growth(1 - 0.7 * (1 - critical)) < 1
    assert growth(1 - 1.3 * (1 - critical)) > 1
