"""What the sources say about power means, their slopes and the objectives made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from powermeans.mathematics.power_mean import objective, power_mean, power_mean_gradient
from powermeans.mathematics.rules import Gaussian, Power
from reproduce.checks import Check, Figures, above, cells_of, findings_of, paired_gain, together
from reproduce.item import Cell, Findings, Row, mean_and_error

TITLE = "Power means: what the sources say about them"
SOURCE = "The paper, sections 1.2 to 3.1; the presentation's formulas"
DATA = "random cases"

Array = NDArray[np.float64]

PAPER = "the paper, section {}"
SLIDES = "the presentation, {}"
ROUNDING = 1e-9
POWERS = (-1.0, -10.0, -100.0, -1000.0)
# In each coordinate, beside points in the unit box.
FAR_AWAY = 10.0


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each sentence."""
    return cells_of(CHECKS, quick)


def findings(rows: Sequence[Row]) -> Findings:
    """A claim for each."""
    return findings_of(CHECKS, rows)


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """No pictures."""
    return []


def distances(
    n_cases: int, highest: float = 1.0
) -> Iterator[tuple[np.random.Generator, Array, float]]:
    """Random distances to two to eight centers, and a power below the highest."""
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        sq_dist = rng.lognormal(sigma=2.0, size=rng.integers(2, 9))
        yield rng, sq_dist, highest - rng.lognormal(sigma=1.5)


def by_definition(sq_dist: Array, power: float) -> float:
    """M_s as it is written, also above s = 1, in units of the entry that counts most."""
    unit = sq_dist.max() if power > 0 else sq_dist.min()
    return float(unit * np.mean((sq_dist / unit) ** power) ** (1 / power))


def slopes(sq_dist: Array, power: float) -> Array:
    """The gradient of M_s by central differences."""
    steps = 1e-5 * np.diag(sq_dist)
    higher = power_mean(sq_dist + steps, power)
    lower = power_mean(sq_dist - steps, power)
    return np.asarray((higher - lower) / (2 * steps.diagonal()))


def worst(values: Sequence[float]) -> float:
    """The largest of some deviations."""
    return float(max(values))


def measure_slopes(n_cases: int) -> Figures:
    """The gradient by equation (5) beside differences, in units of the steepest slope."""
    deviations, lowest = [], math.inf
    for _, sq_dist, power in distances(n_cases, highest=0.0):
        by_formula = power_mean_gradient(sq_dist, power)
        apart = np.abs(by_formula - slopes(sq_dist, power)).max()
        deviations.append(float(apart / by_formula.max()))
        lowest = min(lowest, float(by_formula.min()))
    return {"deviation": worst(deviations), "lowest": lowest}


def measure_identities(n_cases: int) -> Figures:
    """The three identities, each as the larger of two numbers over the smaller, less one."""
    alike, grouped, scaled = [], [], []
    for rng, sq_dist, power in distances(n_cases):
        factor, whole = rng.lognormal(), float(power_mean(sq_dist, power))
        alike.append(apart(float(power_mean(np.full(5, factor), power)), factor))
        in_group = int(rng.integers(1, len(sq_dist)))
        replaced = sq_dist.copy()
        replaced[:in_group] = power_mean(sq_dist[:in_group], power)
        grouped.append(apart(float(power_mean(replaced, power)), whole))
        scaled.append(apart(float(power_mean(factor * sq_dist, power)), factor * whole))
    return {"alike": worst(alike), "grouped": worst(grouped), "scaled": worst(scaled)}


def apart(one: float, other: float) -> float:
    """How far two numbers are from each other, relative to the second."""
    return abs(one / other - 1)


def measure_limits(n_cases: int) -> Figures:
    """How far from the least and the largest distance the means of extreme powers are."""
    to_least, to_largest = [], []
    for _, sq_dist, _ in distances(n_cases):
        to_least.append(apart(float(power_mean(sq_dist, -1e5)), sq_dist.min()))
        to_largest.append(apart(by_definition(sq_dist, 1e5), sq_dist.max()))
    return {"to_least": worst(to_least), "to_largest": worst(to_largest)}


def measure_order(n_cases: int) -> Figures:
    """How often the mean of a lower power is the larger one."""
    n_wrong = 0
    for rng, sq_dist, power in distances(n_cases):
        lower, higher = power_mean(sq_dist, power - rng.lognormal()), power_mean(sq_dist, power)
        n_wrong += int(lower > higher * (1 + ROUNDING))
    return {"n_wrong": n_wrong}


def measure_curvature(n_cases: int) -> Figures:
    """Second differences of M_s along random lines, below and above s = 1, and along y itself."""
    n_convex, n_concave, along = 0, 0, 0.0
    for rng, sq_dist, power in distances(n_cases):
        step = 1e-2 * sq_dist * rng.uniform(-1, 1, size=len(sq_dist))
        n_convex += int(bend(sq_dist, step, power) > ROUNDING)
        n_concave += int(bend(sq_dist, step, 2 - power) < -ROUNDING)
        along = max(along, abs(bend(sq_dist, 0.1 * sq_dist, power)))
    return {"n_convex": n_convex, "n_concave": n_concave, "along": along}


def bend(sq_dist: Array, step: Array, power: float) -> float:
    """The second difference of M_s, relative to M_s: below zero where it is concave."""
    heights = [by_definition(sq_dist + sign * step, power) for sign in (-1, 0, 1)]
    return (heights[0] - 2 * heights[1] + heights[2]) / heights[1]


def measure_majorization(n_cases: int) -> Figures:
    """How often the linear function of (9) lies below M_s, and how far off where it touches."""
    n_below, gaps = 0, []
    for rng, anchor, power in distances(n_cases, highest=0.0):
        sq_dist = rng.lognormal(sigma=2.0, size=len(anchor))
        slope, height = power_mean_gradient(anchor, power), float(power_mean(anchor, power))
        line = height + float(slope @ (sq_dist - anchor))
        n_below += int(line < float(power_mean(sq_dist, power)) * (1 - ROUNDING))
        gaps.append(apart(float(slope @ anchor), height))
    return {"n_below": n_below, "touching": worst(gaps)}


def measure_proxy(n_cases: int) -> Figures:
    """How far slopes are from those of the minimum, one for the nearest center, for close ties."""
    largest = dict.fromkeys(POWERS, 0.0)
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        sq_dist = np.sort(rng.uniform(1.0, 1.2, size=5))
        sq_dist[1:] += 0.02
        of_minimum = np.eye(5)[0]
        for power in POWERS:
            gap = np.abs(power_mean_gradient(sq_dist, power) - of_minimum).max()
            largest[power] = max(largest[power], float(gap))
    return {f"at{power:g}".replace("-", "_"): gap for power, gap in largest.items()}


def problem(case: int) -> tuple[np.random.Generator, Array, int]:
    """Points whose convex hull is the unit box, of one to three features, and how many centers."""
    rng = np.random.default_rng(case)
    n_features, n_centers = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * n_features), axis=-1).reshape(-1, n_features)
    inside = rng.uniform(size=(60, n_features)) ** 2
    return rng, np.concatenate([corners, inside]), n_centers


def measure_convergence(n_cases: int) -> Figures:
    """The largest gap between f_s and the k-means objective, and whether it ever widens."""
    largest, n_widening, n_outside = dict.fromkeys(POWERS, 0.0), 0, 0
    for case in range(n_cases):
        rng, points, n_centers = problem(case)
        centers = rng.uniform(size=(n_centers, points.shape[1]))
        hard = objective(points, centers, -math.inf)
        gaps = [objective(points, centers, power) / hard - 1 for power in POWERS]
        n_widening += sum(later > earlier + ROUNDING for earlier, later in pairwise(gaps))
        for power, gap in zip(POWERS, gaps, strict=True):
            n_outside += int(not -ROUNDING <= gap <= n_centers ** (1 / -power) - 1 + ROUNDING)
            largest[power] = max(largest[power], gap)
    gaps_by_name = {f"at{power:g}".replace("-", "_"): gap for power, gap in largest.items()}
    return {**gaps_by_name, "n_widening": n_widening, "n_outside": n_outside}


def measure_composite(n_cases: int) -> Figures:
    """How often f_s bends up, and how often down, between random sets of centers."""
    n_up, n_down = 0, 0
    for case in range(n_cases):
        rng, points, n_centers = problem(case)
        ends = rng.uniform(size=(2, n_centers, points.shape[1]))
        power = 1 - rng.lognormal()
        middle = objective(points, ends.mean(axis=0), power)
        mean = np.mean([objective(points, end, power) for end in ends])
        n_up += int(mean > middle * (1 + ROUNDING))
        n_down += int(mean < middle * (1 - ROUNDING))
    return {"n_up": n_up, "n_down": n_down}


def measure_hull(n_cases: int) -> Figures:
    """How often bringing centers from outside into the hull does not lower f_s."""
    n_not_lower = 0
    for case in range(n_cases):
        rng, points, n_centers = problem(case)
        centers = rng.uniform(-0.5, 1.5, size=(n_centers, points.shape[1]))
        centers[0, 0] = 1.3
        power = 1 - rng.lognormal()
        projected = objective(points, np.clip(centers, 0, 1), power)
        n_not_lower += int(projected >= objective(points, centers, power))
    return {"n_not_lower": n_not_lower}


def measure_symmetry(n_cases: int) -> Figures:
    """How much f_s changes as its centers change places."""
    deviations = []
    for case in range(n_cases):
        rng, points, n_centers = problem(case)
        centers = rng.uniform(size=(n_centers, points.shape[1]))
        power = 1 - rng.lognormal()
        there = objective(points, rng.permutation(centers), power)
        deviations.append(apart(there, objective(points, centers, power)))
    return {"deviation": worst(deviations)}


def khm_memberships(sq_dist: Array, p: float) -> Array:
    """Equation (10), by its definition."""
    powers = np.sqrt(sq_dist) ** -(p + 2)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def khm_weighing(sq_dist: Array, p: float) -> Array:
    """Equation (11), by its definition."""
    far, near = np.sqrt(sq_dist) ** -p, np.sqrt(sq_dist) ** -(p + 2)
    return np.asarray(near.sum(axis=1) / far.sum(axis=1) ** 2)


def measure_memberships(n_cases: int) -> Figures:
    """Memberships and weighing of KHM_p beside those of power k-means at s = -p/2."""
    figures: dict[str, float] = {}
    for p in (2.0, 3.5):
        memberships, weighings = [], []
        for case in range(n_cases):
            sq_dist = np.random.default_rng(case).lognormal(size=(30, 5))
            gap = np.abs(khm_memberships(sq_dist, p) - Power(-p / 2).memberships(sq_dist)).max()
            memberships.append(float(gap))
            ratios = khm_weighing(sq_dist, p) / Power(-p / 2).weighing(sq_dist)
            weighings.append(float(ratios.max() / ratios.min()) - 1)
        name = f"p{p:g}".replace(".", "_")
        figures[f"memberships_{name}"] = worst(memberships)
        figures[f"weighings_{name}"] = worst(weighings)
    return figures


def measure_boost(n_cases: int) -> Figures:
    """The exponent with which the weighing of KHM_p vanishes beside a center, for p = 3 and 4."""
    deviations = []
    for case in range(n_cases):
        others = 1 + np.random.default_rng(case).lognormal(size=4)
        near = np.array([1e-8, 1e-6])
        sq_dist = np.concatenate([near[:, None], np.tile(others, (2, 1))], axis=1)
        for p in (3.0, 4.0):
            weighing = khm_weighing(sq_dist, p)
            rise = math.log(weighing[1] / weighing[0]) / math.log(math.sqrt(near[1] / near[0]))
            deviations.append(abs(rise - (p - 2)))
    return {"deviation": worst(deviations)}


def measure_outliers(n_cases: int) -> Figures:
    """The share of all weight that one far point has at given centers, by p and for powers."""
    logs: dict[str, list[float]] = {"p2": [], "p3": [], "p4": [], "power": []}
    for case in range(n_cases):
        rng, points, n_centers = problem(case)
        centers = rng.uniform(size=(n_centers, points.shape[1]))
        with_far = np.concatenate([points, np.full((1, points.shape[1]), FAR_AWAY)])
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


def measure_minima(n_cases: int) -> Figures:
    """The least value of f_s, by search, over that of k-means, by all partitions, less one."""
    largest, n_widening = dict.fromkeys(POWERS, 0.0), 0
    lowest = math.inf
    for case in range(n_cases):
        points = np.sort(np.random.default_rng(case).lognormal(size=12))
        hard = least_of_two_means(points)
        gaps = [least_of_power(points, power) / hard - 1 for power in POWERS]
        n_widening += sum(later > earlier for earlier, later in pairwise(gaps))
        lowest = min(lowest, *gaps)
        largest = {power: max(largest[power], gap) for power, gap in zip(POWERS, gaps, strict=True)}
    named = {f"at{power:g}".replace("-", "_"): gap for power, gap in largest.items()}
    return {**named, "n_widening": n_widening, "lowest": lowest}


def least_of_two_means(points: Array) -> float:
    """The least sum of squares of two clusters on a line, which are split at one place."""
    halves = ((points[:cut], points[cut:]) for cut in range(1, len(points)))
    return min(float(len(one) * one.var() + len(other) * other.var()) for one, other in halves)


def least_of_power(points: Array, power: float) -> float:
    """The least f_s of two centers on a line: the best of a grid, and downhill from there."""

    def value(centers: Any) -> float:
        return objective(points[:, None], centers[:, None], power)

    grid = np.linspace(points[0], points[-1], 40)
    first, second = np.triu_indices(len(grid))
    pairs = np.stack([grid[first], grid[second]], axis=1)
    heights = power_mean((points[:, None] - pairs[:, None]) ** 2, power).sum(axis=1)
    starts = pairs[np.argsort(heights)[:5]]
    return min(
        float(minimize(value, start, method="Nelder-Mead", tol=1e-10).fun) for start in starts
    )


def spread_of(weigh: Callable[[Array], Array], n_cases: int) -> float:
    """The largest weighing of random points over the least."""
    weighings = np.concatenate(
        [weigh(np.random.default_rng(case).lognormal(size=(30, 5))) for case in range(n_cases)]
    )
    return float(weighings.max() / weighings.min())


def of_bezdek(sq_dist: Array) -> Array:
    """How much points count in the centers of fuzzy c-means: the sum of u², u its memberships."""
    shares = 1 / sq_dist
    squares = (shares / shares.sum(axis=1, keepdims=True)) ** 2
    return np.asarray(squares.sum(axis=1))


def measure_constant(n_cases: int) -> Figures:
    """How much the weighing varies in EM and in fuzzy c-means."""
    return {
        "em": spread_of(Gaussian(1.0).weighing, n_cases),
        "fuzzy": spread_of(of_bezdek, n_cases),
    }


def measure_stabilizing(n_cases: int) -> Figures:
    """How much the weighing of power k-means varies, by power."""
    return {
        f"at{power:g}".replace("-", "_"): spread_of(Power(power).weighing, n_cases)
        for power in POWERS
    }


def measure_vanishing(n_cases: int) -> Figures:
    """Memberships of EM beside hard ones, as the variance vanishes."""
    figures = {}
    for name, variance in (("one", 1.0), ("small", 1e-3)):
        gaps = []
        for case in range(n_cases):
            sq_dist = np.random.default_rng(case).permuted(np.arange(1.0, 7.0) * np.ones((9, 6)))
            hard = (sq_dist == sq_dist.min(axis=1, keepdims=True)).astype(float)
            hard /= hard.sum(axis=1, keepdims=True)
            gaps.append(float(np.abs(Gaussian(variance).memberships(sq_dist) - hard).max()))
        figures[name] = worst(gaps)
    return figures


def measure_slide_slope(n_cases: int) -> Figures:
    """The presentation's derivative, with 1/k before the sum to 1/s - 1, over the true one."""
    ratios = []
    for _, sq_dist, power in distances(n_cases, highest=0.0):
        k = len(sq_dist)
        written = np.sum(sq_dist**power) ** (1 / power - 1) / k**2 * sq_dist ** (power - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = written / power_mean_gradient(sq_dist, power)
        ratios += [float(value) for value in ratio if 0 < value < math.inf]
    return {"lowest": min(ratios), "highest": max(ratios)}


def measure_slide_objective(n_cases: int) -> Figures:
    """The presentation's expanded objective, with the exponent -s, over M_s of equal distances."""
    powers = [power for _, _, power in distances(n_cases, highest=0.0) if power > -5]
    ratios = [2.0 ** (power * -power) / 2.0 for power in powers]
    return {"lowest": min(ratios), "highest": max(ratios)}


CHECKS = (
    Check(
        "slopes",
        "The derivatives of the power mean are those of equation (5), and it rises in each entry.",
        PAPER.format("1.2"),
        measure_slopes,
        lambda figures: figures["deviation"] < 1e-5 and figures["lowest"] >= 0,
        "{n_cases} random cases: {deviation:.1e} from differences at most; least slope "
        "{lowest:.1e}.",
    ),
    Check(
        "identities",
        "M(y, ..., y) = y; a group may be replaced by its mean; M_s(cy) = c M_s(y).",
        PAPER.format("1.2"),
        measure_identities,
        lambda figures: max(figures.values()) < ROUNDING,
        "{n_cases} random cases: off by {alike:.0e}, {grouped:.0e} and {scaled:.0e} at most.",
    ),
    Check(
        "limits",
        "M_s tends to the largest entry as s rises and to the smallest as it falls.",
        PAPER.format("1.2, equation (6)"),
        measure_limits,
        lambda figures: max(figures.values()) < 1e-4,
        "At s = ±100 000 off by {to_largest:.1e} and {to_least:.1e} at most.",
    ),
    Check(
        "order",
        "M_s(y) ≤ M_t(y) for s ≤ t.",
        PAPER.format("1.2"),
        measure_order,
        lambda figures: figures["n_wrong"] == 0,
        "{n_wrong:.0f} exceptions in {n_cases} random cases.",
    ),
    Check(
        "curvature",
        "M_s is concave for s ≤ 1 and convex above, neither of them strictly.",
        PAPER.format("2"),
        measure_curvature,
        lambda figures: (
            figures["n_convex"] + figures["n_concave"] == 0 and figures["along"] < ROUNDING
        ),
        "{n_convex:.0f} and {n_concave:.0f} exceptions in {n_cases} random cases; along y itself "
        "it bends by {along:.0e}.",
    ),
    Check(
        "majorization",
        "The linear function (9) touches M_s at its anchor and lies nowhere below it.",
        PAPER.format("2, inequality (9)"),
        measure_majorization,
        lambda figures: figures["n_below"] == 0 and figures["touching"] < ROUNDING,
        "{n_below:.0f} exceptions in {n_cases} random cases; off by {touching:.0e} at the anchor.",
    ),
    Check(
        "proxy",
        "With distances nearly alike the slopes at s = −1 are far from those of the minimum, and "
        "they tend to those as s → −∞.",
        PAPER.format("2.1"),
        measure_proxy,
        lambda figures: figures["at_1"] > 0.5 and figures["at_1000"] < 0.01,
        "Distances that differ by 2 to 22 %: slopes off by up to {at_1:.3f} at s = −1, "
        "{at_10:.3f} at −10, {at_100:.3f} at −100, {at_1000:.4f} at −1000.",
    ),
    Check(
        "convergence",
        "f_s converges to the k-means objective from above, uniformly on the convex hull.",
        PAPER.format("3, proposition 3.2"),
        measure_convergence,
        lambda figures: (
            figures["n_widening"] + figures["n_outside"] == 0 and figures["at_1000"] < 0.01
        ),
        "Largest relative gap over {n_cases} random sets of centers: {at_1:.2f} at s = −1, "
        "{at_10:.3f} at −10, {at_100:.4f} at −100, {at_1000:.5f} at −1000; never above "
        "k^(1/|s|) − 1.",
    ),
    Check(
        "minima",
        "The least value of f_s converges to that of the k-means objective.",
        PAPER.format("3, proposition 3.2"),
        measure_minima,
        lambda figures: (
            figures["n_widening"] == 0 <= figures["lowest"] and figures["at_1000"] < 1e-3
        ),
        "Two centers for twelve points on a line, all partitions tried, {n_cases} cases: the least "
        "f_s is above by {at_1:.3f} at s = −1 at most, {at_10:.4f} at −10, {at_100:.5f} at −100, "
        "{at_1000:.6f} at −1000.",
        n_cases=30,
        n_quick_cases=3,
    ),
    Check(
        "composite",
        "Concavity and convexity do not carry over to f_s as a function of the centers.",
        PAPER.format("2"),
        measure_composite,
        lambda figures: min(figures.values()) > 0,
        "Halfway between random sets of centers f_s is below the mean of its ends in {n_up:.0f} of "
        "{n_cases} cases, above it in {n_down:.0f}.",
    ),
    Check(
        "hull",
        "For s ≤ 1 the minimum of f_s has all centers in the convex hull of the points: bringing "
        "them there lowers it.",
        PAPER.format("3, proposition 3.1"),
        measure_hull,
        lambda figures: figures["n_not_lower"] == 0,
        "{n_not_lower:.0f} exceptions in {n_cases} random cases.",
    ),
    Check(
        "symmetry",
        "There are at least k! equivalent minimisers: f_s does not tell its centers apart.",
        PAPER.format("3"),
        measure_symmetry,
        lambda figures: figures["deviation"] < ROUNDING,
        "Centers in another order change f_s by {deviation:.0e} at most.",
    ),
    Check(
        "memberships",
        "Memberships and weighing of power k-means coincide with those of KHM_p at p = −2s.",
        PAPER.format("3.1"),
        measure_memberships,
        lambda figures: max(figures.values()) < ROUNDING,
        "Memberships do, to {memberships_p2:.0e} at p = 2 and {memberships_p3_5:.0e} at p = 3.5. "
        "Weighings do at p = 2 (to {weighings_p2:.0e}); at p = 3.5 their ratio varies by the "
        "factor 1 + {weighings_p3_5:.1f}.",
    ),
    Check(
        "boost",
        "For p > 2 KHM_p gives a point beside a center at distance r the weight O(r^(p−2)).",
        PAPER.format("3.1"),
        measure_boost,
        lambda figures: figures["deviation"] < 0.01,
        "Exponents measured at p = 3 and 4 are off by {deviation:.0e} at most.",
    ),
    Check(
        "outliers",
        "KHM_p becomes more sensitive to outliers as p grows.",
        PAPER.format("3.1"),
        measure_outliers,
        lambda figures: together(
            above(figures[f"gain_{p}"], figures[f"error_{p}"]) for p in ("p3", "p4")
        ),
        "The share of all weight that a point far from the unit box of the others has (geometric "
        "mean): {share_p2:.4f} at p = 2, {share_p3:.3f} at 3, {share_p4:.3f} at 4; with power "
        "k-means at s = −2, the power of p = 4, {share_power:.4f}.",
    ),
    Check(
        "constant",
        "Lloyd, EM and fuzzy clustering all have a constant weighing.",
        PAPER.format("3.1"),
        measure_constant,
        lambda figures: figures["em"] < 1 + ROUNDING and figures["fuzzy"] < 1 + ROUNDING,
        "The largest weighing over the least: {em:.6f} in EM; in fuzzy c-means (m = 2), the sum of "
        "u² over the centers, {fuzzy:.1f}.",
    ),
    Check(
        "stabilizing",
        "The weighing of power k-means becomes constant as s → −∞.",
        PAPER.format("3.1"),
        measure_stabilizing,
        lambda figures: figures["at_1000"] < 1.01,
        "Largest over least weighing of random points: {at_1:.1f} at s = −1, {at_10:.2f} at −10, "
        "{at_100:.3f} at −100, {at_1000:.4f} at −1000.",
    ),
    Check(
        "vanishing",
        "Lloyd's algorithm is EM for Gaussians with vanishing variances.",
        PAPER.format("1.3"),
        measure_vanishing,
        lambda figures: figures["small"] < ROUNDING < figures["one"],
        "Memberships of EM are off from hard ones by {one:.2f} at variance 1, by {small:.0e} at "
        "0.001.",
    ),
    Check(
        "slide_slope",
        "∂M_s/∂y_j = (1/k) (Σ y_i^s)^(1/s−1) (1/k) y_j^(s−1), as the text of the slide has it.",
        SLIDES.format("“Generalized and power means”"),
        measure_slide_slope,
        lambda figures: max(abs(figures["lowest"] - 1), abs(figures["highest"] - 1)) < ROUNDING,
        "The text of the slide has lost where the second 1/k belongs, which is inside the "
        "brackets: as it stands it is {lowest:.2g} to {highest:.2g} times the true slope.",
        is_claim=False,
    ),
    Check(
        "slide_objective",
        "f_s is the sum of ((1/k) Σ_j y_ij^s)^(−s), as the text of the slide has it.",
        SLIDES.format("“Objective function”"),
        measure_slide_objective,
        lambda figures: max(abs(figures["lowest"] - 1), abs(figures["highest"] - 1)) < ROUNDING,
        "The text of the slide has lost the exponent, which is 1/s: as it stands, distances that "
        "are all 2 give {lowest:.2g} to {highest:.2g} times their mean.",
        is_claim=False,
    ),
)
