"""PowerKMeans is the paper's algorithm, ends where it should, and survives being interrupted."""

from __future__ import annotations

import itertools
import math
import os
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powermeans import (
    Fixed,
    KMeans,
    PowerKMeans,
    SweepState,
)
from powermeans.mathematics.power_mean import memberships


def clusters(n_clusters=12, n_features=5, n_points=600, distance=8.0, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = rng.normal(scale=distance / math.sqrt(n_features), size=(n_clusters, n_features))
    return (
        rng.normal(size=(n_points, n_features)) + middles[rng.integers(n_clusters, size=n_points)]
    )


@pytest.fixture
def points() -> np.ndarray:
    return clusters()


def squared_distances(points, centers) -> np.ndarray:
    return ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def algorithm_1(points, centers, power=-3.0, growth=1.05, tol=1e-6, max_iter=300):
    """Xu & Lange 2019, Algorithm 1, from the paper, with plain powers."""
    previous, objectives = math.inf, []
    for _ in range(max_iter):
        sq_dist = squared_distances(points, centers)
        mean = (sq_dist**power).mean(axis=1)
        objective = (mean ** (1 / power)).sum()
        weights = mean[:, None] ** (1 / power - 1) * sq_dist ** (power - 1)
        centers = weights.T @ points / weights.sum(axis=0)[:, None]
        power *= growth
        objectives.append(objective)
        least_decrease = tol / math.sqrt(points.shape[1]) * previous
        if previous < math.inf and previous - objective <= least_decrease:
            break
        previous = objective
    return centers, len(objectives)


def test_algorithm_1_ends_by_the_relative_decrease_of_the_objective(points) -> None:
    start = points[:12] + 0.01
    model = PowerKMeans(12, init=start, polish=False, power=-3.0, schedule=1.05, tol=1e-2)
    model.fit(points)
    expected, n_sweeps = algorithm_1(points, start, -3.0, growth=1.05, tol=1e-2)
    assert 2 < model.n_iter_ == n_sweeps < 300
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-7)
    decrease = -np.diff(model.history_.objective) / model.history_.objective[:-1]
    assert (decrease[:-1] > 1e-2 / math.sqrt(5)).all()
    assert decrease[-1] <= 1e-2 / math.sqrt(5)


def test_without_polish_nothing_is_repaired(points) -> None:
    start = np.repeat(points[:6], 2, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model = PowerKMeans(12, init=start, polish=False, tol=1e-3).fit(points)
    assert model.n_separated_ == model.n_relocated_ == 0
    np.testing.assert_array_equal(model.cluster_centers_[0::2], model.cluster_centers_[1::2])


def smooth_k_means_step(points, centers, function, inverse, slope) -> np.ndarray:
    """Move centers by the gradient of the mean h^-1(mean_j h(y_j)), as Teboulle's SKM does."""
    sq_dist = np.square(points[:, None, :] - centers).sum(axis=2)
    means = inverse(function(sq_dist).mean(axis=1, keepdims=True))
    weights = slope(sq_dist) / slope(means) / len(centers)
    return weights.T @ points / weights.sum(axis=0)[:, None]


@pytest.mark.parametrize("power", [-0.5, -1.0, -3.0, -8.0])
def test_at_a_fixed_power_it_is_smooth_k_means_with_the_mean_of_a_power(points, power) -> None:
    expected = points[:5] + 0.1
    settings = {"schedule": Fixed(power), "polish": False, "tol": 0, "init": expected}
    for n_sweeps in range(1, 6):
        expected = smooth_k_means_step(
            points,
            expected,
            lambda y: y**power,
            lambda h: h ** (1 / power),
            lambda y: power * y ** (power - 1),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = PowerKMeans(5, max_iter=n_sweeps, **settings).fit(points)
        np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-12, atol=1e-12)


def test_auto_starts_at_twice_the_critical_power_less_one() -> None:
    points = clusters(n_features=20, distance=4)
    model = PowerKMeans(12, effort="none", random_state=0).fit(points)
    assert model.critical_power_ < -1
    assert model.history_.power[0] == 2 * model.critical_power_ - 1
    searching = PowerKMeans(12, random_state=0).fit(points)
    assert searching.history_.power[0] == round(2 * model.critical_power_ - 1)


def test_auto_starts_at_minus_one_at_most() -> None:
    model = PowerKMeans(5, effort="none", random_state=0).fit(clusters(n_features=1))
    assert model.critical_power_ == pytest.approx(0.5)
    assert model.history_.power[0] == -1.0


def test_the_power_grows_by_the_growth(points) -> None:
    model = PowerKMeans(12, power=-2.0, schedule=1.5, effort="none", random_state=0).fit(points)
    annealing = model.history_.power[model.history_.power > -math.inf]
    np.testing.assert_allclose(annealing, -2.0 * 1.5 ** np.arange(len(annealing)))
    assert model.power_ == annealing[-1]


def test_a_schedule_overrides_the_power(points) -> None:
    model = PowerKMeans(12, power=-7.0, schedule=[-1.0, -4.0], effort="none", random_state=0).fit(
        points
    )
    assert model.history_.power[:2].tolist() == [-1.0, -4.0]
    assert (model.history_.power[2:] == -math.inf).all()
    assert model.power_ == -4.0


@pytest.mark.parametrize("tol", [0, 1e-6])
def test_the_polish_ends_at_a_fixed_point_of_lloyd(points, tol) -> None:
    model = PowerKMeans(12, tol=tol, random_state=0).fit(points)
    means = [points[model.labels_ == j].mean(axis=0) for j in range(12)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-9 if tol == 0 else 1e-3)


def test_a_start_above_the_critical_power_recovers() -> None:
    points = clusters(n_clusters=10, n_features=30, distance=25.0)
    model = PowerKMeans(10, power=-0.1, effort="none", random_state=0).fit(points)
    collapsed = model.history_.power > model.critical_power_
    assert collapsed.sum() > 3
    good = PowerKMeans(10, effort="none", random_state=0).fit(points)
    assert model.inertia_ < 1.5 * good.inertia_
    assert len(set(model.labels_)) == 10


def test_annealing_finds_lower_inertia_than_lloyd_from_the_same_starts() -> None:
    ratios = []
    for seed in range(5):
        points = clusters(n_clusters=30, n_features=10, n_points=1500, distance=10, seed=seed)
        start = points[:30]
        annealed = PowerKMeans(30, init=start, effort="none").fit(points).inertia_
        ratios.append(annealed / KMeans(30, init=start).fit(points).inertia_)
    assert np.mean(ratios) < 0.9


def test_the_run_of_least_inertia_is_kept(points) -> None:
    states: list[SweepState] = []
    options = {"init": "random", "effort": "none", "random_state": 0}
    several = PowerKMeans(12, n_init=6, callback=states.append, **options).fit(points)
    assert {state.run for state in states} == set(range(6))
    last_of_run = [
        list(run)[-1].inertia for _, run in itertools.groupby(states, lambda state: state.run)
    ]
    assert several.inertia_ <= min(last_of_run) * (1 + 1e-12)
    assert max(last_of_run) > min(last_of_run) * 1.001
    best = int(np.argmin(last_of_run))
    assert several.n_iter_ == sum(state.run == best for state in states)


def test_memberships_are_those_of_the_formula_and_add_to_one(points) -> None:
    model = PowerKMeans(12, random_state=0).fit(points)
    shares = model.memberships(points, power=-2.0)
    expected = memberships(squared_distances(points, model.cluster_centers_), -2.0)
    np.testing.assert_allclose(shares, expected, rtol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(
        model.memberships(points), model.memberships(points, model.power_)
    )
    hard = model.memberships(points, power=-math.inf)
    np.testing.assert_array_equal(hard.argmax(axis=1), model.labels_)
    assert set(np.unique(hard)) == {0.0, 1.0}


def test_coincident_initial_centers_part_and_are_counted(points) -> None:
    model = PowerKMeans(12, init=np.repeat(points[:6], 2, axis=0)).fit(points)
    assert model.n_separated_ >= 6
    assert len(set(model.labels_)) == 12


@pytest.mark.parametrize("stage", ["annealing", "Lloyd"])
def test_a_stage_that_is_cut_short_is_told(stage: str) -> None:
    points = np.random.default_rng(0).normal(size=(500, 6))
    options = {"power": -math.inf, "tol": 0} if stage == "Lloyd" else {"tol": 1e3}
    with pytest.warns(ConvergenceWarning, match=f"^{stage} was cut short at .* by max_iter=2"):
        PowerKMeans(12, max_iter=2, effort="none", random_state=0, **options).fit(points)


# Stopping and interrupting.


def assert_is_complete(model: PowerKMeans, points: np.ndarray) -> None:
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    assert model.inertia_ == pytest.approx(-model.score(points))
    assert len(model.history_) == model.n_iter_ > 0


def test_an_interrupt_in_a_later_run_keeps_the_better_run_before(points) -> None:
    def interrupt(state: SweepState) -> None:
        if state.run == 1:
            raise KeyboardInterrupt

    model = PowerKMeans(12, random_state=0, n_init=3, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    assert_is_complete(model, points)
    single = PowerKMeans(12, random_state=0).fit(points)
    np.testing.assert_array_equal(model.cluster_centers_, single.cluster_centers_)


def test_an_interrupt_before_the_first_sweep_leaves_nothing(points) -> None:
    def choose(X, n_clusters, random_state):
        raise KeyboardInterrupt

    model = PowerKMeans(12, init=choose)
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    assert not hasattr(model, "cluster_centers_")


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_ends_a_fit_and_leaves_the_last_complete_state() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 8))
    begun = threading.Event()

    def press_ctrl_c() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    model = PowerKMeans(
        20,
        schedule=Fixed(-1.0),
        polish=False,
        tol=0,
        max_iter=100_000,
        random_state=0,
        callback=lambda state: begun.set(),
    )
    presser = threading.Thread(target=press_ctrl_c)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    presser.join()
    assert_is_complete(model, points)
    assert model.n_iter_ < 100_000


# Memory.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_of_the_right_kind_are_neither_copied_nor_changed(dtype) -> None:
    points = np.random.default_rng(0).random(size=(100_000, 100), dtype=dtype)
    before = points.copy()
    tracemalloc.start()
    PowerKMeans(5, random_state=0, max_iter=1, schedule=[-3.0], tol=1e9, effort="fast").fit(points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < points.nbytes / 2
    np.testing.assert_array_equal(points, before)


def test_d_weighted_seeds_are_drawn_in_proportion_to_the_distance() -> None:
    # The first seed is one of 998 points at 0; the second is at 1 or at 9 with odds of 1 to 9.
    X = np.concatenate([np.zeros(998), [1.0, 9.0]])[:, None]
    farthest = [
        seeds_of(X, init, seed).max() == 9 for init in ("d-weighted",) for seed in range(400)
    ]
    assert abs(np.mean(farthest) - 0.9) < 0.05  # 0.988 by squares; three standard errors


def seeds_of(X: np.ndarray, init: str, seed: int) -> np.ndarray:
    first = []
    PowerKMeans(
        2, init=init, effort="none", power=-math.inf, random_state=seed, callback=first.append
    ).fit(X)
    return first[0].centers
