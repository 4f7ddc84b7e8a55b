"""Points in parts: the same bits wherever the parts are, and the same figures as in one piece."""

from __future__ import annotations

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from comparator import compare_rows, greedy_seeds, varied_cases
from distributed import Client, LocalCluster
from divergence_cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import ReadAgain, cut
from scipy import sparse

from powermeans import divergences
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Online, Power
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows
from powermeans.scale import dask_executor
from powermeans.scale.dask_executor import DaskExecutor
from powermeans.scale.dask_points import DaskPoints
from powermeans.scale.executors import (
    MemoryExecutor,
    PartOpener,
    ReadingExecutor,
    added,
    read_ahead,
)
from powermeans.scale.parted_rows import PartedRows

RULES = [Hard(), Power(-0.5), Power(-3.0), Gaussian(2.0), Harmonic(3.5)]


def clusters(n_points=2000, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(7, n_features))
    points = means[rng.integers(7, size=n_points)] + rng.normal(size=(n_points, n_features))
    return points, rng.exponential(size=n_points), means


def in_memory(points, weights=None, opener=None, n_rows=300):
    opener = opener or PartOpener()
    return PartedRows(MemoryExecutor(cut(points, weights, n_rows), opener, n_threads=1))


# The tree.


class Term(str):
    def __add__(self, other):
        return Term(f"({self}{other})")


def by_levels(terms):
    """Neighbours are added until one is left; who has none goes up as it is."""
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


@given(n_terms=st.integers(1, 70))
def test_results_are_added_level_by_level(n_terms):
    terms = [Term(chr(65 + i)) for i in range(n_terms)]
    assert added(iter(terms)) == by_levels(terms)


def test_few_results_are_held_at_a_time():
    alive, most = set(), [0]

    class Counted:
        def __init__(self):
            alive.add(id(self))
            most[0] = max(most[0], len(alive))

        def __add__(self, other):
            return Counted()

        def __del__(self):
            alive.discard(id(self))

    added(Counted() for _ in range(1000))
    assert 2 <= most[0] <= 13  # about log2 of a thousand, and those in hand


# Against one piece.


@pytest.mark.parametrize("n_rows", [7, 64])
@pytest.mark.parametrize("case", varied_cases()[::7], ids=str)
def test_all_quantities_agree_with_the_reference(case, n_rows):
    rows = in_memory(case.points, case.sample_weight, None, max(n_rows, case.points.shape[0] // 10))
    oracle = ReferenceRows(case.points, case.sample_weight, precision=np.longdouble)
    compare_rows(rows, oracle, case.centers, tolerance=case.tolerance, powers=(-np.inf, -3.3))


FIGURES = ["mean", "inertia_about_mean", "mean_variance", "unit_steps", "critical_power"]


def openings():
    """Points, how they are opened, and centers, for every kind whose sums add."""
    points, _, means = clusters()
    gaps = np.where(np.random.default_rng(1).uniform(size=points.shape) < 0.2, np.nan, points)
    gaps[:, 0] = points[:, 0]
    kinds = {
        "squared Euclidean": (points, PartOpener(), means),
        "CSR": (sparse.csr_array(np.where(points > 0, points, 0)), PartOpener(), means),
        "cosine": (points, PartOpener(divergences.Cosine()), means),
        "missing": (gaps, PartOpener(has_missing=True), means),
    }
    for name, case in CASES.items():
        drawn = case.points(2000, 5, seed=3)
        centers = case.points(7, 5, seed=4) if "zeros" not in name else drawn[:7] + 0.5
        kinds[name] = (drawn, PartOpener(case.divergence(5)), centers)
    return kinds


OPENINGS = openings()
WEIGHTS = clusters()[1]
WEIGHTS[::7] = 0.0
SOME = np.array([1999, 3, 3, 900, 0])


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", OPENINGS)
def test_every_divergence_is_what_it_is_in_one_piece(kind, is_weighted):
    points, opener, centers = OPENINGS[kind]
    weights = clusters()[1] if is_weighted else None
    whole = open_rows(points, weights, divergence=opener.divergence, has_missing=opener.has_missing)
    # The last part has one row.
    rows = in_memory(points, weights, opener, 1999 if is_weighted else 300)
    for figure in FIGURES:
        found, expected = getattr(rows, figure)(), getattr(whole, figure)()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=figure)
    for rule in RULES:
        swept, expected = rows.sweep(centers, rule), whole.sweep(centers, rule)
        moved = swept.centers(fallback=centers)
        np.testing.assert_allclose(moved, expected.centers(fallback=centers), rtol=1e-8)
        np.testing.assert_allclose(swept.weights, expected.weights, rtol=1e-9, atol=1e-12)
        assert swept.objective == pytest.approx(expected.objective, rel=1e-9, abs=1e-6)
    labels, inertia = rows.assign(centers)
    np.testing.assert_array_equal(labels, whole.assign(centers)[0])
    assert inertia == pytest.approx(whole.assign(centers)[1], rel=1e-9)
    np.testing.assert_allclose(rows.take(SOME), whole.take(SOME), rtol=1e-9, atol=1e-9)


def all_that_rows_say(rows, centers, *, is_brief=False):
    for figure in FIGURES[:2] if is_brief else FIGURES:
        yield getattr(rows, figure)()
    for rule in RULES[:2] if is_brief else RULES:
        sums = rows.sweep(centers, rule)
        yield from (sums.points, sums.weights, sums.objective, sums.inertia)
        if not is_brief:
            sums = rows.sweep(sums.centers(fallback=centers), rule)  # of parts that are known
            yield from (sums.points, sums.weights, sums.objective)
    spread = rows.spread(centers)
    yield from (spread.error, spread.utility, spread.weights, *rows.assign(centers))
    if not is_brief:
        nearness = rows.nearness(centers[:2])
        yield from (nearness.draw(np.array([0.1, 0.9])), nearness.potentials(SOME))
        yield from (nearness.farthest(), rows.take(SOME), nearness.sq_dist(SOME))


def on_dask(points, weights, opener, n_rows=300):
    if sparse.issparse(points):
        blocks = [
            da.from_delayed(dask.delayed(block), block.shape, float)
            for block, _ in cut(points, None, n_rows)
        ]
        array = da.concatenate(blocks)
    else:
        array = da.from_array(points, chunks=(n_rows, points.shape[1]))
    return PartedRows(DaskExecutor(DaskPoints(array, weights), opener))


@pytest.fixture(scope="module")
def workers():
    """Two workers in processes of their own."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        yield


# Each question to another process takes its time, so there not everything is asked.
PLACES = ["read again", "threads of Dask", "workers of Dask"]


@pytest.mark.parametrize("kind", OPENINGS)
@pytest.mark.parametrize("place", PLACES)
def test_where_the_parts_are_changes_no_bit(place, kind, request):
    points, opener, centers = OPENINGS[kind]
    weights = None if kind == "CSR" else WEIGHTS
    kept, is_brief = in_memory(points, weights, opener), place == PLACES[2]
    if place == PLACES[0]:
        executor = ReadingExecutor(ReadAgain(cut(points, weights, 300)), opener, n_threads=2)
        others = PartedRows(executor)
    elif is_brief:
        request.getfixturevalue("workers")
        others = on_dask(points, weights, opener)
    else:
        with dask.config.set(scheduler="threads"):
            others = on_dask(points, weights, opener)
    with dask.config.set(scheduler=None if is_brief else "threads"):
        said = [*map(np.asarray, all_that_rows_say(others, centers, is_brief=is_brief))]
    for this, that in zip(said, all_that_rows_say(kept, centers, is_brief=is_brief), strict=True):
        assert this.dtype == np.asarray(that).dtype
        assert this.tobytes() == np.asarray(that).tobytes()


@pytest.mark.parametrize("place", PLACES[1:])
def test_centers_that_are_sent_but_once_give_the_same_as_those_in_each_task(place, request):
    if place == PLACES[2]:
        request.getfixturevalue("workers")
    points = np.random.default_rng(0).normal(size=(748, 40))
    assert points[:400].nbytes > dask_executor._BYTES_IN_A_TASK > points[:2].nbytes
    with dask.config.set(scheduler="threads" if place == PLACES[1] else None):
        rows = on_dask(points, None, PartOpener())
        for centers in (points[:400], points[:2]):
            found = rows.sweep(centers, Power(-2.0))
            expected = in_memory(points).sweep(centers, Power(-2.0))
            assert found.points.tobytes() == expected.points.tobytes()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_critical_power_of_many_points_is_that_of_the_same_sample(is_weighted):
    points, weights, _ = clusters(60_000)  # of which one piece takes a sample, too
    given = weights if is_weighted else None
    rows = in_memory(points, given, None, 7_000)
    assert rows.critical_power() == pytest.approx(critical_power(points, given), rel=1e-9)


def test_what_cannot_be_had_of_parts_is_refused():
    points, _, means = clusters(50)
    rows = in_memory(points, None, None, 20)
    for call, kind, told in [
        (lambda: PartOpener(divergences.Manhattan()), ValueError, "medians"),
        (lambda: rows.sweep(means, Online(np.zeros(7))), TypeError, "partial_fit"),
        (lambda: rows.nearness(means, np.arange(50)), TypeError, "too long for memory"),
        (lambda: greedy_seeds(rows, np.arange(50), 0.5, np.empty((2, 1))), TypeError, "Parallel"),
        (lambda: rows.sq_distances(means), TypeError, "one part"),
        (lambda: rows.nearness(means).sq_dist(), TypeError, "pass indices"),
    ]:
        with pytest.raises(kind, match=told):
            call()


@pytest.mark.parametrize(("exponent", "n_passes"), [(1.0, 3), (2.0, 2)])
def test_squares_are_drawn_without_a_look_for_the_farthest(exponent, n_passes):
    points, weights, means = clusters(500)
    rows, passes = in_memory(points, weights, None, 50), []
    original, uniforms = rows.executor.each, np.array([0.1, 0.3, 0.8])
    rows.executor.each = lambda call, *some: passes.append(call) or original(call, *some)
    drawn = rows.nearness(means).draw(uniforms, exponent)
    assert len(passes) == n_passes + 1  # and the look that tells where each part begins
    expected = ReferenceRows(points, weights).nearness(means).draw(uniforms, exponent)
    assert drawn.tolist() == expected.tolist()


# Reading.


def test_one_item_is_fetched_ahead_and_no_more_and_errors_come_where_they_occur():
    fetched = []

    def items():
        for number in range(6):
            fetched.append((number, threading.current_thread().name))
            yield number
        raise OSError("the disk is gone")

    reading = read_ahead(items())
    for item in range(6):
        assert next(reading) == item
        time.sleep(0.02)
        assert len(fetched) == min(item + 2, 6)
    assert all(name.startswith("powermeans-reader") for _, name in fetched)
    with pytest.raises(OSError, match="the disk is gone"):
        next(reading)


def test_only_the_parts_that_are_asked_for_are_read_and_all_share_their_threads():
    points, _, _ = clusters(500)
    asked = []

    class Noting(ReadAgain):
        def read(self, numbers=None):
            asked.append(numbers)
            return super().read(numbers)

    rows = PartedRows(ReadingExecutor(Noting(cut(points, None, 50)), PartOpener(), n_threads=2))
    np.testing.assert_array_equal(rows.take(np.array([490, 60, 61])), points[[490, 60, 61]])
    assert asked == [None, [1, 9]]
    teams = list(rows.executor.each(lambda part, number: part.team))
    assert all(team is teams[0] for team in teams)
