"""Compare rows of any kind with an oracle, quantity by quantity, on inputs that are hard on rows.

A tolerance t means: the rows may take every distance (not squared) wrong by t times itself plus t
times the extent of the data, and every value wrong by t times the largest of its feature. What
that can do to weights, labels and sums is worked out here point by point, so a power of -1e6, a
point between two centers and float32 need no looser test for all the rest.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences import SquaredEuclidean
from powermeans.mathematics.power_mean import power_mean, power_mean_weights
from powermeans.mathematics.rules import rule_at
from powermeans.mathematics.sums import Sums
from powermeans.points.by_definition import greedy_seeds_by_definition
from powermeans.points.protocol import Nearness, Points
from powermeans.scale.parted_rows import PartedPoints
from powermeans.types import FloatArray, Matrix, SparseMatrix

Pairwise = Callable[[FloatArray, FloatArray], FloatArray]

POWERS = (-math.inf, -0.1, -1.0, -3.3, -20.0, -1e3, -1e6)
TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def greedy_seeds(rows, order, first, others, exponent=2.0):
    """Return the seeds of greedy k-means++, in the way of the rows where they have one."""
    if exponent == 2 and rows.sampler is not None:
        return rows.sampler.greedy_seeds(order, first, others)
    return greedy_seeds_by_definition(rows, order, first, others, exponent)


def all_that_rows_say(rows, centers, rules):
    """Yield what rows compute at these centers, in an order, for comparisons bit by bit."""
    some, is_in_parts = np.array([rows.n_points - 1, 3, 3, 0]), isinstance(rows, PartedPoints)
    order = None if is_in_parts else np.arange(rows.n_points)[::-1].copy()
    for rule in rules:
        sums = rows.sweep(centers, rule)
        yield from (sums.points, sums.weights, sums.objective, sums.inertia)
        sums = rows.sweep(sums.centers(fallback=centers), rule)  # with what the first one left
        yield from (sums.points, sums.weights, sums.objective)
    spread, nearness = rows.spread(centers), rows.nearness(centers[:2], order)
    yield from (spread.error, spread.utility, spread.weights, *rows.assign(centers))
    draws = nearness.draw(np.linspace(0, 0.999, 50))
    yield from (draws, nearness.potentials(draws), nearness.farthest())
    yield from (rows.take(some), nearness.sq_dist(some))
    if not is_in_parts:
        numbers = np.random.default_rng(0).uniform(size=(30, 9))
        yield from (rows.sq_distances(centers), greedy_seeds(rows, order, 0.3, numbers))
        yield rows.moves.move_points(centers, 1).centers


def compare_rows(
    rows: Points,
    oracle: Points,
    centers: FloatArray,
    *,
    tolerance: float,
    powers: Sequence[float] = POWERS,
    pairwise: Pairwise = SquaredEuclidean().pairwise,
) -> None:
    """Raise AssertionError, naming the quantity, where rows and oracle differ by too much.

    The oracle has the same points and weights, and is trusted. Sweeps are by these powers, where
    -inf is the hard rule, and `pairwise` gives what the rows call squared distances.
    """
    truth = _Truth.of(oracle, centers, tolerance, pairwise)
    _compare_points(rows, oracle, truth)
    for power in powers:
        _compare_sweep(rows, oracle, truth, power)
    _compare_spread(rows, oracle, truth)
    _compare_assignment(rows, oracle, truth)
    is_in_parts = isinstance(rows, PartedPoints)
    _compare_nearness(rows, oracle, truth, is_walked=not is_in_parts)
    _compare_farthest_points(rows, oracle, truth)
    # Points in parts are too many for all their distances, and to be walked along in an order.
    if not is_in_parts:
        sq_dist, expected = rows.sq_distances(centers), oracle.sq_distances(centers)
        _equal("sq_distances: dtype", sq_dist.dtype, oracle.dtype)
        _close("sq_distances", sq_dist, expected, truth.error_of(truth.sq_dist))
        _compare_seeds(rows, oracle, truth)


def assert_same_sums(sums: Sums, expected: Sums, tolerance: float) -> None:
    of_points = tolerance * (np.abs(expected.points).max() + np.abs(expected.points))
    of_weights = tolerance * (expected.weights.max() + expected.weights)
    _close("points", sums.points, expected.points, of_points)
    _close("weights", sums.weights, expected.weights, of_weights)
    _close("objective", sums.objective, expected.objective, tolerance * abs(expected.objective))
    _close("inertia", sums.inertia, expected.inertia, tolerance * abs(expected.inertia))


@dataclass(frozen=True, slots=True)
class _Truth:
    """The points and what follows from them by formula, and by how much it may be missed."""

    points: FloatArray
    weights: FloatArray
    centers: FloatArray
    sq_dist: FloatArray
    extent: float
    tolerance: float
    pairwise: Pairwise

    @classmethod
    def of(cls, oracle: Points, centers: FloatArray, tolerance: float, pairwise: Pairwise):
        everything = np.arange(oracle.n_points)
        points = oracle.take(everything)
        extent = math.sqrt(np.max(pairwise(points, points.mean(axis=0)[None, :])))
        sq_dist = pairwise(points, centers)
        weights = oracle.sample_weight(everything)
        return cls(points, weights, centers, sq_dist, extent, tolerance, pairwise)

    def error_of(self, sq_dist: FloatArray) -> FloatArray:
        """By how much a squared distance may be wrong."""
        distance = np.sqrt(sq_dist)
        return (distance + self.tolerance * (distance + self.extent)) ** 2 - sq_dist

    def is_first_of_its_place(self) -> NDArray[np.bool_]:
        """False for centers at the very place of an earlier one."""
        _, first = np.unique(self.centers, axis=0, return_index=True)
        is_first = np.zeros(len(self.centers), dtype=bool)
        is_first[first] = True
        return is_first

    def may_be_nearest(self) -> NDArray[np.bool_]:
        """(n_points, n_centers): which labels are right within the tolerance."""
        nearest = self.sq_dist.min(axis=1, keepdims=True)
        within = self.sq_dist - self.error_of(self.sq_dist) <= nearest + self.error_of(nearest)
        return within & self.is_first_of_its_place()

    def is_contested(self) -> NDArray[np.bool_]:
        """(n_points, n_centers): where a point could as well go to this center as to another."""
        may_be_nearest = self.may_be_nearest()
        return may_be_nearest & (may_be_nearest.sum(axis=1, keepdims=True) > 1)


def _compare_points(rows: Points, oracle: Points, truth: _Truth) -> None:
    _equal("n_points", rows.n_points, oracle.n_points)
    _equal("n_features", rows.n_features, oracle.n_features)
    _equal("dtype", rows.dtype, oracle.dtype)
    chosen = np.arange(oracle.n_points)[::-2].copy()
    _equal("take", rows.take(chosen), oracle.take(chosen))
    _equal("sample_weight", rows.sample_weight(chosen), oracle.sample_weight(chosen))
    sample, expected = rows.sample(chosen), oracle.sample(chosen)
    _equal("sample: is sparse", sparse.issparse(sample), sparse.issparse(expected))
    _equal("sample: dtype", sample.dtype, expected.dtype)
    _equal("sample", _dense(sample), _dense(expected))
    tolerance = truth.tolerance
    total = oracle.total_weight
    _close("total_weight", rows.total_weight, total, tolerance * total)
    typical = truth.weights @ np.abs(truth.points) / total
    _close("mean", rows.mean(), oracle.mean(), tolerance * typical)
    rounding = (tolerance * np.abs(truth.points).max()) ** 2
    variance = oracle.mean_variance()
    _close("mean_variance", rows.mean_variance(), variance, tolerance * variance + rounding)


def _compare_sweep(rows: Points, oracle: Points, truth: _Truth, power: float) -> None:
    name, rule = f"sweep at power {power}", rule_at(power)
    sums, expected = rows.sweep(truth.centers, rule), oracle.sweep(truth.centers, rule)
    allowed = truth.weights[:, None] * _allowed_weights(truth, power)
    _close(f"{name}: weights", sums.weights, expected.weights, allowed.sum(axis=0))
    largest = np.abs(truth.points).max(axis=0)
    allowed_points = allowed.sum(axis=0)[:, None] * largest
    _close(f"{name}: points", sums.points, expected.points, allowed_points)
    nearest = truth.sq_dist.min(axis=1)
    relative = _relative_error_of_least(truth)
    means = truth.weights * power_mean(truth.sq_dist, power)
    rounding = truth.weights @ truth.error_of(np.zeros_like(nearest))
    objective_error = truth.tolerance * means.sum() + means @ np.minimum(relative, 1) + rounding
    _close(f"{name}: objective", sums.objective, expected.objective, objective_error)
    inertia_error = truth.tolerance * expected.inertia + truth.weights @ truth.error_of(nearest)
    _close(f"{name}: inertia", sums.inertia, expected.inertia, inertia_error)


def _allowed_weights(truth: _Truth, power: float) -> FloatArray:
    """By how much each weight w_ij may be wrong.

    With u_j the share of y_j^s in their sum, the logarithm of w_j has the slopes (s - 1) (1 - u_j)
    by log y_j and (1 - s) u_l by the others; errors of the distances move u_j as well.
    """
    if power == -math.inf:
        hard_weights = truth.may_be_nearest() * truth.tolerance
        return np.maximum(hard_weights, truth.is_contested())
    weights = power_mean_weights(truth.sq_dist, power)
    relative = _relative_error_of_least(truth)[:, None]
    others = 1 - _shares(truth.sq_dist, power)
    with np.errstate(over="ignore"):
        others = np.minimum(1, others * np.exp(np.minimum(700, -2 * power * relative)))
    change = np.expm1(np.minimum(700, 2 * (1 - power) * relative * others))
    return np.minimum(1, weights * (change + truth.tolerance))


def _shares(sq_dist: FloatArray, power: float) -> FloatArray:
    """u_j = y_j^s / sum_l y_l^s; a zero distance has the whole share."""
    nearest = sq_dist.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(sq_dist == nearest, 1.0, sq_dist / nearest)
        shares = ratio**power
    return shares / shares.sum(axis=1, keepdims=True)


def _relative_error_of_least(truth: _Truth) -> FloatArray:
    """Relative error of the least distance of each point; none where a point is on a center."""
    nearest = truth.sq_dist.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(nearest > 0, truth.error_of(nearest) / nearest, 0.0)


def _compare_spread(rows: Points, oracle: Points, truth: _Truth) -> None:
    spread, expected = rows.spread(truth.centers), oracle.spread(truth.centers)
    tolerance, weights = truth.tolerance, truth.weights[:, None]
    may_be_mine, contested = weights * truth.may_be_nearest(), weights * truth.is_contested()
    nearest = truth.sq_dist.min(axis=1, keepdims=True)
    weight_error = tolerance * expected.weights + contested.sum(axis=0)
    _close("spread: weights", spread.weights, expected.weights, weight_error)
    error_of_error = np.sum(may_be_mine * truth.error_of(nearest) + contested * nearest, axis=0)
    error_of_error += tolerance * expected.error
    _close("spread: error", spread.error, expected.error, error_of_error)
    if len(truth.centers) == 1:
        _equal("spread: utility of a single center", spread.utility, np.array([np.inf]))
        return
    second = np.sort(truth.sq_dist, axis=1)[:, 1:2]
    summed = tolerance * second + truth.error_of(second) + truth.error_of(nearest)
    utility_error = np.sum(may_be_mine * summed + contested * second, axis=0)
    _close("spread: utility", spread.utility, expected.utility, utility_error)


def _compare_assignment(rows: Points, oracle: Points, truth: _Truth) -> None:
    labels, inertia = rows.assign(truth.centers)
    _equal("assign: dtype of labels", labels.dtype, np.dtype(np.int32))
    _equal("assign: number of labels", labels.shape, (oracle.n_points,))
    is_first = truth.is_first_of_its_place()
    _check("assign: labels are the first of several centers at one place", is_first[labels])
    is_right = truth.may_be_nearest()[np.arange(len(labels)), labels]
    _check("assign: labels are those of the nearest centers", is_right)
    _, expected = oracle.assign(truth.centers)
    allowed = truth.tolerance * expected + truth.weights @ truth.error_of(truth.sq_dist.min(axis=1))
    _close("assign: inertia", inertia, expected, allowed)


def _compare_nearness(rows: Points, oracle: Points, truth: _Truth, *, is_walked: bool) -> None:
    as_they_come = np.arange(oracle.n_points)
    none = truth.centers[:0]
    nearness, expected = rows.nearness(none), oracle.nearness(none)
    _equal("nearness to no center: inertia", nearness.inertia(), np.inf)
    _compare_draws(nearness, expected, truth, as_they_come, "nearness to no center")
    _compare_potentials(nearness, expected, truth, "nearness to no center")
    n_first = (len(truth.centers) + 1) // 2
    order = np.random.default_rng(0).permutation(oracle.n_points)
    walks = [(None, "nearness"), (order, "nearness in an order")]
    for walk, name in walks if is_walked else walks[:1]:
        nearness = rows.nearness(truth.centers[:n_first], walk)
        expected = oracle.nearness(truth.centers[:n_first], walk)
        walked = as_they_come if walk is None else walk
        _compare_one_nearness(nearness, expected, truth, walked, name)
        for center in truth.centers[n_first:]:
            nearness.add(center)
            expected.add(center)
        _compare_one_nearness(nearness, expected, truth, walked, f"{name} after adding centers")


def _compare_one_nearness(nearness, oracle, truth, order, name):
    everything = np.arange(len(truth.points))
    sq_dist = oracle.sq_dist(everything)
    error = truth.error_of(sq_dist)
    _close(f"{name}: sq_dist", nearness.sq_dist(everything), sq_dist, error)
    inertia = oracle.inertia()
    inertia_error = truth.tolerance * inertia + truth.weights @ error
    _close(f"{name}: inertia", nearness.inertia(), inertia, inertia_error)
    _compare_farthest(nearness, truth, sq_dist, name)
    _compare_potentials(nearness, oracle, truth, name)
    _compare_draws(nearness, oracle, truth, order, name)


def _compare_farthest(nearness: Nearness, truth: _Truth, sq_dist: FloatArray, name: str) -> None:
    farthest = nearness.farthest()
    weighted, error = truth.weights * sq_dist, truth.weights * truth.error_of(sq_dist)
    is_far_enough = weighted[farthest] + error[farthest] >= np.max(weighted - error)
    _check(f"{name}: farthest has the largest weighted distance", is_far_enough)
    is_alike = np.all(truth.points == truth.points[farthest], axis=1)
    is_alike &= truth.weights == truth.weights[farthest]
    _equal(f"{name}: farthest is the first of its like", farthest, int(np.argmax(is_alike)))


def _compare_farthest_points(rows: Points, oracle: Points, truth: _Truth) -> None:
    """Each is the farthest from the centers and from those before it."""
    nearness, everyone = oracle.nearness(truth.centers), np.arange(oracle.n_points)
    for number, far in enumerate(rows.farthest(truth.centers, 6)):
        name = f"farthest point {number}"
        sq_dist = nearness.sq_dist(everyone)
        errors = truth.error_of(sq_dist)
        is_it = np.all(truth.points == far.point, axis=1) & (truth.weights == far.weight)
        _check(f"{name}: is one of the points", is_it.any())
        index = int(np.argmax(is_it))
        _close(f"{name}: sq_dist", far.sq_dist, sq_dist[index], errors[index])
        least = np.max(truth.weights * (sq_dist - errors))
        _check(f"{name}: is far enough", far.weight * (sq_dist + errors)[index] >= least)
        _check(f"{name}: label", truth.may_be_nearest()[index, far.label])
        nearness.add(far.point)
    _equal("farthest points: number", number + 1, 6)


def _compare_potentials(nearness: Nearness, oracle: Nearness, truth: _Truth, name: str) -> None:
    candidates = np.unique(np.linspace(0, len(truth.points) - 1, 7).astype(np.intp))
    expected, allowed = _potentials(oracle, truth, candidates)
    _close(f"{name}: potentials", nearness.potentials(candidates), expected, allowed)


def _potentials(oracle, truth, candidates):
    current = oracle.sq_dist(np.arange(len(truth.points)))[:, None]
    sq_dist = truth.pairwise(truth.points, truth.points[candidates])
    error = truth.weights @ truth.error_of(np.minimum(current, sq_dist))
    expected = oracle.potentials(candidates)
    return expected, truth.tolerance * expected + error


def _compare_draws(nearness, oracle, truth, order, name):
    uniforms = np.concatenate([(np.arange(200) + 0.5) / 200, [0.0, np.nextafter(1.0, 0.0)]])
    sq_dist = oracle.sq_dist(np.arange(len(truth.points)))
    for exponent in (1.0, 2.0, 3.0):
        mass, _ = _mass(truth, sq_dist, exponent)
        drawn = nearness.draw(uniforms, exponent)
        _check(f"{name}: draw takes no point without mass at exponent {exponent}", mass[drawn] > 0)
        is_right = _may_be_drawn(truth, sq_dist, exponent, order, uniforms, drawn)
        _check(f"{name}: draw is in proportion to the mass at exponent {exponent}", is_right)


def _may_be_drawn(truth, sq_dist, exponent, order, uniforms, drawn):
    """Whether each number may draw the point, at these distances to the nearest center."""
    mass, error = _mass(truth, sq_dist, exponent)
    share, upper = mass / mass.sum(), np.empty_like(mass)
    upper[order] = np.cumsum(mass[order]) / mass.sum()
    misses = np.maximum(uniforms - upper[drawn], (upper - share)[drawn] - uniforms)
    return (misses <= truth.tolerance + error.sum() / mass.sum()) & (mass[drawn] > 0)


def _compare_seeds(rows: Points, oracle: Points, truth: _Truth) -> None:
    """Each seed is one of the candidates that its numbers draw, and none of these is better."""
    rng = np.random.default_rng(1)
    order, everyone = rng.permutation(oracle.n_points), np.arange(oracle.n_points)
    first, others = 0.4, rng.uniform(size=(len(truth.centers) + 8, 3))
    for exponent in (1.0, 2.0):
        name = f"seeds at exponent {exponent}"
        seeds = greedy_seeds(rows, order, first, others, exponent)
        _equal(f"{name}: shape", np.shape(seeds), (1 + len(others),))
        nearness = oracle.nearness(truth.centers[:0])
        for number, seed in enumerate(seeds):
            numbers = others[number - 1] if number else np.array([first])
            sq_dist = nearness.sq_dist(everyone)
            may_be_drawn = _may_be_drawn(
                truth, sq_dist, exponent, order, numbers[:, None], everyone[None, :]
            )
            _check(f"{name}: seed {number} is one of its candidates", may_be_drawn[:, seed].any())
            if number:
                least, _ = _potentials(nearness, truth, seeds[number : number + 1])
                worst = [
                    np.max(np.add(*_potentials(nearness, truth, np.flatnonzero(candidates))))
                    for candidates in may_be_drawn
                ]
                _check(f"{name}: seed {number} leaves the least inertia", least <= worst)
            nearness.add(oracle.take(seeds[number : number + 1])[0])


def _mass(truth: _Truth, sq_dist: FloatArray, exponent: float) -> tuple[FloatArray, FloatArray]:
    """Weight times distance to the exponent, in units that cannot overflow, and its error."""
    farthest = np.max(sq_dist[truth.weights > 0])
    weights = truth.weights / truth.weights.max()
    if not 0 < farthest < np.inf:
        return weights, np.zeros_like(weights)
    mass = weights * (sq_dist / farthest) ** (exponent / 2)
    largest = weights * ((sq_dist + truth.error_of(sq_dist)) / farthest) ** (exponent / 2)
    return mass, 2 * (largest - mass)


def _check(claim: str, holds: NDArray[np.bool_] | np.bool_ | bool) -> None:
    wrong = np.flatnonzero(~np.atleast_1d(holds))
    if len(wrong):
        raise AssertionError(
            f"{claim}: not so for {len(wrong)} of {np.size(holds)}, first {wrong[0]}"
        )


def _equal(quantity: str, got: object, expected: object) -> None:
    if not np.array_equal(np.asarray(got), np.asarray(expected)):
        raise AssertionError(f"{quantity} differs: {got} instead of {expected}")


def _close(quantity, got, expected, allowed):
    got, expected = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if got.shape != expected.shape:
        raise AssertionError(f"{quantity} has the shape {got.shape} instead of {expected.shape}")
    allowed = np.broadcast_to(allowed, expected.shape)
    # Written so that NaN is a difference.
    is_far = ~(np.abs(got - expected) <= allowed)
    if np.any(is_far):
        first = np.unravel_index(np.argmax(is_far), expected.shape)
        raise AssertionError(
            f"{quantity} differs at {np.count_nonzero(is_far)} of {expected.size} places, first at "
            f"{[int(i) for i in first]}: {float(got[first])} instead of {float(expected[first])}, "
            f"allowed {float(allowed[first]):.3g}"
        )


def _dense(points: Matrix | SparseMatrix) -> Matrix:
    return points.toarray() if sparse.issparse(points) else points


@dataclass(frozen=True, slots=True)
class Case:
    """Points of one dtype, dense or CSR, with weights and centers."""

    name: str
    points: Matrix | SparseMatrix
    sample_weight: FloatArray | None
    centers: FloatArray

    @property
    def tolerance(self) -> float:
        """What rows of this dtype have to keep."""
        return TOLERANCES[self.points.dtype]

    def __str__(self) -> str:
        return self.name


def varied_cases(dtypes=(np.float64, np.float32), storages=("dense", "CSR")):
    """All plain cases in these dtypes and storages. Values are such that float32 holds them."""
    ways = {"dense": np.asarray, "CSR": sparse.csr_array}
    return [
        Case(
            f"{case.name}, {np.dtype(dtype).name}, {storage}",
            ways[storage](case.points.astype(dtype)),
            case.sample_weight,
            case.centers,
        )
        for case in _plain_cases(np.random.default_rng(0))
        for dtype in dtypes
        for storage in storages
    ]


def _plain_cases(rng: np.random.Generator) -> list[Case]:
    return [
        Case("one point, one center", np.array([[3.0]]), None, np.array([[1.5]])),
        Case("a center on each point", np.array([[1.0], [2.0]]), None, np.array([[2.0], [1.0]])),
        _blobs(rng, "one feature", 60, 1, 4),
        _blobs(rng, "one center", 50, 3, 1, weights="zeros"),
        _blobs(rng, "plane", 200, 2, 8),
        _blobs(rng, "plane, many centers", 200, 2, 40, weights="random"),
        _blobs(rng, "odd sizes", 37, 3, 5, weights="zeros"),
        _blobs(rng, "many chunks", 5000, 2, 3, weights="zeros"),
        _blobs(rng, "sixty-four features", 200, 64, 17, weights="random"),
        _blobs(rng, "wide", 40, 700, 6),
        _blobs(rng, "weights of 1e-200", 80, 4, 5, weights="tiny"),
        _blobs(rng, "weights of 1e200", 80, 4, 5, weights="huge"),
        _blobs(rng, "weights of 1e-60 beside one", 80, 4, 5, weights="unlike"),
        _blobs(rng, "values of 1e-17", 90, 3, 6, scale=1e-17),
        _blobs(rng, "values of 1e17", 90, 3, 6, scale=1e17),
        # At a power near zero, the weight of a point at its center is 1e30 times that of others.
        Case("centers on many", x := _float32_values(rng.normal(size=(200, 2))), None, 1 * x[:60]),
        _blobs(rng, "far from the origin", 300, 3, 7, shift=1e4, weights="zeros"),
        _blobs(rng, "far from the origin, many features", 200, 40, 7, shift=1e4),
        _mostly_zeros(rng),
        Case(
            "heavy tails", x := _float32_values(rng.standard_cauchy((400, 3))), None, 1.01 * x[:9]
        ),
        _duplicated(rng),
        _lattice(rng),
    ]


def _blobs(rng, name, n_points, n_features, n_centers, *, weights="none", scale=1.0, shift=0.0):
    middles = rng.normal(scale=3, size=(n_centers, n_features))
    points = middles[rng.integers(n_centers, size=n_points)]
    points = _float32_values(scale * (points + rng.normal(size=points.shape) + shift))
    centers = scale * (middles + 0.3 * rng.normal(size=middles.shape) + shift)
    # Some centers on points: there the distance is zero.
    centers[::3] = points[: len(centers[::3])]
    return Case(name, points, _weights(rng, weights, n_points), centers)


def _weights(rng: np.random.Generator, kind: str, n_points: int) -> FloatArray | None:
    if kind == "none":
        return None
    weights = rng.exponential(size=n_points)
    if kind == "zeros":
        weights[rng.uniform(size=n_points) < 0.3] = 0
        weights[0] = 1.0
    if kind == "unlike":
        weights[: n_points // 2] *= 1e-60
    return weights * {"tiny": 1e-200, "huge": 1e200}.get(kind, 1.0)


def _mostly_zeros(rng: np.random.Generator) -> Case:
    """Rows and columns without any entry among them."""
    points = rng.exponential(size=(150, 50)) * (rng.uniform(size=(150, 50)) < 0.08)
    points[[0, 70, 149]] = 0
    points[:, [0, 20, 49]] = 0
    points = _float32_values(points)
    centers = np.vstack([points[:2], rng.exponential(0.1, size=(7, 50))])
    return Case("mostly zeros", points, _weights(rng, "zeros", 150), centers)


def _duplicated(rng: np.random.Generator) -> Case:
    """Points that occur again, centers at the same place, a constant column."""
    points = _float32_values(np.repeat(rng.normal(size=(20, 4)), 5, axis=0))
    points[:, 2] = 7.0
    centers = np.vstack([points[0], points[50] + 0.1, points[0], points[50] + 0.1, points[99]])
    weights = np.repeat(rng.exponential(size=20).round(1), 5)
    return Case("duplicates", points, weights, centers)


def _lattice(rng: np.random.Generator) -> Case:
    """Many points exactly between centers."""
    points = rng.integers(-4, 5, size=(250, 2)).astype(np.float64)
    centers = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    return Case("lattice", points, None, centers)


def _float32_values(points: FloatArray) -> FloatArray:
    return points.astype(np.float32).astype(np.float64)
