"""The comparator names the quantity where rows are broken; the identities show what it accepts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparator import Case, compare_rows, varied_cases
from scipy import sparse

from powermeans.divergences import SquaredEuclidean
from powermeans.mathematics.rules import Hard, rule_at
from powermeans.points.by_definition import NearnessByDefinition
from powermeans.points.reference import ReferenceRows

CASES = varied_cases()
Rows, Nearness, distances = ReferenceRows, NearnessByDefinition, SquaredEuclidean().pairwise


def oracle_of(case: Case) -> ReferenceRows:
    return ReferenceRows(case.points, case.sample_weight, precision=np.longdouble)


def changed(method: str, change: Callable[..., Any], kind: type = Rows) -> Callable[..., Any]:
    return lambda self, *of, **limits: change(getattr(kind, method)(self, *of, **limits))


def nudged(method: str, *fields: str, kind: type = Rows) -> Callable[..., Any]:
    """The method, whose result, or these fields of it, are too large by a thousandth."""

    def nudge(right):
        if not fields:
            return right * 1.001
        return replace(right, **{name: 1.001 * getattr(right, name) for name in fields})

    return changed(method, nudge, kind)


def unweighted(method: str) -> Callable[..., Any]:
    return lambda self, *of, **limits: getattr(Rows(self._points), method)(*of, **limits)


def at_power(change: Callable[[float], float]) -> Callable[..., Any]:
    """A sweep at another power than was asked for."""

    def sweep(self, centers, rule):
        return Rows.sweep(self, centers, rule if rule == Hard() else rule_at(change(rule.power)))

    return sweep


def without_points_on_centers(self, centers, rule):
    is_away = self._sq_dist(centers).min(axis=1) > 0
    return Rows(self._points[is_away], self._weight[is_away]).sweep(centers, rule)


def expanded(self, y):
    return (self._points**2).sum(1)[:, None] - 2 * self._points @ y.T + (y**2).sum(1)


def last_of_ties(self, centers):
    labels, inertia = Rows.assign(self, centers[::-1])
    return (len(centers) - 1 - labels).astype(np.int32), inertia


def last_mislabelled(assigned):
    labels, inertia = assigned
    return np.append(labels[:-1], 1 - np.minimum(labels[-1:], 1)).astype(np.int32), inertia


def other_storage(sample):
    return sample.toarray() if sparse.issparse(sample) else sparse.csr_array(sample)


def labelled_zero_or_one(points):
    return [replace(far, label=1 - min(far.label, 1)) for far in points]


# A method that is replaced, by what, and what the comparator says.
BROKEN: list[tuple[str, Any, str]] = [
    ("take", changed("take", np.negative), "take"),
    ("sample_weight", changed("sample_weight", np.ones_like), "sample_weight"),
    ("sample", changed("sample", other_storage), "sample: is sparse"),
    ("total_weight", property(lambda self: self.n_points), "total_weight"),
    ("mean", unweighted("mean"), "mean differs"),
    ("mean_variance", nudged("mean_variance"), "mean_variance"),
    ("sweep", unweighted("sweep"), "sweep at power -inf: weights"),
    ("sweep", nudged("sweep", "points"), "sweep at power -inf: points"),
    ("sweep", nudged("sweep", "objective"), "objective"),
    ("sweep", nudged("sweep", "inertia"), "sweep at power -inf: inertia"),
    (
        "sweep",
        changed("sweep", lambda right: replace(right, weights=right.weights * np.nan)),
        "sweep at power -inf: weights",
    ),
    ("sweep", at_power(lambda s: s if s > -100 else -np.inf), "sweep at power -1000.0: weights"),
    ("sweep", without_points_on_centers, "sweep at power -inf: weights"),
    ("_sq_dist", expanded, "sweep at power"),
    ("spread", nudged("spread", "weights"), "spread: weights"),
    ("spread", nudged("spread", "error"), "spread: error"),
    ("_utility", nudged("_utility"), "spread: utility"),
    (
        "_utility",
        changed("_utility", lambda right: np.nan_to_num(right, posinf=0.0)),
        "spread: utility of a single center",
    ),
    ("assign", last_of_ties, "assign: labels are the first of several"),
    ("assign", changed("assign", last_mislabelled), "assign: labels are those of the nearest"),
    (
        "assign",
        changed("assign", lambda right: (right[0].astype(int), right[1])),
        "assign: dtype of labels",
    ),
    ("assign", unweighted("assign"), "assign: inertia"),
    ("sq_distances", nudged("sq_distances"), "sq_distances differs"),
    (
        "sq_distances",
        changed("sq_distances", lambda right: right.astype(np.float16)),
        "sq_distances: dtype",
    ),
    (
        "greedy_seeds",
        lambda self, order, first, others: Rows.greedy_seeds(self, order, first, others[:, :1]),
        "leaves the least inertia",
    ),
    (
        "greedy_seeds",
        lambda self, order, *of: Rows.greedy_seeds(self, np.arange(self.n_points), *of),
        "one of its candidates",
    ),
    (
        "farthest",
        lambda self, centers, n: n * list(Rows.farthest(self, centers, 1)),
        "farthest point 1",
    ),
    ("farthest", unweighted("farthest"), "farthest point 0"),
    ("farthest", changed("farthest", labelled_zero_or_one), "farthest point 0: label"),
]


def nearness_of(self, order=None, weight=None):
    """The same distances to the nearest center, with another order or other weights."""
    weight = self._weight if weight is None else np.ones(len(self._points))
    other = Nearness(self._points, weight, [], order, self._pairwise)
    other._nearest = self._nearest
    return other


def replaced(self, center):
    self._nearest = distances(self._points, np.asarray(center)[None])[:, 0]


def next_drawn(self, u, s=2.0):
    return np.minimum(Nearness.draw(self, u, s) + 1, len(self._points) - 1)


def last_farthest(self):
    return len(self._points) - 1 - int(np.argmax(self._weighted()[::-1]))


# The same of the nearness.
BROKEN_NEARNESS: list[tuple[str, Any, str]] = [
    ("draw", lambda self, u, s=2.0: nearness_of(self, self._order, "ones").draw(u, s), "draw"),
    ("draw", lambda self, u, s=2.0: nearness_of(self).draw(u, s), "nearness in an order: draw"),
    ("draw", lambda self, u, s=2.0: Nearness.draw(self, u), "draw is in proportion"),
    ("draw", next_drawn, "draw"),
    ("potentials", nudged("potentials", kind=Nearness), "potentials"),
    ("add", replaced, "sq_dist"),
    ("farthest", last_farthest, "farthest is the first"),
    ("farthest", lambda self: int(np.argmax(self._nearest)), "farthest has the largest"),
    ("inertia", lambda self: float(self._nearest.sum()), "inertia"),
    (
        "inertia",
        changed("inertia", lambda right: float(np.nan_to_num(right, posinf=0.0)), Nearness),
        "nearness to no center: inertia",
    ),
    ("sq_dist", nudged("sq_dist", kind=Nearness), "sq_dist"),
]


def with_nearness(method: str, replacement: Any) -> Callable[..., Any]:
    broken = type("Broken", (Nearness,), {method: replacement})

    def nearness(self, centers, order=None):
        return broken(self._points, self._weight, centers, order, self._pairwise)

    return nearness


ALL_BROKEN = BROKEN + [
    ("nearness", with_nearness(method, replacement), says)
    for method, replacement, says in BROKEN_NEARNESS
]
# One of each peculiarity is enough: weights with zeros, duplicates, a single center, a far origin.
REVEALING = ["one center", "odd sizes", "plane, many centers", "duplicates", "far from the origin"]


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def complaints(method: str, replacement: Any, tolerance: float) -> Iterator[str]:
    kind = type("Broken", (ReferenceRows,), {method: replacement})
    for of in REVEALING:
        case = case_named(f"{of}, float64, dense")
        rows = kind(case.points, case.sample_weight)
        try:
            compare_rows(rows, oracle_of(case), case.centers, tolerance=tolerance)
        except (AssertionError, IndexError) as complaint:  # of labels of a second center
            yield str(complaint)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-5])
@pytest.mark.parametrize(("method", "replacement", "says"), ALL_BROKEN)
def test_broken_rows_are_found_and_the_quantity_named(method, replacement, says, tolerance):
    if tolerance == 1e-12 or replacement is not expanded:  # which float32 does not resolve
        assert any(says in said for said in complaints(method, replacement, tolerance))


@pytest.mark.parametrize("power", [-0.1, -1.0, -3.3, -20.0, -1e3])
def test_a_power_wrong_by_a_thousandth_is_found(power):
    kind = type("Broken", (ReferenceRows,), {"sweep": at_power(lambda s: 1.001 * s)})
    case = case_named("sixty-four features, float64, dense")
    rows, options = kind(case.points, case.sample_weight), {"tolerance": 1e-12, "powers": [power]}
    with pytest.raises(AssertionError, match=f"sweep at power {power}"):
        compare_rows(rows, oracle_of(case), case.centers, **options)


def test_float32_arithmetic_passes_as_float32_only():
    case = case_named("plane, float32, dense")
    rows = ReferenceRows(case.points, case.sample_weight, precision=np.float32)
    compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-5)
    with pytest.raises(AssertionError):
        compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-9)
