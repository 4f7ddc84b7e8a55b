"""What the sources say about the algorithm: that it descends, where it ends, what it costs."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from powermeans import PowerKMeans, critical_power
from powermeans.mathematics.power_mean import objective, power_mean_gradient
from powermeans.mathematics.rules import Hard, Harmonic
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.methods import KHarmonicMeans
from powermeans.metrics import variation_of_information
from powermeans.types import FloatArray
from reproduce.item import Aside, Findings, Rows, Verdict
from reproduce.trials import fitted
from reproduce.verdicts import Checks, Figures, above, all_above, paired_gain, together

TITLE = "Power k-means: what the sources say about the algorithm"
SOURCE = "The paper, sections 1 to 5"
DATA = "random cases"

PAPER = "the paper, section {}"
ROUNDING = 1e-9
CHECKS = Checks()
cells = CHECKS.cells
GROWTH = 1.05
LOWEST_POWERS = (-3.0, -18.0, -100.0, -1e4)
# How far from the mean centers are set to see whether they part, as a share of the spread.
NUDGE = 1e-4
# So far above and below the critical power that is tried.
MARGIN = 0.1
COMMON_SCATTER = np.array([[2.0, 1.2], [1.2, 1.0]])
Rule = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]
"""Memberships and weighing."""
KHM = Harmonic(3.5)
HYBRIDS: dict[str, Rule] = {
    "hard": (Hard().memberships, KHM.weighing),
    "even": (KHM.memberships, Hard().weighing),
    "khm": (KHM.memberships, KHM.weighing),
}
"""Hamerly & Elkan's (2002): hybrids 1 and 2, and KHM_p, at their p."""
# The second is to be better than the first.
SOFT_GAINS = (("lloyd", "even"), ("hard", "khm"))
WEIGHT_GAINS = (("lloyd", "hard"), ("even", "khm"))
POWER_GAINS = (("lloyd", "power"), ("hard", "power"), ("even", "power"))


def clouds(case: int, n_points: int = 300) -> tuple[np.random.Generator, FloatArray, FloatArray]:
    """Six to twelve overlapping normal clouds in one to five dimensions, and seeds among them."""
    rng = np.random.default_rng(case)
    n_features, n_centers = int(rng.integers(1, 6)), int(rng.integers(6, 13))
    centers = rng.uniform(0, 12, size=(n_centers, n_features))
    points = centers[rng.integers(n_centers, size=n_points)] + rng.normal(
        size=(n_points, n_features)
    )
    return rng, points, points[rng.choice(n_points, n_centers, replace=False)]


def sweeps(points, seeds, schedule, n_sweeps, **params):
    """The bare algorithm with these powers, and the centers after each sweep."""
    path: list[FloatArray] = []
    params |= {"callback": lambda state: path.append(state.centers), "max_iter": n_sweeps}
    model = PowerKMeans(len(seeds), init=seeds, schedule=schedule, polish=False, tol=0, **params)
    return fitted(model, points), path


def rises(values: Sequence[float]) -> int:
    """How often a value is above the one before, beyond rounding."""
    column = np.asarray(values)
    return int((np.diff(column) > ROUNDING * column[:-1]).sum())


# Descent.


@CHECKS.claim(
    "At s = −1 the steps are those of k-harmonic means.",
    PAPER.format("2"),
    "Centers after a step from {n_cases} random starts differ by {deviation:.0e} at most.",
    lambda deviation: deviation < 1e-9,
    n_cases=100,
)
def _harmonic(n_cases: int) -> Figures:
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


@CHECKS.claim(
    "Each step lowers f_s whatever s is, and along any falling powers f_s_m(Θ_m) falls.",
    PAPER.format("2.1, proposition 2.1"),
    "{n_cases} problems, {n_sweeps:.0f} sweeps each: {n_fixed:.0f} rises at a fixed power, "
    "{n_falling:.0f} along random falling ones.",
    lambda n_fixed, n_falling, **_: n_fixed + n_falling == 0,
    n_cases=100,
    in_short="the objective falls in each step",
)
def _descent(n_cases: int) -> Figures:
    n_fixed, n_falling, n_sweeps = 0, 0, 60
    for case in range(n_cases):
        rng, points, seeds = clouds(case)
        fixed, _ = sweeps(points, seeds, Fixed(-0.1 - rng.lognormal(sigma=1.5)), n_sweeps)
        n_fixed += rises(fixed.history_.objective)
        powers = -0.1 - np.cumsum(rng.exponential(size=n_sweeps) * rng.integers(2, size=n_sweeps))
        falling, _ = sweeps(points, seeds, powers.tolist(), n_sweeps)
        n_falling += rises(falling.history_.objective)
    return {"n_fixed": n_fixed, "n_falling": n_falling, "n_sweeps": n_sweeps}


@CHECKS.claim(
    "Each step lowers the k-means objective.",
    PAPER.format("1"),
    "From s = −1 with η = 1.05 it rises in {n_rises:.0f} of {n_sweeps:.0f} sweeps, by up to "
    "{largest:.0%} in one. What falls in each step is f_s.",
    lambda n_rises, **_: n_rises == 0,
    n_cases=100,
    in_short="each step lowers the k-means objective",
)
def _hard_descent(n_cases: int) -> Figures:
    n_rises, n_sweeps, largest = 0, 0, 0.0
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        model, _ = sweeps(points, seeds, Geometric(-1.0, GROWTH), 80)
        inertias = model.history_.inertia
        n_rises, n_sweeps = n_rises + rises(inertias), n_sweeps + len(inertias) - 1
        largest = max(largest, float((np.diff(inertias) / inertias[:-1]).max()))
    return {"n_rises": n_rises, "n_sweeps": n_sweeps, "largest": largest}


@CHECKS.claim(
    "Centers stay in the convex hull of the points.",
    PAPER.format("2 and 3"),
    "{n_outside:.0f} sweeps with a center outside, in {n_cases} runs that start outside.",
    lambda n_outside: n_outside == 0,
    n_cases=100,
)
def _hull(n_cases: int) -> Figures:
    n_outside = 0
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        points = np.concatenate([corners, rng.uniform(size=(80, 2)) ** 3])
        _, path = sweeps(points, rng.uniform(-1, 2, size=(5, 2)), Geometric(-0.5, 1.2), 40)
        n_outside += sum(bool(((step < 0) | (step > 1)).any()) for step in path)
    return {"n_outside": n_outside}


@CHECKS.claim(
    "KHM_p has no descent property.",
    PAPER.format("3"),
    "At p = 3.5 the objective rises in {at_3_5:.0f} of {n_cases} runs; at p = 2, where it is "
    "power k-means, in {at_2:.0f}.",
    lambda at_3_5, **_: at_3_5 > 0,
    n_cases=100,
)
def _newton(n_cases: int) -> Figures:
    figures = {"at_2": 0, "at_3_5": 0}
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        for name, p in (("at_2", 2.0), ("at_3_5", 3.5)):
            model = KHarmonicMeans(len(seeds), p=p, init=seeds, tol=0, max_iter=60)
            figures[name] += rises(fitted(model, points).history_.objective) > 0
    return figures


# Where it ends.


@CHECKS.claim(
    "At s = 1 all optimal centers are the mean of the points.",
    PAPER.format("2.1"),
    "f_1 exceeds its value there by (n/k) Σ ‖θ_j − mean‖², to {deviation:.0e}.",
    lambda deviation: deviation < 1e-6,
    n_cases=100,
)
def _collapse(n_cases: int) -> Figures:
    deviations = []
    for case in range(n_cases):
        rng, points, seeds = clouds(case)
        centers, mean = rng.uniform(0, 12, size=seeds.shape), points.mean(axis=0)
        at_mean = objective(points, np.tile(mean, (len(seeds), 1)), 1.0)
        excess = objective(points, centers, 1.0) - at_mean
        expected = len(points) * np.mean(np.sum((centers - mean) ** 2, axis=1))
        deviations.append(float(abs(excess / expected - 1)))
    return {"deviation": max(deviations)}


@CHECKS.claim(
    "(Beyond the paper, which names s = 1 alone.) Already above the critical power "
    "1 − 1/(2λ) of the data, centers near the mean collapse to it; below, they separate.",
    "section 2.1 of the paper, and our derivation",
    "{n_cases} normal clouds, critical powers from {lowest:.2f} to {highest:.2f}: 0.1 above "
    "it, centers collapse in {n_gather:.0f}; 0.1 below, they separate in {n_part:.0f}.",
    lambda share, **_: share == 1,
    n_cases=20,
    n_quick_cases=4,
)
def _critical(n_cases: int) -> Figures:
    n_gather, n_part, thresholds = 0, 0, []
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        scales = rng.lognormal(sigma=0.3, size=int(rng.integers(5, 16)))
        points = rng.normal(size=(2000, len(scales))) * scales
        thresholds.append(critical_power(points))
        nudges = NUDGE * points.std(axis=0) * rng.normal(size=(4, len(scales)))
        start = points.mean(axis=0) + nudges
        n_gather += growth_at(thresholds[-1] + MARGIN, points, start) < 1
        n_part += growth_at(thresholds[-1] - MARGIN, points, start) > 1
    share = (n_gather + n_part) / (2 * n_cases)
    lowest, highest = min(thresholds), max(thresholds)
    figures = {"n_gather": n_gather, "n_part": n_part, "share": share}
    return {**figures, "lowest": lowest, "highest": highest}


def growth_at(power: float, points: FloatArray, start: FloatArray) -> float:
    """How much farther apart centers are after many sweeps at a power."""
    _, path = sweeps(points, start, Fixed(power), 400)
    return float(np.ptp(path[-1], axis=0).max() / np.ptp(start, axis=0).max())


@CHECKS.claim(
    "Stopping at some power, going on at that power, or going on by Lloyd's algorithm: the "
    "difference is negligible.",
    PAPER.format("3"),
    "Stopped by the paper's rule, at s = {power_at_end:.3g} in the median, sums of squares "
    "change by {stayed_at_end:.0e} and {polished_at_end:.0e} at most; stopped after 60 sweeps, "
    "at s = {power_early:.3g}, by {stayed_early:.1e} and {polished_early:.1e}.",
    lambda stayed_at_end, polished_at_end, **_: max(stayed_at_end, polished_at_end) < 1e-3,
    n_cases=50,
)
def _ends(n_cases: int) -> Figures:
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


@CHECKS.claim(
    "Where iterations at one power end, f_s is stationary.",
    PAPER.format("3"),
    "After 2000 sweeps at s = −4 the gradient is {largest:.0e} of what it was, at most.",
    lambda largest: largest < 1e-4,
    n_cases=50,
)
def _stationary(n_cases: int) -> Figures:
    ratios = []
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        seeds = seeds + 0.1
        _, path = sweeps(points, seeds, Fixed(-4.0), 2000)
        ratios.append(steepness(points, path[-1]) / steepness(points, seeds))
    return {"largest": max(ratios)}


def steepness(points: FloatArray, centers: FloatArray, power: float = -4.0) -> float:
    """The norm of the gradient of f_s in the centers."""
    away = centers - points[:, None]
    slopes = power_mean_gradient(np.sum(away**2, axis=2), power)
    return float(np.linalg.norm(2 * np.einsum("ij,ijf->jf", slopes, away)))


@CHECKS.claim(
    "The lower the initial power, the more power k-means behaves like Lloyd's algorithm.",
    PAPER.format("4"),
    "Mean variation of information between the two, same seeds: {from3:.3f} from s = −3, "
    "{from18:.3f} from −18, {from100:.3f} from −100, {from10000:.4f} from −10 000.",
    lambda from3, from18, from100, from10000: from3 > from18 > from100 and from10000 < 0.02,
    n_cases=100,
)
def _low_starts(n_cases: int) -> Figures:
    distances: dict[float, list[float]] = {power: [] for power in LOWEST_POWERS}
    for case in range(n_cases):
        _, points, seeds = clouds(case)
        lloyd, _ = sweeps(points, seeds, Fixed(-math.inf), 300)
        for power, column in distances.items():
            model, _ = sweeps(points, seeds, Geometric(power, GROWTH), 300)
            column.append(variation_of_information(lloyd.labels_, model.labels_))
    return {f"from{-power:g}": float(np.mean(column)) for power, column in distances.items()}


# Beside its relatives, and what it costs.


def gains_in(*pairs: tuple[str, str]) -> Callable[..., Any]:
    """Return how to judge whether the second of each pair is better, beyond the noise."""
    names = [f"{better}_over_{worse}" for worse, better in pairs]
    return lambda **f: together(above(f[name], f[f"{name}_error"]) for name in names)


def carries_over(**f: float) -> Verdict:
    """Return whether power k-means is better than all three, where a tenth of its lead is none."""
    figures = [
        (f[f"power_over_{worse}"], f[f"power_over_{worse}_error"]) for worse, _ in POWER_GAINS
    ]
    return all_above(figures, none_below=figures[0][0] / 10)


@CHECKS.claim(
    "Soft memberships find better solutions than hard ones (of Hamerly & Elkan).",
    PAPER.format("3.1"),
    "In low dimensions, p = 3.5, all ending in Lloyd's sweeps; decrease of the sum of squares in "
    "percent: hybrid 2 over Lloyd's {even_over_lloyd:+.2f} ± {even_over_lloyd_error:.2f}, KHM "
    "over hybrid 1 {khm_over_hard:+.2f} ± {khm_over_hard_error:.2f}.",
    gains_in(*SOFT_GAINS),
    name="soft",
    n_cases=400,
)
@CHECKS.claim(
    "Weights that vary find better solutions than constant ones (of Hamerly & Elkan).",
    PAPER.format("3.1"),
    "The same: hybrid 1 over Lloyd's {hard_over_lloyd:+.2f} ± {hard_over_lloyd_error:.2f}, KHM "
    "over hybrid 2 {khm_over_even:+.2f} ± {khm_over_even_error:.2f}.",
    gains_in(*WEIGHT_GAINS),
    name="weights",
    n_cases=400,
)
@CHECKS.claim(
    "Power k-means has the strengths that Hamerly & Elkan find in both.",
    PAPER.format("3.1"),
    "The same, from s = −1: over Lloyd's {power_over_lloyd:+.2f} ± "
    "{power_over_lloyd_error:.2f}, hybrid 1 {power_over_hard:+.2f} ± "
    "{power_over_hard_error:.2f}, hybrid 2 {power_over_even:+.2f} ± "
    "{power_over_even_error:.2f}; mean excess of KHM {khm:.2f}, of power k-means {power:.2f}.",
    carries_over,
    name="carried_over",
    on="the rival: it is better than Lloyd's and hybrid 1, and like hybrid 2",
    n_cases=400,
)
@functools.cache
def _hybrids(n_cases: int) -> Figures:
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
    for worse, better in (*SOFT_GAINS, *WEIGHT_GAINS, *POWER_GAINS):
        gain, error = paired_gain(excess[worse], excess[better])
        figures |= {f"{better}_over_{worse}": gain, f"{better}_over_{worse}_error": error}
    return figures


def own_sweeps(points: FloatArray, centers: FloatArray, rule: Rule, n: int = 60) -> FloatArray:
    """Sweeps of a rule by its memberships and its weighing, as Hamerly & Elkan write them."""
    memberships, weighing = rule
    for _ in range(n):
        sq_dist = np.sum((points[:, None] - centers) ** 2, axis=2)
        weights = memberships(sq_dist) * weighing(sq_dist)[:, None]
        totals = weights.sum(axis=0)
        has_points = totals > 0
        centers = centers.copy()
        centers[has_points] = (weights.T @ points)[has_points] / totals[has_points, None]
    return centers


@CHECKS.claim(
    "A step costs O(nkd), as Lloyd's does.",
    PAPER.format("1 and 2"),
    "Twice the points: {n:.2f} times the seconds; centers: {k:.2f}; features: {d:.2f}. A sweep "
    "at s = −1 takes {over_lloyd:.1f} times a Lloyd sweep of ours (n = 100 000, k = d = 20).",
    lambda n, k, d, **_: max(n, k, d) < 2.5,
    n_cases=8,
    n_quick_cases=2,
)
def _cost(n_cases: int) -> Figures:
    n, k, d = 10**5, 20, 20
    sizes = {"base": (n, k, d), "n": (2 * n, k, d), "k": (n, 2 * k, d), "d": (n, k, 2 * d)}
    powers = {"power": -1.0, "lloyd": -math.inf}
    seconds = {(name, rule): math.inf for name in sizes for rule in powers}
    for case in range(n_cases):
        for name, (n_points, n_centers, n_features) in sizes.items():
            points = np.random.default_rng(case).normal(size=(n_points, n_features))
            for rule, power in powers.items():
                model, _ = sweeps(points, points[:n_centers], Fixed(power), 3)
                least = float(model.history_.seconds.min())
                seconds[name, rule] = min(seconds[name, rule], least)
    base = seconds["base", "power"]
    figures = {name: seconds[name, "power"] / base for name in ("n", "k", "d")}
    return {**figures, "over_lloyd": base / seconds["base", "lloyd"]}


# Other distances.


@CHECKS.claim(
    "With absolute differences the step is that of weighted medians.",
    PAPER.format("3.2"),
    "The surrogate is within {worse:.0e} of its least value, and the objective rises in "
    "{n_rises:.0f} sweeps.",
    lambda worse, n_rises: worse < 1e-9 and n_rises == 0,
    n_cases=50,
    n_quick_cases=4,
)
def _medians(n_cases: int) -> Figures:
    worse, n_rises = 0.0, 0
    for case in range(n_cases):
        rng, points, seeds = clouds(case, n_points=101)
        power, seeds = -rng.lognormal(), seeds + 0.1
        _, path = sweeps(points, seeds, Fixed(power), 1, divergence="manhattan")
        longer, _ = sweeps(points, seeds, Geometric(power, GROWTH), 40, divergence="manhattan")
        weights = power_mean_gradient(np.abs(points[:, None] - seeds).sum(axis=2), power)
        ours = np.sum(weights * np.abs(points[:, None] - path[0]).sum(axis=2))
        worse = max(worse, float(ours) / least_surrogate(points, weights) - 1)
        n_rises += rises(longer.history_.objective)
    return {"worse": worse, "n_rises": n_rises}


def least_surrogate(points: FloatArray, weights: FloatArray) -> float:
    """The least that a step with absolute differences can reach: a median is one of the points'."""
    gaps = np.abs(points[:, None, :] - points[None, :, :])
    return float(np.einsum("ij,icf->jcf", weights, gaps).min(axis=1).sum())


@CHECKS.claim(
    "With the Mahalanobis distance there are updates for the centers and the shared covariance.",
    PAPER.format("3.2"),
    "Three long clouds: the learned covariance is off by {off:.0%} in the median; variation of "
    "information {with_it:.3f} with it, {without:.3f} with squared distances.",
    lambda off, with_it, without: off < 0.2 and with_it < without,
    n_cases=20,
    n_quick_cases=4,
)
def _covariance(n_cases: int) -> Figures:
    root, off, with_it, without = np.linalg.cholesky(COMMON_SCATTER), [], [], []
    unit = COMMON_SCATTER / np.sqrt(np.linalg.det(COMMON_SCATTER))
    truth = np.repeat(np.arange(3), 300)
    centers = np.array([[0.0, 0.0], [2.4, -2.4], [-2.4, 2.4]])
    for case in range(n_cases):
        noise = np.random.default_rng(case).normal(size=(900, 2)) @ root.T
        points = centers[truth] + 1.4 * noise
        learned = PowerKMeans(3, divergence="mahalanobis", random_state=case).fit(points)
        plain = PowerKMeans(3, random_state=case).fit(points)
        off.append(np.linalg.norm(learned.covariance_ - unit) / np.linalg.norm(unit))
        with_it.append(variation_of_information(truth, learned.labels_))
        without.append(variation_of_information(truth, plain.labels_))
    figures = {"with_it": float(np.mean(with_it)), "without": float(np.mean(without))}
    return {"off": float(np.median(off)), **figures}


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


def findings(rows: Rows) -> Findings:
    return CHECKS.findings(rows, *NOT_JUDGED)
