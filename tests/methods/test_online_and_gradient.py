import signal
import threading
import time

import numpy as np
import pytest
from kinds_of_rows import KINDS
from problems import blobs
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import KMeans
from powermeans.mathematics.rules import Online
from powermeans.methods import GradientKMeans, OnlineKMeans
from powermeans.points.by_definition import sweep_by_formula
from powermeans.points.compiled import EuclideanPoints

# Others have no order to come in.
NATIVE = [kind for kind in KINDS if kind.startswith("native")]


def recursion(points, weights, centers, rates=None, order=None):
    """Equations 4 and 7, a point of weight w as one step: w / n_j, or that of w steps."""
    centers, counts, inertia = centers.copy(), np.zeros(len(centers)), 0.0
    steps = iter(()) if rates is None else iter(rates)
    for i in range(len(points)) if order is None else order:
        if weights[i] == 0:
            continue
        distances = ((centers - points[i]) ** 2).sum(axis=1)
        j = int(distances.argmin())
        inertia += weights[i] * distances[j]
        counts[j] += weights[i]
        rate = weights[i] / counts[j] if rates is None else 1 - (1 - next(steps)) ** weights[i]
        centers[j] = centers[j] + rate * (points[i] - centers[j])
    return centers, counts, inertia


def cloud(n_points=300, n_features=3, n_centers=7, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features)) + 3 * rng.integers(3, size=(n_points, 1))
    weights = rng.integers(0, 4, n_points).astype(float)
    return points, weights, points[:n_centers] + 0.01


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 8), (17, 9), (40, 20)], ids=str)
@pytest.mark.parametrize("with_rates", [False, True])
@pytest.mark.parametrize("with_order", [False, True])
def test_a_sweep_is_the_recursion(kind, dtype, shape, with_rates, with_order):
    points, weights, centers = cloud(300, *shape)
    points = points.astype(dtype)
    rng = np.random.default_rng(1)
    rates = rng.uniform(size=np.count_nonzero(weights)) if with_rates else None
    order = rng.permutation(len(points)) if with_order else None
    rule = Online(np.zeros(len(centers)), rates, order)
    swept = KINDS[kind](points, weights).sweep(centers, rule)
    reached, counts, inertia = recursion(points.astype(float), weights, centers, rates, order)
    np.testing.assert_allclose(swept.centers(fallback=np.zeros_like(centers)), reached, atol=1e-12)
    np.testing.assert_allclose(swept.weights, counts, rtol=1e-12)
    assert swept.inertia == pytest.approx(inertia, rel=1e-12)


@pytest.mark.parametrize("kind", NATIVE)
def test_counts_of_before_make_steps_small_and_the_first_of_several_nearest_moves(kind):
    """A center of nine points goes a tenth of the way to the next."""
    rows = KINDS[kind](np.array([[10.0, 0.0]]), None)
    swept = rows.sweep(np.array([[0.0, 0.0], [99.0, 0.0]]), Online(np.array([9.0, 0.0])))
    np.testing.assert_allclose(swept.centers(np.zeros((2, 2))), [[1.0, 0.0], [99.0, 0.0]])
    np.testing.assert_array_equal(swept.weights, [10.0, 0.0])
    assert swept.inertia == pytest.approx(100.0)
    centers = np.array([[5.0], [1.0], [1.0], [3.0]])
    moved = KINDS[kind](np.array([[2.0]]), None).sweep(centers, Online(np.zeros(4)))
    np.testing.assert_array_equal(moved.centers(centers), [[5.0], [2.0], [1.0], [3.0]])


@pytest.mark.parametrize("rate", [0.5, 0.999, 1.0])
def test_sparse_centers_keep_their_digits_over_many_steps(rate):
    """Each step shrinks all of the center, and 1e-300 is soon reached."""
    rng = np.random.default_rng(0)
    points = sparse.random_array((3000, 30), density=0.2, rng=rng, format="csr")
    centers = points[:4].toarray() + 0.1
    rates = np.full(3000, rate)
    swept = EuclideanPoints(points).sweep(centers, Online(np.zeros(4), rates))
    reached, _, inertia = recursion(points.toarray(), np.ones(3000), centers, rates)
    np.testing.assert_allclose(swept.centers(centers), reached, atol=1e-12)
    assert swept.inertia == pytest.approx(inertia, rel=1e-10)


def test_rows_take_turns_by_rates_that_suffice_and_tell_far_centers_apart():
    points, weights, centers = cloud()
    too_few = np.full(np.count_nonzero(weights) - 1, 0.1)
    with pytest.raises(ValueError, match="one entry for each step"):
        EuclideanPoints(points, weights).sweep(centers, Online(np.zeros(7), too_few))
    parts = [(slice(0, 2), np.ones((2, 1)))]
    with pytest.raises(TypeError, match="do not take turns"):
        sweep_by_formula(np.zeros((2, 1)), None, parts, 1, Online(np.zeros(1)))
    centers = np.array([[1e200], [0.9e200]])
    rows = EuclideanPoints(np.array([[1e-200], [2e-200]]))
    swept = rows.sweep(centers, Online(np.zeros(2)))
    np.testing.assert_array_equal(swept.weights, [0.0, 2.0])


def test_ctrl_c_ends_a_long_sweep():
    points = np.random.default_rng(0).normal(size=(200_000, 64))
    rule = Online(np.zeros(200))
    started = time.perf_counter()
    EuclideanPoints(points[:20_000]).sweep(points[:200], rule)
    seconds_of_all = 10 * (time.perf_counter() - started)
    rows = EuclideanPoints(points)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        rows.sweep(points[:200], rule)
    assert time.perf_counter() - started < 0.5 * seconds_of_all
    timer.join()


POINTS = blobs(600)


def plain(**params):
    """One pass over the points as they come, and nothing else."""
    return OnlineKMeans(4, batch=False, shuffle=False, **params)


def test_epochs_and_batch_sweeps_go_on_from_the_pass_before():
    centers, counts, _ = recursion(np.vstack([POINTS, POINTS]), np.ones(1200), POINTS[:4])
    model = plain(init=POINTS[:4], n_epochs=2).fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)
    np.testing.assert_array_equal(model.counts_, counts)
    assert model.n_steps_ == 1200
    online = plain(init=POINTS[:4]).fit(POINTS)
    both = OnlineKMeans(4, init=POINTS[:4], shuffle=False, tol=0.0).fit(POINTS)
    lloyd = KMeans(4, init=online.cluster_centers_, tol=0.0).fit(POINTS)
    np.testing.assert_allclose(both.cluster_centers_, lloyd.cluster_centers_, atol=1e-12)
    assert both.n_iter_ == 1 + lloyd.n_iter_
    assert both.inertia_ == pytest.approx(lloyd.inertia_)
    assert both.inertia_ < online.inertia_
    np.testing.assert_array_equal(both.counts_, np.bincount(both.labels_))
    np.testing.assert_array_equal(both.labels_, both.predict(POINTS))


@pytest.mark.parametrize("rates", [0.05, lambda t: 0.5 / t])
def test_a_learning_rate_makes_it_the_online_gradient(rates):
    by_step = [rates(t) if callable(rates) else rates for t in range(1, 601)]
    centers, _, _ = recursion(POINTS, np.ones(600), POINTS[:4], by_step)
    model = plain(init=POINTS[:4], learning_rate=rates).fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)


@pytest.mark.parametrize("sizes", [(1, 2, 597), (100,) * 6, (1,) * 600], ids=len)
@pytest.mark.parametrize("rates", ["auto", lambda t: t**-0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stream_in_chunks_is_one_pass_to_the_last_bit(sizes, rates, dtype):
    points = POINTS.astype(dtype)
    whole = plain(init=points[:4], learning_rate=rates).fit(points)
    stream = plain(init=points[:4], learning_rate=rates)
    for chunk in np.split(points, np.cumsum(sizes)[:-1]):
        stream.partial_fit(chunk)
    np.testing.assert_array_equal(stream.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(stream.counts_, whole.counts_)
    assert stream.n_steps_ == whole.n_steps_ == 600
    assert stream.cluster_centers_.dtype == dtype


def test_a_stream_goes_on_from_the_clusters_of_a_fit_and_makes_up_for_seeds():
    stream = OnlineKMeans(3, init_size=5, random_state=0)
    for _ in range(3):
        stream.partial_fit(np.ones((4, 2)))
    for _ in range(20):
        stream.partial_fit(np.repeat([[5.0, 5.0], [9.0, 9.0], [1.0, 1.0]], 20, axis=0))
    np.testing.assert_allclose(np.sort(stream.cluster_centers_[:, 0]), [1, 5, 9], atol=1e-9)
    assert stream.counts_.sum() == 12 + 20 * 60
    stream = OnlineKMeans.from_centers([[0.0], [9.0]]).partial_fit([[1.0], [2.0]])
    stream.partial_fit([[1.0], [3.0]])
    np.testing.assert_array_equal(stream.cluster_centers_, [[1.75], [9.0]])
    model = OnlineKMeans(4, random_state=0).fit(POINTS)
    before, counts = model.cluster_centers_.copy(), model.counts_.copy()
    new = np.array([[100.0, 100.0]])
    j = model.predict(new)[0]
    model.partial_fit(new)
    expected = before[j] + (new[0] - before[j]) / (counts[j] + 1)
    np.testing.assert_allclose(model.cluster_centers_[j], expected)
    others = np.delete(np.arange(4), j)
    np.testing.assert_array_equal(model.cluster_centers_[others], before[others])
    np.testing.assert_array_equal(model.labels_, [j])
    assert model.inertia_ == pytest.approx(((new[0] - expected) ** 2).sum())


@pytest.mark.parametrize("rate", [0.003, lambda t: 0.01 / t], ids=["fixed", "falling"])
def test_each_sweep_is_equation_3(rate):
    points = blobs(400)
    centers = points[:4]
    for t in range(1, 6):
        labels = cdist(points, centers).argmin(axis=1)
        step = rate(t) if callable(rate) else rate
        pulls = [(points[labels == j] - centers[j]).sum(axis=0) for j in range(4)]
        centers = centers + step * np.array(pulls)
    model = GradientKMeans(4, init=points[:4], learning_rate=rate, max_iter=5, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        model.fit(points)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_automatic_steps_descend_to_where_lloyds_algorithm_ends(make, dtype):
    points = blobs(400).astype(dtype)
    model = GradientKMeans(4, init=points[:4], tol=1e-12, max_iter=3000).fit(make(points))
    assert np.all(np.diff(model.history_.inertia) <= 1e-6 * model.history_.inertia[0])
    lloyd = KMeans(4, init=model.cluster_centers_, tol=0.0).fit(points)
    assert model.inertia_ == pytest.approx(lloyd.inertia_, rel=1e-5)
    assert model.cluster_centers_.dtype == dtype


@pytest.mark.parametrize("rate", [0.05, 1.0, 1e9, 1e300])
def test_divergence_is_an_error_that_says_what_to_pass(rate):
    points = np.random.default_rng(0).normal(size=(50, 2))
    model = GradientKMeans(1, init=[[3.0, 0.0]], learning_rate=rate)
    with pytest.raises(ValueError, match=r"above 2, .* leads away .* at most 0.04"):
        model.fit(points)
    # The first step, if it was possible, is kept.
    assert np.isfinite(getattr(model, "cluster_centers_", 0.0)).all()


def test_a_step_too_long_that_later_ones_mend_is_no_error():
    """The authors' 0.03 / t for iris begins with steps beyond the mean."""
    points = np.random.default_rng(0).normal(size=(150, 2))
    model = GradientKMeans(1, init=[[1.0, 0.0]], learning_rate=lambda t: 0.03 / t, tol=1e-12)
    model.fit(points)
    assert model.history_.inertia[1] > model.history_.inertia[0]
    np.testing.assert_allclose(model.cluster_centers_[0], points.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize(
    ("points", "rate", "message"),
    [
        ([1.0, 2.0, 3.0, 50.0, 51.0], 1e60, "times 3, the weight of the heaviest cluster"),
        ([-3e38, -3e38, 3e38], 2 / 3, "a center that float32 cannot store: scale X"),
    ],
)
def test_a_step_beyond_what_the_points_dtype_holds_is_an_error(points, rate, message):
    """Without points of its own, a center that has leapt away raises no inertia."""
    points = np.array(points, dtype=np.float32)[:, None]
    init = [[2.5], [50.0]] if len(points) > 3 else [[3e38]]
    model = GradientKMeans(len(init), init=init, learning_rate=rate, max_iter=1)
    with pytest.raises(ValueError, match=message):
        model.fit(points)
