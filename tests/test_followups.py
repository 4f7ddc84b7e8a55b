"""The two later methods are those that they are said to be, and are judged on other sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks import followups
from benchmarks.followups import Cell
from powermeans.metrics import adjusted_rand_index


@pytest.mark.parametrize("kind", followups.KINDS)
def test_every_kind_has_points_the_same_again_and_others_from_another_seed(kind: str) -> None:
    one, again, other = (followups.KINDS[kind](seed) for seed in (3, 3, 4))
    assert np.isfinite(one.points).all()
    assert len(one.points) == len(one.truth)
    assert np.array_equal(one.points, again.points)
    assert not np.array_equal(one.points, other.points)


def test_a_tenth_of_the_groups_is_added_as_outliers() -> None:
    given = followups.in_box(followups.groups(0, 2), 0, 60.0)
    assert (given.truth == -1).sum() == 60
    assert given.n_clusters == 5


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        (followups.median_of_means, {"n_blocks": 150, "rate": 0.1}),
        (followups.possibilistic, {"share": 0.9, "width": 1.0}),
    ],
)
def test_both_methods_bear_outliers_that_mislead_sums_of_squares(method, setting) -> None:
    given = followups.in_box(followups.groups(0, 2), 0, 60.0)
    is_in = given.truth >= 0
    misled, found = followups.by_power(given, 0), method(given, 0, **setting)
    assert adjusted_rand_index(given.truth[is_in], misled[is_in]) < 0.9
    assert adjusted_rand_index(given.truth[is_in], found[is_in]) > 0.98


def test_a_step_of_one_block_goes_against_the_gradient(monkeypatch) -> None:
    points = np.random.default_rng(0).normal(size=(40, 2))
    centers = np.array([[-1.0, 0.5], [2.0, 0.0]])
    monkeypatch.setattr(followups, "powers", lambda: iter([-np.inf]))
    stepped = followups._descended(points, [np.arange(40)], centers, rate=0.1)
    labels = cdist(points, centers).argmin(axis=1)
    means = np.array([points[labels == j].mean(axis=0) for j in range(2)])
    # AdaGrad's first step is as long as the rate, in each coordinate.
    np.testing.assert_allclose(stepped, centers + 0.1 * np.sign(means - centers), atol=1e-6)


def test_possibilistic_centers_are_weighted_as_pal_and_others_have_it(monkeypatch) -> None:
    points, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [10.0]])
    monkeypatch.setattr(followups, "powers", lambda: iter([-np.inf]))
    found = followups._typical_centers(points, centers, share=0.5, scale=2.0)
    # Typicalities 1 / (1 + d / 2), squared, beside the hard memberships.
    to_first = 0.5 * np.array([1, 1, 0]) + 0.5 / (1 + np.array([0.0, 1.0, 81.0]) / 2) ** 2
    to_second = 0.5 * np.array([0, 0, 1]) + 0.5 / (1 + np.array([100.0, 81.0, 1.0]) / 2) ** 2
    expected = [np.average(points[:, 0], weights=w) for w in (to_first, to_second)]
    np.testing.assert_allclose(found[:, 0], expected)


def cell(method: str, setting: str, ari: list[float]) -> Cell:
    return {"kind": "some", "method": method, "setting": setting, "ari": ari, "seconds": 1.0}


def test_a_setting_is_chosen_on_even_sets_and_scored_on_odd_ones() -> None:
    cells = [
        cell("possibilistic", "a", [0.9, 0.1, 0.9, 0.3]),
        cell("possibilistic", "b", [0.2] * 4),
    ]
    assert followups.judged(cells, ["some"], "possibilistic") == ("a", 0.9, [0.1, 0.3])


def test_settings_that_are_equally_good_to_tune_by_share_their_scores() -> None:
    cells = [
        cell("possibilistic", "a", [0.9, 0.1, 0.9, 0.3]),
        cell("possibilistic", "b", [0.9, 0.5, 0.9, 0.3]),
        cell("possibilistic", "c", [0.8, 1.0, 0.9, 1.0]),
    ]
    name, tuned, scores = followups.judged(cells, ["some"], "possibilistic")
    assert (name, tuned) == ("a or b", 0.9)
    assert scores == pytest.approx([0.3, 0.3])


def test_a_lead_counts_only_beyond_two_standard_errors() -> None:
    ours = [cell(name, "", [0.5] * 6) for name in followups.OURS]
    cells = [
        *ours,
        cell("median of means", "a", [0.6, 0.6, 0.6, 0.7, 0.6, 0.65]),
        cell("possibilistic", "a", [0.6, 0.1, 0.6, 0.9, 0.6, 0.6]),
    ]
    said = followups.verdict(cells)
    assert "**Median of means** is clearly ahead of the best of ours on 1 (some) of 1" in said
    assert "**Possibilistic** is clearly ahead of the best of ours on none of 1" in said
