"""What the sources say about the algorithm: that it descends, where it ends, what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans import Fixed, Geometric, KHarmonicMeans, PowerKMeans, critical_power
from powermeans.mathematics.power_mean import objective, power_mean_gradient
from powermeans.mathematics.rules import Harmonic, Rule
from powermeans.metrics import variation_of_information
from reproduce.checks import Check, Figures, above, cells_of, findings_of, paired_gain, together
from reproduce.hybrids import EvenHarmonic, HardHarmonic
from reproduce.item import Aside, Cell, Findings, Row, Verdict
from reproduce.quiet_fits import fitted

TITLE = "Power k-means: what the sources say about the algorithm"
SOURCE = "The paper, sections 1 to 5"
DATA = "random cases"

Array = NDArray[np.float64]

PAPER = "the paper, section {}"
ROUNDING = 1e-9
GROWTH = 1.05
LOWEST_POWERS = (-3.0, -18.0, -100.0, -1e4)
# How far from the mean centers are set to see whether they part, as a share of the spread.
NUDGE = 1e-4
# So far above and below the critical power that is tried.
MARGIN = 0.1
# Hamerly & Elkan's: hybrids 1 and 2, and what they are made of beside Lloyd's, at their p.
HYBRIDS = {"hard": HardHarmonic(3.5), "even": EvenHarmonic(3.5), "khm": Harmonic(3.5)}
# The second is to be better than the first.
SOFT_GAINS = (("lloyd", "even"), ("hard", "khm"))
WEIGHT_GAINS = (("lloyd", "hard"), ("even", "khm"))
POWER_GAINS = (("lloyd", "power"), ("hard", "power"), ("even", "power"))
GAINS_OF_HYBRIDS = (*SOFT_GAINS, *WEIGHT_GAINS, *POWER_GAINS)
COMMON_SCATTER = np.array([[2.0, 1.2], [1.2, 1.0]])


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each sentence."""
    return cells_of(CHECKS, quick)


def findings(rows: Sequence[Row]) -> Findings:
    """A claim for each, and for what no program of ours can tell."""
    return findings_of(CHECKS, rows, *NOT_JUDGED)


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """No pictures."""
    return []


def clouds(case: int, n_points: int = 300) -> tuple[np.random.Generator, Array, Array]:
    """Six to twelve overlapping normal clouds in one to five dimensions, and seeds among them."""
    rng = np.random.default_rng(case)
    n_features, n_centers = int(rng.integers(1, 6)), int(rng.integers(6, 13))
    centers = rng.uniform(0, 12, size=(n_centers, n_features))
    points = centers[rng.integers(n_centers, size=n_points)] + rng.normal(
        size=(n_points, n_features)
    )
    return rng, points, points[rng.choice(n_points, n_centers, replace=False)]


def sweeps(
    points: Array, seeds: Array, schedule: Iterable[float], n_sweeps: int, **params: Any
) -> tuple[PowerKMeans, list[Array]]:
    """The bare algorithm with these powers, and the centers after each sweep."""
    path: list[Array] = []
    model = PowerKMeans(
        len(seeds),
        init=seeds,
        schedule=schedule,
        polish=False,
        tol=0,
        max_iter=n_sweeps,
        callback=lambda state: path.append(state.centers),
        **params,
    )
    return fitted(model, points), path


def rises(values: Sequence[float]) -> int:
    """How often a value is above the one before, beyond rounding."""
    column = np.asarray(values)
    return int((np.diff(column) > ROUNDING * column[:-1]).sum())


def measure_harmonic(n_cases: int) -> Figures:
    """A sweep at s = -1 beside k-harmonic means by Zhang's formula, in units of the data."""
    deviations = []
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        seeds = seeds + 0.1
        _, path = sweeps(points, seeds, Fixed(-1.0), 1)
        dist = np.linalg.norm(points[:, None] - seeds, axis=2)
        weights = dist**-4 / np.sum(dist**-2, axis=1, keepdims=True) ** 2
        by_formula = weights.T @ points / weights.sum(axis=0)[:, None]
        deviations.append(float(np.abs(path[0] - by_formula).max()))
    return {"deviation": max(deviations)}


def measure_descent(n_cases: int) -> Figures:
    """Rises of the objective at one power, and along random falling powers."""
    n_fixed, n_falling, n_sweeps = 0, 0, 60
    for case in range(n_cases):
        rng, points, seeds = clouds(case)
        fixed, _ = sweeps(points, seeds, Fixed(-0.1 - rng.lognormal(sigma=1.5)), n_sweeps)
        n_fixed += rises(fixed.history_.objective)
        powers = -0.1 - np.cumsum(rng.exponential(size=n_sweeps) * rng.integers(2, size=n_sweeps))
        falling, _ = sweeps(points, seeds, powers.tolist(), n_sweeps)
        n_falling += rises(falling.history_.objective)
    return {"n_fixed": n_fixed, "n_falling": n_falling, "n_sweeps": n_sweeps}


def measure_hard_descent(n_cases: int) -> Figures:
    """Sweeps of annealing that raise the k-means objective, and by how much at most."""
    n_rises, n_sweeps, largest = 0, 0, 0.0
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        model, _ = sweeps(points, seeds, Geometric(-1.0, GROWTH), 80)
        inertias = model.history_.inertia
        n_rises, n_sweeps = n_rises + rises(inertias), n_sweeps + len(inertias) - 1
        largest = max(largest, float((np.diff(inertias) / inertias[:-1]).max()))
    return {"n_rises": n_rises, "n_sweeps": n_sweeps, "largest": largest}


def measure_hull(n_cases: int) -> Figures:
    """Centers that leave the hull of the points, here a box whose corners are among them."""
    n_outside = 0
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        points = np.concatenate([corners, rng.uniform(size=(80, 2)) ** 3])
        _, path = sweeps(points, rng.uniform(-1, 2, size=(5, 2)), Geometric(-0.5, 1.2), 40)
        n_outside += sum(int(((step < 0) | (step > 1)).any()) for step in path)
    return {"n_outside": n_outside}


def measure_newton(n_cases: int) -> Figures:
    """Fits of KHM_p whose objective rises, at p = 2 and at p = 3.5."""
    figures = {}
    for name, p in (("at_2", 2.0), ("at_3_5", 3.5)):
        n_rising = 0
        for case in range(n_cases):
            _, points, seeds = clouds(case)
            model = KHarmonicMeans(len(seeds), p=p, init=seeds, tol=0, max_iter=60)
            n_rising += int(rises(fitted(model, points).history_.objective) > 0)
        figures[name] = n_rising
    return figures


def measure_collapse(n_cases: int) -> Figures:
    """f_1 at random centers less that at the mean, over what theory says, less one."""
    deviations = []
    for case in range(n_cases):
        rng, points, seeds = clouds(case)
        centers = rng.uniform(0, 12, size=seeds.shape)
        mean = points.mean(axis=0)
        at_mean = objective(points, np.tile(mean, (len(seeds), 1)), 1.0)
        excess = objective(points, centers, 1.0) - at_mean
        expected = len(points) * np.mean(np.sum((centers - mean) ** 2, axis=1))
        deviations.append(abs(excess / expected - 1))
    return {"deviation": float(max(deviations))}


def measure_critical(n_cases: int) -> Figures:
    """Whether centers near the mean part below the critical power and gather above it."""
    n_gather, n_part, thresholds = 0, 0, []
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        scales = rng.lognormal(sigma=0.3, size=int(rng.integers(5, 16)))
        points = rng.normal(size=(2000, len(scales))) * scales
        thresholds.append(critical_power(points))
        nudges = NUDGE * points.std(axis=0) * rng.normal(size=(4, len(scales)))
        start = points.mean(axis=0) + nudges
        n_gather += int(growth_at(thresholds[-1] + MARGIN, points, start) < 1)
        n_part += int(growth_at(thresholds[-1] - MARGIN, points, start) > 1)
    return {
        "n_gather": n_gather,
        "n_part": n_part,
        "share": (n_gather + n_part) / (2 * n_cases),
        "lowest": min(thresholds),
        "highest": max(thresholds),
    }


def growth_at(power: float, points: Array, start: Array) -> float:
    """How much farther apart centers are after many sweeps at a power."""
    _, path = sweeps(points, start, Fixed(power), 400)
    return float(np.ptp(path[-1], axis=0).max() / np.ptp(start, axis=0).max())


def measure_ends(n_cases: int) -> Figures:
    """What is gained after a stop, by the paper's rule or sooner, by going on in either way."""
    figures = {}
    for name, n_sweeps in (("at_end", 1000), ("early", 60)):
        stayed, polished, powers = [], [], []
        for case in range(n_cases):
            _, points, seeds = clouds(case)
            bare = PowerKMeans(len(seeds), init=seeds, power=-3.0, schedule=GROWTH, polish=False)
            stopped = fitted(bare.set_params(max_iter=n_sweeps), points)
            centers, power, inertia = stopped.cluster_centers_, stopped.power_, stopped.inertia_
            longer, _ = sweeps(points, centers, Fixed(power), 300)
            lloyd, _ = sweeps(points, centers, Fixed(-math.inf), 300)
            stayed.append(abs(longer.inertia_ / inertia - 1))
            polished.append(abs(lloyd.inertia_ / inertia - 1))
            powers.append(power)
        figures[f"stayed_{name}"], figures[f"polished_{name}"] = max(stayed), max(polished)
        figures[f"power_{name}"] = float(np.median(powers))
    return figures


def measure_stationary(n_cases: int) -> Figures:
    """The gradient of f_s where sweeps at one power end, over that where they start."""
    ratios = []
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        seeds = seeds + 0.1
        _, path = sweeps(points, seeds, Fixed(-4.0), 2000)
        ratios.append(float(steepness(points, path[-1]) / steepness(points, seeds)))
    return {"largest": max(ratios)}


def steepness(points: Array, centers: Array, power: float = -4.0) -> float:
    """The norm of the gradient of f_s in the centers."""
    away = centers - points[:, None]
    slopes = power_mean_gradient(np.sum(away**2, axis=2), power)
    return float(np.linalg.norm(2 * np.einsum("ij,ijf->jf", slopes, away)))


def measure_low_starts(n_cases: int) -> Figures:
    """How far solutions are from Lloyd's of the same seeds, by the power they start from."""
    distances: dict[float, list[float]] = {power: [] for power in LOWEST_POWERS}
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        lloyd, _ = sweeps(points, seeds, Fixed(-math.inf), 300)
        for power, column in distances.items():
            model, _ = sweeps(points, seeds, Geometric(power, GROWTH), 300)
            column.append(variation_of_information(lloyd.labels_, model.labels_))
    return {f"from{-power:g}": float(np.mean(column)) for power, column in distances.items()}


def measure_hybrids(n_cases: int) -> Figures:
    """What soft memberships, weights that vary, and powers gain, in percent of the least found."""
    excess: dict[str, list[float]] = {name: [] for name in ("lloyd", "power", *HYBRIDS)}
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        seeds = seeds + 0.1
        ends = {name: own_sweeps(points, seeds, rule) for name, rule in HYBRIDS.items()}
        ends["lloyd"] = seeds
        ends["power"] = sweeps(points, seeds, Geometric(-1.0, GROWTH), 200)[1][-1]
        found = {
            name: sweeps(points, centers, Fixed(-math.inf), 300)[0].inertia_
            for name, centers in ends.items()
        }
        for name, inertia in found.items():
            excess[name].append(100 * (inertia / min(found.values()) - 1))
    figures = {name: float(np.mean(values)) for name, values in excess.items()}
    for worse, better in GAINS_OF_HYBRIDS:
        gain, error = paired_gain(excess[worse], excess[better])
        figures |= {f"{better}_over_{worse}": gain, f"{better}_over_{worse}_error": error}
    return figures


def own_sweeps(points: Array, centers: Array, rule: Rule, n_sweeps: int = 60) -> Array:
    """Sweeps of a rule by its memberships and its weighing, as Hamerly & Elkan write them."""
    for _ in range(n_sweeps):
        sq_dist = np.sum((points[:, None] - centers) ** 2, axis=2)
        weights = rule.memberships(sq_dist) * rule.weighing(sq_dist)[:, None]
        totals = weights.sum(axis=0)
        has_points = totals > 0
        centers = centers.copy()
        centers[has_points] = (weights.T @ points)[has_points] / totals[has_points, None]
    return centers


def gains_of(figures: Figures, *pairs: tuple[str, str]) -> Verdict:
    """Whether the second of each pair is better than the first, beyond the noise."""
    names = [f"{better}_over_{worse}" for worse, better in pairs]
    return together(above(figures[name], figures[f"{name}_error"]) for name in names)


def measure_cost(n_cases: int) -> Figures:
    """Seconds of a sweep at s = -1 as points, centers or features double, over those before."""
    sizes = {"base": (10**5, 20, 20), "n": (2 * 10**5, 20, 20), "k": (10**5, 40, 20)}
    sizes["d"] = (10**5, 20, 40)
    powers = {"power": -1.0, "lloyd": -math.inf}
    seconds = {(name, rule): math.inf for name in sizes for rule in powers}
    for case in range(n_cases):
        for name, (n_points, n_centers, n_features) in sizes.items():
            points = np.random.default_rng(case).normal(size=(n_points, n_features))
            for rule, power in powers.items():
                model, _ = sweeps(points, points[:n_centers], Fixed(power), 3)
                least = float(model.history_.seconds.min())
                seconds[name, rule] = min(seconds[name, rule], least)
    return {
        **{name: seconds[name, "power"] / seconds["base", "power"] for name in ("n", "k", "d")},
        "over_lloyd": seconds["base", "power"] / seconds["base", "lloyd"],
    }


def measure_medians(n_cases: int) -> Figures:
    """Centers of a sweep with absolute differences beside weighted medians, and rises."""
    worse, n_rises = 0.0, 0
    for case in range(n_cases):
        rng, points, seeds = clouds(case, n_points=101)
        power, seeds = -rng.lognormal(), seeds + 0.1
        options = {"divergence": "manhattan"}
        _, path = sweeps(points, seeds, Fixed(power), 1, **options)
        longer, _ = sweeps(points, seeds, Geometric(power, GROWTH), 40, **options)
        weights = power_mean_gradient(np.abs(points[:, None] - seeds).sum(axis=2), power)
        ours, least = surrogate(points, path[0], weights), least_surrogate(points, weights)
        worse, n_rises = max(worse, ours / least - 1), n_rises + rises(longer.history_.objective)
    return {"worse": worse, "n_rises": n_rises}


def surrogate(points: Array, centers: Array, weights: Array) -> float:
    """What a step with absolute differences makes small."""
    return float(np.sum(weights * np.abs(points[:, None] - centers).sum(axis=2)))


def least_surrogate(points: Array, weights: Array) -> float:
    """Its least value, by trying each point's coordinate: a median is one of them."""
    gaps = np.abs(points[:, None, :] - points[None, :, :])
    return float(np.einsum("ij,icf->jcf", weights, gaps).min(axis=1).sum())


def measure_covariance(n_cases: int) -> Figures:
    """The learned covariance beside the true one, and clusters found with it and without."""
    root, apart_by, with_it, without = np.linalg.cholesky(COMMON_SCATTER), [], [], []
    unit = COMMON_SCATTER / np.sqrt(np.linalg.det(COMMON_SCATTER))
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        truth = np.repeat(np.arange(3), 300)
        centers = np.array([[0.0, 0.0], [2.4, -2.4], [-2.4, 2.4]])
        points = centers[truth] + rng.normal(size=(900, 2)) @ root.T * 1.4
        learned = PowerKMeans(3, divergence="mahalanobis", random_state=case).fit(points)
        plain = PowerKMeans(3, random_state=case).fit(points)
        error = np.linalg.norm(learned.covariance_ - unit) / np.linalg.norm(unit)
        apart_by.append(float(error))
        with_it.append(variation_of_information(truth, learned.labels_))
        without.append(variation_of_information(truth, plain.labels_))
    return {
        "off": float(np.median(apart_by)),
        "with_it": float(np.mean(with_it)),
        "without": float(np.mean(without)),
    }


CHECKS = (
    Check(
        "harmonic",
        "At s = −1 the steps are those of k-harmonic means.",
        PAPER.format("2"),
        measure_harmonic,
        lambda figures: figures["deviation"] < 1e-9,
        "Centers after a step from {n_cases} random starts differ by {deviation:.0e} at most.",
        n_cases=100,
    ),
    Check(
        "descent",
        "Each step lowers f_s whatever s is, and along any falling powers f_s_m(Θ_m) falls.",
        PAPER.format("2.1, proposition 2.1"),
        measure_descent,
        lambda figures: figures["n_fixed"] + figures["n_falling"] == 0,
        "{n_cases} problems, {n_sweeps:.0f} sweeps each: {n_fixed:.0f} rises at a fixed power, "
        "{n_falling:.0f} along random falling ones.",
        n_cases=100,
    ),
    Check(
        "hard_descent",
        "Each step lowers the k-means objective.",
        PAPER.format("1"),
        measure_hard_descent,
        lambda figures: figures["n_rises"] == 0,
        "From s = −1 with η = 1.05 it rises in {n_rises:.0f} of {n_sweeps:.0f} sweeps, by up to "
        "{largest:.0%} in one. What falls in each step is f_s.",
        n_cases=100,
    ),
    Check(
        "hull",
        "Centers stay in the convex hull of the points.",
        PAPER.format("2 and 3"),
        measure_hull,
        lambda figures: figures["n_outside"] == 0,
        "{n_outside:.0f} sweeps with a center outside, in {n_cases} runs that start outside.",
        n_cases=100,
    ),
    Check(
        "newton",
        "KHM_p has no descent property.",
        PAPER.format("3"),
        measure_newton,
        lambda figures: figures["at_3_5"] > 0,
        "At p = 3.5 the objective rises in {at_3_5:.0f} of {n_cases} runs; at p = 2, where it is "
        "power k-means, in {at_2:.0f}.",
        n_cases=100,
    ),
    Check(
        "collapse",
        "At s = 1 all optimal centers are the mean of the points.",
        PAPER.format("2.1"),
        measure_collapse,
        lambda figures: figures["deviation"] < 1e-6,
        "f_1 exceeds its value there by (n/k) Σ ‖θ_j − mean‖², to {deviation:.0e}.",
        n_cases=100,
    ),
    Check(
        "critical",
        "(Beyond the paper, which names s = 1 alone.) Already above the critical power "
        "1 − 1/(2λ) of the data, centers near the mean collapse to it; below, they part.",
        "section 2.1 of the paper, and our derivation",
        measure_critical,
        lambda figures: figures["share"] == 1,
        "{n_cases} normal clouds, critical powers from {lowest:.2f} to {highest:.2f}: 0.1 above "
        "it centers gather in {n_gather:.0f}, 0.1 below they part in {n_part:.0f}.",
        n_cases=20,
        n_quick_cases=4,
    ),
    Check(
        "ends",
        "Stopping at some power, going on at that power, or going on by Lloyd's algorithm: the "
        "difference is negligible.",
        PAPER.format("3"),
        measure_ends,
        lambda figures: max(figures["stayed_at_end"], figures["polished_at_end"]) < 1e-3,
        "Stopped by the paper's rule, at s = {power_at_end:.3g} in the median, sums of squares "
        "change by {stayed_at_end:.0e} and {polished_at_end:.0e} at most; stopped after 60 sweeps, "
        "at s = {power_early:.3g}, by {stayed_early:.1e} and {polished_early:.1e}.",
        n_cases=50,
    ),
    Check(
        "stationary",
        "Where iterations at one power end, f_s is stationary.",
        PAPER.format("3"),
        measure_stationary,
        lambda figures: figures["largest"] < 1e-4,
        "After 2000 sweeps at s = −4 the gradient is {largest:.0e} of what it was, at most.",
        n_cases=50,
    ),
    Check(
        "low_starts",
        "The lower the initial power, the more power k-means behaves like Lloyd's algorithm.",
        PAPER.format("4"),
        measure_low_starts,
        lambda figures: (
            figures["from3"] > figures["from18"] > figures["from100"]
            and figures["from10000"] < 0.02
        ),
        "Mean variation of information between the two, same seeds: {from3:.3f} from s = −3, "
        "{from18:.3f} from −18, {from100:.3f} from −100, {from10000:.4f} from −10 000.",
        n_cases=100,
    ),
    Check(
        "soft",
        "Soft memberships find better solutions than hard ones (of Hamerly & Elkan).",
        PAPER.format("3.1"),
        measure_hybrids,
        lambda figures: gains_of(figures, *SOFT_GAINS),
        "In low dimensions, p = 3.5, all ending in Lloyd's sweeps; lower sums of squares in "
        "percent: hybrid 2 than Lloyd's {even_over_lloyd:+.2f} ± {even_over_lloyd_error:.2f}, KHM "
        "than hybrid 1 {khm_over_hard:+.2f} ± {khm_over_hard_error:.2f}.",
        n_cases=100,
    ),
    Check(
        "weights",
        "Weights that vary find better solutions than constant ones (of Hamerly & Elkan).",
        PAPER.format("3.1"),
        measure_hybrids,
        lambda figures: gains_of(figures, *WEIGHT_GAINS),
        "The same: hybrid 1 than Lloyd's {hard_over_lloyd:+.2f} ± {hard_over_lloyd_error:.2f}, KHM "
        "than hybrid 2 {khm_over_even:+.2f} ± {khm_over_even_error:.2f}.",
        n_cases=100,
    ),
    Check(
        "carried_over",
        "Power k-means has the strengths that Hamerly & Elkan find in both.",
        PAPER.format("3.1"),
        measure_hybrids,
        lambda figures: gains_of(figures, *POWER_GAINS),
        "The same, from s = −1: than Lloyd's {power_over_lloyd:+.2f} ± "
        "{power_over_lloyd_error:.2f}, hybrid 1 {power_over_hard:+.2f} ± "
        "{power_over_hard_error:.2f}, hybrid 2 {power_over_even:+.2f} ± "
        "{power_over_even_error:.2f}; mean excess of KHM {khm:.2f}, of power k-means {power:.2f}.",
        n_cases=100,
    ),
    Check(
        "cost",
        "A step costs O(nkd), as Lloyd's does.",
        PAPER.format("1 and 2"),
        measure_cost,
        lambda figures: max(figures["n"], figures["k"], figures["d"]) < 2.5,
        "Twice the points: {n:.2f} times the seconds; centers: {k:.2f}; features: {d:.2f}. A sweep "
        "at s = −1 takes {over_lloyd:.1f} times a Lloyd sweep of ours (n = 100 000, k = d = 20).",
        n_cases=8,
        n_quick_cases=2,
    ),
    Check(
        "medians",
        "With absolute differences the step is that of weighted medians.",
        PAPER.format("3.2"),
        measure_medians,
        lambda figures: figures["worse"] < 1e-9 and figures["n_rises"] == 0,
        "The surrogate is within {worse:.0e} of its least value, and the objective rises in "
        "{n_rises:.0f} sweeps.",
        n_cases=50,
        n_quick_cases=4,
    ),
    Check(
        "covariance",
        "With the Mahalanobis distance there are updates for the centers and the shared "
        "covariance.",
        PAPER.format("3.2"),
        measure_covariance,
        lambda figures: figures["off"] < 0.2 and figures["with_it"] < figures["without"],
        "Three long clouds: the learned covariance is off by {off:.0%} in the median; variation of "
        "information {with_it:.3f} with it, {without:.3f} with squared distances.",
        n_cases=20,
        n_quick_cases=4,
    ),
)

NOT_JUDGED = (
    Aside(
        "not judged",
        "Lloyd's algorithm can take a superpolynomial number of steps; optimal clustering is "
        "NP-hard.",
        PAPER.format("1"),
        "Theorems of others, about worst cases.",
    ),
    Aside(
        "not judged",
        "Affinity propagation needs about 40 hours on MNIST and is worse than Lloyd's algorithm.",
        PAPER.format("4"),
        "A result of others, on a machine that is not described.",
    ),
)
