"""What the sources say about the scores they use: variation of information, ARI, NMI."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from powermeans.metrics import (
    adjusted_rand_index,
    normalized_mutual_information,
    variation_of_information,
)
from powermeans.types import FloatArray
from reproduce.rows import mean_and_error
from reproduce.verdicts import Checks, Figures

TITLE = "Scores of clusterings: what the sources say about them"
SOURCE = "The paper, section 4; the presentation's slides on ARI, NMI and VI"
DATA = "random cases"

Labels = NDArray[np.int64]

PAPER = "the paper, section 4"
SLIDES = "the presentation, “{}”"
ROUNDING = 1e-9
CHECKS = Checks()
cells, findings = CHECKS.cells, CHECKS.findings


def clusterings(n_cases: int, n_points: int = 40) -> Iterator[tuple[Labels, Labels]]:
    """Two clusterings of the same points: one at random, one that differs from it in parts."""
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        one = rng.integers(rng.integers(2, 7), size=n_points)
        is_changed = rng.uniform(size=n_points) < rng.uniform()
        yield one, np.where(is_changed, rng.integers(6, size=n_points), one)


def table_of(one: Labels, other: Labels) -> FloatArray:
    """How many points are in each pair of clusters."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    return np.asarray(table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0])


def entropy(counts: FloatArray) -> float:
    """Of the shares of these counts, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-shares @ np.log(shares))


@CHECKS.claim(
    "Variation of information is a metric, ARI is not.",
    PAPER,
    "Two unrelated clusterings, and between them the one by both at once: the triangle "
    "inequality fails for variation of information in {n_vi:.0f} of {n_cases} cases, for 1 − "
    "ARI in {n_ari:.0f}, by up to {largest:.2f}.",
    lambda n_vi, n_ari, **_: n_vi == 0 < n_ari,
)
def _metric(n_cases: int) -> Figures:
    n_vi, n_ari, largest, score = 0, 0, 0.0, variation_of_information
    for case in range(n_cases):
        one, other = (np.random.default_rng(case).uniform(size=(2, 60)) < 0.2).astype(np.int64)
        middle = 2 * one + other
        n_vi += score(one, other) > score(one, middle) + score(middle, other) + ROUNDING
        pairs = ((one, other), (one, middle), (middle, other))
        straight, *around = (1 - adjusted_rand_index(*pair) for pair in pairs)
        n_ari += straight > sum(around) + ROUNDING
        largest = max(largest, straight - sum(around))
    return {"n_vi": n_vi, "n_ari": n_ari, "largest": largest}


@CHECKS.claim(
    "Variation of information does not depend on what clusters are called.",
    PAPER,
    "It changes by {deviation:.0e} at most.",
    lambda deviation: deviation < ROUNDING,
)
def _names(n_cases: int) -> Figures:
    deviations = []
    for case, (one, other) in enumerate(clusterings(n_cases)):
        renamed = np.random.default_rng(case).permutation(6)[other]
        scores = (variation_of_information(one, labels) for labels in (renamed, other))
        deviations.append(float(np.ptp(list(scores))))
    return {"deviation": max(deviations)}


@CHECKS.claim(
    "ARI accounts for chance.",
    SLIDES.format("ARI"),
    "Unrelated clusterings of 60 points into 5: ARI {ari:.4f} ± {error:.4f} in the mean, "
    "NMI {nmi:.3f}.",
    lambda ari, error, **_: abs(ari) <= 3 * error,
    n_cases=1000,
    n_quick_cases=200,
)
def _chance(n_cases: int) -> Figures:
    ari, nmi = [], []
    for case in range(n_cases):
        one, other = np.random.default_rng(case).integers(5, size=(2, 60))
        ari.append(adjusted_rand_index(one, other))
        nmi.append(normalized_mutual_information(one, other))
    mean, error = mean_and_error(ari)
    return {"ari": mean, "error": error, "nmi": float(np.mean(nmi))}


@CHECKS.claim(
    "VI = H(U|V) + H(V|U); NMI = I / √(H(U) H(V)); ARI = (RI − expected) / (largest − expected).",
    SLIDES.format("ARI, NMI, VI"),
    "{n_cases} random pairs: ours differ by {vi:.0e}, {nmi:.0e} and {ari:.0e} at most.",
    lambda vi, ari, nmi: max(vi, ari, nmi) < ROUNDING,
)
def _formulas(n_cases: int) -> Figures:
    vi, ari, nmi = [], [], []
    for one, other in clusterings(n_cases):
        table = table_of(one, other)
        joint = entropy(table.ravel())
        rows, columns = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
        vi.append(abs(2 * joint - rows - columns - variation_of_information(one, other)))
        mutual = (rows + columns - joint) / math.sqrt(rows * columns)
        nmi.append(abs(mutual - normalized_mutual_information(one, other)))
        ari.append(abs(adjusted_rand(table) - adjusted_rand_index(one, other)))
    return {"vi": max(vi), "ari": max(ari), "nmi": max(nmi)}


def adjusted_rand(table: FloatArray) -> float:
    """(RI - expected) / (largest - expected), in pairs of points that are together in both."""

    def pairs(counts: FloatArray) -> float:
        return float(np.sum(counts * (counts - 1) / 2))

    in_rows, in_columns = pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = in_rows * in_columns / pairs(table.sum())
    return (pairs(table) - expected) / ((in_rows + in_columns) / 2 - expected)
