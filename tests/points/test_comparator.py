"""The comparator accepts what is right, and names the quantity where rows are broken."""

from __future__ import annotations

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
Right, RightNearness, distances = ReferenceRows, NearnessByDefinition, SquaredEuclidean().pairwise


def oracle_of(case: Case) -> ReferenceRows:
    return ReferenceRows(case.points, case.sample_weight, precision=np.longdouble)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_passes_against_itself_in_long_double(case):
    rows = ReferenceRows(case.points, case.sample_weight)
    compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-12)


def unweighted(rows):
    return Right(rows._points)


def sums(**changes: Callable[[Any], Any]) -> Callable[..., Any]:
    """A sweep whose sums have some fields changed."""

    def sweep(self, centers, rule):
        right = Right.sweep(self, centers, rule)
        return replace(right, **{name: change(right) for name, change in changes.items()})

    return sweep


def at_power(change: Callable[[float], float]) -> Callable[..., Any]:
    """A sweep at another power than was asked for."""

    def sweep(self, centers, rule):
        return Right.sweep(self, centers, rule if rule == Hard() else rule_at(change(rule.power)))

    return sweep


def by_memberships(self, centers, rule):
    right = Right.sweep(self, centers, rule)
    weights, _ = rule.weigh(self._sq_dist(centers))
    shares = self._weight[:, None] * weights / weights.sum(axis=1, keepdims=True)
    return replace(right, points=shares.T @ self._points, weights=shares.sum(axis=0))


def without_points_on_centers(self, centers, rule):
    is_away = self._sq_dist(centers).min(axis=1) > 0
    return Right(self._points[is_away], self._weight[is_away]).sweep(centers, rule)


def utility_from_the_third(self, sq_dist, labels):
    others = np.partition(sq_dist, 2, axis=1)
    gain = self._weight * (others[:, 2] - others[:, 0])
    return self._add_by_label(gain, labels, sq_dist.shape[1])


def last_of_ties(self, centers):
    labels, inertia = Right.assign(self, centers[::-1])
    return (len(centers) - 1 - labels).astype(np.int32), inertia


def last_point_mislabelled(self, centers):
    labels, inertia = Right.assign(self, centers)
    labels[-1] = (labels[-1] + 1) % len(centers)
    return labels, inertia


def long_labels(self, centers):
    labels, inertia = Right.assign(self, centers)
    return labels.astype(int), inertia


def the_other_storage(self, indices):
    sample = Right.sample(self, indices)
    return sample.toarray() if sparse.issparse(sample) else sparse.csr_array(sample)


def labelled_with_the_last(self, centers, n_wanted):
    return [replace(far, label=len(centers) - 1) for far in Right.farthest(self, centers, n_wanted)]


def expanded(self, y):
    return (self._points**2).sum(1)[:, None] - 2 * self._points @ y.T + (y**2).sum(1)


def inertia_unweighted(self, *of):
    return replace(Right.sweep(self, *of), inertia=unweighted(self).sweep(*of).inertia)


def first_candidates(self, order, first, others, **limits):
    return Right.greedy_seeds(self, order, first, others[:, :1], **limits)


def in_the_order_of_rows(self, order, *of, **limits):
    return Right.greedy_seeds(self, np.arange(self.n_points), *of, **limits)


def without_weights(method: str) -> Callable[..., Any]:
    return lambda self, *of, **limits: getattr(unweighted(self), method)(*of, **limits)


# A method of the rows that is replaced, by what, and what the comparator says.
BROKEN: dict[str, tuple[str, Any, str]] = {
    "drops the last points": (
        "sweep",
        lambda self, *of: Right(self._points[:-7], self._weight[:-7]).sweep(*of),
        "sweep at power -inf: weights",
    ),
    "forgets weights": ("sweep", without_weights("sweep"), "sweep at power -inf: weights"),
    "hard at high powers": (
        "sweep",
        at_power(lambda s: s if s > -100 else -np.inf),
        "sweep at power -1000.0: weights",
    ),
    "memberships as weights": ("sweep", by_memberships, "sweep at power -0.1: weights"),
    "two centers swapped": (
        "sweep",
        sums(weights=lambda of: np.roll(of.weights, 1)),
        "sweep at power -inf: weights",
    ),
    "points on centers left out": ("sweep", without_points_on_centers, "power -inf: weights"),
    "distances clamped": (
        "_sq_dist",
        lambda self, centers: Right._sq_dist(self, centers) + 1e-9,
        "sweep at power",
    ),
    "square expanded": ("_sq_dist", expanded, "sweep at power"),
    "float32 sums": (
        "sweep",
        sums(points=lambda of: of.points.astype(np.float32).astype(float)),
        "sweep at power -inf: points",
    ),
    "no power means": ("sweep", sums(objective=lambda of: of.inertia), "-0.1: objective"),
    "inertia unweighted": ("sweep", inertia_unweighted, "sweep at power -inf: inertia"),
    "NaN": ("sweep", sums(weights=lambda of: of.weights * np.nan), "power -inf: weights"),
    "utility from the third": ("_utility", utility_from_the_third, "spread: utility"),
    "no utility of one center": (
        "_utility",
        lambda self, *of: np.nan_to_num(Right._utility(self, *of), posinf=0.0),
        "spread: utility of a single center",
    ),
    "spread unweighted": ("spread", without_weights("spread"), "spread: weights"),
    "last of ties": ("assign", last_of_ties, "assign: labels are the first of several"),
    "last point": ("assign", last_point_mislabelled, "assign: labels are those of the nearest"),
    "long labels": ("assign", long_labels, "assign: dtype of labels"),
    "labels' inertia unweighted": ("assign", without_weights("assign"), "assign: inertia"),
    "roots of distances": (
        "sq_distances",
        lambda self, centers: np.sqrt(Right.sq_distances(self, centers)),
        "sq_distances differs",
    ),
    "float16 distances": (
        "sq_distances",
        lambda self, y: Right.sq_distances(self, y).astype(np.float16),
        "sq_distances: dtype",
    ),
    "mean unweighted": ("mean", without_weights("mean"), "mean differs"),
    "variances added": (
        "mean_variance",
        lambda self: Right.mean_variance(self) * self.n_features,
        "mean_variance",
    ),
    "points counted": ("total_weight", property(lambda self: self.n_points), "total_weight"),
    "taken in order": ("take", lambda self, i: Right.take(self, np.sort(i)), "take"),
    "weights of one": ("sample_weight", lambda self, i: np.ones(len(i)), "sample_weight"),
    "other storage": ("sample", the_other_storage, "sample: is sparse"),
    "first candidates": ("greedy_seeds", first_candidates, "leaves the least inertia"),
    "seeds in the order of rows": ("greedy_seeds", in_the_order_of_rows, "one of its candidates"),
    "seeds unweighted": ("greedy_seeds", without_weights("greedy_seeds"), "one of its candidates"),
    "farthest of given centers": (
        "farthest",
        lambda self, centers, n: n * list(Right.farthest(self, centers, 1)),
        "farthest point 1",
    ),
    "farthest unweighted": ("farthest", without_weights("farthest"), "farthest point 0"),
    "farthest's label": ("farthest", labelled_with_the_last, "farthest point 0: label"),
}


def nearness_of(self, order=None, weight=None):
    """The same distances to the nearest center, with another order or other weights."""
    weight = self._weight if weight is None else weight
    other = RightNearness(self._points, weight, [], order, self._pairwise)
    other._nearest = self._nearest
    return other


def nearness_unweighted(self, order=None):
    return nearness_of(self, order, np.ones(len(self._points)))


def replaced(self, center):
    self._nearest = distances(self._points, np.asarray(center)[None])[:, 0]


def next_drawn(self, u, s=2.0):
    return np.minimum(RightNearness.draw(self, u, s) + 1, len(self._points) - 1)


# The same of the nearness.
BROKEN_NEARNESS: list[tuple[str, Any, str]] = [
    ("draw", lambda self, u, s=2.0: nearness_unweighted(self, self._order).draw(u, s), "draw"),
    ("draw", lambda self, u, s=2.0: nearness_of(self).draw(u, s), "nearness in an order: draw"),
    ("draw", lambda self, u, s=2.0: RightNearness.draw(self, u), "draw is in proportion"),
    ("draw", next_drawn, "draw"),
    (
        "potentials",
        lambda self, i: (self._weight @ distances(self._points, self._points[i])).astype(float),
        "potentials",
    ),
    ("potentials", lambda self, i: nearness_unweighted(self).potentials(i), "potentials"),
    ("add", replaced, "sq_dist"),
    (
        "farthest",
        lambda self: len(self._points) - 1 - int(np.argmax(self._weighted()[::-1])),
        "farthest is the first",
    ),
    ("farthest", lambda self: int(np.argmax(self._nearest)), "farthest has the largest"),
    ("inertia", lambda self: float(self._nearest.sum()), "inertia"),
    (
        "inertia",
        lambda self: float(np.nan_to_num(RightNearness.inertia(self), posinf=0.0)),
        "nearness to no center: inertia",
    ),
    ("sq_dist", lambda self, indices: self._nearest[: len(indices)] * 0.999, "sq_dist"),
]

for number, (method, replacement, complaint) in enumerate(BROKEN_NEARNESS):
    broken = type("Broken", (RightNearness,), {method: replacement})
    BROKEN[f"nearness, {method} {number}"] = (
        "nearness",
        lambda self, centers, order=None, broken=broken: broken(
            self._points, self._weight, centers, order, self._pairwise
        ),
        complaint,
    )

# One of each peculiarity is enough: weights with zeros, duplicates, a single center, a far origin.
REVEALING = ["one center", "odd sizes", "plane, many centers", "duplicates", "far from the origin"]
NEEDS_CENTERS = {"utility from the third": 3}
# Differences smaller than float32 resolves cannot be asked of it.
TOO_FINE_FOR_FLOAT32 = {"float32 sums", "square expanded"}


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def complaints(name: str, tolerance: float) -> Iterator[str]:
    """What the comparator says of these rows on the revealing cases."""
    method, replacement, _ = BROKEN[name]
    kind = type("Broken", (ReferenceRows,), {method: replacement})
    for of in REVEALING:
        case = case_named(f"{of}, float64, dense")
        if len(case.centers) < NEEDS_CENTERS.get(name, 1):
            continue
        rows = kind(case.points, case.sample_weight)
        try:
            compare_rows(rows, oracle_of(case), case.centers, tolerance=tolerance)
        except AssertionError as complaint:
            yield str(complaint)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-5])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_found_and_the_quantity_named(name, tolerance):
    if tolerance == 1e-12 or name not in TOO_FINE_FOR_FLOAT32:
        assert any(BROKEN[name][2] in said for said in complaints(name, tolerance))


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


def test_each_case_is_a_new_one_in_its_dtype_and_storage():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert ("float32" in case.name) == (case.points.dtype == np.float32)
        assert ("CSR" in case.name) == sparse.issparse(case.points)
    assert any(np.any(case.sample_weight == 0) for case in CASES if case.sample_weight is not None)
