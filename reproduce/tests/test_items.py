"""Every item runs in quick mode, its formulas give numbers by hand, and its rows decide claims."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture

from powermeans import PowerKMeans
from powermeans.divergences import Binomial, Gamma, Poisson
from powermeans.mathematics.power_mean import objective
from powermeans.mathematics.rules import Hard
from powermeans.mathematics.schedules import Fixed
from reproduce import __main__ as command
from reproduce import results, running
from reproduce.item import VERDICTS
from reproduce.items import (
    bregman_families,
    claims_of_power_k_means,
    cluster_geometry,
    equal_clusters,
    figure1,
    figure2,
    first_step,
    grid_of_nine,
    iris_prototypes,
    knee,
    lambda_k,
    table1_and_2,
    table3,
    two_sums,
)
from reproduce.page import FRONT, TABLES
from reproduce.rows import published_rows, where
from reproduce.trials import (
    KHM,
    LLOYD,
    ahead,
    draw_seeds,
    fitted,
    khm,
    lead,
    lloyd,
    power_from,
    published,
    run_all,
    search,
)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", command.item_names())
def test_an_item_runs_in_quick_mode(name, data_folder, tmp_path: Path, monkeypatch) -> None:
    """Its claims are those of the page, each with a verdict, and its pictures are drawn."""
    monkeypatch.setattr(running, "CACHE", tmp_path)
    monkeypatch.setattr(results, "stored_rows", lambda name, cells: {})
    monkeypatch.setattr(running, "stored_rows", lambda name, cells: {})
    module = command.module_of(name)
    found = command.run(name, module, is_quick=True)
    stored = {claim.text for claim in results.stored_claims()[name]}
    assert {claim.text for claim in found.claims} <= stored
    assert all(claim.verdict in VERDICTS and claim.source for claim in found.claims)
    shown = [page.path.read_text(encoding="utf-8") for page in (FRONT, TABLES)]
    pictures = [*(tmp_path / name / "quick").glob("*.[ps][nv]g")]
    assert all(any(picture.name in text for text in shown) for picture in pictures)
    assert bool(pictures) == hasattr(module, "draw")


# Methods from the same centers.


@pytest.fixture(scope="module")
def clouds() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 30)
    return 6 * rng.normal(size=(5, 2))[labels] + rng.normal(size=(150, 2)), labels


@pytest.mark.parametrize("seeding", ["uniform", "D", "D²", "greedy"])
def test_methods_begin_at_the_same_points_and_take_turns_to_be_first(clouds, seeding) -> None:
    points, labels = clouds
    seeds = draw_seeds(points, 5, seeding, 0)
    assert all((points == seed).all(axis=1).any() for seed in seeds)
    start = ((points[:, None] - seeds) ** 2).sum(axis=2).min(axis=1).sum()
    for method in (lloyd(), khm(), published(-3.0)):
        assert method.fit(points, seeds, 0).history_.inertia[0] == pytest.approx(start)
    methods = (lloyd(), khm(), search())
    firsts = [run_all(methods, points, seeds, labels, n)[0]["method"] for n in (0, 1)]
    assert firsts == [LLOYD, KHM]


def test_khm_is_held_at_minus_one_and_the_published_powers_grow_by_a_twentieth(clouds) -> None:
    points, _ = clouds
    seeds = draw_seeds(points, 5, "D²", 0)
    assert set(khm().fit(points, seeds, 0).history_.power) == {-1.0}
    powers = published(-3.0).fit(points, seeds, 0).history_.power
    np.testing.assert_allclose(powers, -3 * 1.05 ** np.arange(len(powers)))


def test_a_lead_counts_data_sets_and_is_judged_over_all_scores() -> None:
    start = power_from(-3.0)
    rows = [
        {"method": name, "data_set": n, "ARI": ari, "NMI": ari, "VI": 1 - ari}
        for n in range(6)
        for name, ari in ((LLOYD, 0.1 + 0.01 * (-1) ** n), (KHM, 0.5), (start, 0.5))
    ]
    assert lead(rows * 4, KHM, LLOYD, "ARI") == pytest.approx(lead(rows, KHM, LLOYD, "ARI"))
    turned = [{**row, "VI": -row["VI"]} for row in rows]
    for of_case, verdict in ((rows, "holds"), (turned, "depends")):
        claim = ahead({"one": of_case}, [start], LLOYD, "It is ahead", "Nobody", "the score")
        assert claim.verdict == verdict
    assert "one, power, s0 = -3 +0.400" in claim.figure


# Tables 1 to 3.


def rows_like_the_paper(lift: float = 0.0, off: float = 0.0) -> list[dict]:
    """Fifty sets with the published means and spreads; one method lifted, one column off."""
    by_key: dict[tuple, dict] = {}
    for measure, name in table1_and_2.TABLES.items():
        for line in published_rows(name):
            for n in range(50):
                value = line["mean"] + line["spread"] * (-1) ** n
                value += (
                    lift * (line["method"] == power_from(-3.0))
                    + off * (line["features"] == 10) * line["spread"]
                )
                key = {"features": line["features"], "method": line["method"], "data_set": n}
                row = by_key.setdefault(tuple(key.values()), {**key, "setting": "D"})
                row[measure] = value
    return list(by_key.values())


def test_a_wrong_column_in_tables_1_and_2_is_flagged() -> None:
    for measure in table1_and_2.TABLES:
        right, wrong = (
            table1_and_2.comparisons_of(rows_like_the_paper(off=off), measure) for off in (0, 0.6)
        )
        assert all(comparison.is_within_noise for comparison in right)
        flagged = {c.what for c in wrong if not c.is_within_noise}
        assert flagged == {c.what for c in wrong if c.what.endswith("d = 10")}
    # The published spread and ours are the same here, so the error is √2 of either's.
    spread = published_rows("table2")[0]["spread"]
    assert right[0].standard_error == pytest.approx(spread * math.sqrt(1 / 50 + 1 / 49))


def test_the_order_of_the_methods_is_judged_by_paired_errors() -> None:
    assert table1_and_2._order(rows_like_the_paper()).verdict == "holds"
    turned = table1_and_2._order(rows_like_the_paper(lift=1.0))
    assert turned.verdict == "depends"
    assert "VI, d = 2: Lloyd before power, s0 = -3" in turned.figure


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((0.0, 0.0), "no difference"),
        ((0.008, 0.014), "holds"),
        ((-0.02, -0.02), "does not hold"),
        ((0.0, 0.014), "open"),
    ],
)
def test_no_difference_is_what_excludes_the_published_one(gaps, verdict: str) -> None:
    rows = [
        {"features": 2, "setting": setting, "data_set": n, "method": method,
         "ratio": 1 + ratio, "VI_nearest": 0.6 + vi}
        for n in range(100) for setting in ["D" if n < 50 else "plane"]
        for method, (ratio, vi) in
        ((LLOYD, (0, 0)), (KHM, [gap + 0.01 * (-1) ** n for gap in gaps]))
    ]  # fmt: skip
    assert table1_and_2._khm_in_the_plane(table1_and_2.joined(rows)).verdict == verdict


def rows_of_table_3(wrong: dict[str, float]) -> list[dict]:
    """Ten runs with the published numbers, counts one up and one down; power's in control off."""
    rows = []
    for line in published_rows("table3"):
        is_wrong = (line["group"], line["method"]) == ("control", "power")
        for run in range(10):
            row = {"genotype": line["group"], "method": table3.COMPARED[line["method"]]}
            row |= {"seeding": "D²", "sse": float(run), "error": line["error"]}
            row |= {name: line[name] + (-1) ** run for name in table3.COUNTS}
            more = wrong if is_wrong else {}
            rows.append(row | {name: row[name] + by for name, by in more.items()})
    return rows


@pytest.mark.parametrize("wrong", [{"mixed_nodes": 3}, {"total_mixed": -3}])
def test_a_wrong_number_in_table_3_is_flagged(wrong: dict[str, float]) -> None:
    assert all(c.is_within_noise for c in table3.comparisons_of(rows_of_table_3({})))
    found = table3.comparisons_of(rows_of_table_3(wrong))
    assert [c.what for c in found if not c.is_within_noise] == ["power, control"]


def test_the_kinds_of_sizes_are_counted_by_dimension_and_out_of_sample() -> None:
    by_kind = {"equal": rows_like_the_paper(), "uneven": rows_like_the_paper(off=0.6)}
    beside = {kind: table1_and_2.comparisons(rows) for kind, rows in by_kind.items()}
    table = table1_and_2._table_of_kinds(by_kind, beside)
    equal, uneven = table.rows
    column = {name: place for place, name in enumerate(table.columns)}
    assert (equal[column["all"]], uneven[column["all"]]) == ("84 of 84", "72 of 84")
    assert (uneven[column["d = 10"]], uneven[column["out of sample"]]) == ("0 of 12", "60 of 72")
    assert uneven[column["flagship"]] == "16 of 16"


# The slides, and what k-means is a first step of.


def test_their_loop_is_power_k_means_without_its_limits(monkeypatch) -> None:
    points, truth, seeds = equal_clusters.drawn_set(10, 3)
    assert np.bincount(truth).tolist() == [33, 33, 33]
    monkeypatch.setattr(equal_clusters, "HAIR", 0.0)
    for start in (-1.0, -9.0):
        model = PowerKMeans.as_authors_code(3, power=start, init=seeds).fit(points)
        theirs = equal_clusters.their_power(points, seeds, start)
        np.testing.assert_array_equal(theirs, model.labels_)
    model = PowerKMeans(3, init=seeds, schedule=Fixed(-math.inf), polish=False, tol=0)
    theirs = equal_clusters.their_lloyd(points, seeds)
    np.testing.assert_array_equal(theirs, fitted(model, points).labels_)
    assert len(np.unique(theirs)) == 2  # an empty center stays where it is


def test_their_information_is_nmi_but_for_a_collapse() -> None:
    truth = np.repeat([0, 1, 2], 33)
    mixed = np.roll(truth, 5)
    expected = normalized_mutual_info_score(truth, mixed, average_method="geometric")
    assert equal_clusters.their_information(truth, mixed) == pytest.approx(expected)
    assert equal_clusters.their_information(truth, np.zeros(99, dtype=int)) < -1


def test_the_costlier_models_have_the_costs_of_independent_code() -> None:
    data = first_step.drawn(0)
    few = first_step.Drawn(data.points[:300], data.classes[:300], data.rng)
    centers, labels = first_step.lloyd(few.points, few.points[:4])
    own = [few.points[labels == j] for j in range(4)]
    spread = np.array([np.cov(of.T, bias=True) for of in own]) + 1e-3 * np.eye(4)
    starts = {"spherical": 1 / spread.trace(axis1=1, axis2=2) * 4, "full": np.linalg.inv(spread)}
    for kind, precisions in starts.items():
        model = GaussianMixture(
            4, covariance_type=kind, means_init=centers, precisions_init=precisions,
            weights_init=np.bincount(labels) / 300, tol=1e-6, reg_covar=1e-3, max_iter=500,
        ).fit(few.points)  # fmt: skip
        first, last = first_step.mixture(kind == "full")(few, centers, labels)
        assert -model.lower_bounds_[0] == pytest.approx(first, rel=1e-2)
        assert -model.score(few.points) == pytest.approx(last, rel=1e-3)
    logs, moves = few.rng.normal(size=(5, 3)), np.log(few.rng.dirichlet(np.ones(3), 3))
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    costs = -logs[np.arange(5), paths].sum(axis=1) - moves[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    path, cost = first_step.best_path(logs, moves)
    assert cost == pytest.approx(costs.min())
    np.testing.assert_array_equal(path, paths[costs.argmin()])


# Figures 1 and 2.


def test_a_sweep_of_the_cross_section_is_one_of_power_k_means() -> None:
    points, centers = figure1.clusters(0)
    start = np.array([[12.0, 31.0], [3.0, 18.0]])
    for power in (-math.inf, -10.0, -0.2):
        ours = figure1.swept(points[:, 0], centers[2, 0], start, power)
        for two, moved in zip(start, ours, strict=True):
            path: list[np.ndarray] = []
            PowerKMeans(
                3, init=figure1.stacked(two, centers), schedule=Fixed(power), polish=False,
                callback=lambda state, path=path: path.append(state.centers) or True,
            ).fit(points)  # fmt: skip
            np.testing.assert_allclose(moved, path[0][:2, 0], rtol=1e-9)


def test_the_surface_is_the_objective_and_its_smoothest_section_has_one_valley() -> None:
    line, values = np.array([0.0, 1.0, 4.0, 9.0]), np.array([-1.0, 2.5])
    heights = figure1.surface_heights(line, -1.0, np.array([5.0]), values)
    expected = objective(line[:, None], np.array([[-1.0], [2.5], [5.0]]), -1.0)
    assert heights[0, 1] == pytest.approx(expected)
    (hard,), (soft,) = (figure1.valleys(0, name, 150) for name in ("-inf", "-0.2"))
    assert soft["valleys"] == 1 < hard["valleys"]
    assert (hard["first"], hard["second"]) == pytest.approx((10, 20), abs=2)


def test_a_cluster_is_missed_if_no_center_is_nearest_to_it() -> None:
    optimal = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]])
    found = np.array([[1.0, 0.0], [0.0, 1.0], [19.0, 0.0]])
    np.testing.assert_array_equal(figure2.missed_clusters(optimal, found), [1])
    np.testing.assert_array_equal(figure2.separations(optimal), [10, 10, 10])


@pytest.mark.parametrize(
    ("several", "lost", "verdict"),
    [(20, 0, "holds"), (3, 0, "open"), (20, 2, "does not hold")],
)
def test_what_figure_2_shows_is_judged_over_all_sets(several, lost, verdict) -> None:
    rows = [
        {
            "method": figure2.SHOWN[1],
            "separated_gained": 2 * (n < several),
            "separated_lost": lost,
        }
        for n in range(100)
    ]
    assert figure2.fails_in_the_plane(rows).verdict == verdict


# Formulas of the other items.


def test_sweeps_of_a_hard_rule_are_lloyds() -> None:
    _, points, seeds = claims_of_power_k_means.clouds(0)
    model = PowerKMeans(
        len(seeds), init=seeds, schedule=Fixed(-math.inf), polish=False, tol=0, max_iter=200
    ).fit(points)
    rule = Hard().memberships, Hard().weighing
    ours = claims_of_power_k_means.own_sweeps(points, seeds, rule, 200)
    np.testing.assert_allclose(ours, model.cluster_centers_, rtol=1e-9)


def starts(method: str, found: list[int], seconds: float = 1.0) -> list[dict]:
    key = {"method": method}
    single = {**key, "part": "starts", "n_starts": 1, "ratio": 1.0}
    return [*({**single, "found": hit} for hit in found)] + [
        {**key, "part": "seconds", "seconds": seconds}
    ] * 2


def test_the_price_of_a_sure_result_counts_the_starts_it_takes() -> None:
    share, seconds, until = grid_of_nine.price(starts("random starts", [1, 0], 0.5))
    assert (share, seconds) == (0.5, 0.5)
    assert 1 - 0.5 ** (until / seconds) == pytest.approx(0.99)
    assert grid_of_nine.price(starts("random starts", [0, 0]))[2] == math.inf
    assert grid_of_nine.bound(9) == pytest.approx(8 * (2.1972245773 + 2))


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(1.0, "holds"), (5.0, "open"), (30.0, "does not hold")]
)
def test_many_random_starts_are_set_against_one_at_equal_time(seconds, verdict) -> None:
    # Prices: 1 / -log(1 - 0.1) = 9.49 and seconds / -log(1 - 0.4), so equal near 4.85 seconds.
    rows = starts("random starts", [1] * 10 + [0] * 90)
    rows += starts("k-means++", [1] * 40 + [0] * 60, seconds)
    rows += starts("farthest first", [1] * 40 + [0] * 60)
    claims = grid_of_nine.claims_on_other_starts(rows)
    assert claims[1].verdict == verdict


def test_iris_is_scaled_and_each_algorithm_records_the_start_and_twenty_epochs() -> None:
    points = iris_prototypes.scaled_iris()
    start = points[::25]
    for run in iris_prototypes.ALGORITHMS.values():
        errors, least = run(points, start, np.random.default_rng(0))
        assert len(errors) == 21
        assert least <= errors[-1] + 1e-9 < errors[0]
    nearest = ((points[:, None] - start) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([points[nearest == j].mean(axis=0) for j in range(6)])
    errors, _ = iris_prototypes.batch_k_means(points, start, np.random.default_rng(0))
    assert errors[1] == pytest.approx(iris_prototypes.error_of(points, means))


def test_residues_ratios_and_leads_of_iris_by_hand() -> None:
    ratios = iris_prototypes.ratios(np.array([8.0, 4.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(ratios, [0.5, 0.25, 0.0, 0.0])
    first, other = np.array([9.0, 1, 1, 5, 1]), np.array([9.0, 2, 2, 2, 2])
    assert iris_prototypes.epochs_led([first, other]) == 2
    rates = [iris_prototypes.rate_of_epoch(step) for step in (1, 150, 151, 301)]
    np.testing.assert_allclose(rates, [0.03, 0.03, 0.015, 0.01])
    (row,) = iris_prototypes.newton(0)
    assert max(row["hessian"], row["step"]) < 1e-4


def test_both_sums_are_those_of_a_case_by_hand() -> None:
    points, labels = np.array([[0.0], [2.0], [4.0], [10.0]]), np.array([0, 0, 0, 1])
    # Means 2 and 10: 4 + 0 + 4; pairs (4 + 16 + 4) / 3.
    assert two_sums.about_the_means(points, labels) == 8.0
    assert two_sums.between_the_points(points, labels) == 8.0


def test_drops_and_knees_of_a_curve_by_hand() -> None:
    curve = (100.0, 60.0, 25.0, 3.0, 2.5, 2.1, 1.8)
    rows = [{"draw": 0, "k": k + 1, "W": w} for k, w in enumerate(curve)]
    # Drops 40, 35, 22, 0.5, ...: the ratio 22 / 0.5 is that of the fourth.
    assert knee.by_drops(rows) == [4.0]
    np.testing.assert_allclose(knee.contrasts(rows, 4), [44.0])
    points = knee.clusters(5, 2, 12.0, 0)
    means = points.reshape(5, knee.N_EACH, 2).mean(axis=1)
    gaps = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() == pytest.approx(12.0, abs=1.0)


def test_the_best_k_at_a_price_and_the_prices_of_a_k_by_hand() -> None:
    key = {"data": "iris"}
    rows = [{**key, "part": "best", "k": k + 1, "W": w} for k, w in enumerate((9, 4, 3))]
    assert lambda_k.envelope(rows, "iris", 2.0) == (2, 8.0)  # 11, 8, 9
    assert lambda_k.span_of_prices(rows, "iris", 2) == (1.0, 5.0)
    fit = {**key, "part": "prices", "effort": "none", "objective": 8.8}
    fits = [{**fit, "price": price} for price in (0.5, 2.0)]
    ((row, k, excess),) = lambda_k.compared([*rows, *fits], "iris", "none")
    assert (row["price"], k, excess) == (2.0, 2, pytest.approx(0.1))


@pytest.mark.parametrize(("rings", "verdict"), [(4.0, "holds"), (-1.0, "does not hold")])
def test_each_shape_may_have_a_gamma_of_its_own_but_needs_one(rings, verdict) -> None:
    good = dict(zip(cluster_geometry.NOT_CONVEX, (10.0, rings), strict=True))
    rows = [
        {"shape": shape, "gamma": gamma, "draw": draw, "ari": float(gamma == good[shape])}
        for shape in good
        for gamma in cluster_geometry.GAMMAS
        for draw in range(8)
    ]
    assert cluster_geometry.claim_on_kernels(rows).verdict == verdict
    lucky = [{**row, "ari": row["ari"] * (row["draw"] % 2 == 0)} for row in rows]
    assert cluster_geometry.claim_on_kernels(lucky).verdict == "does not hold"


def test_numbers_a_divergence_does_not_take_are_moved_inside() -> None:
    points = np.array([[-3.0, 0.0], [5.0, 60.0]])
    for divergence, zero in ((Gamma(), 0.5), (Poisson(), 0.0)):
        expected = [[0.5, zero], [5.0, 60.0]]
        np.testing.assert_array_equal(bregman_families.within(divergence, points), expected)
    assert bregman_families.divergence_for("binomial", points + 20) == Binomial(80.5)


def test_k_means_is_never_below_the_least_of_all_partitions(monkeypatch) -> None:
    monkeypatch.setattr(two_sums, "N_STARTS", 20)
    monkeypatch.setattr(two_sums, "N_POINTS", 7)
    rows = two_sums.all_partitions(0)
    assert [row["partitions"] for row in rows] == [350, 350]  # S(7, 4)
    assert all(1 - 1e-9 <= row["best"] <= row["mean"] <= row["worst"] for row in rows)
    seeded = grid_of_nine.seedings("grid of 9", 3)
    assert min(row["lloyd"] for row in where(seeded, kind="k-means++")) >= 1 - 1e-9
    assert seeded[0]["k"] == 9
