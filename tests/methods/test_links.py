"""Pairs of points that belong together or apart: against exhaustive search, and what is refused."""

import itertools
import pickle
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
import pytest
from problems import blobs, divisions, inertias, sq_distances
from scipy import sparse

import powermeans as pm
from powermeans import LinkedKMeans
from powermeans.engine.stopping import MaxSeconds, StopRule
from powermeans.methods.linked.coloring import Graph, NoColoringError, any_coloring
from powermeans.methods.linked.linked_kmeans import _Search
from powermeans.methods.linked.links import join_linked


def keep_links(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> np.ndarray:
    """Whether labels, one division in each row, keep the links."""
    together = labels[..., must[:, 0]] == labels[..., must[:, 1]]
    apart = labels[..., cannot[:, 0]] != labels[..., cannot[:, 1]]
    return together.all(axis=-1) & apart.all(axis=-1)


def random_problem(seed: int):
    rng = np.random.default_rng(seed)
    n_points, n_clusters = int(rng.integers(6, 11)), int(rng.integers(2, 5))
    X = rng.normal(size=(n_points, rng.integers(1, 4)))
    weights = rng.uniform(0.2, 3, n_points)
    must, cannot = (rng.integers(n_points, size=(rng.integers(most), 2)) for most in (4, 7))
    return X, weights, n_clusters, must, cannot[cannot[:, 0] != cannot[:, 1]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_300_random_problems_end_at_the_optimum_of_exhaustive_search():
    ratios, n_refused = [], 0
    for seed in itertools.count():
        X, weights, n_clusters, must, cannot = random_problem(seed)
        labels = divisions(len(X), n_clusters)
        labels = labels[keep_links(labels, must, cannot)]
        model = LinkedKMeans(n_clusters, random_state=0)
        links = {"must_link": must, "cannot_link": cannot}
        if len(labels) == 0 or len(join_linked(X, must).points) < n_clusters:
            with pytest.raises(ValueError, match=r"n_clusters=|cannot_link has"):
                model.fit(X, sample_weight=weights, **links)
            n_refused += 1
            continue
        model.fit(X, sample_weight=weights, **links)
        assert keep_links(model.labels_, must, cannot)
        of_centers = sq_distances(X, model.cluster_centers_)[np.arange(len(X)), model.labels_]
        assert model.inertia_ == pytest.approx(weights @ of_centers)
        ratios.append(model.inertia_ / inertias(X, weights, labels).min())
        if len(ratios) == 300:
            break
    assert n_refused > 20
    assert min(ratios) > 1 - 1e-9
    assert sum(ratio < 1 + 1e-9 for ratio in ratios) >= 295
    assert max(ratios) < 1.05


X = blobs(300, 3, 5).astype(np.float64)
WEIGHTS = np.random.default_rng(1).uniform(0, 2, 300)
WEIGHTS[::7] = 0.0
MUST = np.random.default_rng(2).integers(300, size=(60, 2))


@pytest.mark.parametrize("form", ["float32", "float64", "csr"])
def test_points_that_belong_together_are_one_weighted_point(form):
    given = sparse.csr_array(X * (X > 0)) if form == "csr" else X.astype(form)
    points, weights, groups, inertia = join_linked(given, MUST, sample_weight=WEIGHTS)
    assert points.dtype == given.dtype
    np.testing.assert_array_equal(groups[MUST[:, 0]], groups[MUST[:, 1]])
    np.testing.assert_allclose(weights, np.bincount(groups, WEIGHTS))
    dense = given.toarray() if form == "csr" else given
    centers = dense[:4]
    of_groups = sq_distances(points.toarray() if form == "csr" else points, centers)
    labels = np.arange(len(weights)) % 4
    expected = WEIGHTS @ sq_distances(dense, centers)[np.arange(300), labels[groups]]
    found = weights @ of_groups[np.arange(len(weights)), labels] + inertia
    assert found == pytest.approx(expected, rel=1e-6)
    ours = LinkedKMeans(5, random_state=0).fit(given, sample_weight=WEIGHTS, must_link=MUST)
    alone = pm.PowerKMeans(5, random_state=0).fit(points, sample_weight=weights)
    np.testing.assert_array_equal(ours.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_array_equal(ours.labels_, alone.labels_[groups])
    assert ours.inertia_ == alone.inertia_ + inertia


def planted(n_points: int, n_clusters: int, n_pairs: int, seed: int = 0):
    """Points without clusters, and pairs that a division planted in advance keeps apart."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_clusters, size=n_points)
    pairs = rng.integers(n_points, size=(3 * n_pairs, 2))
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]][:n_pairs]
    return rng.normal(size=(n_points, 2)), pairs


@pytest.mark.parametrize("form", ["float32", "float64", "csr"])
@pytest.mark.parametrize(("n_clusters", "n_pairs"), [(2, 400), (3, 300), (3, 2000), (9, 1000)])
def test_links_hold_on_dense_graphs_the_same_for_any_threads(form, n_clusters, n_pairs):
    points, pairs = planted(200, n_clusters, n_pairs)
    given = sparse.csr_array(points) if form == "csr" else points.astype(form)
    weights = WEIGHTS[:200]
    one, two = (
        LinkedKMeans(n_clusters, effort="fast", random_state=0, n_threads=n_threads).fit(
            given, sample_weight=weights, cannot_link=pairs
        )
        for n_threads in (1, 2)
    )
    assert (one.labels_[pairs[:, 0]] != one.labels_[pairs[:, 1]]).all()
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(given), one.predict(given))


def test_links_hold_in_a_clique_without_time_without_weight_and_without_distance():
    clique = list(itertools.combinations(range(12), 2))
    model = LinkedKMeans(12, stop=MaxSeconds(1e-9), random_state=0)
    weights = np.repeat([0.0, 1.0], [8, 292])
    links = {"must_link": [[0, 20]], "cannot_link": clique}
    labels = model.fit(X, sample_weight=weights, **links).labels_
    assert sorted(labels[:12]) == list(range(12))
    assert labels[0] == labels[20]
    model = LinkedKMeans(2, random_state=0).fit(np.ones((9, 2)), cannot_link=[[3, 4]])
    assert model.labels_[3] != model.labels_[4]
    assert model.inertia_ == 0
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize(
    ("n_clusters", "links", "message"),
    [
        (3, {"must_link": [0, 1]}, r"must_link has the shape \(2,\): pass an array of the shape"),
        (3, {"cannot_link": [[0, 1, 2]]}, r"cannot_link has the shape \(1, 3\)"),
        (3, {"must_link": [[0, 1.0]]}, "must_link has the dtype float64"),
        (3, {"must_link": [[True, False]]}, "dtype bool"),
        (3, {"must_link": [["a", "b"]]}, "dtype <U1"),
        (3, {"must_link": [[0, 1], [5, 300]]}, r"\[5, 300\] as pair 1, and X has 300 rows"),
        (3, {"cannot_link": [[-1, 5]]}, r"\[-1, 5\] as pair 0.*from 0 to 299"),
        (3, {"cannot_link": [[0, 1], [4, 4]]}, r"\[4, 4\] as pair 1, and that is one row"),
        (
            3,
            {"must_link": [[1, 2], [2, 3]], "cannot_link": [[3, 1]]},
            r"\[3, 1\] as pair 0, and must_link joins them: drop the pair",
        ),
        (1, {"cannot_link": [[7, 3]]}, "n_clusters=1 is too few: cannot_link .* rows 3, 7 apart"),
        (
            3,
            {"cannot_link": [*itertools.combinations([2, 4, 6, 8], 2), (0, 2)]},
            "n_clusters=3 is too few.* rows 2, 4, 6, 8 apart.*: ask for more clusters, or drop",
        ),
        (2, {"cannot_link": [(i, (i + 1) % 5) for i in range(5)]}, "among 5 rows: rows 0, 1, 2, 3"),
        (299, {"must_link": [[0, 1], [1, 2]]}, "n_clusters=299 is more than the 298 groups"),
    ],
)
def test_links_that_cannot_be_met_are_refused_by_their_rows(n_clusters, links, message):
    with pytest.raises(ValueError, match=message):
        LinkedKMeans(n_clusters, random_state=0).fit(X, **links)


def test_a_graph_is_colored_exactly_where_it_can_be():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n_nodes, n_colors = int(rng.integers(4, 9)), int(rng.integers(1, 5))
        pairs = [p for p in itertools.combinations(range(n_nodes), 2) if rng.random() < 0.55]
        edges = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        can = keep_links(divisions(n_nodes, n_colors), edges[:0], edges).any()
        if can:
            assert keep_links(any_coloring(Graph(edges, n_nodes), n_colors), edges[:0], edges)
            continue
        with pytest.raises(NoColoringError) as error:
            any_coloring(Graph(edges, n_nodes), n_colors)
        assert error.value.is_certain


def test_a_search_that_ends_in_doubt_says_so():
    """The graph of Mycielski has no triangle, and takes more colors with each step."""
    edges, n_nodes = [(0, 1)], 2
    for _ in range(5):
        other = [edge for a, b in edges for edge in ((a, b + n_nodes), (b, a + n_nodes))]
        edges += other + [(i + n_nodes, 2 * n_nodes) for i in range(n_nodes)]
        n_nodes = 2 * n_nodes + 1
    with pytest.raises(ValueError, match=r"may be too few: in 20,000 steps .* there may be one"):
        LinkedKMeans(6, random_state=0).fit(X, cannot_link=edges)
    labels = LinkedKMeans(7, effort="none", random_state=0).fit(X, cannot_link=edges).labels_
    assert all(labels[i] != labels[j] for i, j in edges)


def test_sparse_points_with_links_of_both_kinds_have_the_clusters_of_dense_ones() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        X = rng.integers(0, 4, size=(6, 3)).astype(float)
        rows = rng.permutation(6)
        links = {"must_link": [rows[:2]], "cannot_link": [rows[1:3], rows[3:5]]}
        dense = LinkedKMeans(2, effort="fast", random_state=0).fit(X, **links)
        other = LinkedKMeans(2, effort="fast", random_state=0).fit(sparse.csr_array(X), **links)
        assert other.inertia_ == pytest.approx(dense.inertia_, abs=1e-12)


def test_sweeps_end_far_from_the_origin_where_rounding_undoes_them(monkeypatch) -> None:
    rng = np.random.default_rng(30)
    n_points, n_clusters = int(rng.integers(10, 60)), int(rng.integers(2, 10))
    classes, X = rng.integers(n_clusters, size=n_points), rng.normal(size=(n_points, 2)) + 1e8
    pairs = rng.integers(n_points, size=(3 * n_points, 2))
    pairs = pairs[classes[pairs[:, 0]] != classes[pairs[:, 1]]]
    exchanged = Mock(side_effect=_Search.exchanged)
    monkeypatch.setattr(_Search, "exchanged", lambda *given: exchanged(*given))
    LinkedKMeans(n_clusters, random_state=0).fit(X, cannot_link=pairs)
    assert exchanged.call_count < 100


def test_a_file_of_a_table_is_prepared_for_predictions_and_for_links(tmp_path) -> None:
    lines = [f"{11 * x % 37},{7 * x % 40},{['red', 'blue'][x % 2]}" for x in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["size,age,color", *lines]))
    model = LinkedKMeans(2, random_state=0).fit(X)
    links = {"must_link": [[0, 39]], "cannot_link": [[0, 1], [5, 6]]}
    model.fit(tmp_path / "table.csv", **links)
    assert model.preparation_.columns_[0].name == "size"
    assert model.n_features_in_ == model.cluster_centers_.shape[1]
    assert keep_links(model.labels_, *map(np.array, links.values()))
    plain = LinkedKMeans(2, random_state=0).fit(tmp_path / "table.csv")
    pm.save(plain, tmp_path / "model.pm")
    for one in (plain, pm.load(tmp_path / "model.pm")):
        np.testing.assert_array_equal(one.predict(tmp_path / "table.csv"), plain.labels_)


class EndsAfter(StopRule):
    def __init__(self, n_records):
        self.n_records = n_records

    def reason(self, records):
        return "there are enough" if len(records) >= self.n_records else None


@pytest.mark.parametrize("ends", ["callback", "rule", "Ctrl-C"])
@pytest.mark.parametrize("n_more", [-1, 2])  # in the first search, and in that of the links
def test_a_fit_with_links_ends_when_it_is_told_to_and_keeps_the_best(ends, n_more, monkeypatch):
    points, pairs = planted(200, 4, 300)
    most = LinkedKMeans(4, random_state=0).fit(points).n_iter_ + n_more
    descents, heard = Mock(side_effect=_Search.descend), []
    monkeypatch.setattr(_Search, "descend", lambda *given: descents(*given))

    def callback(state):
        heard.append(state.inertia)
        if len(heard) >= most and ends == "Ctrl-C":
            raise KeyboardInterrupt
        return len(heard) >= most and ends == "callback"

    stop = EndsAfter(most) if ends == "rule" else None
    model = LinkedKMeans(4, stop=stop, callback=callback, random_state=0)
    with pytest.raises(KeyboardInterrupt) if ends == "Ctrl-C" else nullcontext():
        model.fit(points, cannot_link=pairs)
    assert len(heard) == len(model.history_) == model.n_iter_ <= most + 1
    assert descents.call_count == max(n_more, 0)
    assert (model.labels_[pairs[:, 0]] != model.labels_[pairs[:, 1]]).all()
    if n_more > 0:
        assert model.inertia_ == pytest.approx(min(heard[-n_more:]))
