from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from powermeans import Fixed, PowerKMeans
from powermeans.mathematics.power_mean import objective
from powermeans.mathematics.rules import Hard
from powermeans.metrics import adjusted_rand_index
from reproduce import catalog
from reproduce.checks import (
    Check,
    above,
    below,
    cells_of,
    findings_of,
    paired_gain,
    share_and_error,
    together,
)
from reproduce.item import Row
from reproduce.items import (
    birch_and_mnist,
    claims_of_power_k_means,
    claims_of_power_means,
    claims_of_scores,
    equal_clusters,
    figure1,
    figure2,
    gene_expression,
    road_network,
)
from reproduce.marks import draw_costs, draw_lines
from reproduce.matched_starts import (
    KHM,
    LLOYD,
    ONE_DESCENT,
    SEARCH,
    draw_seeds,
    khm,
    lead,
    leads,
    lloyd,
    patient,
    power_from,
    published,
    run_all,
    search,
    sweeps_needed,
    sweeps_to_settle,
)
from reproduce.selecting import where
from reproduce.surface import surface_heights

# Of what a cell has more, the longer it takes.
SIZES = (
    "draws",
    "fits",
    "n_best_of",
    "n_cases",
    "n_most",
    "n_points",
    "n_runs",
    "n_sets",
    "rounds",
    "runs",
    "seedings",
    "trials",
)
# What these sentences say is not so, as far as it can be derived without measuring.
REFUTED = {
    "claims_of_power_means": {"memberships", "constant", "slide_slope", "slide_objective"},
    "claims_of_power_k_means": {"hard_descent"},
    "claims_of_scores": set(),
}
# Of a clock, or slow.
NOT_EACH_TIME = {"cost", "low_starts", "soft", "weights", "carried_over"}


def checks_of(module) -> list:
    return [
        pytest.param(check, check.name not in REFUTED[module.__name__.rpartition(".")[2]])
        for check in module.CHECKS
        if check.name not in NOT_EACH_TIME
    ]


ALL_CHECKS = [
    *checks_of(claims_of_power_means),
    *checks_of(claims_of_power_k_means),
    *checks_of(claims_of_scores),
]


@pytest.mark.parametrize(
    ("check", "is_so"), ALL_CHECKS, ids=[param.values[0].name for param in ALL_CHECKS]
)
def test_each_sentence_gets_the_verdict_that_was_derived(check: Check, is_so: bool) -> None:
    sizes = {"newton": 20, "chance": 100, "composite": 20, "covariance": 2, "outliers": 20}
    n_cases = sizes.get(check.name, 4)
    claim = check.claim(check.measure(n_cases), n_cases)
    assert check.is_claim == (not check.name.startswith("slide_"))
    assert claim.verdict == ("holds" if is_so else "does not hold"), claim.figure


def test_the_gains_of_hybrids_are_judged_by_their_errors() -> None:
    check = next(c for c in claims_of_power_k_means.CHECKS if c.name == "soft")
    gains = {"even_over_lloyd": 4.0, "khm_over_hard": 3.0}
    for error, verdict in ((1.0, "holds"), (2.5, "not decidable")):
        figures = gains | {f"{name}_error": error for name in gains}
        assert check.claim(figures, 1).verdict == verdict
    worse = {"even_over_lloyd": -4.0, "even_over_lloyd_error": 1.0}
    assert check.claim(gains | {"khm_over_hard_error": 1.0} | worse, 1).verdict == "does not hold"


def test_sweeps_of_a_hard_rule_are_lloyds() -> None:
    _, points, seeds = claims_of_power_k_means.clouds(0)
    model = PowerKMeans(
        len(seeds), init=seeds, schedule=Fixed(-math.inf), polish=False, tol=0, max_iter=200
    ).fit(points)
    ours = claims_of_power_k_means.own_sweeps(points, seeds, Hard(), 200)
    np.testing.assert_allclose(ours, model.cluster_centers_, rtol=1e-9)


def test_the_least_of_two_means_is_that_of_all_partitions() -> None:
    points = np.array([0.0, 1.0, 5.0, 6.0, 20.0])
    # {0, 1, 5, 6} about 3 and {20}: 9 + 4 + 4 + 9.
    assert claims_of_power_means.least_of_two_means(points) == pytest.approx(26.0)
    # As in f_1 both centers are at the mean, 6.4.
    spread = float(((points - 6.4) ** 2).sum())
    assert claims_of_power_means.least_of_power(points, 1.0) == pytest.approx(spread)


def test_a_check_refutes_what_its_figures_do_not_bear_out() -> None:
    check = Check(
        "sum", "It adds up.", "a book", lambda n: {"sum": 2.0}, lambda f: f["sum"] == 4, "{sum:g}"
    )
    assert check.claim({"sum": 4.0}, 1).verdict == "holds"
    claim = findings_of([check], [{"check": "sum", "n_cases": 3, "sum": 5.0}]).claims[0]
    assert (claim.verdict, claim.figure) == ("does not hold", "5")


def test_a_check_is_one_cell_and_tries_fewer_cases_when_quick() -> None:
    check = Check("count", "", "", lambda n: {"cases": n}, bool, "", n_cases=50, n_quick_cases=5)
    assert [cell.compute() for cell in cells_of([check], quick=True)] == [[{"cases": 5}]]
    assert cells_of([check], quick=False)[0].key == {"check": "count", "n_cases": 50}


def test_verdicts_need_two_standard_errors_on_their_side() -> None:
    assert [above(x, 1.0, 10.0) for x in (12.1, 11.9, 8.1, 7.9)] == [
        "holds", "not decidable", "not decidable", "does not hold",
    ]  # fmt: skip
    assert [below(x, 1.0, 10.0) for x in (12.1, 11.9, 8.1, 7.9)] == [
        "does not hold", "not decidable", "not decidable", "holds",
    ]  # fmt: skip
    assert above(5.0, math.inf) == above(math.nan, 0.0) == above(0.0, 0.0) == "not decidable"


def test_a_sentence_of_several_parts_needs_all_of_them() -> None:
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "not decidable"]) == "not decidable"
    assert together(["holds", "not decidable", "does not hold"]) == "does not hold"
    assert together([]) == "not decidable"


def test_shares_and_pairs_have_the_errors_of_their_formulas() -> None:
    # (0 + 2) / (16 + 4), and the root of 0.1 * 0.9 / 20.
    assert share_and_error([0.0] * 16) == (0.1, pytest.approx(math.sqrt(0.0045)))
    # Differences 1, 3: mean 2, deviation the root of 2, over the root of 2.
    assert paired_gain([2.0, 5.0], [1.0, 2.0]) == (2.0, pytest.approx(1.0))


@pytest.mark.parametrize("name", catalog.names())
def test_quick_cells_are_fewer_and_none_has_more_of_anything(name: str) -> None:
    module = catalog.module_of(name)
    quick, full = ([cell.key for cell in module.cells(of)] for of in (True, False))
    assert len(quick) <= len(full)
    for size in SIZES:
        most = [max((float(key.get(size, 0)) for key in keys), default=0) for keys in (quick, full)]
        assert most[0] <= most[1], size
    work = [
        sum(math.prod(float(k.get(s, 1)) for s in SIZES) for k in keys) for keys in (quick, full)
    ]
    steps = [min(float(key.get("step", 1)) for key in keys) for keys in (quick, full)]
    assert work[0] < work[1] or steps[0] > steps[1]


@pytest.fixture(scope="module")
def clouds() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 30)
    return 6 * rng.normal(size=(5, 2))[labels] + rng.normal(size=(150, 2)), labels


def test_methods_begin_at_the_same_centers_and_take_turns_to_be_first(clouds) -> None:
    points, labels = clouds
    seeds = draw_seeds(points, 5, "D", 0)
    start = ((points[:, None] - seeds) ** 2).sum(axis=2).min(axis=1).sum()
    for method in (lloyd(), khm(), published(-3.0)):
        assert method.fit(points, seeds, 0).history_.inertia[0] == pytest.approx(start)
    methods = (lloyd(), khm(), search())
    orders = [[row["method"] for row in run_all(methods, points, seeds, labels, n)] for n in (0, 1)]
    assert orders == [[LLOYD, KHM, SEARCH], [KHM, SEARCH, LLOYD]]


def test_khm_is_held_at_minus_one_and_the_published_powers_grow_by_a_twentieth(clouds) -> None:
    points, _ = clouds
    seeds = draw_seeds(points, 5, "D²", 0)
    assert set(khm().fit(points, seeds, 0).history_.power) == {-1.0}
    powers = published(-3.0).fit(points, seeds, 0).history_.power
    np.testing.assert_allclose(powers, -3 * 1.05 ** np.arange(len(powers)))


def test_the_papers_rule_stops_where_centers_ran_together_and_ours_goes_on() -> None:
    drawn = equal_clusters.drawn_set("normal", "close", 100, 0)
    seeds = draw_seeds(drawn.points, 3, "uniform", 0)
    stopped, went_on = (way(-1.0).fit(drawn.points, seeds, 0) for way in (published, patient))
    assert stopped.power_ > stopped.critical_power_ > went_on.power_
    assert adjusted_rand_index(drawn.labels, went_on.labels_) > 0.8
    assert adjusted_rand_index(drawn.labels, stopped.labels_) < 0.6


@pytest.mark.parametrize("seeding", ["uniform", "D", "D²", "greedy"])
def test_seeds_are_points_and_the_same_each_time(clouds, seeding) -> None:
    points, _ = clouds
    seeds = draw_seeds(points, 5, seeding, 3)
    assert all((points == seed).all(axis=1).any() for seed in seeds)
    np.testing.assert_array_equal(seeds, draw_seeds(points, 5, seeding, 3))


def test_sweeps_are_counted_until_the_sum_of_squares_is_near_its_end_for_good() -> None:
    assert sweeps_needed([9.0, 5.0, 7.0, 5.001, 5.0], 5.0) == 3
    assert sweeps_needed([5.0, 5.0], 5.0) == 0
    assert sweeps_to_settle([9.0, 5.0, 4.9999, 4.0]) == 1
    assert sweeps_to_settle([9.0, 5.0, 3.0]) == 3


def test_a_sweep_of_the_cross_section_is_one_of_power_k_means() -> None:
    points, centers = figure1.clusters(0)
    for power in (-math.inf, -10.0, -0.2):
        start = np.array([[12.0, 31.0], [3.0, 18.0]])
        ours = figure1.swept(points[:, 0], centers[2, 0], start, power)
        for two, moved in zip(start, ours, strict=True):
            path: list[np.ndarray] = []
            PowerKMeans(
                3, init=figure1.stacked(two, centers), schedule=Fixed(power), polish=False,
                callback=lambda state, path=path: path.append(state.centers) or True,
            ).fit(points)  # fmt: skip
            np.testing.assert_allclose(moved, path[0][:2, 0], rtol=1e-9)


@pytest.mark.parametrize("power", [-math.inf, -10.0, -1.0])
def test_the_surface_is_the_objective_at_each_pair_of_values(power: float) -> None:
    line, values = np.array([0.0, 1.0, 4.0, 9.0]), np.array([-1.0, 2.5, 9.0])
    heights = surface_heights(line, power, np.array([5.0]), values)
    for row, first in enumerate(values):
        for column, second in enumerate(values):
            expected = objective(line[:, None], np.array([[first], [second], [5.0]]), power)
            assert heights[row, column] == pytest.approx(expected)


def test_the_smoothest_cross_section_has_fewer_valleys_than_k_means() -> None:
    (hard,), (soft,) = (figure1.valleys(0, name) for name in ("-inf", "-0.2"))
    assert soft["valleys"] == 1 < hard["valleys"]
    assert soft["share"] == 1 > hard["share"]
    assert hard["first"] == pytest.approx(10, abs=2)
    assert hard["second"] == pytest.approx(20, abs=2)


def test_ends_are_one_valley_only_where_they_are_near() -> None:
    ends = np.array([[1.0, 2.0], [1.0, 2.01], [1.0, 3.0], [1.01, 2.0]])
    bottoms, counts = figure1.grouped(ends)
    assert counts == [3, 1]
    np.testing.assert_array_equal(bottoms, [[1.0, 2.0], [1.0, 3.0]])


def test_a_cluster_is_missed_if_no_center_is_nearest_to_it() -> None:
    optimal = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]])
    found = np.array([[1.0, 0.0], [0.0, 1.0], [19.0, 0.0]])
    np.testing.assert_array_equal(figure2.missed_clusters(optimal, found), [1])
    np.testing.assert_array_equal(figure2.missed_clusters(optimal, optimal), [])
    np.testing.assert_array_equal(figure2.separations(optimal), [10, 10, 10])


def test_figure_2_compares_every_method_with_lloyd_and_draws_both() -> None:
    rows = [{"data_set": 0, **row} for row in figure2.trial(0)]
    of_lloyd = next(row for row in rows if row["method"] == LLOYD)
    assert of_lloyd["separated_gained"] == of_lloyd["separated_lost"] == 0
    for row in rows:
        gained, lost = int(row["separated_gained"]), int(row["separated_lost"])
        assert row["separated"] == int(of_lloyd["separated"]) - gained + lost


@pytest.mark.parametrize(
    ("n_several", "n_sets", "verdict"),
    [
        (20, 100, "holds"),
        (1, 100, "not decidable"),
        (10, 1000, "does not hold"),
        (0, 300, "does not hold"),
    ],
)
def test_the_picture_of_figure_2_is_no_exception_only_at_a_rate(n_several, n_sets, verdict) -> None:
    rows = [
        {"method": name, "separated_gained": 2 * (n < n_several), "separated_lost": 0}
        for name in figure2.SHOWN
        for n in range(n_sets)
    ]
    assert figure2.fails_in_the_plane(rows).verdict == verdict


def test_several_gained_do_not_count_where_as_many_are_lost() -> None:
    rows = [
        {"method": name, "separated_gained": 2, "separated_lost": 2}
        for name in figure2.SHOWN
        for _ in range(100)
    ]
    assert figure2.fails_in_the_plane(rows).verdict == "does not hold"


def mnist_rows(iterations: float, seconds: float) -> list[Row]:
    names = (*birch_and_mnist.PUBLISHED, ONE_DESCENT, SEARCH)
    of_lloyd = {"iterations": 100, "full_seconds": 10.0}
    others = {"iterations": iterations, "full_seconds": seconds}
    shared = {"set": "MNIST", "needed": 30, "settled": 20, "skipped": 0.2, "clusters": 10}
    shared |= {"seconds": 1.0, "sweep_seconds": 2.0}
    return [
        {**shared, "method": name, "seed": seed, "sse": sse + spread * seed, **figures}
        for name, sse, spread, figures in [
            (LLOYD, 110.0, 5.0, of_lloyd), *((n, 100.0, 1.0, others) for n in names)
        ]
        for seed in range(20)
    ]  # fmt: skip


def test_mnist_is_compared_with_forty_iterations_once_and_with_half_the_time() -> None:
    as_published, otherwise = mnist_rows(49, 4.0), mnist_rows(52, 30.0)
    by_authors = [
        {**row, "method": birch_and_mnist.BY_AUTHORS[1]}
        for row in as_published
        if row["method"] == birch_and_mnist.PUBLISHED[1]
    ]
    of_lloyd = where(as_published, method=LLOYD)
    for claim in (birch_and_mnist.iterations_on_mnist, birch_and_mnist.seconds_on_mnist):
        assert claim(as_published, []).verdict == "holds"
        assert claim(otherwise, []).verdict == "does not hold"
        depends = claim(otherwise, by_authors + of_lloyd).in_words
        assert depends == (
            "depends on s0 and on the rule of stopping "
            "(seeds: 20 by the paper's rule, 20 by the authors' code)"
        )
    said = birch_and_mnist.iterations_on_mnist(otherwise, by_authors).figure
    assert "authors' code 49 (49 to 49) from s0 = -3" in said
    assert "52 (52 to 52) from s0 = -1, 52 (52 to 52) from s0 = -3" in said


def test_half_the_time_counts_distances_that_bounds_leave_out() -> None:
    rows = [
        {**row, "seconds": 0.1 if row["method"] == LLOYD else 9.0} for row in mnist_rows(41, 4.0)
    ]
    assert birch_and_mnist.seconds_on_mnist(rows, []).verdict == "holds"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (2.0, "does not hold")])
@pytest.mark.parametrize("clusters", [10, 8])
def test_better_and_more_stable_count_collapsed_runs_too(factor, verdict, clusters) -> None:
    start = birch_and_mnist.PUBLISHED[0]
    rows = [
        {**row, "clusters": clusters, "sse": 100 + factor**6 * (float(row["sse"]) - 100)}
        if row["method"] == start
        else row
        for row in mnist_rows(41, 4.0)
    ]
    assert birch_and_mnist.more_stable(rows, start).verdict == verdict
    assert birch_and_mnist.better(rows, start).verdict == verdict
    said = birch_and_mnist.better(rows, start).figure
    assert ("MNIST 2.0" in said) == (clusters == 8)


def test_the_deviation_of_the_tables_and_of_the_claims_is_that_of_a_sample() -> None:
    rows = [{"excess": excess} for excess in (1.0, 2.0, 3.0)]
    assert birch_and_mnist.deviation(rows) == pytest.approx(1.0)


def test_acceleration_is_in_seconds_and_not_in_distances() -> None:
    rows = mnist_rows(41, 4.0)
    assert birch_and_mnist.acceleration(rows).verdict == "holds"
    idle = [{**row, "set": "BIRCH1", "skipped": 0.0} for row in rows]
    assert birch_and_mnist.acceleration(rows + idle).verdict == "depends"
    slower = [{**row, "sweep_seconds": 5.0, "skipped": 0.99} for row in rows]
    assert birch_and_mnist.acceleration(slower).verdict == "does not hold"


def score_rows(ari: dict[str, float], **key: str) -> list[Row]:
    starts = (*equal_clusters.PUBLISHED, *equal_clusters.PATIENT, power_from(-18.0))
    names = (LLOYD, KHM, *starts, ONE_DESCENT, SEARCH)
    return [
        {**key, "method": name, "data_set": n, "features": 200, "ARI": score, "NMI": score}
        | {"VI": 1 - score, "clusters": 5, "critical_power": -1.5}
        for name in names
        for n in range(6)
        for score in [ari.get(name, 0.5) + (-1) ** n * (0.01 if name == LLOYD else 0.0)]
    ]


def layouts(ari: dict[str, float]) -> list[Row]:
    return [
        row
        for layout in equal_clusters.LAYOUTS
        for row in score_rows(ari, layout=layout, family="normal")
    ]


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.9, "holds"), (0.5, "not decidable"), (0.3, "does not hold")]
)
def test_benefits_of_annealing_remain_where_a_start_beats_both_others(ours, verdict) -> None:
    start = power_from(-3.0)
    rows = layouts({start: ours, KHM: 0.2})
    assert equal_clusters.benefits_remain(rows, start).verdict == verdict
    tuning = equal_clusters.no_careful_tuning(rows).in_words
    assert tuning == ("depends on the layout and the start" if ours < 0.5 else "holds")


@pytest.mark.parametrize(("khm_ari", "verdict"), [(0.2, "holds"), (0.6, "does not hold")])
def test_the_curse_of_dimensionality_is_judged_across_layouts(khm_ari, verdict) -> None:
    rows = layouts({KHM: khm_ari})
    assert equal_clusters.khm_in_high_dimensions(rows).verdict == verdict
    first, *_ = equal_clusters.LAYOUTS
    mixed = [row for row in rows if row["layout"] != first]
    other = layouts({KHM: 0.8 - khm_ari})
    mixed += [row for row in other if row["layout"] == first]
    assert equal_clusters.khm_in_high_dimensions(mixed).in_words == "depends on the layout"


@pytest.mark.parametrize(
    ("khm_ari", "verdict"), [(0.1, "holds"), (0.5, "not decidable"), (0.7, "does not hold")]
)
def test_khm_breaks_down_on_gene_expression_if_it_is_below_lloyd(khm_ari, verdict) -> None:
    rows = [row for which in gene_expression.SETS for row in score_rows({KHM: khm_ari}, set=which)]
    assert gene_expression.khm_fails(rows).verdict == verdict


@pytest.mark.parametrize(
    ("lloyd_ari", "verdict"), [(0.1, "holds"), (0.5, "not decidable"), (0.7, "does not hold")]
)
def test_roads_and_genes_are_won_by_the_same_rule(lloyd_ari, verdict) -> None:
    ari, start = {LLOYD: lloyd_ari, KHM: 0.2}, power_from(-9.0)
    roads = [row for name in ("raw", "scaled") for row in score_rows(ari, set=name)]
    genes = [row for which in gene_expression.SETS for row in score_rows(ari, set=which)]
    assert road_network.best_of_three(roads, start).verdict == verdict
    assert gene_expression.best_in_high_dimensions(genes, start).verdict == verdict


def test_a_lead_that_one_score_does_not_bear_out_is_none() -> None:
    rows = score_rows({LLOYD: 0.1}, set="raw")
    flipped = [{**row, "VI": -float(row["VI"])} for row in rows]
    start = power_from(-3.0)
    assert leads(rows, start, [LLOYD], ["ARI", "NMI", "VI"]) == "holds"
    assert leads(flipped, start, [LLOYD], ["ARI", "NMI", "VI"]) == "does not hold"


def test_rows_of_one_data_set_are_not_counted_as_several() -> None:
    once = score_rows({LLOYD: 0.1})
    assert lead(once * 4, KHM, LLOYD, "ARI") == pytest.approx(lead(once, KHM, LLOYD, "ARI"))


def test_equal_clusters_are_equal_and_differ_by_number() -> None:
    for family in equal_clusters.FAMILIES:
        for layout in equal_clusters.LAYOUTS:
            one, other = (equal_clusters.drawn_set(family, layout, 4, n) for n in (0, 1))
            assert np.bincount(one.labels).tolist() == [200, 200, 200]
            assert one.points.shape == (600, 4)
            assert not np.array_equal(one.points, other.points)


def test_lines_go_through_means_and_large_marks_are_medians() -> None:
    axes = Figure().add_subplot()
    rows = [
        {"method": LLOYD, "features": d, "ARI": ari} for d in (2, 20) for ari in (0.2, 0.2, 0.8)
    ]
    draw_lines(axes, rows, "features", "ARI")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.4, 0.4])
    axes = Figure().add_subplot()
    runs = [
        {"method": LLOYD, "seconds": t, "excess": e} for t, e in ((1, 0.0), (2, 1.0), (9, 30.0))
    ]
    draw_costs(axes, runs)
    np.testing.assert_allclose(axes.collections[1].get_offsets(), [[2, 1]])
    low, high = axes.get_ylim()
    assert low < 0 < 30 < high


def test_figure_2_is_drawn_with_the_clusters_that_were_missed(tmp_path: Path) -> None:
    rows = [
        {"data_set": 0, "method": name, "missed": missed}
        for name, missed in zip(figure2.SHOWN, (7, 6), strict=True)
    ]
    (path,) = figure2.draw(rows, tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
