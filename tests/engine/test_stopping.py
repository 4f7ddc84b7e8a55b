import itertools
import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from problems import blobs
from scipy import sparse
from sklearn.base import clone

import powermeans
from powermeans import BalancedKMeans, PowerKMeans, open_data
from powermeans.divergences import resolve
from powermeans.engine.anneal import Stage, run_stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepRecord
from powermeans.engine.search.effort import EFFORTS
from powermeans.engine.stopping import (
    CentersSettled,
    InertiaSettled,
    LabelsSettled,
    MaxSeconds,
    ObjectiveSettled,
    StopRule,
    WeightsHard,
)
from powermeans.errors import ArgumentError
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric, resting_power
from powermeans.points.opening import open_rows


def record(power=-3.0, objective=1.0, inertia=1.0, center_shift=1.0) -> SweepRecord:
    return SweepRecord(power, objective, inertia, center_shift, seconds=0.0)


@pytest.mark.parametrize(
    ("tolerance", "shift", "reason"),
    [
        (0.0, 0.0, "strict convergence"),
        (1e-3, 0.0, "strict convergence"),
        (1e-4, 0.99e-2, "within tolerance"),  # whose square is
        (1e-4, 1.01e-2, None),
        (0.0, 1e-200, None),
        (1e-4, 1e200, None),  # from a damaged checkpoint; its square overflows
    ],
)
def test_centers_settle_by_their_squared_shift(tolerance, shift, reason) -> None:
    found = CentersSettled(tolerance).reason([record(center_shift=shift)])
    assert (found is None) == (reason is None)
    assert reason is None or reason in found


HARD_RULE = WeightsHard(critical_power=-2.0, n_centers=4, tolerance=1e-4)


def at_hardness(hardness: float, power: float) -> SweepRecord:
    """A record whose objective times k^(1/s) is this part of the inertia."""
    return record(power, objective=hardness * 5.0 * 4 ** (-1 / power), inertia=5.0)


@pytest.mark.parametrize("power", [-2.5, -30.0, -1e6])
def test_annealing_ends_once_the_weights_are_hard(power: float) -> None:
    assert "hard" in HARD_RULE.reason([at_hardness(0.9995, power)])
    assert HARD_RULE.reason([at_hardness(0.9985, power)]) is None
    assert "hard" in HARD_RULE.reason([record(-math.inf, objective=5.0, inertia=5.0)])
    assert HARD_RULE.reason([record(objective=0.0, inertia=0.0)]) is not None
    above_critical = [at_hardness(1.0, -1.0)._replace(center_shift=0.0)] * 10
    assert HARD_RULE.reason(above_critical) is None


def test_rules_look_at_decreases_and_schedules_and_are_kept_by_clones_and_files(points, tmp_path):
    resting = replace(HARD_RULE, resting_power=resting_power(Fixed(-3.0)))
    settled = [at_hardness(0.5, -3.0)._replace(center_shift=1e-3)]
    assert resting.reason(settled) is None
    assert "within tolerance" in resting.reason(settled * 2)
    rule = ObjectiveSettled(1e-3)
    first = record(objective=2.0)
    assert rule.reason([first]) is None
    assert rule.reason([first, record(objective=2.0 - 0.0021)]) is None
    assert "fell from 2.0" in rule.reason([first, record(objective=2.0 - 0.0019)])
    stop = LabelsSettled(1e-3) | InertiaSettled(1e-6) | MaxSeconds(5.0)
    model = PowerKMeans(3, stop=stop, random_state=0).fit(points)
    powermeans.save(model, tmp_path / "model")
    assert clone(model).stop == powermeans.load(tmp_path / "model").stop == stop
    assert repr(stop).startswith("LabelsSettled(share=0.001) | InertiaSettled(share=1e-06) | Max")


@pytest.mark.parametrize(
    "schedule", [AuthorsSchedule(-3.0, sweeps_per_power=60), Geometric(-3.0, 1.01), [-3.0] * 400]
)
def test_settled_centers_wait_for_the_next_power(schedule: Iterable[float]) -> None:
    pausing = replace(HARD_RULE, resting_power=resting_power(schedule))
    records = []
    for power in itertools.islice(schedule, 120):
        records.append(at_hardness(0.5, power)._replace(center_shift=0.0))
        assert pausing.reason(records) is None


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return blobs(3000, 4, 12, scale=2.0)


@pytest.mark.parametrize(("n_centers", "n_threads"), [(2, 1), (7, 3), (60, 3)])
@pytest.mark.parametrize(
    ("form", "divergence"),
    [
        (np.float64, "squared_euclidean"),
        (np.float32, "squared_euclidean"),
        (sparse.csr_array, "squared_euclidean"),
        (np.float64, "cosine"),
        (np.float64, "poisson"),
    ],
)
def test_changed_labels_are_those_that_differ(points, form, divergence, n_threads, n_centers):
    given = np.abs(points) if divergence == "poisson" else points
    given = form(given) if form is sparse.csr_array else given.astype(form)
    weights = np.random.default_rng(1).uniform(0, 2, size=len(points))
    rows = open_rows(given, weights, divergence=resolve(divergence), n_threads=n_threads)
    centers = rows.take(np.arange(n_centers) * 40).astype(np.float64)
    before = None
    for _ in range(8):
        labels, _ = rows.assign(centers)
        sums = rows.sweep(centers, Hard())
        if before is not None:
            assert sums.n_changed == np.count_nonzero(labels != before)
        before, centers = labels, sums.centers(fallback=centers)
    assert (sums + sums).n_changed is None  # parts hold no labels
    assert rows.sweep(centers, Power(-2.0)).n_changed is None


def test_one_of_several_rules_is_enough_and_labels_end_a_descent_early(points):
    settings = {"effort": "none", "random_state": 0, "tol": 0.0}
    labels, inertia = (
        PowerKMeans(12, **settings, stop=rule).fit(points).n_iter_
        for rule in (LabelsSettled(0.02), InertiaSettled(1e-9))
    )
    both = PowerKMeans(12, **settings, stop=InertiaSettled(1e-9) | LabelsSettled(0.02)).fit(points)
    assert both.n_iter_ == min(labels, inertia)
    settings = {"effort": "none", "power": -math.inf, "random_state": 0, "tol": 0.0}
    long = PowerKMeans(12, **settings).fit(points)
    short = PowerKMeans(12, **settings, stop=LabelsSettled(0.01)).fit(points)
    assert len(short.history_) < len(long.history_)
    assert short.history_.changed[-1] <= 0.01 < short.history_.changed[1:-1].min()
    annealed = PowerKMeans(12, effort="none", random_state=0).fit(points).history_
    assert np.isnan(annealed.changed[annealed.power > -math.inf]).all()
    rows, fit = open_rows(points), Fit()
    rows.sweep(points[:5], Hard())
    run_stage(rows, points[:5], Stage(Fixed(-math.inf), LabelsSettled(0.0), 50), fit)
    assert fit.history.records[0].changed == 1
    assert len(fit.history.records) > 1


class InertiaReached(StopRule):
    def __init__(self, inertia):
        self.inertia = inertia

    def reason(self, records):
        return "it is low enough" if records[-1].inertia <= self.inertia else None


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(12, random_state=0),
        PowerKMeans(12, n_init=3, effort="none", random_state=0),
        PowerKMeans(12, polish=False, max_iter=500, random_state=0),
        BalancedKMeans(12, size_min=20, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_rule_of_a_users_own_ends_the_search_and_the_restarts(model, in_parts, points, capsys):
    if in_parts and isinstance(model, BalancedKMeans):
        pytest.skip("it needs all points at once")
    given = open_data(points, rows_per_part=500) if in_parts else points
    whole = clone(model).fit(given)
    goal = whole.inertia_ * 1.1
    found = clone(model).set_params(stop=InertiaReached(goal), verbose=1).fit(given)
    assert found.inertia_ <= goal
    assert len(found.history_) < len(whole.history_)
    assert "it is low enough" in capsys.readouterr().out
    if isinstance(model, BalancedKMeans):
        assert np.bincount(found.labels_).min() >= 20


def test_a_rule_sees_centers_such_as_the_fit_returns(points):
    """And not the lower inertia of more centers, of a sample, or before a soft sweep."""
    many = np.concatenate([points + 1e-3 * i for i in range(2**21 // points.size + 1)])
    for given in (points, many):
        best = PowerKMeans(12, random_state=0).fit(given).inertia_
        model = PowerKMeans(12, stop=InertiaReached(best * 0.98), random_state=0).fit(given)
        assert model.inertia_ == pytest.approx(best, rel=1e-9)


def test_a_rule_is_not_asked_while_sizes_have_no_limits(points, monkeypatch):
    class Heard(StopRule):
        phases, asked_in = [], set()

        def reason(self, records):
            self.asked_in.add(self.phases[-1])

        def __call__(self, state):
            pass

        def phase(self, name, done, total):
            self.phases.append(name)

    heard, twice = Heard(), [replace(effort, most_values=1e3) for effort in 2 * EFFORTS["fast"]]
    monkeypatch.setitem(EFFORTS, "thorough", twice)
    many = np.concatenate([points + 1e-3 * i for i in range(20_000 // len(points) + 1)])
    model = BalancedKMeans(12, effort="thorough", stop=heard, callback=heard, random_state=0)
    model.fit(many)
    assert "comparing solutions on all rows" in heard.phases
    assert heard.asked_in <= {"bringing clusters to their sizes", "moving single rows"}


@pytest.mark.parametrize("stop", [LabelsSettled(0.1), InertiaSettled(0.0) | LabelsSettled(0.1)])
@pytest.mark.parametrize(
    "options",
    [{"polish": False}, {}, {"divergence": "manhattan"}, {"divergence": "hellinger"}],
    ids=str,
)
def test_labels_are_refused_where_nobody_holds_them(stop, options, points):
    given = np.abs(points) + 1 if options else open_data(points, rows_per_part=500)
    sweeps = []
    model = PowerKMeans(3, stop=stop, callback=sweeps.append, **options)
    with pytest.raises(ArgumentError, match="InertiaSettled") as raised:
        model.fit(given)
    assert raised.value.argument == "stop"
    assert "as Hellinger, chi-squared and Jeffreys are" in str(raised.value)
    assert not sweeps


def test_a_rule_joins_no_number():
    with pytest.raises(TypeError):
        LabelsSettled(0.1) | 5
