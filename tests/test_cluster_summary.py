"""Clusters in numbers and words, against sums by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from powermeans.app.report.summaries import ClusterSummary, summarize
from powermeans.app.report.warnings_on_data import along_the_line

POINTS = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 1.0], [12.0, 5.0]])
LABELS = np.array([0, 0, 1, 1], dtype=np.int32)


def test_sizes_means_and_spreads_are_those_by_hand() -> None:
    columns, (first, second) = summarize(POINTS, LABELS, 2, ["a", "b"])
    np.testing.assert_allclose(columns.means, [6.0, 2.0])
    np.testing.assert_allclose(columns.deviations, [math.sqrt(26), math.sqrt(3)])
    assert (first.size, first.share, first.nearest) == (2, 0.5, 1)
    assert first.spread == pytest.approx(1.0)
    # (10, 1) and (12, 5) are both 1 and 2 from their mean (11, 3).
    assert second.spread == pytest.approx(math.sqrt(5))
    np.testing.assert_allclose(second.z_scores, [5 / math.sqrt(26), 1 / math.sqrt(3)])


def test_nearest_means_are_found_in_blocks_as_by_all_distances(monkeypatch) -> None:
    monkeypatch.setattr("powermeans.app.report.summaries._DISTANCES_AT_ONCE", 20)
    points = np.random.default_rng(0).normal(size=(7, 3))
    _, clusters = summarize(points, np.arange(7, dtype=np.int32), 7, ["a", "b", "c"])
    apart = np.square(points[:, None] - points).sum(axis=2) + np.diag(np.full(7, np.inf))
    assert [one.nearest for one in clusters] == apart.argmin(axis=1).tolist()


def test_columns_are_told_that_are_high_and_low_the_most_first() -> None:
    _, (first, second) = summarize(POINTS, LABELS, 2, ["age", "income"])
    assert first.distinguishing(["age", "income"]) == [
        ("age", pytest.approx(-0.980580676)),
        ("income", pytest.approx(-1 / math.sqrt(3))),
    ]
    assert second.distinguishing(["age", "income"], 1) == [("age", pytest.approx(0.980580676))]
    _, (only,) = summarize(POINTS, np.zeros(4, dtype=np.int32), 1, ["age", "income"])
    assert only.distinguishing(["age", "income"]) == []
    assert only.nearest is None


def test_an_empty_cluster_has_no_mean_and_is_nobodys_neighbour() -> None:
    _, clusters = summarize(POINTS, LABELS * 2, 3, ["a", "b"])
    assert [one.size for one in clusters] == [2, 0, 2]
    assert [one.nearest for one in clusters] == [2, None, 0]
    assert np.isnan(clusters[1].mean).all()


@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 5))
def test_squares_within_and_between_add_up_dense_and_sparse(seed: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * (rng.random((30, 3)) < 0.6)
    labels = rng.integers(n_clusters, size=30).astype(np.int32)
    columns, clusters = summarize(points, labels, n_clusters, list("abc"))
    total = 30 * np.square(columns.deviations).sum()
    within = sum(one.size * one.spread**2 for one in clusters)
    between = sum(
        one.size * np.square(one.mean - columns.means).sum() for one in clusters if one.size
    )
    assert within + between == pytest.approx(total)
    _, thin = summarize(sparse.csr_matrix(points), labels, n_clusters, list("abc"))
    for one, other in zip(clusters, thin, strict=True):
        assert one.spread == pytest.approx(other.spread)
        np.testing.assert_allclose(one.z_scores, other.z_scores, atol=1e-12)


def test_a_constant_column_sets_nothing_apart() -> None:
    points = np.hstack([POINTS, np.full((4, 1), 0.1)])
    _, (first, _) = summarize(points, LABELS, 2, list("abc"))
    assert first.z_scores[2] == pytest.approx(0.0, abs=1e-12)


def test_means_are_at_zero_and_one_along_the_line_between_them() -> None:
    _, (first, second) = summarize(POINTS, LABELS, 2, ["a", "b"])
    assert isinstance(first, ClusterSummary)
    from_first, from_second = along_the_line(POINTS, LABELS, first, second)
    assert from_first.mean() == pytest.approx(0.0)
    assert from_second.mean() == pytest.approx(1.0)
