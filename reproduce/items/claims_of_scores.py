"""What the sources say about the scores they use: variation of information, ARI, NMI."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from powermeans.metrics import (
    adjusted_rand_index,
    normalized_mutual_information,
    variation_of_information,
)
from reproduce.checks import Check, Figures, cells_of, findings_of
from reproduce.item import Cell, Findings, Row

TITLE = "Scores of clusterings: what the sources say about them"
SOURCE = "The paper, section 4; the presentation's slides on ARI, NMI and VI"
DATA = "random cases"

Labels = NDArray[np.int64]

PAPER = "the paper, section 4"
SLIDES = "the presentation, “{}”"
ROUNDING = 1e-9


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each sentence."""
    return cells_of(CHECKS, quick)


def findings(rows: Sequence[Row]) -> Findings:
    """A claim for each."""
    return findings_of(CHECKS, rows)


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """No pictures."""
    return []


def clusterings(n_cases: int, n_points: int = 40) -> Iterator[tuple[Labels, Labels, Labels]]:
    """Three clusterings of the same points: one at random, two that differ from it in parts."""
    for case in range(n_cases):
        rng = np.random.default_rng(case)
        first = rng.integers(rng.integers(2, 7), size=n_points)
        others = np.tile(first, (2, 1))
        changed = rng.uniform(size=others.shape) < rng.uniform(size=(2, 1))
        others[changed] = rng.integers(6, size=int(changed.sum()))
        yield first, others[0], others[1]


def table_of(one: Labels, other: Labels) -> NDArray[np.float64]:
    """How many points are in each pair of clusters."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    return np.asarray(table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0])


def entropy(counts: NDArray[np.float64]) -> float:
    """Of the shares of these counts, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-shares @ np.log(shares))


def measure_metric(n_cases: int) -> Figures:
    """Two unrelated clusterings and that by both at once: longer ways straight than around."""
    n_vi, n_ari, largest, score = 0, 0, 0.0, variation_of_information
    for case in range(n_cases):
        one, other = (np.random.default_rng(case).uniform(size=(2, 60)) < 0.2).astype(np.int64)
        middle = 2 * one + other
        n_vi += int(score(one, other) > score(one, middle) + score(middle, other) + ROUNDING)
        sides = [
            1 - adjusted_rand_index(*pair)
            for pair in ((one, other), (one, middle), (middle, other))
        ]
        n_ari += int(sides[0] > sides[1] + sides[2] + ROUNDING)
        largest = max(largest, sides[0] - sides[1] - sides[2])
    return {"n_vi": n_vi, "n_ari": n_ari, "largest": largest}


def measure_names(n_cases: int) -> Figures:
    """How much scores change when clusters get other names."""
    deviations = []
    for case, (one, other, _) in enumerate(clusterings(n_cases)):
        renamed = np.random.default_rng(case).permutation(6)[other]
        deviations.append(
            abs(variation_of_information(one, renamed) - variation_of_information(one, other))
        )
    return {"deviation": max(deviations)}


def measure_chance(n_cases: int) -> Figures:
    """Mean scores of clusterings that have nothing to do with each other."""
    ari, nmi = [], []
    for case in range(n_cases):
        one, other = np.random.default_rng(case).integers(5, size=(2, 60))
        ari.append(adjusted_rand_index(one, other))
        nmi.append(normalized_mutual_information(one, other))
    error = float(np.std(ari, ddof=1)) / math.sqrt(n_cases)
    return {"ari": float(np.mean(ari)), "error": error, "nmi": float(np.mean(nmi))}


def measure_formulas(n_cases: int) -> Figures:
    """The three scores beside the formulas on the slides."""
    vi, ari, nmi = [], [], []
    for one, other, _ in clusterings(n_cases):
        table = table_of(one, other)
        joint = entropy(table.ravel())
        rows, columns = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
        vi.append(abs(2 * joint - rows - columns - variation_of_information(one, other)))
        mutual = (rows + columns - joint) / math.sqrt(rows * columns)
        nmi.append(abs(mutual - normalized_mutual_information(one, other)))
        ari.append(abs(adjusted_rand(table) - adjusted_rand_index(one, other)))
    return {"vi": max(vi), "ari": max(ari), "nmi": max(nmi)}


def adjusted_rand(table: NDArray[np.float64]) -> float:
    """(RI - expected) / (largest - expected), in pairs of points that are together in both."""
    together = pairs(table).sum()
    in_rows, in_columns = pairs(table.sum(axis=1)).sum(), pairs(table.sum(axis=0)).sum()
    expected = in_rows * in_columns / pairs(table.sum())
    return float((together - expected) / ((in_rows + in_columns) / 2 - expected))


def pairs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many pairs there are among so many."""
    return np.asarray(counts * (counts - 1) / 2)


CHECKS = (
    Check(
        "metric",
        "Variation of information is a metric, ARI is none.",
        PAPER,
        measure_metric,
        lambda figures: figures["n_vi"] == 0 < figures["n_ari"],
        "Two unrelated clusterings, and between them the one by both at once: the triangle "
        "inequality fails for variation of information in {n_vi:.0f} of {n_cases} cases, for 1 − "
        "ARI in {n_ari:.0f}, by up to {largest:.2f}.",
    ),
    Check(
        "names",
        "Variation of information does not depend on what clusters are called.",
        PAPER,
        measure_names,
        lambda figures: figures["deviation"] < ROUNDING,
        "It changes by {deviation:.0e} at most.",
    ),
    Check(
        "chance",
        "ARI accounts for chance.",
        SLIDES.format("ARI"),
        measure_chance,
        lambda figures: abs(figures["ari"]) <= 3 * figures["error"],
        "Unrelated clusterings of 60 points into 5: ARI {ari:.4f} ± {error:.4f} in the mean, "
        "NMI {nmi:.3f}.",
        n_cases=1000,
        n_quick_cases=200,
    ),
    Check(
        "formulas",
        "VI = H(U|V) + H(V|U); NMI = I / √(H(U) H(V)); ARI = (RI − expected) / (largest − "
        "expected).",
        SLIDES.format("ARI, NMI, VI"),
        measure_formulas,
        lambda figures: max(figures.values()) < ROUNDING,
        "{n_cases} random pairs: ours differ by {vi:.0e}, {nmi:.0e} and {ari:.0e} at most.",
    ),
)
