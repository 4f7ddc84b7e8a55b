import itertools
from collections.abc import Callable

import numpy as np
import pytest
from problems import on_lattice
from scipy.special import softmax
from scipy.stats import norm
from sklearn.cluster import AgglomerativeClustering
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import powermeans.choosing_k.evaluate
from benchmarks import one_cluster_sets
from powermeans import KMeans, PowerKMeans, choose_k, stability
from powermeans.choosing_k.evaluate import draws_by_distance, draws_by_feature
from powermeans.choosing_k.stability import jaccards, mean_jaccards
from powermeans.types import FloatArray


def mixed(root: FloatArray) -> Callable[[FloatArray], FloatArray]:
    return lambda normal: normal @ root.T


def in_a_ball(normal: FloatArray) -> FloatArray:
    """Return points of even density, in the same directions."""
    n, d = normal.shape
    lengths = np.linalg.norm(normal, axis=1)
    shares = (np.argsort(np.argsort(lengths)) + 0.5) / n
    return normal / lengths[:, None] * shares[:, None] ** (1 / d)


LAGS = np.abs(np.arange(30)[:, None] - np.arange(30))
SHAPES: list[tuple[Callable[[FloatArray], FloatArray], int, int]] = [
    (lambda normal: normal, 3_000, 20),
    (norm.cdf, 4_000, 15),
    (lambda normal: np.exp(0.6 * normal), 4_000, 12),
    (lambda normal: normal[:, 1:] + 1.5 * normal[:, :1], 2_000, 13),
    (mixed(np.linalg.cholesky(0.9**LAGS)), 2_000, 30),  # autoregressive
    (mixed(np.diag(np.arange(1, 51) ** -0.5)), 1_000, 50),
    (lambda normal: softmax(normal, axis=1)[:, :8], 2_000, 9),
    (in_a_ball, 5_000, 2),
    (in_a_ball, 5_000, 3),
    (lambda normal: 1.0 * (normal[:, 1:] + normal[:, :1] > 0.3), 1_000, 7),  # zeros and ones
]


@pytest.mark.parametrize(("shape", "n", "d"), SHAPES)
def test_one_cluster_is_not_clear(shape, n: int, d: int) -> None:
    points = shape(np.random.default_rng(0).normal(size=(n, d)))
    choice = choose_k(points, criteria="separation", effort="fast", random_state=0)
    assert not choice.is_clear


def test_a_single_cluster_that_is_as_far_apart_takes_clearness_away(monkeypatch) -> None:
    points = np.random.default_rng(0).normal(size=(300, 2))
    points[::2] += 8.0

    def themselves(points, counts, rng):
        return itertools.repeat(points)

    assert choose_k(points, range(2, 5), random_state=0).is_clear
    monkeypatch.setattr(powermeans.choosing_k.evaluate, "draws_by_feature", themselves)
    choice = choose_k(points, range(2, 5), random_state=0)
    assert (choice.recommended, choice.is_clear) == (2, False)


DRAWN_AGAIN = one_cluster_sets.OneClusterSet("rows drawn again", 300, 50, 4003).points()
REPEATED = np.repeat(np.random.default_rng(4).normal(size=(40, 4)), 25, axis=0)


@pytest.mark.parametrize("points", [DRAWN_AGAIN, REPEATED], ids=["drawn again", "repeated"])
def test_copies_of_one_cluster_are_not_clear(points: FloatArray) -> None:
    assert not choose_k(points, random_state=0).is_clear


def test_draws_keep_the_shape_of_one_cluster_and_the_noise_of_correlations_once() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4_000, 2))
    points = np.column_stack([np.exp(0.5 * z[:, 0]), z[:, 0] + z[:, 1]])
    drawn = next(draws_by_feature(points, np.ones(4_000), np.random.RandomState(0)))
    np.testing.assert_allclose(drawn.mean(axis=0), points.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), points.std(axis=0), rtol=0.1)
    together = np.corrcoef(np.log(drawn[:, 0]), drawn[:, 1])[0, 1]
    assert together == pytest.approx(np.sqrt(0.5), abs=0.05)
    normal = np.random.default_rng(0).normal(size=(2_000, 30))
    drawn = next(draws_by_feature(normal, np.ones(2_000), np.random.RandomState(0)))
    between = np.corrcoef(drawn, rowvar=False)[np.triu_indices(30, 1)]
    assert 0.7 < np.mean(between**2) * 2_000 < 1.4  # one on average, and two if they had it twice


def test_draws_by_distance_keep_densities_and_fill_valleys_and_holes() -> None:
    ball = in_a_ball(np.random.default_rng(0).normal(size=(4_000, 3)))
    points = ball * [1.0, 10.0, 0.0] + [5.0, 0.0, 2.0]  # a disk in the middle is dense
    drawn, other = itertools.islice(
        draws_by_distance(points, np.ones(4_000), np.random.RandomState(0)), 2
    )
    assert not np.array_equal(drawn, other)
    np.testing.assert_allclose(drawn.mean(axis=0), points.mean(axis=0), atol=0.3)
    np.testing.assert_allclose(drawn.std(axis=0), points.std(axis=0), rtol=0.05, atol=1e-12)
    shares = [
        np.quantile(np.hypot(p[:, 0] - 5, p[:, 1] / 10), [0.1, 0.5, 0.9]) for p in (points, drawn)
    ]
    np.testing.assert_allclose(*shares, atol=0.03)
    points = np.random.default_rng(0).normal(size=(3_000, 1))
    points[::2] += 8.0
    drawn = next(draws_by_feature(points, np.ones(3_000), np.random.RandomState(0)))
    in_the_valley = ((drawn > 3) & (drawn < 5)).mean()
    assert ((points > 3) & (points < 5)).mean() < 0.01
    assert in_the_valley > 0.1
    points = 2.5 * np.random.default_rng(0).poisson(1.5, size=(4_000, 1))
    points[points == 5.0] = 7.5  # a hole that one cluster does not have
    drawn = next(draws_by_feature(points, np.ones(4_000), np.random.RandomState(0)))
    np.testing.assert_array_equal(drawn % 2.5, 0.0)
    assert (drawn == 5.0).mean() > 0.1
    assert (drawn == 0.0).mean() == pytest.approx((points == 0.0).mean(), abs=0.03)


@pytest.mark.parametrize("draws", [draws_by_feature, draws_by_distance])
def test_draws_have_the_same_bits_for_any_number_of_threads_of_blas(draws) -> None:
    points, counts = np.random.default_rng(0).normal(size=(600, 300)), np.ones(600)
    drawn = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            drawn.append(next(draws(points, counts, np.random.RandomState(0))))
    assert np.array_equal(*drawn)


def test_means_are_over_the_samples_that_have_a_cluster() -> None:
    labels = np.array([0] * 50 + [1])
    rng, again = np.random.RandomState(0), np.random.RandomState(0)
    found = mean_jaccards(labels, lambda drawn: np.zeros(len(drawn), dtype=int), 8, rng)
    drawn = [np.unique(again.randint(51, size=51)) for _ in range(8)]
    shares = [np.mean(labels[some] == 0) for some in drawn]
    assert found[0] == pytest.approx(np.mean(shares))
    assert found[1] == pytest.approx(np.mean([1 - s for s in shares if s < 1]))


@pytest.mark.parametrize("model", [PowerKMeans(3), KMeans("auto"), AgglomerativeClustering(3)])
def test_clusters_that_are_apart_come_back(model) -> None:
    points = on_lattice(3, n_points=300)
    found = stability(model.fit(points), points, n_samples=10, random_state=0)
    np.testing.assert_allclose(found.jaccard, 1.0)
    assert str(found).splitlines()[0] == "cluster 0 comes back in 100 % of the samples"


def test_halves_of_a_round_cluster_do_not_come_back_unless_a_warm_start_finds_them() -> None:
    points = on_lattice(3, n_points=300)
    points[::3] = points[::3] * 3 - 40.0  # one wide cluster far from two others
    model = KMeans(4, n_init=10, random_state=0).fit(points)
    found = stability(model, points, random_state=0)
    is_half = np.bincount(model.labels_) < 90
    assert is_half.sum() == 2
    assert found.jaccard[is_half].max() < 0.85
    assert found.jaccard[~is_half].min() > 0.95
    points = on_lattice(3, n_points=240)
    model = KMeans(4, n_init=10, random_state=0).fit(points)
    is_half = np.bincount(model.labels_) < 60
    cold = as_clusterboot(points, model.labels_, n_starts=1, n_samples=40).mean(axis=0)
    found = stability(model, points, n_samples=40, random_state=0).jaccard
    assert is_half.sum() == 2
    assert (found[is_half] > cold[is_half]).all()


def as_clusterboot(points, labels, n_starts, n_samples):
    """Return the similarities of each sample as fpc computes them: unique points, cold starts."""
    rng, n_clusters = np.random.default_rng(1), labels.max() + 1
    found = np.empty((n_samples, n_clusters))
    for b in range(n_samples):
        drawn = np.unique(rng.integers(len(points), size=len(points)))
        model = TheirKMeans(n_clusters, n_init=n_starts, random_state=b)
        with threadpool_limits(1):  # of few points several threads are slow
            model.fit(points[drawn])
        for j in range(n_clusters):
            own = labels[drawn] == j
            others = [model.labels_ == i for i in range(n_clusters)]
            found[b, j] = max((own & other).sum() / (own | other).sum() for other in others)
    return found


@pytest.mark.parametrize(("apart", "n_clusters"), [(12.0, 3), (12.0, 4), (2.5, 3)])
def test_shares_are_those_of_clusterboot_up_to_the_error_of_their_means(apart, n_clusters):
    """Three clusters are apart, or one of them is cut in two, or all overlap."""
    points = on_lattice(3, n_points=240, apart=apart)
    model = KMeans(n_clusters, n_init=10, random_state=0).fit(points)
    expected = as_clusterboot(points, model.labels_, n_starts=5, n_samples=40)
    found = stability(model, points, n_samples=100, random_state=0).jaccard
    errors = expected.std(axis=0, ddof=1) * np.sqrt(1 / 40 + 1 / 100)
    assert (np.abs(found - expected.mean(axis=0)) <= 4 * errors + 1e-12).all()
    assert (errors.max() > 0) == (n_clusters == 4 or apart < 12)


def test_a_choice_tells_how_much_of_each_cluster_comes_back() -> None:
    choice = choose_k(on_lattice(3, n_points=300), range(2, 7), random_state=0)
    np.testing.assert_allclose(choice.stability, np.ones(3))
    shown = choice._repr_html_()
    assert "comes back in 100 % of bootstrap samples" in shown
    assert shown.startswith(f"<pre>{str(choice).splitlines()[0]}\n")
    assert str(choice) in shown
    assert choose_k(on_lattice(3, n_points=30), range(2, 4), random_state=0).stability is None
    with pytest.raises(ValueError, match="The 'n_samples' parameter of stability"):
        stability(KMeans(2).fit([[0.0], [9.0]]), [[0.0], [9.0]], n_samples=0)
    with pytest.raises(ValueError, match="fitted to 3 points, while X has 2: pass the X of its"):
        stability(AgglomerativeClustering(2).fit([[0.0], [1.0], [9.0]]), [[0.0], [9.0]])


def test_a_pipeline_is_as_stable_as_its_last_step() -> None:
    points = on_lattice(3, n_points=300)
    pipeline = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(points)
    found = stability(pipeline, points, n_samples=5, random_state=0).jaccard
    scaled = pipeline[0].transform(points)
    of_last = stability(pipeline[-1], scaled, n_samples=5, random_state=0).jaccard
    np.testing.assert_array_equal(found, of_last)


def test_a_file_is_as_stable_as_its_array_and_a_table_as_its_points(tmp_path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    np.save(tmp_path / "rows.npy", X)
    np.savetxt(tmp_path / "rows.csv", X, "%.3f", ",", header="a,b", comments="")
    for file in (tmp_path / "rows.npy", tmp_path / "rows.csv"):
        model = KMeans(3, random_state=0).fit(file)
        points = X if file.suffix == ".npy" else model.preparation_.transform(X)
        of_points = KMeans(3, random_state=0).fit(points), points
        of_both = [stability(*of, n_samples=2, random_state=0) for of in ((model, file), of_points)]
        np.testing.assert_array_equal(of_both[0].jaccard, of_both[1].jaccard)


def test_jaccards_by_hand() -> None:
    labels, others = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 5, 1, 1, 1, 0])
    np.testing.assert_allclose(jaccards(labels, others, 4), [2 / 3, 2 / 3, 1.0, np.nan])
