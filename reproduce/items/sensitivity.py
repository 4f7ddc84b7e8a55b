"""How much the factor from one power to the next and the first power matter."""

import math
from collections.abc import Mapping, Sequence

from reproduce.item import Cell, Claim, Findings, Row, Rows, Table, grid
from reproduce.rows import column, mean_and_error, where
from reproduce.tables import Statistic, mean, over, table, with_error
from reproduce.trials import LLOYD, Method, gaussian_trials, lloyd, published
from reproduce.verdicts import all_above, counted, paired_gain

TITLE = "Sensitivity to the factor η and to the first power s0"
SOURCE = "Xu & Lange 2019, sections 2.1 and 4, on the data of Tables 1 and 2"
DATA = "as published"

FACTORS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5)
STARTS = (-0.2, -0.5, -1.0, -2.0, -3.0, -5.0, -9.0, -18.0, -40.0)
USUAL_START = -3.0
# The starts that the paper calls a broad range.
BROAD = (-1.0, -3.0, -9.0, -18.0)
MEASURES = {"ratio": "root quality ratio", "VI_nearest": "VI, nats"}


def with_factor(factor: float) -> Method:
    """Algorithm 1 from s0 = -3 with another factor, of which 1.01 needs more sweeps to stop."""
    return published(USUAL_START, factor, max_iter=5000)._replace(name=f"{factor:g}")


PARTS: dict[str, Sequence[Method]] = {
    "factor": [with_factor(factor) for factor in FACTORS],
    "start": [lloyd(), *map(published, STARTS)],
}


def cells(quick: bool) -> Sequence[Cell]:
    features, firsts, n_sets = ((2, 10), (0,), 2) if quick else ((2, 10, 50, 200), (0, 10), 10)
    return grid(trials, methods=list(PARTS), features=features, first_set=firsts, sets=n_sets)


def trials(methods: str, features: int, first_set: int, sets: int) -> list[Row]:
    """The methods of a part."""
    numbers = range(first_set, first_set + sets)
    return gaussian_trials(PARTS[methods], features, "D", numbers)


def findings(rows: Rows) -> Findings:
    features = sorted({int(row["features"]) for row in rows})
    by_part = {part: where(rows, methods=part) for part in PARTS}
    heads = {"factor": "η, from s0 = -3", "start": "method, η = 1.05"}
    titles = {"factor": "By factor", "start": "By first power"}

    def by_features(title: str, part: str, cell: Statistic, note: str = "") -> Table:
        columns = over("features", features, cell, "d = {}")
        return table(title, by_part[part], {"method": heads[part]}, columns, note)

    note = "Seeds in proportion to D, the same for all; with standard errors."
    return Findings(
        tables=[
            *(
                by_features(f"{titles[part]}: {words}", part, with_error(measure), note)
                for part in PARTS
                for measure, words in MEASURES.items()
            ),
            by_features(
                "Sweeps until the paper's rule stops, by factor",
                "factor",
                lambda of: f"{mean('sweeps')(of):.0f}",
            ),
        ],
        claims=[_claim_of_factors(by_part, features), _claim_of_starts(by_part, features)],
    )


def _by_set(rows: Rows, n_features: int, method: str) -> list[float]:
    """VI of a method on each data set, which are the same in both parts."""
    own = where(rows, features=n_features, method=method)
    return column(sorted(own, key=lambda row: int(row["data_set"])), "VI_nearest")


def _claim_of_factors(by_part: Mapping[str, Rows], features: Sequence[int]) -> Claim:
    """Stable: half of the gain over Lloyd, with the worst factor, is more than the range."""
    gaps, said = [], []
    for d in features:
        of_factors = [_by_set(by_part["factor"], d, factor) for factor in ("1.02", "1.05", "1.1")]
        best, *_, worst = sorted(of_factors, key=math.fsum)
        before = _by_set(by_part["start"], d, LLOYD)
        sets = list(zip(before, worst, best, strict=True))
        gaps.append(mean_and_error([(of - w) / 2 - (w - b) for of, w, b in sets]))
        said.append(
            f"d = {d}: {paired_gain(worst, best)[0]:.3f} against a gain over Lloyd of "
            f"{paired_gain(before, worst)[0]:.3f}"
        )
    return Claim(
        "Results are stable to reasonable changes of η",
        "Xu & Lange 2019, section 2.1",
        all_above(gaps),
        f"range of the mean VI over η = 1.02, 1.05 and 1.1: {'; '.join(said)}; half of the gain is "
        f"more than the range {counted(gaps)}",
        on="the dimension",
    )


def _claim_of_starts(by_part: Mapping[str, Rows], features: Sequence[int]) -> Claim:
    gaps, said = [], []
    for d in features:
        before, *after = (
            _by_set(by_part["start"], d, name)
            for name in (LLOYD, *(published(start).name for start in BROAD))
        )
        of_starts = [paired_gain(before, of_start) for of_start in after]
        gaps += of_starts
        listed = ", ".join(f"{gain:+.3f} ± {error:.3f}" for gain, error in of_starts)
        said.append(f"d = {d}: {listed}")
    return Claim(
        "The first power matters, yet a broad range of it is ahead of Lloyd's algorithm",
        "Xu & Lange 2019, sections 2.1 and 4",
        all_above(gaps),
        f"VI of Lloyd less that from s0 = -1, -3, -9 and -18: {'; '.join(said)}; ahead "
        f"{counted(gaps)}",
        on="the dimension and the start",
    )
