"""MiniBatchKMeans with scikit-learn's signature."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import powermeans
from powermeans import MiniBatchKMeans


def points() -> np.ndarray:
    return make_blobs(30_000, 4, centers=12, random_state=3)[0]


def test_a_fit_ends_when_batches_no_longer_lower_the_inertia(capsys) -> None:
    model = MiniBatchKMeans(12, verbose=1, random_state=0).fit(points())
    assert model.n_iter_ < model.max_iter
    assert "lack of improvement in inertia" in capsys.readouterr().out
    without = MiniBatchKMeans(12, max_iter=7, max_no_improvement=None, random_state=0)
    assert without.fit(points()).n_iter_ == 7


def test_a_fit_ends_when_the_centers_hardly_move(capsys) -> None:
    model = MiniBatchKMeans(12, tol=0.1, max_no_improvement=None, verbose=1, random_state=0)
    assert model.fit(points()).n_iter_ == 1
    assert "small centers change" in capsys.readouterr().out


def test_labels_are_left_out_on_request() -> None:
    model = MiniBatchKMeans(12, compute_labels=False, random_state=0).fit(points())
    assert not hasattr(model, "labels_")
    assert model.inertia_ == MiniBatchKMeans(12, random_state=0).fit(points()).inertia_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_model_goes_on_with_the_stream(dtype, tmp_path) -> None:
    X = points().astype(dtype)
    model = MiniBatchKMeans(12, random_state=0).fit(X[:20_000])
    powermeans.save(model, tmp_path / "model.npz")
    loaded = powermeans.load(tmp_path / "model.npz")
    assert isinstance(loaded, MiniBatchKMeans)
    for one in (model, loaded):
        one.partial_fit(X[20_000:])
    np.testing.assert_array_equal(model.cluster_centers_, loaded.cluster_centers_)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("batch_size", [1, 10])
def test_batches_without_weight_are_left_out(batch_size: int) -> None:
    X, weights = np.arange(50.0)[:, None] * np.ones(2), np.zeros(50)
    weights[7] = 1.0
    model = MiniBatchKMeans(25, batch_size=batch_size, random_state=0)
    model.fit(X, sample_weight=weights)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == 0
