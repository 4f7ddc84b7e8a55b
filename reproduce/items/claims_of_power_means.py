"""What the sources say about power means, their slopes and the objectives made of them."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize

from powermeans.mathematics.power_mean import objective, power_mean, power_mean_gradient
from powermeans.mathematics.rules import Gaussian, Power
from powermeans.types import FloatArray
from reproduce.rows import mean_and_error
from reproduce.verdicts import Checks, Figures, above, paired_gain, together

TITLE = "Power means: what the sources say about them"
SOURCE = "The paper, sections 1.2 to 3.1"
DATA = "random cases"

PAPER = "the paper, section {}"
ROUNDING = 1e-9
CHECKS = Checks()
cells, findings = CHECKS.cells, CHECKS.findings
POWERS = (-1.0, -10.0, -100.0, -1000.0)
# In each coordinate, beside points in the unit box.
FAR_AWAY = 10.0


def by_power(values: dict[float, float]) -> dict[str, float]:
    """Name the figure of each power, such as `at_10` of -10."""
    return {f"at_{-power:g}": float(value) for power, value in values.items()}


def apart(one: float, other: float) -> float:
    """How far two numbers are from each other, relative to the second."""
    return float(abs(one / other - 1))


# The power mean of distances.


def distances(n_cases, highest=1.0):
    """Random distances to two to eight centers, and a power below the highest."""
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        sq_dist = rng.lognormal(sigma=2.0, size=rng.integers(2, 9))
        yield rng, sq_dist, highest - rng.lognormal(sigma=1.5)


def by_definition(sq_dist: FloatArray, power: float) -> float:
    """M_s as it is written, also above s = 1, in units of the entry that counts most."""
    unit = sq_dist.max() if power > 0 else sq_dist.min()
    return float(unit * np.mean((sq_dist / unit) ** power) ** (1 / power))


@CHECKS.claim(
    "The derivatives of the power mean are those of equation (5), and it rises in each entry.",
    PAPER.format("1.2"),
    "{n_cases} random cases: {deviation:.1e} from differences at most; least slope {lowest:.1e}.",
    lambda deviation, lowest: deviation < 1e-5 and lowest >= 0,
)
def _slopes(n_cases: int) -> Figures:
    deviations, lowest = [], math.inf
    for _, sq_dist, power in distances(n_cases, highest=0.0):
        by_formula = power_mean_gradient(sq_dist, power)
        steps = 1e-5 * np.diag(sq_dist)
        change = power_mean(sq_dist + steps, power) - power_mean(sq_dist - steps, power)
        by_differences = change / (2 * steps.diagonal())
        deviations.append(np.abs(by_formula - by_differences).max() / by_formula.max())
        lowest = min(lowest, float(by_formula.min()))
    return {"deviation": max(deviations), "lowest": lowest}


@CHECKS.claim(
    "M(y, ..., y) = y; a group may be replaced by its mean; M_s(cy) = c M_s(y).",
    PAPER.format("1.2"),
    "{n_cases} random cases: off by {alike:.0e}, {grouped:.0e} and {scaled:.0e} at most.",
    lambda alike, grouped, scaled: max(alike, grouped, scaled) < ROUNDING,
)
def _identities(n_cases: int) -> Figures:
    alike, grouped, scaled = [], [], []
    for rng, sq_dist, power in distances(n_cases):
        factor, whole = rng.lognormal(), power_mean(sq_dist, power)
        alike.append(apart(power_mean(np.full(5, factor), power), factor))
        in_group = int(rng.integers(1, len(sq_dist)))
        replaced = sq_dist.copy()
        replaced[:in_group] = power_mean(sq_dist[:in_group], power)
        grouped.append(apart(power_mean(replaced, power), whole))
        scaled.append(apart(power_mean(factor * sq_dist, power), factor * whole))
    return {"alike": max(alike), "grouped": max(grouped), "scaled": max(scaled)}


@CHECKS.claim(
    "M_s tends to the largest entry as s rises and to the smallest as it falls.",
    PAPER.format("1.2, equation (6)"),
    "At s = ±100 000 off by {to_largest:.1e} and {to_least:.1e} at most.",
    lambda to_least, to_largest: max(to_least, to_largest) < 1e-4,
)
def _limits(n_cases: int) -> Figures:
    cases = [sq_dist for _, sq_dist, _ in distances(n_cases)]
    return {
        "to_least": max(apart(power_mean(each, -1e5), each.min()) for each in cases),
        "to_largest": max(apart(by_definition(each, 1e5), each.max()) for each in cases),
    }


@CHECKS.claim(
    "M_s(y) ≤ M_t(y) for s ≤ t.",
    PAPER.format("1.2"),
    "{n_wrong:.0f} exceptions in {n_cases} random cases.",
    lambda n_wrong: n_wrong == 0,
)
def _order(n_cases: int) -> Figures:
    return {
        "n_wrong": sum(
            power_mean(sq_dist, power - rng.lognormal())
            > power_mean(sq_dist, power) * (1 + ROUNDING)
            for rng, sq_dist, power in distances(n_cases)
        )
    }


@CHECKS.claim(
    "M_s is concave for s ≤ 1 and convex above, neither of them strictly.",
    PAPER.format("2"),
    "{n_convex:.0f} and {n_concave:.0f} exceptions in {n_cases} random cases; along y itself "
    "it bends by {along:.0e}.",
    lambda n_convex, n_concave, along: n_convex + n_concave == 0 and along < ROUNDING,
)
def _curvature(n_cases: int) -> Figures:
    n_convex, n_concave, along = 0, 0, 0.0
    for rng, sq_dist, power in distances(n_cases):
        step = 1e-2 * sq_dist * rng.uniform(-1, 1, size=len(sq_dist))
        n_convex += bend(sq_dist, step, power) > ROUNDING
        n_concave += bend(sq_dist, step, 2 - power) < -ROUNDING
        along = max(along, abs(bend(sq_dist, 0.1 * sq_dist, power)))
    return {"n_convex": n_convex, "n_concave": n_concave, "along": along}


def bend(sq_dist: FloatArray, step: FloatArray, power: float) -> float:
    """The second difference of M_s, relative to M_s: below zero where it is concave."""
    heights = [by_definition(sq_dist + sign * step, power) for sign in (-1, 0, 1)]
    return (heights[0] - 2 * heights[1] + heights[2]) / heights[1]


@CHECKS.claim(
    "The linear function (9) touches M_s at its anchor and lies nowhere below it.",
    PAPER.format("2, inequality (9)"),
    "{n_below:.0f} exceptions in {n_cases} random cases; off by {touching:.0e} at the anchor.",
    lambda n_below, touching: n_below == 0 and touching < ROUNDING,
)
def _majorization(n_cases: int) -> Figures:
    n_below, gaps = 0, []
    for rng, anchor, power in distances(n_cases, highest=0.0):
        sq_dist = rng.lognormal(sigma=2.0, size=len(anchor))
        slope, height = power_mean_gradient(anchor, power), power_mean(anchor, power)
        line = height + slope @ (sq_dist - anchor)
        n_below += int(line < power_mean(sq_dist, power) * (1 - ROUNDING))
        gaps.append(apart(slope @ anchor, height))
    return {"n_below": n_below, "touching": max(gaps)}


@CHECKS.claim(
    "With distances nearly alike the slopes at s = −1 are far from those of the minimum, and "
    "they tend to those as s → −∞.",
    PAPER.format("2.1"),
    "Distances that differ by 2 to 22 %: slopes off by up to {at_1:.3f} at s = −1, "
    "{at_10:.3f} at −10, {at_100:.3f} at −100, {at_1000:.4f} at −1000.",
    lambda at_1, at_1000, **_: at_1 > 0.5 and at_1000 < 0.01,
)
def _proxy(n_cases: int) -> Figures:
    largest = dict.fromkeys(POWERS, 0.0)
    for case in range(n_cases):
        sq_dist = np.sort(np.random.default_rng(case).uniform(1.0, 1.2, size=5))
        sq_dist[1:] += 0.02
        for power in POWERS:
            gap = np.abs(power_mean_gradient(sq_dist, power) - np.eye(5)[0]).max()
            largest[power] = max(largest[power], gap)
    return by_power(largest)


# The objective, as a function of the centers.


def problem(case: int) -> tuple[np.random.Generator, FloatArray, tuple[int, int]]:
    """Points whose convex hull is the unit box, and the shape of some centers."""
    rng = np.random.default_rng(case)
    n_features, n_centers = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * n_features), axis=-1).reshape(-1, n_features)
    inside = rng.uniform(size=(60, n_features)) ** 2
    return rng, np.concatenate([corners, inside]), (n_centers, n_features)


@CHECKS.claim(
    "f_s converges to the k-means objective from above, uniformly on the convex hull.",
    PAPER.format("3, proposition 3.2"),
    "Largest relative gap over {n_cases} random sets of centers: {at_1:.2f} at s = −1, "
    "{at_10:.3f} at −10, {at_100:.4f} at −100, {at_1000:.5f} at −1000; never above "
    "k^(1/|s|) − 1.",
    lambda n_widening, n_outside, at_1000, **_: n_widening + n_outside == 0 and at_1000 < 0.01,
)
def _convergence(n_cases: int) -> Figures:
    largest, n_widening, n_outside = dict.fromkeys(POWERS, 0.0), 0, 0
    for case in range(n_cases):
        rng, points, shape = problem(case)
        centers = rng.uniform(size=shape)
        hard = objective(points, centers, -math.inf)
        gaps = [objective(points, centers, power) / hard - 1 for power in POWERS]
        n_widening += sum(later > earlier + ROUNDING for earlier, later in pairwise(gaps))
        for power, gap in zip(POWERS, gaps, strict=True):
            n_outside += not -ROUNDING <= gap <= shape[0] ** (1 / -power) - 1 + ROUNDING
            largest[power] = max(largest[power], gap)
    return {**by_power(largest), "n_widening": n_widening, "n_outside": n_outside}


@CHECKS.claim(
    "Concavity and convexity do not carry over to f_s as a function of the centers.",
    PAPER.format("2"),
    "Halfway between random sets of centers f_s is below the mean of its ends in {n_up:.0f} of "
    "{n_cases} cases, above it in {n_down:.0f}.",
    lambda n_up, n_down: min(n_up, n_down) > 0,
)
def _composite(n_cases: int) -> Figures:
    n_up, n_down = 0, 0
    for case in range(n_cases):
        rng, points, shape = problem(case)
        ends = rng.uniform(size=(2, *shape))
        power = 1 - rng.lognormal()
        middle = objective(points, ends.mean(axis=0), power)
        mean = np.mean([objective(points, end, power) for end in ends])
        n_up += int(mean > middle * (1 + ROUNDING))
        n_down += int(mean < middle * (1 - ROUNDING))
    return {"n_up": n_up, "n_down": n_down}


@CHECKS.claim(
    "For s ≤ 1 the minimum of f_s has all centers in the convex hull of the points: bringing "
    "them there lowers it.",
    PAPER.format("3, proposition 3.1"),
    "{n_not_lower:.0f} exceptions in {n_cases} random cases.",
    lambda n_not_lower: n_not_lower == 0,
)
def _hull(n_cases: int) -> Figures:
    n_not_lower = 0
    for case in range(n_cases):
        rng, points, shape = problem(case)
        centers = rng.uniform(-0.5, 1.5, size=shape)
        centers[0, 0] = 1.3
        power = 1 - rng.lognormal()
        projected = objective(points, np.clip(centers, 0, 1), power)
        n_not_lower += int(projected >= objective(points, centers, power))
    return {"n_not_lower": n_not_lower}


@CHECKS.claim(
    "There are at least k! equivalent minimisers: f_s does not tell its centers apart.",
    PAPER.format("3"),
    "Centers in another order change f_s by {deviation:.0e} at most.",
    lambda deviation: deviation < ROUNDING,
)
def _symmetry(n_cases: int) -> Figures:
    deviations = []
    for case in range(n_cases):
        rng, points, shape = problem(case)
        centers, power = rng.uniform(size=shape), 1 - rng.lognormal()
        there = objective(points, rng.permutation(centers), power)
        deviations.append(apart(there, objective(points, centers, power)))
    return {"deviation": max(deviations)}


@CHECKS.claim(
    "The least value of f_s converges to that of the k-means objective.",
    PAPER.format("3, proposition 3.2"),
    "Two centers for twelve points on a line, all partitions tried, {n_cases} cases: the least "
    "f_s is above by {at_1:.3f} at s = −1 at most, {at_10:.4f} at −10, {at_100:.5f} at −100, "
    "{at_1000:.6f} at −1000.",
    lambda n_widening, lowest, at_1000, **_: n_widening == 0 <= lowest and at_1000 < 1e-3,
    n_cases=30,
    n_quick_cases=3,
)
def _minima(n_cases: int) -> Figures:
    largest, n_widening, lowest = dict.fromkeys(POWERS, 0.0), 0, math.inf
    for case in range(n_cases):
        points = np.sort(np.random.default_rng(case).lognormal(size=12))
        hard = least_of_two_means(points)
        gaps = [least_of_power(points, power) / hard - 1 for power in POWERS]
        n_widening += sum(later > earlier for earlier, later in pairwise(gaps))
        lowest = min(lowest, *gaps)
        largest = {power: max(largest[power], gap) for power, gap in zip(POWERS, gaps, strict=True)}
    return {**by_power(largest), "n_widening": n_widening, "lowest": lowest}


def least_of_two_means(points: FloatArray) -> float:
    """The least sum of squares of two clusters on a line, which are split at one place."""
    halves = ((points[:cut], points[cut:]) for cut in range(1, len(points)))
    return min(float(len(one) * one.var() + len(other) * other.var()) for one, other in halves)


def least_of_power(points: FloatArray, power: float) -> float:
    """The least f_s of two centers on a line: the best of a grid, and downhill from there."""

    def value(centers: Any) -> float:
        return objective(points[:, None], centers[:, None], power)

    grid = np.linspace(points[0], points[-1], 40)
    first, second = np.triu_indices(len(grid))
    pairs = np.stack([grid[first], grid[second]], axis=1)
    heights = power_mean((points[:, None] - pairs[:, None]) ** 2, power).sum(axis=1)
    starts = pairs[np.argsort(heights)[:5]]
    found = (minimize(value, start, method="Nelder-Mead", tol=1e-10) for start in starts)
    return min(float(each.fun) for each in found)


# Memberships, and how much points count.


def khm_memberships(sq_dist: FloatArray, p: float) -> FloatArray:
    """Equation (10), by its definition."""
    powers = np.sqrt(sq_dist) ** -(p + 2)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def khm_weighing(sq_dist: FloatArray, p: float) -> FloatArray:
    """Equation (11), by its definition."""
    far, near = np.sqrt(sq_dist) ** -p, np.sqrt(sq_dist) ** -(p + 2)
    return np.asarray(near.sum(axis=1) / far.sum(axis=1) ** 2)


def lognormal(case: int) -> FloatArray:
    """Random distances of 30 points from 5 centers."""
    return np.random.default_rng(case).lognormal(size=(30, 5))


@CHECKS.claim(
    "Memberships and weighing of power k-means coincide with those of KHM_p at p = −2s.",
    PAPER.format("3.1"),
    "Memberships do, to {memberships_p2:.0e} at p = 2 and {memberships_p3_5:.0e} at p = 3.5. "
    "Weighings do at p = 2 (to {weighings_p2:.0e}); at p = 3.5 their ratio varies by the "
    "factor 1 + {weighings_p3_5:.1f}.",
    lambda **figures: max(figures.values()) < ROUNDING,
    in_short="weights and memberships are those of KHM with p = -2s",
)
def _memberships(n_cases: int) -> Figures:
    figures: dict[str, float] = {}
    for p in (2.0, 3.5):
        memberships, weighings = [], []
        for sq_dist in map(lognormal, range(n_cases)):
            gaps = khm_memberships(sq_dist, p) - Power(-p / 2).memberships(sq_dist)
            memberships.append(float(np.abs(gaps).max()))
            ratios = khm_weighing(sq_dist, p) / Power(-p / 2).weighing(sq_dist)
            weighings.append(float(ratios.max() / ratios.min()) - 1)
        name = f"p{p:g}".replace(".", "_")
        figures |= {f"memberships_{name}": max(memberships), f"weighings_{name}": max(weighings)}
    return figures


@CHECKS.claim(
    "For p > 2 KHM_p gives a point beside a center at distance r the weight O(r^(p−2)).",
    PAPER.format("3.1"),
    "Exponents measured at p = 3 and 4 are off by {deviation:.0e} at most.",
    lambda deviation: deviation < 0.01,
)
def _boost(n_cases: int) -> Figures:
    deviations = []
    for case in range(n_cases):
        others = 1 + np.random.default_rng(case).lognormal(size=4)
        near = np.array([1e-8, 1e-6])
        sq_dist = np.concatenate([near[:, None], np.tile(others, (2, 1))], axis=1)
        for p in (3.0, 4.0):
            weighing = khm_weighing(sq_dist, p)
            rise = math.log(weighing[1] / weighing[0]) / math.log(math.sqrt(near[1] / near[0]))
            deviations.append(abs(rise - (p - 2)))
    return {"deviation": max(deviations)}


@CHECKS.claim(
    "KHM_p becomes more sensitive to outliers as p grows.",
    PAPER.format("3.1"),
    "The share of all weight that a point far from the unit box of the others has (geometric "
    "mean): {share_p2:.4f} at p = 2, {share_p3:.3f} at 3, {share_p4:.3f} at 4; with power "
    "k-means at s = −2, the power of p = 4, {share_power:.4f}.",
    lambda gain_p3, error_p3, gain_p4, error_p4, **_: together(
        [above(gain_p3, error_p3), above(gain_p4, error_p4)]
    ),
)
def _outliers(n_cases: int) -> Figures:
    logs: dict[str, list[float]] = {"p2": [], "p3": [], "p4": [], "power": []}
    for case in range(n_cases):
        rng, points, shape = problem(case)
        centers = rng.uniform(size=shape)
        with_far = np.concatenate([points, np.full((1, shape[1]), FAR_AWAY)])
        sq_dist = np.sum((with_far[:, None] - centers) ** 2, axis=2)
        weighings = {f"p{p}": khm_weighing(sq_dist, p) for p in (2, 3, 4)}
        weighings["power"] = Power(-2.0).weighing(sq_dist)
        for name, weighing in weighings.items():
            logs[name].append(math.log(weighing[-1] / weighing.sum()))
    figures = {f"share_{name}": math.exp(mean_and_error(of)[0]) for name, of in logs.items()}
    for before, after in (("p2", "p3"), ("p3", "p4")):
        gain, error = paired_gain(logs[after], logs[before])
        figures |= {f"gain_{after}": gain, f"error_{after}": error}
    return figures


def spread_of(weigh: Callable[[FloatArray], FloatArray], n_cases: int) -> float:
    """The largest weighing of random points over the least."""
    weighings = np.concatenate([weigh(sq_dist) for sq_dist in map(lognormal, range(n_cases))])
    return float(weighings.max() / weighings.min())


def of_bezdek(sq_dist: FloatArray) -> FloatArray:
    """How much points count in the centers of fuzzy c-means: the sum of u², u its memberships."""
    shares = 1 / sq_dist
    squares = (shares / shares.sum(axis=1, keepdims=True)) ** 2
    return np.asarray(squares.sum(axis=1))


@CHECKS.claim(
    "Lloyd, EM and fuzzy clustering all have a constant weighing.",
    PAPER.format("3.1"),
    "The largest weighing over the least: {em:.6f} in EM; in fuzzy c-means (m = 2), the sum of "
    "u² over the centers, {fuzzy:.1f}.",
    lambda em, fuzzy: max(em, fuzzy) < 1 + ROUNDING,
)
def _constant(n_cases: int) -> Figures:
    em, fuzzy = Gaussian(1.0).weighing, of_bezdek
    return {"em": spread_of(em, n_cases), "fuzzy": spread_of(fuzzy, n_cases)}


@CHECKS.claim(
    "The weighing of power k-means becomes constant as s → −∞.",
    PAPER.format("3.1"),
    "Largest over least weighing of random points: {at_1:.1f} at s = −1, {at_10:.2f} at −10, "
    "{at_100:.3f} at −100, {at_1000:.4f} at −1000.",
    lambda at_1000, **_: at_1000 < 1.01,
)
def _stabilizing(n_cases: int) -> Figures:
    return by_power({power: spread_of(Power(power).weighing, n_cases) for power in POWERS})


@CHECKS.claim(
    "Lloyd's algorithm is EM for Gaussians with vanishing variances.",
    PAPER.format("1.3"),
    "Memberships of EM are off from hard ones by {one:.2f} at variance 1, by {small:.0e} at 0.001.",
    lambda one, small: small < ROUNDING < one,
)
def _vanishing(n_cases: int) -> Figures:
    figures = {"one": 0.0, "small": 0.0}
    for case in range(n_cases):
        sq_dist = np.random.default_rng(case).permuted(np.arange(1.0, 7.0) * np.ones((9, 6)))
        hard = (sq_dist == sq_dist.min(axis=1, keepdims=True)).astype(float)
        hard /= hard.sum(axis=1, keepdims=True)
        for name, variance in (("one", 1.0), ("small", 1e-3)):
            gap = np.abs(Gaussian(variance).memberships(sq_dist) - hard).max()
            figures[name] = max(figures[name], float(gap))
    return figures
