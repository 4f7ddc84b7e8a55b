import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from problems import blobs
from scipy.spatial.distance import cdist
from sklearn.metrics import calinski_harabasz_score, silhouette_score

from powermeans import PowerKMeans, choose_k
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, _Path, centers_by_k
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepRecord
from powermeans.mathematics import criteria
from powermeans.optimality.line import line_through
from powermeans.points.opening import open_rows


@pytest.fixture(params=[2, 7])
def clustered(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, labels of which none is missing, and the means of the clusters."""
    n_clusters = request.param
    rng = np.random.default_rng(n_clusters)
    points = rng.normal(size=(60, 3))
    labels = rng.permutation(np.arange(60) % n_clusters).astype(np.int32)
    labels[np.flatnonzero(labels == 1)[1:]] = 0  # a cluster of one
    centers = np.array([points[labels == j].mean(axis=0) for j in range(n_clusters)])
    return points, labels, centers


def test_criteria_are_those_of_scikit_learn_or_undefined(clustered) -> None:
    points, labels, centers = clustered
    silhouette = criteria.silhouette(cdist(points, points), labels, np.ones(60))
    assert silhouette == pytest.approx(silhouette_score(points, labels))
    inertia = ((points - centers[labels]) ** 2).sum()
    of_one = ((points - points.mean(axis=0)) ** 2).sum()
    ours = criteria.calinski_harabasz(inertia, of_one, 60, len(centers))
    assert ours == pytest.approx(calinski_harabasz_score(points, labels))
    assert math.isnan(criteria.bic(1.0, [1, 1], 2))
    assert criteria.bic(0.0, [2, 1], 2) == math.inf
    assert math.isnan(criteria.calinski_harabasz(1.0, 2.0, 2, 2))
    assert criteria.calinski_harabasz(0.0, 2.0, 3, 2) == math.inf
    assert math.isnan(criteria.silhouette(np.ones((2, 2)), np.zeros(2, np.int32), np.ones(2)))
    assert math.isnan(criteria.calinski_harabasz(2.0, 2.0, 9, 1))


def test_bic_is_the_likelihood_less_what_parameters_cost() -> None:
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(30, 2)), np.arange(30) % 3
    centers = np.array([points[labels == j].mean(axis=0) for j in range(3)])
    sq_dist = ((points - centers[labels]) ** 2).sum(axis=1)
    variance = sq_dist.sum() / (2 * (30 - 3))
    log_density = -np.log(2 * np.pi * variance) - sq_dist / (2 * variance) + np.log(10 / 30)
    n_parameters = 2 + 6 + 1
    expected = log_density.sum() - n_parameters / 2 * np.log(30)
    assert criteria.bic(sq_dist.sum(), [10, 10, 10], 2) == pytest.approx(expected)


def test_persistence_is_counted_in_penalties() -> None:
    sizes, inertias = np.arange(1, 6), np.array([100.0, 50.0, 10.0, 9.0, 8.5])
    penalties = np.geomspace(1e-3, 1e3, 200_001)
    best = np.argmin(inertias + penalties[:, None] * sizes, axis=1)
    step = math.log(penalties[1] / penalties[0])
    counted = [step * np.count_nonzero(best == j) for j in range(1, 4)]
    assert criteria.persistence(sizes, inertias)[1:-1] == pytest.approx(counted, abs=2 * step)


def places_of(points: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    sq_dist = cdist(points, centers, "sqeuclidean")
    return criteria.places_between(sq_dist, labels, np.bincount(labels), centers)


def test_places_are_from_the_mean_of_the_other_points_in_the_observed_features() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(12, 3)), np.arange(12) % 3
    centers = np.array([points[labels == j].mean(axis=0) for j in range(3)])
    places = places_of(points, labels, centers)
    for p, label in enumerate(labels):
        of_others = (labels == label) & (np.arange(12) != p)
        own = points[of_others].mean(axis=0)
        for j in set(range(3)) - {label}:
            way, middle = centers[j] - own, (centers[j] + own) / 2
            expected = 2 * (points[p] - middle) @ way / (way @ way)
            assert places[p, j] == pytest.approx(expected)
    assert np.isnan(places[np.arange(12), labels]).all()
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(12, 3)), rng.normal(size=(2, 3))
    labels, is_observed = np.arange(12) % 2, np.ones((12, 3))
    is_observed[::3, 1] = 0.0
    sq_dist = (is_observed[:, None] * (points[:, None] - centers) ** 2).sum(axis=2)
    found = criteria.places_between(sq_dist, labels, [6, 6], centers, is_observed)
    for features, some in (([0, 2], slice(0, 12, 3)), ([0, 1, 2], slice(1, 12, 3))):
        of_some = cdist(points[some][:, features], centers[:, features], "sqeuclidean")
        expected = criteria.places_between(of_some, labels[some], [6, 6], centers[:, features])
        np.testing.assert_allclose(found[some], expected)


def test_halves_of_one_cluster_are_the_root_of_twelve_apart_or_less_in_many_dimensions() -> None:
    points = np.linspace(-1, 1, 20_000)[:, None]
    labels = (points[:, 0] > 0).astype(np.int32)
    places = places_of(points, labels, np.array([[-0.5], [0.5]]))
    left, right = (points[labels == j, 0] for j in (0, 1))
    apart = (right.mean() - left.mean()) / left.std()
    assert apart == pytest.approx(math.sqrt(12), rel=1e-3)
    # No valley lies between them, which is told apart from the distance.
    assert criteria.separations(places, labels, np.ones(len(labels)))[0][0, 1] == 0
    hollow = np.abs(points[:, 0]) > 0.1
    found, errors = criteria.separations(places[hollow], labels[hollow], np.ones(hollow.sum()))
    sides = [places[hollow & (labels == 0), 1], -places[hollow & (labels == 1), 0]]
    deviation = math.sqrt((sides[0].var() + sides[1].var()) / 2)
    assert found[0, 1] == pytest.approx((sides[1].mean() - sides[0].mean()) / deviation)
    assert 0 < errors[0, 1] < 0.1
    assert found[0, 0] == math.inf
    points = np.random.default_rng(0).normal(size=(100, 400))
    labels = (points[:, 0] > 0).astype(np.int32)
    centers = np.array([points[labels == j].mean(axis=0) for j in (0, 1)])
    sq_dist = cdist(points, centers, "sqeuclidean")
    found, errors = criteria.separations(places_of(points, labels, centers), labels, np.ones(100))
    assert found[0, 1] - errors[0, 1] < 3.5
    # With their own share in the centers, they seem far apart.
    biased = criteria.places_between(sq_dist, labels, [10**9] * 2, centers)
    assert criteria.separations(biased, labels, np.ones(100))[0][0, 1] > 4


def test_a_valley_is_as_deep_as_asked_for_and_a_point_alone_is_not_apart() -> None:
    places = np.array([[np.nan, -1.25], [np.nan, -0.75], [-0.75, np.nan], [-1.25, np.nan]])
    labels = np.array([0, 0, 1, 1])
    # Two points about each mean, and none between them: a difference of 2 with the error √2.
    for valley_errors, expected in ((1.41, 8.0), (1.42, 0.0)):
        found, errors = criteria.separations(
            places, labels, np.ones(4), valley_errors=valley_errors
        )
        assert found[0, 1] == expected
        assert (errors[0, 1] > 0) == (expected > 0)
    points = np.array([[0.0], [1.0], [0.5], [100.0]])
    labels = np.array([0, 0, 0, 1])
    places = places_of(points, labels, np.array([[0.5], [100.0]]))
    assert np.isnan(places[3]).all()
    assert criteria.separations(places, labels, np.ones(4))[0][0, 1] == 0


def found_by(rows, sizes, effort="balanced", seed=0):
    rng = np.random.RandomState(seed)
    *_, found = centers_by_k(rows, sizes, EFFORTS_FOR_EACH_K[effort], rng)
    return found


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(8, 30), st.integers(1, 3)),
        elements=st.integers(-3, 3).map(float),
    ),
    st.sampled_from(["fast", "balanced"]),
    st.integers(0, 9),
)
@settings(max_examples=40)
def test_inertia_never_rises_with_k(points, effort: str, seed: int) -> None:
    n_distinct = len(np.unique(points, axis=0))
    sizes = list(range(1, min(n_distinct, 9) + 1))
    rng = np.random.RandomState(seed)
    rows = open_rows(points)
    for found in centers_by_k(rows, sizes, EFFORTS_FOR_EACH_K[effort], rng):
        inertias = [rows.assign(solution.centers)[1] for solution in found.values()]
        assert all(b <= a * (1 + 1e-12) + 1e-12 for a, b in itertools.pairwise(inertias))
    assert list(found) == sizes
    assert inertias[-1] == pytest.approx(0, abs=1e-9) or len(sizes) < n_distinct


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_every_k_is_about_as_good_as_a_fit_of_its_own(effort: str) -> None:
    points = blobs(900, 2, 9, scale=6.0, seed=3)
    found = found_by(open_rows(points), list(range(2, 13)), effort)
    worst = {"fast": 1.05, "balanced": 1.01, "thorough": 1.003}[effort]
    for k, solution in found.items():
        alone = PowerKMeans(k, random_state=0).fit(points).inertia_
        assert solution.inertia <= worst * alone


def test_sizes_may_have_holes_and_more_centers_than_places() -> None:
    found = found_by(open_rows(np.random.default_rng(0).normal(size=(300, 2))), [3, 7, 20])
    assert [len(solution.centers) for solution in found.values()] == [3, 7, 20]
    inertias = [solution.inertia for solution in found.values()]
    assert inertias == sorted(inertias, reverse=True)
    places = open_rows(np.repeat([[0.0], [1.0], [5.0]], 4, axis=0))
    inertias = [solution.inertia for solution in found_by(places, [2, 3, 4, 5]).values()]
    assert inertias == pytest.approx([2.0, 0.0, 0.0, 0.0])


def test_a_step_that_fails_is_mended_from_the_fewer_centers() -> None:
    points = np.random.default_rng(0).normal(size=(200, 2))
    rows, sizes = open_rows(points), [5, 6]
    path = _Path(rows, EFFORTS_FOR_EACH_K["fast"], Fit())
    good = path.steps.grown(path.search.measured(rows.mean()[None, :]), 5)
    bad = path.search.measured(np.repeat(rows.mean()[None, :], 6, axis=0))
    assert bad.inertia > good.inertia
    mended = path.never_rising(dict(zip(sizes, [good, bad], strict=True)))
    assert mended[6].inertia < good.inertia
    assert mended[5] is good


def test_descents_end_at_a_share_of_the_mean_variance() -> None:
    points = np.random.default_rng(0).normal(size=(300, 4)) * [1.0, 2.0, 3.0, 9.0]
    fast = EFFORTS_FOR_EACH_K["fast"]
    stop = _Path(open_rows(points), fast, Fit()).lloyd.stop
    tolerance = 1e-4 * points.var(axis=0).mean()
    for share, is_over in ((0.99, True), (1.01, False)):
        record = SweepRecord(-np.inf, 1.0, 1.0, np.sqrt(share * tolerance), seconds=0.0)
        assert (stop.reason([record]) is not None) == is_over


def test_points_on_a_line_have_the_least_inertia_of_every_k() -> None:
    rng = np.random.default_rng(0)
    values, weights = np.sort(rng.exponential(size=60)), rng.integers(0, 4, 60).astype(float)
    line = line_through(values[:, None], weights)  # which is compared with all divisions
    least = [25 * line.inertia(line.division(k)) for k in range(1, 9)]
    found = choose_k(np.outer(values, [3.0, 4.0]), range(1, 9), sample_weight=weights)
    np.testing.assert_allclose(found.table["inertia"], least, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_wide_points_have_centers_in_all_features_and_their_inertia(kind, monkeypatch) -> None:
    rng, heard = np.random.default_rng(0), list[tuple[int, ...]]()
    points = rng.standard_normal((60, 400)) + 3 * rng.standard_normal((4, 400))[np.arange(60) % 4]
    points = (points + 50).astype(kind)

    def choice_of(points, callback=None):
        return choose_k(points, [2, 4, 6], criteria="bic", callback=callback, random_state=0)

    found = choice_of(points, lambda state: heard.append(state.centers.shape))
    for k, centers in found.centers.items():
        assert centers.shape == (k, 400)
        labels = np.square(points[:, None] - centers).sum(axis=2).argmin(axis=1)
        means = np.array([points[labels == label].mean(axis=0) for label in range(k)])
        inertia = np.square(points - means[labels]).sum()
        place = [2, 4, 6].index(k)
        assert found.table["inertia"][place] == pytest.approx(inertia, rel=1e-5)
    assert {shape[1] for shape in heard} == {400}
    module = "powermeans.choosing_k.centers_by_k"
    monkeypatch.setattr(f"{module}.along_axes", lambda *_: None)  # as they are
    other = choice_of(points)
    np.testing.assert_allclose(found.table["inertia"], other.table["inertia"], rtol=0.01)
