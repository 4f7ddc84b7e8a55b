import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
from problems import on_lattice
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

import powermeans.choosing_k.choose
import powermeans.choosing_k.evaluate
from benchmarks import machine
from benchmarks.choosing_k import compared_rates, counts, of_one_cluster, rate
from benchmarks.families import spaced
from benchmarks.rules_for_k import _strength, gap, knee, prediction_strength
from benchmarks.sets_of_known_k import FAMILIES, WITHOUT_CLUSTERS, family_of, generated
from powermeans import ChoiceOfK, DPMeans, PowerKMeans, SweepState, choose_k
from powermeans.choosing_k.evaluate import CRITERIA
from powermeans.metrics import adjusted_rand_index


@pytest.fixture(scope="module")
def of_blobs() -> ChoiceOfK:
    return choose_k(on_lattice(4), range(2, 9), random_state=0)


def test_separated_blobs_are_counted_by_all_criteria() -> None:
    choice = choose_k(on_lattice(9, n_features=3), range(2, 15), random_state=0)
    assert choice.by_criterion == dict.fromkeys(CRITERIA, 9)
    assert (choice.recommended, choice.agreement) == (9, 1.0)


def test_inertia_and_silhouette_are_those_of_the_labels_and_that_of_a_sample_is_near(
    of_blobs,
) -> None:
    points = on_lattice(4)
    assert of_blobs.silhouette_sample == len(points)
    table, inertias = of_blobs.table, of_blobs.table["inertia"]
    for k, found, inertia in zip(table["k"], table["silhouette"], inertias, strict=True):
        assert found == pytest.approx(silhouette_score(points, of_blobs.model(k).predict(points)))
        assert inertia == pytest.approx((cdist(points, of_blobs.centers[k]).min(axis=1) ** 2).sum())
    assert (np.diff(inertias) < 0).all()
    given = {"criteria": "silhouette", "silhouette_size": 250, "random_state": 0}
    part = choose_k(points, range(2, 9), **given)
    assert part.silhouette_sample <= 250
    assert part.table["silhouette"] == pytest.approx(of_blobs.table["silhouette"], abs=0.05)
    assert (part.table["silhouette"] != of_blobs.table["silhouette"]).any()


def test_dp_means_finds_the_k_that_lasts_longest(of_blobs: ChoiceOfK) -> None:
    inertia = dict(zip(of_blobs.table["k"], of_blobs.table["inertia"], strict=True))
    lowest, highest = inertia[4] - inertia[5], inertia[3] - inertia[4]
    lasting = of_blobs.table["dp_means"][of_blobs.table["k"] == 4]
    assert lasting == pytest.approx(math.log(highest / lowest))
    for penalty in np.geomspace(1.05 * lowest, 0.95 * highest, 5):
        objectives = {k: inertia[k] + penalty * k for k in inertia}
        assert min(objectives, key=objectives.__getitem__) == 4
        alone = DPMeans(penalty=penalty).fit(on_lattice(4))
        assert alone.objective_ >= objectives[4] * (1 - 1e-9)


@pytest.mark.parametrize("weight", [1 / 400, 1e-300, 1e290])
def test_weights_that_cannot_be_counts_say_the_same_as_ones(of_blobs, weight: float) -> None:
    choice = choose_k(
        on_lattice(4), range(2, 9), sample_weight=np.full(400, weight), random_state=0
    )
    assert choice.by_criterion == of_blobs.by_criterion
    np.testing.assert_allclose(choice.table["inertia"], of_blobs.table["inertia"] * weight)
    np.testing.assert_allclose(choice.table["bic"], of_blobs.table["bic"])


def test_few_places_are_counted_and_one_cluster_is_undefined_for_all_but_the_likelihood() -> None:
    """Every point that weighs is at a center from k = 5 on."""
    points = np.repeat([[0.0], [1.0], [10.0], [11.0], [20.0], [1e24]], 20, axis=0)
    weights = (points[:, 0] < 1e24).astype(float)
    choice = choose_k(points.astype("f4"), range(1, 6), sample_weight=weights, random_state=0)
    assert choice.table["inertia"][-1] == 0
    for name in ("bic", "calinski_harabasz", "silhouette"):
        assert choice.by_criterion[name] == 5
    undefined = {name for name, column in choice.table.items() if math.isnan(column[0])}
    assert undefined == {*CRITERIA, "separation_error"} - {"bic"}


def test_the_rates_of_the_measurement_count_what_is_right() -> None:
    cells = [
        {"k": 3, "said": {"bic": 3, "the decision": 3}, "is_clear": True, "tellable": 0.99},
        {"k": 3, "said": {"bic": None, "the decision": 4}, "is_clear": True, "tellable": 0.6},
        {"k": 1, "said": {"bic": 1, "the decision": 7}, "is_clear": False, "tellable": None},
        {"k": 1, "said": {"bic": 2, "the decision": 2}, "is_clear": True, "tellable": None},
    ]
    assert rate(cells, "bic") == rate(cells, "the decision") == pytest.approx(2 / 4)
    assert [counts(cell) for cell in cells] == [True, False, False, False]


def test_rules_are_compared_by_what_they_say_without_doubt() -> None:
    def cell(group: str, k: int, said: int | None, *, is_clear: bool) -> dict:
        ours = {"the decision": said or 2, "gap": said}
        of_all = {**ours, "silhouette": 2, "prediction strength": k}
        return {"group": group, "k": k, "said": of_all, "is_clear": is_clear, "tellable": 0.99}

    cells = [
        cell("judge", 3, 3, is_clear=True),
        cell("judge", 3, 4, is_clear=True),
        cell("judge", 3, 4, is_clear=False),
        cell("judge", 4, None, is_clear=False),
        cell("one cluster", 1, 2, is_clear=False),
        cell("one cluster", 1, 1, is_clear=False),
        cell("tune", 3, 9, is_clear=True),
        {**cell("judge", 3, 9, is_clear=True), "said": {"silhouette": 3}},
    ]
    assert compared_rates(cells)[1:] == [
        ["(sets)", "4", "4", "2"],
        ["`choose_k`", "25", "25", "0"],
        ["silhouette", "0", "100", "100"],
        ["gap", "25", "50", "50"],
        ["prediction strength", "100", "0", "0"],
    ]


def test_single_clusters_of_the_comparison_are_small_and_of_all_shapes() -> None:
    some = list(of_one_cluster(100))
    assert len({known.name.split(",")[0] for known in some}) >= 40
    assert max(known.points.size for known in some) <= 20_000
    assert {known.n_clusters for known in some} == {1}


def test_sets_of_known_k_are_of_all_families_and_drawn_as_they_say() -> None:
    for first in (0, 1):
        assert {family_of(i) for i in range(first, 50, 2)} == {*FAMILIES, *WITHOUT_CLUSTERS}
    known = generated(3)
    np.testing.assert_array_equal(known.points, generated(3).points)
    assert len(np.unique(known.labels)) == known.n_clusters
    means = [known.points[known.labels == j].mean(axis=0) for j in range(known.n_clusters)]
    near = cdist(known.points, means).argmin(axis=1)
    # Round clusters of equal share: the nearest mean is as good as the true Gaussians.
    assert known.name.startswith("round")
    assert (near == known.labels).mean() == pytest.approx(known.tellable, abs=0.03)


@pytest.mark.parametrize("n_features", [5, 64, 300])
def test_blobs_are_counted_in_any_dimension(n_features: int) -> None:
    points, _ = make_blobs(500, n_features=n_features, centers=6, random_state=1)
    choice = choose_k(points, range(2, 13), random_state=0)
    assert (choice.recommended, choice.is_clear, choice.doubt) == (6, True, "")


@pytest.mark.parametrize("kind", ["uniform", "normal", "heavy-tailed"])
def test_no_k_is_clear_where_there_are_no_clusters(kind: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(600, 5)) if kind == "uniform" else rng.standard_normal((600, 5))
    if kind == "heavy-tailed":
        points *= np.sqrt(3 / rng.chisquare(3, size=(600, 1)))
    choice = choose_k(points, range(2, 13), random_state=0)
    assert not choice.is_clear
    assert choice.by_criterion["separation"] is None
    assert choice.doubt.startswith("at no k above one are all clusters apart")
    assert f"no clear number of groups; {choice.recommended} is" in choice.verdict()
    assert choice.verdict() in str(choice)
    assert choice.doubt in str(choice)
    with_one = choose_k(points, range(1, 8), random_state=0)
    assert (with_one.by_criterion["separation"], with_one.is_clear) == (1, False)


def test_the_end_of_the_range_is_not_recommended_in_silence() -> None:
    choice = choose_k(on_lattice(6), range(2, 7), random_state=0)
    assert choice.recommended == 6
    assert not choice.is_clear
    assert "the largest k tried" in choice.doubt
    assert choose_k(on_lattice(6), range(2, 8), random_state=0).is_clear


def test_clusters_of_long_and_short_points_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 4
    noise = rng.standard_normal((200, 200)) / np.sqrt(rng.chisquare(3, size=(200, 1)) / 3)
    points = 8.0 * np.eye(4, 200)[labels] + noise
    choice = choose_k(points, range(2, 9), random_state=0)
    found = choice.model(4).predict(points)
    assert adjusted_rand_index(found, labels) < 0.5  # k-means cuts the longest points off instead
    assert (choice.recommended, choice.is_clear, choice.decided_by) == (4, True, "separation")


@pytest.mark.parametrize("seed", [1, 2])
def test_clusters_that_spread_along_all_axes_are_counted(seed: int) -> None:
    """No axis of noise is left to tell how much an axis varies by chance."""
    rng = np.random.default_rng(seed)
    centers = spaced(8, 5, 5.0, rng)
    points = centers[np.arange(400) % 8] + rng.standard_normal((400, 5))
    choice = choose_k(points, range(2, 12), criteria=["separation", "dp_means"], random_state=0)
    assert (choice.recommended, choice.is_clear) == (8, True)


def test_narrow_clusters_beside_the_line_fill_no_valley_between_wide_ones() -> None:
    rng, labels = np.random.default_rng(0), np.arange(200) % 4
    spreads = np.where(labels < 2, 2.0, 0.5)[:, None]
    points = 9 * np.eye(4, 100)[labels] + spreads * rng.normal(size=(200, 100))
    choice = choose_k(points, range(2, 9), random_state=0)
    assert (choice.recommended, choice.is_clear) == (4, True)


def test_two_gaussians_that_are_told_apart_at_95_percent_are_two_clusters() -> None:
    points = np.random.default_rng(0).standard_normal((2000, 3))
    points[1::2, 0] += 2 * 1.645  # the normal distribution has 5 % beyond 1.645
    choice = choose_k(points, range(2, 8), random_state=0)
    assert (choice.recommended, choice.is_clear) == (2, True)


def test_a_valley_of_few_points_is_believed_where_dp_means_says_the_same_k(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said_of(n_points: int) -> int | None:
        points = np.random.default_rng(0).normal(size=(n_points, 2))
        points[::2] += 8.0
        names = ["separation", "bic"]
        choice = choose_k(points, range(2, 6), criteria=names, random_state=0)
        return choice.by_criterion["separation"]

    assert (said_of(16), said_of(200)) == (2, 2)
    of_three = powermeans.choosing_k.evaluate.Evaluation(np.zeros(4), 1)
    monkeypatch.setattr(powermeans.choosing_k.evaluate, "by_dp_means", lambda study: of_three)
    assert (said_of(16), said_of(200)) == (None, 2)


def test_the_separation_decides_or_guesses_and_else_the_first_that_was_asked() -> None:
    said: dict[str, int | None] = {"separation": 5, "bic": 4, "silhouette": 3}
    decide = powermeans.choosing_k.choose._decide
    assert decide(said, {"separation": 2}, [2, 3, 4, 5, 6]) == (5, "separation")
    silent = {**said, "separation": None}
    assert decide(silent, {"separation": 2}, [2, 3, 4, 5]) == (2, "separation")
    assert decide(silent, {}, [2, 3, 4, 5]) == (4, "bic")


def test_nothing_is_clear_without_the_separation() -> None:
    names = ["bic", "silhouette", "calinski_harabasz"]
    choice = choose_k(on_lattice(4), range(2, 8), criteria=names, random_state=0)
    assert (choice.recommended, choice.decided_by, choice.agreement) == (4, "bic", 1.0)
    assert "without the separation" in choice.doubt


def test_criteria_stand_in_the_order_in_which_they_were_measured_to_be_right() -> None:
    cells = machine.read("choosing_k", "choosing_k")["figures"]["cells"]
    cells = [cell for cell in cells if counts(cell)]
    rates = {name: rate(cells, name) for name in CRITERIA}
    assert len(cells) >= 50
    first, *others = CRITERIA
    assert first == "separation"
    assert others == sorted(others, key=rates.__getitem__, reverse=True)


def test_the_result_reads_as_a_table(of_blobs: ChoiceOfK) -> None:
    head, columns, *rows = str(of_blobs).splitlines()
    assert head == "4 groups; clear by separation; 5 of 5 criteria agree"
    assert columns.split()[:2] == ["k", "inertia"]
    assert [row.split()[0] for row in rows] == [str(k) for k in range(2, 9)]
    assert [row.count("*") for row in rows] == [0, 0, 5, 0, 0, 0, 0]
    assert "nan" not in str(of_blobs)
    again = pickle.loads(pickle.dumps(of_blobs))
    assert str(again) == str(of_blobs)
    with pytest.raises(AttributeError):
        again.recommended = 3


def test_a_notebook_shows_the_answer_how_sure_it_is_and_a_picture(of_blobs: ChoiceOfK) -> None:
    shown = of_blobs._repr_html_()
    assert shown.startswith("<p>4 groups; clear by separation; 5 of 5 criteria agree</p>")
    assert "comes back in 100 % of bootstrap samples" in shown
    assert shown.count("<tr>") == 8
    svg = ElementTree.fromstring(shown[shown.index("<svg") : shown.index("</svg>") + 6])
    circles, numbers = svg.findall("circle"), svg.findall("text[@text-anchor]")
    assert [text.text for text in numbers] == list("2345678")
    assert [text.text for text in numbers if text.get("font-weight") == "700"] == ["4"]
    heights = [-float(circle.get("cy", "nan")) for circle in circles]
    separation = of_blobs.table["separation"]
    np.testing.assert_allclose(np.corrcoef(heights, separation)[0, 1], 1.0, atol=1e-3)
    dashes = svg.find("path")
    assert dashes is not None
    height = -float(dashes.get("d", "").split()[1].partition("H")[0])
    np.testing.assert_array_equal(np.array(heights) > height, separation > math.sqrt(12))


def test_the_picture_numbers_few_of_many_k_and_draws_the_inertia_without_a_separation() -> None:
    choice = choose_k(on_lattice(3), range(2, 44), criteria="bic", effort="fast", random_state=0)
    shown = choice._repr_html_()
    assert "inertia by number of groups" in shown
    assert "<path" not in shown
    assert 10 < shown.count('text-anchor="middle"') <= 20
    assert f'font-weight="700" text-anchor="middle">{choice.recommended}<' in shown


def test_a_model_predicts_with_the_centers_of_its_k(of_blobs: ChoiceOfK) -> None:
    points = on_lattice(4)
    assert isinstance(of_blobs.model(), PowerKMeans)
    truth = np.arange(400) % 4
    assert adjusted_rand_index(of_blobs.model().predict(points), truth) == 1.0
    assert len(of_blobs.model(7).cluster_centers_) == 7
    with pytest.raises(ValueError, match="k=20 was not tried"):
        of_blobs.model(20)


def test_the_callback_sees_sweeps_and_can_stop_them() -> None:
    seen: list[int] = []

    def until_six(state: SweepState) -> bool:
        seen.append(len(state.centers))
        return seen[-1] > 6

    choice = choose_k(
        on_lattice(4), range(2, 15), criteria="bic", callback=until_six, random_state=0
    )
    assert choice.was_stopped
    assert list(choice.table["k"])[-1] < 14
    assert choice.recommended in choice.centers
    assert seen[-1] > 6 >= max(seen[:-1])
    with pytest.raises(ValueError, match=r"before any of \['silhouette'\] said a k"):
        choose_k(on_lattice(3), [2, 3, 4], criteria="silhouette", callback=lambda state: True)


def test_the_callback_hears_in_words_how_many_numbers_of_clusters_were_tried() -> None:
    told: list[str] = []

    class Listener:
        def __call__(self, state: SweepState) -> None:
            told.append(str(state.sweep))

        def phase(self, name: str, done: int, total: int | None) -> None:
            told.append(name)

        def fit_ended(self) -> None:
            told.append("ended")

    choose_k(on_lattice(3), range(2, 6), criteria=["bic", "dp_means"], callback=Listener())
    words = list(dict.fromkeys(line for line in told if not line.isdigit()))
    assert words[:4] == [f"{n} of 4 numbers of clusters" for n in (1, 2, 3, 4)]
    assert words[-3:] == ["criterion 1 of 2, dp means", "criterion 2 of 2, bic", "ended"]
    sweeps = [line for line in told if line.isdigit()]
    assert sweeps == [str(1 + i) for i in range(len(sweeps))]
    assert told.index("1") > told.index("1 of 4 numbers of clusters")


def test_time_that_is_up_ends_the_search_after_the_sweep_and_says_what_is_missing(monkeypatch):
    now, n_late = [0.0], []
    monkeypatch.setattr(powermeans.choosing_k.choose.time, "monotonic", lambda: now[0])

    def let_time_pass(state: SweepState) -> None:
        n_late.append(now[0] >= 200)
        now[0] += 1

    choice = choose_k(
        on_lattice(4), range(2, 15), max_seconds=200, callback=let_time_pass, random_state=0
    )
    assert len(n_late) == 200
    assert not any(n_late)
    tried = list(choice.table["k"])
    assert 2 <= len(tried) < 13
    assert tried == list(choice.centers) == list(range(2, 2 + len(tried)))
    assert (choice.was_stopped, choice.is_clear) == (True, False)
    assert f"tried {len(tried)} of 13 values of k, and did not evaluate separation" in choice.doubt
    said = {name for name, k in choice.by_criterion.items() if k is not None}
    assert {"bic", "calinski_harabasz"} <= said <= {"bic", "calinski_harabasz", "dp_means"}


def test_time_that_is_up_at_once_leaves_the_first_k_untried() -> None:
    choice = choose_k(on_lattice(4), range(2, 9), max_seconds=1e-9, random_state=0)
    assert list(choice.table["k"]) == [2]
    np.testing.assert_allclose(choice.centers[2], on_lattice(4)[:2])
    assert "tried none of 7 values of k" in str(choice)


COPIES = np.repeat(np.arange(5.0)[:, None], 10, axis=0)
HOLED = [[0.0, math.nan], [1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        *(
            (None, {"k_range": wrong}, "k_range=.* has no rising integers from 1 on")
            for wrong in ([], 8, [3, 2], [2, 2], [0, 2], [2.5], [True, 2], "23")
        ),
        (None, {"max_seconds": 0}, "'max_seconds'"),
        (None, {"k_range": [2, 500]}, "n_clusters=500"),
        (None, {"criteria": "aic"}, "names 'aic': pass"),
        (None, {"criteria": []}, r"criteria=\[\] names 'nothing'"),
        (None, {"criteria": ["bic", "aic"]}, "names 'aic'"),
        (None, {"effort": "most"}, "'effort'"),
        (None, {"silhouette_size": 1}, "'silhouette_size'"),
        (None, {"k_range": [1], "criteria": "silhouette"}, r"silhouette recommends no k in \[1"),
        (None, {"sample_weight": [-1.0] * 400}, "sample_weight contains -1"),
        (COPIES, {"k_range": range(2, 7)}, "k=6 is more than the 5 distinct rows"),
        (
            COPIES,
            {"k_range": [2, 4], "sample_weight": np.repeat([1.0, 0.0], [30, 20])},
            "k=4 is more than the 3 distinct rows",
        ),
        (HOLED, {"criteria": "silhouette", "missing": "observed"}, "needs whole points"),
        (HOLED, {"missing": "observed"}, "names 'bic', which needs whole points"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(X, options: dict, message: str) -> None:
    options = {"k_range": [2, 3], "criteria": "bic", **options}
    with pytest.raises(ValueError, match=message):
        choose_k(on_lattice(3) if X is None else X, **options)


def test_k_is_found_where_entries_are_missing() -> None:
    points = make_blobs(400, 6, centers=5, cluster_std=0.6, random_state=3)[0]
    holed = np.where(np.random.default_rng(0).uniform(size=points.shape) < 0.15, np.nan, points)
    choice = choose_k(holed, range(2, 9), missing="observed", random_state=0)
    assert (choice.recommended, choice.is_clear) == (5, True)
    assert list(choice.by_criterion) == ["separation", "dp_means", "calinski_harabasz"]
    alone = PowerKMeans(5, missing="observed", random_state=0).fit(holed)
    assert choice.table["inertia"][3] == pytest.approx(alone.inertia_, rel=1e-4)
    np.testing.assert_array_equal(np.bincount(choice.model().predict(holed)) > 0, np.ones(5))
    assert (np.diff(choice.table["inertia"]) <= 0).all()


def test_no_k_is_clear_where_entries_of_one_cloud_are_missing() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((600, 5))
    points[rng.uniform(size=points.shape) < 0.2] = np.nan
    choice = choose_k(points, range(2, 9), missing="observed", random_state=0)
    assert (choice.by_criterion["separation"], choice.is_clear) == (None, False)


BLOBS = make_blobs(200, centers=[[0, 0], [12, 0], [0, 12], [12, 12]], random_state=0)[0]
CLOUD = np.random.default_rng(0).uniform(size=(200, 2))


@pytest.mark.parametrize(
    ("inertias", "expected"),
    [
        ([9.0, 1.0, 0.9, 0.8, 0.7], 1),
        ([9.0, 5.0, 1.0, 0.9, 0.8], 2),
        ([5.0, 4.0, 3.0, 2.0, 1.0], None),
        ([1.0, 1.0, 1.0], None),
        ([2.0, 1.0], None),
        # Scaled to one, the first of two bends is 0.33 below the line, and the second 0.37.
        ([100, 55, 54, 53, 52, 1, 0.9, 0.8, 0.7], 5),
        # At 1 and 2 the curve is 1/3 below the line: the first of equals.
        ([3.0, 1.0, 0.0, 0.0], 1),
        # A curve above the line has no knee.
        ([9.0, 8.0, 6.0, 1.0], None),
    ],
)
def test_the_knee_is_the_largest_bend(inertias: list[float], expected: int | None) -> None:
    assert knee(range(1, len(inertias) + 1), inertias) == expected


def test_the_strength_is_that_of_the_worst_cluster_by_hand() -> None:
    # Of the three pairs of the first cluster one stays together, of the second its only one.
    own, predicted = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert _strength(own, predicted, 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("rule", [gap, prediction_strength])
def test_a_rule_counts_four_blobs_and_one_cloud(rule) -> None:
    assert rule(BLOBS, [1, 2, 3, 4, 5, 6], np.random.default_rng(0)) == 4
    assert rule(CLOUD, [1, 2, 3, 4], np.random.default_rng(0)) == 1
