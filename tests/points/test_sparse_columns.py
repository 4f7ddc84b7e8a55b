"""Sparse points of which most columns have no entry: a fit works on the other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import powermeans
from powermeans import (
    DPMeans,
    FuzzyCMeans,
    GradientKMeans,
    KHarmonicMeans,
    KMeans,
    PowerKMeans,
    RobustPowerKMeans,
    SelfOrganizingMap,
    choose_k,
)
from powermeans.divergences import Binomial, resolve
from powermeans.engine.spread import rounding_inertia
from powermeans.points.compiled import CompiledRows
from powermeans.points.opening import open_rows
from powermeans.points.trimmed import TrimmedRows

N_POINTS, N_COLUMNS, N_USED = 60, 4200, 45
WEIGHTS = np.random.default_rng(1).integers(0, 4, N_POINTS).astype(float)


def wide_points(dtype: Any = np.float64) -> sparse.csr_matrix:
    """Return counts in three groups of the few columns that are used, far apart from each other."""
    rng = np.random.default_rng(0)
    used = np.sort(rng.choice(N_COLUMNS, N_USED, replace=False))
    group = np.repeat([0, 1, 2], N_POINTS // 3)
    means = np.where(np.arange(N_USED) % 3 == group[:, None], 1.5, 0.05)
    points = np.zeros((N_POINTS, N_COLUMNS))
    points[:, used] = np.minimum(rng.poisson(means), 6) + (np.arange(N_USED) % 3 == 0)
    points[0, used] = 1
    return sparse.csr_matrix(points.astype(dtype))


def used_columns(X: sparse.csr_matrix) -> NDArray[np.intp]:
    return np.unique(X.indices)


def unused_columns(X: sparse.csr_matrix) -> NDArray[np.intp]:
    return np.setdiff1d(np.arange(X.shape[1]), X.indices)


def exact_distances(X: Any, centers: Any, kind: str = "squared") -> Any:
    """Return distances from the definition, in long double."""
    points = np.asarray(X.toarray(), dtype=np.longdouble)
    theta = np.asarray(centers, dtype=np.longdouble)
    if kind == "cosine":
        points = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
        theta = theta / np.sqrt((theta**2).sum(axis=1, keepdims=True))
        return 1 - points @ theta.T
    if kind == "squared":
        return np.stack([((points - center) ** 2).sum(axis=1) for center in theta], axis=1)
    result = np.empty((len(points), len(theta)), dtype=np.longdouble)
    for j, center in enumerate(theta):
        # No point has an entry where the center is zero, and then the term is zero.
        inner = center > 0
        x, c = points[:, inner], center[inner]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(x > 0, x * np.log(x / c), 0) - x + c
            if kind == "binomial":
                terms = np.where(x > 0, x * np.log(x / c), 0)
                terms = terms + np.where(x < 9, (9 - x) * np.log((9 - x) / (9 - c)), 0)
        result[:, j] = terms.sum(axis=1)
        result[points[:, ~inner].any(axis=1), j] = np.inf
    return result


FITS = {
    "k-means": lambda: KMeans(3, random_state=0),
    "power": lambda: PowerKMeans(3, random_state=0),
    "cosine": lambda: PowerKMeans(3, divergence="cosine", random_state=0),
    "poisson": lambda: PowerKMeans(3, divergence="poisson", effort="fast", random_state=0),
    "binomial": lambda: PowerKMeans(3, divergence=Binomial(9), effort="fast", random_state=0),
    "no search": lambda: PowerKMeans(3, effort="none", random_state=0),
    "no polish": lambda: PowerKMeans(3, polish=False, random_state=0),
    "harmonic": lambda: KHarmonicMeans(3, random_state=0),
    "fuzzy": lambda: FuzzyCMeans(3, fuzzifier=1.1, random_state=0),
    "gradient": lambda: GradientKMeans(3, random_state=0),
    "dp-means": lambda: DPMeans(n_clusters_wanted=3, random_state=0),
    "map": lambda: SelfOrganizingMap((3, 1), random_state=0),
    "parallel seeds": lambda: KMeans(3, init=powermeans.ParallelSeeds(), random_state=0),
}
KINDS = {"cosine": "cosine", "poisson": "poisson", "binomial": "binomial"}


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return how many columns the centers of all sweeps have."""
    found = set()
    sweep = CompiledRows.sweep

    def noted(self: CompiledRows, centers: Any, rule: Any) -> Any:
        found.add(centers.shape[1])
        return sweep(self, centers, rule)

    monkeypatch.setattr(CompiledRows, "sweep", noted)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("dtype", "weights"),
    [(np.float64, None), (np.float32, WEIGHTS)],
    ids=["float64", "float32, weighted"],
)
def test_a_fit_sweeps_over_used_columns_and_describes_all(
    name: str, dtype: Any, weights: Any, widths: set[int]
) -> None:
    X = wide_points(dtype)
    model = FITS[name]().fit(X, sample_weight=weights)
    # Rows that are projected for seeds have other columns; none have all.
    assert N_USED in widths
    assert N_COLUMNS not in widths
    centers = model.cluster_centers_
    assert centers.shape == (3, N_COLUMNS)
    assert centers.dtype == dtype
    assert not centers[:, unused_columns(X)].any()
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    distances = exact_distances(X, centers, KINDS.get(name, "squared"))
    counts = np.ones(N_POINTS) if weights is None else weights
    exact = float(counts @ distances.min(axis=1))
    assert model.inertia_ == pytest.approx(exact, rel=1e-5 if dtype == np.float32 else 1e-12)
    nearest = distances[np.arange(N_POINTS), model.labels_][counts > 0]
    assert np.all(nearest <= distances.min(axis=1)[counts > 0] * (1 + 1e-5) + 1e-6)


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine"])
def test_rows_without_unused_columns_have_the_mean_variance_of_all(divergence: Any) -> None:
    X, options = wide_points(), {"divergence": resolve(divergence)}
    narrow: Any = open_rows(X[:, used_columns(X)], WEIGHTS, n_columns=N_COLUMNS, **options)
    whole: Any = open_rows(X, WEIGHTS, **options)
    assert narrow.mean_variance() == pytest.approx(whole.mean_variance(), rel=1e-12)
    assert rounding_inertia(narrow) == pytest.approx(rounding_inertia(whole), rel=1e-12, abs=0)
    trimmed = [TrimmedRows(rows, WEIGHTS, 0.1).mean_variance() for rows in (narrow, whole)]
    assert trimmed[0] == pytest.approx(trimmed[1], rel=1e-12)


@pytest.mark.parametrize("kind", [KMeans, FuzzyCMeans, GradientKMeans])
def test_tol_is_in_units_of_the_mean_variance_of_all_columns(kind: Any) -> None:
    X = wide_points()
    used = used_columns(X)
    start = X[[1, 2, 3]].toarray()
    options = {"fuzzifier": 1.1} if kind is FuzzyCMeans else {}

    def n_sweeps(X: Any, init: Any, tol: float) -> int:
        return int(kind(3, init=init, tol=tol, **options).fit(X).n_iter_)

    wide = [n_sweeps(X, start, tol) for tol in (1e3, 10.0, 0.1)]
    share = N_USED / N_COLUMNS
    narrow = [n_sweeps(X[:, used], start[:, used], tol * share) for tol in (1e3, 10.0, 0.1)]
    assert wide == narrow
    assert len(set(wide)) > 1  # otherwise the test could not fail


def test_the_stopping_rule_without_polish_counts_all_columns() -> None:
    X = wide_points()
    used = used_columns(X)

    def n_sweeps(X: Any, tol: float) -> int:
        model = PowerKMeans(3, polish=False, schedule=[-3.0] * 200, tol=tol, init=start)
        start_of = start if X.shape[1] == N_COLUMNS else start[:, used]
        return int(model.set_params(init=start_of).fit(X).n_iter_)

    start = X[[1, 2, 3]].toarray()
    tols = [10.0 ** (-n / 4) for n in range(8, 40)]
    factor = np.sqrt(N_USED / N_COLUMNS)
    wide = [n_sweeps(X, tol) for tol in tols]
    assert wide == [n_sweeps(X[:, used], tol * factor) for tol in tols]
    assert wide != [n_sweeps(X[:, used], tol) for tol in tols]


def test_initial_centers_may_have_entries_where_points_have_none() -> None:
    X = wide_points()
    init = X[[1, 25, 45]].toarray()
    init[0, unused_columns(X)[7]] = 4.0
    model = KMeans(3, init=init).fit(X)
    before = exact_distances(X, init).min(axis=1).sum()
    assert model.history_.inertia[0] == pytest.approx(float(before), rel=1e-12)
    assert not model.cluster_centers_[:, unused_columns(X)].any()


def test_a_function_that_chooses_centers_gets_all_columns() -> None:
    X = wide_points()
    shapes = []

    def init(points: Any, n_clusters: int, random_state: Any) -> Any:
        shapes.append(points.shape)
        centers = points[[1, 25, 45]].toarray()
        centers[0, unused_columns(X)[7]] = 4.0
        return centers

    model = KMeans(3, init=init, n_init=1).fit(X)
    assert shapes == [X.shape]
    assert model.cluster_centers_.shape == (3, N_COLUMNS)


def test_an_interrupted_fit_keeps_centers_with_all_columns() -> None:
    def interrupt(state: Any) -> None:
        if state.sweep == 2:
            raise KeyboardInterrupt

    X, model = wide_points(), PowerKMeans(3, random_state=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.cluster_centers_.shape == (3, N_COLUMNS)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_new_points_may_have_entries_in_columns_that_the_fit_left_out() -> None:
    X = wide_points()
    model = PowerKMeans(3, random_state=0).fit(X)
    new = X[:20].toarray()
    new[:, unused_columns(X)[:50]] = 3.0
    new = sparse.csr_matrix(new)
    distances = exact_distances(new, model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(new), distances.argmin(axis=1))
    np.testing.assert_allclose(model.transform(new), np.sqrt(distances).astype(float), rtol=1e-9)
    assert model.score(new) == pytest.approx(-float(distances.min(axis=1).sum()), rel=1e-12)


def test_outliers_are_those_of_all_columns() -> None:
    X = wide_points()
    model = RobustPowerKMeans(3, trim=0.1, random_state=0).fit(X)
    distances = exact_distances(X, model.cluster_centers_).min(axis=1)
    kept = np.sort(distances)[: N_POINTS - N_POINTS // 10]
    assert model.cluster_centers_.shape == (3, N_COLUMNS)
    assert model.inertia_ == pytest.approx(float(kept.sum()), rel=1e-12)
    np.testing.assert_array_equal(model.outliers_, distances > kept[-1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_divergences_with_parameters_for_each_feature_keep_all_columns(widths: set[int]) -> None:
    X = wide_points()
    divergence = Binomial(np.full(N_COLUMNS, 9.0))
    model = PowerKMeans(3, divergence=divergence, effort="none", random_state=0).fit(X)
    assert widths == {N_COLUMNS}
    exact = exact_distances(X, model.cluster_centers_, "binomial").min(axis=1).sum()
    assert model.inertia_ == pytest.approx(float(exact), rel=1e-6)


def test_choose_k_gives_centers_with_all_columns(widths: set[int]) -> None:
    X = wide_points()
    seen: set[int] = set()
    choice = choose_k(
        X,
        range(2, 5),
        criteria=["bic", "silhouette", "separation"],
        random_state=0,
        callback=lambda state: seen.add(state.centers.shape[1]),
    )
    assert N_COLUMNS not in widths
    # The separation looks along a few axes of its own.
    assert N_COLUMNS in seen
    assert N_USED not in seen
    for k, inertia in zip(choice.table["k"], choice.table["inertia"], strict=True):
        centers = choice.centers[k]
        assert not centers[:, unused_columns(X)].any()
        exact = exact_distances(X, centers).min(axis=1).sum()
        assert inertia == pytest.approx(float(exact), rel=1e-12)
    sizes = np.bincount(choice.model(k=3).predict(X)).astype(float)
    by_hand = powermeans.mathematics.criteria.bic(choice.table["inertia"][1], sizes, N_COLUMNS)
    assert choice.table["bic"][1] == pytest.approx(by_hand, rel=1e-9)
