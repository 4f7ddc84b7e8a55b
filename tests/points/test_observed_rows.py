"""Points with missing entries: by hand, against k-POD, and against whole points."""

import numpy as np
import pytest
from problems import labelled_blobs

from powermeans import KMeans, PowerKMeans


def with_gaps(points, share, seed=0):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(size=points.shape) < share
    gaps[np.arange(len(points)), rng.integers(points.shape[1], size=len(points))] = False
    return np.where(gaps, np.nan, points).astype(points.dtype)


def blobs(n=240, n_features=4, seed=0):
    return labelled_blobs(n, n_features, 3, scale=6.0, seed=seed)


def observed_distances(points, centers):
    return np.nansum(np.square(points[:, None, :] - centers[None, :, :]), axis=2)


def k_pod(points, centers, n_iter=200):
    """Chi, Chi & Baraniuk: fill what is missing from the centers, and do a step of k-means."""
    for _ in range(n_iter):
        labels = observed_distances(points, centers).argmin(axis=1)
        filled = np.where(np.isnan(points), centers[labels], points)
        centers = np.stack([filled[labels == j].mean(axis=0) for j in range(len(centers))])
    return centers, labels


def test_hard_clustering_ends_where_k_pod_ends():
    whole, _ = blobs(150, 5, seed=4)
    points = with_gaps(whole, 0.25)
    start = whole[:3]
    model = KMeans(3, init=start, missing="observed", tol=0.0).fit(points)
    centers, labels = k_pod(points, start)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (5, np.nan, "nothing but NaN in row 5"),
        ((slice(None), 2), np.nan, "nothing but NaN in column 2"),
        ((1, 1), np.inf, "contains infinity"),
    ],
)
def test_what_cannot_be_compared_is_named(at, value, message):
    points = with_gaps(blobs()[0], 0.1)
    points[at] = value
    with pytest.raises(ValueError, match=message):
        KMeans(3, missing="observed").fit(points)
    with pytest.raises(ValueError, match="entries may be missing from"):
        PowerKMeans(2, missing="observed", divergence="poisson").fit(points)


def test_a_point_to_predict_may_have_few_entries_but_some():
    points = with_gaps(blobs()[0], 0.1)
    model = KMeans(3, missing="observed", random_state=0).fit(points)
    row = np.full((1, 4), np.nan)
    with pytest.raises(ValueError, match="nothing but NaN in row 0"):
        model.predict(row)
    row[0, 1] = model.cluster_centers_[2, 1]
    assert model.predict(row)[0] == 2
