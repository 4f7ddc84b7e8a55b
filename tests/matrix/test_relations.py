"""What holds for every estimator: each relation is one function, each row of the table one case."""

import contextlib
import copy
import functools
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from matrix.outcomes import assert_same, assert_same_bits, found, in_units, of_points
from matrix.table import ROWS, Row
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import powermeans as pm
from powermeans import _native
from powermeans.methods.base import CenterEstimator
from powermeans.points import compiled
from powermeans.saving import estimators
from powermeans.system.containers import like_given, to_array
from tests.attacks.containers import containers
from tests.attacks.numbers import sparse_forms

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the moments of X contradict"),
    pytest.mark.filterwarnings("ignore:X has feature names"),  # unlike centers from elsewhere
]

ESTIMATORS = {name: row for name, row in ROWS.items() if row.is_estimator}
LONG = {name: row for name, row in ROWS.items() if row.many}
FAILURES = (AssertionError, TypeError, ValueError)

Relation = Callable[..., None]


def holds_for(rows: Mapping[str, Row]) -> Callable[[Relation], Relation]:
    """Try a relation with these rows, and expect it to fail where a row is exempt."""

    def decorated(relation: Relation) -> Relation:
        name = relation.__name__.removeprefix("test_")

        @functools.wraps(relation)
        def tried(row: Row, **fixtures: object) -> None:
            is_exempt = name in row.exempt
            with pytest.raises(FAILURES) if is_exempt else contextlib.nullcontext():
                relation(row, **fixtures)

        return pytest.mark.parametrize("row", rows.values(), ids=rows.keys())(tried)

    return decorated


class Box:
    """Numbers that NumPy cannot read, and what they have a row for each of."""

    def __init__(self, values: np.ndarray, of: str = "given") -> None:
        self.values, self.of = values, of


@to_array.register(Box)
def _(values: Box, name: str | None = None) -> np.ndarray:
    return values.values


@like_given.register(Box)
def _(given: Box, values: np.ndarray, of: str) -> Box:
    return Box(values, of)


HOMES = {"cluster_centers_": "centers", "labels_": "points"} | dict.fromkeys(
    ("predict", "transform", "memberships", "score_samples", "embed"), "points"
)


def test_every_public_estimator_has_a_row() -> None:
    assert estimators() - {Pipeline} == {type(row.make) for row in ESTIMATORS.values()}


@holds_for(ROWS)
def test_weights_as_copies(row: Row) -> None:
    times = np.random.default_rng(1).integers(0, 4, size=len(row.given))
    copies = np.repeat(np.arange(len(row.given)), times)
    weighted = found(row.fit(row.given, times), row.given, times)
    copied = row.fit(row.given[copies])
    assert_same(row, of_points(weighted, copies), found(copied, row.given[copies]))


@holds_for(ROWS)
def test_no_weight(row: Row) -> None:
    n = len(row.given)
    far = row.far * row.points(n + 30)[n:]
    given, weights = np.vstack([far, row.given]), np.repeat([0.0, 1.0], [len(far), n])
    with_far = found(row.fit(given, weights), given, weights)
    assert_same(row, of_points(with_far, slice(len(far), None)), row.plain)


@holds_for(ROWS)
def test_order_of_points(row: Row) -> None:
    order = np.random.default_rng(2).permutation(len(row.given))
    weights = None if "no_weight" in row.exempt else row.weights[order]
    expected = row.plain if weights is None else row.weighted
    shuffled = row.fit(row.given[order], weights)
    assert_same(row, found(shuffled, row.given[order], weights), of_points(expected, order))


@holds_for(ROWS)
def test_scaling(row: Row) -> None:
    for unit in row.units:
        scaled = found(row.fit(unit * row.given, **row.in_unit(unit, 1)), unit * row.given)
        scaled = in_units(row, scaled, unit, 1)
        assert_same(row, scaled, {name: row.plain[name] for name in scaled})


@holds_for(ROWS)
def test_shifting(row: Row) -> None:
    shifted = found(row.fit(row.given + 1024), row.given + 1024)
    if "cluster_centers_" in shifted:
        shifted["cluster_centers_"] -= 1024
    assert_same(row, shifted, row.plain, rtol=1e-8)


@holds_for(ROWS)
def test_scaled_weights(row: Row) -> None:
    for unit in (1e-150, 1e150):
        weights = unit * row.weights
        scaled = found(row.fit(row.given, weights, **row.in_unit(1, unit)), row.given, weights)
        scaled = in_units(row, scaled, 1, unit)
        assert_same(row, scaled, {name: row.weighted[name] for name in scaled})


@holds_for(LONG)
def test_threads(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    teams, make_team = [], _native.Team

    def recorded(n_threads: int) -> _native.Team:
        teams.append(make_team(n_threads))
        return teams[-1]

    monkeypatch.setattr(compiled, "Team", recorded)
    parameters = dict(row.many)
    points = row.points(parameters.pop("n_points", 12_000))
    points = np.tile(points, (1, 24 // points.shape[1]))
    by_threads = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("POWERMEANS_NUM_THREADS", n_threads)
        teams.clear()
        by_threads.append(found(row.fit(points, **parameters), points))
    assert max(len(team.stripes_by_worker) for team in teams) > 1  # as many as were asked for
    assert_same_bits(*by_threads)


@holds_for(ROWS)
def test_single_precision(row: Row) -> None:
    single = found(row.fit(row.given.astype(np.float32)), row.given.astype(np.float32))
    if "cluster_centers_" in single:
        assert single["cluster_centers_"].dtype == np.float32
    assert_same(row, single, row.plain, rtol=1e-4)


LAYOUTS = ["unaligned", "Fortran order", "strided", "lists", "bytes swapped"]
LAYOUTS += ["objects", "text", "wider than float64", "frame"]


@holds_for(ROWS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(row: Row, layout: str, tmp_path: Path) -> None:
    points = containers(row.given, tmp_path)[layout]()
    assert_same_bits(found(row.fit(points), points), row.plain)


@holds_for(ROWS)
def test_results_of_a_container_come_home(row: Row, tmp_path: Path) -> None:
    box, weights = Box(row.given), Box(row.weights)
    model = row.fit(box)
    assert_same_bits(found(model, box), row.plain)
    if "no_weight" not in row.exempt:
        assert_same_bits(found(row.fit(box, weights), box, weights), row.weighted)
    for name, of in HOMES.items():
        if (result := getattr(model, name, None)) is not None:
            assert (result(box) if callable(result) else result).of == of, name
    if not hasattr(model, "fit"):
        return
    pm.save(model, tmp_path / "model.pm")
    assert_same_bits(found(pm.load(tmp_path / "model.pm"), row.given), row.plain)
    if hasattr(model, "transform"):
        table = copy.copy(model).set_output(transform="pandas").transform(box)
        np.testing.assert_array_equal(table, row.plain["transform"])
    if isinstance(model, CenterEstimator):
        assert pm.what_changed(model, model, box).stayed == 1
        if model._fitted_needs().measure.is_plain:
            theirs = model.to_sklearn()
            np.testing.assert_array_equal(theirs.predict(row.given), model.predict(row.given))
    again = [pm.stability(model, X, n_samples=1, random_state=0) for X in (box, row.given)]
    np.testing.assert_array_equal(again[0].jaccard, again[1].jaccard)
    if hasattr(model, "partial_fit"):
        for stream in (model, clone(model)):
            assert stream.partial_fit(box).partial_fit(box).labels_.of == "points"
            assert stream.cluster_centers_.values.dtype == np.float64


@holds_for(ROWS)
def test_sparse(row: Row) -> None:
    points = sparse.csr_array(row.given)
    if row.is_dense:
        with pytest.raises(ValueError, match="X is sparse"):
            row.fit(points)
        return
    of_csr = found(row.fit(points), points)
    assert_same(row, of_csr, row.plain)
    for other in sparse_forms(row.given).values():
        assert_same_bits(found(row.fit(other), other), of_csr)


@holds_for(ROWS)
def test_arguments_stay(row: Row) -> None:
    points, weights = row.given.copy(), row.weights.copy()
    for argument in (points, weights):
        argument.flags.writeable = False
    if "no_weight" in row.exempt:
        found(row.fit(points), points)
    else:
        found(row.fit(points, weights), points, weights)
    assert points.tobytes() == row.given.tobytes()
    assert weights.tobytes() == row.weights.tobytes()


@holds_for(ESTIMATORS)
def test_copies_of_a_model(row: Row) -> None:
    model = row.fit(row.given)
    pickled = pickle.loads(pickle.dumps(model))
    for same in (pickled, copy.deepcopy(model), clone(pickled).fit(row.given)):
        assert_same_bits(found(same, row.given), row.plain)


@holds_for(ESTIMATORS)
def test_refit(row: Row) -> None:
    model = row.fit(row.points(160)[120:].astype(np.float32))
    final = row.fit(row.given)
    model.set_params(**final.get_params()).fit(row.given)
    assert vars(model).keys() == vars(final).keys()
    assert_same_bits(found(model, row.given), row.plain)
