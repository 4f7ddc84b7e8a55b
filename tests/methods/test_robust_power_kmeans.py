import math

import numpy as np
import pytest

from powermeans import PowerKMeans, RobustPowerKMeans
from powermeans.metrics import adjusted_rand_index


def distant_middles(rng, n_clusters, n_features, apart):
    """Drawn anew until no two are nearer to each other."""
    while True:
        middles = apart * n_clusters ** (1 / 2) * rng.uniform(-1, 1, size=(n_clusters, n_features))
        distances = np.linalg.norm(middles[:, None] - middles[None], axis=2)
        if np.all(distances[~np.eye(n_clusters, dtype=bool)] > apart):
            return middles


def strays(kind, rng, middles, n):
    n_features, extent = middles.shape[1], np.abs(middles).max()
    if kind == "box":
        return rng.uniform(-10 * extent, 10 * extent, size=(n, n_features))
    if kind == "clumps":
        directions = rng.normal(size=(2, n_features))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return 20 * extent * directions[np.arange(n) % 2] + 0.1 * rng.normal(size=(n, n_features))
    return middles[np.arange(n) % len(middles)] + 5 * rng.standard_cauchy(size=(n, n_features))


def problem(kind="box", n_clusters=3, n_features=2, seed=0, n=500, share=0.1):
    """Points and labels, -1 for a tenth that belongs nowhere."""
    rng = np.random.default_rng(seed)
    middles, n_strays = distant_middles(rng, n_clusters, n_features, 8.0), round(share * n)
    labels = np.append(np.arange(n - n_strays) % n_clusters, np.full(n_strays, -1))
    inliers = middles[labels[labels >= 0]] + rng.normal(size=(n - n_strays, n_features))
    points = np.concatenate([inliers, strays(kind, rng, middles, n_strays)])
    order = rng.permutation(n)
    return points[order], labels[order]


def agreement(model, labels):
    return adjusted_rand_index(labels[labels >= 0], model.labels_[labels >= 0])


@pytest.mark.filterwarnings("ignore:Number of distinct:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["box", "clumps", "heavy tails"])
@pytest.mark.parametrize(("n_clusters", "n_features"), [(3, 2), (10, 2), (5, 10), (10, 50)])
def test_clusters_are_found_among_a_tenth_of_outliers(kind, n_clusters, n_features):
    plain = []
    for seed in range(2):
        points, labels = problem(kind, n_clusters, n_features, seed)
        robust = RobustPowerKMeans(n_clusters, random_state=seed).fit(points)
        assert agreement(robust, labels) >= 0.95
        plain.append(agreement(PowerKMeans(n_clusters, random_state=seed).fit(points), labels))
    assert np.mean(plain) < 0.9


def test_outliers_are_told_and_centers_are_means_of_the_points_kept():
    points, truth = problem("box", seed=1)
    model = RobustPowerKMeans(3, random_state=0, tol=0.0).fit(points)
    np.testing.assert_array_equal(model.outliers_, truth == -1)
    distances = model.transform(points)
    far = distances.min(axis=1) > model.radius_ * (1 + 1e-12)
    np.testing.assert_array_equal(model.outliers_, far)
    # Every point has a label, that of the nearest center.
    np.testing.assert_array_equal(model.labels_, distances.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(points), model.labels_)
    kept, labels = points[~model.outliers_], model.labels_[~model.outliers_]
    for j, center in enumerate(model.cluster_centers_):
        np.testing.assert_allclose(center, kept[labels == j].mean(axis=0))
    inertia = np.square(kept - model.cluster_centers_[labels]).sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-9)
    assert model.score(points) == pytest.approx(-model.inertia_)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_without_trimming_it_is_power_k_means(effort):
    points, _ = problem(share=0.0, n_clusters=6, seed=3)
    options = {"effort": effort, "random_state": 0}
    robust = RobustPowerKMeans(6, trim=0.0, **options).fit(points)
    plain = PowerKMeans(6, **options).fit(points)
    assert robust.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
    assert robust.critical_power_ == pytest.approx(plain.critical_power_, rel=1e-9)
    assert not robust.outliers_.any()
    assert robust.radius_ == math.inf


def test_other_divergences_and_missing_entries_are_trimmed_too():
    rng = np.random.default_rng(0)
    rates = np.array([[2.0, 30], [30, 2], [30, 30]])
    labels = np.append(np.arange(270) % 3, np.full(30, -1))
    points = rng.poisson(rates[labels]).astype(float)
    points[270:] = rng.uniform(500, 5000, size=(30, 2))
    model = RobustPowerKMeans(3, divergence="poisson", random_state=0).fit(points)
    assert agreement(model, labels) > 0.95
    np.testing.assert_array_equal(model.outliers_, labels < 0)
    holes, labels = problem(n_features=4, seed=10)
    holes[::7, 1] = np.nan
    model = RobustPowerKMeans(3, missing="observed", random_state=0).fit(holes)
    assert agreement(model, labels) > 0.95


@pytest.mark.filterwarnings("ignore:Number of distinct:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("weights", "n_kept"),
    # Points without weight are none; of four threes 8.4 of 12 are kept, the third to less than one
    # half; of 100, 1, 1, 1 no more than the first need be left out in part.
    [
        ([1.0] * 4 + [0.0] * 10, 3), ([3.0] * 4, 3), ([100.0, 1, 1, 1, 0], 4),
        ([1e300, 1e298, 0], 2), ([1.0] * 20, 14),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_left_is_a_matter_of_weight(weights, n_kept):
    points = np.arange(len(weights))[:, None] ** 2.0 / 1e3
    model = RobustPowerKMeans(n_kept, trim=0.3, random_state=0)
    model.fit(points, sample_weight=weights)
    assert np.isfinite(model.cluster_centers_).all()
    model.set_params(n_clusters=n_kept + 1)
    with pytest.raises(ValueError, match=f"leaves at most {n_kept} with a weight for n_clusters"):
        model.fit(points, sample_weight=weights)


@pytest.mark.parametrize("seed", range(4))
def test_no_cluster_stays_left_out(seed):
    """Trimming a whole cluster costs more than trimming the fringe of all of them."""
    rng = np.random.default_rng(seed)
    middles = 10.0 * np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    points = np.repeat(middles, 30, axis=0) + rng.normal(size=(480, 2))
    model = RobustPowerKMeans(16, trim=0.1, random_state=seed).fit(points)
    bare = {"init": middles, "effort": "none", "power": -np.inf}
    from_truth = RobustPowerKMeans(16, trim=0.1, **bare).fit(points)
    assert model.inertia_ <= from_truth.inertia_ * (1 + 1e-3)
    assert np.bincount(model.labels_[~model.outliers_], minlength=16).min() > 10
