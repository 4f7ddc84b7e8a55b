"""Lloyd, k-harmonic means and power k-means on Gaussian clusters in 2 to 200 dimensions."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce import trials
from reproduce.drawn_data import Sizes
from reproduce.item import Cell, Claim, Comparison, Findings, Row, Rows, Table, Value, grid
from reproduce.pictures import add_legend, picture
from reproduce.rows import (
    Figure,
    column,
    groups,
    kinds,
    mean_and_error,
    published_rows,
    said,
    where,
)
from reproduce.tables import mean
from reproduce.trials import KHM, LLOYD, Method, Seeding, power_from
from reproduce.verdicts import CLEAR, above, all_above, counted, exact, no_difference, paired_gain

TITLE = "Tables 1 and 2: quality and agreement on Gaussian clusters, d = 2 to 200"
SOURCE = "Xu & Lange 2019, Tables 1 and 2 and section 4"
DATA = "as published"
KEEPS_ROWS = True

FEATURES, QUICK_FEATURES = (2, 5, 10, 20, 50, 100, 200), (2, 10)
N_SETS, N_QUICK_SETS, SETS_PER_CELL = 50, 2, 10
SEEDINGS: tuple[Seeding, ...] = ("D", "D²", "greedy", "uniform")
STARTS = (-1.0, -3.0, -9.0, -18.0)
POWERS = tuple(map(power_from, STARTS))
PUBLISHED = (LLOYD, KHM, *POWERS)
MEASURES = {
    "ratio": "root quality ratio, distances not squared",
    "VI_nearest": "variation of information, nats, from the clusters of the nearest true center",
}
TABLES = {"ratio": "table1", "VI_nearest": "table2"}
NAMES = {"ratio": "Table 1", "VI_nearest": "Table 2"}
IN_SHORT = {"ratio": "ratio", "VI_nearest": "VI"}
PAPER = "Xu & Lange 2019, section 4"
OWN_SEEDS = "its own"

# What is computed.


class Setting(NamedTuple):
    """How trials are made: by which methods, from which seeds, on which data sets."""

    methods: Sequence[Method]
    seeding: Seeding = "D"
    sets: range = range(N_SETS)
    sizes: Sizes = "equal"
    features: Sequence[int] = FEATURES


BY_PAPER = (trials.lloyd(), trials.khm(), *map(trials.published, STARTS))
OURS = (
    trials.search(),
    Method("our fast search", {"effort": "fast"}, takes_seeds=False),
    Method("our KMeans()", {"effort": "none", "power": -math.inf}, takes_seeds=False),
)
FACTORS = {f"η = {factor:g}": factor for factor in (1.02, 1.1)}
OTHER_FACTORS = [trials.published(-3.0, f)._replace(name=n) for n, f in FACTORS.items()]
SETTINGS = {
    **{seeding: Setting(BY_PAPER, seeding) for seeding in SEEDINGS},
    OWN_SEEDS: Setting(OURS),
    # So many sets tell in the plane, where the methods hardly differ, which of them is better.
    "plane": Setting(BY_PAPER, sets=range(50, 2000), features=(2,)),
    "drawn 1": Setting(BY_PAPER, sizes="drawn"),
    "uneven": Setting(BY_PAPER, sets=range(150), sizes="uneven", features=(2, 5, 10, 20, 50)),
    "uneven, wide": Setting(BY_PAPER, sets=range(50), sizes="uneven", features=(100, 200)),
    "factors": Setting(OTHER_FACTORS, features=(10, 50)),
    "factors in the plane": Setting(OTHER_FACTORS, sets=range(200), features=(2,)),
}
KINDS: dict[str, Sequence[str]] = {
    "equal": ["D"],
    "wholly drawn": ["drawn 1"],
    "moderately unequal": ["uneven", "uneven, wide"],
}
"""Three kinds of sizes, and the trials with them; the last is set beside the published means."""
FITTED = 100
"""The dimension at which the spread of the sizes was picked; the others are out of sample."""


def cells(quick: bool) -> Sequence[Cell]:
    found = []
    for name, setting in SETTINGS.items():
        sets = setting.sets[:N_QUICK_SETS] if quick else setting.sets
        features = [d for d in setting.features if d in QUICK_FEATURES or not quick]
        first_sets = sets[::SETS_PER_CELL]
        n_each = min(SETS_PER_CELL, len(sets))
        found += grid(on_sets, setting=name, features=features, first_set=first_sets, sets=n_each)
    return found


def on_sets(setting: str, features: int, first_set: int, sets: int) -> list[Row]:
    """Each method on each data set from the same seeds."""
    chosen = SETTINGS[setting]
    numbers = range(first_set, first_set + sets)
    return trials.gaussian_trials(chosen.methods, features, chosen.seeding, numbers, chosen.sizes)


# What it shows.


def findings(rows: Rows) -> Findings:
    rows = joined(rows)
    by_kind = {
        kind: of
        for kind, names in KINDS.items()
        if (of := [r for r in rows if r["setting"] in names])
    }
    beside = {kind: comparisons(of) for kind, of in by_kind.items()}
    judged, of_judged = list(beside.items())[-1]
    return Findings(
        tables=[
            _table_of_kinds(by_kind, beside),
            *(_side_by_side(by_kind[judged], measure, judged) for measure in TABLES),
        ],
        comparisons=[replace(c, what=f"{c.what}; {judged} sizes") for c in of_judged],
        claims=[*_claims_about_settings(rows), *_claims_about_methods(rows)],
        remarks=[_said_of_flagship(beside), REMARK_ON_CHOICE],
        in_short=(
            f"**Tables 1 and 2**: {_n_within(of_judged)} of {len(of_judged)} means lie within "
            "noise if the clusters have moderately unequal sizes. The paper does not state the "
            "sizes; this is our inference."
        ),
    )


def joined(rows: Rows) -> list[Row]:
    """The rows with further sets in the plane counted among those from the same seeds."""
    return [{**row, "setting": "D"} if row["setting"] == "plane" else {**row} for row in rows]


def comparisons(rows: Rows) -> list[Comparison]:
    """Each published mean of both tables beside ours."""
    return [c for measure in TABLES for c in comparisons_of(rows, measure)]


def comparisons_of(rows: Rows, measure: str, table: str = "") -> list[Comparison]:
    """Each published mean of a table beside ours.

    The number in brackets beside a published mean is taken for the standard deviation of 50 data
    sets, which gives a smaller error than if it were the standard error that it is called.
    """
    found = []
    by_cell = groups(rows, "features", "method")
    for line in published_rows(table or TABLES[measure]):
        method, d = line["method"], line["features"]
        if (d, method) in by_cell:
            ours, error = mean_and_error(column(by_cell[d, method], measure))
            noise = math.hypot(error, float(line["spread"]) / math.sqrt(N_SETS))
            quantity = IN_SHORT.get(measure, measure)
            what = f"{method}, d = {d}"
            found.append(Comparison(what, quantity, float(line["mean"]), ours, noise))
    return found


def published_means(measure: str) -> dict[tuple[str, int], float]:
    """The published means of a table by method and dimension."""
    lines = published_rows(TABLES[measure])
    return {(str(r["method"]), int(r["features"])): float(r["mean"]) for r in lines}


def mean_of(rows: Rows, measure: str, **values: Any) -> float:
    """The mean of a measure over rows with these values; NaN where there are none."""
    found: float = mean(measure)(where(rows, **values))
    return found


def _features(rows: Rows) -> list[int]:
    return sorted({int(row["features"]) for row in rows})


def _n_within(comparisons: Iterable[Comparison]) -> int:
    return sum(comparison.is_within_noise for comparison in comparisons)


def dimension_of(comparison: Comparison) -> int:
    """The number of features that a comparison is about."""
    return int(comparison.what.partition(", d = ")[2])


def flagship(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those of the starts and dimensions for which the paper has its best results."""
    found = [c for c in comparisons if c.what.partition(", d")[0] in POWERS[:2]]
    return [c for c in found if dimension_of(c) >= 20]


def _table_of_kinds(
    by_kind: Mapping[str, Rows], beside: Mapping[str, Sequence[Comparison]]
) -> Table:
    lines: list[list[Value]] = []
    features = _features(next(iter(by_kind.values())))
    for kind, found in beside.items():
        of_d = [[c for c in found if dimension_of(c) == d] for d in features]
        parts = [*of_d, found, [c for c in found if dimension_of(c) != FITTED], flagship(found)]
        sets = [len(kinds(where(by_kind[kind], features=d), "data_set")) for d in features]
        counts = " to ".join(str(n) for n in sorted({min(sets), max(sets)}))
        lines.append([kind, counts, *(f"{_n_within(part)} of {len(part)}" for part in parts)])
    return Table(
        "Tables 1 and 2: published means within noise, by the sizes of the clusters",
        ["sizes", "sets", *(f"d = {d}" for d in features), "all", "out of sample", "flagship"],
        lines,
        "Wholly drawn: each point draws its cluster, all with the same probability. Moderately "
        "unequal: with probabilities in proportion to weights drawn from U(0.6, 1.4). The spread "
        f"of these weights was chosen at d = {FITTED}; the other dimensions are out of sample. "
        "Flagship: s0 = -1 and -3 in 20 dimensions and more.",
        is_published=True,
    )


def _side_by_side(rows: Rows, measure: str, setting: str) -> Table:
    features = _features(rows)
    found = {
        c.what: f"{c.published:.3f} / {c.ours:.3f}{'' if c.is_within_noise else '*'}"
        for c in comparisons_of(rows, measure)
    }
    return Table(
        f"{NAMES[measure]}, published / ours with {setting} sizes ({MEASURES[measure]})",
        ["method", *(f"d = {d}" for d in features)],
        [[method, *(found[f"{method}, d = {d}"] for d in features)] for method in PUBLISHED],
        "Means over data sets; * lies outside two standard errors of the difference.",
        is_published=True,
    )


def _said_of_flagship(beside: Mapping[str, Sequence[Comparison]]) -> str:
    """How many of the paper's best means come out with each kind of sizes."""
    best = {kind: flagship(found) for kind, found in beside.items()}
    counts = ", ".join(f"{_n_within(of)} with {kind} sizes" for kind, of in best.items())
    return (
        f"Of the {len(next(iter(best.values())))} means for s0 = -1 and -3 in 20 dimensions and "
        f"more, within noise are {counts}. That the authors' clusters were moderately unequal is "
        "an inference from these counts, and nothing else is known of them."
    )


REMARK_ON_CHOICE = (
    "Two of the settings under which the cells are counted, seeds in proportion to D and the "
    "clusters of the nearest true center, are not in the paper: they were chosen among four "
    "seedings and three references because they fit best. Cells of a column share their data sets, "
    "so that they deviate together."
)


def draw(rows: Rows, folder: Path) -> None:
    """Published means with two of their standard errors, and ours with unequal sizes as lines."""
    names = KINDS["moderately unequal"]
    ours = [row for row in rows if row["setting"] in names]
    features = _features(ours)
    colours = dict(zip((LLOYD, KHM, *POWERS[:2]), ("C3", "C1", "C0", "C2"), strict=True))
    with picture(folder / "table1-and-2.svg", 1, 2, size=(9, 3.8)) as ((left, right),):
        for axes, (measure, name) in zip((left, right), TABLES.items(), strict=True):
            for method, colour in colours.items():
                lines = [r for r in published_rows(name) if r["method"] == method]
                shown = [r for r in lines if int(r["features"]) in features]
                errors = [2 * float(r["spread"]) / math.sqrt(N_SETS) for r in shown]
                means = [mean_of(ours, measure, features=d, method=method) for d in features]
                axes.plot(features, means, color=colour, label=method)
                axes.errorbar(features, column(shown, "mean"), errors, fmt="o", mfc="w", c=colour)
            axes.set(xscale="log", xticks=features, xticklabels=features, xlabel="features")
            axes.minorticks_off()
            axes.set_ylabel({"ratio": "root quality ratio"}.get(measure, "VI, nats"))
        add_legend(left)


# Claims about how the numbers came to be.


def _claims_about_settings(rows: Rows) -> list[Claim]:
    by_seeding = {
        seeding: comparisons(first_sets(where(rows, setting=seeding))) for seeding in SEEDINGS
    }
    of_d = first_sets(where(rows, setting="D"))
    counts = {seeding: _n_within(found) for seeding, found in by_seeding.items()}
    squared = _n_within(comparisons_of(of_d, "ratio_squared", "table1"))
    unsquared = comparisons_of(of_d, "ratio")
    spread = _median_share_of_spread(of_d)
    return [
        Claim(
            "(An inference.) The tables fit k-means++ seeds best",
            PAPER,
            exact(counts["D²"] > counts["D"]),
            f"cells of both tables within noise, of {len(by_seeding['D'])}, with equal sizes, by "
            "seeding: " + ", ".join(f"{seeding}: {count}" for seeding, count in counts.items()),
        ),
        Claim(
            "(An inference.) Table 1 fits the root of the ratio of sums of squared distances best",
            f"{PAPER}, equation 12",
            exact(squared > _n_within(unsquared)),
            f"with squared distances {squared} of {len(unsquared)} cells are within noise, with "
            f"distances that are not squared {_n_within(unsquared)}",
        ),
        _which_true_clusters(of_d),
        Claim(
            "(An inference.) The numbers in brackets fit standard errors",
            "Xu & Lange 2019, Tables 1 and 2",
            exact(abs(spread - 1 / math.sqrt(N_SETS)) < abs(spread - 1)),
            f"our standard deviation over data sets is {1 / spread:.2f} times the number in "
            f"brackets, in the median over cells; a standard error of {N_SETS} sets "
            f"would be {1 / math.sqrt(N_SETS):.2f} of a standard deviation",
        ),
    ]


def first_sets(rows: Rows) -> list[Row]:
    """The rows of the sets that all seedings have."""
    return [row for row in rows if int(row["data_set"]) < N_SETS]


def _which_true_clusters(rows: Rows) -> Claim:
    """By the sum of absolute differences in the plane, where clusters overlap."""
    references = {"VI": "drawn from", "VI_nearest": "nearest true center", "VI_optimal": "optimal"}
    d = min(_features(rows))
    theirs = [published_means("VI_nearest")[method, d] for method in PUBLISHED]
    apart, said = {}, []
    for measure, name in references.items():
        ours = [mean_of(rows, measure, features=d, method=method) for method in PUBLISHED]
        apart[measure] = math.fsum(abs(np.subtract(ours, theirs)))
        said.append(f"{name}: {_over_the_first(ours)}")
    return Claim(
        "(An inference.) Table 2 fits the variation of information from the clusters drawn from",
        "Xu & Lange 2019, section 4",
        exact(apart["VI"] == min(apart.values())),
        f"d = {d}, where clusters overlap, by what ours is compared with: "
        f"{'; '.join(said)}; published: {_over_the_first(theirs)}",
    )


def _over_the_first(means: Sequence[float]) -> str:
    others = ", ".join(f"{mean - means[0]:+.3f}" for mean in means[1:])
    return f"Lloyd {means[0]:.3f}, others {others}"


def _median_share_of_spread(rows: Rows) -> float:
    """The number in brackets as a share of our standard deviation, the median over cells."""
    shares = []
    for measure, name in TABLES.items():
        for line in published_rows(name):
            of_cell = where(rows, features=line["features"], method=line["method"])
            if len(of_cell) > 1:
                deviation = float(np.std(column(of_cell, measure), ddof=1))
                shares.append(float(line["spread"]) / deviation)
    return float(np.median(shares))


# Claims about the methods.

Run = tuple[str, str]
"""A setting and a method."""


def gap(rows: Rows, measure: str, d: int, better: Run, worse: Run) -> Figure:
    """By how much one run is worse than another on the same data sets, and the standard error."""
    one, other = (
        {
            row["data_set"]: float(row[measure])
            for row in where(rows, features=d, setting=setting, method=method)
        }
        for setting, method in (worse, better)
    )
    shared = [key for key in one if key in other]
    return paired_gain([one[key] for key in shared], [other[key] for key in shared])


def _claims_about_methods(rows: Rows) -> list[Claim]:
    return [
        _order(rows),
        _power_is_best(rows, "D"),
        _power_is_best(rows, "uniform"),
        _khm_in_the_plane(rows),
        _khm_in_high_dimensions(rows),
        _breaking_down(where(rows, setting="D")),
        _robust_to_starts(rows),
        _broad_range(rows),
        _stable_in_factor(rows),
        _nearer_to_lloyd(rows),
        _same_trends(where(rows, setting="D")),
        *_claims_about_seeds(rows),
    ]


def _order(rows: Rows) -> Claim:
    """Of pairs of methods in a column whose published means are farther apart than noise."""
    gaps, turned = [], []
    for measure in TABLES:
        theirs = published_means(measure)
        for d, pair in itertools.product(_features(rows), itertools.combinations(PUBLISHED, 2)):
            better, worse = sorted(pair, key=lambda method: theirs[method, d])
            found = gap(rows, measure, d, ("D", better), ("D", worse))
            if theirs[worse, d] - theirs[better, d] > CLEAR * found[1]:
                gaps.append(found)
                if above(*found) == "does not hold":
                    turned.append(f"{IN_SHORT[measure]}, d = {d}: {worse} before {better}")
    in_order = sum(difference > 0 for difference, _ in gaps)
    n_clear = [above(*found) for found in gaps].count("holds")
    others = f" ({'; '.join(turned)})" if turned else ""
    return Claim(
        "The methods come in the order of Tables 1 and 2 in every column",
        "Xu & Lange 2019, Tables 1 and 2",
        all_above(gaps),
        f"of {len(gaps)} pairs in a column whose published means are more than two standard errors "
        f"of a paired difference apart, {in_order} come in that order in the mean, "
        f"{n_clear} of them by more than two standard errors, and "
        f"{len(turned)} in the opposite order by as much{others}",
        on="the pair of methods",
    )


def _power_is_best(rows: Rows, seeding: str) -> Claim:
    cases = itertools.product(TABLES, _features(rows), POWERS, (LLOYD, KHM))
    gaps = [gap(rows, m, d, (seeding, power), (seeding, other)) for m, d, power, other in cases]
    places = "Tables 1 and 2" if seeding == "D" else "section 4, of its supplement"
    return Claim(
        "Power k-means is ahead of Lloyd and KHM in every dimension, for every start of the power "
        f"(seeds: {seeding})",
        f"Xu & Lange 2019, {places}",
        all_above(gaps),
        f"over all dimensions, starts and measures, against Lloyd and KHM: ahead {counted(gaps)}",
        on="the dimension and the start",
    )


def _khm_gaps(rows: Rows, features: Iterable[int]) -> dict[tuple[str, int], Figure]:
    """By how much KHM is worse than Lloyd from the same seeds, by measure and dimension."""
    return {
        (measure, d): gap(rows, measure, d, ("D", LLOYD), ("D", KHM))
        for measure, d in itertools.product(TABLES, features)
    }


def by_measure(words: Mapping[tuple[str, int], str]) -> str:
    """A sentence for each measure, from what is said of it in each dimension."""
    sentences = []
    for measure, name in IN_SHORT.items():
        listed = [f"{text} (d = {d})" for (of, d), text in words.items() if of == measure]
        sentences.append(f"{name[0].upper()}{name[1:]}: {', '.join(listed)}.")
    return " ".join(sentences)


def _said_of_gaps(gaps: Mapping[tuple[str, int], Figure]) -> str:
    return by_measure({key: "{:+.3f} ± {:.3f}".format(*found) for key, found in gaps.items()})


def _khm_in_the_plane(rows: Rows) -> Claim:
    """No difference: both gaps are clearly smaller than the published ones."""
    gaps = _khm_gaps(rows, [2])
    theirs = [published_means(m)[KHM, 2] - published_means(m)[LLOYD, 2] for m in TABLES]
    pairs = list(zip(gaps.values(), theirs, strict=True))
    verdict = all_above(gaps.values())
    if verdict != "holds" and all(no_difference(*found, size) for found, size in pairs):
        verdict = "no difference"
    away = [(size - found) / error for (found, error), size in pairs]
    n_sets = len(kinds(where(rows, features=2, setting="D"), "data_set"))
    less = 1 / math.sqrt(1 + n_sets / N_SETS)  # of one more error, that of means of N_SETS
    return Claim(
        "KHM is slightly worse than Lloyd even in the plane",
        PAPER,
        verdict,
        f"KHM minus Lloyd from the same seeds (D), {n_sets} sets. {_said_of_gaps(gaps)} The "
        f"published differences, {' and '.join(f'{size:+.3f}' for size in theirs)}, lie "
        f"{' and '.join(f'{errors:.1f}' for errors in away)} standard errors above ours. The "
        f"{N_SETS} sets behind them have noise too: with it, they lie "
        f"{' and '.join(f'{errors * less:.1f}' for errors in away)} above ours",
        on="the measure",
        in_short="KHM is worse than Lloyd in the plane",
    )


def _khm_in_high_dimensions(rows: Rows) -> Claim:
    gaps = _khm_gaps(rows, [d for d in _features(rows) if d >= 10])
    return Claim(
        "KHM is worse than Lloyd in high dimensions",
        PAPER,
        all_above(gaps.values()),
        f"KHM minus Lloyd from the same seeds (D). {_said_of_gaps(gaps)}",
        on="the dimension",
        in_short="KHM is worse than Lloyd in 10 or more dimensions",
    )


def _breaking_down(rows: Rows) -> Claim:
    features = _features(rows)
    gaps, said = [], []
    for measure, method in itertools.product(TABLES, (LLOYD, KHM)):
        found = [
            mean_and_error(column(where(rows, features=d, method=method), measure))
            for d in features
        ]
        (low, low_error), (high, high_error) = found[0], found[-1]
        gaps.append((high - low, math.hypot(low_error, high_error)))
        listed = ", ".join(f"{value:.3f}" for value, _ in found)
        said.append(f"{NAMES[measure]}, {method}: {listed}.")
    return Claim(
        "Both KHM and Lloyd break down as the dimension grows",
        PAPER,
        all_above(gaps),
        f"from seeds D, for d = {features[0]} to {features[-1]}. {' '.join(said)}",
        on="the measure: the ratio rises, the variation of information falls",
        in_short="Lloyd and KHM break down as the dimension grows",
    )


def _robust_to_starts(rows: Rows) -> Claim:
    """By the range over the four seedings, data set by data set."""
    shown = first_sets([row for row in rows if row["setting"] in SEEDINGS])
    gaps, words = [], {}
    for measure, d in itertools.product(TABLES, _features(rows)):
        ranges = [
            [float(np.ptp(column(of_set, measure))) for of_set in groups(of, "data_set").values()]
            for of in (where(shown, features=d, method=method) for method in (LLOYD, KHM))
        ]
        gaps.append(paired_gain(*ranges))
        words[measure, d] = " and ".join(f"{np.mean(values):.3f}" for values in ranges)
    return Claim(
        "KHM is more robust to starts than Lloyd",
        "Xu & Lange 2019, sections 1.1 and 2.1",
        all_above(gaps),
        "range over the four seedings of Lloyd and of KHM, in the mean over data sets. "
        f"{by_measure(words)} That of Lloyd is wider {counted(gaps)}",
        on="the dimension",
    )


def _broad_range(rows: Rows) -> Claim:
    cases = itertools.product(_features(rows), POWERS)
    gaps = {f"d = {d}, {p}": gap(rows, "VI_nearest", d, ("D", p), ("D", LLOYD)) for d, p in cases}
    return Claim(
        "The first power matters, yet a broad range of it is ahead of Lloyd's algorithm",
        "Xu & Lange 2019, sections 2.1 and 4",
        all_above(gaps.values()),
        f"VI of Lloyd minus that from each start: {said(gaps)}; ahead "
        f"{counted(list(gaps.values()))}",
        on="the dimension and the start",
    )


def _stable_in_factor(rows: Rows) -> Claim:
    """Half of the gain over Lloyd, with the worst factor, is more than the range over factors."""
    gaps, words = [], []
    runs = [("D", LLOYD), ("D", POWERS[1]), *(("factors", name) for name in FACTORS)]
    together = [
        {**row, "setting": str(row["setting"]).removesuffix(" in the plane")} for row in rows
    ]
    for d in _features(where(together, setting="factors")):
        by_run = [
            {
                row["data_set"]: float(row["VI_nearest"])
                for row in where(together, features=d, setting=setting, method=method)
            }
            for setting, method in runs
        ]
        sets = sorted(set.intersection(*(set(of) for of in by_run)))
        before, *of_factors = ([of[n] for n in sets] for of in by_run)
        best, *_, worst = sorted(of_factors, key=math.fsum)
        triples = list(zip(before, worst, best, strict=True))
        gaps.append(mean_and_error([(of - w) / 2 - (w - b) for of, w, b in triples]))
        words.append(
            f"d = {d}: {paired_gain(worst, best)[0]:.3f} against a gain over Lloyd of "
            f"{paired_gain(before, worst)[0]:.3f} ({len(sets)} sets)"
        )
    return Claim(
        "Results are stable to reasonable changes of η",
        "Xu & Lange 2019, section 2.1",
        all_above(gaps),
        f"range of the mean VI over η = 1.02, 1.05 and 1.1, from s0 = -3: {'; '.join(words)}; half "
        f"of the gain is more than the range {counted(gaps)}",
        on="the dimension",
    )


def _nearer_to_lloyd(rows: Rows) -> Claim:
    late = [d for d in _features(rows) if d >= 5]
    in_turn = (*POWERS[1:], LLOYD)
    gaps = [
        gap(rows, "VI_nearest", d, ("D", one), ("D", following))
        for d, (one, following) in itertools.product(late, itertools.pairwise(in_turn))
    ]
    of_d = where(rows, setting="D")
    said = []
    for d in late:
        means = [mean_of(of_d, "VI_nearest", features=d, method=name) for name in in_turn]
        said.append(f"d = {d}: {', '.join(f'{mean:.3f}' for mean in means)}")
    return Claim(
        "The lower the power starts, the more power k-means is like Lloyd",
        PAPER,
        all_above(gaps),
        f"VI from s0 = -3, -9, -18 to Lloyd: {'; '.join(said)}. Each step from 5 dimensions on "
        f"makes it worse {counted(gaps)}",
        on="the dimension",
    )


def _same_trends(rows: Rows) -> Claim:
    n_agreeing, n_pairs = 0, 0
    for d in _features(rows):
        of_d = where(rows, features=d)
        means = [
            (mean_of(of_d, "VI_nearest", method=method), mean_of(of_d, "ARI", method=method))
            for method in PUBLISHED
        ]
        for (vi, ari), (other_vi, other_ari) in itertools.combinations(means, 2):
            n_pairs += 1
            n_agreeing += (vi < other_vi) == (ari > other_ari)
    return Claim(
        "The adjusted Rand index shows the same trends as VI",
        "Xu & Lange 2019, section 4",
        exact(n_agreeing >= 0.9 * n_pairs),
        f"both put {n_agreeing} of {n_pairs} pairs of methods in the same order",
    )


def _claims_about_seeds(rows: Rows) -> list[Claim]:
    annealed = {s: _over_dimensions(rows, (s, POWERS[1]), (s, LLOYD)) for s in SEEDINGS}
    seeded = {power: _over_dimensions(rows, ("D²", power), ("uniform", power)) for power in POWERS}
    return [
        Claim(
            "Power k-means adds to what good seeds give",
            "Xu & Lange 2019, section 1",
            all_above(annealed.values()),
            "VI of Lloyd minus that from s0 = -3, mean over dimensions, by seeding: "
            + said(annealed, "{}: {:+.3f} ± {:.3f}"),
            on="the seeding",
        ),
        Claim(
            "Power k-means is better from k-means++ seeds than from its own at random",
            PAPER,
            all_above(seeded.values()),
            "VI from uniform seeds minus that from D² seeds, mean over dimensions: "
            + said(seeded, "{}: {:+.3f} ± {:.3f}"),
            on="the start",
        ),
    ]


def _over_dimensions(rows: Rows, better: Run, worse: Run) -> Figure:
    """The mean gap in VI over dimensions; the data sets of each are others."""
    gaps = [gap(rows, "VI_nearest", d, better, worse) for d in _features(rows)]
    differences, errors = zip(*gaps, strict=True)
    return math.fsum(differences) / len(gaps), math.hypot(*errors) / len(gaps)
