from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from problems import divisions, inertias
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import KMeans, RobustPowerKMeans
from powermeans.engine import SweepState
from powermeans.engine.updates import Sweep
from powermeans.methods import DPMeans, KernelPowerKMeans
from powermeans.methods.dp_means import OpenAndDrop, _FarPoints
from powermeans.points.opening import open_rows


def blobs(n_blobs: int, seed: int, n_features: int = 2) -> np.ndarray:
    """Blobs of radius about 1 whose means are 20 apart."""
    rng = np.random.default_rng(seed)
    means = 20.0 * rng.permutation(np.arange(n_blobs))[:, None] * np.eye(n_features)[0]
    means += rng.uniform(0, 3, size=(n_blobs, n_features))
    return np.repeat(means, 30, axis=0) + 0.4 * rng.normal(size=(30 * n_blobs, n_features))


def least_objective(points: np.ndarray, weights: np.ndarray, penalty: float) -> float:
    labels = divisions(len(points), len(points))
    return float((inertias(points, weights, labels) + penalty * (1 + labels.max(axis=1))).min())


few_points = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 7), st.integers(1, 2)),
    elements=st.floats(-8, 8).map(lambda x: round(x, 2)),
)


@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
@for_all(few_points, st.floats(0.01, 100), st.integers(0, 2**31), st.sampled_from([0.0, 1e-4]))
@settings(max_examples=80)
def test_searches_and_the_algorithm_of_the_paper_descend(points, penalty, seed, tol) -> None:
    """Not below the best of all partitions, a search not above the paper, and to no step that pays.

    A light point may be farther than the penalty, so that weights are at least one without a tol.
    """
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 4, len(points)) if tol else rng.uniform(1, 4, len(points))
    plain, fast, balanced = (
        DPMeans(penalty, tol=tol, random_state=seed, effort=effort).fit(
            points, sample_weight=weights
        )
        for effort in ("none", "fast", "balanced")
    )
    assert max(fast.objective_, balanced.objective_) <= plain.objective_ * (1 + 1e-9) + 1e-12
    least = least_objective(points, weights, penalty)
    for model in (plain, fast, balanced):
        sq_dist = np.sort(cdist(points, model.cluster_centers_, "sqeuclidean"), axis=1)
        assert model.inertia_ == pytest.approx(weights @ sq_dist[:, 0], abs=1e-9)
        assert model.objective_ == pytest.approx(model.inertia_ + penalty * model.n_clusters_)
        assert model.objective_ >= least - 1e-9
        if tol == 0 and model is not fast:
            assert sq_dist[:, 0].max() <= penalty * (1 + 1e-6)
            if model.n_clusters_ > 1:
                rise = weights * (sq_dist[:, 1] - sq_dist[:, 0])
                utility = np.bincount(model.labels_, rise, minlength=model.n_clusters_)
                assert utility.min() >= penalty * (1 - 1e-6)
    path = [*plain.history_.objective, plain.objective_]
    assert np.all(np.diff(path) <= 1e-9 * path[0])


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("seed", range(4))
def test_a_search_finds_the_best_partition_of_few_points(seed: int, effort: str) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(7, 2)), rng.uniform(0.5, 2, 7)
    for penalty in (0.1, 0.5, 1.0, 2.0, 5.0):
        model = DPMeans(penalty, effort=effort, random_state=0).fit(points, sample_weight=weights)
        assert model.objective_ <= 1.01 * least_objective(points, weights, penalty)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", [100.0, 1000.0, 4000.0])
def test_clusters_that_no_single_point_pays_for_are_found(penalty: float, dtype) -> None:
    """The price is above the squared distance of any point, but that of a blob pays."""
    points = blobs(12, seed=0).astype(dtype)
    model = DPMeans(penalty, random_state=0).fit(points)
    found = KMeans(12, init=points[::30], n_init=1).fit(points)
    assert model.n_clusters_ == 12
    assert model.objective_ == pytest.approx(found.inertia_ + 12 * penalty, rel=1e-4)
    assert DPMeans(4000.0, effort="none").fit(points).n_clusters_ < 12


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_search_cut_short_loses_nothing_that_a_sweep_has_reached(error) -> None:
    """The search soon opens clusters, each of which lowers the objective."""
    points = blobs(10, seed=0)
    for n_sweeps in range(1, 13):

        def stop(state: SweepState, n_sweeps: int = n_sweeps) -> bool:
            price = 1000.0 * len(state.centers)
            assert state.objective == pytest.approx(state.inertia + price)
            if error is not None and state.sweep == n_sweeps:
                raise error
            return state.sweep == n_sweeps

        model = DPMeans(1000.0, random_state=0, callback=stop)
        with nullcontext() if error is None else pytest.raises(error):
            model.fit(points)
        assert model.n_iter_ == n_sweeps
        assert model.objective_ <= model.history_.objective.min() * (1 + 1e-9)
        sq_dist = cdist(points, model.cluster_centers_, "sqeuclidean").min(axis=1)
        assert model.objective_ == pytest.approx(sq_dist.sum() + 1000.0 * model.n_clusters_)


def test_a_fit_cut_short_keeps_the_centers_by_which_it_derived_the_penalty() -> None:
    points = np.random.default_rng(0).normal(size=(300, 2))

    def stopped_after(n_sweeps: int) -> DPMeans:
        stop = {"callback": lambda state: state.sweep == n_sweeps}
        return DPMeans(n_clusters_wanted=12, effort="fast", random_state=0, **stop).fit(points)

    full = stopped_after(0)
    models = [stopped_after(n_sweeps) for n_sweeps in range(1, full.n_iter_ + 1)]
    derived = [model for model in models if model.penalty_ == full.penalty_]
    underived = [model for model in models if model.penalty_ != full.penalty_]
    assert derived[0].n_clusters_ == 12
    objectives = np.array([model.objective_ for model in derived])
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    assert objectives[0] <= 1.1 * full.objective_
    assert {model.penalty_ for model in underived} == {DPMeans.penalty_for(points, 12)}


def test_centers_are_dropped_and_opened_while_that_pays() -> None:
    rows = open_rows(np.array([[0.0], [1.0], [2.0], [10.0]]))
    centers = np.array([[0.0], [1.0], [2.0], [10.0], [70.0]])
    # Without the center at 70 nothing rises; without that at 0 then by 1; without that at 1 by
    # another 3 + 1, or with that at 2 gone instead by 1; the center at 10 is worth 81 or 64.
    for penalty, expected in ((0.5, 4), (1.5, 2), (50.0, 2), (100.0, 1)):
        sweep = Sweep(rows, centers, -np.inf)
        paying = OpenAndDrop(penalty, _FarPoints.of(rows), penalty).before(sweep)
        assert len(paying) == expected
    points, weights = np.array([[0.0], [1.0], [10.0]]), np.array([5.0, 5.0, 0.1])
    assert DPMeans(20.0).fit(points, sample_weight=weights).n_clusters_ == 1
    assert DPMeans(7.0).fit(points, sample_weight=weights).n_clusters_ == 2
    # Ten of them together pay, as one with the weight of all does.
    together = np.array([[0.0], [1.0], *[[10.0]] * 10])
    light = np.array([5.0, 5.0, *[0.1] * 10])
    assert DPMeans(20.0).fit(together, sample_weight=light).n_clusters_ == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e10, 1e24])
def test_a_far_point_that_weighs_nothing_changes_nothing(far: float, dtype) -> None:
    points = np.array([[0.0], [1.0], [5.0], [6.0], [far]], dtype=dtype)
    weights = [1, 1, 1, 1, 0]
    for model in (DPMeans(n_clusters_wanted=2, random_state=0), KMeans(2, random_state=0)):
        found = model.fit(points, sample_weight=weights)
        np.testing.assert_array_equal(np.sort(found.cluster_centers_.ravel()), [0.5, 5.5])
    assert DPMeans.penalty_for(points, 2, sample_weight=weights) == 9
    trimmed = RobustPowerKMeans(2, trim=0.2, random_state=0).fit(points)
    np.testing.assert_array_equal(np.sort(trimmed.cluster_centers_.ravel()), [0.5, 5.5])
    of_kernel = KernelPowerKMeans(2, random_state=0).fit(points, sample_weight=weights)
    assert of_kernel.gamma_ == pytest.approx(1 / 6.5, rel=1e-5)


def test_the_penalty_of_a_few_points_by_hand() -> None:
    # From the mean 4, the farthest is 10, then 0; from 0, 4 and 10 the farthest are 1 and 5.
    points = np.array([[0.0], [1.0], [5.0], [10.0]])
    assert [DPMeans.penalty_for(points, k) for k in (1, 2, 3)] == [36, 16, 1]
    # From the mean 2, without the last point.
    assert DPMeans.penalty_for(points, 1, sample_weight=[1, 1, 1, 0]) == 9


def test_more_clusters_than_distinct_points_cannot_be_had() -> None:
    points = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    assert DPMeans.penalty_for(points, 3) > 0
    with pytest.raises(ValueError, match=r"n_clusters=4, .* no more than 3 distinct"):
        DPMeans.penalty_for(points, 4)
    for given, n_distinct in ((points, 3), (np.ones((5, 2)), 1)):
        model = DPMeans(n_clusters_wanted=4)
        with pytest.warns(ConvergenceWarning, match=f"no more than {n_distinct}"):
            model.fit(given)
        assert model.n_clusters_ == n_distinct
        assert model.inertia_ == pytest.approx(0)


@pytest.mark.parametrize("kind", [DPMeans, KMeans])
def test_centers_that_are_none_are_refused(kind) -> None:
    for centers, params, message in (
        (3.0, {}, r"centers has the shape \(\)"),
        ([1.0, 2.0], {}, r"centers has the shape \(2,\)"),
        ([[1.0], [2.0]], {"n_clusters": 2}, "n_clusters=2 is not for from_centers"),
    ):
        with pytest.raises(ValueError, match=message):
            kind.from_centers(centers, **params)
