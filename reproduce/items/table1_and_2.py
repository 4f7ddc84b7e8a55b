"""Lloyd, k-harmonic means and power k-means on Gaussian clusters in 2 to 200 dimensions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.plots.canvas import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, tidy
from reproduce.checks import CLEAR, above, across, counted, exact, no_difference, paired_gain
from reproduce.gaussian_trials import trials
from reproduce.item import (
    Cell,
    Claim,
    Comparison,
    Findings,
    Row,
    Table,
    Value,
    Verdict,
    mean_and_error,
)
from reproduce.matched_starts import (
    KHM,
    LLOYD,
    SEARCH,
    Method,
    Seeding,
    authors_from,
    by_authors,
    khm,
    lloyd,
    power_from,
    published,
    search,
)
from reproduce.published import published_rows
from reproduce.selecting import column, where

TITLE = "Tables 1 and 2: quality and agreement on Gaussian clusters, d = 2 to 200"
SOURCE = "Xu & Lange 2019, Tables 1 and 2 and section 4"
DATA = "as published"

FEATURES = (2, 5, 10, 20, 50, 100, 200)
QUICK_FEATURES = (2, 10)
N_SETS, N_QUICK_SETS, SETS_PER_CELL = 50, 2, 10
# Draws of 50 sets whose clusters have drawn sizes: all methods on the first, and on the others
# those that are quick.
N_DRAWS, DRAWN_SETS_PER_CELL = 3, 5
# So many sets tell whether k-harmonic means and Lloyd's algorithm differ in the plane.
N_PLANE_SETS = 400
SEEDINGS: tuple[Seeding, ...] = ("D", "D²", "greedy", "uniform")
STARTS = (-1.0, -3.0, -9.0, -18.0)
OURS, OURS_FAST, OUR_LLOYD = SEARCH, "our fast search", "our KMeans()"
OWN_SEEDS = "its own"
POWERS = tuple(power_from(start) for start in STARTS)
PUBLISHED = (LLOYD, KHM, *POWERS)
MEASURES = {
    "ratio": "Root quality ratio, distances not squared",
    "VI_nearest": "Variation of information, nats, from the clusters of the nearest true center",
    "VI": "Variation of information, nats, from the clusters that points were drawn from",
    "VI_optimal": "Variation of information, nats, from the clusters of the optimal centers",
    "ratio_squared": "Root quality ratio, distances squared",
    "ARI": "Adjusted Rand index",
    "NMI": "Normalized mutual information",
}
TABLES = {"ratio": "table1", "VI_nearest": "table2"}
NAMES = {"ratio": "Table 1", "VI_nearest": "Table 2"}
PAPER = "Xu & Lange 2019, section 4"
Run = tuple[str, str]
"""A seeding and a method."""
IN_SHORT = {"ratio": "ratio", "VI_nearest": "VI"}


def cells(quick: bool) -> Sequence[Cell]:
    """Some data sets of one dimension under one seeding, all methods from the same seeds."""
    n_sets = N_QUICK_SETS if quick else N_SETS
    features = QUICK_FEATURES if quick else FEATURES
    equal = [
        _cell(n_features, seeding, range(first, min(first + SETS_PER_CELL, n_sets)))
        for n_features in features
        for seeding in (*SEEDINGS, None)
        for first in range(0, n_sets, SETS_PER_CELL)
    ]
    n_each = min(DRAWN_SETS_PER_CELL, n_sets)
    made = [*equal, _plane_cell(range(n_sets, 2 * n_sets if quick else N_PLANE_SETS))]
    return made + [
        _drawn_cell(n_features, draw, range(first, first + n_each))
        for draw in range(1 if quick else N_DRAWS)
        for n_features in features
        for first in range(draw * n_sets, (draw + 1) * n_sets, n_each)
    ]


def _cell(n_features: int, seeding: Seeding | None, numbers: range) -> Cell:
    """Without a seeding the methods of this package, which draw seeds of their own."""
    key: dict[str, Value] = {
        "features": n_features,
        "seeding": seeding or OWN_SEEDS,
        "first_set": numbers.start,
        "sets": len(numbers),
    }
    methods = published_methods() if seeding else own_methods()
    return Cell(key, functools.partial(trials, methods, n_features, seeding or "greedy", numbers))


def _plane_cell(numbers: range) -> Cell:
    """More sets in the plane for the two methods that are close there."""
    key: dict[str, Value] = {
        "features": 2,
        "seeding": "D",
        "sizes": "equal",
        "first_set": numbers.start,
        "sets": len(numbers),
    }
    return Cell(key, functools.partial(trials, [lloyd(), khm()], 2, "D", numbers))


def _drawn_cell(n_features: int, draw: int, numbers: range) -> Cell:
    """Sets whose clusters have drawn sizes, and also the loop of the authors' later code."""
    key: dict[str, Value] = {
        "features": n_features,
        "seeding": "D",
        "sizes": "drawn",
        "draw": draw,
        "first_set": numbers.start,
        "sets": len(numbers),
    }
    as_published = published_methods() if draw == 0 else [lloyd(), khm()]
    methods = [*as_published, *map(by_authors, STARTS)]
    return Cell(key, functools.partial(trials, methods, n_features, "D", numbers, "drawn"))


def published_methods() -> list[Method]:
    """Those of the tables, all stopped by the paper's rule, with the paper's factor 1.05."""
    return [lloyd(), khm(), *map(published, STARTS)]


def own_methods() -> list[Method]:
    """What this package does when nothing is asked for."""
    plain = {"effort": "none", "power": -math.inf}
    return [
        search(),
        Method(OURS_FAST, {"effort": "fast"}, takes_seeds=False),
        Method(OUR_LLOYD, plain, takes_seeds=False),
    ]


STATED, DRAWN, BY_AUTHORS = (
    "equal sizes, the paper's rule",
    "drawn sizes, the paper's rule",
    "drawn sizes, the authors' code",
)
ALL_DRAWS = f"{BY_AUTHORS}, all draws"


def draw_name(draw: int) -> str:
    """Return the setting of one draw of the sets, by the authors' code."""
    return f"{BY_AUTHORS}, draw {draw + 1}"


def findings(rows: Sequence[Row]) -> Findings:
    """Published means beside ours under seeds in proportion to D; all seedings; claims."""
    equal = [row for row in rows if "sizes" not in row]
    settings = by_setting(rows)
    beside = {
        name: [c for measure in TABLES for c in comparisons_of(of, measure, "D")]
        for name, of in settings.items()
    }
    by_seeding = {
        seeding: [c for measure in TABLES for c in comparisons_of(equal, measure, seeding)]
        for seeding in SEEDINGS
    }
    judged = shown(beside)[-1]
    return Findings(
        tables=[
            _table_of_settings(settings, beside),
            *(
                _side_by_side(settings[name], measure, name)
                for name in shown(beside)
                for measure in TABLES
            ),
            *_tables_of_draws(where(rows, sizes="drawn")),
            *(_all_seedings(equal, measure) for measure in MEASURES),
        ],
        comparisons=[replace(c, what=f"{c.what}; {judged}") for c in beside[judged]],
        claims=[
            *_claims_about_settings(equal, by_seeding),
            *_claims_about_methods(equal, [*equal, *where(rows, sizes="equal")]),
        ],
        remarks=[REMARK_ON_CHOICE, *_remarks_on_deviations(beside[judged], judged)],
        in_short=in_short(beside),
    )


def shown(beside: dict[str, list[Comparison]]) -> list[str]:
    """Return the settings whose tables are shown; the last, of most sets, is the one judged by."""
    return [name for name in (STATED, DRAWN, ALL_DRAWS) if name in beside]


def by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows from seeds in proportion to D under each setting, with the published names."""
    equal = where([row for row in rows if "sizes" not in row], seeding="D")
    drawn = where(rows, sizes="drawn")
    published_as = {authors_from(start): power_from(start) for start in STARTS}
    renamed: list[Row] = [
        {**row, "method": published_as.get(str(row["method"]), row["method"])}
        for row in drawn
        if row["method"] not in POWERS
    ]
    stated = [row for row in where(drawn, draw=0) if row["method"] not in published_as]
    settings = {STATED: equal, DRAWN: stated}
    for draw in range(N_DRAWS):
        settings[draw_name(draw)] = where(renamed, draw=draw)
    settings[ALL_DRAWS] = renamed
    return {name: of for name, of in settings.items() if of}


def comparisons_of(rows: Sequence[Row], measure: str, seeding: str) -> list[Comparison]:
    """Each published mean of a table beside ours under a seeding.

    The number in brackets beside a published mean is taken for the standard deviation of 50 data
    sets, which gives a smaller error than if it were the standard error that it is called.
    """
    found = []
    for line in published_rows(TABLES[measure]):
        of_cell = where(rows, features=line["features"], seeding=seeding, method=line["method"])
        if not of_cell:
            continue
        ours, error = mean_and_error(column(of_cell, measure))
        theirs = float(line["spread"]) / math.sqrt(N_SETS)
        found.append(
            Comparison(
                f"{line['method']}, d = {line['features']}",
                IN_SHORT[measure],
                float(line["mean"]),
                ours,
                math.hypot(error, theirs),
            )
        )
    return found


def mean_of(rows: Sequence[Row], measure: str, **values: Value) -> float:
    """The mean of a measure over rows with these values; NaN where there are none."""
    found = column(where(rows, **values), measure)
    return math.fsum(found) / len(found) if found else math.nan


# Tables.


def _is_flagship(comparison: Comparison) -> bool:
    """Whether it is of the starts and dimensions for which the paper has its best results."""
    method, _, n_features = comparison.what.partition(", d = ")
    return method in POWERS[:2] and int(n_features) >= 20


def _table_of_settings(
    settings: dict[str, list[Row]], beside: dict[str, list[Comparison]]
) -> Table:
    body: list[list[Value]] = []
    for name, found in beside.items():
        flagship = list(filter(_is_flagship, found))
        apart = [c for c in flagship if not c.is_within_noise]
        body.append(
            [
                name,
                len({row["data_set"] for row in settings[name]}),
                f"{_n_within(found)} of {len(found)}",
                f"{len(apart)} of {len(flagship)}",
                sum(c.ours < c.published for c in apart),
            ]
        )
    return Table(
        "How many published means come out under which settings",
        ["settings", "sets", "within noise", "apart: s0 = -1, -3, d ≥ 20", "ours better there"],
        body,
        "The sizes of the clusters and the rule of stopping are not in the paper. Seeds in "
        "proportion to D. With drawn sizes a point chooses its cluster at random; the authors' "
        "code is the schedule and the loop behind their later papers. More sets have less noise: "
        "compare only lines with the same number of sets.",
    )


def _side_by_side(rows: Sequence[Row], measure: str, setting: str) -> Table:
    features = _features(rows)
    found = {c.what: c for c in comparisons_of(rows, measure, "D")}
    body = [
        [method, *(_pair(found.get(f"{method}, d = {d}")) for d in features)]
        for method in PUBLISHED
    ]
    return Table(
        f"{NAMES[measure]}, published / ours with {setting} ({MEASURES[measure]})",
        ["method", *(f"d = {d}" for d in features)],
        body,
        "Means over data sets; * lies outside two standard errors of the difference.",
    )


def _pair(comparison: Comparison | None) -> str:
    if comparison is None:
        return "not computed"
    star = "" if comparison.is_within_noise else "*"
    return f"{comparison.published:.3f} / {comparison.ours:.3f}{star}"


def _tables_of_draws(rows: Sequence[Row]) -> list[Table]:
    """The means of each draw of 50 sets, for the starts with the paper's best results."""
    draws = sorted({int(row["draw"]) for row in rows})
    if len(draws) < 2:
        return []
    tables = []
    for measure, table in TABLES.items():
        theirs = {(r["method"], r["features"]): r["mean"] for r in published_rows(table)}
        body: list[list[Value]] = []
        for start, d in itertools.product(STARTS[:2], _features(rows)):
            means = [
                mean_of(rows, measure, features=d, draw=draw, method=authors_from(start))
                for draw in draws
            ]
            body.append([power_from(start), d, theirs[power_from(start), d], *means])
        tables.append(
            Table(
                f"{NAMES[measure]} for {len(draws)} draws of {N_SETS} sets ({BY_AUTHORS})",
                ["method", "d", "published", *(f"draw {draw + 1}" for draw in draws)],
                body,
            )
        )
    return tables


def in_short(beside: dict[str, list[Comparison]]) -> str:
    """How far the two tables come out, draw by draw, since one draw may come out by luck."""
    counts = [
        f"{_n_within(beside[name])} with {name.replace(',', ' and')}"
        for name in (STATED, DRAWN)
        if name in beside
    ]
    by_draw = [_n_within(beside[draw_name(i)]) for i in range(N_DRAWS) if draw_name(i) in beside]
    if by_draw:
        of_draws = " or ".join(map(str, by_draw))
        counts.append(f"{of_draws} with {BY_AUTHORS.replace(',', ' and')}, by the draw of the sets")
    of_all = beside[shown(beside)[-1]]
    return (
        f"Tables 1 and 2: of {len(of_all)} means, within noise are {'; '.join(counts)}. "
        f"{_said_of_flagship(of_all)}"
    )


def _said_of_flagship(of_all: Sequence[Comparison]) -> str:
    """How many of the paper's best means differ, which nothing that was tried explains."""
    flagship = [c for c in of_all if _is_flagship(c)]
    apart = [c for c in flagship if not c.is_within_noise]
    better = sum(c.ours < c.published for c in apart)
    ours = "all" if better == len(apart) else str(better)
    return (
        f"Of the {len(flagship)} means for s0 = -1 and -3 in 20 dimensions and more, {len(apart)} "
        f"still differ, {ours} in our favour, which we cannot explain."
    )


def _all_seedings(rows: Sequence[Row], measure: str) -> Table:
    features = _features(rows)
    lines: list[tuple[str, str]] = [
        (seeding, method) for seeding in SEEDINGS for method in PUBLISHED
    ]
    lines += [(OWN_SEEDS, method) for method in (OURS, OURS_FAST, OUR_LLOYD)]
    body: list[list[Value]] = [
        [
            seeding,
            method,
            *(mean_of(rows, measure, features=d, seeding=seeding, method=method) for d in features),
        ]
        for seeding, method in lines
    ]
    return Table(
        f"{MEASURES[measure]}, under each seeding",
        ["seeds", "method", *(f"d = {d}" for d in features)],
        body,
    )


def _features(rows: Sequence[Row]) -> list[int]:
    return sorted({int(row["features"]) for row in rows})


# Claims about how the numbers came to be.


def _claims_about_settings(
    rows: Sequence[Row], comparisons: dict[Any, list[Comparison]]
) -> list[Claim]:
    counts = {seeding: _n_within(found) for seeding, found in comparisons.items()}
    n_cells = len(comparisons["D"])
    squared = _n_within(_as_squared(rows))
    spread = _median_share_of_spread(rows)
    return [
        Claim(
            "The tables were made with k-means++ seeds",
            PAPER,
            exact(counts["D²"] > counts["D"]),
            _cells_by_seeding(comparisons),
        ),
        Claim(
            "Table 1 has the root of the ratio of sums of squared distances",
            f"{PAPER}, equation 12",
            exact(squared > _n_within(comparisons["D"][: n_cells // 2])),
            f"with squared distances {squared} of {n_cells // 2} cells are within noise, with "
            f"distances that are not squared {_n_within(comparisons['D'][: n_cells // 2])}",
        ),
        _which_true_clusters(rows),
        Claim(
            "The numbers in brackets are standard errors",
            "Xu & Lange 2019, Tables 1 and 2",
            exact(abs(spread - 1 / math.sqrt(N_SETS)) < abs(spread - 1)),
            f"our standard deviation over data sets is {1 / spread:.2f} times the number in "
            f"brackets, in the median over cells; a standard error of {N_SETS} sets "
            f"would be {1 / math.sqrt(N_SETS):.2f} of a standard deviation",
        ),
    ]


def _cells_by_seeding(comparisons: dict[Any, list[Comparison]]) -> str:
    """How many cells are within noise under each seeding, and dimension by dimension."""
    counts = {seeding: _n_within(found) for seeding, found in comparisons.items()}
    listed = ", ".join(f"{seeding}: {count}" for seeding, count in counts.items())
    places = list(dict.fromkeys(c.what.rpartition(", ")[2] for c in comparisons["D"]))
    by_place = "; ".join(
        f"{place}: "
        + " and ".join(
            str(_n_within(c for c in comparisons[seeding] if c.what.endswith(f", {place}")))
            for seeding in ("D", "D²")
        )
        for place in places
    )
    n_each = len(comparisons["D"]) // len(places)
    return (
        f"cells of both tables within noise, of {len(comparisons['D'])}, by seeding: {listed}; "
        f"with D and with D², of {n_each} in each dimension: {by_place}"
    )


def _which_true_clusters(rows: Sequence[Row]) -> Claim:
    references = {"VI": "drawn from", "VI_nearest": "nearest true center", "VI_optimal": "optimal"}
    n_features = min(_features(rows))
    theirs = {
        line["method"]: float(line["mean"])
        for line in published_rows("table2")
        if line["features"] == n_features
    }
    apart, said = {}, []
    for measure, name in references.items():
        ours = {
            m: mean_of(rows, measure, features=n_features, seeding="D", method=m) for m in theirs
        }
        apart[measure] = math.fsum(abs(ours[m] - theirs[m]) for m in theirs)
        over_lloyd = ", ".join(f"{ours[m] - ours[LLOYD]:+.3f}" for m in PUBLISHED[1:])
        said.append(f"{name}: Lloyd {ours[LLOYD]:.3f}, others {over_lloyd}")
    published_gaps = ", ".join(f"{theirs[m] - theirs[LLOYD]:+.3f}" for m in PUBLISHED[1:])
    return Claim(
        "Table 2 has the variation of information from the true clusters, those drawn from",
        "Xu & Lange 2019, section 4",
        exact(apart["VI"] == min(apart.values())),
        f"d = {n_features}, where clusters overlap, by what ours is compared with: "
        f"{'; '.join(said)}; published: Lloyd {theirs[LLOYD]:.3f}, others {published_gaps}",
    )


def _n_within(comparisons: Iterable[Comparison]) -> int:
    return sum(comparison.is_within_noise for comparison in comparisons)


def _as_squared(rows: Sequence[Row]) -> list[Comparison]:
    renamed = [{**row, "ratio": row["ratio_squared"]} for row in where(rows, seeding="D")]
    return comparisons_of(renamed, "ratio", "D")


def _median_share_of_spread(rows: Sequence[Row]) -> float:
    """The number in brackets as a share of our standard deviation, the median over cells."""
    shares = []
    for measure, table in TABLES.items():
        for line in published_rows(table):
            values = column(
                where(rows, features=line["features"], seeding="D", method=line["method"]), measure
            )
            if len(values) > 1 and np.std(values) > 0:
                shares.append(float(line["spread"]) / float(np.std(values, ddof=1)))
    return float(np.median(shares)) if shares else math.nan


# Claims about the methods.


def _claims_about_methods(rows: Sequence[Row], in_plane: Sequence[Row]) -> list[Claim]:
    """The claims; `in_plane` has more sets in two dimensions for Lloyd and KHM."""
    return [
        _order(rows),
        _power_is_best(rows, "D"),
        _power_is_best(rows, "uniform"),
        _khm_in_the_plane(in_plane),
        _khm_in_high_dimensions(rows),
        _breaking_down(rows),
        _robust_to_starts(rows),
        _nearer_to_lloyd(rows),
        _same_trends(rows),
        _annealing_under_other_seeds(rows),
        _good_seeds_help(rows),
    ]


def gap(
    rows: Sequence[Row], measure: str, n_features: int, better: Run, worse: Run
) -> tuple[float, float]:
    """By how much one run is worse than another on the same data sets, and the standard error.

    Parameters
    ----------
    rows : sequence of Row
    measure : str
        One of which less is better.
    n_features : int
    better, worse : (str, str)
        The seeding and the method.

    Returns
    -------
    mean, error : float
    """
    values = [
        {
            row["data_set"]: float(row[measure])
            for row in where(rows, features=n_features, seeding=seeding, method=method)
        }
        for seeding, method in (worse, better)
    ]
    shared = [key for key in values[0] if key in values[1]]
    return paired_gain([values[0][key] for key in shared], [values[1][key] for key in shared])


def _all_above(gaps: Iterable[tuple[float, float]]) -> Verdict:
    return across(above(*of_case) for of_case in gaps)


def _signed(found: tuple[float, float]) -> str:
    return f"{found[0]:+.3f} ± {found[1]:.3f}"


def _order(rows: Sequence[Row]) -> Claim:
    """Of pairs of methods in a column whose published means are farther apart than noise."""
    gaps, turned = [], []
    for measure, table in TABLES.items():
        theirs = {(r["method"], r["features"]): float(r["mean"]) for r in published_rows(table)}
        for d, pair in itertools.product(_features(rows), itertools.combinations(PUBLISHED, 2)):
            better, worse = sorted(pair, key=lambda method: theirs[method, d])
            found = gap(rows, measure, d, ("D", better), ("D", worse))
            if theirs[worse, d] - theirs[better, d] <= CLEAR * found[1]:
                continue
            gaps.append(found)
            if above(*found) == "does not hold":
                turned.append(f"{IN_SHORT[measure]}, d = {d}: {worse} before {better}")
    in_order = sum(difference > 0 for difference, _ in gaps)
    clear = [above(*found) for found in gaps]
    others = f", which are {'; '.join(turned)}" if turned else ""
    return Claim(
        "The methods come in the order of Tables 1 and 2 in every column",
        "Xu & Lange 2019, Tables 1 and 2",
        _of_order(len(gaps), in_order, len(turned)),
        f"of {len(gaps)} pairs in a column whose published means are more than two standard errors "
        f"of a paired difference apart, {in_order} come in that order in the mean, "
        f"{clear.count('holds')} of them by more than two standard errors, and "
        f"{len(turned)} are turned round by as much{others}",
    )


def _of_order(n_pairs: int, n_in_order: int, n_turned: int) -> Verdict:
    """Confirmed if all pairs are in order, refuted if one is clearly turned round."""
    if n_turned:
        return "does not hold"
    return "holds" if n_pairs and n_in_order == n_pairs else "not decidable"


def _power_is_best(rows: Sequence[Row], seeding: str) -> Claim:
    gaps = [
        gap(rows, measure, d, (seeding, power), (seeding, other))
        for measure, d, power, other in itertools.product(
            TABLES, _features(rows), POWERS, (LLOYD, KHM)
        )
    ]
    places = "Tables 1 and 2" if seeding == "D" else "section 4, of its supplement"
    return Claim(
        "Power k-means is ahead of Lloyd and KHM in every dimension, for every start of the power "
        f"(seeds: {seeding})",
        f"Xu & Lange 2019, {places}",
        _all_above(gaps),
        f"of dimension, start, measure, and Lloyd or KHM: ahead {counted(gaps)}",
        on="the dimension and the start",
    )


def _khm_gaps(rows: Sequence[Row], features: Iterable[int]) -> dict[str, tuple[float, float]]:
    """By how much KHM is worse than Lloyd from the same seeds, by measure and dimension."""
    return {
        f"{IN_SHORT[measure]}, d = {d}": gap(rows, measure, d, ("D", LLOYD), ("D", KHM))
        for measure, d in itertools.product(TABLES, features)
    }


def _said_of_gaps(gaps: dict[str, tuple[float, float]]) -> str:
    return by_measure({name: _signed(found) for name, found in gaps.items()})


def by_measure(said: dict[str, str]) -> str:
    """Return a sentence for each measure, from what is said of it in each dimension.

    Examples
    --------
    >>> by_measure({"ratio, d = 2": "1.0", "ratio, d = 5": "1.5", "VI, d = 2": "0.3"})
    'Ratio: 1.0 (d = 2), 1.5 (d = 5). VI: 0.3 (d = 2).'
    """
    of_measures: dict[str, list[str]] = {}
    for name, words in said.items():
        measure, _, place = name.partition(", ")
        of_measures.setdefault(measure, []).append(f"{words} ({place})")
    return " ".join(
        f"{measure[0].upper()}{measure[1:]}: {', '.join(of_measure)}."
        for measure, of_measure in of_measures.items()
    )


def _khm_in_the_plane(rows: Sequence[Row]) -> Claim:
    """No difference: both gaps are clearly smaller than the published ones."""
    gaps = _khm_gaps(rows, [2])
    theirs = []
    for table in TABLES.values():
        means = {r["method"]: float(r["mean"]) for r in where(published_rows(table), features=2)}
        theirs.append(means[KHM] - means[LLOYD])
    verdict = _all_above(gaps.values())
    if verdict != "holds" and all(
        no_difference(*found, size) for found, size in zip(gaps.values(), theirs, strict=True)
    ):
        verdict = "no difference"
    away = [
        (size - found) / error for (found, error), size in zip(gaps.values(), theirs, strict=True)
    ]
    n_sets = len({row["data_set"] for row in where(rows, features=2, seeding="D", method=KHM)})
    less = 1 / math.sqrt(1 + n_sets / N_SETS)  # of one more error, that of means of N_SETS
    return Claim(
        "KHM is slightly worse than Lloyd even in the plane",
        PAPER,
        verdict,
        f"KHM less Lloyd from the same seeds (D), {n_sets} sets. {_said_of_gaps(gaps)} The "
        f"published differences, {' and '.join(f'{size:+.3f}' for size in theirs)}, lie "
        f"{' and '.join(f'{errors:.1f}' for errors in away)} standard errors above ours. The "
        f"{N_SETS} sets behind them have noise too: with it, they lie "
        f"{' and '.join(f'{errors * less:.1f}' for errors in away)} above ours",
        on="the measure",
    )


def _khm_in_high_dimensions(rows: Sequence[Row]) -> Claim:
    gaps = _khm_gaps(rows, [d for d in _features(rows) if d >= 10])
    return Claim(
        "KHM is worse than Lloyd in high dimensions",
        PAPER,
        _all_above(gaps.values()),
        f"KHM less Lloyd from the same seeds (D). {_said_of_gaps(gaps)}",
        on="the dimension",
    )


def _breaking_down(rows: Sequence[Row]) -> Claim:
    """Whether both are worse in the most dimensions than in the plane, by either measure."""
    low, *_, high = _features(rows)
    gaps, said = [], []
    for measure, method in itertools.product(TABLES, (LLOYD, KHM)):
        ends = [
            mean_and_error(column(where(rows, features=d, seeding="D", method=method), measure))
            for d in (low, high)
        ]
        gaps.append((ends[1][0] - ends[0][0], math.hypot(ends[0][1], ends[1][1])))
        values = [
            mean_of(rows, measure, features=d, seeding="D", method=method) for d in _features(rows)
        ]
        listed = ", ".join(f"{value:.3f}" for value in values)
        said.append(f"{NAMES[measure]}, {method}: {listed}.")
    return Claim(
        "Both KHM and Lloyd break down as the dimension grows",
        PAPER,
        _all_above(gaps),
        f"from seeds D, for d = {low} to {high}. {' '.join(said)}",
        on="the measure: the ratio rises, the variation of information falls",
    )


def _robust_to_starts(rows: Sequence[Row]) -> Claim:
    """By the range over the four seedings, data set by data set."""
    gaps, said = [], {}
    for measure, d in itertools.product(TABLES, _features(rows)):
        ranges = [_ranges(rows, measure, d, method) for method in (LLOYD, KHM)]
        gaps.append(paired_gain(*ranges))
        means = [math.fsum(values) / len(values) for values in ranges]
        said[f"{IN_SHORT[measure]}, d = {d}"] = f"{means[0]:.3f} and {means[1]:.3f}"
    return Claim(
        "KHM is more robust to starts than Lloyd",
        "Xu & Lange 2019, sections 1.1 and 2.1",
        _all_above(gaps),
        "range over the four seedings of Lloyd and of KHM, in the mean over data sets. "
        f"{by_measure(said)} That of Lloyd is wider {counted(gaps)}",
        on="the dimension",
    )


def _ranges(rows: Sequence[Row], measure: str, n_features: int, method: str) -> list[float]:
    by_set: dict[Value, list[float]] = {}
    for row in where(rows, features=n_features, method=method):
        by_set.setdefault(row["data_set"], []).append(float(row[measure]))
    return [max(by_set[key]) - min(by_set[key]) for key in sorted(by_set)]


def _nearer_to_lloyd(rows: Sequence[Row]) -> Claim:
    late = [d for d in _features(rows) if d >= 5]
    in_turn = (*POWERS[1:], LLOYD)
    gaps = [
        gap(rows, "VI_nearest", d, ("D", one), ("D", following))
        for d, (one, following) in itertools.product(late, itertools.pairwise(in_turn))
    ]
    said = []
    for d in late:
        means = [_vi(rows, "D", name, d) for name in in_turn]
        said.append(f"d = {d}: {', '.join(f'{mean:.3f}' for mean in means)}")
    return Claim(
        "The lower the power starts, the more power k-means is like Lloyd",
        PAPER,
        _all_above(gaps),
        f"VI from s0 = -3, -9, -18 to Lloyd: {'; '.join(said)}. Each step from 5 dimensions on "
        f"makes it worse {counted(gaps)}",
        on="the dimension",
    )


def _same_trends(rows: Sequence[Row]) -> Claim:
    agreeing, n_pairs = 0, 0
    for d in _features(rows):
        vi, ari = (
            [mean_of(rows, name, features=d, seeding="D", method=m) for m in PUBLISHED]
            for name in ("VI_nearest", "ARI")
        )
        for one, other in itertools.combinations(range(len(PUBLISHED)), 2):
            n_pairs += 1
            agreeing += (vi[one] < vi[other]) == (ari[one] > ari[other])
    return Claim(
        "The adjusted Rand index shows the same trends as VI",
        "Xu & Lange 2019, section 4",
        exact(agreeing >= 0.9 * n_pairs),
        f"both put {agreeing} of {n_pairs} pairs of methods in the same order",
    )


def _annealing_under_other_seeds(rows: Sequence[Row]) -> Claim:
    gaps = {
        seeding: _over_dimensions(rows, (seeding, POWERS[1]), (seeding, LLOYD))
        for seeding in SEEDINGS
    }
    said = ", ".join(f"{seeding}: {_signed(found)}" for seeding, found in gaps.items())
    return Claim(
        "Power k-means adds to what good seeds give",
        "Xu & Lange 2019, section 1",
        _all_above(gaps.values()),
        f"VI of Lloyd less that from s0 = -3, mean over dimensions, by seeding: {said}",
        on="the seeding",
    )


def _good_seeds_help(rows: Sequence[Row]) -> Claim:
    gaps = {power: _over_dimensions(rows, ("D²", power), ("uniform", power)) for power in POWERS}
    said = ", ".join(f"{power}: {_signed(found)}" for power, found in gaps.items())
    return Claim(
        "Power k-means is better from k-means++ seeds than from its own at random",
        PAPER,
        _all_above(gaps.values()),
        f"VI from uniform seeds less that from D² seeds, mean over dimensions: {said}",
        on="the start",
    )


def _over_dimensions(rows: Sequence[Row], better: Run, worse: Run) -> tuple[float, float]:
    """The mean gap in VI over dimensions; the data sets of each are others."""
    gaps = [gap(rows, "VI_nearest", d, better, worse) for d in _features(rows)]
    mean = math.fsum(difference for difference, _ in gaps) / len(gaps)
    return mean, math.hypot(*(error for _, error in gaps)) / len(gaps)


def _vi(rows: Sequence[Row], seeding: str, method: str, n_features: int) -> float:
    return mean_of(rows, "VI_nearest", features=n_features, seeding=seeding, method=method)


# Remarks.


REMARK_ON_CHOICE = (
    "Two of the settings under which the cells are counted, seeds in proportion to D and the "
    "clusters of the nearest true center, are not in the paper: they were chosen among four "
    "seedings and three references because they fit best. Cells of a column share their data sets, "
    "so that they deviate together."
)


def _remarks_on_deviations(comparisons: Sequence[Comparison], setting: str) -> list[str]:
    apart = [comparison for comparison in comparisons if not comparison.is_within_noise]
    if not apart:
        return []
    said = "; ".join(_said_of_measure(comparisons, short) for short in IN_SHORT.values())
    return [
        f"With {setting}: {_said_of_flagship(comparisons)}",
        f"Not explained, with {setting}: {len(apart)} of {len(comparisons)} means differ by more "
        f"than noise. {said}. The tables with these settings mark them by stars.",
    ]


def _said_of_measure(comparisons: Sequence[Comparison], measure: str) -> str:
    """How many means of a measure are apart, in how many of these ours is better, and the gaps."""
    of_measure = [c for c in comparisons if c.quantity == measure]
    gaps = [c.ours - c.published for c in of_measure if not c.is_within_noise]
    if not gaps:
        return f"{measure}: none"
    better = sum(gap < 0 for gap in gaps)
    return (
        f"{measure}: {len(gaps)} of {len(of_measure)}, ours better in {better}; "
        f"ours less published is {min(gaps):+.3f} to {max(gaps):+.3f}"
    )


# What it looks like.

_STYLES = dict(
    zip(
        PUBLISHED,
        ((INK, "o"), (PURPLE, "P"), (SKY, "v"), (BLUE, "s"), (GREEN, "^"), (ORANGE, "D")),
        strict=True,
    )
)


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """Both tables as lines, published ones dashed; and VI under each seeding."""
    from matplotlib import pyplot

    rows = [row for row in rows if "sizes" not in row]
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for ax, measure in zip(panels, TABLES, strict=True):
        _draw_lines(ax, where(rows, seeding="D"), measure)
        _draw_published(ax, measure, _features(rows))
        ax.set(title=f"{NAMES[measure]}: {IN_SHORT[measure]}")
    panels[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Seeds in proportion to D: ours (lines) and published (large dots)")
    tables = folder / "table1-and-2.png"
    figure.savefig(tables, dpi=150)
    pyplot.close(figure)

    figure, grid = pyplot.subplots(1, 4, figsize=(13, 4), layout="constrained", sharey=True)
    for ax, seeding in zip(grid, SEEDINGS, strict=True):
        _draw_lines(ax, where(rows, seeding=seeding), "VI_nearest")
        ours = [_vi(rows, OWN_SEEDS, OURS, d) for d in _features(rows)]
        ax.plot(_features(rows), ours, ":", color=VERMILION, linewidth=2, label=OURS)
        ax.set(title=f"seeds: {seeding}")
    grid[0].set_ylabel("VI, nats")
    grid[-1].legend(frameon=False, fontsize=8)
    seedings = folder / "table1-and-2-seedings.png"
    figure.savefig(seedings, dpi=150)
    pyplot.close(figure)
    return [tables, seedings]


def _draw_lines(ax: Any, rows: Sequence[Row], measure: str) -> None:
    for method, (color, marker) in _STYLES.items():
        features = _features(rows)
        means = [mean_of(rows, measure, features=d, method=method) for d in features]
        ax.plot(features, means, color=color, marker=marker, markersize=4, label=method)
    ax.set_xscale("log")
    ax.set_xticks(features, [str(d) for d in features])
    ax.minorticks_off()
    ax.set(xlabel="dimensions")
    tidy(ax, grid="y")


def _draw_published(ax: Any, measure: str, features: Sequence[int]) -> None:
    for line in published_rows(TABLES[measure]):
        if line["features"] in features:
            color, _ = _STYLES[str(line["method"])]
            ax.plot(line["features"], line["mean"], "o", color=color, markersize=9, alpha=0.35)
