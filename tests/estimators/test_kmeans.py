"""KMeans and the functions do what scikit-learn's do."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from scipy import sparse
from sklearn.datasets import make_blobs

import powermeans
from powermeans import KMeans, PowerKMeans, k_means, kmeans_plusplus
from powermeans.points.compiled import EuclideanRows


@pytest.fixture(params=range(4))
def problem(request) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights and initial centers."""
    rng = np.random.default_rng(request.param)
    points = rng.normal(size=(500, 4))
    return points, rng.uniform(0.1, 3, size=500), points[rng.choice(500, 12, replace=False)]


@pytest.mark.parametrize("name", ["KMeans", "k_means", "kmeans_plusplus"])
def test_the_signature_begins_like_that_of_scikit_learn(name: str) -> None:
    ours = inspect.signature(getattr(powermeans, name)).parameters
    theirs = inspect.signature(getattr(sklearn.cluster, name)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for parameter in theirs.values():
        assert ours[parameter.name].default == parameter.default
        assert ours[parameter.name].kind == parameter.kind


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 0])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_the_path_from_given_centers_is_that_of_scikit_learn(problem, tol, container) -> None:
    points, weights, init = problem
    options = {"n_clusters": 12, "init": init, "tol": tol}
    ours = KMeans(**options).fit(container(points), sample_weight=weights)
    theirs = sklearn.cluster.KMeans(**options).fit(points, sample_weight=weights)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["elkan", "auto"])
def test_all_algorithms_are_the_same(problem, algorithm: str) -> None:
    lloyd = KMeans(5, random_state=0).fit(problem[0])
    other = KMeans(5, random_state=0, algorithm=algorithm).fit(problem[0])
    np.testing.assert_array_equal(other.cluster_centers_, lloyd.cluster_centers_)


@pytest.mark.parametrize(("n_init", "n_runs"), [("auto", 10), (3, 3)])
def test_a_callable_is_asked_for_centers_in_every_run(problem, n_init, n_runs: int) -> None:
    points, _, init = problem
    calls = []

    def choose(X, n_clusters, random_state):
        calls.append(random_state)
        return X[random_state.choice(len(X), n_clusters, replace=False)]

    model = KMeans(12, init=choose, n_init=n_init, random_state=0).fit(points)
    assert len(calls) == n_runs
    assert model.cluster_centers_.shape == init.shape


def test_the_run_of_least_inertia_is_kept(problem) -> None:
    points = problem[0]
    single_runs = []

    def choose(X, n_clusters, random_state):
        seeds = X[random_state.choice(len(X), n_clusters, replace=False)]
        single_runs.append(KMeans(n_clusters, init=seeds).fit(X).inertia_)
        return seeds

    model = KMeans(12, init=choose, n_init=6, random_state=0).fit(points)
    assert model.inertia_ == min(single_runs)
    assert len(set(single_runs)) > 1


def test_empty_clusters_are_counted() -> None:
    points, _ = make_blobs(100, centers=4, random_state=0)
    model = KMeans(4, init=np.vstack([points[:2], [[1e3, 1e3], [2e3, 2e3]]])).fit(points)
    assert model.n_relocated_ == 2
    assert KMeans(4, random_state=0).fit(points).n_relocated_ == 0


def test_verbose_tells_each_iteration_and_the_end(capsys) -> None:
    points, _ = make_blobs(100, random_state=0)
    model = KMeans(3, random_state=0, verbose=1).fit(points)
    printed = capsys.readouterr().out
    assert printed.startswith("Initialization complete")
    assert printed.count("Iteration ") == model.n_iter_
    assert f"Converged at iteration {model.n_iter_ - 1}: " in printed


def test_centers_from_elsewhere_predict_without_a_fit() -> None:
    table = pd.DataFrame({"height": [0.0, 10.0], "width": [0.0, 10.0]})
    model = KMeans.from_centers(table, max_iter=5)
    assert model.n_clusters == 2
    assert model.max_iter == 5
    assert model.feature_names_in_.tolist() == ["height", "width"]
    assert model.predict(table + 1).tolist() == [0, 1]
    np.testing.assert_allclose(model.transform(table), [[0, 200**0.5], [200**0.5, 0]])
    assert model.score(table + 1) == -4
    assert not hasattr(model, "labels_")


def test_scikit_learns_estimator_predicts_the_same(problem) -> None:
    points, weights, _ = problem
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame(points, columns=names)
    ours = KMeans(6, random_state=0).fit(table, sample_weight=weights)
    theirs = ours.to_sklearn()
    assert type(theirs) is sklearn.cluster.KMeans
    assert theirs.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(theirs.cluster_centers_, ours.cluster_centers_)
    np.testing.assert_array_equal(theirs.predict(table), ours.predict(table))
    np.testing.assert_allclose(theirs.transform(table), ours.transform(table))
    np.testing.assert_array_equal(theirs.labels_, ours.labels_)
    assert theirs.inertia_ == ours.inertia_


def test_the_function_returns_what_the_estimator_finds(problem) -> None:
    points, weights, init = problem
    model = KMeans(12, init=init).fit(points, sample_weight=weights)
    centers, labels, inertia, n_iter = k_means(
        points, 12, init=init, sample_weight=weights, return_n_iter=True
    )
    np.testing.assert_array_equal(centers, model.cluster_centers_)
    np.testing.assert_array_equal(labels, model.labels_)
    assert (inertia, n_iter) == (model.inertia_, model.n_iter_)
    assert len(k_means(points, 12, init=init)) == 3


def test_a_high_exponent_takes_the_farthest_point() -> None:
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    _, indices = kmeans_plusplus(
        points, 2, sample_weight=[1, 1e-3, 1e-3, 1e-3], exponent=200.0, random_state=0
    )
    assert indices.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 501}, "n_samples=500 should be >= n_clusters=501"),
        ({"exponent": 0.0}, "exponent"),
        ({"exponent": np.nan}, "exponent"),
        ({"n_local_trials": 0}, "n_local_trials"),
        ({"random_state": "a"}, "random_state"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"x_squared_norms": [1.0]}, "x_squared_norms"),
    ],
)
def test_bad_arguments_of_seeding_are_refused(problem, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kmeans_plusplus(problem[0], **{"n_clusters": 3, **options})


@pytest.mark.parametrize(
    "estimator", [KMeans(5, random_state=0), PowerKMeans(5, random_state=0, effort="none")]
)
def test_a_fit_sweeps_no_more_often_than_it_says(monkeypatch, estimator):
    calls = []

    def counted(name):
        method = getattr(EuclideanRows, name)

        def call(*arguments):
            calls.append(name)
            return method(*arguments)

        monkeypatch.setattr(EuclideanRows, name, call)

    counted("sweep")
    counted("assign")
    estimator.fit(np.random.default_rng(0).normal(size=(300, 3)))
    assert calls == ["sweep"] * estimator.n_iter_ + ["assign"]


@pytest.mark.parametrize("far", [1e60, 1e100])
def test_centers_too_far_from_float32_points_are_refused(far: float) -> None:
    points = np.random.default_rng(0).normal(size=(2500, 40)).astype(np.float32)
    with pytest.raises(ValueError, match="pass the points as float64"):
        KMeans(5, init=np.full((5, 40), far), n_init=1).fit(points)
    model = KMeans(5, random_state=0).fit(points)
    model.cluster_centers_ = np.full((5, 40), far)
    with pytest.raises(ValueError, match="pass the points as float64"):
        model.predict(points)
    labels = KMeans(5, init=np.full((5, 40), far), n_init=1).fit(points.astype(float)).labels_
    assert labels.max() < 5
