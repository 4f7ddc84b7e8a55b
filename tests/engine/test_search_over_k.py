"""Steps from one number of centers to another, and the search for the number of least cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powermeans.engine.anneal import Stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import History
from powermeans.engine.search.effort import EFFORTS
from powermeans.engine.search.over_k import Steps, search_over_k
from powermeans.engine.search.state import Search, Solution
from powermeans.engine.seeds.choose import choose_seeds
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import RelocateEmpty
from powermeans.mathematics.schedules import Fixed
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Rows


def ten_groups() -> np.ndarray:
    """Forty points in each, one after the other."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0, 100, size=(10, 2))
    return (means[:, None, :] + 0.1 * rng.normal(size=(10, 40, 2))).reshape(-1, 2)


def search_of(rows: Rows, price: float = 0.0) -> Search:
    lloyd = Stage(Fixed(-math.inf), CentersSettled(1e-6), 100, RelocateEmpty())
    return Search(rows, [lloyd], Fit(np.random.RandomState(0)), History(), price=price)


def steps_from_mean(price: float = 0.0) -> tuple[Steps, Solution]:
    rows = open_rows(ten_groups())
    search = search_of(rows, price)
    return Steps(search, None), search.measured(rows.mean()[None, :])


def test_growing_lowers_the_inertia_and_shrinking_raises_it() -> None:
    steps, mean = steps_from_mean()
    grown = steps.grown(mean, 6)
    shrunk = steps.shrunk(grown, 4)
    assert [len(solution.centers) for solution in (grown, shrunk)] == [6, 4]
    assert grown.inertia < shrunk.inertia < mean.inertia


def test_centers_are_added_as_long_as_they_pay() -> None:
    for price, n_expected in ((1e9, 1), (50.0, 10)):
        steps, mean = steps_from_mean(price)
        grown = steps.grown_while_it_pays(mean)
        # The mean is a center too, and may keep a few points.
        assert n_expected <= len(grown.centers) <= n_expected + (n_expected > 1)
        assert (grown is mean) == (n_expected == 1)


@pytest.mark.parametrize("n_started", [1, 3, 30])
@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("knows_swaps", [True, False])
def test_the_number_is_found_from_too_few_and_from_too_many(n_started, effort, knows_swaps):
    rows, rng = open_rows(ten_groups()), np.random.RandomState(1)
    search = search_of(rows, price=50.0)
    if not knows_swaps:
        search.moves = None
    start = rows.take(np.arange(n_started) * (rows.n_points // n_started))

    def seeds(n_centers: int) -> np.ndarray:
        return choose_seeds(rows, n_centers, rng)[0]

    best = search_over_k(Steps(search, None), seeds, EFFORTS[effort], start)
    assert len(best.centers) == 10
    groups = np.split(ten_groups(), 10)
    within = sum(open_rows(group).inertia_about_mean() for group in groups)
    assert search.cost(best) == pytest.approx(within + 10 * 50.0)
