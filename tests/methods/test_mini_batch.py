import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import KINDS
from problems import blobs
from scipy.spatial.distance import cdist
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from powermeans import MiniBatchPowerKMeans, PowerKMeans
from powermeans.engine.updates import Sweep
from powermeans.mathematics.power_mean import power_mean, power_mean_gradient
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Sums
from powermeans.methods.streams.running_sums import FADING, RunningSums, leaders_of


def test_fits_go_from_the_automatic_power_to_hard_ones_nearly_as_good_as_all_at_once():
    points = blobs(1800, 4, 12)
    model = MiniBatchPowerKMeans(12, random_state=0).fit(points)
    assert model.n_steps_ == 1
    fast = PowerKMeans(12, init=model.cluster_centers_, effort="none", power=-math.inf)
    assert model.inertia_ < (1 + 1e-4) * fast.fit(points).inertia_
    inertias = np.zeros(3)
    for seed in range(3):
        points = blobs(10_000, 2, 30, scale=4.0, seed=seed)
        with threadpool_limits(1):  # more of them wait for one another
            for number, kind in enumerate((PowerKMeans, MiniBatchPowerKMeans, MiniBatchKMeans)):
                inertias[number] += kind(30, random_state=seed).fit(points).inertia_
    whole, batches, theirs = inertias
    assert batches < 1.03 * whole
    assert batches < 0.98 * theirs
    points = blobs(60_000, 4, 12)
    model = MiniBatchPowerKMeans(12, random_state=0).fit(points)
    power = model.history_.power
    start = min(2 * PowerKMeans(12, effort="none").fit(points[:3072]).critical_power_ - 1, -1)
    assert power[0] == -math.inf  # the first sample, which is hard by then
    assert power[1] == pytest.approx(start, rel=0.5)
    soft = power[1:][np.isfinite(power[1:])]
    np.testing.assert_allclose(soft[1:] / soft[:-1], 1.2)
    assert (power[1 + len(soft) :] == -math.inf).all()
    assert 3 < len(soft) < len(power) - 5
    assert model.power_ == -math.inf


def test_a_chunk_is_one_step_of_the_recursion():
    """Hard sums of a chunk are added to what is left of those before."""
    points = blobs(3000, 4, 3)
    stream = MiniBatchPowerKMeans(3, init_size=1000, power=-math.inf, random_state=0)
    stream.partial_fit(points[:1000])
    centers = stream.cluster_centers_
    chosen = PowerKMeans(3, effort="fast", power=-math.inf, random_state=0).fit(points[:1000])
    labels = chosen.predict(points[:1000])
    weights = np.bincount(labels, minlength=3).astype(float)
    sums = np.array([points[:1000][labels == j].sum(axis=0) for j in range(3)])
    np.testing.assert_allclose(centers, sums / weights[:, None])
    for start, end in ((1000, 1500), (1500, 3000)):
        chunk = points[start:end]
        labels = ((chunk[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        kept = (start / end) ** FADING
        sums = kept * sums + np.array([chunk[labels == j].sum(axis=0) for j in range(3)])
        weights = kept * weights + np.bincount(labels, minlength=3)
        centers = sums / weights[:, None]
        stream.partial_fit(chunk)
        np.testing.assert_allclose(stream.cluster_centers_, centers)


def test_a_stream_of_the_batches_of_a_fit_is_the_fit(monkeypatch):
    points, batches = blobs(20_000, 4, 12), []
    part = MiniBatchPowerKMeans._part

    def noted(self, data, indices):
        batches.append(data.given.array[indices])
        return part(self, data, indices)

    with monkeypatch.context() as patched:
        patched.setattr(MiniBatchPowerKMeans, "_part", noted)
        fitted = MiniBatchPowerKMeans(12, power=-math.inf, random_state=0).fit(points)
    assert sum(map(len, batches)) == len(points)
    # The fit draws its order before the seeds.
    rng = np.random.RandomState(0)
    rng.randint(2**31)
    stream = MiniBatchPowerKMeans(12, power=-math.inf, random_state=rng)
    for batch in batches:
        stream.partial_fit(batch)
    np.testing.assert_array_equal(stream.cluster_centers_, fitted.cluster_centers_)
    assert stream.n_steps_ == fitted.n_steps_


@pytest.mark.parametrize("n_batches", [1, 3, 20])
def test_an_interrupt_after_a_batch_leaves_one_state(n_batches, interrupt_in_line):
    """One falls into the line that is printed, when the history has the batch."""
    points = blobs(10_000, 4, 12)
    model = MiniBatchPowerKMeans(12, max_iter=5, verbose=2, init_size=2000, random_state=0)
    interrupt_in_line(rf", {n_batches} sweeps?, ")
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    assert len(model.history_) == model.n_steps_ == n_batches
    # The first pass has nine batches, the first of 2000 points, and later ones have fewer.
    assert model.n_iter_ == {1: 1, 3: 1, 20: 3}[n_batches]
    np.testing.assert_array_equal(model.cluster_centers_, model._stream.centers)
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    assert not hasattr(model, "_in_fit")
    model.set_params(verbose=0).partial_fit(points[:100])
    assert model.n_steps_ == n_batches + 1


@pytest.mark.parametrize("power", ["auto", -1.0, -math.inf])
@pytest.mark.parametrize("n_places", [1, 2])
def test_places_of_the_first_sample_that_were_too_few_are_made_up_for(power, n_places):
    stream = MiniBatchPowerKMeans(4, init_size=5, power=power, random_state=0)
    places = np.array([[1.0, 1.0], [2.0, 5.0], [9.0, 9.0], [-5.0, 3.0]])
    for _ in range(3):
        stream.partial_fit(np.repeat(places[:n_places], 4, axis=0))
    for _ in range(30):
        stream.partial_fit(np.repeat(places[::-1], 20, axis=0))
    assert stream.score(places) > -1e-2


def shown(chunks, **options):
    """What is left of all chunks of one feature, shown one after another to a center at zero."""
    center = np.zeros((1, 1))
    left = RunningSums(Sums(center, np.zeros(1), 0.0, 0.0), 0.0)
    for chunk in chunks:
        rows = KINDS["native"](chunk, None)
        left = RunningSums(left.sums, left.weight, **options)
        left.after(Sweep(rows, center, -math.inf), rows.sweep(center, Hard()))
    return left


def test_points_count_in_proportion_to_those_before_so_that_lost_centers_are_found():
    """Of chunks of one point each, the one after W others keeps (W / n)^FADING of its weight."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    running = shown(points[:, None, :])
    counts = (np.arange(1, 51) / 50) ** FADING
    assert running.weight == 50
    np.testing.assert_allclose(running.sums.weights, [counts.sum()])
    np.testing.assert_allclose(running.sums.points, [counts @ points])
    running, ratio = shown(np.ones((500, 1, 1)), memory=10.0), (10 / 11) ** FADING
    assert running.weight == 500
    np.testing.assert_allclose(running.sums.weights, [1 / (1 - ratio)])
    rng = np.random.default_rng(0)
    stream = MiniBatchPowerKMeans(
        3, init_size=300, memory=500.0, reassignment_ratio=0.01, random_state=0
    )
    first, later = [[-10.0], [0.0], [1.0]], [[-10.0], [0.0], [50.0]]
    for means in [first] * 30 + [later] * 60:
        chunk = np.array(means)[rng.integers(3, size=100)] + 0.1 * rng.normal(size=(100, 1))
        stream.partial_fit(chunk)
    np.testing.assert_allclose(np.sort(stream.cluster_centers_[:, 0]), [-10, 0, 50], atol=0.1)


@pytest.mark.parametrize("power", [-1.0, -3.0, -30.0])
def test_soft_and_hard_sums_are_in_one_unit(power):
    """The surrogate of a batch touches the sum of k^(1/s) M_s from above, which is no inertia.

    So that of several batches, at several powers, lies above the sum of theirs at any centers.
    """
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(200, 2)), rng.normal(size=(4, 2))
    rows = KINDS["reference"](points, None)
    sums = rows.sweep(centers, Power(power))

    def surrogate(at):
        """Sum over points and centers of w |x - at_j|^2, from the sums and from the squares."""
        squares = cdist(points, centers, "sqeuclidean")
        weights = 4 ** (1 / power) * power_mean_gradient(squares, power)
        np.testing.assert_allclose(weights.sum(axis=0), sums.weights)
        return float((weights * cdist(points, at, "sqeuclidean")).sum())

    def unit_mean(at):
        squares = cdist(points, at, "sqeuclidean")
        return 4 ** (1 / power) * power_mean(squares, power).sum()

    assert surrogate(centers) == pytest.approx(unit_mean(centers))
    assert unit_mean(centers) < rows.assign(centers)[1]
    for _ in range(20):
        elsewhere = centers + 0.5 * rng.normal(size=centers.shape)
        assert surrogate(elsewhere) >= unit_mean(elsewhere)


def found(chunk, centers, weights, kind="native", **options):
    """Where centers of these weights begin the sweep of a chunk, and what is left of their sums."""
    before = Sums(centers * weights[:, None], weights, 0.0, 0.0)
    running = RunningSums(before, float(weights.sum()), **options)
    return running.before(Sweep(KINDS[kind](chunk, None), centers, -1.0)), running.sums


@pytest.mark.parametrize("kind", KINDS)
def test_lost_centers_begin_anew(kind):
    """At the middle of the error: of 0, 1, 81, 4 half is passed at the third point."""
    centers = np.array([[0.0], [1000.0]])
    for share, before, chunk, place, after in (
        (0.0, [5.0, 0.0], [0.0, 1.0, 9.0, 2.0], 9.0, [5.0, 0.0]),
        (0.0, [5.0, 0.0], [0.0, 0.0, 0.0], 1000.0, [5.0, 0.0]),  # every point is at a center
        (0.12, [9.0, 1.0], [0.0, 7.0], 7.0, [9.0, 0.0]),  # a ninth is less than this share
        (0.1, [9.0, 1.0], [0.0, 7.0], 1000.0, [9.0, 1.0]),
    ):
        points = np.array(chunk)[:, None]
        moved, sums = found(points, centers, np.array(before), kind, least_share=share)
        np.testing.assert_array_equal(moved, [[0.0], [place]])
        np.testing.assert_array_equal(sums.weights, after)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_of_centers_that_coincide_all_but_the_heaviest_are_lost(kind, scale):
    """What they remember goes to the heaviest, so that the sums of all stay the same."""
    centers = scale * np.array([[3.0], [1.0], [3.0], [3.0 * (1 + 1e-15)]])
    weights = np.array([1.0, 9.0, 2.0, 0.5])
    chunk = scale * np.array([[1.0], [8.0], [3.0], [5.0]])
    moved, sums = found(chunk, centers, weights, kind)
    np.testing.assert_allclose(moved / scale, [[8.0], [1.0], [3.0], [5.0]])
    np.testing.assert_array_equal(sums.weights, [0.0, 9.0, 3.5, 0.0])
    np.testing.assert_allclose(sums.points / scale, [[0.0], [9.0], [10.5], [0.0]])
    stay, sums = found(np.full((5, 1), 3.0), np.full((2, 1), 3.0), np.array([1.0, 2.0]), kind)
    np.testing.assert_array_equal(stay, [[3.0], [3.0]])  # where no point is elsewhere
    np.testing.assert_array_equal(sums.weights, [1.0, 2.0])


@given(
    places=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    n_features=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_leaders_are_the_heaviest_at_their_place(places, n_features, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, len(places)).astype(float)
    leaders = leaders_of(rng.normal(size=(4, n_features))[places], weights)
    for center, place in enumerate(places):
        here = [j for j, other in enumerate(places) if other == place]
        assert leaders[center] == max(here, key=lambda j: (weights[j], -j))
