"""Clusters in numbers, against sums by hand, and warnings where they hold and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

from powermeans import KMeans, PowerKMeans
from powermeans.app.report.summaries import summarize
from powermeans.app.report.warnings_on_data import along_the_line, count_copies, find_warnings

POINTS = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 1.0], [12.0, 5.0]])
LABELS = np.array([0, 0, 1, 1], dtype=np.int32)


def test_sizes_means_and_spreads_are_those_by_hand():
    names = ["age", "income"]
    columns, (first, second) = summarize(POINTS, LABELS, 2, names)
    np.testing.assert_allclose(columns.means, [6.0, 2.0])
    np.testing.assert_allclose(columns.deviations, [math.sqrt(26), math.sqrt(3)])
    assert (first.size, first.share, first.nearest) == (2, 0.5, 1)
    assert first.spread == pytest.approx(1.0)
    # (10, 1) and (12, 5) are both 1 and 2 from their mean (11, 3).
    assert second.spread == pytest.approx(math.sqrt(5))
    np.testing.assert_allclose(second.z_scores, [5 / math.sqrt(26), 1 / math.sqrt(3)])
    # Columns that are high and low are told, the most first.
    assert first.distinguishing(names) == [
        ("age", pytest.approx(-5 / math.sqrt(26))),
        ("income", pytest.approx(-1 / math.sqrt(3))),
    ]
    assert second.distinguishing(names, 1) == [("age", pytest.approx(5 / math.sqrt(26)))]
    # Along the line between the means, these are at zero and one.
    of_both = along_the_line(POINTS, LABELS, first, second)
    assert [values.mean() for values in of_both] == [pytest.approx(0.0), pytest.approx(1.0)]


def test_what_sets_nothing_apart():
    """A cluster alone, a column of one value, and a cluster without rows."""
    _, (only,) = summarize(POINTS, np.zeros(4, dtype=np.int32), 1, ["a", "b"])
    assert (only.distinguishing(["a", "b"]), only.nearest) == ([], None)
    with_constant = np.hstack([POINTS, np.full((4, 1), 0.1)])
    _, (first, _) = summarize(with_constant, LABELS, 2, list("abc"))
    assert first.z_scores[2] == pytest.approx(0.0, abs=1e-12)
    _, clusters = summarize(POINTS, LABELS * 2, 3, ["a", "b"])
    assert [(one.size, one.nearest) for one in clusters] == [(2, 2), (0, None), (2, 0)]
    assert np.isnan(clusters[1].mean).all()


def test_nearest_means_are_found_in_blocks_as_by_all_distances(monkeypatch):
    monkeypatch.setattr("powermeans.app.report.summaries._DISTANCES_AT_ONCE", 20)
    points = np.random.default_rng(0).normal(size=(7, 3))
    _, clusters = summarize(points, np.arange(7, dtype=np.int32), 7, list("abc"))
    apart = np.square(points[:, None] - points).sum(axis=2) + np.diag(np.full(7, np.inf))
    assert [one.nearest for one in clusters] == apart.argmin(axis=1).tolist()


@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 5))
def test_squares_within_and_between_add_up_dense_and_sparse(seed, n_clusters):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * (rng.random((30, 3)) < 0.6)
    labels = rng.integers(n_clusters, size=30).astype(np.int32)
    columns, clusters = summarize(points, labels, n_clusters, list("abc"))
    there = [one for one in clusters if one.size]
    within = sum(one.size * one.spread**2 for one in there)
    between = sum(one.size * np.square(one.mean - columns.means).sum() for one in there)
    assert within + between == pytest.approx(30 * np.square(columns.deviations).sum())
    _, thin = summarize(sparse.csr_matrix(points), labels, n_clusters, list("abc"))
    for one, other in zip(clusters, thin, strict=True):
        assert one.spread == pytest.approx(other.spread)
        np.testing.assert_allclose(one.z_scores, other.z_scores, atol=1e-12)


GOOD = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 50, axis=0)
GOOD += np.random.default_rng(0).normal(size=GOOD.shape)
THREE = np.repeat([0, 1, 2], 50)


def said(points, labels, n_clusters):
    names = [f"c{i}" for i in range(points.shape[1])]
    labels = labels.astype(np.int32)
    return find_warnings(points, labels, *summarize(points, labels, n_clusters, names))


@pytest.mark.parametrize(
    ("ratio", "told"), [(90.0, None), (120.0, "120 times"), (1e60, "1e+60 times")]
)
def test_columns_that_differ_more_than_hundredfold_are_named(ratio, told):
    found = said(GOOD / GOOD.std(axis=0) * [ratio, 1.0], THREE, 3)
    assert ("scales" in found) == (told is not None)
    assert told is None or f"“c0” varies {told} as much as “c1”" in found["scales"]


@pytest.mark.parametrize("n_features", [1, 2, 10, 50])
def test_a_group_cut_in_two_has_no_gap_and_clusters_six_deviations_apart_have_one(n_features):
    rng = np.random.default_rng(0)
    for draw in (rng.normal, rng.random):
        points = draw(size=(600, n_features))
        labels = KMeans(2, random_state=0, n_init=1).fit_predict(points)
        assert "k too large" in said(points, labels, 2)
    if n_features > 1:
        points = rng.normal(size=(600, n_features))
        points[300:, 0] += 6.0
        assert "k too large" not in said(points, np.repeat([0, 1], 300), 2)


@pytest.mark.parametrize(("k", "is_too_large"), [(3, False), (5, True)])
def test_more_centers_than_clouds_are_too_many(k, is_too_large):
    points, _ = make_blobs(600, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    labels = PowerKMeans(k, random_state=0).fit(points).labels_
    assert list(said(points, labels, k)) == ["k too large"] * is_too_large


def test_tiny_and_empty_clusters_are_named():
    found = said(np.vstack([GOOD, [[100.0, 100.0]]]), np.append(THREE, 4), 5)
    assert found["tiny"].startswith("Cluster 4 has very few points")
    assert found["empty"].startswith("Cluster 3 has no points")
    # A cluster of one is tiny only beside large ones.
    points = np.random.default_rng(0).normal(size=(30, 2))
    assert "tiny" not in said(points[:9], np.repeat([0, 1, 2], [1, 4, 4]), 3)
    found = said(points, np.repeat([0, 1], [1, 29]), 2)
    assert found["tiny"].startswith("Cluster 0 has very few points (less than a tenth of the mean")


@pytest.mark.parametrize(("value", "is_scaled"), [(0.1, True), (-1.7, False), (1e60, False)])
def test_a_column_of_one_value_has_no_scale(value, is_scaled):
    n = 800_000  # their sum is so far off that they seem to deviate from their mean
    points = np.column_stack([np.random.default_rng(0).normal(size=n), np.full(n, value)])
    if is_scaled:
        points = StandardScaler().fit_transform(points)
    found = said(points, np.repeat([0, 1], n // 2), 2)
    assert ("scales" in found, "“c1”" in found["constant"]) == (False, True)


@given(seed=st.integers(0, 10_000))
def test_copies_are_counted_as_by_comparing_all_rows(seed):
    points = np.random.default_rng(seed).integers(-1, 2, size=(40, 3)).astype(float)
    points[points == 0] *= -1  # some zeros are negative, and equal all the same
    expected = len(points) - len(np.unique(points + 0.0, axis=0))
    thin = sparse.csr_matrix(points)
    thin.eliminate_zeros()
    assert count_copies(points) == count_copies(thin) == expected


def test_copies_are_told_and_whole_numbers_that_differ_are_none():
    found = said(np.vstack([GOOD, GOOD[:30]]), np.concatenate([THREE, np.zeros(30)]), 3)
    assert found["duplicates"].startswith("30 of 180 rows (17%)")
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert count_copies(grid) == count_copies(grid[:, ::-1].copy() * 1024) == 0
