"""choose_k finds the number of clusters, says how sure it is, and estimators take it."""

import math
import pickle

import numpy as np
import pytest
from problems import StopsIn, on_lattice
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans.choosing_k.choose
import powermeans.choosing_k.evaluate
from benchmarks import machine
from benchmarks.choosing_k import counts, rate
from benchmarks.families import spaced
from powermeans import KMeans, PowerKMeans, choose_k, load, save
from powermeans.choosing_k import ChoiceOfK
from powermeans.choosing_k.evaluate import CRITERIA
from powermeans.engine import SweepState
from powermeans.engine.stopping import MaxSeconds
from powermeans.methods import DPMeans
from powermeans.metrics import adjusted_rand_index


@pytest.fixture(scope="module")
def of_blobs() -> ChoiceOfK:
    return choose_k(on_lattice(4), range(2, 9), random_state=0)


def test_inertia_silhouette_and_the_persistence_of_k_are_those_of_the_labels(of_blobs):
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


def test_few_places_and_separated_blobs_are_counted_and_one_cluster_undefined() -> None:
    """Every point that weighs is at a center from k = 5 on."""
    points = np.repeat([[0.0], [1.0], [10.0], [11.0], [20.0], [1e24]], 20, axis=0)
    weights = (points[:, 0] < 1e24).astype(float)
    choice = choose_k(points.astype("f4"), range(1, 6), sample_weight=weights, random_state=0)
    assert choice.table["inertia"][-1] == 0
    for name in ("bic", "calinski_harabasz", "silhouette"):
        assert choice.by_criterion[name] == 5
    undefined = {name for name, column in choice.table.items() if math.isnan(column[0])}
    assert undefined == {*CRITERIA, "separation_error"} - {"bic"}
    choice = choose_k(on_lattice(9, n_features=3), range(2, 15), random_state=0)
    assert choice.by_criterion == dict.fromkeys(CRITERIA, 9)
    assert (choice.recommended, choice.agreement) == (9, 1.0)


@pytest.mark.parametrize("kind", ["uniform", "normal", "heavy-tailed"])
def test_no_k_is_clear_where_there_are_no_clusters(kind: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(600, 5)) if kind == "uniform" else rng.standard_normal((600, 5))
    if kind == "heavy-tailed":
        points *= np.sqrt(3 / rng.chisquare(3, size=(600, 1)))
    choice = choose_k(points, range(2, 9), random_state=0)
    assert not choice.is_clear
    assert choice.by_criterion["separation"] is None
    assert choice.why.startswith("at no k above one that was tried are all")
    assert f"no clear number of groups; {choice.recommended} is" in choice.verdict()
    assert choice.verdict() in str(choice)
    assert choice.why in str(choice)
    with_one = choose_k(points, range(1, 5), random_state=0)
    assert (with_one.by_criterion["separation"], with_one.is_clear) == (1, False)


def test_the_end_of_the_range_is_the_least_number() -> None:
    choice = choose_k(on_lattice(6), range(2, 7), random_state=0)
    assert (choice.recommended, choice.certainty) == (6, "at least")
    assert choice.verdict() == "at least 6 groups"
    assert "the largest k tried" in choice.why
    assert choose_k(on_lattice(6), range(2, 8), random_state=0).is_clear
    names = ["bic", "silhouette", "calinski_harabasz"]
    choice = choose_k(on_lattice(4), range(2, 8), criteria=names, random_state=0)
    assert (choice.recommended, choice.decided_by, choice.agreement) == (4, "bic", 1.0)
    assert "without the separation" in choice.why


def test_clusters_that_k_means_cuts_are_counted() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 4
    noise = rng.standard_normal((200, 200)) / np.sqrt(rng.chisquare(3, size=(200, 1)) / 3)
    points = 8.0 * np.eye(4, 200)[labels] + noise
    choice = choose_k(points, range(2, 9), random_state=0)
    found = choice.model(4).predict(points)
    assert adjusted_rand_index(found, labels) < 0.5  # k-means cuts the longest points off instead
    assert (choice.recommended, choice.is_clear, choice.decided_by) == (4, True, "separation")
    points = np.random.default_rng(0).standard_normal((2000, 3))
    points[1::2, 0] += 2 * 1.645  # the normal distribution has 5 % beyond 1.645
    choice = choose_k(points, range(2, 8), random_state=0)
    assert (choice.recommended, choice.is_clear) == (2, True)


@pytest.mark.parametrize("seed", [1, 2])
def test_clusters_that_spread_along_all_axes_are_counted(seed: int) -> None:
    """No axis of noise is left to tell how much an axis varies by chance."""
    rng = np.random.default_rng(seed)
    centers = spaced(8, 5, 5.0, rng)
    points = centers[np.arange(400) % 8] + rng.standard_normal((400, 5))
    choice = choose_k(points, range(2, 12), criteria=["separation", "dp_means"], random_state=0)
    assert (choice.recommended, choice.is_clear) == (8, True)


# More than 30 000 points are sampled.
@pytest.mark.parametrize(("n_each", "gap"), [(150, 3.6), (1500, 2.8), (8000, 2.8)])
def test_two_clusters_that_touch_are_counted_where_another_criterion_says_so(n_each, gap) -> None:
    centers = np.repeat([[0.0, 0], [gap, 0], [30, 0], [0, 30], [30, 30]], n_each, axis=0)
    points = centers + np.random.default_rng(0).normal(size=centers.shape)
    choice = choose_k(points, range(2, 9), criteria=["separation", "bic"], random_state=0)
    assert (choice.recommended, choice.certainty, choice.agreement) == (5, "clear", 1.0)
    assert (choice.table["separation"][3] < math.sqrt(12)) == (gap < 3)


@pytest.mark.parametrize("angle", [np.pi, 2 * np.pi])
def test_parts_of_a_crescent_or_ring_are_no_clear_clusters(angle: float) -> None:
    rng = np.random.default_rng(1)
    angles = rng.uniform(0, angle, 400)
    curved = 3 * np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.repeat([[40.0, 0], [0, 40], [0, 0]], 400, axis=0) + np.tile(curved, (3, 1))
    points += 0.3 * rng.normal(size=points.shape)
    choice = choose_k(points, range(2, 9), random_state=0)
    assert not (choice.recommended > 3 and choice.is_clear)


def test_narrow_clusters_beside_the_line_fill_no_valley_between_wide_ones() -> None:
    rng, labels = np.random.default_rng(0), np.arange(200) % 4
    spreads = np.where(labels < 2, 2.0, 0.5)[:, None]
    points = 9 * np.eye(4, 100)[labels] + spreads * rng.normal(size=(200, 100))
    choice = choose_k(points, range(2, 9), random_state=0)
    assert (choice.recommended, choice.is_clear) == (4, True)


def test_a_valley_of_few_points_is_believed_where_dp_means_says_the_same_k(monkeypatch):
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


def test_the_separation_decides() -> None:
    said: dict[str, int | None] = {"separation": 5, "bic": 4, "silhouette": 3}
    decide = powermeans.choosing_k.choose._decide
    assert decide(said, {"separation": 2}, [2, 3, 4, 5, 6]) == (5, "separation")
    silent = {**said, "separation": None}
    assert decide(silent, {"separation": 2}, [2, 3, 4, 5]) == (2, "separation")
    assert decide(silent, {}, [2, 3, 4, 5]) == (4, "bic")


def test_criteria_stand_in_the_order_of_their_rates() -> None:
    cells = machine.read("choosing_k", "choosing_k")["figures"]["cells"]
    cells = [cell for cell in cells if counts(cell)]
    rates = {name: rate(cells, name) for name in CRITERIA}
    assert len(cells) >= 50
    first, *others = CRITERIA
    assert first == "separation"
    assert others == sorted(others, key=rates.__getitem__, reverse=True)


def test_the_result_reads_as_a_table(of_blobs):
    head, why, columns, *rows = str(of_blobs).splitlines()
    assert (head, why) == ("4 groups; clear", f"({of_blobs.why})")
    assert columns.split()[:2] == ["k", "inertia"]
    assert [row.split()[0] for row in rows] == [str(k) for k in range(2, 9)]
    assert [row.count("*") for row in rows] == [0, 0, 5, 0, 0, 0, 0]
    assert "nan" not in str(of_blobs)
    again = pickle.loads(pickle.dumps(of_blobs))
    assert str(again) == str(of_blobs)
    with pytest.raises(AttributeError):
        again.recommended = 3


def test_a_model_predicts_with_the_centers_of_its_k(of_blobs):
    points = on_lattice(4)
    assert isinstance(of_blobs.model(), PowerKMeans)
    truth = np.arange(400) % 4
    assert adjusted_rand_index(of_blobs.model().predict(points), truth) == 1.0
    assert len(of_blobs.model(7).cluster_centers_) == 7
    with pytest.raises(ValueError, match="k=20 was not tried"):
        of_blobs.model(20)


def test_the_callback_sees_sweeps_and_can_stop_them_as_time_does_at_once() -> None:
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
    choice = choose_k(on_lattice(4), range(2, 9), max_seconds=1e-9, random_state=0)
    assert list(choice.table["k"]) == [2]
    np.testing.assert_allclose(choice.centers[2], on_lattice(4)[:2])
    assert "tried none of 7 values of k" in str(choice)


@pytest.mark.parametrize(
    ("criteria", "lacking"),
    [(["bic"], "finish improving the clusters"), (["bic", "silhouette"], "evaluate silhouette")],
)
def test_a_stop_after_the_last_k_says_what_is_left_out(criteria: list[str], lacking: str) -> None:
    how = {"criteria": criteria, "callback": StopsIn("improving"), "random_state": 0}
    choice = choose_k(on_lattice(4), range(2, 6), **how)
    assert choice.why == f"the search ended early: it did not {lacking}"


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
    assert words[-2:] == ["comparing the numbers of clusters", "ended"]
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
    assert f"tried {len(tried)} of 13 values of k, and did not evaluate separation" in choice.why
    said = {name for name, k in choice.by_criterion.items() if k is not None}
    assert {"bic", "calinski_harabasz"} <= said <= {"bic", "calinski_harabasz", "dp_means"}


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
        (None, {"k_range": [2, 500]}, "has k=500, and there are 400 rows"),
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


def test_k_is_found_where_entries_are_missing_and_none_is_clear_in_one_cloud() -> None:
    points = make_blobs(400, 6, centers=5, cluster_std=0.6, random_state=3)[0]
    holed = np.where(np.random.default_rng(0).uniform(size=points.shape) < 0.15, np.nan, points)
    choice = choose_k(holed, range(2, 9), missing="observed", random_state=0)
    assert (choice.recommended, choice.is_clear) == (5, True)
    assert list(choice.by_criterion) == ["separation", "dp_means", "calinski_harabasz"]
    alone = PowerKMeans(5, missing="observed", random_state=0).fit(holed)
    assert choice.table["inertia"][3] == pytest.approx(alone.inertia_, rel=1e-4)
    np.testing.assert_array_equal(np.bincount(choice.model().predict(holed)) > 0, np.ones(5))
    assert (np.diff(choice.table["inertia"]) <= 0).all()
    rng = np.random.default_rng(0)
    points = rng.standard_normal((600, 5))
    points[rng.uniform(size=points.shape) < 0.2] = np.nan
    choice = choose_k(points, range(2, 9), missing="observed", random_state=0)
    assert (choice.by_criterion["separation"], choice.is_clear) == (None, False)
    for refused in (choose_k, PowerKMeans("auto").fit):
        with pytest.raises(ValueError, match='Pass missing="observed" to use only'):
            refused(points)


ESTIMATORS = pytest.mark.parametrize("kind", [KMeans, PowerKMeans])


@ESTIMATORS
def test_a_fit_chooses_the_number_that_choose_k_recommends_also_in_pipelines(kind, tmp_path):
    points = on_lattice(4)
    model = kind("auto", random_state=0).fit(points)
    assert model.n_clusters_ == choose_k(points, random_state=0).recommended == 4
    assert model.cluster_centers_.shape == (4, 2)
    assert model.n_clusters == "auto"
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").n_clusters_ == 4
    unfitted = clone(model)
    assert unfitted.n_clusters == "auto"
    assert not hasattr(unfitted, "n_clusters_")
    assert model.fit(points[points[:, 0] < 6]).n_clusters_ == 2
    pipeline = make_pipeline(StandardScaler(), kind("auto", random_state=0))
    assert len(np.unique(pipeline.fit_predict(points))) == 4
    name = f"{kind.__name__.lower()}__n_clusters"
    grid = GridSearchCV(pipeline, {name: [2, "auto"]}, cv=2).fit(points)
    assert grid.best_params_ == {name: "auto"}


def test_what_the_choice_knows_of_rows_and_what_it_cannot_know() -> None:
    few = np.array([[0.0], [1.0], [9.0]])
    found = [KMeans("auto", random_state=0).fit(few[:n]).n_clusters_ for n in (1, 2, 3)]
    assert found == [1, 1, 2]
    points = on_lattice(4)
    weights = (points[:, 0] < 6).astype(float)
    assert KMeans("auto", random_state=0).fit(points, sample_weight=weights).n_clusters_ == 2
    holed = np.column_stack([points, points])
    holed[::9, 1] = np.nan
    model = PowerKMeans("auto", missing="observed", stop=MaxSeconds(60), random_state=0)
    assert model.fit(holed).n_clusters_ == 4
    for model in (KMeans("auto", init=np.zeros((2, 2))), PowerKMeans("auto", divergence="cosine")):
        with pytest.raises(ValueError, match="n_clusters='auto' is for squared Euclidean"):
            model.fit(on_lattice(4))
