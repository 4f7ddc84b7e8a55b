import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone

from powermeans import BalancedKMeans
from powermeans.divergences import Mahalanobis
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.types import FloatArray


def drawn(n: int = 600, seed: int = 0, n_features: int = 3) -> FloatArray:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(6, 0.5))
    centers = 4 * rng.normal(size=(6, n_features))
    return centers[rng.choice(6, n, p=shares)] + rng.normal(size=(n, n_features))


def inertia_of(X: FloatArray, model: BalancedKMeans, weights: Any = 1.0) -> float:
    sq_dist = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    return float((weights * sq_dist).sum())


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.filterwarnings("ignore")
def test_limits_always_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(20, 300)), int(rng.integers(1, 9))
    X = drawn(n, seed)
    if seed % 3 == 0:
        X = np.rint(X)  # many rows are equal
    limits = {"size_min": rng.integers(0, n // k + 1), "size_max": rng.integers(-(-n // k), n + 1)}
    model = BalancedKMeans(k, effort="fast", random_state=0, n_threads=1)
    model.set_params(**{name: int(size) for name, size in limits.items()}).fit(X)
    sizes = np.bincount(model.labels_, minlength=k)
    assert limits["size_min"] <= sizes.min() <= sizes.max() <= limits["size_max"]
    assert np.array_equal(model.sizes_, sizes)
    assert model.inertia_ == pytest.approx(inertia_of(X, model), rel=1e-9)
    assert model.assignment_gap_ < 1e-9


def test_centers_are_means_prices_move_points_and_prediction_knows_neither() -> None:
    X = drawn(3000)
    model = BalancedKMeans(6, size_max=550, random_state=0).fit(X)
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(6)])
    of_means = ((X - means[model.labels_]) ** 2).sum()
    assert of_means * (1 - 1e-12) <= model.inertia_ == pytest.approx(of_means, rel=1e-4)
    sq_dist = cdist(X, model.cluster_centers_, "sqeuclidean")
    costs = sq_dist + model.prices_
    own = costs[np.arange(len(X)), model.labels_]
    assert np.all(own <= costs.min(axis=1) + 1e-9)
    nearest = sq_dist.argmin(axis=1)
    assert np.array_equal(model.predict(X), nearest)
    assert np.bincount(nearest).max() > 550


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.55])
def test_shares_are_not_rounded_beyond_whole_rows(share: float) -> None:
    model = BalancedKMeans(int(np.ceil(1 / share)), size_max=share, random_state=0, effort="fast")
    assert model.fit(drawn(100)).sizes_.max() <= round(100 * share)
    least = 0.29  # times 100 is a little below 29
    assert BalancedKMeans(3, size_min=least, random_state=0).fit(drawn(100)).sizes_.min() >= 29


def test_more_balance_makes_sizes_more_even_also_of_equal_huge_or_heavy_points() -> None:
    X = drawn(1000)
    spreads = [
        BalancedKMeans(6, balance=balance, effort="fast", random_state=0).fit(X).sizes_.std()
        for balance in (0, 0.3, 0.7, 0.95, 1)
    ]
    assert np.all(np.diff(spreads) < 0)
    assert spreads[-1] < 1
    even = BalancedKMeans(6, random_state=0, effort="fast").fit(X)  # is so without sizes
    assert np.ptp(np.bincount(even.labels_)) == 1
    pairs = np.repeat([[0.0], [1.0]], 50, axis=0)
    for points in (np.zeros((100, 3)), pairs, 1e150 * drawn(100)):
        assert BalancedKMeans(4, size_max=26, random_state=0).fit(points).sizes_.max() <= 26
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    with pytest.warns(RuntimeWarning, match=r"miss the limits by \d"):
        BalancedKMeans(2, size_max=5.5, random_state=0).fit(X, sample_weight=[3, 3, 3, 1.9])
    limits = SizeLimits(3, 10, 40, 90, curvature=0.5)
    prices = np.array([-2.0, 0.0, 100.0])
    assert limits.wanted(prices, np.zeros(3)).tolist() == [26.0, 30.0, 40.0]
    limits = SizeLimits(3, 10, 40, 90)
    assert limits.wanted(prices, np.array([9.0, 33.0, 1.0])).tolist() == [10.0, 33.0, 40.0]


@pytest.mark.parametrize("weight", [0.1, 2.0, 1 / 3])
@pytest.mark.parametrize(
    "options", [{"size_max": 1 / 7}, {"size_min": 12, "size_max": 15.5}, {"balance": 0.5}], ids=str
)
def test_equal_weights_count_as_rows(weight: float, options: dict[str, Any]) -> None:
    X = drawn(100)
    options = {"init": X[:7], "effort": "none", **options}
    rows = BalancedKMeans(7, **options).fit(X)
    sizes = {name: options[name] * weight for name in ("size_min", "size_max") if name in options}
    sizes = {name: size for name, size in sizes.items() if options[name] > 1}
    heavy = BalancedKMeans(7, **{**options, **sizes}).fit(X, sample_weight=np.full(100, weight))
    assert np.array_equal(heavy.labels_, rows.labels_)
    assert heavy.sizes_ == pytest.approx(weight * rows.sizes_)
    assert heavy.assignment_gap_ == pytest.approx(rows.assignment_gap_, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"balance": 0.01}, {"balance": 0.3}, {"size_min": 0.1}])
@pytest.mark.parametrize("seed", range(4))
def test_weighted_rows_have_sizes_that_copies_have(seed: int, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    X, weights = drawn(150), rng.integers(1, 6, size=150)
    if options:
        X = rng.normal(size=(60, 2)) + 3 * rng.normal(size=(4, 2))[rng.integers(4, size=60)]
        weights, options = rng.integers(1, 8, size=60), {"effort": "fast", **options}
    model = BalancedKMeans(4, random_state=0, **options).fit(X, sample_weight=weights)
    inertia, sizes, gap = model.inertia_, model.sizes_, model.assignment_gap_
    assert sizes == pytest.approx(np.bincount(model.labels_, weights=weights))
    assert inertia == pytest.approx(inertia_of(X, model, weights))
    assert sizes.min() > 0
    assert gap <= 0.05 if options else np.ptp(sizes) <= 1
    assert inertia <= 1.05 * model.fit(np.repeat(X, weights, axis=0)).inertia_


@pytest.mark.parametrize("heaviest", [5, 200])
def test_sizes_as_even_as_whole_rows_allow_are_told_of_only_beyond_limits(heaviest: int) -> None:
    X = drawn(40)
    weights = np.random.default_rng(1).integers(1, 6, size=40)
    weights[0] = heaviest
    most = max(heaviest, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BalancedKMeans(4, balance=1, size_max=most, random_state=0, effort="none")
        sizes = model.fit(X, sample_weight=weights).sizes_
    assert sizes.max() <= most
    with pytest.warns(RuntimeWarning, match="miss the limits by"):
        model.set_params(size_min=30.5, size_max=None).fit(X[:4], sample_weight=[10, 31, 31, 60])


MAHALANOBIS = Mahalanobis(np.diag([1.0, 2.0, 4.0]))


@pytest.mark.parametrize(
    "divergence", ["poisson", "gamma", "cosine", "manhattan", "hellinger", MAHALANOBIS]
)
def test_every_divergence_has_limits(divergence: Any) -> None:
    X = np.exp(drawn(400) / 4)
    limits: dict[str, Any] = {"size_min": 80, "size_max": 120, "effort": "fast"}
    model = BalancedKMeans(4, divergence=divergence, random_state=0, **limits).fit(X)
    sizes = np.bincount(model.labels_)
    assert 80 <= sizes.min() <= sizes.max() <= 120
    assert model.assignment_gap_ < 1e-9
    distances = np.asarray(model.transform(X), dtype=np.float64)
    own = distances[np.arange(len(X)), model.labels_].sum()
    assert model.inertia_ == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size_max": 9}, "size_max=9 times 10 clusters makes 90 rows, and X has 100"),
        ({"size_min": 11}, "size_min=11 times 10 clusters makes 110 rows"),
        ({"size_min": 10, "size_max": 0.05}, "size_min=10 is 10 rows, more than .* 5"),
        ({"size_max": 1.0}, "size_max=1.0"),
        ({"size_max": -1}, "size_max"),
        ({"balance": 2}, "balance"),
        ({"divergence": "mahalanobis"}, "divergence='mahalanobis'"),
        ({"size_max": 20}, "size_max=20 is less than the weight of one row, 30"),
    ],
)
def test_sizes_that_cannot_be_had_are_refused(options: dict[str, Any], message: str) -> None:
    weights = np.append(np.ones(99), 30.0) if "weight" in message else None
    with pytest.raises(ValueError, match=message):
        BalancedKMeans(10, **options).fit(drawn(100), sample_weight=weights)


def test_parts_and_dask_learn_nearly_the_sizes_with_the_bits_of_any_place() -> None:
    X = drawn(3000)
    chunks = np.split(X, 6)
    model = BalancedKMeans(6, size_max=560, random_state=0, effort="fast")
    kept = clone(model).set_params(n_threads=1).fit(chunks)
    read = clone(model).set_params(n_threads=2).fit(lambda: iter([c.copy() for c in chunks]))
    assert np.array_equal(kept.cluster_centers_, read.cluster_centers_)
    assert np.array_equal(kept.prices_, read.prices_)
    assert kept.sizes_.max() <= 1.02 * 560
    assert not hasattr(kept, "labels_")
    dask_array = pytest.importorskip("dask.array")
    points = dask_array.from_array(X, chunks=(500, 3))
    one, other = (clone(model).set_params(n_threads=n).fit(points) for n in (1, 2))
    assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
    assert np.array_equal(one.prices_, other.prices_)
    assert one.prices_ == pytest.approx(kept.prices_, rel=1e-9)
    assert np.array_equal(one.sizes_, kept.sizes_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("limits", [{"size_max": 31}, {"balance": 0.7}, {"size_min": 24}])
@pytest.mark.parametrize("nearness", [1e-6, 1e-9])
@pytest.mark.parametrize("has_weights", [False, True])
def test_points_that_are_nearly_equal_leave_prices_finite(limits, nearness, has_weights) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(300, 3))
        points[:150] = nearness * points[:150] + 1
        weights = rng.uniform(0.9, 1.1, size=300) if has_weights else None
        model = BalancedKMeans(10, effort="fast", random_state=0, **limits)
        model.fit(points, sample_weight=weights)
        assert np.isfinite(model.prices_).all()
        assert np.isfinite(model.inertia_)
