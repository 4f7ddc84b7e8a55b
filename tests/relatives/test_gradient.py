"""Steps along the gradient are those of equation 3, and never leave the range of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kinds_of_rows import KINDS

from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import Sweep
from powermeans.mathematics.rules import Hard
from powermeans.relatives.gradient_kmeans import GradientSteps, stepped

NEVER = CentersSettled(0.0)
POINTS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0], [10.0, 0.0]])
CENTERS = np.array([[1.0, 1.0], [9.0, 2.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_equation_3(kind):
    weights = np.array([1.0, 2.0, 0.0, 3.0])
    sums = KINDS[kind](POINTS, weights).sweep(CENTERS, Hard())
    moved = stepped(CENTERS, sums, 0.1)
    # 0.1 times (-1, -1) once and (1, -1) twice; three times (1, -2).
    np.testing.assert_allclose(moved, [[1.1, 0.7], [9.3, 1.4]])


@pytest.mark.parametrize("kind", KINDS)
def test_at_one_over_their_weights_centers_make_lloyds_step(kind):
    sums = KINDS[kind](POINTS, None).sweep(CENTERS, Hard())
    moved = stepped(CENTERS, sums, 1 / sums.weights)
    np.testing.assert_allclose(moved, sums.centers(CENTERS), atol=1e-14)


def after_one(steps, points, centers):
    rows = KINDS["native"](points, None)
    rule = next(iter(steps))
    sums = rows.sweep(centers, rule if isinstance(rule, Hard) else Hard())
    return steps.after(Sweep(rows, centers, -math.inf), sums).centers(centers)


@pytest.mark.parametrize("rate", [1e150, 1e300, 1.7e308])
def test_a_step_that_leaves_the_range_is_refused(rate):
    points = np.array([[0.0], [1e10]])
    with pytest.raises(ValueError, match=r"Pass at most 1, or \"auto\""):
        after_one(GradientSteps(rate, NEVER), points, np.array([[1e9]]))
