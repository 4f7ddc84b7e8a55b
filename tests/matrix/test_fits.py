"""What holds for the fit of every estimator: its attributes agree, and it may end at any sweep."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matrix.data import K
from matrix.outcomes import assert_same_bits, found
from matrix.table import Row
from matrix.test_relations import ESTIMATORS, holds_for
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import powermeans as pm
from powermeans.engine import SweepState
from powermeans.engine.stopping import MaxSeconds
from powermeans.methods import (
    EntropyWeightedPowerKMeans,
    KernelPowerKMeans,
    SpectralClustering,
    SphericalMixture,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning"),
    pytest.mark.filterwarnings("ignore:.*in weight, since the fit was stopped:RuntimeWarning"),
]

HEARD = {name: row for name, row in ESTIMATORS.items() if hasattr(row.make, "callback")}
LIMITED = {name: row for name, row in HEARD.items() if "stop" in row.make.get_params()}
METHODS = ("predict", "transform", "score", "memberships", "score_samples", "bic", "to_sklearn")


def assert_whole(model: Any, points: Any) -> None:
    """All that a fit leaves is there, finite, and of these points."""
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
    assert model.inertia_ >= 0
    if isinstance(n_clusters := getattr(model, "n_clusters", None), int):
        assert len(model.cluster_centers_) == n_clusters
    assert model.labels_.dtype == np.int32
    assert model.labels_.shape == (len(points),)
    assert model.cluster_centers_.shape[1] == model.n_features_in_ == points.shape[1]
    if hasattr(model, "history_") and not hasattr(model, "n_steps_"):  # of batches, or of epochs
        assert len(model.history_) == model.n_iter_ > 0
    if isinstance(model, pm.BalancedKMeans):  # whose limits are of the points of the fit
        least, most = model.size_min or 0, model.size_max or 1
        assert least <= model.sizes_.min() / len(points)
        assert model.sizes_.max() / len(points) <= most
    else:
        np.testing.assert_array_equal(model.labels_, model.predict(points))


def with_centers(model: Any) -> bool:
    return not isinstance(model, KernelPowerKMeans | SpectralClustering)


@holds_for({name: row for name, row in ESTIMATORS.items() if with_centers(row.make)})
def test_attributes_agree(row: Row) -> None:
    model = row.fit(row.given)
    assert_whole(model, row.given)
    distances = model.transform(row.given)
    assert distances.shape == (len(row.given), len(model.cluster_centers_))
    if not isinstance(model, SphericalMixture):  # whose labels count shares and variances
        nearest = np.asarray(distances).min(axis=1)
        of_labels = distances[np.arange(len(row.given)), model.predict(row.given)]
        np.testing.assert_allclose(of_labels, nearest, rtol=1e-7, atol=1e-12 * nearest.max())
        if not isinstance(model, pm.BalancedKMeans):
            assert model.score(row.given) == pytest.approx(-model.inertia_, rel=1e-9)


class Ends:
    """Listens to a fit, and ends it after so many sweeps by an answer or an error."""

    def __init__(self, n_most: int, how: Callable[[], bool]) -> None:
        self.n_most, self.how, self.n_heard, self.n_ended = n_most, how, 0, 0

    def __call__(self, state: SweepState) -> bool:
        self.n_heard += 1
        return self.n_heard == self.n_most and self.how()

    def phase(self, name: str, done: int, total: int | None) -> None:
        pass

    def fit_ended(self) -> None:
        self.n_ended += 1


def interrupt() -> bool:
    raise KeyboardInterrupt


def fail() -> bool:
    raise LookupError("mine")


def ended(row: Row, n_most: int, how: Callable[[], bool]) -> Any:
    """Return what a fit leaves that ends after so many sweeps."""
    model = clone(row.make).set_params(random_state=3)
    model.callback = Ends(n_most, how)  # a parameter of some, which all ask
    try:
        model.fit(row.given)
    except (KeyboardInterrupt, LookupError):
        assert how in (interrupt, fail)
    assert model.callback.n_ended == 1
    return model


@holds_for(HEARD)
def test_callback_hears_every_sweep(row: Row) -> None:
    heard = ended(row, 0, fail)
    assert_same_bits(found(heard, row.given), row.plain)
    assert heard.callback.n_heard >= heard.n_iter_ > 0


@holds_for(HEARD)
@pytest.mark.parametrize("n_sweeps", [1, 4, 11, 30])
def test_ending_early(row: Row, n_sweeps: int) -> None:
    interrupted, failed, stopped = (
        ended(row, n_sweeps, how) for how in (interrupt, fail, lambda: True)
    )
    assert_same_bits(found(interrupted, row.given), found(failed, row.given))
    if "callback" in row.make.get_params():
        assert stopped.callback.n_heard <= n_sweeps
        assert stopped.inertia_ == pytest.approx(interrupted.inertia_, rel=1e-9)
    if with_centers(stopped):
        for model in (interrupted, stopped):
            assert_whole(model, row.given)


@holds_for(LIMITED)
def test_no_time(row: Row) -> None:
    model = row.fit(row.given, stop=MaxSeconds(1e-9))
    assert model.n_iter_ <= 2
    if with_centers(model):
        assert_whole(model, row.given)


@holds_for(ESTIMATORS)
@pytest.mark.parametrize("n_places", [1, 3])
def test_few_places(row: Row, n_places: int) -> None:
    points = np.repeat(row.given[:n_places], 20, axis=0)
    model = row.fit(points)
    # Limits divide places, and so does a cut of one place in two.
    if not isinstance(model, pm.BalancedKMeans | SpectralClustering):
        np.testing.assert_array_equal(model.labels_, np.repeat(model.labels_[::20], 20))
    if with_centers(model):
        assert_whole(model, points)


@holds_for(ESTIMATORS)
def test_saving(row: Row, tmp_path: Any) -> None:
    model = row.fit(row.given)
    pm.save(model, tmp_path / "model")
    loaded = pm.load(tmp_path / "model")
    assert_same_bits(found(loaded, row.given), found(model, row.given))
    for name in {name for name in vars(model) if name.endswith("_")} - {"embedded_"}:
        expected, value = getattr(model, name), getattr(loaded, name)
        assert type(value) is type(expected)
        if isinstance(value, np.recarray):  # of which NumPy compares NaN entry by entry only
            expected, value = expected.tolist(), value.tolist()
        if sparse.issparse(value):
            expected, value = expected.toarray(), value.toarray()
        np.testing.assert_equal(value, expected)


def with_entry(points: np.ndarray, value: float) -> np.ndarray:
    changed = points.copy()
    changed[7, 1] = value
    return changed


def broken(points: np.ndarray) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(points)
    assert matrix.has_canonical_format
    matrix.indptr[10] = 10**8
    return matrix


BAD_POINTS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "NaN": (lambda points: with_entry(points, np.nan), "NaN.*row 7, column 1"),
    "infinity": (lambda points: with_entry(points, -np.inf), "infinity.*row 7, column 1"),
    "too large": (lambda points: with_entry(points, 1e300), "1e\\+300|row 7"),
    "sparse NaN": (lambda points: sparse.csr_array(with_entry(points, np.nan)), "row 7, column 1"),
    "broken CSR": (broken, "valid CSR"),
    "text": (lambda points: [["1", "a"]] * 9, "text|'a'"),
    "complex": (lambda points: points * 1j, "[Cc]omplex"),
    "a huge integer": (lambda points: [[1, 10**400]] * 9, "an integer above 1.8e308"),
    "no rows": (lambda points: points[:0], "0 sample"),
    "no columns": (lambda points: points[:, :0], "0 feature"),
    "one axis": (lambda points: points[:, 0], "2D array"),
    "three axes": (lambda points: points[:, :, None], "dim 3"),
    "None": (lambda points: None, "None|2D array|NoneType"),
}


@holds_for(ESTIMATORS)
def test_bad_points(row: Row) -> None:
    model = row.fit(row.given)
    methods = [getattr(model, name) for name in METHODS[:4] if hasattr(model, name)]
    for bad, (change, says) in BAD_POINTS.items():
        if bad == "NaN" and getattr(model, "missing", None) == "observed":
            continue
        if row.is_dense and bad in ("sparse NaN", "broken CSR"):
            says = f"sparse|{says}"
        for call in (model.fit, *methods):
            with pytest.raises((ValueError, TypeError), match=says):
                call(change(row.given))
    for method in methods:
        with pytest.raises(ValueError, match="features"):
            method(row.given[:, 1:])
    # A fit that was refused leaves the one before.
    assert_same_bits(found(model, row.given), row.plain)


BAD_WEIGHTS = {
    "negative": lambda n: np.where(np.arange(n) == 4, -1.0, 1.0),
    "NaN": lambda n: np.where(np.arange(n) == 4, np.nan, 1.0),
    "infinite": lambda n: np.where(np.arange(n) == 4, np.inf, 1.0),
    "zeros": np.zeros,
    "too few": lambda n: np.ones(n - 1),
    "two columns": lambda n: np.ones((n, 2)),
    "text": lambda n: ["a"] * n,
    "complex": lambda n: np.full(n, 1j),
    "objects": lambda n: [object()] * n,
    "above float64": lambda n: np.full(n, 1e307),
}


@holds_for({name: row for name, row in ESTIMATORS.items() if "no_weight" not in row.exempt})
def test_bad_weights(row: Row) -> None:
    for bad in BAD_WEIGHTS.values():
        weights = bad(len(row.given))
        with pytest.raises(ValueError, match="sample_weight"):
            row.fit(row.given, weights)
        if hasattr(row.make, "partial_fit"):
            with pytest.raises(ValueError, match="sample_weight"):
                clone(row.make).partial_fit(row.given, sample_weight=weights)


@holds_for(
    {name: row for name, row in ESTIMATORS.items() if row.make.get_params().get("n_clusters") == K}
)
def test_more_clusters_than_rows(row: Row) -> None:
    with pytest.raises(ValueError, match=f"n_samples={K - 1} "):
        row.fit(row.given[: K - 1])


@holds_for(ESTIMATORS)
def test_not_fitted(row: Row) -> None:
    for name in {*METHODS} & {*dir(row.make)}:
        given = () if name == "to_sklearn" else (row.given,)
        with pytest.raises(NotFittedError):
            getattr(clone(row.make), name)(*given)


# Of these None is the least effort.
NAMELESS = (SphericalMixture, EntropyWeightedPowerKMeans)
SEARCHING = {
    name: row
    for name, row in ESTIMATORS.items()
    if "effort" in row.make.get_params() and getattr(row.make, "polish", True)
}


@holds_for(SEARCHING)
def test_effort(row: Row) -> None:
    """More effort never ends above less: what is lowered includes prices and likelihoods."""

    def lowered(effort: str | None) -> float:
        model = row.fit(row.given, effort=effort)
        if hasattr(model, "log_likelihood_"):
            return -float(model.log_likelihood_)
        return float(getattr(model, "objective_", model.inertia_))

    bare = None if isinstance(row.make, NAMELESS) else "none"
    thorough, balanced, least = map(lowered, ("thorough", "balanced", bare))
    assert thorough <= balanced + 1e-6 * abs(balanced)
    assert balanced <= least + 1e-6 * abs(least)
