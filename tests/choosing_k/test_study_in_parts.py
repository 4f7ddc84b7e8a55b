"""What criteria say of rows in parts, against what they say of the same rows in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powermeans import choose_k, open_data
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K
from powermeans.choosing_k.counted import CountedPoints
from powermeans.choosing_k.evaluate import CRITERIA, Study
from powermeans.engine.search.state import Solution
from powermeans.points.needs import FitNeeds, Measure, Needs
from powermeans.types import FloatArray

SIZES = [1, 2, 3, 4, 5, 6]


def blobs(n_points: int = 900, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])
    return means[rng.integers(4, size=n_points)] + rng.normal(size=(n_points, 2))


def studies(
    points: FloatArray, weights: FloatArray | None, *, has_missing: bool = False
) -> tuple[Study, Study]:
    """Of the same centers, in memory and in parts."""
    measure = Measure(has_missing=has_missing, n_threads=1)
    needs = Needs(name="studies", measure=measure, fit=FitNeeds(n_points=SIZES[-1]))
    whole = CountedPoints.of(points, weights, needs)
    parted = CountedPoints.of(open_data(points, weights=weights, rows_per_part=128), None, needs)
    places = np.random.default_rng(1).choice(len(points), SIZES[-1], replace=False)
    centers = np.where(np.isnan(points[places]), 1.0, points[places])

    def study_of(counted: CountedPoints) -> Study:
        found = {k: Solution(centers[:k], counted.rows.spread(centers[:k])) for k in SIZES}
        search = EFFORTS_FOR_EACH_K["fast"]
        return Study(
            counted.rows, counted.n_weighing, found, search, 10_000, 0, has_missing=has_missing
        )

    one, other = study_of(whole), study_of(parted)
    np.testing.assert_allclose(
        parted.inertias(other.inertias), whole.inertias(one.inertias), rtol=1e-9
    )
    return one, other


def weights_of(kind: str, n_points: int) -> FloatArray | None:
    """None, counts, or shares, which add up to less than the rows they are of."""
    counts = np.random.default_rng(2).integers(0, 4, size=n_points).astype(float)
    return {"none": None, "counts": counts, "shares": counts / counts.sum()}[kind]


@pytest.mark.parametrize("kind", ["none", "counts", "shares"])
@pytest.mark.parametrize("name", CRITERIA)
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
    for name in ("separation", "calinski_harabasz"):
        expected, found = CRITERIA[name](one), CRITERIA[name](other)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)


def test_k_is_found_in_a_file_as_in_memory(tmp_path) -> None:
    points = blobs(3000)
    np.save(tmp_path / "points.npy", points)
    opened = open_data(tmp_path / "points.npy", rows_per_part=512)
    choice = choose_k(opened, range(2, 8), random_state=0, n_threads=1)
    assert choice.recommended == 4
    assert 0 < choice.silhouette_sample <= 2000
    assert list(choice.by_criterion) == list(CRITERIA)
    in_memory = choose_k(points, range(2, 8), criteria="bic", random_state=0, n_threads=1)
    of_four = choice.table["inertia"][2], in_memory.table["inertia"][2]
    assert math.isclose(*of_four, rel_tol=1e-6)
    again = choose_k(opened, range(2, 8), criteria="bic", random_state=0, n_threads=2)
    assert np.array_equal(again.table["inertia"], choice.table["inertia"])
    assert choice.model(4).predict(points[:3]).shape == (3,)


def test_what_parts_cannot_give_is_refused(tmp_path) -> None:
    data = open_data(blobs(), rows_per_part=300)
    with pytest.raises(ValueError, match=r'open_data\(\.\.\., weights="column"\)'):
        choose_k(data, [2, 3], sample_weight=np.ones(900))
    with pytest.raises(ValueError, match="writes no checkpoint"):
        choose_k(open_data(blobs(), checkpoint=tmp_path / "state"), [2, 3])
    copies = open_data(np.repeat([[0.0], [1.0], [5.0]], 50, axis=0), rows_per_part=20)
    with pytest.raises(ValueError, match="more than the 3 distinct rows"):
        choose_k(copies, [2, 4])
    with pytest.raises(ValueError, match=r"1e\+17, whose square float32 does not hold"):
        choose_k(open_data(np.array([[0.0], [1e17]], np.float32)), [1, 2])
