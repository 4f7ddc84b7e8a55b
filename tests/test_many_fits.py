"""`fit_many` reaches fixed points of Lloyd's algorithm for each problem, whatever the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as KMeansOfSklearn

from powermeans import KMeans, ManyFits, fit_many
from powermeans.rows import native


def draw(shape: tuple[int, ...] = (30, 80, 3), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def by_definition(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((points[:, None].astype(float) - centers[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize(("dtype", "precision"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_every_problem_ends_at_a_fixed_point(dtype: type, precision: float) -> None:
    problems = (draw() + 7).astype(dtype)
    fits = fit_many(problems, 5, tol=0, random_state=0)
    assert fits.cluster_centers.dtype == dtype
    for i, points in enumerate(problems):
        distances = by_definition(points, fits.cluster_centers[i])
        assert np.array_equal(fits.labels[i], distances.argmin(axis=1))
        assert fits.inertia[i] == pytest.approx(distances.min(axis=1).sum(), rel=precision)
        for j, center in enumerate(fits.cluster_centers[i]):
            assert center == pytest.approx(points[fits.labels[i] == j].mean(axis=0), rel=1e-5)


def test_kmeans_goes_no_further_from_the_centers_found() -> None:
    problems = draw()
    fits = fit_many(problems, 4, tol=0, random_state=1)
    for points, centers, inertia in zip(problems, fits.cluster_centers, fits.inertia, strict=True):
        again = KMeans(4, init=centers, tol=0).fit(points)
        assert again.n_iter_ == 1
        assert again.inertia_ == pytest.approx(inertia, rel=1e-12)


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    teams = []

    def start(n_threads: int | None) -> native.Team:
        teams.append(native.Team(n_threads))
        return teams[-1]

    monkeypatch.setattr(native, "start_team", start)
    one, three = (fit_many(draw(), 5, random_state=0, n_threads=n) for n in (1, 3))
    assert [len(team.stripes_by_worker) for team in teams] == [1, 3]
    assert min(teams[1].stripes_by_worker) > 0
    for name in ManyFits.__slots__:
        assert np.array_equal(getattr(one, name), getattr(three, name))


def test_a_list_gives_the_bits_of_an_array() -> None:
    problems = draw()
    of_array, of_list = (fit_many(given, 5, random_state=3) for given in (problems, list(problems)))
    assert np.array_equal(of_array.cluster_centers, of_list.cluster_centers)
    assert isinstance(of_array.labels, np.ndarray)
    assert isinstance(of_list.labels, list)
    assert np.array_equal(of_array.labels, np.array(of_list.labels))


def test_problems_may_have_different_numbers_of_points() -> None:
    problems = [draw((n, 2), seed=n) for n in (3, 50, 700)]
    fits = fit_many(problems, 3, random_state=0)
    assert [len(labels) for labels in fits.labels] == [3, 50, 700]
    assert fits.inertia[0] == 0
    assert np.all(fits.inertia[1:] > 0)


def test_a_weight_counts_like_copies() -> None:
    points = draw((40, 2))
    counts = np.random.default_rng(1).integers(0, 4, size=40)
    weighted = fit_many([points], 3, sample_weight=[counts], n_init=20, tol=0, random_state=0)
    copied = fit_many([np.repeat(points, counts, axis=0)], 3, n_init=20, tol=0, random_state=0)
    assert weighted.inertia == pytest.approx(copied.inertia, rel=1e-12)


def test_the_unit_of_the_weights_scales_the_inertia_and_no_more() -> None:
    problems = draw((4, 50, 2))
    plain = fit_many(problems, 3, random_state=0)
    heavy = fit_many(problems, 3, sample_weight=np.full((4, 50), 2.0**40), random_state=0)
    mixed = fit_many(problems, 3, sample_weight=[None] * 4, random_state=0)
    assert np.array_equal(heavy.cluster_centers, plain.cluster_centers)
    assert heavy.inertia == pytest.approx(plain.inertia * 2.0**40)
    assert np.array_equal(mixed.inertia, plain.inertia)


def test_a_cluster_that_loses_all_its_points_gets_another() -> None:
    # One of thousands of draws in which that happens: without relocation one of the 40 stays empty.
    rng = np.random.default_rng(1)
    points = rng.normal(size=(4000, 100, 2))[3166]
    uniforms = rng.uniform(size=(4000, 1, 40))[3166:3167]
    labels, centers = np.empty(100, dtype=np.int32), np.empty((1, 40, 2))
    native.fit_many(
        [points],
        [None],
        uniforms,
        max_iter=300,
        tol=0.0,
        labels=[labels],
        centers=centers,
        n_threads=1,
    )
    assert len(set(labels)) == 40
    assert np.array_equal(labels, by_definition(points, centers[0]).argmin(axis=1))


def test_fewer_distinct_points_than_centers_leave_no_error() -> None:
    fits = fit_many(np.repeat(draw((3, 2, 2)), 5, axis=1), 4, random_state=0)
    assert np.all(fits.inertia == 0)


def test_more_runs_never_raise_the_inertia_of_the_first_problem() -> None:
    problems = draw((1, 200, 2))
    found = [fit_many(problems, 8, n_init=n, random_state=0).inertia[0] for n in (1, 2, 5, 30)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_sweeps_end_at_the_limit() -> None:
    assert set(fit_many(draw(), 5, max_iter=2, tol=0, random_state=0).n_iter) == {2}


def test_the_mean_inertia_is_that_of_sklearn_within_chance() -> None:
    problems = draw((150, 100, 4))
    ours = fit_many(problems, 8, random_state=0).inertia
    theirs = [KMeansOfSklearn(8, n_init=1, random_state=0).fit(x).inertia_ for x in problems]
    difference = ours - np.array(theirs)
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


def test_numbers_far_from_one_are_clustered_alike() -> None:
    problems = draw((5, 60, 2))
    plain = fit_many(problems, 3, random_state=0)
    for factor in (2.0**-300, 2.0**300):
        scaled = fit_many(problems * factor, 3, random_state=0)
        assert np.array_equal(scaled.labels, plain.labels)


def faulty(change: Any) -> list[Any]:
    problems: list[Any] = list(draw((4, 10, 2)))
    problems[2] = change(problems[2])
    return problems


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:2], r"problems\[2\] has 2 rows, fewer than n_clusters=3: leave it out"),
        (lambda x: x[:, :1], r"problems\[2\] has 1 features, but problems\[0\] has 2"),
        (lambda x: x[0], r"problems\[2\] has the shape \(2,\): pass a list of arrays"),
        (lambda x: x * np.nan, r"Input problems\[2\] contains NaN.*row 0, column 0"),
        (lambda x: x * 1e307, r"Input problems\[2\] has values as large"),
        (lambda x: x * 1j, r"problems\[2\] has the dtype complex128: pass real numbers"),
        (sparse.csr_array, r"problems\[2\] is sparse.*\.toarray\(\)"),
    ],
)
def test_an_error_names_the_number_of_the_problem(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_many(faulty(change), 3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([None] * 3, "sample_weight has 3 entries for 4 problems"),
        ([None, None, None, [1.0]], r"sample_weight\[3\] has the shape \(1,\)"),
        ([None, [-1.0] * 10, None, None], r"sample_weight\[1\] contains -1.0 at index 0"),
        ([[0.0] * 10, None, None, None], r"sample_weight\[0\] is zero for every row"),
    ],
)
def test_an_error_names_the_number_of_the_weights(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_many(draw((4, 10, 2)), 3, sample_weight=weights)


def test_there_must_be_a_problem() -> None:
    with pytest.raises(ValueError, match="problems holds no problem: pass at least one"):
        fit_many([], 3)
