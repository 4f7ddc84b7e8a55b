"""Batch gradient descent goes where Lloyd's algorithm goes, and says when it cannot."""

import numpy as np
import pytest
from problems import blobs
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import GradientKMeans, KMeans


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
        ([-3e38, -3e38, 3e38], 2 / 3, "a center that float32 cannot hold: scale X"),
    ],
)
def test_a_step_beyond_what_the_points_dtype_holds_is_an_error(points, rate, message):
    """Without points of its own, a center that has leapt away raises no inertia."""
    points = np.array(points, dtype=np.float32)[:, None]
    init = [[2.5], [50.0]] if len(points) > 3 else [[3e38]]
    model = GradientKMeans(len(init), init=init, learning_rate=rate, max_iter=1)
    with pytest.raises(ValueError, match=message):
        model.fit(points)
