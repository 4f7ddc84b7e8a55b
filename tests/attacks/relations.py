"""Relations that hold of every estimator, whatever the data: each is a class of attack.

An answer for a row does not change with the rows beside it, and a weight acts as copies do.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import powermeans
from powermeans.methods import GradientKMeans, KernelPowerKMeans, OnlineKMeans, SelfOrganizingMap
from tests.attacks import numbers
from tests.attacks.numbers import NOT_OURS, Case, described, drawn_case, has_thin_covariance, held
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

# Of answers for a row; labels are the same to the last bit.
ROUNDING = {"f4": 2e-5, "f8": 1e-9}
ANSWERS = ("predict", "transform", "memberships", "score_samples")
LARGEST_SQUARED = 1e140
OF_ROWS = (powermeans.MiniBatchPowerKMeans, KernelPowerKMeans, GradientKMeans, OnlineKMeans)
Relation = Callable[[Case, np.random.Generator], None]


def answers(model: Any, points: Any) -> Iterator[tuple[str, Any]]:
    """Yield what each method that answers for rows says."""
    for name in ANSWERS:
        if hasattr(model, name):
            yield name, np.asarray(getattr(model, name)(points))


def are_close(one: Any, other: Any, dtype: Any, n_times: float = 1.0) -> bool:
    if one.dtype.kind in "iu":
        return bool(np.array_equal(one, other))
    least = 64 * np.finfo(np.float64).eps * np.abs(one).max(initial=0.0)
    rounding = n_times * ROUNDING[np.dtype(dtype).str[1:]]
    return bool(np.allclose(one, other, rtol=rounding, atol=least))


def tame(case: Case, rng: np.random.Generator) -> Any:
    """Return the points in float32 or float64, with far ones among them now and then."""
    points = held(case.data.points)
    if case.subject.domain == "any" and rng.random() < 0.5:
        points = points.copy()
        factor = 10.0 ** rng.integers(3, 9)
        far = rng.integers(len(points))
        if np.abs(points[far]).max() < np.finfo(points.dtype).max / factor:
            points[far] *= points.dtype.type(factor)
    return points


def fitted(case: Case, points: Any, weights: Any) -> Any:
    more = {} if weights is None else {"sample_weight": weights}
    return clone(case.subject.model).fit(points, **more)


def judge_neighbours(case: Case, rng: np.random.Generator) -> None:
    """Ask for all rows, and for some of them alone."""
    points = tame(case, rng)
    model = fitted(case, points, case.data.weights)
    if not hasattr(model, "cluster_centers_"):  # of a kernel
        return
    some = np.unique(rng.integers(len(points), size=3))
    alone = dict(answers(model, points[some]))
    rows = replace(case.data, points=points[some], weights=None)
    of_some = replace(case, data=rows, subject=replace(case.subject, sums_distances=False))
    for name, among in answers(model, points):
        if name == "memberships" and is_rounding_shared(model, points):
            continue
        # Centers whose squared distances vanish are all as near.
        largest = np.nanmax(np.abs(points[some]), axis=1)
        if name == "predict" and ((largest > 0) & (largest < 1e-154)).any():
            continue
        # A power multiplies the rounding of the distances that it is taken of.
        n_times = 1 + abs(getattr(model, "power_", 0.0)) if name == "memberships" else 1.0
        if name == "predict" and all(
            numbers.are_as_near(of_some, model, labels) for labels in (among[some], alone[name])
        ):
            continue
        if not are_close(among[some], alone[name], points.dtype, n_times):
            raise Failure(f"{name} of rows {some} is {alone[name]!r} alone, {among[some]!r} among")


def is_rounding_shared(model: Any, points: Any) -> bool:
    """Return whether last digits of a distance are many variances, which share out its point."""
    if not hasattr(model, "variances_"):
        return False
    return bool((model.transform(points) > 3e6 * np.sqrt(model.variances_)).any())


def judge_copies(case: Case, rng: np.random.Generator) -> None:
    """Give whole weights, and then as many copies."""
    points, weights = held(case.data.points), rng.integers(0, 4, size=len(case.data.points))
    if not case.subject.takes_weights or weights.sum() < 3:
        return
    # Batches and kernels with landmarks are of rows, as their pages say.
    if isinstance(case.subject.model, OF_ROWS):
        return
    one = fitted(case, points, weights)
    other = fitted(case, np.repeat(points, weights, axis=0), None)
    weighing = points[weights > 0].astype(float)
    n_one, n_other = len(one.cluster_centers_), len(other.cluster_centers_)
    # A price lies between inertias at which descents end, and rounding may send these elsewhere.
    costs = cost_of(one), cost_of(other)
    is_as_good = (
        hasattr(one, "objective_") and np.isfinite(costs).all() and max(costs) <= 1.3 * min(costs)
    )
    if n_one != n_other and not (
        is_as_good or is_price_rounding(one, weights.sum(), points.dtype, weighing)
    ):
        raise Failure(f"{n_one} centers, {n_other} of copies")
    # Maps begin along two principal axes.
    lengths = np.linalg.svd(weighing - weighing.mean(axis=0), compute_uv=False)
    if isinstance(one, SelfOrganizingMap) and (lengths[1:2] < 1e-6 * lengths[0]).all():
        return
    is_flat = len(weighing) <= points.shape[1]  # so few points have no covariance
    if case.subject.distances == "covariance_" and (is_flat or has_thin_covariance(one)):
        return
    # Rounding may choose another of two optima that are alike, but none that is worse by much.
    least = ROUNDING[points.dtype.str[1:]] ** 1.5 * (1 + float(np.nansum(np.square(weighing))))
    if case.subject.domain == "positive":  # whose distances have units of their own
        alone = clone(case.subject.model).set_params(n_clusters=1, max_iter=300)
        least *= max(1.0, float(alone.fit(points, sample_weight=weights).inertia_))
        # Nor is a mean nearer to its points than to some units in the last place, in float32 of the
        # largest row, which may have no weight.
        off = 2.0**-49 * weighing
        if points.dtype == np.float32:
            off = off + np.finfo(np.float32).eps * np.abs(points).max(axis=0)
        apart = case.subject.distances(weighing[:, None], (weighing + off)[None])
        least = max(least, float(weights.sum() * np.diagonal(apart).max()))
    highest, lowest = max(costs), min(costs)
    given = case.subject.model.get_params()
    is_alone = given.get("init") == "random" and given.get("n_init") == 1
    if given.get("effort") == "none" or given.get("max_iter") == 1 or is_alone:
        # Descents end wherever rounding sends one at ties, and are far from the lowest if they are
        # cut short, or begin anywhere; from where they end, copies must not rise.
        from_one = clone(case.subject.model).set_params(init=one.cluster_centers_)
        highest, lowest = cost_of(from_one.fit(np.repeat(points, weights, axis=0))), costs[0]
    if not highest <= 1.3 * lowest + least:
        raise Failure(f"the cost is {costs[0]}, and {costs[1]} of copies")


def cost_of(model: Any) -> float:
    """Return what a fit lowers, which is at least zero."""
    cost = float(getattr(model, "objective_", model.inertia_))
    if not hasattr(model, "feature_weights_"):
        return cost
    return cost + model.penalty_ * float(np.log(len(model.feature_weights_)))


def is_price_rounding(model: Any, total: float, dtype: Any, points: Any) -> bool:
    """Return whether a center costs no more than rounding leaves if every point is at one.

    A mean of copies may miss them by a thousand units in the last place, as the package says.
    """
    share = max(1e3 * np.finfo(np.float64).eps, 4 * np.finfo(dtype).eps)
    largest = np.sqrt(np.nansum(np.square(points), axis=1).max())
    return bool(getattr(model, "penalty_", np.inf) <= total * (share * largest) ** 2)


def attack(judge: Relation) -> Attack:
    """Return the class of attack that judges by a relation."""

    def prepare(folder: Path) -> Try:
        def one(rng: random.Random) -> str:
            drawing = np.random.default_rng(rng.getrandbits(64))
            case = drawn_case(drawing)
            size = np.nanmax(np.abs(case.data.points.astype(float)))
            if case.data.is_faulty or not size < LARGEST_SQUARED:
                return REFUSED
            case = replace(case, given=held(case.data.points))
            with described(case):
                try:
                    judge(case, drawing)
                except (ValueError, TypeError) as error:
                    if not str(error).strip() or NOT_OURS.search(str(error)):
                        raise
                    return REFUSED
            return RIGHT

        return one

    return Attack(prepare)


ATTACKS = {"neighbours": attack(judge_neighbours), "copies": attack(judge_copies)}
