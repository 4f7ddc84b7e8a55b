"""Equal clusters of normal and of binomial points over dimensions: ARI, NMI and VI."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from powermeans.datasets import DataSet
from reproduce import trials
from reproduce.drawn_data import make_exponential_family
from reproduce.item import Cell, Claim, Findings, Row, Rows, Table, grid
from reproduce.rows import kinds, said, where
from reproduce.tables import mean, over, table
from reproduce.trials import KHM, LLOYD, ONE_DESCENT, SEARCH, draw_seeds, lead, power_from
from reproduce.verdicts import across, all_above, below

TITLE = "Equal clusters, normal and binomial, over dimensions: ARI, NMI and VI"
SOURCE = "The presentation, “Synthetic data”: 3 clusters, 600 points, as many in each"
DATA = "our layout: the slides name no means"

Family = Literal["normal", "binomial"]
FAMILIES: tuple[Family, ...] = ("normal", "binomial")
LAYOUTS = {"in a line": "at 10, 20 and 40 in each coordinate", "close": "anywhere from 20 to 24"}
FEATURES, QUICK_FEATURES = (1, 2, 5, 10, 20, 50, 100, 200), (2, 20, 100)
N_POINTS, N_CLUSTERS = 600, 3
STARTS = (-1.0, -3.0, -9.0)
PUBLISHED = tuple(map(power_from, STARTS))
METHODS = (
    *(trials.lloyd(), trials.khm()),
    *map(trials.published, STARTS),
    *map(trials.patient, STARTS[:2]),
    *(trials.one_descent(), trials.search()),
)
# From so many features on dimensions count as high.
HIGH = 100
# So much ARI a start may lose against Lloyd's algorithm where none needs tuning.
HARDLY = 0.01


def cells(quick: bool) -> Sequence[Cell]:
    features, n_sets = (QUICK_FEATURES, 2) if quick else (FEATURES, 30)
    return grid(on_sets, family=FAMILIES, layout=list(LAYOUTS), features=features, n_sets=n_sets)


def drawn_set(family: Family, layout: str, n_features: int, number: int) -> DataSet:
    """The data set of this number."""
    rng = np.random.default_rng([number, n_features])
    centers: Any = (10.0, 20.0, 40.0)
    if layout == "close":
        centers = rng.uniform(20, 24, size=(N_CLUSTERS, n_features))
    return make_exponential_family(family, N_POINTS, n_features, centers=centers, random_state=rng)


def on_sets(family: Family, layout: str, features: int, n_sets: int) -> list[Row]:
    """All methods on each data set, from the same seeds."""
    rows: list[Row] = []
    for number in range(n_sets):
        drawn = drawn_set(family, layout, features, number)
        assert drawn.labels is not None
        with threadpool_limits(1):  # so few points are not worth a second thread
            seeds = draw_seeds(drawn.points, N_CLUSTERS, "uniform", number)
            for method in METHODS:
                model = method.fit(drawn.points, seeds, number)
                scores = trials.agreement(drawn.labels, model.labels_)
                rows.append({"data_set": number, "method": method.name, **scores})
    return rows


def findings(rows: Rows) -> Findings:
    in_high = {
        layout: [row for row in where(rows, layout=layout) if float(row["features"]) >= HIGH]
        for layout in LAYOUTS
    }
    return Findings(
        tables=[_table(rows, family, layout) for family in FAMILIES for layout in LAYOUTS],
        claims=[
            *(_benefits_remain(in_high, start) for start in PUBLISHED),
            _khm_in_high_dimensions(in_high),
            _no_careful_tuning(in_high),
        ],
        remarks=[
            "The slides say neither where the centers are nor how many dimensions there were. In "
            "a line the means are those of the work that the slides build on (Vellal, Chakraborty "
            "& Xu 2022); close centers are what makes high dimensions hard for k-harmonic means.",
            "The seeds are points drawn at random, as in the slides' algorithm.",
        ],
    )


def _table(rows: Rows, family: str, layout: str) -> Table:
    chosen = where(rows, family=family, layout=layout)
    *_, last = features = sorted({int(row["features"]) for row in chosen})
    others = [over("features", [last], mean(s), f"{s}, last d")[0] for s in ("NMI", "VI")]
    return table(
        f"{family.capitalize()}, centers {LAYOUTS[layout]}: mean ARI by the number of features",
        chosen,
        {"method": "method"},
        [*over("features", features, mean("ARI"), "d = {}"), *others],
        f"{len(kinds(chosen, 'data_set'))} data sets of {N_POINTS} points in {N_CLUSTERS} equal "
        "clusters.",
    )


ByLayout = Mapping[str, Rows]


def _mean_ari(by_layout: ByLayout, methods: Sequence[str]) -> str:
    words = [
        f"{layout}: "
        + ", ".join(f"{name} {mean('ARI')(where(of, method=name)):.3f}" for name in methods)
        for layout, of in by_layout.items()
    ]
    return f"Mean ARI from d = {HIGH} on, centers {'; '.join(words)}."


def _benefits_remain(by_layout: ByLayout, start: str) -> Claim:
    """A start is better than both others in each layout, by all scores."""
    return trials.best_of_three(
        by_layout,
        start,
        "Power k-means retains the benefits of annealing as the dimension increases, where KHM and "
        "Lloyd's algorithm deteriorate",
        "the presentation, “Annealing”; the paper, section 2.1",
        "How much better, from the same seeds",
        f" {_mean_ari(by_layout, (LLOYD, KHM, start, SEARCH))}",
        on="the layout",
    )


def _khm_in_high_dimensions(by_layout: ByLayout) -> Claim:
    found = {layout: lead(of, KHM, LLOYD, "ARI") for layout, of in by_layout.items()}
    words = ", ".join(
        f"{mean:+.3f} ± {error:.3f} ({name})" for name, (mean, error) in found.items()
    )
    return Claim(
        "k-harmonic means suffers from the curse of dimensionality.",
        "the presentation, “k-harmonic means”; the paper, section 2.1",
        across(below(*pair) for pair in found.values()),
        f"From the same seeds its ARI beside Lloyd's is {words}. "
        f"{_mean_ari(by_layout, (LLOYD, KHM))}",
        on="the layout",
    )


def _no_careful_tuning(by_layout: ByLayout) -> Claim:
    """No start is worse than Lloyd's by more than a little."""
    found = {
        f"{start}, {layout}": lead(of, start, LLOYD, "ARI")
        for layout, of in by_layout.items()
        for start in PUBLISHED
    }
    shown = (LLOYD, *PUBLISHED, *map(trials.patient_from, STARTS[:2]), ONE_DESCENT)
    return Claim(
        "The initial power affects performance, but does not require careful tuning (equal "
        "clusters, d ≥ 100).",
        "the presentation, “Performance guarantee”; the paper, section 2.1",
        all_above(found.values(), -HARDLY),
        f"Holds if no start loses {HARDLY:g} of ARI against Lloyd's algorithm; from the same seeds "
        f"they gain {said(found, '{}: {:+.3f} ± {:.3f}', '; ')}. {_mean_ari(by_layout, shown)}",
        on="the layout and the start",
    )
