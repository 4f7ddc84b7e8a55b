"""Items on seeding, iris, the slides and Bregman families: numbers by hand, and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powermeans import KMeans
from powermeans.divergences import Binomial, Gamma, Poisson
from powermeans.metrics import number_of_partitions
from reproduce.checks import above
from reproduce.items import (
    bregman_families,
    cluster_geometry,
    geometric_acceleration,
    grid_of_nine,
    image_segmentation,
    iris_prototypes,
    knee,
    lambda_k,
    two_sums,
)
from reproduce.quiet_fits import centers_of, fitted
from reproduce.selecting import column, kinds, where


def test_rows_are_selected_by_all_values_asked_for():
    rows = [{"k": 2, "part": "a", "x": 1}, {"k": 2, "part": "b", "x": 2}, {"k": 3, "part": "a"}]
    assert where(rows, k=2, part="a") == rows[:1]
    assert column(where(rows, k=2), "x") == [1.0, 2.0]
    assert kinds(rows, "x") == [1, 2]


def test_a_quiet_fit_ends_at_max_iter_without_a_warning():
    points = np.random.default_rng(0).standard_normal((50, 2))
    model = fitted(KMeans(5, init=points[:5], max_iter=1, tol=0), points)
    assert model.n_iter_ == 1
    assert centers_of(model).dtype == np.float64


# Nine Gaussians.


def test_the_bound_is_eight_times_two_and_the_logarithm():
    assert grid_of_nine.bound(1) == 16
    assert grid_of_nine.bound(9) == pytest.approx(8 * (2.1972245773 + 2))


def starts(method: str, found: list[int], seconds: float = 1.0):
    """Single starts on the grid of nine, and how long one takes."""
    key = {"side": 3, "spacing": 6.0, "method": method}
    tried = [
        {**key, "part": "starts", "n_starts": 1, "found": hit, "ratio": 1.0 if hit else 2.0}
        for hit in found
    ]
    return [*tried, {**key, "part": "seconds", "seconds": seconds}]


def test_the_price_of_a_sure_result_counts_the_starts_it_takes():
    rows = starts("random starts", [1, 0], 0.5)
    share, seconds, until = grid_of_nine.price(rows, "random starts")
    assert (share, seconds) == (0.5, 0.5)
    assert 1 - 0.5 ** (until / seconds) == pytest.approx(0.99)


def test_a_start_that_is_never_right_is_never_sure():
    assert grid_of_nine.price(starts("random starts", [0, 0]), "random starts")[2] == math.inf


def verdicts(claims) -> dict[str, str]:
    return {claim.text: claim.verdict for claim in claims}


@pytest.mark.parametrize(
    ("n_right", "one_start", "nails"),
    [
        (0, "holds", "does not hold"),
        (50, "not decidable", "does not hold"),
        (600, "does not hold", "does not hold"),
        (950, "does not hold", "not decidable"),
        (1000, "does not hold", "holds"),
    ],
)
def test_verdicts_on_starts_follow_the_rows_of_the_standard_grid(n_right, one_start, nails):
    hits = [1] * n_right + [0] * (1000 - n_right)
    rows = []
    for method in ("random starts", "k-means++", "greedy k-means++", "farthest first"):
        rows += starts(method, hits)
        rows += [{**row, "spacing": 24.0, "found": 1} for row in starts(method, hits)[:-1]]
    found = verdicts(grid_of_nine._claims_on_starts(rows))
    assert found[next(text for text in found if "one random start" in text)] == one_start
    assert found["k-means++ nails the nine"] == nails
    asked = grid_of_nine._answer_on_the_optimum(rows)
    assert asked.kind == "question"
    assert f"{1 - n_right / 1000:.1%}" in asked.said


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(1.0, "holds"), (5.0, "not decidable"), (30.0, "does not hold")]
)
def test_many_random_starts_are_set_against_one_at_equal_time(seconds, verdict):
    # Prices: 1 / -log(1 - 0.1) = 9.49 and seconds / -log(1 - 0.4), so equal near 4.85 seconds.
    rows = starts("random starts", [1] * 10 + [0] * 90)
    rows += starts("k-means++", [1] * 40 + [0] * 60, seconds)
    twice = [row for row in rows for _ in range(2 if row["part"] == "seconds" else 1)]
    assert above(*grid_of_nine.advantage_in_time(twice, "k-means++", "random starts")) == verdict


@pytest.mark.parametrize(("ratio", "verdict"), [(2.0, "holds"), (40.0, "does not hold")])
def test_the_bound_is_refuted_by_a_mean_above_it(ratio, verdict):
    rows = [
        {"data": "grid of 9", "kind": "k-means++", "k": 9, "seeds": ratio + d, "lloyd": 1.0}
        for d in (-0.01, 0.0, 0.01)
    ]
    assert [claim.verdict for claim in grid_of_nine._claims_on_the_bound(rows)] == [verdict]


def test_farthest_first_takes_corners_of_a_line():
    line = np.array([[0.0], [1.0], [2.0], [10.0]])
    seeds = grid_of_nine.farthest_first(line, 2, random_state=0)
    assert 10.0 in seeds or 0.0 in seeds
    assert abs(seeds[0] - seeds[1]) >= 8


def test_seeds_cannot_have_a_lower_error_than_the_best_known():
    rows = grid_of_nine.seedings("grid of 9", 5)
    assert min(column(rows, "seeds")) > 1
    assert min(column(rows, "lloyd")) >= 1 - 1e-9
    assert kinds(rows, "kind") == ["k-means++", "uniform"]


# Iris.


def test_iris_is_scaled_to_one_variance_within_clusters():
    points = iris_prototypes.scaled_iris()
    best = KMeans(6, n_init=200, init="random", random_state=0).fit(points)
    assert best.inertia_ / points.size == pytest.approx(1.0, abs=0.01)


def test_each_algorithm_records_the_start_and_twenty_epochs():
    points = iris_prototypes.scaled_iris()
    start = points[::25]
    for run in iris_prototypes.ALGORITHMS.values():
        errors, least = run(points, start, np.random.default_rng(0))
        assert len(errors) == 21
        assert least <= errors[-1] + 1e-9 < errors[0]


def test_a_batch_epoch_is_the_mean_of_the_points_of_each_prototype():
    points = iris_prototypes.scaled_iris()
    start = points[::25]
    nearest = ((points[:, None] - start) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([points[nearest == j].mean(axis=0) for j in range(6)])
    errors, _ = iris_prototypes.batch_k_means(points, start, np.random.default_rng(0))
    assert errors[1] == pytest.approx(iris_prototypes.error_of(points, means))


def test_rates_fall_with_the_epoch_and_not_with_the_point():
    rates = [iris_prototypes.rate_of_epoch(step) for step in (1, 150, 151, 301)]
    np.testing.assert_allclose(rates, [0.03, 0.03, 0.015, 0.01])


def test_the_hessian_is_that_of_the_counts_and_newton_steps_are_batch_steps():
    (row,) = iris_prototypes.newton(0)
    assert row["hessian"] < 1e-5
    assert row["step"] < 1e-4


def test_ratios_are_those_of_consecutive_residues_and_zero_at_the_end():
    ratios = iris_prototypes.ratios(np.array([8.0, 4.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(ratios, [0.5, 0.25, 0.0, 0.0])


def test_a_lead_counts_from_the_first_epoch_on():
    first = np.array([9.0, 1.0, 1.0, 5.0, 1.0])
    other = np.array([9.0, 2.0, 2.0, 2.0, 2.0])
    assert iris_prototypes.epochs_led([first, other]) == 2
    assert iris_prototypes.epochs_led([other, first]) == 0
    assert iris_prototypes.epochs_led([first, 10 * other]) == 4


def test_epochs_are_counted_until_the_residue_is_small_enough():
    errors = [100.0] + [50.0] * 4 + [0.5] * 16
    rows = [
        {"part": "epochs", "algorithm": "EM", "epoch": t, "error": e, "least": 0.0}
        for t, e in enumerate(errors)
    ]
    assert iris_prototypes.epochs_until(rows, "EM", 0.01) == [5.0]
    assert iris_prototypes.epochs_until(rows, "EM", 1e-9) == [20.0]


def replicates(residues: dict[str, list[float]]):
    """Two repeats of the trials with the same residues in each, and no error that stays."""
    return [
        {"part": "epochs", "replicate": r, "trial": trial, "algorithm": name, "epoch": t,
         "error": value, "least": 0.0}
        for name, values in residues.items()
        for r in (0, 1)
        for trial in range(iris_prototypes.N_TRIALS)
        for t, value in enumerate(values)
    ]  # fmt: skip


def residues_led_by(leader: str, n_epochs: int) -> dict[str, list[float]]:
    """Residues that start at 100, where one algorithm is ahead for so many epochs."""
    found = {name: [100.0] + [50.0] * 20 for name in iris_prototypes.KINDS}
    found[leader][1 : n_epochs + 1] = [10.0] * n_epochs
    return found


@pytest.mark.parametrize(("n_epochs", "verdict"), [(5, "holds"), (4, "does not hold")])
@pytest.mark.parametrize("rival", [None, "batch gradient", "EM"])
def test_all_others_are_all_others(n_epochs, verdict, rival):
    residues = residues_led_by("online k-means", n_epochs)
    if rival:
        residues[rival][2] = 1.0
    of_kind = iris_prototypes.on_one_scale(replicates(residues))
    found = verdicts(iris_prototypes._claims_on_leads(of_kind))
    first_five = next(text for text in found if "first five" in text)
    assert found[first_five] == ("does not hold" if rival else verdict)


def test_em_counts_by_the_share_of_its_first_residue():
    residues = residues_led_by("batch k-means", 20)
    for em, leads in (([5000.0] + [1000.0] * 20, 1.0), ([5000.0] + [400.0] * 20, 0.0)):
        of_kind = iris_prototypes.on_one_scale(replicates({**residues, "EM": em}))
        assert iris_prototypes.leads_after_five(of_kind) == [leads, leads]


@pytest.mark.parametrize(("last", "verdict"), [(14, "holds"), (15, "does not hold")])
def test_the_last_of_twenty_runs_decides_when_all_converged(last, verdict):
    rows = replicates({"batch k-means": [1.0] * last + [0.0] * (21 - last)})
    batch = iris_prototypes.by_replicate(rows, "batch k-means")
    found = verdicts(iris_prototypes._claims_on_batch(rows, batch))
    assert found["All 20 runs of batch k-means converge before the 15th epoch"] == verdict


def least_rows(stretch: float):
    """E_infinity of repeats like the published one: from 3300 to 5800 where stretch is one."""
    rng = np.random.default_rng(0)
    rows = []
    for r in range(10):
        for name in iris_prototypes.KINDS[:4]:
            values = rng.beta(1.0, 2.3, size=iris_prototypes.N_TRIALS) * 2500
            values[:2] = 0.0, 2600 - 200 * rng.random()
            rows += [
                {"part": "epochs", "replicate": r, "algorithm": name, "epoch": 0,
                 "least": 3300 + stretch * value}
                for value in values
            ]  # fmt: skip
    return rows


@pytest.mark.parametrize(("stretch", "is_within"), [(1.0, True), (0.3, False), (3.0, False)])
def test_wrong_numbers_of_iris_are_flagged(stretch, is_within):
    flags = {
        found.quantity: found.is_within_noise
        for found in iris_prototypes._comparisons(least_rows(stretch))
    }
    assert (flags["largest / least"], flags["mean / least"]) == (is_within, is_within)


# The slides.


def test_both_sums_are_those_of_a_case_by_hand():
    points = np.array([[0.0], [2.0], [4.0], [10.0]])
    labels = np.array([0, 0, 0, 1])
    # Means 2 and 10: 4 + 0 + 4; pairs (4 + 16 + 4) / 3.
    assert two_sums.about_the_means(points, labels) == 8.0
    assert two_sums.between_the_points(points, labels) == 8.0


@pytest.mark.parametrize(("n", "k", "count"), [(3, 2, 3), (4, 2, 7), (5, 3, 25), (4, 4, 1)])
def test_the_formula_counts_the_partitions_that_there_are(n, k, count):
    each = {tuple(labels) for labels in two_sums.partitions(n, k)}
    assert len(each) == count == number_of_partitions(n, k)
    assert all(len(set(labels)) == k for labels in each)


def test_k_means_is_never_below_the_least_of_all_partitions(monkeypatch):
    monkeypatch.setattr(two_sums, "N_STARTS", 20)
    monkeypatch.setattr(two_sums, "N_POINTS", 7)
    rows = two_sums.all_partitions(0)
    assert [row["partitions"] for row in rows] == [350, 350]  # S(7, 4)
    assert all(row["best"] >= 1 - 1e-9 for row in rows)
    assert all(row["best"] <= row["mean"] <= row["worst"] for row in rows)


@pytest.mark.parametrize(("pairs", "verdict"), [(8.0, "holds"), (8.1, "does not hold")])
def test_sums_that_differ_refute_the_claim(pairs, verdict):
    row = {"labels": "k-means", "about the means": 8.0, "between points": pairs, "inertia": 8.0}
    assert two_sums._claim_on_sums([row]).verdict == verdict


def test_a_wrong_count_of_partitions_is_flagged():
    rows = [{"n": n, "k": 4, "by formula": number_of_partitions(n, 4)} for n in (10, 19)]
    assert all(found.is_within_noise for found in two_sums._comparisons(rows))
    wrong = [{**row, "by formula": 2 * row["by formula"]} for row in rows]
    assert not any(found.is_within_noise for found in two_sums._comparisons(wrong))


def test_a_cost_that_grows_as_a_square_is_seen():
    rows = [{"grows": "k", "times": t, "seconds": 3.0 * t**2} for t in (1, 2, 4)]
    assert two_sums.exponent(rows, "k") == pytest.approx(2.0)


def test_drops_and_contrasts_of_a_curve_by_hand():
    curve = [{"draw": 0, "k": k + 1, "W": w} for k, w in enumerate((100.0, 60.0, 10.0, 8.0))]
    np.testing.assert_allclose(knee.drops(curve), [[0.4, 0.5, 0.02]])
    np.testing.assert_allclose(knee.contrasts(curve, 3), [25.0])


def test_the_nearest_clusters_are_as_far_apart_as_asked():
    points = knee.clusters(5, 2, 12.0, 0)
    means = points.reshape(5, knee.N_EACH, 2).mean(axis=1)
    gaps = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() == pytest.approx(12.0, abs=1.0)


def prices(*fits: tuple[float, int, float]):
    best = [{"part": "best", "data": "iris", "k": k + 1, "W": w} for k, w in enumerate((9, 4, 3))]
    return best + [
        {"part": "prices", "data": "iris", "price": p, "k": k, "objective": o, "rise": 0.0,
         "sweeps": 3}
        for p, k, o in fits
    ]  # fmt: skip


def test_the_best_k_at_a_price_and_the_prices_of_a_k_by_hand():
    rows = prices()
    assert lambda_k.envelope(rows, "iris", 2.0) == (2, 8.0)  # 11, 8, 9
    assert lambda_k.envelope(rows, "iris", 6.0) == (1, 15.0)
    assert lambda_k.span_of_prices(rows, "iris", 2) == (1.0, 5.0)
    assert lambda_k.span_of_prices(rows, "iris", 3) == (0.0, 1.0)


def test_prices_at_which_more_clusters_might_pay_are_left_out():
    rows = prices((0.5, 3, 4.5), (2.0, 2, 8.8))
    ((row, k, excess),) = lambda_k.compared(rows, "iris")
    assert (row["price"], k) == (2.0, 2)
    assert excess == pytest.approx(0.1)


@pytest.mark.parametrize(("objective", "share"), [(8.0, "100%"), (16.0, "0%")])
def test_a_bad_optimum_is_counted(objective, share):
    rows = prices((2.0, 2, objective))
    assert lambda_k._claim_on_algorithm(rows).verdict == "holds"
    assert f"within 5 % of the best known at {share}" in lambda_k._remark_on_the_least(rows)


def test_a_palette_of_all_colours_changes_nothing():
    pixels = np.array([[[0, 0, 0], [255, 0, 9]], [[0, 0, 0], [7, 7, 7]]], dtype=np.uint8)
    colours, place, counts = image_segmentation.distinct_colours(pixels)
    np.testing.assert_array_equal(colours[place].reshape(pixels.shape), pixels)
    np.testing.assert_array_equal(counts[place], [2, 1, 2, 1])
    for method in ("search (the default)", "Lloyd from k-means++"):
        centers, labels = image_segmentation.METHODS[method](3, pixels)
        np.testing.assert_allclose(centers[labels].reshape(pixels.shape), pixels)


def test_areas_are_connected_and_specks_are_none(monkeypatch):
    monkeypatch.setattr(image_segmentation, "LEAST_AREA", 0.25)
    labels = np.array([[0, 0, 1, 0], [0, 0, 1, 1], [2, 1, 1, 1], [1, 2, 2, 1]])
    # Of 16 pixels four of 0 hang together, and seven of 1; the rest are specks.
    assert image_segmentation.share_in_areas(labels) == 11 / 16


def test_a_place_of_another_cluster_refutes_convexity():
    convex = cluster_geometry._claim_on_cells([{"pairs": 10, "elsewhere": 0}])
    broken = cluster_geometry._claim_on_cells([{"pairs": 10, "elsewhere": 1}])
    assert (convex.verdict, broken.verdict) == ("holds", "does not hold")


def test_no_place_between_points_of_a_cluster_is_of_another():
    (row,) = cluster_geometry.between_points(5, 2)
    assert row["pairs"] > 1000
    assert row["elsewhere"] == 0


def by_gamma(good: dict[str, float]):
    """Kernel scores that are one at the gamma that suits a shape, and zero elsewhere."""
    return [
        {"shape": shape, "gamma": gamma, "draw": draw, "ari": float(gamma == good[shape])}
        for shape in cluster_geometry.NOT_CONVEX
        for gamma in cluster_geometry.GAMMAS
        for draw in range(8)
    ]


def test_each_shape_may_have_a_gamma_of_its_own_but_needs_one_that_other_draws_chose():
    crescents, rings = cluster_geometry.NOT_CONVEX
    good = by_gamma({crescents: 10.0, rings: 4.0})
    assert cluster_geometry._claim_on_kernels(good).verdict == "holds"
    none = by_gamma({crescents: 10.0, rings: -1.0})
    assert cluster_geometry._claim_on_kernels(none).verdict == "does not hold"
    lucky = [{**row, "ari": row["ari"] * (row["draw"] % 2 == 0)} for row in good]
    assert cluster_geometry._claim_on_kernels(lucky).verdict == "does not hold"


CURVE = (100.0, 60.0, 25.0, 3.0, 2.5, 2.1, 1.8)


def test_three_rules_find_the_knee_of_a_curve_by_hand():
    rows = [{"draw": 0, "k": k + 1, "W": w, "knee": 3} for k, w in enumerate(CURVE)]
    # Drops 40, 35, 22, 0.5, ...: the ratio 22 / 0.5 is that of the fourth.
    assert knee.by_drops(rows) == [4.0]
    assert knee.by_logarithm(rows) == [4.0]
    assert knee.RULES["of W"](rows) == [3.0]


@pytest.mark.parametrize(("true_k", "verdict"), [(4, "holds"), (2, "does not hold")])
def test_the_slides_are_judged_by_drops_and_not_by_our_detector(true_k, verdict):
    rows = [
        {"separation": "near", "d": 2, "true_k": true_k, "draw": n, "k": k + 1, "W": w, "knee": 2}
        for n in range(200)
        for k, w in enumerate(CURVE)
    ]
    assert knee._claim_on_knee(rows, "near").verdict == verdict


@pytest.mark.parametrize(
    ("far", "verdict"), [(1.0, "holds"), (2.0, "not decidable"), (3.0, "does not hold")]
)
def test_seeds_far_apart_are_judged_set_by_set_and_by_pairs(far, verdict):
    rows = [
        {"data": "iris", "init": init, "draw": n, "W": w, "sweeps": 3}
        for init, w in (("random points", 2.0), ("k-means++", far))
        for n in range(20)
    ]
    found = verdicts(two_sums._claims_on_starts(rows))
    assert found["Starting far apart, as k-means++ does, is better than random points"] == verdict
    errors = {"Lloyd from random pixels": 2.0, "Lloyd from k-means++": far}
    palettes = [
        {"picture": "china", "method": name, "k": k, "mean_square_error": errors.get(name, 0.5)}
        for name in image_segmentation.METHODS
        for k in (2, 4, 8)
    ]
    assert image_segmentation._claim_on_methods(palettes, "china").verdict == verdict


# Families.


def test_numbers_a_divergence_does_not_take_are_moved_inside():
    points = np.array([[-3.0, 0.0], [5.0, 60.0]])
    np.testing.assert_array_equal(
        bregman_families.within(Gamma(), points), [[0.5, 0.5], [5.0, 60.0]]
    )
    np.testing.assert_array_equal(
        bregman_families.within(Poisson(), points), [[0.5, 0.0], [5.0, 60.0]]
    )
    assert bregman_families.within("squared_euclidean", points) is points


def test_the_binomial_divergence_has_trials_for_every_number():
    few = bregman_families.divergence_for("binomial", np.array([[3.0]]))
    many = bregman_families.divergence_for("binomial", np.array([[80.0]]))
    assert (few, many) == (Binomial(50), Binomial(80.5))


def test_all_methods_of_a_trial_start_alike_and_are_scored():
    rows = bregman_families.trials("binomial", "binomial", 0, 2)
    assert len(rows) == 2 * (2 * 2 + 1)
    assert all(0 <= row["VI"] <= math.log(99) and row["ARI"] <= 1 for row in rows)
    assert kinds(rows, "start") == ["uniform", "k-means++", "its own"]


def scores(own: float, other: float):
    """Of the search on three sets of gamma clusters: lower VI is better, higher ARI and NMI."""
    start, method = bregman_families.SEARCH
    key = {"family": "gamma", "start": start, "method": method}
    found = []
    for divergence in bregman_families.MATCHING.values():
        for trial in range(3):
            vi = (own if divergence == "gamma" else other) + 0.01 * trial
            found.append({**key, "divergence": divergence, "VI": vi, "ARI": 1 - vi, "NMI": 1 - vi})
    return found


@pytest.mark.parametrize(
    ("other", "verdict"), [(0.5, "holds"), (0.3, "not decidable"), (0.1, "does not hold")]
)
def test_a_divergence_that_is_better_than_the_matching_one_refutes_it(other, verdict):
    claim = bregman_families._claim_on_matching(scores(0.3, other), "gamma")
    assert claim.verdict == verdict


def timed_fits(seconds: dict[int, float], skipped: dict[int, float]) -> list[dict]:
    """Three data sets for each number of features; fits take a second without bounds."""
    return [
        {"points": 100, "features": d, "data_set": number, "method": method, "sweeps": 10,
         "full_seconds": 1.0, "seconds": seconds[d] * (1 + 0.01 * number),
         "skipped": skipped[d], "difference": 1e-16}
        for d in seconds for number in range(3)
        for method in (*geometric_acceleration.POWERS, "Lloyd")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "skipped", "verdict"),
    [
        ({2: 0.5, 10: 0.4}, {2: 0.6, 10: 0.1}, "holds"),
        ({2: 0.5, 10: 0.9}, {2: 0.6, 10: 0.0}, "depends"),
        ({2: 1.5, 10: 1.5}, {2: 0.6, 10: 0.1}, "does not hold"),
        ({2: 0.5, 10: 0.99}, {2: 0.6, 10: 0.1}, "not decidable"),
    ],
)
def test_bounds_accelerate_where_they_leave_distances_out_and_save_time(seconds, skipped, verdict):
    rows = timed_fits(seconds, skipped)
    claim = geometric_acceleration.findings(rows).claims[0]
    assert claim.verdict == verdict
    assert f"d = 2 {1 / (1.01 * seconds[2]):.2f} (" in claim.figure
    if verdict == "depends":
        assert "leave distances out at d = 2, and none at d = 10" in claim.on


def test_fits_with_bounds_and_without_are_timed_in_turns():
    rows = geometric_acceleration.both_ways(2_500, 2, 0)
    assert len(rows) == len(geometric_acceleration.METHODS) * 2
    assert all(row["seconds"] > 0 and row["full_seconds"] > 0 for row in rows)
    assert all(row["skipped"] > 0.3 and row["difference"] < 1e-12 for row in rows)
