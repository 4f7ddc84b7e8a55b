"""Points in parts: the same bits wherever the parts are, and the same figures as in one piece."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest
from comparator import compare_rows, greedy_seeds, varied_cases
from divergence_cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import ReadAgain, cut
from scipy import sparse

from powermeans import divergences
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Gaussian, Hard, Online, Power
from powermeans.mathematics.sums import Sums
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows
from powermeans.scale.executors import (
    MemoryExecutor,
    PartOpener,
    ReadingExecutor,
    added,
    read_ahead,
)
from powermeans.scale.parted_rows import PartedRows, sweep_of_part

RULES = [Hard(), Power(-0.5), Power(-3.0), Gaussian(2.0)]


def clusters(n_points=2000, n_features=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(7, n_features))
    points = means[rng.integers(7, size=n_points)] + rng.normal(size=(n_points, n_features))
    return points.astype(dtype), rng.exponential(size=n_points), means


def same_sums(one: Sums, other: Sums) -> bool:
    return (
        np.array_equal(one.points, other.points)
        and np.array_equal(one.weights, other.weights)
        and (one.objective, one.inertia) == (other.objective, other.inertia)
    )


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
    n_rows = max(n_rows, case.points.shape[0] // 10)
    rows = PartedRows(
        MemoryExecutor(cut(case.points, case.sample_weight, n_rows), PartOpener(), n_threads=1)
    )
    oracle = ReferenceRows(case.points, case.sample_weight, precision=np.longdouble)
    compare_rows(rows, oracle, case.centers, tolerance=case.tolerance, powers=(-np.inf, -3.3))


FIGURES = ["mean", "inertia_about_mean", "mean_variance", "unit_steps", "critical_power"]


def openings():
    """Points, how they are opened, and centers, for every kind whose sums add."""
    points, _, means = clusters(2000)
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


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", openings())
def test_every_divergence_is_what_it_is_in_one_piece(kind, is_weighted):
    points, opener, centers = openings()[kind]
    weights = clusters()[1] if is_weighted else None
    whole = open_rows(points, weights, divergence=opener.divergence, has_missing=opener.has_missing)
    rows = PartedRows(MemoryExecutor(cut(points, weights, 300), opener, n_threads=1))
    for figure in FIGURES:
        found, expected = getattr(rows, figure)(), getattr(whole, figure)()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=figure)
    for rule in RULES:
        swept, expected = rows.sweep(centers, rule), whole.sweep(centers, rule)
        moved = swept.centers(fallback=centers)
        np.testing.assert_allclose(moved, expected.centers(fallback=centers), rtol=1e-8)
        assert swept.objective == pytest.approx(expected.objective, rel=1e-9, abs=1e-6)
    labels, inertia = rows.assign(centers)
    np.testing.assert_array_equal(labels, whole.assign(centers)[0])
    assert inertia == pytest.approx(whole.assign(centers)[1], rel=1e-9)
    some = np.array([1999, 3, 3, 900, 0])
    np.testing.assert_allclose(rows.take(some), whole.take(some), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", openings())
def test_where_the_parts_are_changes_no_bit(kind):
    points, opener, centers = openings()[kind]
    weights = clusters()[1]
    chunks = cut(points, weights, 300)
    kept = PartedRows(MemoryExecutor(chunks, opener, n_threads=1))
    read = PartedRows(ReadingExecutor(ReadAgain(chunks), opener, n_threads=2))
    for figure in FIGURES:
        np.testing.assert_array_equal(getattr(kept, figure)(), getattr(read, figure)())
    for rule in (*RULES, Hard()):
        assert same_sums(kept.sweep(centers, rule), read.sweep(centers, rule))
        moved = kept.sweep(centers, rule).centers(fallback=centers)
        assert same_sums(kept.sweep(moved, rule), read.sweep(moved, rule))
    np.testing.assert_array_equal(kept.assign(centers)[0], read.assign(centers)[0])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_critical_power_of_many_points_is_that_of_the_same_sample(is_weighted):
    points, weights, _ = clusters(60_000)  # of which one piece takes a sample, too
    given = weights if is_weighted else None
    rows = PartedRows(MemoryExecutor(cut(points, given, 7_000), PartOpener(), n_threads=1))
    assert rows.critical_power() == pytest.approx(critical_power(points, given), rel=1e-9)


def test_a_part_may_have_one_row_or_no_weight():
    points, weights, centers = clusters(500)
    weights[100:200] = 0
    chunks = [(points[a:b], weights[a:b]) for a, b in [(0, 1), (1, 100), (100, 200), (200, 500)]]
    for opener in (
        PartOpener(),
        PartOpener(divergences.Cosine()),
        PartOpener(divergences.Mahalanobis(np.eye(5))),
    ):
        rows = PartedRows(MemoryExecutor(chunks, opener, n_threads=1))
        whole = open_rows(points, weights, divergence=opener.divergence)
        for rule in RULES:
            found, expected = rows.sweep(centers, rule), whole.sweep(centers, rule)
            assert found.inertia == pytest.approx(expected.inertia, rel=1e-9)
            np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)


def test_medians_and_an_order_of_points_are_refused():
    with pytest.raises(ValueError, match="medians of parts do not add up"):
        PartOpener(divergences.Manhattan())
    points, _, means = clusters(50)
    rows = PartedRows(MemoryExecutor(cut(points, None, 20), PartOpener()))
    with pytest.raises(TypeError, match="partial_fit on one chunk after the other"):
        rows.sweep(means, Online(np.zeros(len(means))))


def test_what_would_be_as_long_as_the_points_is_refused():
    points, _, means = clusters(50)
    rows = PartedRows(MemoryExecutor(cut(points, None, 20), PartOpener()))
    with pytest.raises(TypeError, match="an order of all points is too long for memory"):
        rows.nearness(means, np.arange(50))
    with pytest.raises(TypeError, match=r"choose seeds with .*ParallelSeeds"):
        greedy_seeds(rows, np.arange(50), 0.5, np.empty((2, 1)))
    with pytest.raises(TypeError, match="may not fit into memory: ask for one part"):
        rows.sq_distances(means)
    with pytest.raises(TypeError, match="may not fit into memory: pass indices"):
        rows.nearness(means).sq_dist()


@pytest.mark.parametrize(("exponent", "n_passes"), [(1.0, 3), (2.0, 2)])
def test_squares_are_drawn_without_a_look_for_the_farthest(exponent, n_passes):
    points, weights, means = clusters(500)
    rows, passes = PartedRows(MemoryExecutor(cut(points, weights, 50), PartOpener())), []
    original, uniforms = rows.executor.each, np.array([0.1, 0.3, 0.8])
    rows.executor.each = lambda call, *some: passes.append(call) or original(call, *some)
    drawn = rows.nearness(means).draw(uniforms, exponent)
    assert len(passes) == n_passes + 1  # and the look that tells where each part begins
    assert (
        drawn.tolist()
        == ReferenceRows(points, weights).nearness(means).draw(uniforms, exponent).tolist()
    )


# Reading.


def test_calls_travel():
    points, _, means = clusters(300)
    call = pickle.loads(pickle.dumps(sweep_of_part(means, Power(-3.0))))
    opener = pickle.loads(pickle.dumps(PartOpener(divergences.Cosine())))
    rows = opener.open(points, n_threads=1)
    assert same_sums(call(rows, 0), rows.sweep(means, Power(-3.0)))


def test_one_item_is_fetched_ahead_and_no_more():
    fetched = []

    def items():
        for number in range(6):
            fetched.append((number, threading.current_thread().name))
            yield number

    for item in read_ahead(items()):
        time.sleep(0.02)
        assert len(fetched) == min(item + 2, 6)
    assert all(name.startswith("powermeans-reader") for _, name in fetched)


def test_an_error_of_the_reader_is_raised_where_it_occurs():
    def items():
        yield 1
        raise OSError("the disk is gone")

    reading = read_ahead(items())
    assert next(reading) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(reading)


def test_only_the_parts_that_are_asked_for_are_read():
    points, _, _ = clusters(500)
    chunks, asked = cut(points, None, 50), []

    class Noting(ReadAgain):
        def read(self, numbers=None):
            asked.append(numbers)
            return super().read(numbers)

    rows = PartedRows(ReadingExecutor(Noting(chunks), PartOpener(), n_threads=1))
    np.testing.assert_array_equal(rows.take(np.array([490, 60, 61])), points[[490, 60, 61]])
    assert asked == [None, [1, 9]]


def test_parts_share_their_threads():
    points, _, _ = clusters(500)
    rows = ReadingExecutor(ReadAgain(cut(points, None, 50)), PartOpener(), n_threads=2)
    teams = list(rows.each(lambda part, number: part.team))
    assert all(team is teams[0] for team in teams)
