"""The rules that `choose_k` is compared with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from benchmarks.rules_for_k import _strength, gap, knee, prediction_strength

BLOBS = make_blobs(200, centers=[[0, 0], [12, 0], [0, 12], [12, 12]], random_state=0)[0]
CLOUD = np.random.default_rng(0).uniform(size=(200, 2))


@pytest.mark.parametrize(
    ("inertias", "expected"),
    [
        ([9.0, 1.0, 0.9, 0.8, 0.7], 1),
        ([9.0, 5.0, 1.0, 0.9, 0.8], 2),
        ([5.0, 4.0, 3.0, 2.0, 1.0], None),
        ([1.0, 1.0, 1.0], None),
        ([2.0, 1.0], None),
        # Scaled to one, the first of two bends is 0.33 below the line, and the second 0.37.
        ([100, 55, 54, 53, 52, 1, 0.9, 0.8, 0.7], 5),
        # At 1 and 2 the curve is 1/3 below the line: the first of equals.
        ([3.0, 1.0, 0.0, 0.0], 1),
        # A curve above the line has no knee.
        ([9.0, 8.0, 6.0, 1.0], None),
    ],
)
def test_the_knee_is_the_largest_bend(inertias: list[float], expected: int | None) -> None:
    assert knee(range(1, len(inertias) + 1), inertias) == expected


def test_the_strength_is_that_of_the_worst_cluster_by_hand() -> None:
    # Of the three pairs of the first cluster one stays together, of the second its only one.
    own, predicted = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert _strength(own, predicted, 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("rule", [gap, prediction_strength])
def test_a_rule_counts_four_blobs_and_one_cloud(rule) -> None:
    assert rule(BLOBS, [1, 2, 3, 4, 5, 6], np.random.default_rng(0)) == 4
    assert rule(CLOUD, [1, 2, 3, 4], np.random.default_rng(0)) == 1
