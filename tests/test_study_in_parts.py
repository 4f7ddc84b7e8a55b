"""What criteria say of rows in parts, against what they say of the same rows in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from powermeans import choose_k, open_data
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K
from powermeans.choosing_k.choose import _Scaled
from powermeans.choosing_k.evaluate import CRITERIA, Settings, Study
from powermeans.choosing_k.in_parts import PartedStudy
from powermeans.estimators.opening import OpeningSpec, admit_array
from powermeans.loop.search import Solution
from powermeans.types import FloatArray

SIZES = [1, 2, 3, 4, 5, 6]
BY_SUMS = [name for name in CRITERIA if name not in ("gap", "stability")]


def blobs(n_points: int = 900, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])
    return means[rng.integers(4, size=n_points)] + rng.normal(size=(n_points, 2))


def settings() -> Settings:
    return Settings(EFFORTS_FOR_EACH_K["fast"], 10_000, 2, 2, dict.fromkeys(CRITERIA, 0))


def studies(
    points: FloatArray, weights: FloatArray | None, has_missing: bool = False
) -> tuple[Study, Study]:
    """Of the same centers, in memory and in parts."""
    spec = OpeningSpec(name="studies", has_missing=has_missing, n_threads=1, n_needed=SIZES[-1])
    whole = _Scaled.of(admit_array(points, weights, spec), spec)
    opened = open_data(points, weights=weights, rows_per_part=128)
    parted = _Scaled.of_parts(opened, None, spec)
    places = np.random.default_rng(1).choice(len(points), SIZES[-1], replace=False)
    centers = np.where(np.isnan(points[places]), 1.0, points[places])

    def found(rows: Any) -> dict[int, Solution]:
        return {k: Solution(centers[:k], rows.spread(centers[:k])) for k in SIZES}

    one, other = (scaled.study(found(scaled.rows), settings()) for scaled in (whole, parted))
    assert isinstance(other, PartedStudy)
    np.testing.assert_allclose(parted.inertias(other), whole.inertias(one), rtol=1e-9)
    return one, other


def weights_of(kind: str, n_points: int) -> FloatArray | None:
    """None, counts, or shares, which add up to less than the rows they are of."""
    counts = np.random.default_rng(2).integers(0, 4, size=n_points).astype(float)
    return {"none": None, "counts": counts, "shares": counts / counts.sum()}[kind]


@pytest.mark.parametrize("kind", ["none", "counts", "shares"])
@pytest.mark.parametrize("name", BY_SUMS)
def test_criteria_are_those_in_memory_at_the_same_centers(name: str, kind: str) -> None:
    points = blobs()
    one, other = studies(points, weights_of(kind, len(points)))
    expected, found = CRITERIA[name](one), CRITERIA[name](other)
    assert not np.isnan(expected.values).all()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-12)
    assert found.chosen == expected.chosen


def test_criteria_are_those_in_memory_where_entries_are_missing() -> None:
    points = blobs()
    points[::7, 0] = np.nan
    one, other = studies(points, None, has_missing=True)
    for name in ("simplified_silhouette", "davies_bouldin", "calinski_harabasz"):
        expected, found = CRITERIA[name](one), CRITERIA[name](other)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)


def test_a_point_alone_in_its_cluster_has_no_width_in_any_part() -> None:
    """By hand: 0 and 1 about 0.5 with the next center at 10, and 10 alone."""
    points = np.array([[0.0], [1.0], [10.0]])
    spec = OpeningSpec(name="studies", n_threads=1, n_needed=2)
    rows = _Scaled.of_parts(open_data(points, rows_per_part=1), None, spec).rows
    centers = np.array([[0.5], [10.0]])
    found = {2: Solution(centers, rows.spread(centers))}
    study: Any = PartedStudy.of(rows, found, settings(), False)
    means, width = study.widths[0]
    np.testing.assert_allclose(means, [0.5, 0.0])
    assert width == pytest.approx(((10 - 0.5) / 10 + (9 - 0.5) / 9) / 3)


def test_k_is_found_in_a_file_as_in_memory(tmp_path) -> None:
    points = blobs(3000)
    np.save(tmp_path / "points.npy", points)
    opened = open_data(tmp_path / "points.npy", rows_per_part=512)
    choice = choose_k(opened, range(2, 8), random_state=0, n_threads=1)
    assert choice.recommended == 4
    assert 0 < choice.silhouette_sample <= 2000
    assert set(choice.by_criterion) == set(CRITERIA) - {"gap"}
    in_memory = choose_k(points, range(2, 8), criteria="bic", random_state=0, n_threads=1)
    of_four = choice.table["inertia"][2], in_memory.table["inertia"][2]
    assert math.isclose(*of_four, rel_tol=1e-6)
    again = choose_k(opened, range(2, 8), criteria="bic", random_state=0, n_threads=2)
    assert np.array_equal(again.table["inertia"], choice.table["inertia"])
    assert choice.model(4).predict(points[:3]).shape == (3,)


def test_what_sums_do_not_tell_is_refused_and_left_out_of_all(tmp_path) -> None:
    data = open_data(blobs(), rows_per_part=300)
    with pytest.raises(ValueError, match="names 'gap', which draws in a box"):
        choose_k(data, [2, 3], criteria=["gap", "bic"])
    choice = choose_k(data, [2, 3, 4, 5], criteria="all", effort="fast", random_state=0)
    assert "gap" not in choice.by_criterion
    with pytest.raises(ValueError, match=r'open_data\(\.\.\., weights="column"\)'):
        choose_k(data, [2, 3], sample_weight=np.ones(900))
    with pytest.raises(ValueError, match="writes no checkpoint"):
        choose_k(open_data(blobs(), checkpoint=tmp_path / "state"), [2, 3])
    with pytest.raises(ValueError, match=r"1e\+17, whose square float32 does not hold"):
        choose_k(open_data(np.array([[0.0], [1e17]], np.float32)), [1, 2])


def test_more_clusters_than_distinct_rows_are_refused() -> None:
    data = open_data(np.repeat([[0.0], [1.0], [5.0]], 50, axis=0), rows_per_part=20)
    with pytest.raises(ValueError, match="more than the 3 distinct rows"):
        choose_k(data, [2, 4])
