"""Sparse points of which most columns have no entry: a fit works on the other columns."""

from typing import Any

import numpy as np
import pytest
from attacks import oracle
from numpy.typing import NDArray
from scipy import sparse

import powermeans as pm
from powermeans.divergences import Binomial
from powermeans.engine.seeds import ParallelSeeds
from powermeans.methods import (
    DPMeans,
    FuzzyCMeans,
    GradientKMeans,
    KHarmonicMeans,
    SelfOrganizingMap,
)
from powermeans.methods.robust.trimmed import TrimmedPoints
from powermeans.points.compiled import CompiledPoints
from powermeans.points.opening import open_rows

N_POINTS, N_COLUMNS, N_USED = 60, 4200, 45
OF_KIND = {
    "squared": oracle.squared_euclidean,
    "cosine": oracle.cosine,
    "poisson": oracle.poisson,
    "binomial": oracle.binomial(9),
}
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


def unused_columns(X: sparse.csr_matrix) -> NDArray[np.intp]:
    return np.setdiff1d(np.arange(X.shape[1]), X.indices)


def exact_distances(X: Any, centers: Any, kind: str = "squared") -> Any:
    points = np.asarray(X.toarray(), dtype=np.longdouble)
    theta = np.asarray(centers, dtype=np.longdouble)
    used = points.any(axis=0) | theta.any(axis=0)  # in others every term is zero
    return OF_KIND[kind](points[:, None, used], theta[None, :, used])


FITS = {
    "k-means": lambda: pm.KMeans(3, random_state=0),
    "power": lambda: pm.PowerKMeans(3, random_state=0),
    "cosine": lambda: pm.PowerKMeans(3, divergence="cosine", random_state=0),
    "poisson": lambda: pm.PowerKMeans(3, divergence="poisson", effort="fast", random_state=0),
    "binomial": lambda: pm.PowerKMeans(3, divergence=Binomial(9), effort="fast", random_state=0),
    "no polish": lambda: pm.PowerKMeans(3, polish=False, random_state=0),
    "harmonic": lambda: KHarmonicMeans(3, random_state=0),
    "fuzzy": lambda: FuzzyCMeans(3, fuzzifier=1.1, random_state=0),
    "gradient": lambda: GradientKMeans(3, random_state=0),
    "dp-means": lambda: DPMeans(n_clusters_wanted=3, random_state=0),
    "map": lambda: SelfOrganizingMap((3, 1), random_state=0),
    "parallel seeds": lambda: pm.KMeans(3, init=ParallelSeeds(), random_state=0),
}


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    found = set()
    sweep = CompiledPoints.sweep

    def noted(self: CompiledPoints, centers: Any, rule: Any) -> Any:
        found.add(centers.shape[1])
        return sweep(self, centers, rule)

    monkeypatch.setattr(CompiledPoints, "sweep", noted)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("dtype", "weights"),
    [(np.float64, None), (np.float32, WEIGHTS)],
    ids=["float64", "float32, weighted"],
)
def test_a_fit_sweeps_over_used_columns_and_describes_all(name, dtype, weights, widths):
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
    distances = exact_distances(X, centers, name if name in OF_KIND else "squared")
    counts = np.ones(N_POINTS) if weights is None else weights
    exact = float(counts @ distances.min(axis=1))
    assert model.inertia_ == pytest.approx(exact, rel=1e-5 if dtype == np.float32 else 1e-12)
    nearest = distances[np.arange(N_POINTS), model.labels_][counts > 0]
    assert np.all(nearest <= distances.min(axis=1)[counts > 0] * (1 + 1e-5) + 1e-6)


@pytest.mark.parametrize("kind", [pm.KMeans, FuzzyCMeans, GradientKMeans])
def test_tol_is_in_units_of_the_mean_variance_of_all_columns(kind: Any) -> None:
    X = wide_points()
    used = np.unique(X.indices)
    start = X[[1, 2, 3]].toarray()
    options = {"fuzzifier": 1.1} if kind is FuzzyCMeans else {}

    def n_sweeps(X: Any, init: Any, tol: float) -> int:
        return int(kind(3, init=init, tol=tol, **options).fit(X).n_iter_)

    wide = [n_sweeps(X, start, tol) for tol in (1e3, 10.0, 0.1)]
    share = N_USED / N_COLUMNS
    narrow = [n_sweeps(X[:, used], start[:, used], tol * share) for tol in (1e3, 10.0, 0.1)]
    assert wide == narrow
    assert len(set(wide)) > 1  # otherwise the test could not fail


def test_the_stopping_rule_and_the_mean_variance_count_all_columns() -> None:
    X = wide_points()
    used = np.unique(X.indices)

    def n_sweeps(X: Any, factor: float = 1.0) -> list[int]:
        model = pm.PowerKMeans(3, polish=False, schedule=[-3.0] * 200, init=X[[1, 2, 3]].toarray())
        tols = (factor * 10.0 ** (-n / 4) for n in range(8, 40))
        return [int(model.set_params(tol=tol).fit(X).n_iter_) for tol in tols]

    assert n_sweeps(X) == n_sweeps(X[:, used], np.sqrt(N_USED / N_COLUMNS)) != n_sweeps(X[:, used])
    narrow: Any = open_rows(X[:, np.unique(X.indices)], WEIGHTS, n_columns=N_COLUMNS)
    of_narrow, of_all = (TrimmedPoints(r, WEIGHTS, 0.1) for r in (narrow, open_rows(X, WEIGHTS)))
    assert of_narrow.mean_variance() == pytest.approx(of_all.mean_variance(), rel=1e-12)


def test_initial_centers_given_or_chosen_may_have_entries_where_points_have_none() -> None:
    X = wide_points()
    chosen = X[[1, 25, 45]].toarray()
    chosen[0, unused_columns(X)[7]] = 4.0  # where points have no entries
    asked: list[Any] = []

    def init(*given: Any, **options: Any) -> Any:
        asked.append(given[0].shape)
        return chosen

    before = exact_distances(X, chosen).min(axis=1).sum()
    for given in (chosen, init):
        model = pm.KMeans(3, init=given, n_init=1).fit(X)
        assert model.history_.inertia[0] == pytest.approx(float(before), rel=1e-12)
        assert model.cluster_centers_.shape == (3, N_COLUMNS)
        assert not model.cluster_centers_[:, unused_columns(X)].any()
    assert asked == [X.shape]


def test_new_points_and_outliers_are_measured_in_all_columns() -> None:
    X = wide_points()
    model = pm.PowerKMeans(3, random_state=0).fit(X)
    new = X[:20].toarray()
    new[:, unused_columns(X)[:50]] = 3.0
    new = sparse.csr_matrix(new)
    distances = exact_distances(new, model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(new), distances.argmin(axis=1))
    np.testing.assert_allclose(model.transform(new), np.sqrt(distances).astype(float), rtol=1e-9)
    assert model.score(new) == pytest.approx(-float(distances.min(axis=1).sum()), rel=1e-12)
    model = pm.RobustPowerKMeans(3, trim=0.1, random_state=0).fit(X)
    distances = exact_distances(X, model.cluster_centers_).min(axis=1)
    kept = np.sort(distances)[: N_POINTS - N_POINTS // 10]
    assert model.cluster_centers_.shape == (3, N_COLUMNS)
    assert model.inertia_ == pytest.approx(float(kept.sum()), rel=1e-12)
    np.testing.assert_array_equal(model.outliers_, distances > kept[-1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_divergences_with_parameters_for_each_feature_keep_all_columns(widths: set[int]) -> None:
    X = wide_points()
    divergence = Binomial(np.full(N_COLUMNS, 9.0))
    model = pm.PowerKMeans(3, divergence=divergence, effort="none", random_state=0).fit(X)
    assert widths == {N_COLUMNS}
    exact = exact_distances(X, model.cluster_centers_, "binomial").min(axis=1).sum()
    assert model.inertia_ == pytest.approx(float(exact), rel=1e-6)


def test_choose_k_gives_centers_with_all_columns(widths: set[int]) -> None:
    X, seen, criteria = wide_points(), set(), ["bic", "silhouette", "separation"]
    choice = pm.choose_k(
        X,
        range(2, 5),
        criteria=criteria,
        random_state=0,
        callback=lambda s: seen.add(s.centers.shape[1]),
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
    by_hand = pm.mathematics.criteria.bic(choice.table["inertia"][1], sizes, N_COLUMNS)
    assert choice.table["bic"][1] == pytest.approx(by_hand, rel=1e-9)
