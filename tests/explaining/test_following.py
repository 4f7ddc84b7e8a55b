"""Numbers that stay, centers that stay, and what has changed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans
from powermeans import BalancedKMeans, KMeans, PowerKMeans, match_labels, plots, refit, what_changed
from powermeans.methods import OnlineKMeans


def groups(centers, n=100, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.asarray(centers, dtype=float)
    return np.repeat(centers, n, axis=0) + rng.normal(
        0, spread, (len(centers) * n, centers.shape[1])
    )


FOUR = [[0, 0], [20, 0], [0, 20], [20, 20]]


@pytest.mark.parametrize("seed", range(5))
def test_labels_in_another_order_get_their_numbers_back(seed):
    rng = np.random.default_rng(seed)
    old = rng.integers(0, 5, 200)
    new = rng.permutation(5)[old]
    np.testing.assert_array_equal(match_labels(new, old), old)


def test_new_clusters_get_new_numbers_and_those_of_dead_ones_stay_free():
    old = np.repeat([0, 1, 2, 3], 10)
    new = np.repeat([5, 3, 0, 0], 10)  # the last two are one now
    new[:4] = 1  # and a few of the first have left
    expected = np.repeat([0, 1, 2, 2], 10)
    expected[:4] = 4
    np.testing.assert_array_equal(match_labels(new, old), expected)


def test_shared_rows_decide_as_a_whole_and_not_one_by_one():
    # The first shares most with 0, but then the second would have nothing.
    old = np.array([0] * 10 + [1] * 6)
    new = np.array([0] * 4 + [1] * 6 + [0] * 6)
    np.testing.assert_array_equal(match_labels(new, old), np.array([1] * 4 + [0] * 6 + [1] * 6))


def test_clusters_that_share_less_than_half_of_either_are_not_the_same():
    old = np.repeat([0, 1, 2], 10)
    new = np.repeat([0, 1, 0, 2, 0, 1], [4, 6, 4, 6, 4, 6])  # a bit of each is one cluster now
    found = match_labels(new, old)
    assert set(found[new == 0]) == {3}
    assert set(found[new == 2]) == {1}


def test_a_jump_that_gains_less_than_it_is_worth_is_not_made():
    X = np.tile([[0.0, 0], [1.002, 0], [0, 1], [1.002, 1]], (5, 1))
    old = PowerKMeans(init=[[0.501, 0], [0.501, 1]], n_clusters=2, power=-np.inf, effort="none")
    old.fit(X)
    assert old.inertia_ == pytest.approx(5 * 1.002**2)
    model = PowerKMeans(2, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(5)
    model.cluster_centers_ = old.cluster_centers_
    assert refit(model, X).inertia_ == pytest.approx(old.inertia_)
    assert refit(model, X, worth=0.001).inertia_ == pytest.approx(5)


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_model_is_renumbered_with_all_it_has(by_rows):
    X = groups(FOUR)
    old = PowerKMeans(4, random_state=0).fit(X)
    order = np.array([2, 0, 3, 1])
    new = KMeans(4, init=old.cluster_centers_[order], n_init=1).fit(X)
    found = match_labels(new, old, X if by_rows else None)
    np.testing.assert_allclose(found.cluster_centers_, old.cluster_centers_)
    np.testing.assert_array_equal(found.labels_, old.labels_)
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    assert found.labels_.dtype == new.labels_.dtype
    np.testing.assert_array_equal(new.labels_, order.argsort()[old.labels_])  # as it was


def test_what_belongs_to_each_center_moves_with_it(tmp_path):
    X = groups(FOUR)
    new = OnlineKMeans(4, random_state=0).fit(X)
    old = KMeans.from_centers(new.cluster_centers_[[3, 1, 0, 2]])
    found = match_labels(new, old)
    order = [3, 1, 0, 2]
    named = [name for name, value in vars(new).items() if np.shape(value)[:1] == (4,)]
    assert "cluster_centers_" in named
    for name in named:
        np.testing.assert_array_equal(getattr(found, name), getattr(new, name)[order])
    powermeans.save(found, tmp_path / "model.npz")
    np.testing.assert_array_equal(powermeans.load(tmp_path / "model.npz").predict(X), found.labels_)


def test_a_model_with_more_clusters_gives_new_ones_the_last_numbers():
    old = KMeans.from_centers(FOUR)
    new = KMeans.from_centers([[50.0, 50], [20, 21], [0, 21], [20, 1], [1, 0]])
    found = match_labels(new, old)
    np.testing.assert_array_equal(found.cluster_centers_[:, 0], [1, 20, 0, 20, 50])
    np.testing.assert_array_equal(found.cluster_centers_[:, 1], [0, 1, 21, 21, 50])


def test_refit_keeps_numbers_scaling_and_names():
    names = ["a", "b"]
    april = pd.DataFrame(groups(FOUR), columns=names)
    may = pd.DataFrame(groups(np.add(FOUR, 1.5), seed=1), columns=names)
    model = make_pipeline(StandardScaler(), PowerKMeans(4, random_state=0)).fit(april)
    again = refit(model, may)
    assert again[0] is model[0]
    np.testing.assert_array_equal(again.predict(may), model.predict(april))
    expected = model[0].transform(may)
    for label in range(4):
        own = expected[again[1].labels_ == label].mean(axis=0)
        np.testing.assert_allclose(again[1].cluster_centers_[label], own)
    assert again[1].inertia_ == pytest.approx(-again.score(may))
    assert what_changed(model, again, may).stayed == 1


def test_refit_jumps_where_that_is_worth_it_and_renumbers():
    old = KMeans.from_centers([[0.0, 0], [20, 0], [0, 20]], random_state=0)
    X = groups([[0, 0], [20, 0], [90, 90]])  # the third is gone, and the second would share
    stayed = refit(KMeans.from_centers([[0.0, 0], [20, 0], [500, 500]], random_state=0), X, worth=1)
    assert stayed.cluster_centers_[2].tolist() == [500, 500]
    jumped = refit(old, np.r_[X, groups([[0, 20]], 3)])
    assert jumped.cluster_centers_[2] == pytest.approx([90, 90], abs=1)
    assert jumped.cluster_centers_[:2].round(-1).tolist() == [[0, 0], [20, 0]]


def test_kept_centers_do_not_move_and_the_others_are_means_of_the_rest():
    X = groups(FOUR)
    model = PowerKMeans(4, random_state=0).fit(X)
    found = refit(model, X + 3, keep=[1, 3])
    np.testing.assert_array_equal(found.cluster_centers_[[1, 3]], model.cluster_centers_[[1, 3]])
    for label in (0, 2):
        own = (X + 3)[found.labels_ == label].mean(axis=0)
        np.testing.assert_allclose(found.cluster_centers_[label], own)
    np.testing.assert_array_equal(found.predict(X + 3), found.labels_)
    assert found.inertia_ == pytest.approx(-found.score(X + 3))


@pytest.mark.parametrize(
    "options", [{"divergence": "cosine"}, {"divergence": "manhattan"}, {"missing": "observed"}]
)
def test_refit_goes_on_by_the_distance_of_the_model(options, tmp_path):
    X = np.abs(groups(FOUR) + 5).astype(np.float32) + np.float32(0.1)
    if "missing" in options:
        X[::7, 0] = np.nan
    model = PowerKMeans(3, random_state=0, **options).fit(X)
    found = refit(model, X, worth=1)
    assert found.cluster_centers_.dtype == np.float32
    np.testing.assert_allclose(found.cluster_centers_, model.cluster_centers_, rtol=1e-3, atol=1e-3)
    assert found.inertia_ <= model.inertia_ * (1 + 1e-5)
    powermeans.save(found, tmp_path / "model.npz")


def test_weights_count_in_refit():
    X = np.array([[0.0], [1], [10], [12]])
    found = refit(KMeans.from_centers([[0.0], [9.0]]), X, sample_weight=[3, 1, 1, 3])
    np.testing.assert_allclose(found.cluster_centers_.ravel(), [0.25, 11.5])


def test_words_say_who_grew_moved_came_and_went():
    old = PowerKMeans(4, random_state=0).fit(groups(FOUR))
    places = old.cluster_centers_.round(-1)
    far = places[:1] * 4 - 30  # nearest to the first
    now = np.r_[groups(places[:1], 300), groups(places[1:2] + 4), groups(places[2:3]), groups(far)]
    new = KMeans.from_centers(np.r_[places[:1], places[1:2] + 4, places[2:3], far])
    found = what_changed(old, new, now)
    grew, moved, shrank, is_new, gone = found.table["what"]
    assert grew == "Cluster 0 grew from 25 % to 50 % of the rows."
    assert "moved by 4" in moved
    assert moved.startswith("Cluster 1 shrank from 25 % to 17 % of the rows and ")
    assert shrank == "Cluster 2 shrank from 25 % to 17 % of the rows."
    assert is_new.startswith("Cluster 3 is new, with 17 % of the rows, from 0 (100)")
    assert gone.startswith("Cluster 3 is gone, with 25 % of the rows before")
    assert found.flows.sum() == 600
    assert found.stayed == pytest.approx(500 / 600)
    np.testing.assert_array_equal(found.flows[0, :3], [300, 0, 0])
    assert pd.DataFrame(found.table)["now"].tolist() == [0, 1, 2, 3, -1]
    assert str(found).startswith("83 % of 600 rows stay in their cluster.\nCluster 0 grew")


def test_nothing_changed_says_so_and_is_drawn_as_straight_bands():
    X = groups(FOUR)
    model = PowerKMeans(4, random_state=0).fit(X)
    found = what_changed(model, model, X)
    assert found.table["what"][0] == "Cluster 0 is as before (25 % of the rows)."
    assert found.stayed == 1
    assert len(found.plot().collections) == 4
    assert plots.flows(found).get_title() == "100 % of the rows stay in their cluster"


def test_what_cannot_be_followed_is_refused():
    X = groups(FOUR)
    with pytest.raises(ValueError, match="BalancedKMeans, and only KMeans and PowerKMeans can"):
        refit(BalancedKMeans(2, random_state=0).fit(X), X)
    with pytest.raises(ValueError, match=r"keep=\[4\] names other clusters .* 0 to 3"):
        refit(KMeans(4, random_state=0).fit(X), X, keep=[4])
    with pytest.raises(ValueError, match="3 labels, and old has 2"):
        match_labels([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="whole numbers from 0 on"):
        match_labels([0, -1], [0, 1])
    with pytest.raises(ValueError, match="pass two models, or labels of both"):
        match_labels(KMeans.from_centers([[0.0]]), [0, 0])
    with pytest.raises(ValueError, match="cannot renumber"):
        match_labels(OtherKMeans(4, n_init=1).fit(X), KMeans.from_centers(FOUR))


def test_labels_of_any_size_are_matched_and_none_have_no_match() -> None:
    found = match_labels([10**9, 10**9, 5, 5, 7], [3, 3, 10**9, 10**9, 10**9])
    np.testing.assert_array_equal(found, [3, 3, 10**9, 10**9, 10**9 + 1])
    assert len(match_labels([], [])) == 0
