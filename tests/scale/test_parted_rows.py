"""Points in parts: the same bits wherever the parts are, and the same figures as in one piece."""

import threading
import time
import weakref

import dask
import dask.array as da
import numpy as np
import pytest
from comparator import all_that_rows_say, greedy_seeds
from divergence_cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import ReadAgain, cut, in_parts
from scipy import sparse
from sklearn.base import clone

from powermeans import PowerKMeans, divergences, open_data
from powermeans.engine.seeds.samples import raced_sample
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Online, Power
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints
from powermeans.scale.dask_executor import DaskExecutor
from powermeans.scale.dask_points import DaskPoints
from powermeans.scale.executors import PartOpener, ReadingExecutor, added, read_ahead
from powermeans.scale.parted_rows import PartedPoints

RULES = [Hard(), Power(-0.5), Power(-3.0), Gaussian(2.0), Harmonic(3.5)]


def clusters(n_points=2000, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(7, n_features))
    points = means[rng.integers(7, size=n_points)] + rng.normal(size=(n_points, n_features))
    return points, rng.exponential(size=n_points), means


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
    alive, most = weakref.WeakSet(), 0

    class Counted:
        def __init__(self):
            nonlocal most
            alive.add(self)
            most = max(most, len(alive))

        def __add__(self, other):
            return Counted()

    added(Counted() for _ in range(1000))
    assert 2 <= most <= 13  # about log2 of a thousand, and those in hand


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


@pytest.mark.parametrize("kind", OPENINGS)
def test_every_divergence_is_what_it_is_in_one_piece(kind):
    points, opener, centers = OPENINGS[kind]
    for weights, n_rows in (None, 300), (clusters()[1], 1999):  # the last part has one row
        how = {"divergence": opener.divergence, "has_missing": opener.has_missing}
        whole, rows = open_rows(points, weights, **how), in_parts(points, weights, n_rows, opener)
        for figure in FIGURES:
            found, expected = getattr(rows, figure)(), getattr(whole, figure)()
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=figure)
        for rule in RULES:
            swept, expected = rows.sweep(centers, rule), whole.sweep(centers, rule)
            moved = swept.centers(fallback=centers)
            np.testing.assert_allclose(moved, expected.centers(fallback=centers), rtol=1e-8)
            np.testing.assert_allclose(swept.weights, expected.weights, rtol=1e-9, atol=1e-12)
            assert swept.objective == pytest.approx(expected.objective, rel=1e-9, abs=1e-6)
        (labels, inertia), (of_whole, expected) = rows.assign(centers), whole.assign(centers)
        np.testing.assert_array_equal(labels, of_whole)
        assert inertia == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(rows.take(SOME), whole.take(SOME), rtol=1e-9, atol=1e-9)


def everything(rows, centers):
    yield from (getattr(rows, figure)() for figure in FIGURES)
    yield from all_that_rows_say(rows, centers, RULES)


def dask_array(points, n_rows):
    if not sparse.issparse(points):
        return da.from_array(points, chunks=(n_rows, points.shape[1]))
    blocks = [dask.delayed(block) for block, _ in cut(points, None, n_rows)]
    shapes = [block.shape for block, _ in cut(points, None, n_rows)]
    return da.concatenate(
        [da.from_delayed(*each, float) for each in zip(blocks, shapes, strict=True)]
    )


@pytest.mark.parametrize("kind", OPENINGS)
def test_where_the_parts_are_changes_no_bit(kind):
    points, opener, centers = OPENINGS[kind]
    weights = None if kind == "CSR" else WEIGHTS
    chunks = ReadAgain(cut(points, weights, 300))
    expected = [*map(np.asarray, everything(in_parts(points, weights, 300, opener), centers))]
    with dask.config.set(scheduler="threads"):
        for rows in (
            PartedPoints(ReadingExecutor(chunks, opener, n_threads=2)),
            PartedPoints(DaskExecutor(DaskPoints(dask_array(points, 300), weights), opener)),
        ):
            found = map(np.asarray, everything(rows, centers))
            for this, that in zip(found, expected, strict=True):
                assert (this.dtype, this.tobytes()) == (that.dtype, that.tobytes())


@pytest.mark.parametrize("kind", OPENINGS)
def test_few_points_are_searched_as_in_memory_wherever_they_are(kind):
    points, opener, _ = OPENINGS[kind]
    points = points[:700]
    options = {"divergence": opener.divergence, "effort": "fast", "random_state": 0}
    may_miss = kind in ("missing", "squared Euclidean")  # of the second none is missing
    model = PowerKMeans(6, missing="observed" if may_miss else "error", **options)
    blocks = [block for block, _ in cut(points, None, 300)]
    of_parts = clone(model).fit(open_data(blocks, rows_per_part=300))
    with dask.config.set(scheduler="threads"):
        of_dask = clone(model).fit(dask_array(points, 300))
    assert of_parts.cluster_centers_.tobytes() == of_dask.cluster_centers_.tobytes()
    if in_parts(points, None, 300, opener).elsewhere:
        np.testing.assert_array_equal(of_parts.predict(points), model.fit(points).labels_)


@pytest.mark.parametrize("fit_whole", [True, False])
def test_a_far_point_without_weight_changes_nothing(fit_whole):
    points, weights, _ = clusters(700, 2)
    points, weights[3] = points.astype(np.float32), 0.0
    model = PowerKMeans(5, effort="fast" if fit_whole else "none", random_state=0)
    expected = model.fit(points, sample_weight=weights).inertia_
    points[3] = 1e30
    parts = open_data(cut(points, weights, 300), rows_per_part=300)
    assert clone(model).fit(parts).inertia_ == pytest.approx(expected, rel=0.05)


def test_a_sample_of_parts_stands_for_all_points_and_does_not_depend_on_the_cut():
    points, weights, _ = clusters(5_000)
    points[7] = 1e4
    sums = []
    for seed in range(40):
        rows = in_parts(points, weights, 700)
        drawn, stand_for = raced_sample(rows, 300, np.random.RandomState(seed))
        assert len(drawn) == 300
        assert (drawn == 1e4).all(axis=1).any()  # it has nearly all of the inertia
        sums.append([stand_for.sum(), stand_for[drawn[:, 0] < 0].sum()])
    other = raced_sample(in_parts(points, weights, 1999), 300, np.random.RandomState(39))
    np.testing.assert_array_equal(other[0], drawn)
    np.testing.assert_allclose(other[1], stand_for, rtol=1e-9)
    whole = [weights.sum(), weights[points[:, 0] < 0].sum()]
    np.testing.assert_allclose(np.mean(sums, axis=0), whole, rtol=0.04)
    some, all_weights = raced_sample(rows, 5_000, np.random.RandomState(0))
    assert len(some) == 5_000
    assert all_weights.sum() == pytest.approx(weights.sum())


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_critical_power_of_many_points_is_that_of_the_same_sample(is_weighted):
    points, weights, _ = clusters(60_000)  # of which one piece takes a sample, too
    given = weights if is_weighted else None
    rows = in_parts(points, given, 7_000)
    assert rows.critical_power() == pytest.approx(critical_power(points, given), rel=1e-9)


def test_what_cannot_be_had_of_parts_is_refused():
    points, _, means = clusters(50)
    rows = in_parts(points, None, 20)
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
    rows, passes = in_parts(points, weights, 50), []
    original, uniforms = rows.executor.each, np.array([0.1, 0.3, 0.8])
    rows.executor.each = lambda call, *some: passes.append(call) or original(call, *some)
    drawn = rows.nearness(means).draw(uniforms, exponent)
    assert len(passes) == n_passes + 1  # and the look that tells where each part begins
    expected = ReferencePoints(points, weights).nearness(means).draw(uniforms, exponent)
    assert drawn.tolist() == expected.tolist()


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

    rows = PartedPoints(ReadingExecutor(Noting(cut(points, None, 50)), PartOpener(), n_threads=2))
    np.testing.assert_array_equal(rows.take(np.array([490, 60, 61])), points[[490, 60, 61]])
    assert asked == [None, [1, 9]]
    teams = list(rows.executor.each(lambda part, number: part.team))
    assert all(team is teams[0] for team in teams)
