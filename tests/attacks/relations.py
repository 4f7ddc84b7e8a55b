"""Relations that hold of every estimator, whatever the data: each is a class of attack.

An answer for a row does not change with the rows beside it; a weight acts as copies do; points
times a power of two have centers times it; a saved model loads and answers alike; and a container
of the same numbers changes no bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import powermeans
from tests.attacks.numbers import Case, described, drawn_case, held
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

# Of answers for a row; labels are the same to the last bit.
ROUNDING = {"f4": 2e-5, "f8": 1e-9}
ANSWERS = ("predict", "transform", "memberships", "score_samples")
LARGEST_SQUARED = 1e140
OF_ROWS = (
    *(powermeans.MiniBatchPowerKMeans, powermeans.KernelPowerKMeans),
    *(powermeans.GradientKMeans, powermeans.OnlineKMeans),
)
Relation = Callable[[Case, np.random.Generator, Path], None]


def answers(model: Any, points: Any) -> Iterator[tuple[str, Any]]:
    """Yield what each method that answers for rows says."""
    for name in ANSWERS:
        if hasattr(model, name):
            yield name, np.asarray(getattr(model, name)(points))


def are_close(one: Any, other: Any, dtype: Any) -> bool:
    if one.dtype.kind in "iu":
        return bool(np.array_equal(one, other))
    least = 64 * np.finfo(np.float64).eps * np.abs(one).max(initial=0.0)
    return bool(np.allclose(one, other, rtol=ROUNDING[np.dtype(dtype).str[1:]], atol=least))


def tame(case: Case, rng: np.random.Generator) -> Any:
    """Return the points in float32 or float64, with far ones among them now and then."""
    points = held(case.data.points)
    if case.subject.domain == "any" and rng.random() < 0.5:
        points = points.copy()
        factor = 10.0 ** rng.integers(3, 9)
        points[rng.integers(len(points))] *= points.dtype.type(factor)
    return points


def fitted(case: Case, points: Any, weights: Any) -> Any:
    more = {} if weights is None else {"sample_weight": weights}
    return clone(case.subject.model).fit(points, **more)


def judge_neighbours(case: Case, rng: np.random.Generator, folder: Path) -> None:
    """Ask for all rows, and for some of them alone."""
    points = tame(case, rng)
    model = fitted(case, points, case.data.weights)
    if not hasattr(model, "cluster_centers_"):  # of a kernel
        return
    some = np.unique(rng.integers(len(points), size=3))
    alone = dict(answers(model, points[some]))
    for name, among in answers(model, points):
        if not are_close(among[some], alone[name], points.dtype):
            raise Failure(f"{name} of rows {some} is {alone[name]!r} alone, {among[some]!r} among")


def judge_copies(case: Case, rng: np.random.Generator, folder: Path) -> None:
    """Give whole weights, and then as many copies."""
    points, weights = held(case.data.points), rng.integers(0, 4, size=len(case.data.points))
    if not case.subject.takes_weights or weights.sum() < 3:
        return
    # Batches and kernels with landmarks are of rows, as their pages say.
    if isinstance(case.subject.model, OF_ROWS):
        return
    one = fitted(case, points, weights)
    other = fitted(case, np.repeat(points, weights, axis=0), None)
    if np.shape(one.cluster_centers_) != np.shape(other.cluster_centers_):
        raise Failure(
            f"{len(one.cluster_centers_)} centers, {len(other.cluster_centers_)} of copies"
        )
    # Rounding may choose another of two optima that are alike, but none that is worse by much.
    least = ROUNDING[points.dtype.str[1:]] ** 1.5 * (1 + np.nansum(np.square(points.astype(float))))
    if not np.isclose(one.inertia_, other.inertia_, rtol=0.3, atol=least):
        raise Failure(f"the inertia is {one.inertia_}, and {other.inertia_} of copies")


def judge_scale(case: Case, rng: np.random.Generator, folder: Path) -> None:
    """Multiply by a power of two."""
    points = held(case.data.points)
    is_free = case.subject.domain == "any" and case.subject.distances is not None
    size = np.abs(points[points != 0]) if is_free else np.array([])
    if not len(size) or not case.subject.has_one_rounding:
        return
    if isinstance(case.subject.model, powermeans.GradientKMeans):
        return
    exponent = int(rng.integers(-60, 60))
    factor = max(2.0**exponent, 1.0), min(2.0**exponent, 1.0)
    least, most = float(size.min()) * factor[1], float(size.max()) * factor[0]
    if not (least > 1e-15 and most < 1e15):
        return  # float32 squares would leave their range
    if (weights := case.data.weights) is not None:
        of_weight = np.asarray(weights)[np.asarray(weights) > 0]
        if not (of_weight.min(initial=1.0) > 1e-200 and of_weight.max(initial=1.0) < 1e200):
            return  # as would products with squares, in float64
    one = fitted(case, points, case.data.weights).cluster_centers_
    scaled = fitted(case, np.ldexp(points, exponent), case.data.weights).cluster_centers_
    if case.subject.model.get_params().get("divergence") == "cosine":
        scaled = np.ldexp(scaled, exponent)
    # Numbers below the normal ones have fewer digits.
    has_digits = np.minimum(np.abs(scaled), np.abs(one)) >= np.finfo(one.dtype).tiny
    if not np.array_equal(np.ldexp(scaled, -exponent)[has_digits], one[has_digits]):
        raise Failure(f"points times 2^{exponent} have other centers")


def judge_loading(case: Case, rng: np.random.Generator, folder: Path) -> None:
    """Save, load, and ask both."""
    points = held(case.data.points)
    model = fitted(case, points, case.data.weights)
    powermeans.save(model, folder / "model.pm")
    loaded = powermeans.load(folder / "model.pm")
    found = dict(answers(loaded, points))
    for name, answer in answers(model, points):
        is_same = np.array_equal(answer, found[name])
        # LAPACK decomposes a covariance again, and may round otherwise.
        may_round = not case.subject.has_one_rounding
        if not (is_same or (may_round and np.allclose(answer, found[name], rtol=1e-6))):
            raise Failure(f"{name} of the loaded model is another")


def attack(judge: Relation) -> Attack:
    """Return the class of attack that judges by a relation."""

    def prepare(folder: Path) -> Try:
        def one(rng: random.Random) -> str:
            numbers = np.random.default_rng(rng.getrandbits(64))
            case = drawn_case(numbers)
            size = np.nanmax(np.abs(case.data.points.astype(float)))
            if case.data.is_faulty or not size < LARGEST_SQUARED:
                return REFUSED
            case = replace(case, given=held(case.data.points))
            with described(case):
                try:
                    judge(case, numbers, folder)
                except (ValueError, TypeError) as error:
                    if not str(error).strip():
                        raise
                    return REFUSED
            return RIGHT

        return one

    return Attack(prepare)


ATTACKS = {
    "neighbours": attack(judge_neighbours),
    "copies": attack(judge_copies),
    "scale": attack(judge_scale),
    "loading": attack(judge_loading),
}
