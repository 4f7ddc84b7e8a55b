"""Rules: what they cost, what they say, and that no plain tree is cheaper."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from powermeans import KMeans, PowerKMeans, Prepare, explain, plots
from powermeans.explaining.explanation import _sample
from powermeans.explaining.tree import Grower
from powermeans.methods import SpectralClustering
from powermeans_tables.preparing.features import FeatureOfColumn as Feature
from powermeans_tables.preparing.kinds import Column


def cost_of(model, X, labels, weights=None):
    """The sum of squares of rows to the centers of their labels, by the definition."""
    apart = np.square(X - model.cluster_centers_[labels]).sum(axis=1)
    return float(np.sum(apart if weights is None else weights * apart))


def plain_tree(model, X, n_leaves):
    """The labels by a plain decision tree whose leaves take the labels that cost least."""
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0).fit(X, model.labels_)
    leaves, labels = tree.apply(X), np.empty(len(X), dtype=int)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        costs = [
            cost_of(model, X[rows], np.full(rows.sum(), j))
            for j in range(len(model.cluster_centers_))
        ]
        labels[rows] = int(np.argmin(costs))
    return labels


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("times", [1, 2])
def test_price_is_that_of_the_definition_and_no_plain_tree_is_cheaper(load, times):
    X = load().data / load().data.std(axis=0).clip(0.1)
    model = PowerKMeans(6, effort="fast", random_state=0).fit(X)
    found = explain(model, X, n_leaves=6 * times)
    labels = found.predict(X)
    assert found.price == pytest.approx(cost_of(model, X, labels) / model.inertia_ - 1)
    assert found.kept == pytest.approx(np.mean(labels == model.labels_))
    assert found.n_leaves <= 6 * times
    plain = cost_of(model, X, plain_tree(model, X, 6 * times)) / model.inertia_ - 1
    assert found.price <= plain * (1 + 1e-9) + 1e-12


def test_clusters_that_columns_tell_apart_cost_nothing():
    X = np.array([[0.0, 0], [0, 1], [9, 0], [9, 1], [0, 9], [1, 9]])
    model = KMeans(3, random_state=0).fit(X)
    found = explain(model, X)
    assert (found.price, found.kept, found.n_leaves) == (0, 1, 3)
    assert {rule.precision for rule in found.rules + found.descriptions} == {1.0}
    assert sum(rule.share for rule in found.rules) == pytest.approx(1)


def test_each_row_meets_one_rule_and_shares_and_precision_count_them():
    X = load_wine().data
    model = make_pipeline(StandardScaler(), PowerKMeans(4, random_state=0)).fit(X)
    found = explain(model, X, n_leaves=8)
    labels, by_rules = model.predict(X), found.predict(X)
    for label in range(4):
        own = [rule for rule in found.rules if rule.label == label]
        assert sum(rule.share for rule in own) == pytest.approx(np.mean(by_rules == label))
        both = np.mean((by_rules == label) & (labels == label))
        assert sum(rule.share * rule.precision for rule in own) == pytest.approx(both)
        assert sum(rule.coverage for rule in own) == pytest.approx(both / np.mean(labels == label))


def test_a_weight_counts_like_copies():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    weights = rng.integers(0, 4, size=150)
    model = PowerKMeans(4, random_state=0).fit(X, sample_weight=weights)
    found = explain(model, X, sample_weight=weights, n_leaves=6)
    copies = explain(model, np.repeat(X, weights, axis=0), n_leaves=6)
    assert str(found) == str(copies)
    assert found.price == pytest.approx(copies.price)


def test_auto_adds_rules_while_they_are_worth_it():
    rng = np.random.default_rng(0)
    line = np.c_[rng.uniform(0, 1, 900), rng.uniform(0, 1, 900)]
    turned = line @ [[1, -1], [1, 1]]
    model = PowerKMeans(4, random_state=0).fit(turned)
    auto = explain(model, turned)
    prices = {n: explain(model, turned, n_leaves=n).price for n in (4, auto.n_leaves)}
    assert 4 < auto.n_leaves <= 16
    assert prices[4] > 0.05
    assert auto.price == prices[auto.n_leaves] < prices[4]


def test_missing_values_go_the_way_that_the_rules_tell():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (100, 2)), rng.normal(9, 1, (100, 2))]
    X[:30, 0] = np.nan  # only in the first cluster
    model = PowerKMeans(2, missing="observed", random_state=0).fit(X)
    found = explain(model, X, n_leaves=2)
    assert found.kept == 1
    (near,) = [rule for rule in found.rules if rule.label == model.labels_[0]]
    assert near.precision == near.coverage == 1
    if "column 0" in near.text:
        assert near.text.endswith("or missing")


def test_missing_values_go_to_the_side_on_which_they_cost_least():
    values = np.array([[0.0], [1], [9], [10], [np.nan], [np.nan]])
    for side in (0, 1):
        costs = np.array([[0.0, 0, 1, 1, side, side], [1.0, 1, 0, 0, 1 - side, 1 - side]])
        centers, round_half = np.array([[0.5], [9.5]]), lambda feature, low, high: (low + high) / 2
        grower = Grower(values, costs, np.ones(6), centers, round_half)
        *_, last = grower.grown()
        assert (last.cost, last.n_leaves, last.root.missing_left) == (0, 2, side == 0)
        assert last.root.predict(values).tolist() == [0, 0, 1, 1, side, side]


@pytest.mark.skipif(sklearn.__version__ < "1.8", reason="trees of scikit-learn do so from 1.8 on")
def test_a_plain_tree_may_part_missing_values_from_all_others():
    values = np.array([[1.0], [1], [np.nan], [np.nan]])
    costs = np.array([[0.0, 0, 1, 1], [1.0, 1, 0, 0]])
    grower = Grower(
        values, costs, np.ones(4), np.array([[1.0], [1]]), lambda feature, low, high: low
    )
    plain = grower.plain(np.array([0, 0, 1, 1], dtype=np.int32), 2)
    assert plain.predict(values).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("n_leaves", [5, 6])
def test_a_plain_tree_that_is_cheaper_is_taken(n_leaves):
    X = load_iris().data
    found = explain(PowerKMeans(3, random_state=0).fit(X), X, n_leaves=n_leaves)
    assert (found.is_plain, found.price) == (True, 0)


def test_rules_speak_in_the_units_and_words_of_the_table():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 60)
    frame = pd.DataFrame(
        {
            "plan": np.array(["free", "team", "firm"])[kind],
            "price": [f"{v:.2f} EUR" for v in rng.normal([5, 50, 50], 1, (60, 3)).T.ravel()],
            "sure": np.array(["low", "medium", "high"])[(kind == 2) * 2],
        }
    )
    model = make_pipeline(Prepare(), PowerKMeans(3, random_state=0)).fit(frame)
    found = explain(model, frame)
    said = " and ".join(rule.text for rule in found.rules + found.descriptions)
    assert found.kept == 1
    assert "plan is " in said
    assert np.array_equal(found.predict(frame), model.predict(frame))
    feature = Feature("price", Column("price", "amount", unit="EUR"))
    assert feature.phrase(-np.inf, 20.0) == "price <= 20 EUR"
    assert feature.phrase(20.0, 30.5) == "20 EUR < price <= 30.5 EUR"
    share = Feature("sale", Column("sale", "share", unit="%"))
    assert share.phrase(0.12, np.inf) == "sale > 12 %"
    scale = Column("sure", "ordered", words=["low", "medium", "high"], levels=[1, 2, 3])
    assert Feature("sure", scale).phrase(1.5, np.inf) == "sure is medium or high"
    answer = Feature("smokes", Column("smokes", "yes/no"))
    assert [answer.phrase(-np.inf, 0.5), answer.phrase(0.5, np.inf)] == [
        "smokes is no",
        "smokes is yes",
    ]
    day = Feature("since", Column("since", "date"))
    assert day.phrase(-np.inf, 19723.0) == "since <= 2024-01-01"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        *((42, 43, 42), (0.123, 0.897, 0.5), (41.7, 42.9, 42), (1e6, 1e6 + 3, 1e6), (-0.2, 0.1, 0)),
        *((low, np.nextafter(low, np.inf), low) for low in (0.12573, 3.4558, 1.8905e3, 2.0409e6)),
    ],
)
def test_thresholds_have_few_digits_and_part_the_same_values(low, high, expected):
    found = Feature("x", Column("x", "number")).roundest(low, high)
    assert found == expected
    assert low <= found < high


def test_other_distances_and_models_are_explained():
    rng = np.random.default_rng(0)
    X = np.abs(np.repeat(rng.normal(size=(3, 4)), 50, axis=0) + rng.normal(0, 0.1, (150, 4))) + 0.1
    for divergence in ("cosine", "manhattan", "poisson"):
        model = PowerKMeans(3, divergence=divergence, random_state=0).fit(X)
        found = explain(model, X)
        distances = model.transform(X)
        paid = distances[np.arange(150), found.predict(X)].sum()
        assert found.price == pytest.approx(paid / distances.min(axis=1).sum() - 1)
        assert found.sentence.endswith("of the sum of distances")
    theirs = SklearnKMeans(3, n_init=1, random_state=0).fit(X)
    assert (
        explain(theirs, X).price == explain(KMeans.from_centers(theirs.cluster_centers_), X).price
    )
    assert explain(SpectralClustering(3, random_state=0).fit(X), X).kept > 0.9


def test_a_sample_of_many_rows_gives_rules_for_all():
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 5, (6, 5))
    X = np.r_[centers[rng.integers(5, size=30_000)], np.repeat(centers[5:], 40, axis=0)]
    X += rng.normal(size=X.shape)
    model = KMeans.from_centers(centers)
    found = explain(model, X)
    labels = model.predict(X)
    assert found.price == pytest.approx(
        cost_of(model, X, found.predict(X)) / cost_of(model, X, labels) - 1
    )
    assert found.price < 0.1
    assert found.descriptions[5].coverage > 0.5  # of a cluster that a small sample would miss


def test_a_sample_weighs_as_much_as_all_rows_of_each_cluster():
    labels = np.repeat([0, 1, 2], [50_000, 90, 3_000]).astype(np.int32)
    weights = np.random.default_rng(0).uniform(size=len(labels))
    rows, of_sample = _sample(labels, weights, 3, 8_000)
    assert len(rows) == len(set(rows)) < 8_500
    for label in range(3):
        own = labels[rows] == label
        assert own.sum() >= min(200, np.sum(labels == label))
        assert of_sample[own].sum() == pytest.approx(weights[labels == label].sum())


def test_one_cluster_and_equal_rows_have_one_rule():
    found = explain(KMeans(1).fit([[0.0], [1.0]]), [[0.0], [1.0]])
    assert [rule.text for rule in found.rules] == ["any row"]
    assert found.sentence == (
        "1 rule keeps 100 % of the rows in their cluster and costs 0 % of the sum of squares"
    )
    same = explain(KMeans.from_centers([[0.0], [9.0]]), [[0.0], [0.0]])
    assert "Cluster 1 has no rows here" in str(same)


def test_too_few_leaves_and_sparse_rows_are_refused():
    from scipy import sparse

    X = np.array([[0.0, 0], [1, 0], [8, 1]])
    model = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_leaves=2 is less than 3"):
        explain(model, X, n_leaves=2)
    with pytest.raises(ValueError, match=r"pass X\.toarray"):
        explain(model, sparse.csr_matrix(X))


def test_the_tree_is_drawn_with_its_leaves():
    X = load_iris().data
    found = explain(PowerKMeans(3, random_state=0).fit(X), X, n_leaves=4)
    texts = [text.get_text() for text in found.plot().texts]
    assert sum(text.startswith("cluster") for text in texts) == found.n_leaves
    assert len(texts) == 2 * found.n_leaves - 1
    assert plots.rules(found).get_title().startswith(found.sentence)


@pytest.mark.parametrize("offset", [1.7e9, 1e60])
def test_values_that_float32_cannot_part_or_hold_are_parted(offset):
    X = np.repeat([[0.0], [1], [2], [3]], 5, axis=0) * (offset * 2e-10) + offset
    model = KMeans(4, random_state=0, n_init=5).fit(X)
    found = explain(model, X)
    assert (found.kept, found.n_leaves) == (1, 4)
    np.testing.assert_array_equal(found.predict(X), model.labels_)


def test_many_columns_are_described_by_those_that_tell_a_cluster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 80))
    X[:100, 70] += 12
    model = KMeans.from_centers([X[:100].mean(axis=0), X[100:].mean(axis=0)])
    (first, second) = explain(model, X).descriptions
    assert first.text.startswith("column 70 > ")
    assert second.text.startswith("column 70 <= ")
    assert first.precision == second.coverage == 1
