"""Gene expression of five kinds of tumour: ARI, NMI and VI from matched random starts."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from powermeans import critical_power
from powermeans.datasets import load_data_set
from reproduce import trials
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import where
from reproduce.tables import mean
from reproduce.trials import KHM, LLOYD, draw_seeds, lead, power_from, run_all
from reproduce.verdicts import across, below

TITLE = "Gene expression: five kinds of tumour found again"
SOURCE = "The presentation, “Real data”: over 20 000 dimensions, 5 clusters"
DATA = "stand-ins: two other sets of tumours"

SETS = {
    "platform": "other kinds of tumour, all genes of the platform, log2(x + 1)",
    "types": "the kinds of the slides, fewer genes, without the samples that have gaps, "
    "logarithms as they are stored",
}
FILES = {"platform": "tcga_rnaseq5", "types": "tcga_uci5classes_3700genes"}
N_CLUSTERS = 5
STARTS = (-1.0, -3.0, -9.0, -18.0)
METHODS = (
    trials.lloyd(),
    trials.khm(),
    *map(trials.published, STARTS),
    trials.search(),
)


def cells(quick: bool) -> Sequence[Cell]:
    n_most, n_seeds = (1000, (2, 2)) if quick else (10**6, (10, 100))
    return [
        cell
        for which, n in zip(SETS, n_seeds, strict=True)
        for cell in grid(contest, set=which, seed=range(n), n_most=n_most)
    ]


@lru_cache(maxsize=1)
def expression(which: str) -> tuple[Any, Any]:
    """Logarithms of expression in single precision, and the kinds of tumour."""
    read = load_data_set(FILES[which])
    assert read.labels is not None
    is_whole = np.isfinite(read.points).all(axis=1)
    points = np.log2(read.points + 1) if which == "platform" else read.points
    return points[is_whole].astype(np.float32), read.labels[is_whole]


def contest(set: str, seed: int, n_most: int) -> list[Row]:
    """All methods from the same samples, on no more genes than this."""
    points, labels = expression(set)
    points = np.ascontiguousarray(points[:, :n_most])
    seeds = draw_seeds(points, N_CLUSTERS, "uniform", seed)
    shared = {"samples": points.shape[0], "genes": points.shape[1]}
    shared["critical_power"] = critical_power(points)
    return [{**shared, **row} for row in run_all(METHODS, points, seeds, labels, seed)]


def findings(rows: Rows) -> Findings:
    by_set = {which: where(rows, set=which) for which in SETS}
    criticals = {which: float(of_set[0]["critical_power"]) for which, of_set in by_set.items()}
    return Findings(
        claims=[
            *(
                trials.ahead(
                    by_set,
                    map(power_from, STARTS),
                    other,
                    "On gene expression, in thousands of dimensions, power k-means agrees better "
                    "with the kinds of tumour",
                    "the presentation, “ARI, NMI, VI of the real datasets”",
                    on="the set and the start",
                )
                for other in (LLOYD, KHM)
            ),
            _khm_fails(by_set, criticals),
        ],
        remarks=[
            "The set of the slides (801 samples) is not at hand: one stand-in has all its genes "
            "and other kinds of tumour, the other the same kinds and fewer genes. The published "
            "script, as committed, clusters the column of the labels itself instead of the genes, "
            "so that its bars tell nothing of gene expression.",
            *(f"Critical power of {which}: {power:.1f}." for which, power in criticals.items()),
        ],
    )


def _mean_ari(by_set: dict[str, list[Row]], methods: Sequence[str]) -> str:
    return "; ".join(
        f"{which}: " + ", ".join(f"{m} {mean('ARI')(where(of, method=m)):.3f}" for m in methods)
        for which, of in by_set.items()
    )


def _khm_fails(by_set: dict[str, list[Row]], criticals: dict[str, float]) -> Claim:
    """KHM agrees less with the kinds than Lloyd's algorithm on both sets."""
    leads = [lead(of_set, KHM, LLOYD, "ARI") for of_set in by_set.values()]
    clusters = [mean("clusters")(where(of_set, method=KHM)) for of_set in by_set.values()]
    return Claim(
        "As the dimension grows k-harmonic means breaks down (gene expression).",
        "the paper, section 2.1; the presentation, “k-harmonic means”",
        across(below(*pair) for pair in leads),
        f"Mean ARI, {_mean_ari(by_set, (LLOYD, KHM))}; from the same seeds its lead over Lloyd's "
        f"is {' and '.join(f'{gain:+.3f} ± {error:.3f}' for gain, error in leads)}; it ends with "
        f"{' and '.join(f'{n:.1f}' for n in clusters)} of {N_CLUSTERS} clusters. The critical "
        f"powers are {' and '.join(f'{p:.1f}' for p in criticals.values())}; it stays at −1.",
    )
