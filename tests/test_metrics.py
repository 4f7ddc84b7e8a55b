import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from powermeans import KMeans, metrics
from powermeans.metrics import centroid_index, quality_ratio, variation_of_information


def entropy(labels):
    return -sum(c / len(labels) * math.log(c / len(labels)) for c in Counter(labels).values())


two_labellings = st.lists(
    st.tuples(st.integers(-2, 3), st.integers(0, 4)), min_size=1, max_size=30
).map(lambda pairs: tuple(list(labels) for labels in zip(*pairs, strict=True)))


@given(two_labellings)
def test_equal_clusterings_agree_and_information_is_that_of_the_entropies(labellings):
    u, names = labellings[0], ["a", "b", "c", "d", "e", "f"]
    renamed = [names[-label] for label in u]
    assert variation_of_information(u, renamed) == 0
    assert metrics.adjusted_rand_index(u, renamed) == 1
    assert metrics.normalized_mutual_information(u, renamed) == pytest.approx(1)
    u, v = labellings
    h_u, h_v, h_both = entropy(u), entropy(v), entropy(list(zip(u, v, strict=True)))
    for pair in ((u, v), (v, u)):
        expected = pytest.approx(2 * h_both - h_u - h_v, abs=1e-12)
        assert variation_of_information(*pair) == expected
        if h_u + h_v - h_both > 1e-9:
            expected = pytest.approx((h_u + h_v - h_both) / math.sqrt(h_u * h_v))
            assert metrics.normalized_mutual_information(*pair) == expected


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_centroid_index_is_the_larger_number_of_orphans(n_one, n_other, seed):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(n_one, 2)), rng.normal(size=(n_other, 2))

    def orphans(sources, targets):
        chosen = {min(range(len(targets)), key=lambda j: math.dist(c, targets[j])) for c in sources}
        return len(targets) - len(chosen)

    expected = max(orphans(one, other), orphans(other, one))
    assert centroid_index(one, other) == expected
    assert centroid_index(other, one) == expected


@pytest.mark.parametrize("form", ["centers", "pairs"])
@pytest.mark.parametrize("as_form", [np.asarray, sparse.csr_array])
def test_the_scatter_is_that_of_a_case_by_hand(form, as_form) -> None:
    points = as_form(np.array([[0.0], [2.0], [4.0], [10.0]]))
    # Means 2 and 10: 4 + 0 + 4; pairs (4 + 16 + 4) / 3.
    assert metrics.within_scatter(points, list("aaab"), form=form) == 8.0
    # Of 0, 2, 4, 4, whose mean is 2.5; pairs (4 + 2 * 16 + 2 * 4) / 4. No weight, no point.
    counts = np.array([1.0, 1.0, 2.0, 0.0])
    found = metrics.within_scatter(points, list("aaab"), form=form, sample_weight=counts)
    assert found == 11.0


def test_both_forms_of_the_scatter_are_the_inertia() -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(300, 4)) + 50, rng.uniform(0.1, 3, size=300)
    model = KMeans(5, random_state=0, tol=0.0).fit(points, sample_weight=weights)
    forms = [
        metrics.within_scatter(points, model.labels_, form=form, sample_weight=weights)
        for form in ("centers", "pairs")
    ]
    np.testing.assert_allclose(forms, model.inertia_, rtol=1e-12)


def test_quality_ratios_are_those_by_hand() -> None:
    points = np.array([[0.0], [3.0], [10.0]])
    # Distances 0, 3, 1 against 1, 2, 0.
    centers, reference = np.array([[0.0], [9.0]]), np.array([[1.0], [10.0]])
    assert quality_ratio(points, centers, reference) == pytest.approx(math.sqrt(10 / 5))
    unsquared = quality_ratio(points, centers, reference, form="unsquared")
    assert unsquared == pytest.approx(math.sqrt(4 / 3))
    weights = np.array([1.0, 0.0, 4.0])
    weighted = quality_ratio(points, centers, reference, sample_weight=weights)
    assert weighted == pytest.approx(math.sqrt(4 / 1))
    # To a reference without error.
    assert quality_ratio(points, points[::-1], points) == 1
    assert quality_ratio(points, points[:1], points) == math.inf


def test_partitions_are_counted_as_by_the_recurrence() -> None:
    def counted(n: int, k: int) -> int:
        """The last point is alone, or in one of the clusters of the others."""
        if n == 0 or k == 0:
            return int(n == k)
        return counted(n - 1, k - 1) + k * counted(n - 1, k)

    for n, k in itertools.product(range(1, 11), range(1, 12)):
        assert metrics.number_of_partitions(n, k) == counted(n, k)
    assert metrics.number_of_partitions(1000, 2) == 2**999 - 1
    for wrong in (0, -2, 2.5, math.inf, math.nan, None, "many"):
        with pytest.raises(ValueError, match=f"n_clusters={wrong!r} must be a whole number"):
            metrics.number_of_partitions(3, wrong)
    for many in (2**63, 10**400):
        with pytest.raises(ValueError, match=f"n_points={many} "):
            metrics.number_of_partitions(many, 2)


@pytest.mark.parametrize("name", ["adjusted_rand_index", "normalized_mutual_information"])
def test_a_point_without_a_label_is_refused(name):
    metric = getattr(metrics, name)
    with pytest.raises(ValueError, match="labels_true contains NaN: pass a label for each point"):
        metric([0, np.nan, 1, 1], [0, 0, 1, 1])
    assert metric([[0], [1], [1]], [5, 7, 7]) == 1
