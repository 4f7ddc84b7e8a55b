"""Bounds are below optima found by an independent route, and points on a line are solved."""

import math
import pickle
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import islice, pairwise
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import divisions, inertias
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.cluster import SpectralClustering as OtherSpectral

from powermeans import KMeans, PowerKMeans, breaks, open_data, optimality_gap, report
from powermeans.optimality import OptimalityGap, proof, relaxation
from powermeans.optimality.line import line_through
from powermeans.optimality.prices import (
    Market,
    bound_of_clusters_apart,
    highest_profit,
    on_simplex,
    profits,
    rising_bounds_by_prices,
)
from powermeans.optimality.proof import _bets, deal, highest_mean
from powermeans.optimality.relaxation import (
    Certificate,
    Cuts,
    Relaxation,
    from_clustering,
    most_violated,
    principal_bound,
)


def optimum_of(points: np.ndarray, weights: np.ndarray, n_clusters: int) -> float:
    return float(inertias(points, weights, divisions(len(points), n_clusters)).min())


def small_problem(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return points in one to four dimensions, weights that are no integers, and a number."""
    rng = np.random.default_rng(seed)
    n_clusters = int(rng.integers(2, 5))
    n_points = int(rng.integers(n_clusters + 1, {2: 13, 3: 12, 4: 10}[n_clusters]))
    points = rng.standard_normal((n_points, int(rng.integers(1, 5))))
    places = rng.choice([0, 1, 3, 30]) * rng.standard_normal((n_clusters, 1))
    points += places[rng.integers(n_clusters, size=n_points)]
    points *= 10.0 ** rng.integers(-6, 7)
    weights = np.ones(n_points) if seed % 2 else rng.uniform(0.05, 4, n_points)
    return points, weights, n_clusters


def all_triples(n_points: int) -> np.ndarray:
    i, j, h = np.indices((n_points,) * 3).reshape(3, -1)
    return np.stack([i, j, h], axis=1)[(j <= h) & (i != j) & (i != h)]


def bounds_of(points, weights, n_clusters, n_most=30):
    yield principal_bound(points, weights, n_clusters)
    problem = Relaxation.of(points, weights, n_clusters)
    labels = KMeans(n_clusters, random_state=0).fit(points, sample_weight=weights).labels_
    start = from_clustering(problem, labels, lambda: False)
    assert start is not None
    yield start.lower_bound(problem)
    search = relaxation.Ascent(problem, start, problem.clustering(labels))
    cuts = Cuts.of(all_triples(len(points)), problem.roots)
    search.use(cuts, np.zeros(len(cuts.triples)))
    for number in range(n_most):
        search.step()
        if number % 5 == 4:
            yield search.certificate().lower_bound(problem)
            search.rebalance()
    if points.shape[1] < 4:
        centers = KMeans(n_clusters, random_state=0).fit(points, sample_weight=weights)
        market = Market.of(points, weights)
        steps = rising_bounds_by_prices(market, centers.cluster_centers_, lambda: False)
        yield from islice(steps, n_most // 3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1000, 9999), st.sampled_from([1e-3, 1.0, 1e3]))
def test_any_multipliers_prove_a_bound(seed: int, scale: float) -> None:
    points, weights, n_clusters = small_problem(seed)
    rng = np.random.default_rng(seed)
    problem = Relaxation.of(points, weights, n_clusters)
    shape = (len(points), len(points))
    of_signs = rng.exponential(size=shape) * (rng.random(shape) < 0.3)
    triples = most_violated(problem.gram, problem.roots, 30)
    scale *= problem.total / len(points) ** 2
    of_cuts = scale * rng.exponential(size=len(triples))
    cuts = Cuts.of(triples, problem.roots)
    certificate = Certificate(scale * (of_signs + of_signs.T), of_cuts, cuts)
    optimum = optimum_of(points, weights, n_clusters)
    assert certificate.lower_bound(problem) <= optimum + 1e-13 * problem.total


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1000, 9999), st.sampled_from([1e-2, 1.0, 1e2]))
def test_any_prices_prove_a_bound_and_no_place_earns_more_than_the_highest(seed, scale) -> None:
    points, weights, n_clusters = small_problem(seed)
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        points = points[rng.integers(len(points) // 2 + 1, size=len(points))]  # duplicates
    market = Market.of(points, weights)
    total = float(market.weights @ np.square(market.points).sum(axis=1))
    drawn = scale * rng.exponential(size=len(market.weights))
    prices = market.weights * drawn * total / weights.sum()
    highest, places = highest_profit(market, prices, 0.0, 10.0 ** -rng.integers(1, 6))
    optimum = optimum_of(points, weights, n_clusters)
    assert market.lower_bound(prices, highest, n_clusters) <= optimum + 1e-13 * total
    for _ in range(20):
        # Uphill, to the mean of what each place serves, from where as much is earned as is known.
        sq_dist = np.square(market.points - places[:, None]).sum(axis=2)
        served = (market.weights * sq_dist < prices) * market.weights + 1e-300
        places = served @ market.points / served.sum(axis=1)[:, None]
    drawn = market.points[rng.integers(len(market.points), size=200)]
    between = drawn + rng.random((200, 1)) * (drawn[::-1] - drawn)
    found = profits(market, prices, np.concatenate([places, between])).max()
    assert found <= highest * (1 + 1e-12)
    assert highest <= found * 1.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1000, 99999))
def test_any_clusters_prove_a_bound_by_how_far_they_lie_apart(seed: int) -> None:
    """Whatever the clusters: found by k-means, or any others, some of which are empty."""
    points, weights, n_clusters = small_problem(seed)
    rng = np.random.default_rng(seed)
    if seed % 5 == 0:
        points = points[rng.integers(len(points) // 2 + 1, size=len(points))]  # duplicates
    optimum = optimum_of(points, weights, n_clusters)
    total = optimum_of(points, weights, 1)
    best = PowerKMeans(n_clusters, random_state=0).fit(points, sample_weight=weights).labels_
    drawn = rng.integers(n_clusters, size=len(points))
    some = np.where(rng.random(len(points)) < 0.2, drawn, best)
    for labels in (best, some, drawn, np.zeros(len(points), dtype=int)):
        given = sparse.csr_array(points) if seed % 2 else points
        bound = bound_of_clusters_apart(given, weights, labels, n_clusters, lambda: False)
        assert bound <= optimum + 1e-13 * total


@pytest.mark.parametrize("n_features", [3, 60])
def test_any_number_of_clusters_far_apart_are_optimal(n_features: int) -> None:
    rng = np.random.default_rng(0)
    places = 400 * rng.random((600, n_features))
    points = np.repeat(places, 5, axis=0) + 0.1 * rng.standard_normal((3000, n_features))
    centers = np.stack([points[i : i + 5].mean(axis=0) for i in range(0, 3000, 5)])
    kept = np.flatnonzero(
        np.square(places[:, None] - places)
        .sum(axis=2)
        .min(axis=1, initial=np.inf, where=~np.eye(600, dtype=bool))
        > 25
    )
    rows = (5 * kept[:, None] + np.arange(5)).ravel()
    weights = np.repeat(rng.uniform(0.5, 2, len(kept)), 5)
    found = optimality_gap(points[rows], centers[kept], sample_weight=weights)
    assert (found.method, found.confidence) == ("clusters apart", None)
    assert found.gap <= 1e-6
    assert len(kept) > 500
    moved = centers[kept] + 0.01
    off = optimality_gap(
        points[rows[:1000]], moved[:200], sample_weight=weights[:1000], max_seconds=1
    )
    excess = 1e-4 * n_features * weights[:1000].sum()
    assert off.inertia - off.bound == pytest.approx(excess, abs=1e-6 * off.inertia)


def test_prices_prove_what_pairs_of_points_do_not() -> None:
    points = np.random.default_rng(13).random((700, 2))
    model = PowerKMeans(20, random_state=0).fit(points)
    most = {"max_seconds": 60, "callback": is_within(0.03)}
    found = model.optimality_gap(points, **most)
    assert (found.method, found.gap < 0.03) == ("all points", True)
    copies = optimality_gap(np.repeat(points, 3, axis=0), model, **most)
    weighted = optimality_gap(sparse.csr_array(points), model, sample_weight=[3.0] * 700, **most)
    assert copies.gap < 0.03
    assert weighted.gap < 0.03
    assert weighted.inertia == pytest.approx(copies.inertia)


def test_the_nearest_numbers_with_a_total() -> None:
    # By hand: a shift of 0.5 leaves 1.5 and 0.5, and nothing of the others.
    assert on_simplex(np.array([2.0, 1.0, 0.4, -7.0]), 2.0).tolist() == [1.5, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("triangle", [np.tril, np.triu])
def test_both_triangles_of_multipliers_count(triangle: Callable[..., np.ndarray]) -> None:
    points, weights, n_clusters = small_problem(1)
    problem = Relaxation.of(points, weights, n_clusters)
    rng = np.random.default_rng(14)
    of_signs = triangle(rng.random(problem.gram.shape), 0) * problem.total
    one, both = (
        Certificate(signs, np.empty(0), problem.no_cuts()).lower_bound(problem)
        for signs in (of_signs, (of_signs + of_signs.T) / 2)
    )
    assert one == pytest.approx(both, rel=1e-9)


def test_the_most_violated_cuts_are_found_and_no_bound_is_above_the_optimum() -> None:
    rng = np.random.default_rng(2)
    matrix, roots = rng.random((6, 6)), rng.uniform(0.5, 2, 6)
    matrix += matrix.T
    shares = matrix / np.outer(roots, roots)
    amounts = {
        (i, j, h): roots[i] ** 2
        * (shares[i, j] - shares[i, i] + (shares[i, h] - shares[j, h] if j != h else 0))
        for i, j, h in all_triples(6)
    }
    best = sorted(amounts, key=lambda triple: -amounts[triple])[:4]
    assert [tuple(map(int, triple)) for triple in most_violated(matrix, roots, 4)] == best
    for seed in range(60):
        points, weights, n_clusters = small_problem(seed)
        optimum = optimum_of(points, weights, n_clusters)
        total = optimum_of(points, weights, 1)
        # The optimum itself is rounded, by far less than this.
        assert max(bounds_of(points, weights, n_clusters)) <= optimum + 1e-13 * total


def is_within(share: float) -> Callable[[OptimalityGap], bool]:
    """Return a callback that ends a search, so that no test waits for more than it asserts."""
    return lambda found: found.gap < share


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_subsets_of_a_line_prove_a_bound(confidence: float | None, monkeypatch) -> None:
    monkeypatch.setattr(proof, "bound_of_clusters_apart", lambda *_: 0.0)
    monkeypatch.setattr(proof, "line_through", lambda *_: None)  # which knows the optimum itself
    monkeypatch.setattr(proof, "_has_prices", lambda *_: False)  # which needs no subsets
    rng = np.random.default_rng(7)
    points = np.concatenate([rng.normal(place, 1, 500) for place in (0, 8, 20)])
    line = line_through(points[:, None], None)  # whose tests are below
    starts = line.division(3)
    optimum, centers = line.inertia(starts), line.centers(starts)
    most = {"max_seconds": 60, "confidence": confidence, "callback": is_within(0.1)}
    found = optimality_gap(points[:, None], centers, random_state=0, **most)
    assert found.n_subsets == 7
    assert optimum / 1.1 < found.bound <= optimum * (1 + 1e-12)


def far_apart(n_points: int, n_clusters: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_points)
    labels = np.arange(n_points) % n_clusters
    points = rng.standard_normal((n_points, 3)) + 100 * np.eye(max(3, n_clusters))[labels, :3]
    centers = np.stack([points[labels == label].mean(axis=0) for label in range(n_clusters)])
    return points, centers


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e120])
def test_clusters_far_apart_are_proved_optimal(unit: float) -> None:
    points, centers = far_apart(80)
    found = optimality_gap(points * unit, centers * unit, max_seconds=20)
    assert found.gap <= 1e-6
    assert found.method == "clusters apart"
    assert found.history[-1][1] == found.bound
    assert "proved to be optimal" in str(found)
    of_scikit_learn = OtherKMeans(4, init=centers * unit).fit(points * unit)
    assert optimality_gap(points * unit, of_scikit_learn, max_seconds=20).gap <= 1e-6


def test_bounds_rise_until_a_callback_or_an_interrupt_keeps_the_best() -> None:
    points = np.random.default_rng(4).random((150, 5))
    heard: list[OptimalityGap] = []

    def hear(found: OptimalityGap) -> bool:
        heard.append(found)
        return len(heard) == 4

    model = PowerKMeans(8, random_state=0).fit(points)
    found = model.optimality_gap(points, max_seconds=100, callback=hear)
    assert found.seconds < 50
    bounds = [bound for _, bound in found.history]
    assert bounds == sorted(bounds)
    assert found.bound == bounds[-1]
    assert [one.bound for one in heard] == sorted(one.bound for one in heard)
    points = np.random.default_rng(5).random((300, 5))
    centers = KMeans(12, random_state=0).fit(points).cluster_centers_
    threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start()
    found = optimality_gap(points, centers, max_seconds=100)
    assert found.was_interrupted
    assert "before the search was interrupted" in found.verdict
    assert 0 < found.bound < found.inertia


@pytest.mark.parametrize(("n_most", "n_asked", "n_bounds"), [(2, 3, 0), (9, 11, 2)])
def test_a_search_that_is_over_bounds_what_its_last_steps_found(n_most, n_asked, n_bounds) -> None:
    """It asks for each of five clusters, before the steps, after each of four, and at the end."""
    points = np.random.default_rng(6).random((60, 2))
    labels = PowerKMeans(5, random_state=0).fit(points).labels_
    asked = iter(range(100))
    problem = Relaxation.of(points, np.ones(60), 5)
    bounds = list(relaxation.rising_bounds(problem, labels, lambda: next(asked) >= n_most))
    assert next(asked) == n_asked
    assert len(bounds) == n_bounds
    assert bounds == sorted(set(bounds))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to no chosen thread")
def test_a_second_interrupt_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, me = [], [], threading.get_ident()

    def slow(_: relaxation.Ascent) -> None:
        begun.append(0)
        for after in (0.1, 0.3):
            threading.Timer(after, signal.pthread_kill, [me, signal.SIGINT]).start()
        time.sleep(1.0)
        ended.append(0)

    monkeypatch.setattr(relaxation.Ascent, "step", slow)
    points, before = np.random.default_rng(5).random((100, 5)), threading.active_count()
    found = optimality_gap(points, points[:6], max_seconds=100)
    assert found.was_interrupted
    assert len(begun) == len(ended) == 1
    assert threading.active_count() == before


def test_an_error_in_a_thread_surfaces_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ArithmeticError("in a step")
    monkeypatch.setattr(relaxation.Ascent, "step", Mock(side_effect=error))
    points, before = np.random.default_rng(5).random((1500, 5)), threading.active_count()
    with pytest.raises(ArithmeticError) as raised:
        optimality_gap(points, points[:6], max_seconds=100, n_threads=2)
    assert raised.value is error
    assert threading.active_count() == before


def test_an_interrupt_before_the_first_search_proves_no_more_than_was_computed(monkeypatch):
    monkeypatch.setattr(proof, "principal_bound", Mock(side_effect=KeyboardInterrupt))
    points = np.random.default_rng(11).random((2000, 5))
    found = optimality_gap(points, points[:3], confidence=0.99)
    assert found.was_interrupted
    assert (found.bound, found.method, found.confidence) == (0.0, "subsets", None)


@pytest.mark.parametrize("offset", [1e8, 1e12, 1e15])
@pytest.mark.parametrize("n_features", [1, 400])
def test_a_common_offset_is_no_inertia(offset: float, n_features: int) -> None:
    rng = np.random.default_rng(12)
    steps = rng.integers(0, 8, (300, n_features)).astype(float)
    inertia = np.square(steps).sum() - (np.square(steps.sum(axis=0)) / 300).sum()
    bound = principal_bound(offset + steps, np.ones(300), 1)
    assert inertia * (1 - 1e-10) < bound <= inertia * (1 + 1e-14)
    equal, weights = np.full((300, n_features), offset / 3), rng.uniform(0.1, 4, 300)
    assert principal_bound(equal, weights, 1) <= 0


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (PowerKMeans(2, divergence="poisson"), r"PowerKMeans has divergence=Poisson\(\)"),
        (PowerKMeans(2, missing="observed"), 'PowerKMeans has missing="observed"'),
        (OtherSpectral(2), "has others, or no centers"),
    ],
)
def test_other_distances_are_refused(model: object, why: str) -> None:
    points = np.random.default_rng(6).integers(1, 9, (30, 2)).astype(float)
    with pytest.raises(ValueError, match=f"squared Euclidean distances .* {why}"):
        optimality_gap(points, model.fit(points))  # type: ignore[attr-defined]


def test_what_cannot_be_judged_is_refused_as_is_a_multiplier_below_zero() -> None:
    points, centers = far_apart(40)
    many = np.random.default_rng(0).random((600, 2))
    for of_points, to, wrong, message in (
        (open_data(points, rows_per_part=9), centers, {}, "divides the points into subsets"),
        (many, many[:501], {}, "n_clusters=501 centers are more than the 500"),
        (points, centers, {"max_seconds": 0}, "max_seconds"),
        (points, centers, {"confidence": 1.0}, "confidence"),
    ):
        with pytest.raises(ValueError, match=message):
            optimality_gap(of_points, to, **wrong)
    problem = Relaxation.of(np.arange(4.0)[:, None], np.ones(4), 2)
    negative = np.zeros((4, 4))
    negative[0, 3] = negative[3, 0] = -1e-300
    cuts = Cuts.of(np.array([[0, 1, 2]]), problem.roots)
    for wrong in (
        Certificate(negative, np.zeros(1), cuts),
        Certificate(np.zeros((4, 4)), np.full(1, -1e-300), cuts),
    ):
        with pytest.raises(ValueError, match="below zero"):
            wrong.lower_bound(problem)


def test_subsets_are_a_partition_and_bets_those_of_the_paper() -> None:
    rng = np.random.default_rng(8)
    labels = np.sort(rng.integers(3, size=15_000))
    residuals = rng.standard_normal((len(labels), 4))
    for label in range(3):
        residuals[labels == label] -= residuals[labels == label].mean(axis=0)
    sq_dist = np.square(residuals).sum(axis=1)
    subsets = deal(residuals, sq_dist, labels, 150, rng)
    assert np.array_equal(np.sort(np.concatenate(subsets)), np.arange(len(labels)))
    sizes = np.array([np.bincount(labels[subset], minlength=3) for subset in subsets])
    assert np.ptp(sizes, axis=0).max() <= 2
    sums = np.array([residuals[subset].sum(axis=0) for subset in subsets])
    # By chance alone the variance of such sums is that of a point times their number.
    assert np.square(sums).mean() < 0.1 * residuals.var() * sizes.sum(axis=1).mean()
    shares, before, squares = np.random.default_rng(10).beta(0.5, 2, 200), [0.5], [0.25]
    for t, (bet, share) in enumerate(zip(_bets(shares, 0.9), shares, strict=True), 1):
        variance = sum(squares) / t
        expected = math.sqrt(2 * math.log(10) / (variance * t * math.log(1 + t)))
        assert bet == pytest.approx(min(expected, 1.0))
        squares.append((share - sum(before) / t) ** 2)
        before.append(share)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_the_mean_is_below_its_highest_as_often_as_promised(confidence: float) -> None:
    rng = np.random.default_rng(9)
    n_missed = 0
    for _ in range(300):
        population = rng.beta(0.2, 2, 400) if rng.random() < 0.5 else (rng.random(400) < 0.02) * 1.0
        drawn = rng.permutation(population)[: rng.integers(5, 200)]
        # The worst moment to stop: whenever the bound would be lowest.
        n_missed += highest_mean(drawn, 400, confidence) < population.mean()
    # Four standard deviations above the promise.
    promised = 1 - confidence
    assert n_missed <= 300 * promised + 4 * math.sqrt(300 * promised * confidence)


def test_samples_prove_bounds_at_their_confidence_and_sentences_never_say_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "bound_of_clusters_apart", lambda *_: 0.0)
    points, centers = far_apart(250_000, 3)

    def is_sampled(found: OptimalityGap) -> bool:
        return found.method == "sample of subsets" and found.n_searched > 10

    most = {"max_seconds": 100, "confidence": 0.99, "callback": is_sampled}
    found = optimality_gap(points, centers, random_state=0, **most)
    assert is_sampled(found)
    assert found.n_searched < found.n_subsets
    assert 0 < found.bound <= found.inertia
    assert "at a confidence of 0.99" in str(found)
    for inertia, bound, says in (
        (309.5, 309.5 / 1.0171, "within 1.8 % of the optimum"),
        (1.0, 1 / 1.000101, "within 0.011 % of the optimum"),
        (5.0, 1.0, "within 400 % of the optimum"),
        (1.0, 0.0, "1, not proved to be near the optimum"),
        (0.0, 0.0, "optimal"),
    ):
        assert says in str(OptimalityGap(inertia, bound, "all points", None, 1, 1, 0.0))


def test_a_search_begins_no_step_that_would_end_after_its_time(monkeypatch) -> None:
    now, ended = [0.0], []

    def steps(relaxation, labels, is_over):
        while True:
            now[0] += 1.0
            yield 0.0
            if is_over():
                ended.append(now[0])
                return

    monkeypatch.setattr(proof, "rising_bounds", steps)
    monkeypatch.setattr(proof.time, "monotonic", lambda: now[0])
    points = np.random.default_rng(0).normal(size=(60, 5))
    optimality_gap(points, points[:3], max_seconds=5.5)
    assert ended == [5.0]


DRAWN = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: np.round(3 * rng.normal(size=n)),
    "far from zero": lambda rng, n: rng.normal(size=n) + 1e12,
    "subnormal": lambda rng, n: np.ldexp(np.round(1000 * rng.normal(size=n)), -1074),
    "large": lambda rng, n: 1e150 * rng.normal(size=n),
    "long tail": lambda rng, n: np.exp(6 * rng.normal(size=n)),
    "far groups": lambda rng, n: 1e5 * rng.integers(-1, 2, n) + 1e-3 * rng.normal(size=n),
}


def inertia(values, weights) -> Fraction:
    total = sum(weights)
    mean = sum(w * x for x, w in zip(values, weights, strict=True)) / total
    return sum(w * (x - mean) ** 2 for x, w in zip(values, weights, strict=True))


def least_inertias(values, weights, most: int) -> list[Fraction]:
    """Return the exact optimum for each number of clusters, of sorted values, by all divisions."""
    n = len(values)
    run = {
        (i, j): inertia(values[i:j], weights[i:j]) for i in range(n) for j in range(i + 1, n + 1)
    }
    layer = {0: Fraction(0)}
    optima = []
    for _ in range(most):
        layer = {
            j: min(layer[i] + run[i, j] for i in layer if i < j)
            for j in range(1, n + 1)
            if any(i < j for i in layer)
        }
        optima.append(layer[n])
    return optima


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", DRAWN)
def test_divisions_have_the_least_inertia(kind, seed):
    rng = np.random.default_rng(seed)
    values = DRAWN[kind](rng, int(rng.integers(1, 15)))
    weights = rng.choice([1.0, 2.0, 0.5, 1e-3, 0.0], len(values))
    weights[0] = 1.0
    line = line_through(values[:, None], weights if seed % 2 else None)
    exact = [Fraction(x) for x in line.values], [Fraction(w) for w in line.weights]
    optima = least_inertias(*exact, len(line.values))
    for number in range(len(line.values)):
        starts = line.division(number + 1)
        assert len(starts) == number + 1
        ends = [*starts, len(line.values)]
        found = sum(inertia(exact[0][i:j], exact[1][i:j]) for i, j in pairwise(ends))
        assert found <= optima[number] * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("kind", [*DRAWN, "equally far"])
def test_divisions_of_many_values_settle_and_do_not_rise(kind):
    drawn_by = DRAWN | {"equally far": lambda _, n: np.arange(n, dtype=float)}
    line = line_through(drawn_by[kind](np.random.default_rng(0), 10_000)[:, None], None)
    n = len(line.values)
    inertias = []
    for number in sorted({min(number, n) for number in (1, 2, 3, 40, 41, 1000, n - 1, n)}):
        starts = line.division(number)
        assert len(starts) == number
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        inertias.append(line.inertia(starts))
    assert (np.diff(inertias) <= 0).all()


def test_a_fit_does_not_call_optimal_what_its_centers_cannot_hold():
    digit = np.spacing(1e12)
    X = 1e12 + digit * np.array([0, 1, 10, 11, 12, 20, 21])[:, None]
    assert not PowerKMeans(4, random_state=0).fit(X).is_optimal_
    assert PowerKMeans(4, random_state=0).fit(X - 1e12).is_optimal_


def test_breaks_are_those_of_a_published_map_and_those_by_hand():
    # Employment in California by county and area, as mapclassify has it, and divides it.
    density = """0.13 0.14 0.2 0.22 0.33 0.42 0.61 0.74 0.92 0.99 1.32 1.34 1.65 1.81 2.51 2.74 2.78
        3.16 3.27 3.38 3.99 4.51 5.39 5.9 6.56 6.97 7.6 8.68 8.7 10.03 10.33 11.15 12.02 12.63 13.09
        14.03 16.7 20.47 24.32 28.7 29.82 36.67 36.68 40.48 49.47 50.65 57.26 66.26 75.29 110.74
        181.27 192.05 264.93 317.11 329.92 370.5 722.85 4111.45"""
    found = breaks([float(number) for number in density.split()], 5)
    assert found.tolist() == [0.13, 75.29, 192.05, 370.5, 722.85, 4111.45]
    assert breaks([1, 2, 3, 20, 22, 70], 3).tolist() == [1.0, 3.0, 22.0, 70.0]
    assert breaks([4.0, 4.0], 3).tolist() == [4.0, 4.0]
    weighted = breaks([0.0, 1.0, 2.0], 2, sample_weight=[1, 100, 100])
    assert weighted.tolist() == [0.0, 1.0, 2.0]
    for values, n_classes, told in (
        ([], 2, "0 sample"),
        ([1.0, np.nan], 2, "NaN"),
        (["a", "b"], 2, "text"),
        ([1.0, 2.0], 0, "n_classes"),
    ):
        with pytest.raises(ValueError, match=told):
            breaks(values, n_classes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power_k_means_finds_and_says_the_optimum(dtype):
    X = np.random.default_rng(1).normal(size=(300, 1)).astype(dtype)
    model = PowerKMeans(40, random_state=0).fit(X)
    assert model.is_optimal_
    found = KMeans(40, n_init=20, random_state=0).fit(X)
    assert model.inertia_ < found.inertia_
    assert optimality_gap(X, model).gap < 1e-6
    gap = optimality_gap(X, found)
    assert gap.bound == pytest.approx(model.inertia_, rel=1e-5 if dtype == np.float32 else 1e-7)
    assert gap.method == "line"


def test_breaks_end_where_most_values_are_close_to_each_other():
    close, far = np.arange(20_000) * 1e-12, 10.0 ** np.arange(4)
    found = breaks(np.concatenate([close, far]), 16)
    sizes = np.diff(np.searchsorted(close, found[:13]))
    assert set(sizes[1:]) == {1666, 1667}
    np.testing.assert_array_equal(found[13:], far)


def test_breaks_take_weights_that_differ_more_than_float64_holds():
    found = breaks([0.0, 1.0, 2.0, 3.0], 4, sample_weight=[1e-300, 1.0, 1e-300, 1e300])
    np.testing.assert_array_equal(found, [0.0, 0.0, 1.0, 2.0, 3.0])


def test_no_division_is_proved_that_costs_less_than_rounding_of_the_sums():
    places = [-0.3418, -0.0773, -0.0012, 0.0804, 0.7368, 0.7808, 0.8648]
    values = np.concatenate([places, 1e16 + np.arange(0, 40, 2)])[:, None]
    model = PowerKMeans(24, random_state=0).fit(values)
    assert not model.is_optimal_


def test_points_on_a_slanting_line_are_solved_and_others_searched():
    along = np.random.default_rng(2).normal(size=500)
    X = [3.0, -1.0, 7.0] + along[:, None] * [1.0, 2.0, -0.5]
    model = PowerKMeans(30, random_state=0).fit(X)
    assert model.is_optimal_
    of_line = PowerKMeans(30, random_state=0).fit(along[:, None])
    assert model.inertia_ == pytest.approx(of_line.inertia_ * 5.25, rel=1e-9)
    rng = np.random.default_rng(3)
    X = rng.gamma(2.0, size=(200, 1))
    for params in ({"effort": "none"}, {"divergence": "gamma"}, {"divergence": "manhattan"}):
        assert not PowerKMeans(4, random_state=0, **params).fit(X).is_optimal_
    beside = X * [1.0, 2.0] + 1e-9 * rng.normal(size=(200, 2))
    model = PowerKMeans(3, random_state=0).fit(beside)
    assert not model.is_optimal_
    assert optimality_gap(beside, model, max_seconds=0.5).method == "all points"


def test_a_notebook_and_a_report_tell_without_being_asked_what_is_proved_in_a_moment(tmp_path):
    rng = np.random.default_rng(0)
    line = np.array([[0.0], [1.0], [10.0], [11.0]])
    few, many = rng.normal(size=(30, 3)), rng.normal(size=(3000, 8))
    optimal = "proved to be optimal"
    for X, told in ((line, optimal), (np.hstack([line, line**2]), optimal), (few, "proved to be")):
        model = PowerKMeans(2, random_state=0).fit(X)
        page = report(model, X, tmp_path / "page.html").read_text()
        assert told in model._repr_mimebundle_()["text/html"]
        assert told in page
    model = PowerKMeans(20, effort="none", random_state=0).fit(many)
    assert "proved to be" not in model._repr_mimebundle_()["text/html"]


def test_columns_beside_a_large_one_are_no_rounding_of_a_line() -> None:
    S = np.random.default_rng(0).normal(size=(200, 2)) * [15, 20] + [45, 60]
    for large in (1.7e18, 1e20):
        X = np.column_stack([np.full(200, large), S])
        X[0, 0] = np.nextafter(large, np.inf)
        model = PowerKMeans(5, random_state=0).fit(X)
        assert not model.is_optimal_
        assert optimality_gap(X, model, max_seconds=0.1).method != "line"


def test_what_cannot_be_told_is_not_raised_in_a_notebook(tmp_path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    model = KMeans(3, random_state=0).fit(frame)
    frame["cluster"] = model.labels_
    assert "proved" not in model._repr_mimebundle_()["text/html"]
    many = np.random.default_rng(0).normal(size=(1200, 2))
    model = KMeans(501, max_iter=2, random_state=0).fit(many)
    assert "proved" not in model._repr_mimebundle_()["text/html"]
    report(model, many, tmp_path / "page.html")

    class Equal(KMeans):
        def __eq__(self, other):
            return isinstance(other, Equal)

    few = many[:9, :1].copy()  # on a line, where a proof takes no search
    assert "proved" in Equal(2, random_state=0).fit(few)._repr_mimebundle_()["text/html"]


def test_a_notebook_tells_nothing_of_points_that_are_gone_or_have_changed() -> None:
    def text(model) -> str:
        return model._repr_mimebundle_()["text/html"]

    X = np.array([[0.0, 1.0], [1.0, 3.0], [10.0, 1.0], [11.0, 2.0]])
    weights = np.array([1.0, 2.0, 1.0, 1.0])
    model = KMeans(2, random_state=0).fit(X, sample_weight=weights)
    loaded = pickle.loads(pickle.dumps(model))
    assert "proved" in text(model)
    assert not any("proved" in text(one) for one in (loaded, clone(model), KMeans(2)))
    X *= 2
    assert "proved" not in text(model)
    X /= 2
    del weights
    assert "proved" not in text(model)
    assert "proved" not in text(KMeans(2, random_state=0).fit(X.tolist()))
