"""Rows that are to be swept but once or twice leave shortcuts out, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans.rows import open_rows
from powermeans.rules import Hard, Power


@pytest.mark.parametrize("shape", [(30_000, 2, 100), (5_000, 40, 64)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_and_sums_are_the_same(shape, dtype):
    n_points, n_features, n_centers = shape
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_points, n_features)).astype(dtype)
    centers = points[:n_centers].astype(np.float64)
    often, once = (open_rows(points, swept_often=swept_often) for swept_often in (True, False))
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for rule in (Hard(), Power(-20.0), Hard()):
        expected, swept = often.sweep(centers, rule), once.sweep(centers, rule)
        assert swept.inertia == pytest.approx(expected.inertia, rel=tolerance)
        np.testing.assert_allclose(swept.weights, expected.weights, rtol=tolerance)
        moved = swept.centers(centers)
        np.testing.assert_allclose(moved, expected.centers(centers), atol=10 * tolerance)
        np.testing.assert_array_equal(once.assign(moved)[0], often.assign(moved)[0])


def test_there_is_no_order_by_place():
    """It would leave out most distances from the first sweep on."""
    points = np.random.default_rng(0).normal(size=(30_000, 2))
    skipped = [
        open_rows(points, swept_often=swept_often).sweep(points[:100], Hard()).n_skipped
        for swept_often in (True, False)
    ]
    assert skipped[0] > 0.5 * 30_000 * 100
    assert skipped[1] < 0.5 * skipped[0]
