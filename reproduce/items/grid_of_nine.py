"""Nine Gaussians on a grid: random starts, k-means++ and annealing."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state

from powermeans import KMeans, PowerKMeans, kmeans_plusplus
from powermeans.datasets import load_data_set
from powermeans.methods import SphericalMixture, moment_estimates
from powermeans.metrics import centroid_index, quality_ratio
from powermeans.types import FloatArray
from reproduce.drawn_data import make_grid_gaussians
from reproduce.item import Aside, Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import Figure, column, groups, kinds, mean_and_error, where
from reproduce.tables import mean, median
from reproduce.trials import centers_of, draw_seeds, fitted
from reproduce.verdicts import above, below, exact, paired_gain, share_and_error, together

TITLE = "Nine Gaussians on a grid: random starts, k-means++ and annealing"
SOURCE = (
    "L. Wasserman, The Remarkable k-means++ (blog post of 2012): sections 1 to 3, and the comments "
    "on nine Gaussians, on many random starts and on mixtures"
)
DATA = "random cases"
WIDTHS = "the widths of the Gaussians, which the comment does not state"

N_EACH = 100
"""Points of each Gaussian, whose standard deviation is the unit of the spacing."""
SPACING = 6.0
STARTS_TIMED = 10
"""In one fit, so that what a fit costs beside its starts is shared among them."""
SURE = 0.99
HARDLY_EVER, NEARLY_ALWAYS, MUCH = 0.05, 0.95, 0.05
"""Shares of starts: what the comments call essentially no chance, nailing it, and much better."""

RandomState = int | np.random.RandomState | None


def draw_grid(seed: int, side: int = 3) -> tuple[FloatArray, FloatArray]:
    """Gaussians of standard deviation one on a square grid, and their means."""
    n_points = N_EACH * side**2
    drawn = make_grid_gaussians(n_points, side, spacing=SPACING, spread=1.0, random_state=seed)
    assert drawn.centers is not None
    return np.asarray(drawn.points, dtype=np.float64), drawn.centers


def plain_seeds(X: FloatArray, n_clusters: int, *, random_state: RandomState) -> FloatArray:
    """k-means++ as the post has it: one candidate for each center."""
    seeds, _ = kmeans_plusplus(X, n_clusters, n_local_trials=1, random_state=random_state)
    return np.asarray(seeds, dtype=np.float64)


def farthest_first(X: FloatArray, n_clusters: int, *, random_state: RandomState) -> FloatArray:
    """A point by chance, and then each time the point farthest from all so far."""
    rng = check_random_state(random_state)
    chosen = [int(rng.randint(len(X)))]
    sq_dist = ((X - X[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < n_clusters:
        chosen.append(int(sq_dist.argmax()))
        np.minimum(sq_dist, ((X - X[chosen[-1]]) ** 2).sum(axis=1), out=sq_dist)
    return X[chosen]


RANDOM, PLUS, GREEDY, FARTHEST, SEARCH = (
    "random starts", "k-means++", "greedy k-means++", "farthest first", "search (the default)"
)  # fmt: skip
_lloyd = functools.partial(PowerKMeans, power=-math.inf, effort="none")
_annealed = functools.partial(PowerKMeans, effort="none")
METHODS: dict[str, Callable[..., Any]] = {
    RANDOM: functools.partial(_lloyd, init="random"),
    PLUS: functools.partial(_lloyd, init="plain-k-means++"),
    GREEDY: functools.partial(_lloyd, init="k-means++"),
    FARTHEST: functools.partial(_lloyd, init=farthest_first),
    "annealed from random points": functools.partial(_annealed, init="random"),
    "annealed from k-means++": functools.partial(_annealed, init="plain-k-means++"),
    SEARCH: PowerKMeans,
}
_em = functools.partial(SphericalMixture, effort=None)
MIXTURES: dict[str, Callable[..., Any]] = {
    "random points": functools.partial(_em, init="random", temperature=None),
    PLUS: functools.partial(_em, init=plain_seeds, temperature=None),
    "annealed from random points": functools.partial(_em, init="random"),
    "annealed from k-means++": functools.partial(_em, init=plain_seeds),
    SEARCH: SphericalMixture,
}
FITS = {
    RANDOM: {1: 1000, 10: 200, 100: 50, 1000: 10},
    PLUS: {1: 1000, 10: 200, 100: 30},
    GREEDY: {1: 600, 10: 100, 100: 10},
    FARTHEST: {1: 1000},
    "annealed from random points": {1: 200, 10: 20},
    "annealed from k-means++": {1: 200, 10: 20},
    SEARCH: {1: 50},
}
"""How many starts a fit has, and how many fits there are of each."""
SEEDED = ("grid of 9", "grid of 25", "iris", "wine", "digits", "uniform square")


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    n_rounds, n_fits, n_seedings, n_draws = (3, 10, 50, 3) if quick else (25, 200, 1000, 10)
    seeded, sizes = SEEDED, (2000, 16_000, 128_000, 512_000)
    fits = [(method, n, m) for method, sizes in FITS.items() for n, m in sizes.items()]
    if quick:
        seeded, sizes = SEEDED[:3], (2000, 128_000)
        fits = [(method, n, max(m // 10, 1)) for method, n, m in fits]
    return [
        *(
            Cell({"part": "starts", "method": method, "n_starts": n, "fits": m}, starts)
            for method, n, m in fits
        ),
        *grid(seconds_of_a_start, part="seconds", rounds=n_rounds),
        *grid(mixtures, part="mixtures", init=list(MIXTURES), fits=n_fits),
        *grid(seedings, part="seedings", data=seeded, seedings=n_seedings),
        *grid(moments, part="moments", n_points=sizes, draws=n_draws),
    ]


def timed(model: Any, points: FloatArray) -> float:
    """Fit a model, and return the seconds."""
    started = time.perf_counter()
    fitted(model, points)
    return time.perf_counter() - started


def starts(method: str, n_starts: int, fits: int) -> list[Row]:
    """Fits of a method on as many draws of the nine, each with its number of starts."""
    rows: list[Row] = []
    for seed in range(fits):
        points, means = draw_grid(seed)
        at_means = KMeans(len(means), init=means).fit(points).inertia_
        model = METHODS[method](len(means), n_init=n_starts, random_state=seed)
        seconds = timed(model, points)
        found = int(centroid_index(model.cluster_centers_, means) == 0)
        ratio = model.inertia_ / at_means
        rows.append({"draw": seed, "found": found, "ratio": ratio, "seconds": seconds})
    return rows


def seconds_of_a_start(rounds: int) -> list[Row]:
    """All methods in turns, so that whatever else the machine does falls on each of them."""
    rows: list[Row] = []
    for seed in range(rounds):
        points, means = draw_grid(seed)
        for method, make in METHODS.items():
            model = make(len(means), n_init=STARTS_TIMED, random_state=seed)
            seconds = timed(model, points) / STARTS_TIMED
            rows.append({"draw": seed, "method": method, "seconds": seconds})
    return rows


def mixtures(init: str, fits: int) -> list[Row]:
    """Whether mixtures of spherical Gaussians find the nine, from seeds of several kinds."""
    rows: list[Row] = []
    for seed in range(fits):
        points, means = draw_grid(seed)
        model = fitted(MIXTURES[init](len(means), random_state=seed), points)
        found = int(centroid_index(model.cluster_centers_, means) == 0)
        rows.append({"draw": seed, "found": found})
    return rows


def seedings(data: str, seedings: int) -> list[Row]:
    """Error at the seeds and after Lloyd's algorithm over the least error known."""
    points, n_clusters = problem(data)
    best = PowerKMeans(n_clusters, effort="thorough", random_state=0).fit(points)
    rows: list[Row] = []
    for kind, seeding in ((PLUS, "D²"), ("uniform", "uniform")):
        for seed in range(seedings):
            seeds = draw_seeds(points, n_clusters, seeding, seed)  # type: ignore[arg-type]
            lloyd = KMeans(n_clusters, init=seeds).fit(points).inertia_ / best.inertia_
            at_seeds = quality_ratio(points, seeds, centers_of(best)) ** 2
            row = {"kind": kind, "k": n_clusters, "draw": seed}
            rows.append({**row, "seeds": at_seeds, "lloyd": lloyd})
    return rows


def problem(name: str) -> tuple[FloatArray, int]:
    """Points and a number of clusters."""
    if name.startswith("grid"):
        points, means = draw_grid(0, math.isqrt(int(name.split()[-1])))
        return points, len(means)
    if name == "uniform square":
        return np.random.default_rng(0).uniform(size=(5000, 2)), 100
    if name == "iris":
        return np.asarray(load_data_set("iris").points, dtype=np.float64), 6
    if name == "wine":
        return scale(load_wine(return_X_y=True)[0]), 3
    return load_digits(return_X_y=True)[0], 10


def moments(n_points: int, draws: int) -> list[Row]:
    """How far means by the method of moments, and centers of k-means, are from the true ones."""
    rows: list[Row] = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        means = 0.7 * rng.standard_normal((9, 12))
        points = means[rng.integers(9, size=n_points)] + rng.standard_normal((n_points, 12))
        estimates = np.asarray(moment_estimates(points, 9).means, dtype=np.float64)
        row = {"draw": seed}
        found = {"moments": estimates, "k_means": centers_of(KMeans(9, init=means).fit(points))}
        for name, centers in found.items():
            distances = cdist(centers, means)
            row[name] = float(distances[linear_sum_assignment(distances)].mean())
        rows.append(row)
    return rows


# What it shows.


def findings(rows: Rows) -> Findings:
    by_part = {str(part): of for (part,), of in groups(rows, "part").items()}
    nine = [*by_part["starts"], *by_part["seconds"]]
    return Findings(
        claims=[
            *claims_on_the_nine(by_part["starts"]),
            *claims_on_other_starts(nine),
            claim_on_the_bound(where(by_part["seedings"], kind=PLUS)),
            _claim_on_mixtures(by_part["mixtures"]),
            *_claims_on_moments(by_part["moments"]),
        ],
        asides=[
            Aside(
                "question",
                "Does k-means++ always find an optimal solution?",
                "comment 2",
                f"No: {1 - share(singles(nine, PLUS)):.1%} of single starts miss one of the nine "
                "Gaussians.",
            ),
            Aside(
                "not judged",
                "Gaussians with covariances of their own have no single distance, so seeds for "
                "them are less straightforward",
                "comment 4",
                "The mixtures here have no covariances but spherical ones.",
            ),
        ],
        remarks=[
            f"Each Gaussian has {N_EACH} points and the standard deviation one; every fit is on "
            "another draw. The nine are found when each true mean is nearest to just one center.",
            "Whether k-means++ beats many random starts is a question of time: that until the "
            f"best start is right with a chance of {SURE:.0%}, from the share of single starts "
            "that are right and the seconds of one.",
        ],
    )


share = mean("found")


def singles(rows: Rows, method: str) -> list[Row]:
    """The fits of a method with one start."""
    return where(rows, method=method, part="starts", n_starts=1)


def bound(n_clusters: int) -> float:
    """8 (ln k + 2), of Arthur & Vassilvitskii's theorem."""
    return 8 * (math.log(n_clusters) + 2)


def price(of_method: Rows) -> tuple[float, float, float]:
    """Share of single starts that are right, seconds of a start, and seconds until one is right."""
    p = float(share(where(of_method, part="starts", n_starts=1)))
    seconds = float(median("seconds")(where(of_method, part="seconds")))
    n_needed = 1.0 if p >= SURE else math.inf if p == 0 else math.log(1 - SURE) / math.log(1 - p)
    return p, seconds, seconds * n_needed


def advantage_in_time(rows: Rows, method: str, other: str) -> Figure:
    """The logarithm of how many times longer another method takes to be sure, and its error.

    The price of a method is the seconds of a start over -log(1 - p), p its share of right ones.
    """
    logs, variance = [], 0.0
    for name in (method, other):
        p, error = share_and_error(column(singles(rows, name), "found"))
        seconds = column(where(rows, method=name, part="seconds"), "seconds")
        log_seconds, log_error = mean_and_error(np.log(seconds).tolist())
        rate = -math.log1p(-p)
        logs.append(log_seconds - math.log(rate))
        variance += log_error**2 + (error / ((1 - p) * rate)) ** 2
    return logs[1] - logs[0], math.sqrt(variance)


def difference_of_shares(ours: Rows, theirs: Rows) -> Figure:
    """By how much something is found more often, and the standard error of it."""
    (one, error), (other, other_error) = (
        share_and_error(column(rows, "found")) for rows in (ours, theirs)
    )
    return one - other, math.hypot(error, other_error)


def claims_on_the_nine(nine: Rows) -> list[Claim]:
    by_size = groups(where(nine, method=RANDOM), "n_starts")
    words = ", ".join(f"{share(of):.1%} of fits with {n}" for (n,), of in by_size.items())
    random, plus, greedy = (singles(nine, name) for name in (RANDOM, PLUS, GREEDY))
    found, nailed = (share_and_error(column(of, "found")) for of in (random, plus))
    return [
        Claim(
            "k-means from one random start has essentially no chance of finding nine Gaussians on "
            "a grid",
            "comment 5, answer by the author",
            "open",
            f"with our widths, {words} random starts find them; no chance means less than "
            f"{HARDLY_EVER:.0%}, which {below(*found, HARDLY_EVER)}",
            until=WIDTHS,
        ),
        Claim(
            "k-means++ nails the nine",
            "comment 5, answer by the author",
            "open",
            f"with our widths, {share(plus):.1%} of single starts find them, and "
            f"{share(greedy):.1%} of greedy k-means++; nails means more than "
            f"{NEARLY_ALWAYS:.0%}, which {above(*nailed, NEARLY_ALWAYS)}",
            until=WIDTHS,
        ),
    ]


def claims_on_other_starts(nine: Rows) -> list[Claim]:
    plus, far = singles(nine, PLUS), singles(nine, FARTHEST)
    ratio = mean_and_error(column(singles(nine, RANDOM), "ratio"))
    of_random, of_plus = (1e3 * price(where(nine, method=name))[2] for name in (RANDOM, PLUS))
    return [
        Claim(
            "Lloyd's algorithm from a random start is unlikely to come close to the least error",
            "section 1",
            above(*ratio, 1.5),
            f"its error is {ratio[0]:.2f} ± {ratio[1]:.2f} times the error at the nine, in the "
            "mean; far means half as much again",
        ),
        Claim(
            "k-means++ is better than many random starts",
            "comments 4 and 5",
            above(*advantage_in_time(nine, PLUS, RANDOM)),
            f"{of_plus:.3g} ms until the nine are found with a chance of {SURE:.0%}, "
            f"random starts {of_random:.3g} ms",
        ),
        Claim(
            "k-means++ is not that much better than other ways of spreading the seeds",
            "comment 5",
            above(*difference_of_shares(far, plus), -MUCH),
            f"farthest first finds the nine in {share(far):.1%} of starts, k-means++ in "
            f"{share(plus):.1%}; much means more than {MUCH:.0%}",
        ),
    ]


def claim_on_the_bound(rows: Rows) -> Claim:
    shares, after = [], []
    for of_set in groups(rows, "data").values():
        at_seeds, error = mean_and_error(column(of_set, "seeds"))
        shares.append((at_seeds + 2 * error) / bound(int(of_set[0]["k"])))
        after.append(mean("lloyd")(of_set))
    return Claim(
        "The expected error of k-means++ is at most 8 (ln k + 2) times the least error",
        "section 2",
        exact(max(shares) <= 1),
        f"at the seeds {min(shares):.1%} to {max(shares):.1%} of the bound on "
        f"{len(shares)} sets; after Lloyd's algorithm {min(after):.3f} to {max(after):.3f} "
        "times the least error",
    )


def _claim_on_mixtures(nine: Rows) -> Claim:
    by_init = {str(init): of for (init,), of in groups(nine, "init").items()}
    words = ", ".join(f"{name}: {share(of):.1%}" for name, of in by_init.items())
    gain = difference_of_shares(by_init[PLUS], by_init["random points"])
    return Claim(
        "There is a version of k-means++ for mixtures (asked)",
        "section 3, question 2",
        above(*gain),
        f"expectation maximisation finds the nine from {words}; k-means++ finds them more "
        f"often by {gain[0]:+.1%} ± {gain[1]:.1%}",
    )


def _claims_on_moments(rows: Rows) -> list[Claim]:
    sizes = sorted(int(n) for n in kinds(rows, "n_points"))
    few, many = where(rows, n_points=sizes[0]), where(rows, n_points=sizes[-1])
    moments_few, moments_many = (float(mean("moments")(of)) for of in (few, many))
    gain = paired_gain(column(many, "k_means"), column(many, "moments"))
    rate = math.log(moments_few / moments_many) / math.log(sizes[-1] / sizes[0])
    try:
        moment_estimates(draw_grid(0)[0], 9)
        refusal = ""
    except ValueError as error:
        refusal = str(error)
    return [
        Claim(
            "The spectral estimator of Hsu and Kakade is consistent for spherical Gaussians, and "
            "in the limit estimates them better than k-means",
            "comment 5",
            together([exact(rate > 0.25), above(*gain)]),
            f"its error falls as n^-{rate:.2f}, from {moments_few:.3f} to {moments_many:.3f} at "
            f"{sizes[-1]} points, where that of k-means stays at {mean('k_means')(many):.3f}",
        ),
        Claim(
            "That estimator needs no fewer dimensions than clusters, so not nine in the plane",
            "comment 5",
            exact(bool(refusal)),
            f"ours refuses them: {refusal}" if refusal else "ours takes them",
        ),
    ]
