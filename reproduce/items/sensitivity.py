"""How much the factor from one power to the next and the first power matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from powermeans.plots.canvas import BLUE, GREEN, INK, ORANGE, VERMILION, tidy
from reproduce.checks import above, across, counted, paired_gain
from reproduce.gaussian_trials import Sizes, trials
from reproduce.item import Cell, Claim, Findings, Row, Table, Value, mean_and_error
from reproduce.matched_starts import LLOYD, Method, lloyd, published
from reproduce.selecting import column, where

TITLE = "Sensitivity to the factor η, to the first power s0, and to the sizes of clusters"
SOURCE = "Xu & Lange 2019, sections 2.1 and 4, on the data of Tables 1 and 2"
DATA = "as published"

FACTORS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5)
STARTS = (-0.2, -0.5, -1.0, -2.0, -3.0, -5.0, -9.0, -18.0, -40.0)
FEATURES, QUICK_FEATURES = (2, 10, 50, 200), (2, 10)
N_SETS, N_QUICK_SETS, SETS_PER_CELL = 20, 2, 10
USUAL_FACTOR, USUAL_START = 1.05, -3.0
# The starts that the paper calls a broad range.
BROAD = (-1.0, -3.0, -9.0, -18.0)
# With a factor of 1.01 the rule of stopping needs this many sweeps and more than a thousand.
MOST_SWEEPS = 5000
MEASURES = {"ratio": "root quality ratio", "VI_nearest": "VI, nats"}
COLORS = (INK, BLUE, GREEN, ORANGE)


def cells(quick: bool) -> Sequence[Cell]:
    """Ten data sets in one dimension, all from seeds in proportion to D."""
    n_sets = N_QUICK_SETS if quick else N_SETS
    features = QUICK_FEATURES if quick else FEATURES
    blocks = [
        range(first, min(first + SETS_PER_CELL, n_sets))
        for first in range(0, n_sets, SETS_PER_CELL)
    ]
    return [
        cell
        for n_features in features
        for numbers in blocks
        for cell in (
            _cell("factor", [with_factor(factor) for factor in FACTORS], n_features, numbers),
            _cell("start", [lloyd(), *map(published, STARTS)], n_features, numbers),
            _cell("sizes", [lloyd(), published(USUAL_START)], n_features, numbers, "drawn"),
        )
    ]


def _cell(
    part: str, methods: list[Method], n_features: int, numbers: range, sizes: Sizes = "equal"
) -> Cell:
    key: dict[str, Value] = {
        "part": part,
        "features": n_features,
        "sizes": sizes,
        "first_set": numbers.start,
        "sets": len(numbers),
    }
    return Cell(key, partial(trials, methods, n_features, "D", numbers, sizes))


def with_factor(factor: float) -> Method:
    """Algorithm 1 from s0 = -3 with another factor."""
    params = published(USUAL_START, factor).params | {"max_iter": MOST_SWEEPS}
    return Method(f"{factor:g}", params)


def findings(rows: Sequence[Row]) -> Findings:
    """Tables by factor and by start, and what the paper says of either."""
    features = sorted({int(row["features"]) for row in rows})
    tables = [
        _table(rows, part, measure, features)
        for part in ("factor", "start")
        for measure in MEASURES
    ]
    return Findings(
        tables=[*tables, _sweeps(rows, features), _sizes(rows, features)],
        claims=[_claim_of_factors(rows, features), _claim_of_starts(rows, features)],
    )


def _mean(rows: Sequence[Row], measure: str, **values: Value) -> tuple[float, float]:
    return mean_and_error(column(where(rows, **values), measure))


def _methods(rows: Sequence[Row], part: str) -> list[str]:
    return list(dict.fromkeys(str(row["method"]) for row in where(rows, part=part)))


def _table(rows: Sequence[Row], part: str, measure: str, features: Sequence[int]) -> Table:
    body = [
        [
            method,
            *(
                _with_error(_mean(rows, measure, part=part, features=d, method=method))
                for d in features
            ),
        ]
        for method in _methods(rows, part)
    ]
    head = "η, from s0 = -3" if part == "factor" else "method, η = 1.05"
    return Table(
        f"By {'factor' if part == 'factor' else 'first power'}: {MEASURES[measure]}",
        [head, *(f"d = {d}" for d in features)],
        body,
        "Seeds in proportion to D, the same for all; with standard errors.",
    )


def _sweeps(rows: Sequence[Row], features: Sequence[int]) -> Table:
    body = [
        [factor, *(f"{_mean(rows, 'sweeps', part='factor', features=d, method=factor)[0]:.0f}"
                   for d in features)]
        for factor in _methods(rows, "factor")
    ]  # fmt: skip
    return Table(
        "Sweeps until the paper's rule stops, by factor",
        ["η", *(f"d = {d}" for d in features)],
        body,
    )


def _sizes(rows: Sequence[Row], features: Sequence[int]) -> Table:
    kinds = (("equal", "start"), ("drawn", "sizes"))
    body: list[list[Value]] = [
        [
            sizes,
            method,
            *(
                _with_error(_mean(rows, "VI_nearest", part=part, features=d, method=method))
                for d in features
            ),
        ]
        for sizes, part in kinds
        for method in _methods(rows, "sizes")
    ]
    return Table(
        "Clusters of equal size, or each point drawing its cluster: VI, nats",
        ["sizes", "method", *(f"d = {d}" for d in features)],
        body,
        "The paper does not say which.",
    )


def _with_error(found: tuple[float, float]) -> str:
    return f"{found[0]:.3f} ± {found[1]:.3f}"


def _by_set(rows: Sequence[Row], part: str, n_features: int, method: str) -> list[float]:
    """VI of a method on each data set, which are the same in both parts."""
    own = where(rows, part=part, features=n_features, method=method)
    return column(sorted(own, key=lambda row: int(row["data_set"])), "VI_nearest")


def _claim_of_factors(rows: Sequence[Row], features: Sequence[int]) -> Claim:
    """Stable: half of the gain over Lloyd, with the worst factor, is more than the range."""
    near = ("1.02", "1.05", "1.1")
    gaps, said = [], []
    for d in features:
        best, *_, worst = sorted(
            (_by_set(rows, "factor", d, factor) for factor in near), key=math.fsum
        )
        gain, _ = paired_gain(before := _by_set(rows, "start", d, LLOYD), worst)
        of_factor, _ = paired_gain(worst, best)
        gaps.append(
            mean_and_error(
                [(of - w) / 2 - (w - b) for of, w, b in zip(before, worst, best, strict=True)]
            )
        )
        said.append(f"d = {d}: {of_factor:.3f} against a gain over Lloyd of {gain:.3f}")
    return Claim(
        "Results are stable to reasonable changes of η",
        "Xu & Lange 2019, section 2.1",
        across(above(*found) for found in gaps),
        f"range of the mean VI over η = 1.02, 1.05 and 1.1: {'; '.join(said)}; half of the gain is "
        f"more than the range {counted(gaps)}",
        on="the dimension",
    )


def _claim_of_starts(rows: Sequence[Row], features: Sequence[int]) -> Claim:
    names = [published(start).name for start in BROAD]
    gaps, said = [], []
    for d in features:
        before = _by_set(rows, "start", d, LLOYD)
        of_starts = [paired_gain(before, _by_set(rows, "start", d, name)) for name in names]
        gaps += of_starts
        listed = ", ".join(f"{gain:+.3f} ± {error:.3f}" for gain, error in of_starts)
        said.append(f"d = {d}: {listed}")
    return Claim(
        "The first power matters, yet a broad range of it is ahead of Lloyd's algorithm",
        "Xu & Lange 2019, sections 2.1 and 4",
        across(above(*found) for found in gaps),
        f"VI of Lloyd less that from s0 = -1, -3, -9 and -18: {'; '.join(said)}; ahead "
        f"{counted(gaps)}",
        on="the dimension and the start",
    )


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """VI by factor and by first power."""
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4), layout="constrained", sharey=True
    )
    factors = {f"{factor:g}": factor - 1 for factor in FACTORS}
    starts = {published(start).name: -start for start in STARTS}
    _draw_lines(left, where(rows, part="factor"), factors)
    _draw_lines(right, where(rows, part="start"), starts)
    left.set(xlabel="η - 1, from s0 = -3", ylabel="VI, nats")
    right.set(xlabel="-s0, with η = 1.05; dashed: Lloyd")
    right.legend(frameon=False, fontsize=8)
    path = folder / "sensitivity.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_lines(ax: Any, rows: Sequence[Row], places: dict[str, float]) -> None:
    features = sorted({int(row["features"]) for row in rows})
    for d, color in zip(features, COLORS, strict=False):
        found = [_mean(rows, "VI_nearest", features=d, method=name) for name in places]
        means, errors = zip(*found, strict=True)
        shown = [error if math.isfinite(error) else 0.0 for error in errors]
        ax.errorbar(
            list(places.values()), means, shown, color=color, marker="o", ms=4, label=f"d = {d}"
        )
        if before := where(rows, features=d, method=LLOYD):
            mean = mean_and_error(column(before, "VI_nearest"))[0]
            ax.axhline(mean, color=color, linestyle="--", linewidth=0.9)
    if USUAL_FACTOR - 1 in places.values():
        ax.axvline(USUAL_FACTOR - 1, color=VERMILION, linewidth=0.7)
    ax.set_xscale("log")
    tidy(ax, grid="y")
