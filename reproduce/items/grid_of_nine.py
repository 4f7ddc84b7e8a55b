"""Nine Gaussians on a grid: random starts, k-means++ and annealing."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state

from powermeans import KMeans, PowerKMeans, SphericalMixture, kmeans_plusplus, moment_estimates
from powermeans.datasets import load_data_set
from powermeans.metrics import centroid_index, quality_ratio
from powermeans.plots.canvas import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION, tidy
from powermeans.types import FloatArray
from reproduce.checks import above, below, exact, paired_gain, share_and_error, together
from reproduce.drawn_data import make_grid_gaussians
from reproduce.item import Aside, Cell, Claim, Findings, Row, Table, mean_and_error
from reproduce.quiet_fits import centers_of, fitted
from reproduce.selecting import column, kinds, where

TITLE = "Nine Gaussians on a grid: random starts, k-means++ and annealing"
SOURCE = (
    "L. Wasserman, The Remarkable k-means++ (blog post of 2012): sections 1 to 3, and the comments "
    "on nine Gaussians, on many random starts and on mixtures"
)
DATA = "random cases"
OUR_WIDTHS = "our layout: the comment names no widths"

N_EACH = 100
"""Points of each Gaussian, whose standard deviation is the unit of the spacing."""
SIDE, SPACING = 3, 6.0
OTHER_GRIDS = ((3, 4.0), (3, 12.0), (5, 6.0))
STARTS_TIMED = 10
"""In one fit, so that what a fit costs beside its starts is shared among them."""
SURE = 0.99
HARDLY_EVER, NEARLY_ALWAYS, MUCH = 0.05, 0.95, 0.05
"""Shares of starts: what the comments call essentially no chance, nailing it, and much better."""

Seeder = Callable[..., FloatArray]
RandomState = int | np.random.RandomState | None


def grid(side: int, spacing: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Gaussians of standard deviation one on a square grid, and their means."""
    drawn = make_grid_gaussians(
        N_EACH * side**2, side, spacing=spacing, spread=1.0, random_state=seed
    )
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


def _lloyd(init: str | Seeder) -> Callable[..., Any]:
    return functools.partial(PowerKMeans, power=-math.inf, effort="none", init=init)


METHODS: dict[str, Callable[..., Any]] = {
    "random starts": _lloyd("random"),
    "k-means++": _lloyd("plain-k-means++"),
    "greedy k-means++": _lloyd("k-means++"),
    "farthest first": _lloyd(farthest_first),
    "annealed from random points": functools.partial(PowerKMeans, effort="none", init="random"),
    "annealed from k-means++": functools.partial(
        PowerKMeans, effort="none", init="plain-k-means++"
    ),
    "search (the default)": PowerKMeans,
}
_em = functools.partial(SphericalMixture, effort=None)
MIXTURES: dict[str, Callable[..., Any]] = {
    "random points": functools.partial(_em, init="random", temperature=None),
    "k-means++": functools.partial(_em, init=plain_seeds, temperature=None),
    "annealed from random points": functools.partial(_em, init="random"),
    "annealed from k-means++": functools.partial(_em, init=plain_seeds),
    "search (the default)": SphericalMixture,
}
# Method: how many starts a fit has, and how many fits there are of each.
FITS = {
    "random starts": {1: 1000, 10: 200, 100: 50, 1000: 10},
    "k-means++": {1: 1000, 10: 200, 100: 30},
    "greedy k-means++": {1: 600, 10: 100, 100: 10},
    "farthest first": {1: 1000},
    "annealed from random points": {1: 200, 10: 20},
    "annealed from k-means++": {1: 200, 10: 20},
    "search (the default)": {1: 50},
}
QUICK_FITS = {
    "random starts": {1: 100, 10: 20, 100: 5, 1000: 1},
    "k-means++": {1: 100, 10: 20, 100: 3},
    "greedy k-means++": {1: 50, 10: 5, 100: 1},
    "farthest first": {1: 20},
    "annealed from random points": {1: 20},
    "annealed from k-means++": {1: 20},
    "search (the default)": {1: 5},
}
SEEDED = ("grid of 9", "grid of 25", "iris", "wine", "digits", "uniform square")


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """Fits by method and number of starts, mixtures, ratios of seeds, and moments."""
    grids = ((SIDE, SPACING),) if quick else ((SIDE, SPACING), *OTHER_GRIDS)
    fits = QUICK_FITS if quick else FITS
    found = [
        _cell(starts, part="starts", side=side, spacing=spacing, method=method, n_starts=n, fits=m)
        for side, spacing in grids
        for method, sizes in fits.items()
        for n, m in _sizes(sizes, side, spacing)
    ]
    found += [
        _cell(seconds_of_a_start, part="seconds", side=side, spacing=spacing, rounds=n_rounds)
        for side, spacing in grids
        for n_rounds in (3 if quick else 25,)
    ]
    found += [
        _cell(mixtures, part="mixtures", side=SIDE, spacing=spacing, init=init, fits=n_fits)
        for spacing in ((SPACING,) if quick else (4.0, SPACING))
        for init in MIXTURES
        for n_fits in (10 if quick else 200,)
    ]
    n_seedings = 50 if quick else 1000
    seeded = SEEDED[:3] if quick else SEEDED
    found += [_cell(seedings, part="seedings", data=name, seedings=n_seedings) for name in seeded]
    found += [
        _cell(moments, part="moments", n_points=n_points, draws=3 if quick else 10)
        for n_points in ((2000, 128_000) if quick else (2000, 16_000, 128_000, 512_000))
    ]
    return found


def _sizes(sizes: dict[int, int], side: int, spacing: float) -> list[tuple[int, int]]:
    """A third of the fits on the grids that no sentence is judged by, and no thousand starts."""
    if (side, spacing) == (SIDE, SPACING):
        return list(sizes.items())
    return [(n, max(m // 3, 10)) for n, m in sizes.items() if n < 1000]


def _cell(compute: Callable[..., Sequence[Row]], *, part: str, **key: str | int | float) -> Cell:
    return Cell({"part": part, **key}, functools.partial(compute, **key))


def starts(side: int, spacing: float, method: str, n_starts: int, fits: int) -> list[Row]:
    """Fits of a method on as many draws of the grid, each with its number of starts."""
    rows: list[Row] = []
    for seed in range(fits):
        points, means = grid(side, spacing, seed)
        at_means = KMeans(side**2, init=means).fit(points).inertia_
        model = METHODS[method](side**2, n_init=n_starts, random_state=seed)
        started = time.perf_counter()
        fitted(model, points)
        elapsed = time.perf_counter() - started
        rows.append(
            {
                "draw": seed,
                "found": int(centroid_index(model.cluster_centers_, means) == 0),
                "ratio": model.inertia_ / at_means,
                "seconds": elapsed,
            }
        )
    return rows


def seconds_of_a_start(side: int, spacing: float, rounds: int) -> list[Row]:
    """All methods in turns, so that whatever else the machine does falls on each of them."""
    rows: list[Row] = []
    for seed in range(rounds):
        points, _ = grid(side, spacing, seed)
        for method, make in METHODS.items():
            model = make(side**2, n_init=STARTS_TIMED, random_state=seed)
            started = time.perf_counter()
            model.fit(points)
            elapsed = (time.perf_counter() - started) / STARTS_TIMED
            rows.append({"draw": seed, "method": method, "seconds": elapsed})
    return rows


def mixtures(side: int, spacing: float, init: str, fits: int) -> list[Row]:
    """The same for mixtures of spherical Gaussians, from seeds of several kinds."""
    rows: list[Row] = []
    for seed in range(fits):
        points, means = grid(side, spacing, seed)
        at_means = SphericalMixture(side**2, init=means).fit(points)
        model = MIXTURES[init](side**2, random_state=seed)
        started = time.perf_counter()
        fitted(model, points)
        elapsed = time.perf_counter() - started
        rows.append(
            {
                "draw": seed,
                "found": int(centroid_index(model.cluster_centers_, means) == 0),
                "loss": at_means.log_likelihood_ - model.log_likelihood_,
                "seconds": elapsed,
            }
        )
    return rows


def seedings(data: str, seedings: int) -> list[Row]:
    """Error at the seeds and after Lloyd's algorithm over the least error known."""
    points, n_clusters = problem(data)
    best = PowerKMeans(n_clusters, effort="thorough", random_state=0).fit(points)
    reference = centers_of(best)
    rows: list[Row] = []
    for kind, exponent in (("k-means++", 2.0), ("uniform", None)):
        for seed in range(seedings):
            seeds = _seeds(points, n_clusters, exponent, seed)
            lloyd = KMeans(n_clusters, init=seeds).fit(points)
            rows.append(
                {
                    "kind": kind,
                    "k": n_clusters,
                    "draw": seed,
                    "seeds": quality_ratio(points, seeds, reference) ** 2,
                    "lloyd": lloyd.inertia_ / best.inertia_,
                }
            )
    return rows


def _seeds(points: FloatArray, n_clusters: int, exponent: float | None, seed: int) -> FloatArray:
    if exponent is None:
        return points[np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)]
    seeds, _ = kmeans_plusplus(
        points, n_clusters, n_local_trials=1, exponent=exponent, random_state=seed
    )
    return np.asarray(seeds)


def problem(name: str) -> tuple[FloatArray, int]:
    """Points and a number of clusters."""
    if name.startswith("grid"):
        side = math.isqrt(int(name.split()[-1]))
        return grid(side, SPACING, 0)[0], side**2
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
        centers = centers_of(KMeans(9, init=means).fit(points))
        rows.append(
            {
                "draw": seed,
                "moments": _mean_distance(estimates, means),
                "k_means": _mean_distance(centers, means),
            }
        )
    return rows


def _mean_distance(centers: FloatArray, means: FloatArray) -> float:
    distances = cdist(centers, means)
    return float(distances[linear_sum_assignment(distances)].mean())


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """How often the nine are found, at which price, and what the theorem allows."""
    by_part = {part: where(rows, part=part) for part in ("starts", "mixtures", "seedings")}
    tried = [row for row in rows if row["part"] in ("starts", "seconds")]
    moment_rows = where(rows, part="moments")
    return Findings(
        tables=[
            _table_of_starts(by_part["starts"]),
            _table_of_prices(tried),
            _table_of_mixtures(by_part["mixtures"]),
            _table_of_seedings(by_part["seedings"]),
            _table_of_moments(moment_rows),
        ],
        claims=[
            *_claims_on_starts(tried),
            *_claims_on_the_bound(by_part["seedings"]),
            _claim_on_mixtures(by_part["mixtures"]),
            *_claims_on_moments(moment_rows),
        ],
        asides=[
            _answer_on_the_optimum(tried),
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


def _share(rows: Sequence[Row]) -> float:
    return float(np.mean(column(rows, "found"))) if rows else math.nan


def _grids(rows: Sequence[Row]) -> list[tuple[int, float]]:
    return list(dict.fromkeys((int(row["side"]), float(row["spacing"])) for row in rows))


def _of_grid(rows: Sequence[Row], grid: tuple[int, float]) -> list[Row]:
    return where(rows, side=grid[0], spacing=grid[1])


def _grid_name(grid: tuple[int, float]) -> str:
    return f"{grid[0]} x {grid[0]}, spacing {grid[1]:g}"


def _table_of_starts(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for grid in _grids(rows):
        of_grid = _of_grid(rows, grid)
        for method in kinds(of_grid, "method"):
            for n in kinds(where(of_grid, method=method), "n_starts"):
                chosen = where(of_grid, method=method, n_starts=n)
                ratio, _ = mean_and_error(column(chosen, "ratio"))
                seconds = float(np.median(column(chosen, "seconds")))
                lines.append(
                    [_grid_name(grid), method, n, len(chosen), _share(chosen), ratio, 1e3 * seconds]
                )
    return Table(
        "How often all clusters are found",
        ["grid", "method", "starts", "fits", "share found", "mean error / error at means", "ms"],
        lines,
        "The error over that of Lloyd's algorithm from the true means; milliseconds of a fit, the "
        "median.",
    )


def price(rows: Sequence[Row], method: str) -> tuple[float, float, float]:
    """Share of single starts that are right, seconds of a start, and seconds until one is right."""
    of_method = where(rows, method=method)
    p = _share(where(of_method, part="starts", n_starts=1))
    seconds = float(np.median(column(where(of_method, part="seconds"), "seconds")))
    n_needed = 1.0 if p >= SURE else math.inf if p == 0 else math.log(1 - SURE) / math.log(1 - p)
    return p, seconds, seconds * n_needed


def _table_of_prices(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for grid in _grids(rows):
        of_grid = _of_grid(rows, grid)
        _, _, of_random = price(of_grid, "random starts")
        for method in kinds(of_grid, "method"):
            p, seconds, until = price(of_grid, str(method))
            share = until / of_random if math.isfinite(until) else math.inf
            lines.append([_grid_name(grid), method, p, 1e3 * seconds, 1e3 * until, share])
    return Table(
        f"At equal time: milliseconds until all clusters are found with a chance of {SURE:.0%}",
        ["grid", "method", "one start finds them", "ms a start", "ms until sure", "of random's"],
        lines,
        "Infinite where no single start found them.",
    )


def difference_of_shares(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """By how much something happens more often, and the standard error of it."""
    (one, error), (other, other_error) = share_and_error(ours), share_and_error(theirs)
    return one - other, math.hypot(error, other_error)


def advantage_in_time(rows: Sequence[Row], method: str, other: str) -> tuple[float, float]:
    """The logarithm of how many times longer another method takes to be sure, and its error.

    The price of a method is the seconds of a start over -log(1 - p), p its share of right ones.
    """
    logs, variance = [], 0.0
    for name in (method, other):
        of_method = where(rows, method=name)
        share, error = share_and_error(column(where(of_method, part="starts", n_starts=1), "found"))
        seconds = column(where(of_method, part="seconds"), "seconds")
        log_seconds, log_error = mean_and_error(np.log(seconds).tolist())
        rate = -math.log1p(-share)
        logs.append(log_seconds - math.log(rate))
        variance += log_error**2 + (error / ((1 - share) * rate)) ** 2
    return logs[1] - logs[0], math.sqrt(variance)


def _claims_on_starts(rows: Sequence[Row]) -> list[Claim]:
    nine = _of_grid(rows, (SIDE, SPACING))
    hits = {
        str(name): column(where(nine, method=name, n_starts=1), "found")
        for name in kinds(nine, "method")
    }
    return [*_claims_on_the_nine(rows, nine, hits), *_claims_on_other_starts(nine, hits)]


def _found_on_other_grids(rows: Sequence[Row], method: str) -> str:
    shares = {
        of: _share(where(_of_grid(rows, of), method=method, n_starts=1))
        for of in _grids(rows)
        if of != (SIDE, SPACING)
    }
    words = ", ".join(f"{_grid_name(of)} {share:.1%}" for of, share in shares.items())
    return f"On other grids: {words}." if shares else ""


def _claims_on_the_nine(
    rows: Sequence[Row], nine: Sequence[Row], hits: dict[str, list[float]]
) -> list[Claim]:
    """Whether one start of either kind finds the nine; the source names no widths."""
    many = {
        int(n): _share(where(nine, method="random starts", n_starts=n))
        for n in kinds(where(nine, method="random starts"), "n_starts")
    }
    words = ", ".join(f"{share:.1%} of fits with {n}" for n, share in many.items())
    plus, greedy = (float(np.mean(hits[name])) for name in ("k-means++", "greedy k-means++"))
    return [
        Claim(
            "k-means from one random start has essentially no chance of finding nine Gaussians on "
            "a grid",
            "comment 5, answer by the author",
            below(*share_and_error(hits["random starts"]), HARDLY_EVER),
            f"{words} random starts find them; hardly ever: in less than {HARDLY_EVER:.0%}. "
            f"{_found_on_other_grids(rows, 'random starts')}",
            data=OUR_WIDTHS,
        ),
        Claim(
            "k-means++ nails the nine",
            "comment 5, answer by the author",
            above(*share_and_error(hits["k-means++"]), NEARLY_ALWAYS),
            f"{plus:.1%} of single starts find them, and {greedy:.1%} of greedy k-means++; nails: "
            f"in more than {NEARLY_ALWAYS:.0%}. {_found_on_other_grids(rows, 'k-means++')}",
            data=OUR_WIDTHS,
        ),
    ]


def _claims_on_other_starts(nine: Sequence[Row], hits: dict[str, list[float]]) -> list[Claim]:
    """How far single random starts are off, and what many of them or other seeds are worth."""
    plus, far = (float(np.mean(hits[name])) for name in ("k-means++", "farthest first"))
    ratio = mean_and_error(column(where(nine, method="random starts", n_starts=1), "ratio"))
    _, _, random_price = price(nine, "random starts")
    _, _, plus_price = price(nine, "k-means++")
    return [
        Claim(
            "Lloyd's algorithm from a random start is unlikely to come close to the least error",
            "section 1",
            above(*ratio, 1.5),
            f"its error is {ratio[0]:.2f} ± {ratio[1]:.2f} times the error at the nine, in the "
            "mean; far: half as much again",
        ),
        Claim(
            "k-means++ is better than many random starts",
            "comments 4 and 5",
            above(*advantage_in_time(nine, "k-means++", "random starts")),
            f"{1e3 * plus_price:.3g} ms until the nine are found with a chance of {SURE:.0%}, "
            f"random starts {1e3 * random_price:.3g} ms",
        ),
        Claim(
            "k-means++ is not that much better than other ways of spreading the seeds",
            "comment 5",
            above(*difference_of_shares(hits["farthest first"], hits["k-means++"]), -MUCH),
            f"farthest first finds the nine in {far:.1%} of starts, k-means++ in {plus:.1%}; "
            f"much: by more than {MUCH:.0%}",
        ),
    ]


def _answer_on_the_optimum(rows: Sequence[Row]) -> Aside:
    nine = _of_grid(rows, (SIDE, SPACING))
    plus = _share(where(nine, method="k-means++", n_starts=1))
    return Aside(
        "question",
        "Does k-means++ always find an optimal solution?",
        "comment 2",
        f"No: {1 - plus:.1%} of single starts miss one of the nine Gaussians.",
    )


def bound(n_clusters: int) -> float:
    """8 (ln k + 2), of Arthur & Vassilvitskii's theorem."""
    return 8 * (math.log(n_clusters) + 2)


def _table_of_seedings(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for data in kinds(rows, "data"):
        for kind in kinds(rows, "kind"):
            chosen = where(rows, data=data, kind=kind)
            at_seeds, error = mean_and_error(column(chosen, "seeds"))
            after, _ = mean_and_error(column(chosen, "lloyd"))
            k = int(chosen[0]["k"])
            largest = max(column(chosen, "seeds"))
            limit = bound(k) if kind == "k-means++" else "none"
            lines.append([data, k, kind, at_seeds, error, largest, after, limit])
    return Table(
        "Error over the least error known, at the seeds and after Lloyd's algorithm",
        [
            "data",
            "k",
            "seeds",
            "mean at seeds",
            "its error",
            "largest",
            "mean after Lloyd",
            "bound",
        ],
        lines,
        "The bound 8 (ln k + 2) is on the mean over the choice of seeds.",
    )


def _claims_on_the_bound(rows: Sequence[Row]) -> list[Claim]:
    plus = where(rows, kind="k-means++")
    shares = []
    for data in kinds(plus, "data"):
        chosen = where(plus, data=data)
        mean, error = mean_and_error(column(chosen, "seeds"))
        shares.append((mean + 2 * error) / bound(int(chosen[0]["k"])))
    after = [mean_and_error(column(where(plus, data=d), "lloyd"))[0] for d in kinds(plus, "data")]
    return [
        Claim(
            "The expected error of k-means++ is at most 8 (ln k + 2) times the least error",
            "section 2",
            exact(max(shares) <= 1),
            f"at the seeds {min(shares):.1%} to {max(shares):.1%} of the bound on "
            f"{len(shares)} sets; after Lloyd's algorithm {min(after):.3f} to {max(after):.3f} "
            "times the least error",
        )
    ]


def _table_of_mixtures(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for grid in _grids(rows):
        for init in kinds(rows, "init"):
            chosen = where(_of_grid(rows, grid), init=init)
            loss, error = mean_and_error(column(chosen, "loss"))
            seconds = float(np.median(column(chosen, "seconds")))
            lines.append(
                [_grid_name(grid), init, len(chosen), _share(chosen), loss, error, 1e3 * seconds]
            )
    return Table(
        "Mixtures of nine spherical Gaussians by expectation maximisation",
        ["grid", "centers start at", "fits", "share found", "lost log-likelihood", "error", "ms"],
        lines,
        "What the log-likelihood of a point loses against a start at the true means, in the mean.",
    )


def _claim_on_mixtures(rows: Sequence[Row]) -> Claim:
    shares = {
        str(init): _share(where(_of_grid(rows, (SIDE, SPACING)), init=init))
        for init in kinds(rows, "init")
    }
    words = ", ".join(f"{name}: {share:.1%}" for name, share in shares.items())
    nine = _of_grid(rows, (SIDE, SPACING))
    gain = difference_of_shares(
        *(column(where(nine, init=init), "found") for init in ("k-means++", "random points"))
    )
    return Claim(
        "There is a version of k-means++ for mixtures (asked)",
        "section 3, question 2",
        above(*gain),
        f"expectation maximisation finds the nine from {words}; k-means++ finds them more "
        f"often by {gain[0]:+.1%} ± {gain[1]:.1%}",
    )


def _table_of_moments(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for n_points in kinds(rows, "n_points"):
        chosen = where(rows, n_points=n_points)
        pairs = [mean_and_error(column(chosen, name)) for name in ("moments", "k_means")]
        lines.append([n_points, len(chosen), *pairs[0], *pairs[1]])
    return Table(
        "Distance from the true means: method of moments, and k-means started there",
        ["points", "draws", "moments", "error", "k-means", "error"],
        lines,
        "Nine overlapping spherical Gaussians in 12 dimensions.",
    )


def _claims_on_moments(rows: Sequence[Row]) -> list[Claim]:
    sizes = sorted(int(n) for n in kinds(rows, "n_points"))
    few, many = where(rows, n_points=sizes[0]), where(rows, n_points=sizes[-1])
    moments_few, moments_many = (float(np.mean(column(r, "moments"))) for r in (few, many))
    k_means_many = float(np.mean(column(many, "k_means")))
    gain = paired_gain(column(many, "k_means"), column(many, "moments"))
    rate = math.log(moments_few / moments_many) / math.log(sizes[-1] / sizes[0])
    try:
        moment_estimates(grid(SIDE, SPACING, 0)[0], SIDE**2)
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
            f"{sizes[-1]} points, where that of k-means stays at {k_means_many:.3f}",
        ),
        Claim(
            "That estimator needs no fewer dimensions than clusters, so not nine in the plane",
            "comment 5",
            exact(bool(refusal)),
            f"ours refuses them: {refusal}" if refusal else "ours takes them",
        ),
    ]


# What it looks like.

_STYLES = {
    "random starts": (VERMILION, "o", "-"),
    "k-means++": (BLUE, "s", "-"),
    "greedy k-means++": (SKY, "D", "--"),
    "annealed from random points": (GREEN, "^", "-."),
    "annealed from k-means++": (ORANGE, "v", ":"),
}


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """A random start that went wrong, how often starts are right, and ratios under the bound."""
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(13, 4.4), layout="constrained", width_ratios=(1, 1.15, 1.25)
    )
    _draw_a_miss(left)
    _draw_shares(middle, _of_grid(where(rows, part="starts"), (SIDE, SPACING)))
    _draw_ratios(right, where(rows, part="seedings"))
    path = folder / "grid-of-nine.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_a_miss(ax: Any) -> None:
    points, means = grid(SIDE, SPACING, 0)
    fits = (METHODS["random starts"](9, random_state=seed).fit(points) for seed in range(100))
    missed = next(fit for fit in fits if centroid_index(fit.cluster_centers_, means) > 0)
    found = PowerKMeans(9, effort="none", random_state=0).fit(points)
    ax.scatter(*points.T, s=4, color=GREY, alpha=0.6, linewidths=0, rasterized=True)
    ax.scatter(
        *missed.cluster_centers_.T, s=70, marker="o", facecolors="none", edgecolors=VERMILION,
        linewidths=2, label="one random start",
    )  # fmt: skip
    ax.scatter(
        *found.cluster_centers_.T, s=55, marker="+", color=INK, linewidths=2, label="annealed"
    )
    ax.set(title="A start that misses clusters", aspect="equal", xticks=[], yticks=[])
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)
    tidy(ax)
    ax.spines[["left", "bottom"]].set_visible(False)


def _draw_shares(ax: Any, rows: Sequence[Row]) -> None:
    for method, (color, marker, line) in _STYLES.items():
        of_method = where(rows, method=method)
        sizes = sorted(int(n) for n in kinds(of_method, "n_starts"))
        shares = [_share(where(of_method, n_starts=n)) for n in sizes]
        ax.plot(sizes, shares, line, color=color, marker=marker, label=method)
    ax.set_xscale("log")
    ax.set(title="How often the nine are found", xlabel="starts", ylabel="share of fits")
    ax.set(ylim=(-0.03, 1.05))
    ax.legend(loc="lower right", fontsize=8, frameon=False)
    tidy(ax, grid="y")


def _draw_ratios(ax: Any, rows: Sequence[Row]) -> None:
    names = [str(name) for name in kinds(rows, "data")]
    heights = np.arange(len(names))[::-1]
    kinds_drawn = (("k-means++", "seeds", BLUE, "s", "k-means++ seeds"),
                   ("k-means++", "lloyd", BLUE, "|", "then Lloyd"),
                   ("uniform", "seeds", VERMILION, "o", "uniform seeds"),
                   ("uniform", "lloyd", VERMILION, "|", "then Lloyd"))  # fmt: skip
    for kind, quantity, color, marker, label in kinds_drawn:
        means = [np.mean(column(where(rows, data=d, kind=kind), quantity)) for d in names]
        ax.plot(means, heights, marker, color=color, markersize=8, mew=2, label=label)
    bounds = [bound(int(where(rows, data=name)[0]["k"])) for name in names]
    ax.plot(bounds, heights, "x", color=INK, markersize=8, mew=2, label="8 (ln k + 2)")
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    ax.set_yticks(heights, names)
    ax.set(title="Mean error over the least known", xlabel="ratio")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=8, frameon=False)
    tidy(ax, grid="x")
