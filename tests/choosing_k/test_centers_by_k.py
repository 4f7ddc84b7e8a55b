import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from powermeans import PowerKMeans
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, _Path, centers_by_k
from powermeans.engine.history import SweepRecord
from powermeans.engine.search.state import Solution
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Rows


def found_by(
    rows: Rows, sizes: list[int], effort: str = "balanced", seed: int = 0
) -> dict[int, Solution]:
    rng = np.random.RandomState(seed)
    *_, found = centers_by_k(rows, sizes, EFFORTS_FOR_EACH_K[effort], rng)
    return found


@given(
    arrays(np.float64, st.tuples(st.integers(8, 30), st.integers(1, 3)),
           elements=st.integers(-3, 3).map(float)),
    st.sampled_from(["fast", "balanced"]),
    st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=40)
def test_inertia_never_rises_with_k(points, effort: str, seed: int) -> None:
    n_distinct = len(np.unique(points, axis=0))
    sizes = list(range(1, min(n_distinct, 9) + 1))
    rng = np.random.RandomState(seed)
    rows = open_rows(points)
    for found in centers_by_k(rows, sizes, EFFORTS_FOR_EACH_K[effort], rng):
        inertias = [rows.assign(solution.centers)[1] for solution in found.values()]
        assert all(b <= a * (1 + 1e-12) + 1e-12 for a, b in itertools.pairwise(inertias))
    assert list(found) == sizes
    assert inertias[-1] == pytest.approx(0, abs=1e-9) or len(sizes) < n_distinct


def test_a_step_that_fails_is_mended_from_the_fewer_centers() -> None:
    """Were a solution for six worse than that for five, it is grown anew."""
    points = np.random.default_rng(0).normal(size=(200, 2))
    rows, sizes = open_rows(points), [5, 6]
    path = _Path(rows, EFFORTS_FOR_EACH_K["fast"], np.random.RandomState(0), None)
    good = path.steps.grown(path.search.measured(rows.mean()[None, :]), 5)
    bad = path.search.measured(np.repeat(rows.mean()[None, :], 6, axis=0))
    assert bad.inertia > good.inertia
    mended = path.never_rising(dict(zip(sizes, [good, bad], strict=True)))
    assert mended[6].inertia < good.inertia
    assert mended[5] is good


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_every_k_is_about_as_good_as_a_fit_of_its_own(effort: str) -> None:
    rng = np.random.default_rng(3)
    places = 6 * rng.normal(size=(9, 2))
    points = places[rng.integers(9, size=900)] + rng.normal(size=(900, 2))
    found = found_by(open_rows(points), list(range(2, 13)), effort)
    worst = {"fast": 1.05, "balanced": 1.01, "thorough": 1.003}[effort]
    for k, solution in found.items():
        alone = PowerKMeans(k, random_state=0).fit(points).inertia_
        assert solution.inertia <= worst * alone


def test_sizes_may_have_holes_and_more_centers_than_places() -> None:
    found = found_by(open_rows(np.random.default_rng(0).normal(size=(300, 2))), [3, 7, 20])
    assert [len(solution.centers) for solution in found.values()] == [3, 7, 20]
    inertias = [solution.inertia for solution in found.values()]
    assert inertias == sorted(inertias, reverse=True)
    places = open_rows(np.repeat([[0.0], [1.0], [5.0]], 4, axis=0))
    inertias = [solution.inertia for solution in found_by(places, [2, 3, 4, 5]).values()]
    assert inertias == pytest.approx([2.0, 0.0, 0.0, 0.0])


def test_descents_end_at_a_share_of_the_mean_variance_of_the_features() -> None:
    points = np.random.default_rng(0).normal(size=(300, 4)) * [1.0, 2.0, 3.0, 9.0]
    fast = EFFORTS_FOR_EACH_K["fast"]
    stop = _Path(open_rows(points), fast, np.random.RandomState(0), None).lloyd.stop
    tolerance = 1e-4 * points.var(axis=0).mean()
    for share, is_over in ((0.99, True), (1.01, False)):
        record = SweepRecord(-np.inf, 1.0, 1.0, np.sqrt(share * tolerance), seconds=0.0)
        assert (stop.reason([record]) is not None) == is_over
