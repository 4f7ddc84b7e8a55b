"""Iris with six prototypes: five algorithms, epoch by epoch."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from powermeans import PowerKMeans
from powermeans.datasets import load_data_set
from powermeans.methods import GradientKMeans, OnlineKMeans, SphericalMixture
from powermeans.plots.canvas import BLUE, GREEN, INK, ORANGE, SKY, VERMILION, tidy
from powermeans.types import FloatArray
from reproduce.item import Cell, Claim, Comparison, Findings, Row, Rows, grid
from reproduce.pictures import add_legend, picture
from reproduce.rows import column, kinds, published_rows, where
from reproduce.trials import centers_of, fitted
from reproduce.verdicts import above, exact, of_one_experiment, paired_gain, together

TITLE = "Iris with six prototypes: error and speed of five algorithms"
SOURCE = (
    "L. Bottou, Y. Bengio, Convergence Properties of the K-Means Algorithms, NIPS 7 (1995): "
    "sections 3 to 5, figures 1 and 2"
)
DATA = "real"

N_PROTOTYPES, N_EPOCHS, N_MORE, N_TRIALS = 6, 20, 40, 20
RATE = 0.03
"""Over the number of the epoch; the paper found it best."""
BATCH, EM, SWITCHED = "batch k-means", "EM", "one online epoch, then batch"
KINDS = ("online k-means", BATCH, "online gradient", "batch gradient", EM)
N_NUDGES, WIDTHS = 200, (1e-2, 1e-6)
"""How often, and how far, the places where batch k-means stops are shaken."""
PIECE = 10
"""Points between two looks at the first online epoch."""
ENDED = 1e-9
"""A residue is gone once it is this share of that of the start."""


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    n_replicates, n_draws = (2, 5) if quick else (30, 50)
    return [
        *grid(trials, part="epochs", replicate=range(n_replicates)),
        *grid(newton, part="newton", draw=range(n_draws)),
    ]


@functools.cache
def scaled_iris() -> FloatArray:
    """Iris, scaled so that the variance of a feature within the best six clusters is one."""
    points = np.asarray(load_data_set("iris").points, dtype=np.float64)
    best = PowerKMeans(N_PROTOTYPES, effort="thorough", random_state=0).fit(points)
    scaled: FloatArray = points / math.sqrt(best.inertia_ / points.size)
    return scaled


def trials(replicate: int) -> list[Row]:
    """Twenty trials; all algorithms of a trial begin with the same random points."""
    points = scaled_iris()
    rows: list[Row] = []
    for trial in range(N_TRIALS):
        rng = np.random.default_rng([replicate, trial])
        start = points[rng.choice(len(points), N_PROTOTYPES, replace=False)]
        for name, run in ALGORITHMS.items():
            errors, least = run(points, start, np.random.default_rng([replicate, trial, 1]))
            rows += [
                {"trial": trial, "algorithm": name, "epoch": t, "error": e, "least": least}
                for t, e in enumerate(errors)
            ]
        rows += [{"trial": trial, **row} for row in first_epoch(points, start, rng)]
    return rows


Run = tuple[list[float], float]
"""The error after each epoch, and E_infinity: that after 40 more epochs of batch k-means."""


def error_of(points: FloatArray, centers: FloatArray) -> float:
    """The quantisation error, equation 1."""
    return float(cdist(points, centers, "sqeuclidean").min(axis=1).sum() / 2)


def least_from(points: FloatArray, centers: FloatArray) -> float:
    """E_infinity of these centers."""
    return float(fitted(lloyd(centers, N_MORE), points).inertia_ / 2)


def lloyd(start: FloatArray, n_epochs: int) -> PowerKMeans:
    """Batch k-means as the paper has it, which leaves a prototype without points where it is."""
    return PowerKMeans(
        len(start), power=-math.inf, polish=False, init=start, tol=0, max_iter=n_epochs
    )


def padded(errors: Sequence[float]) -> list[float]:
    """The errors of all epochs, the last one for those after the end."""
    return [*errors, *[errors[-1]] * (N_EPOCHS + 1 - len(errors))][: N_EPOCHS + 1]


def _epoch_by_epoch(model: Any, points: FloatArray) -> Run:
    """Errors of a fit that records the error before each sweep."""
    fitted(model, points)
    errors = padded([inertia / 2 for inertia in (*model.history_.inertia, model.inertia_)])
    return errors, least_from(points, centers_of(model))


def batch_k_means(points: FloatArray, start: FloatArray, rng: np.random.Generator) -> Run:
    """Equation 6."""
    return _epoch_by_epoch(lloyd(start, N_EPOCHS), points)


def batch_gradient(points: FloatArray, start: FloatArray, rng: np.random.Generator) -> Run:
    """Equation 3."""
    model = GradientKMeans(
        len(start), init=start, learning_rate=lambda t: RATE / t, tol=0, max_iter=N_EPOCHS
    )
    return _epoch_by_epoch(model, points)


def online(points, start, rng, *, learning_rate="auto", n_online=N_EPOCHS):
    """Equation 7, or 4 with a learning rate; each epoch in another random order."""
    model = OnlineKMeans(len(start), init=start, learning_rate=learning_rate)
    errors = [error_of(points, start)]
    for _ in range(n_online):
        model.partial_fit(points[rng.permutation(len(points))])
        errors.append(model.inertia_ / 2)
    centers = centers_of(model)
    if n_online == N_EPOCHS:
        return errors, least_from(points, centers)
    later, least = batch_k_means(points, centers, rng)
    return padded([*errors, *later[1:]]), least


def rate_of_epoch(step: int) -> float:
    """0.03 / t, t the number of the epoch."""
    return RATE / (1 + (step - 1) // len(scaled_iris()))


def expectation_maximisation(points, start, rng):
    """Six Gaussians of variance one and equal shares: minus the logarithm of the likelihood."""
    runs, centers = [], start
    for n_epochs in (N_EPOCHS, N_MORE):
        model = SphericalMixture(
            len(start), variance=1.0, init=centers, temperature=None, tol=0, max_iter=n_epochs
        )
        runs.append(fitted(model, points))
        centers = centers_of(model)
    first, more = runs
    errors = [-len(points) * value for value in (*first.log_likelihoods_, first.log_likelihood_)]
    return padded(errors), -len(points) * more.log_likelihood_


ALGORITHMS: dict[str, Callable[[FloatArray, FloatArray, np.random.Generator], Run]] = {
    "online k-means": online,
    BATCH: batch_k_means,
    "online gradient": functools.partial(online, learning_rate=rate_of_epoch),
    "batch gradient": batch_gradient,
    EM: expectation_maximisation,
    SWITCHED: functools.partial(online, n_online=1),
}


def first_epoch(points: FloatArray, start: FloatArray, rng: np.random.Generator) -> list[Row]:
    """The error after each few points of the first online epoch."""
    model = OnlineKMeans(len(start), init=start)
    shuffled = points[rng.permutation(len(points))]
    rows: list[Row] = []
    for n_seen in range(PIECE, len(points) + 1, PIECE):
        model.partial_fit(shuffled[n_seen - PIECE : n_seen])
        error = error_of(points, centers_of(model))
        rows.append({"algorithm": "points", "epoch": n_seen, "error": error})
    return rows


def newton(draw: int) -> list[Row]:
    """How far the Hessian is from diag(N_j I), and Newton's step from that of batch k-means."""
    points = scaled_iris()
    rng = np.random.default_rng([draw, 2])
    centers = points[rng.choice(len(points), N_PROTOTYPES, replace=False)]
    place = centers_of(fitted(lloyd(centers, 1 + draw % 3), points))
    gradient, hessian = _derivatives(points, place)
    counts = np.bincount(cdist(points, place).argmin(axis=1), minlength=N_PROTOTYPES)
    expected = np.diag(np.repeat(counts, points.shape[1]).astype(float))
    step = -np.linalg.solve(hessian, gradient).reshape(place.shape)
    batch = centers_of(fitted(lloyd(place, 1), points)) - place
    settled = centers_of(fitted(lloyd(place, 300), points))
    nudges = rng.standard_normal((N_NUDGES, *settled.shape))
    row = {
        "hessian": float(np.abs(hessian - expected).max() / counts.max()),
        "step": float(np.abs(step - batch).max()),
    }
    for width in WIDTHS:
        least = min(error_of(points, settled + width * nudge) for nudge in nudges)
        row[f"rise_{width:g}"] = least - error_of(points, settled)
    return [row]


def _derivatives(points: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian of the error by central differences."""
    width, n = 1e-4, place.size
    units = width * np.eye(n)

    def value(shift: FloatArray) -> float:
        return error_of(points, place + shift.reshape(place.shape))

    gradient = np.array([(value(u) - value(-u)) / (2 * width) for u in units])
    hessian = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            a, b = units[i], units[j]
            corners = value(a + b) - value(a - b) - value(b - a) + value(-a - b)
            hessian[i, j] = hessian[j, i] = corners / (4 * width**2)
    return gradient, hessian


# What it shows.


def residuals(rows: Rows, algorithm: str) -> FloatArray:
    """E_t - E_infinity, (n_trials, n_epochs + 1)."""
    chosen = where(rows, part="epochs", algorithm=algorithm)
    differences = np.subtract(column(chosen, "error"), column(chosen, "least"))
    return differences.reshape(-1, N_EPOCHS + 1)


def by_replicate(rows: Rows, algorithm: str) -> FloatArray:
    """Mean residues of each replicate, (n_replicates, n_epochs + 1)."""
    means: FloatArray = residuals(rows, algorithm).reshape(-1, N_TRIALS, N_EPOCHS + 1).mean(axis=1)
    return means


def ratios(mean_residuals: FloatArray) -> FloatArray:
    """(E_{t+1} - E_infinity) / (E_t - E_infinity) of the means; zero once there is no residue."""
    before, after = mean_residuals[..., :-1], mean_residuals[..., 1:]
    has_residue = before > ENDED * mean_residuals[..., :1]
    return np.where(has_residue, after / np.where(has_residue, before, 1.0), 0.0)


def typical_ratios(rows: Rows, algorithm: str) -> FloatArray:
    """The ratio of each epoch in the median replicate, (n_epochs,)."""
    median: FloatArray = np.median(ratios(by_replicate(rows, algorithm)), axis=0)
    return median


def least_errors(rows: Rows, algorithm: str) -> FloatArray:
    """E_infinity of each trial."""
    return np.array(column(where(rows, part="epochs", algorithm=algorithm, epoch=0), "least"))


def epochs_until(rows: Rows, algorithm: str, share: float) -> list[float]:
    """How many epochs each trial takes until its residue is this share of that of the start."""
    values = residuals(rows, algorithm)
    is_there = values <= share * values[:, :1]
    is_there[:, -1] = True
    return [float(epoch) for epoch in is_there.argmax(axis=1)]


def findings(rows: Rows) -> Findings:
    residues = {name: by_replicate(rows, name) for name in KINDS}
    of_kind = on_one_scale(residues)
    of_each = {name: ratios(values) for name, values in residues.items()}
    return Findings(
        comparisons=comparisons_of(rows),
        claims=[
            *_claims_on_newton(where(rows, part="newton")),
            *claims_on_batch(rows),
            *claims_on_leads(of_kind),
            *_claims_on_ends(of_kind),
            _claim_on_first_points(rows),
            _claim_on_vanishing(rows, of_each),
            _claim_on_em(of_each),
            _claim_on_crossing(of_each),
            _claim_on_switching(rows),
            *_claims_on_least(rows),
        ],
        remarks=[
            "The unit of the published errors is unknown: with a mean variance of one of each "
            "feature within the best six clusters E_inf cannot be below 300. So only ratios are "
            "compared.",
            "The rate 0.03 / t is read with t the number of the epoch, as in the figures: with t "
            "the number of the point online gradient descent hardly moves.",
            f"Each replicate is of {N_TRIALS} trials; all algorithms of a "
            "trial start at the same random points, which the paper does not say of its own.",
        ],
    )


def comparisons_of(rows: Rows) -> list[Comparison]:
    """E_infinity over the least of a replicate's trials, published and ours."""
    ours: dict[str, list[float]] = {}
    for replicate in kinds(where(rows, part="epochs"), "replicate"):
        of_one = where(rows, replicate=replicate)
        every = np.array([least_errors(of_one, name) for name in KINDS[:4]])
        means = every.mean(axis=1)
        found = {
            "largest / least": every.max() / every.min(),
            "mean / least": means.mean() / every.min(),
            "largest mean / least mean": means.max() / means.min(),
        }
        for name, ratio in found.items():
            ours.setdefault(name, []).append(float(ratio))
    what = "E_inf, error: of one experiment of 20 trials"
    return [
        Comparison(
            what,
            name := str(line["quantity"]),
            float(line["published"]),
            float(np.mean(ours[name])),
            float(np.std(ours[name], ddof=1)),
        )
        for line in published_rows("iris_prototypes")
    ]


def _claims_on_newton(rows: Rows) -> list[Claim]:
    hessian, step = max(column(rows, "hessian")), max(column(rows, "step"))
    wide, narrow = (np.less(column(rows, f"rise_{w:g}"), -1e-9).sum() for w in WIDTHS)
    return [
        Claim(
            "The Hessian of the quantisation error is diag(N_j I), and a step of batch k-means is "
            "Newton's",
            "section 4.1",
            exact(max(hessian, step) < 1e-3),
            f"by central differences at {len(rows)} places the Hessian is off by {hessian:.1e} of "
            f"the largest N_j, and the steps by {step:.1e} of a standard deviation",
        ),
        Claim(
            "The place where batch k-means stops is a local minimum of the quantisation error",
            "section 3.1",
            exact(narrow == 0),
            f"of {len(rows)} such places {narrow} have a lower error within {N_NUDGES} "
            f"random moves by {WIDTHS[1]:g} standard deviations, and {wide} by "
            f"{WIDTHS[0]:g}, beyond the neighbourhood in which no point changes its prototype",
        ),
    ]


# Claims on figure 1.


def on_one_scale(of_kind: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Residues by replicate; those of EM as if its first were that of batch k-means."""
    em, batch = of_kind[EM], of_kind[BATCH]
    return {**of_kind, EM: em * (batch[:, :1] / em[:, :1])}


def claims_on_batch(rows: Rows) -> list[Claim]:
    until_end = epochs_until(rows, BATCH, ENDED)
    last = np.reshape(until_end, (-1, N_TRIALS)).max(axis=1)
    rises = np.diff(residuals(rows, BATCH), axis=1).max()
    share = float(np.mean(last < 15))
    return [
        Claim(
            "Batch k-means lowers the error at each epoch",
            "section 3.1",
            exact(rises <= 1e-9),
            f"the largest change of an epoch is {rises:.1e}",
        ),
        Claim(
            "All 20 runs of batch k-means converge before the 15th epoch",
            "section 5",
            of_one_experiment(share),
            f"true in {share:.0%} of {len(last)} repeats of the 20 runs; the last of them "
            f"converges at epoch {np.median(last):.0f} in the median repeat, {last.min():.0f} to "
            f"{last.max():.0f} in all",
        ),
    ]


def epochs_led(means: Sequence[FloatArray]) -> int:
    """For how many epochs the first of some residues is the least, from the first epoch on."""
    first, *others = means
    is_least = first[1:] < np.min(others, axis=0)[1:]
    return int(np.append(is_least, False).argmin())


def leads_after_five(of_kind: Mapping[str, FloatArray]) -> list[float]:
    """Whether batch k-means has the least residue of all in each later epoch, by replicate."""
    others = [values for name, values in of_kind.items() if name != BATCH]
    is_least = of_kind[BATCH] <= np.min(others, axis=0)
    return [float(held) for held in is_least[:, 6:].all(axis=1)]


def claims_on_leads(of_kind: Mapping[str, FloatArray]) -> list[Claim]:
    led = [epochs_led(values) for values in zip(*of_kind.values(), strict=True)]
    share_led, held = float(np.mean(np.greater_equal(led, 5))), leads_after_five(of_kind)
    note = "; EM, which has another unit, is compared by the share of its first residue"
    return [
        Claim(
            "Online k-means outperforms all others during the first five epochs",
            "section 5, figure 1",
            of_one_experiment(share_led),
            f"true in {share_led:.0%} of {len(led)} repeats of the 20 trials; it leads for "
            f"{np.median(led):.0f} epochs in the median repeat, {min(led)} to {max(led)} in all"
            + note,
        ),
        Claim(
            "After five epochs batch k-means outperforms all others",
            "section 5, figure 1",
            of_one_experiment(float(np.mean(held))),
            f"true in each later epoch in {np.mean(held):.0%} of {len(held)} repeats of the 20 "
            "trials" + note,
        ),
    ]


def _claims_on_ends(of_kind: Mapping[str, FloatArray]) -> list[Claim]:
    def behind(worse: str, better: str, epoch: int) -> tuple[float, float]:
        return paired_gain(of_kind[worse][:, epoch], of_kind[better][:, epoch])

    words = ", ".join(f"{name} {of_kind[name][:, -1].mean():.2f}" for name in KINDS if name != EM)
    noise = behind("online k-means", BATCH, -1)
    poorly = [
        behind(f"{kind} gradient", f"{other} k-means", -1)
        for kind in ("online", "batch")
        for other in ("online", "batch")
    ]
    sooner = behind("batch gradient", "online gradient", 1)
    later = behind("online gradient", "batch gradient", -1)
    return [
        Claim(
            "Online k-means stabilises at a level of noise",
            "section 5, figure 1",
            above(*noise),
            f"after 20 epochs its residue is above that of batch k-means by {noise[0]:.3f} ± "
            f"{noise[1]:.3f}; {words}",
        ),
        Claim(
            "Both gradient algorithms converge poorly",
            "section 5, figure 1",
            together(above(*pair) for pair in poorly),
            f"after 20 epochs: {words}; they are behind by "
            + ", ".join(f"{gap:.2f} ± {error:.2f}" for gap, error in poorly),
        ),
        Claim(
            "Online gradient descent starts faster than batch gradient descent and is outperformed "
            "in the long run",
            "section 5, figure 1",
            together([above(*sooner), above(*later)]),
            f"it is ahead by {sooner[0]:.2f} ± {sooner[1]:.2f} after the first epoch, and behind "
            f"by {later[0]:.2f} ± {later[1]:.2f} after the last",
        ),
    ]


def _claim_on_first_points(rows: Rows) -> Claim:
    pieces = where(rows, algorithm="points")
    level = residuals(rows, BATCH)[:, 1].mean() + least_errors(rows, BATCH).mean()
    errors = {n: np.mean(column(where(pieces, epoch=n), "error")) for n in kinds(pieces, "epoch")}
    n_needed = next((int(n) for n, error in errors.items() if error <= level), None)
    total = len(scaled_iris())
    return Claim(
        "After the first few points online k-means has improved as much as batch k-means in an "
        "epoch",
        "section 4.2",
        exact(n_needed is not None and n_needed <= total / 2),
        f"its mean error is that of one batch epoch after {n_needed} of {total} points"
        if n_needed
        else "it is not within one epoch",
    )


# Claims on figure 2, and on E_infinity.


def _claim_on_vanishing(rows: Rows, of_each: Mapping[str, FloatArray]) -> Claim:
    finals = {name: float(np.median(values, axis=0)[-1]) for name, values in of_each.items()}
    others = min(value for name, value in finals.items() if name != BATCH)
    ended = {}
    for name in (BATCH, EM):
        values = residuals(rows, name)
        ended[name] = np.mean(values[:, -1] <= ENDED * values[:, 0])
    return Claim(
        "The ratio of residues of batch k-means goes to zero, and that of no other",
        "section 5, figure 2",
        exact(finals[BATCH] == 0 and others > 0.5),
        f"in epoch 20 it is {finals[BATCH]:.2f} in the median repeat, and at least "
        f"{others:.2f} for the others; no residue is then left in {ended[BATCH]:.1%} of the trials "
        f"of batch k-means and {ended[EM]:.1%} of those of EM",
    )


def _claim_on_em(of_each: Mapping[str, FloatArray]) -> Claim:
    late = {name: np.median(values[:, 9:14], axis=1) for name, values in of_each.items()}
    others = [values for name, values in late.items() if name not in (EM, BATCH)]
    share = float(np.mean(late[EM] <= np.min(others, axis=0)))
    words = ", ".join(f"{name} {np.median(values):.2f}" for name, values in late.items())
    return Claim(
        "EM behaves better than all others but batch k-means",
        "section 5, figure 2",
        of_one_experiment(share),
        f"its ratios in epochs 10 to 14 are the lowest of the four in {share:.0%} of "
        f"{len(late[EM])} repeats; medians: {words}",
    )


def _claim_on_crossing(of_each: Mapping[str, FloatArray]) -> Claim:
    is_above = of_each["online k-means"] > of_each[BATCH]
    crossings = np.where(is_above.any(axis=1), is_above.argmax(axis=1) + 1, np.inf)
    share = float(np.mean(crossings == 2))
    return Claim(
        "The curves of online and batch k-means cross during the second epoch",
        "section 5, figure 2",
        of_one_experiment(share),
        f"batch k-means has the lower ratio from the second epoch on in {share:.0%} of "
        f"{len(crossings)} repeats, and from epoch {np.median(crossings):.0f} on in the median one",
    )


def _claim_on_switching(rows: Rows) -> Claim:
    sooner, ends = (
        paired_gain(*(epochs_until(rows, name, share) for name in (BATCH, SWITCHED)))
        for share in (0.01, ENDED)
    )
    least = [least_errors(rows, name) for name in (BATCH, SWITCHED)]
    lower = paired_gain(*least)
    return Claim(
        "One online epoch and then batch k-means is better than batch k-means alone",
        "section 5",
        together([above(*sooner), exact(above(*lower) != "does not hold")]),
        f"it needs {sooner[0]:.2f} ± {sooner[1]:.2f} epochs fewer to 1 % of the first residue and "
        f"{ends[0]:.2f} ± {ends[1]:.2f} fewer to the end, and its final error is lower by "
        f"{lower[0]:.2f} ± {lower[1]:.2f} of {least[0].mean():.1f}; better "
        "means sooner and not worse beyond the noise",
    )


def _claims_on_least(rows: Rows) -> list[Claim]:
    by_trial = np.array([least_errors(rows, name) for name in KINDS[:4]])
    means = by_trial.mean(axis=1)
    among, within = np.ptp(means) / means.min(), by_trial.max() / by_trial.min() - 1
    of_batch = by_trial[1].reshape(-1, N_TRIALS)
    few, many = float(of_batch.std(axis=1, ddof=1).mean()), float(of_batch.std(ddof=1))
    return [
        Claim(
            "The variability of E_inf comes from the starts and not from the algorithms",
            "section 5",
            exact(among < 0.1 * within),
            f"the means of the algorithms differ by {among:.2%}, single trials by {within:.0%}",
        ),
        Claim(
            "More than twenty runs do not lower the standard deviation, as starts lead to very "
            "different minima",
            "section 5",
            exact(abs(few - many) < 0.15 * many),
            f"that of E_inf over runs is {few:.1f} with {N_TRIALS} runs and {many:.1f} with "
            f"{of_batch.size}; the error of their mean still falls, from "
            f"{few / math.sqrt(N_TRIALS):.2f} to {many / math.sqrt(of_batch.size):.2f}",
        ),
    ]


# What it looks like.

_STYLES = {
    "online k-means": (BLUE, "o", BLUE, "-"),
    BATCH: (VERMILION, "s", VERMILION, "-"),
    "online gradient": (SKY, "o", "white", "-"),
    "batch gradient": (ORANGE, "s", "white", "-"),
    EM: (INK, "", INK, "-"),
    SWITCHED: (GREEN, "^", GREEN, "--"),
}


def draw(rows: Rows, folder: Path) -> None:
    epochs = np.arange(1, N_EPOCHS + 1)
    with picture(folder / "iris-prototypes.png", 1, 2, size=(11, 4.6)) as ((left, right),):
        scale = left.twinx()
        for name, (color, marker, face, line) in _STYLES.items():
            look = {"color": color, "marker": marker, "mfc": face, "ms": 5, "label": name}
            means = residuals(rows, name).mean(axis=0)
            (scale if name == EM else left).plot(epochs, means[1:], line, **look)
            right.plot(epochs, typical_ratios(rows, name), line, **look)
        left.set(xlabel="epoch t", ylabel="E_t - E_inf", title="Figure 1: residual error")
        scale.set_ylabel("EM: the same of minus the log-likelihood")
        right.set(xlabel="epoch t", title="Figure 2: ratio to the residue of the epoch before")
        right.set_ylim(0, 1.2)
        for ax in (left, scale):
            ax.set_ylim(bottom=0)
        for ax in (left, right):
            ax.set_xticks(range(0, N_EPOCHS + 1, 5))
            tidy(ax, grid="y")
        add_legend(right, 6)
