"""Wide points are searched along their axes: in fewer numbers, with the same distances."""

import numpy as np
import pytest
from problems import assert_is_complete, blobs, sq_distances
from scipy import sparse

from powermeans import PowerKMeans
from powermeans.engine import PathRecorder
from powermeans.points.along_axes import along_axes
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.opening import open_rows


def few(dtype: type = np.float64) -> np.ndarray:
    """Fewer points than features, in groups that overlap."""
    return (5 + blobs(80, 500, 6, scale=0.2)).astype(dtype)


def many(dtype: type = np.float64) -> np.ndarray:
    """More points than features, which vary along few axes."""
    axes = np.random.default_rng(1).normal(size=(8, 100))
    return (blobs(500, 8, 9, scale=1.0) @ axes + 0.1 * blobs(500, 100)).astype(dtype)


def weights_of(points: np.ndarray) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 4, size=len(points)).astype(float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_points_than_features_keep_their_distances(dtype, weighted: bool) -> None:
    points = few(dtype)
    weights = weights_of(points) if weighted else None
    seen = along_axes(open_rows(points, weights), 6, 100)
    if weighted:
        points = points[weights > 0]
    assert seen is not None
    assert not seen.leave_out
    assert seen.rows.n_features == len(points) - 1
    places = seen.rows.take(np.arange(len(points)))
    centers = places[:5] + 1
    rounding = 1e-3 if dtype == np.float32 else 1e-9
    found, expected = sq_distances(places, places), sq_distances(points, points)
    np.testing.assert_allclose(found, expected, atol=rounding * expected.max())
    lifted = sq_distances(points, seen.lifted(centers))
    np.testing.assert_allclose(lifted, sq_distances(places, centers), rtol=rounding)


def test_more_points_than_features_keep_all_but_a_twentieth_of_their_variance() -> None:
    points, weights = many(), weights_of(many())
    seen = along_axes(open_rows(points, weights), 9, 100)
    assert seen is not None
    assert seen.leave_out
    assert seen.rows.n_features <= 8
    left = seen.rows.inertia_about_mean() / open_rows(points, weights).inertia_about_mean()
    assert 0.95 <= left < 1
    counted = points[weights > 0]
    places = seen.rows.take(np.arange(len(counted)))
    residual = weights[weights > 0, None] * (counted - seen.lifted(places))
    assert np.abs(residual.T @ places).max() < 1e-4 * np.abs(counted.T @ places).max()


def test_narrow_or_sparse_points_and_those_without_few_axes_are_seen_as_they_are() -> None:
    assert along_axes(open_rows(blobs(900, 8)), 9, 100) is None
    assert along_axes(open_rows(sparse.csr_array(np.eye(80, 500))), 6, 100) is None
    assert along_axes(open_rows(np.random.default_rng(0).normal(size=(900, 100))), 9, 100) is None
    assert along_axes(open_rows(np.ones((80, 500))), 6, 100) is None
    assert along_axes(open_rows(1e-170 * few()), 6, 100) is None


@pytest.mark.parametrize("make", [few, many])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_act_as_copies_on_any_threads(make, dtype) -> None:
    points = make(dtype)
    weights = weights_of(points)
    weighted, threaded = (
        PowerKMeans(6, random_state=0, n_threads=n).fit(points, sample_weight=weights)
        for n in (1, 4)
    )
    assert threaded.cluster_centers_.tobytes() == weighted.cluster_centers_.tobytes()
    copied = PowerKMeans(6, random_state=0).fit(np.repeat(points, weights.astype(int), axis=0))
    assert weighted.inertia_ == pytest.approx(
        copied.inertia_, rel=1e-9 if dtype == np.float64 else 1e-5
    )
    expected = np.repeat(weighted.labels_, weights.astype(int))
    np.testing.assert_array_equal(copied.labels_, expected)


@pytest.mark.parametrize("make", [few, many])
@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_it_ends_at_means_with_all_features(make, effort: str, monkeypatch) -> None:
    points, widths = make(), set()
    sweep = EuclideanPoints.sweep

    def noted(rows, centers, rule):
        widths.add(rows.n_features)
        return sweep(rows, centers, rule)

    monkeypatch.setattr(EuclideanPoints, "sweep", noted)
    model = PowerKMeans(6, effort=effort, random_state=0).fit(points)
    assert len(widths) == 2
    assert max(widths) == points.shape[1]
    own = [points[model.labels_ == label].mean(axis=0) for label in range(6)]
    np.testing.assert_allclose(model.cluster_centers_, own, atol=1e-9)
    assert model.inertia_ == pytest.approx(sq_distances(points, own).min(axis=1).sum())


@pytest.mark.parametrize("make", [few, many])
def test_it_ends_as_low_as_with_all_features(make, monkeypatch) -> None:
    along = [PowerKMeans(6, random_state=seed).fit(make()).inertia_ for seed in range(5)]
    monkeypatch.setattr("powermeans.engine.search.search.along_axes", lambda *args: None)
    whole = [PowerKMeans(6, random_state=seed).fit(make()).inertia_ for seed in range(5)]
    assert np.mean(along) <= 1.001 * np.mean(whole)


@pytest.mark.parametrize("make", [few, many])
def test_a_callback_sees_all_features_and_may_stop_or_raise(make) -> None:
    points = make()
    path = PathRecorder()
    PowerKMeans(6, random_state=0, callback=path).fit(points)
    assert {state.centers.shape[1] for state in path.states} == {points.shape[1]}
    for n_sweeps in (1, 12):
        stop = lambda state, last=n_sweeps: state.sweep >= last  # noqa: E731
        model = PowerKMeans(6, random_state=0, callback=stop).fit(points)
        assert_is_complete(model, points)

        def interrupt(state, last=n_sweeps) -> None:
            if state.sweep >= last:
                raise KeyboardInterrupt

        model = PowerKMeans(6, random_state=0, callback=interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(points)
        assert_is_complete(model, points)
