"""The loop takes the steps of the papers and stops when told; lost centers come back to life."""

import ast
import inspect
import itertools
import math
import re
import warnings
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from kinds_of_rows import ReadAgain, cut
from problems import blobs, sq_distances
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from powermeans import KMeans, PowerKMeans, open_data
from powermeans.divergences import Separable
from powermeans.engine.algorithm_1 import power_k_means
from powermeans.engine.anneal import Stage, anneal, run_stage
from powermeans.engine.fit import Fit, Listener
from powermeans.engine.history import History, SweepRecord, SweepState
from powermeans.engine.stopping import CentersSettled, StopRule
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident, Sweep, Update
from powermeans.errors import ArgumentError, ObjectiveRoseWarning
from powermeans.mathematics.power_mean import power_mean, power_mean_gradient
from powermeans.mathematics.rules import Hard
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints
from powermeans.scale.executors import PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedPoints

LLOYD = Fixed(-math.inf)
NEVER = CentersSettled(0.0)


@pytest.fixture
def points() -> np.ndarray:
    return blobs(200, 3, 8, scale=6.0)


@pytest.fixture
def centers(points) -> np.ndarray:
    return points[:8].copy()


def stage(schedule, max_iter=300, stop=NEVER, update=Update()) -> Stage:  # noqa: B008
    return Stage(schedule, stop, max_iter, update)


class RisingPoints(ReferencePoints):
    """Rows that move every center to the wrong side."""

    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        return replace(sums, points=-3 * sums.points)


class Wrong(Separable):
    def deviance(self, points, centers):
        return (points - centers) ** 2

    def slope(self, centers):  # of another divergence
        return np.exp(centers / 3)


def test_stages_have_their_sweeps_and_an_objective_that_rises_gives_a_warning(points, centers):
    fit = Fit()
    expected = r"rose from .* in sweep 2 at power=-3\.0"
    with pytest.warns(ObjectiveRoseWarning, match=expected) as told:
        run_stage(RisingPoints(points), centers, stage(Fixed(-3.0), max_iter=2), fit)
    assert {warning.filename for warning in told} == {__file__}
    assert len(fit.history.records) == 2
    with pytest.warns(ObjectiveRoseWarning, match=r": check Wrong, whose slopes") as told:
        PowerKMeans(5, divergence=Wrong(), effort="none", random_state=0).fit(np.abs(points) + 1)
    assert len([each for each in told if each.category is ObjectiveRoseWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none while the power changes
        run_stage(RisingPoints(points), centers, stage([-3.0, -4.0]), Fit())
    fit = Fit()
    stages = [stage(Geometric(-1.0, 1.1), max_iter=5), stage(LLOYD, max_iter=2)]
    second = anneal(open_rows(points), centers, stages, fit)
    (first,) = second.former
    assert [record.power == -math.inf for record in fit.history.records] == [False] * 5 + [True] * 2
    assert not first.has_converged
    assert first.reason == "max_iter=5 sweeps"
    assert second.power == -math.inf
    rule = Mock(**{"reason.return_value": None})
    stages = [stage([-1.0, -2.0]), stage([-3.0, -4.0], stop=rule)]
    anneal(open_rows(points), centers, stages, Fit())
    shown = [[record.power for record in call.args[0]] for call in rule.reason.mock_calls]
    assert shown == [[-3.0], [-3.0, -4.0]]


class Late(StopRule):
    """End a stage at a moment at which the fit becomes late."""

    def __init__(self, fit):
        self.fit = fit

    def reason(self, records):
        self.fit.end = -math.inf
        return "enough"


@pytest.mark.parametrize("end", [-math.inf, math.inf])
def test_once_it_is_late_only_the_last_stage_begins_for_one_sweep(end, points, centers) -> None:
    fit = Fit(end=end)
    stages = [stage(Fixed(power), stop=Late(fit)) for power in (-2.0, -4.0, -math.inf)]
    anneal(open_rows(points), centers, stages, fit)
    first = [] if end < 0 else [-2.0]
    assert [record.power for record in fit.history.records] == [*first, -math.inf]


@pytest.mark.parametrize("answer", [None, False, 1, "yes", [1], np.ones(3)])
def test_any_other_answer_of_a_callback_goes_on(answer: object, points, centers) -> None:
    fit = Fit(listener=Listener(lambda state: answer))
    run_stage(open_rows(points), centers, stage(LLOYD, max_iter=2), fit)
    assert len(fit.history.records) == 2


def test_a_callback_sees_every_sweep_of_a_schedule_and_cannot_disturb_it(points, centers) -> None:
    seen: list[SweepState] = []
    fit = Fit(listener=Listener(seen.append), history=History(run=3))
    end = run_stage(open_rows(points), centers, stage(LLOYD), fit)
    assert [state.sweep for state in seen] == list(range(1, len(fit.history.records) + 1))
    assert {state.run for state in seen} == {3}
    with pytest.raises(ValueError, match="read-only"):
        seen[0].centers[0] = 0
    np.testing.assert_array_equal(seen[-1].centers, end.centers)
    inertia = sq_distances(points, seen[0].centers).min(axis=1).sum()
    assert seen[1].inertia == pytest.approx(inertia, rel=1e-12)
    assert seen[1].objective == pytest.approx(seen[1].inertia, rel=1e-12)
    assert seen[0].center_shift == pytest.approx(np.linalg.norm(seen[0].centers - centers))
    assert seen[0].seconds > 0
    fit = Fit()
    end = run_stage(open_rows(points), centers, stage([-1.0, -2.0, -9.0]), fit)
    assert end.has_converged
    assert end.power == -9.0
    table = pd.DataFrame(fit.history.as_recarray())
    assert list(table.columns) == list(SweepRecord._fields)
    assert table.power.tolist() == [-1.0, -2.0, -9.0]


def test_coincident_centers_part_below_the_critical_power_and_settled_ones_stay(points, centers):
    coincident = np.repeat(points[:4], 2, axis=0)
    rows = open_rows(points)
    update = SeparateCoincident(critical_power=-1.0, spread=3.0)
    schedule = [-0.5] * 3 + [-5.0] * 40
    states: list[SweepState] = []
    fit = Fit(listener=Listener(states.append))
    run_stage(rows, coincident, stage(schedule, update=update), fit)
    assert [state.n_separated for state in states[:5]] == [0, 0, 0, 4, 0]
    np.testing.assert_array_equal(states[2].centers[0::2], states[2].centers[1::2])
    pairs = states[-1].centers.reshape(4, 2, 3)
    assert np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1).max() > 0.5
    assert fit.history.n_separated == 4
    rows = open_rows(points.astype(np.float32))
    states: list[SweepState] = []
    run_stage(rows, centers, stage(LLOYD), Fit(listener=Listener(states.append)))
    labels = [rows.assign(state.centers)[0] for state in states]
    for (before, after), state in zip(itertools.pairwise(labels), states[1:], strict=True):
        if np.array_equal(before, after):
            assert state is states[-1] or states[-1].center_shift == 0
    assert states[-1].center_shift == 0


SPREAD = 2.0
CENTERS = np.array([[0.0, 1.0], [5.0, 5.0], [0.0, 1.0], [3.0, 3.0], [0.0, 1.0 + 1e-9], [5.0, 5.1]])


def separate(centers, power=-3.0, spread=SPREAD, critical_power=-1.0) -> tuple[np.ndarray, int]:
    sweep = Sweep(open_rows(centers), centers, power)
    return SeparateCoincident(critical_power, spread).before(sweep), sweep.n_separated


def gaps(centers: np.ndarray) -> np.ndarray:
    return np.sqrt(sq_distances(centers, centers))[np.triu_indices(len(centers), 1)]


def test_coincident_centers_are_moved_by_a_hair_that_rounding_does_not_decide() -> None:
    separated, n_separated = separate(CENTERS)
    assert n_separated == 2
    moved = np.linalg.norm(separated - CENTERS, axis=1)
    assert np.count_nonzero(moved) == 2
    np.testing.assert_allclose(moved[moved > 0], 1e-6 * SPREAD, rtol=1e-6)
    assert gaps(separated).min() > 1e-7 * SPREAD
    again, n_separated = separate(separated)
    assert n_separated == 0
    assert again is separated
    rng = np.random.default_rng(5)
    centers = np.concatenate([np.ones((6, 3)), [[5.0, 5, 5]]])
    pushed = [
        separate(centers + noise, np.nan, spread=1.0, critical_power=np.inf)
        for noise in 1e-16 * 2 * rng.integers(-2, 3, size=(5, 7, 3))
    ]
    for separated, n_separated in pushed:
        assert n_separated == 5
        np.testing.assert_allclose(separated, pushed[0][0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(separated[[0, 6]], centers[[0, 6]], rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_separating_knows_no_scale_and_moves_far_centers_far_enough_to_differ(scale) -> None:
    separated, n_separated = separate(scale * CENTERS, spread=scale * SPREAD)
    assert n_separated == 2
    assert gaps(separated).min() > 1e-7 * scale * SPREAD
    separated, n_separated = separate(np.full((3, 2), 1e12))
    assert n_separated == 2
    assert gaps(separated).min() > 0


FIVE = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [9.0, 9.0], [9.0, 10.0]])


def relocate(points, centers, weights=None):
    rows = open_rows(points, weights)
    sums = rows.sweep(centers, Hard())
    sweep = Sweep(rows, centers, -np.inf)
    return sums, RelocateEmpty().after(sweep, sums), sweep.n_relocated


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_an_empty_cluster_takes_the_point_of_largest_error_out_of_its_cluster(container) -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [9.0, 9.0]])
    sums, repaired, n_relocated = relocate(container(FIVE), centers)
    assert n_relocated == 1
    np.testing.assert_allclose(sums.weights, [3, 0, 2])
    np.testing.assert_allclose(repaired.weights, [2, 1, 2])
    np.testing.assert_allclose(
        repaired.centers(fallback=centers), [[0.0, 0.5], [4.0, 0.0], [9.0, 9.5]]
    )
    np.testing.assert_allclose(sums.weights, [3, 0, 2])


def test_empty_clusters_count_with_those_before_and_fifteen_take_two_passes() -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]])
    _, repaired, n_relocated = relocate(FIVE, centers)
    assert n_relocated == 2
    # The farthest is (9, 10); then (9, 9) is near to it, and (4, 0) is the farthest.
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1:], [[9.0, 10.0], [4.0, 0.0]])
    centers = np.array([[0.0, 0.0], [500.0, 500.0]])
    _, repaired, _ = relocate(FIVE, centers, np.array([1.0, 400.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1], [0.0, 1.0])
    np.testing.assert_allclose(repaired.weights, [4, 400])
    weights = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    sums, repaired, n_relocated = relocate(FIVE, centers, weights)
    assert n_relocated == 0
    np.testing.assert_array_equal(repaired.weights, sums.weights)
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(1000, 3)), 100 * rng.normal(size=(40, 3))])
    centers = np.vstack([rng.normal(size=(5, 3)), np.full((15, 3), 1e4)])
    rows, chunks = in_parts(rng.permutation(points))
    found = []
    for of in (rows, ReferencePoints(rows.take(np.arange(1040)))):
        sums, sweep = of.sweep(centers, Hard()), Sweep(of, centers, -np.inf)
        chunks.n_passes = 0
        found.append(RelocateEmpty().after(sweep, sums))
        assert sweep.n_relocated == 15
        assert chunks.n_passes <= 2
    np.testing.assert_allclose(found[0].weights, found[1].weights)
    np.testing.assert_allclose(found[0].points, found[1].points, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_center_that_misses_its_points_by_rounding_is_at_them(dtype: type, offset: float):
    places = (np.random.default_rng(0).normal(size=(5, 3)) + offset).astype(dtype)
    points = np.repeat(places, 1000, axis=0)
    centers = np.vstack([points.reshape(5, 1000, 3).mean(axis=1, dtype=np.float64), [[9e3] * 3]])
    centers[:5] *= 1 + 1e-14
    _, _, n_relocated = relocate(points, centers)
    assert n_relocated == 0


# Points in parts, of which a look at all takes a pass. The comparator says that they choose right.


class Counting(ReadAgain):
    n_passes = 0

    def read(self, numbers=None):
        self.n_passes += 1
        return super().read(numbers)


def in_parts(points):
    chunks = Counting(cut(points, None, 50))
    return PartedPoints(ReadingExecutor(chunks, PartOpener(), n_threads=1)), chunks


def test_the_farthest_points_take_another_pass_or_are_known_from_a_checkpoint(tmp_path) -> None:
    """All of a far group but one are near to the first of it, and only another pass knows which."""
    rng = np.random.default_rng(1)
    points = np.vstack([rng.normal(size=(300, 2)), 1000 + rng.normal(size=(300, 2))])
    rows, chunks = in_parts(rng.permutation(points))
    whole, nowhere = ReferencePoints(rows.take(np.arange(600))), np.zeros((1, 2))
    chunks.n_passes = 0
    found = list(rows.farthest(nowhere, 6))
    assert 1 < chunks.n_passes <= 6
    for far, expected in zip(found, whole.farthest(nowhere, 6), strict=True):
        assert far.point.tobytes() == expected.point.tobytes()
        assert far.sq_dist == pytest.approx(expected.sq_dist, rel=1e-9)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "points.npy", np.vstack([rng.normal(size=(900, 2)), [[50.0, 50.0]]]))
    init = np.array([[0.0, 0.0], [1e4, 1e4], [2e4, 2e4]])
    fits = []
    for _ in range(2):
        data = open_data(tmp_path / "points.npy", rows_per_part=256, checkpoint=tmp_path / "state")
        fits.append(KMeans(3, init=init, n_init=1, random_state=0).fit(data))
    assert fits[0].n_relocated_ == fits[1].n_relocated_ >= 2
    assert fits[0].cluster_centers_.tobytes() == fits[1].cluster_centers_.tobytes()


PAGE = Path(__file__).parents[2] / "docs" / "understand" / "algorithm.md"


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_features", "max_iter"), [(1, 300), (2, 6), (2, 300), (30, 300)])
def test_it_gives_the_bits_of_the_estimator(kind, dtype, n_features, max_iter):
    rng = np.random.default_rng(n_features)
    points = rng.normal(size=(500, n_features)).astype(dtype)
    weights = rng.uniform(0.5, 2.0, size=500)
    seeds, powers = points[:6].astype(np.float64), [*islice(Geometric(-3.0, 1.05), max_iter)]
    left = iter(powers)
    tolerance = 1e-6 / math.sqrt(n_features)
    centers = power_k_means(open_rows(kind(points), weights), seeds, left, tolerance)
    model = PowerKMeans(6, init=seeds, power=-3.0, schedule=1.05, polish=False)
    model.set_params(effort="none", tol=1e-6, max_iter=max_iter)
    with (
        pytest.warns(ConvergenceWarning, match="not converged") if max_iter == 6 else nullcontext()
    ):
        model.fit(kind(points), sample_weight=weights)
    assert model.cluster_centers_.tobytes() == centers.astype(dtype).tobytes()
    assert model.history_.power.tolist() == powers[: len(powers) - len([*left])]


def swept(points, centers, power):
    """Equations 4 and 5 of the paper: the centers after a sweep, and its objective."""
    sq_dist = sq_distances(points, centers)
    weights = power_mean_gradient(sq_dist, power)
    moved = weights.T @ points / weights.sum(axis=0)[:, None]
    return moved, float(power_mean(sq_dist, power).sum())


def as_the_paper_says(points, centers):
    power, before = -3.0, math.nan
    while True:
        centers, now = swept(points, centers, power)
        yield power, centers
        if before - now <= 1e-6 / math.sqrt(points.shape[1]) * before:
            return
        power, before = 1.05 * power, now


def as_the_authors_code_says(points, centers, power):
    labels = []
    for number in range(10_000):
        centers, _ = swept(points, centers, power)
        yield power, centers
        labels.append(sq_distances(points, centers).argmin(axis=1).tolist())
        if labels[-6:] == [labels[-1]] * 6:
            return
        if number % 2 and power > -120:
            power = power - 0.2 if power > -1 else 1.06 * power


@pytest.mark.parametrize("n_features", [2, 9])
@pytest.mark.parametrize("start", [-0.5, -1.0, -4.0, None])
def test_presets_go_where_the_paper_and_the_authors_code_go(n_features, start):
    points = np.random.default_rng(1).normal(size=(200, n_features))
    seeds = points[:4] + 0.01
    if start is None:
        model, twin = PowerKMeans.as_published(4, init=seeds), as_the_paper_says(points, seeds)
    else:
        model = PowerKMeans.as_authors_code(4, power=start, init=seeds)
        twin = as_the_authors_code_says(points, seeds, start)
    powers, centers = zip(*twin, strict=True)
    model.fit(points)
    np.testing.assert_allclose(model.history_.power, powers, rtol=1e-12)
    # Just above the critical power centers that part lift rounding from sweep to sweep.
    np.testing.assert_allclose(model.cluster_centers_, centers[-1], rtol=1e-8, atol=1e-9)
    assert len(powers) > 5 + (start is None) * 5
    assert PowerKMeans.as_published(4, power=-9.0).power == -9


def test_the_authors_code_is_refused_where_nobody_holds_labels():
    points = np.random.default_rng(2).normal(size=(60, 3))
    with pytest.raises(ArgumentError, match=r"schedule=.*points in parts.*pass Geometric"):
        PowerKMeans.as_authors_code(3, divergence="manhattan").fit(points)


def test_the_page_shows_the_function():
    block = next(b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (shown,) = (node for node in ast.parse(block).body if isinstance(node, ast.FunctionDef))
    (ours,) = ast.parse(inspect.getsource(power_k_means)).body
    assert isinstance(ours, ast.FunctionDef)
    without_docstring = ours.body[1:]
    assert [ast.unparse(line) for line in shown.body] == [*map(ast.unparse, without_docstring)]
    assert len(ast.unparse(shown).splitlines()) <= 10
