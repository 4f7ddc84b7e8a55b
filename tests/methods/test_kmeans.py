import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from scipy import sparse
from sklearn.datasets import make_blobs

import powermeans
from powermeans import KMeans, MiniBatchKMeans, PowerKMeans, k_means, kmeans_plusplus
from powermeans.points.compiled import EuclideanPoints

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(500, 4))
WEIGHTS = RNG.uniform(0.1, 3, size=500)


@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"])
def test_the_signature_begins_like_that_of_scikit_learn(name: str) -> None:
    ours = inspect.signature(getattr(powermeans, name)).parameters
    theirs = inspect.signature(getattr(sklearn.cluster, name)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for parameter in theirs.values():
        assert ours[parameter.name].default == parameter.default
        assert ours[parameter.name].kind == parameter.kind


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 0])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("first", [0, 17])
def test_the_path_from_given_centers_is_that_of_scikit_learn(tol, container, first) -> None:
    options = {"n_clusters": 12, "init": POINTS[first : first + 12], "tol": tol}
    ours = KMeans(**options).fit(container(POINTS), sample_weight=WEIGHTS)
    theirs = sklearn.cluster.KMeans(**options).fit(POINTS, sample_weight=WEIGHTS)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    for algorithm in ("elkan", "auto"):
        other = KMeans(algorithm=algorithm, **options).fit(container(POINTS), sample_weight=WEIGHTS)
        np.testing.assert_array_equal(other.cluster_centers_, ours.cluster_centers_)
    returned = k_means(container(POINTS), sample_weight=WEIGHTS, return_n_iter=True, **options)
    found = ours.cluster_centers_, ours.labels_, ours.inertia_, ours.n_iter_
    for value, expected in zip(returned, found, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(("n_init", "n_runs"), [("auto", 10), (3, 3)])
def test_the_best_of_the_runs_from_called_centers_is_kept(n_init, n_runs: int) -> None:
    single_runs = []

    def choose(X, n_clusters, random_state):
        seeds = X[random_state.choice(len(X), n_clusters, replace=False)]
        single_runs.append(KMeans(n_clusters, init=seeds).fit(X).inertia_)
        return seeds

    model = KMeans(12, init=choose, n_init=n_init, random_state=0).fit(POINTS)
    assert model.inertia_ == min(single_runs)
    assert len(single_runs) == len(set(single_runs)) == n_runs


def test_iterations_are_told(capsys) -> None:
    model = KMeans(4, init=np.vstack([POINTS[:2], np.full((2, 4), 1e3)]), verbose=1).fit(POINTS)
    assert model.n_relocated_ == 2
    printed = capsys.readouterr().out
    assert printed.startswith("Initialization complete")
    assert printed.count("Iteration ") == model.n_iter_
    assert f"Converged at iteration {model.n_iter_ - 1}: " in printed
    assert KMeans(4, random_state=0).fit(POINTS).n_relocated_ == 0


def test_batches_end_when_they_no_longer_lower_the_inertia(capsys) -> None:
    model = MiniBatchKMeans(12, verbose=1, random_state=0).fit(MANY)
    assert model.n_iter_ < model.max_iter
    assert "lack of improvement in inertia" in capsys.readouterr().out
    without = MiniBatchKMeans(12, max_iter=7, max_no_improvement=None, random_state=0)
    assert without.fit(MANY).n_iter_ == 7
    unlabelled = MiniBatchKMeans(12, compute_labels=False, random_state=0).fit(MANY)
    assert not hasattr(unlabelled, "labels_")
    assert unlabelled.inertia_ == model.inertia_


def test_centers_from_elsewhere_predict_without_a_fit() -> None:
    table = pd.DataFrame({"height": [0.0, 10.0], "width": [0.0, 10.0]})
    model = KMeans.from_centers(table, max_iter=5)
    assert (model.n_clusters, model.max_iter) == (2, 5)
    assert model.feature_names_in_.tolist() == ["height", "width"]
    assert model.predict(table + 1).tolist() == [0, 1]
    np.testing.assert_allclose(model.transform(table), [[0, 200**0.5], [200**0.5, 0]])
    assert model.score(table + 1) == -4
    assert not hasattr(model, "labels_")


def test_a_fitted_model_becomes_one_of_scikit_learn() -> None:
    table = pd.DataFrame(POINTS, columns=list("abcd"))
    ours = KMeans(6, random_state=0).fit(table, sample_weight=WEIGHTS)
    theirs = ours.to_sklearn()
    assert type(theirs) is sklearn.cluster.KMeans
    assert theirs.feature_names_in_.tolist() == list("abcd")
    for name in ("cluster_centers_", "labels_", "inertia_"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    np.testing.assert_array_equal(theirs.predict(table), ours.predict(table))
    np.testing.assert_allclose(theirs.transform(table), ours.transform(table))
    in_parts = KMeans(6, random_state=0).fit([POINTS[:300], POINTS[300:]])
    alone = KMeans.from_centers(ours.cluster_centers_)
    for model, names in ((in_parts, {"inertia_"}), (alone, set())):
        theirs = model.to_sklearn()
        np.testing.assert_array_equal(theirs.predict(POINTS), model.predict(POINTS))
        assert {"labels_", "inertia_"} & vars(theirs).keys() == names
        assert getattr(theirs, "inertia_", None) == getattr(model, "inertia_", None)


def test_a_high_exponent_takes_the_farthest_point() -> None:
    weights = [1, 1e-3, 1e-3, 1e-3]
    _, indices = kmeans_plusplus(
        np.arange(4.0)[:, None], 2, sample_weight=weights, exponent=200.0, random_state=0
    )
    assert indices.tolist() == [0, 3]


def test_bad_arguments_of_a_seeding_are_refused() -> None:
    bad = [("n_clusters", 0), ("n_clusters", 501), ("exponent", 0.0), ("exponent", np.nan)]
    bad += [("n_local_trials", 0), ("random_state", "a"), ("sample_weight", [1.0])]
    for name, value in [*bad, ("x_squared_norms", [1.0])]:
        with pytest.raises(ValueError, match=name):
            kmeans_plusplus(POINTS, **{"n_clusters": 3, name: value})


@pytest.mark.parametrize(
    "estimator", [KMeans(5, random_state=0), PowerKMeans(5, random_state=0, effort="none")]
)
def test_a_fit_sweeps_no_more_often_than_it_says(monkeypatch, estimator):
    calls = []

    def counted(name):
        method = getattr(EuclideanPoints, name)

        def call(*arguments):
            calls.append(name)
            return method(*arguments)

        monkeypatch.setattr(EuclideanPoints, name, call)

    counted("sweep")
    counted("assign")
    estimator.fit(POINTS)
    assert calls == ["sweep"] * estimator.n_iter_ + ["assign"]


@pytest.mark.parametrize("far", [1e60, 1e100])
def test_centers_too_far_from_float32_points_are_refused(far: float) -> None:
    points = np.random.default_rng(0).normal(size=(2500, 40)).astype(np.float32)
    distant = KMeans(5, init=np.full((5, 40), far), n_init=1)
    model = KMeans(5, random_state=0).fit(points)
    model.cluster_centers_ = np.full((5, 40), far)
    for refused in (distant.fit, model.predict):
        with pytest.raises(ValueError, match="pass the points as float64"):
            refused(points)
    assert distant.fit(points.astype(float)).labels_.max() < 5


MANY = make_blobs(30_000, 4, centers=12, random_state=3)[0]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("batch_size", [1, 10])
def test_batches_without_weight_are_left_out(batch_size: int) -> None:
    X, weights = np.arange(50.0)[:, None] * np.ones(2), np.zeros(50)
    weights[7] = 1.0
    model = MiniBatchKMeans(25, batch_size=batch_size, random_state=0)
    model.fit(X, sample_weight=weights)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == 0
