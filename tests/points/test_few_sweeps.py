"""Rows that are to be swept but once or twice leave shortcuts out, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from comparator import assert_same_sums

from powermeans.mathematics.rules import Hard, Power
from powermeans.points.opening import open_batch, open_rows


@pytest.mark.parametrize("shape", [(30_000, 2, 100), (5_000, 40, 64)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_and_sums_are_the_same(shape, dtype):
    n_points, n_features, n_centers = shape
    points = np.random.default_rng(0).normal(size=(n_points, n_features)).astype(dtype)
    centers = points[:n_centers].astype(np.float64)
    often, once = open_rows(points), open_batch(points)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for rule in (Hard(), Power(-20.0), Hard()):
        expected, swept = often.sweep(centers, rule), once.sweep(centers, rule)
        assert_same_sums(swept, expected, tolerance)
        moved = swept.centers(centers)
        np.testing.assert_array_equal(once.assign(moved)[0], often.assign(moved)[0])


def test_batches_may_share_the_threads_of_other_rows():
    points = np.random.default_rng(0).normal(size=(40_000, 16))
    rows = open_rows(points, n_threads=3)
    batch = open_batch(points[:20_000], n_threads=1, beside=rows)
    assert batch.team is rows.team
    alone = open_batch(points[:20_000], n_threads=1)
    assert alone.team.n_threads == 1
    shared, own = (part.sweep(points[:50], Hard()) for part in (batch, alone))
    assert len(batch.team.stripes_by_worker) > 1
    np.testing.assert_array_equal(shared.points, own.points)
