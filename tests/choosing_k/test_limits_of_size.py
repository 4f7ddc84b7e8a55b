"""The number of clusters of limited size."""

import numpy as np
import pytest
from scipy import sparse

from powermeans import BalancedKMeans, ChoiceOfK, PowerKMeans, choose_k, open_data
from powermeans.types import FloatArray

FOUR = [50, 50, 50, 50]


def blobs(sizes: list[int]) -> FloatArray:
    """Clusters of unit variance and these sizes at the corners of a square."""
    corners = 12.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[: len(sizes)]
    noise = np.random.default_rng(0).normal(size=(sum(sizes), 2))
    return np.repeat(corners, sizes, axis=0) + noise


def chosen(points: object, k_range: object = range(2, 8), **options: object) -> ChoiceOfK:
    return choose_k(points, k_range, random_state=0, **options)


@pytest.mark.parametrize(
    ("limits", "possible"),
    [
        ({"size_max": 60}, [4, 5, 6, 7]),
        ({"size_min": 0.2}, [2, 3, 4, 5]),
        ({"balance": 1.0}, [2, 3, 4, 5, 6, 7]),
    ],
)
def test_clusters_within_the_limits_are_counted_among_the_k_that_these_leave(
    limits: dict, possible: list[int]
) -> None:
    choice = chosen(blobs(FOUR), **limits)
    assert choice.table["k"].tolist() == possible
    assert choice.verdict() == "4 groups; clear"
    model = choice.model()
    assert type(model) is BalancedKMeans
    assert {name: model.get_params()[name] for name in limits} == limits
    assert model.fit(blobs(FOUR)).sizes_.tolist() == FOUR
    np.testing.assert_allclose(choice.stability, np.ones(4), atol=0.15)


def test_inertias_are_those_of_clusters_within_the_limits() -> None:
    points = blobs([300, 100])
    choice = chosen(points, size_max=200)
    free = chosen(points)
    assert (free.recommended, free.is_clear) == (2, True)
    # Two clusters of 200 take a third of the large one away, so that they are not apart.
    assert not choice.is_clear
    assert choice.table["separation"][0] == 0
    for k in (2, 3):
        start = choice.centers[k]
        alone = BalancedKMeans(k, size_max=200, init=start, effort="none").fit(points)
        assert choice.table["inertia"][k - 2] == pytest.approx(alone.inertia_, rel=1e-3)
    assert choice.table["inertia"][0] > 5 * free.table["inertia"][0]


def test_limits_that_hold_anyway_change_nothing_that_is_said() -> None:
    points = blobs(FOUR)
    choice, free = chosen(points, size_min=10), chosen(points)
    assert choice.by_criterion == free.by_criterion
    np.testing.assert_allclose(choice.table["inertia"], free.table["inertia"], rtol=0.01)


@pytest.mark.parametrize("unit", [1.0, 0.04])
def test_sizes_are_sums_of_weights(unit: float) -> None:
    points = np.concatenate([blobs([25, 50, 50, 50]), np.full((20, 2), 6.0)])
    weights = unit * np.repeat([2.0, 1.0, 0.0], [25, 150, 20])
    choice = chosen(points, sample_weight=weights, size_min=45 * unit, size_max=55 * unit)
    assert choice.table["k"].tolist() == [4]
    sizes = choice.model().fit(points, sample_weight=weights).sizes_
    np.testing.assert_allclose(sizes, 50 * unit)


def test_a_sample_keeps_the_shares_of_the_limits() -> None:
    points = blobs([20_000, 10_000, 10_000])
    choice = chosen(points, [2, 3, 4], size_max=20_000)
    assert choice.n_sampled == 10_000
    assert (choice.recommended, choice.is_clear) == (3, True)
    halves = chosen(points, [2, 4, 5], criteria="bic", size_max=10_500)
    assert halves.table["k"].tolist() == [4, 5]
    whole = PowerKMeans(4, random_state=0).fit(points).inertia_
    assert halves.table["inertia"][0] == pytest.approx(whole, rel=0.05)


def test_sparse_points_parts_and_missing_entries_have_limits_too() -> None:
    points = blobs(FOUR)
    assert chosen(sparse.csr_array(points), size_max=60).recommended == 4
    assert chosen(open_data(points, rows_per_part=64), size_max=60).recommended == 4
    points = np.column_stack([points, points])
    points[::9, 1] = np.nan
    assert chosen(points, size_max=60, missing="observed").recommended == 4


def test_limits_that_leave_no_k_are_refused_in_words() -> None:
    points = blobs(FOUR)
    with pytest.raises(ValueError, match="size_max=20 times 7 clusters makes 140 rows, and X has"):
        chosen(points, size_max=20)
    for limits in ({"size_min": 150}, {"size_min": 150, "size_max": 160}):
        with pytest.raises(ValueError, match=r"times 2 .* at most 100, or .* at most 1 cluster$"):
            chosen(points, **limits)
    with pytest.raises(ValueError, match="The 'balance' parameter of choose_k"):
        chosen(points, balance=2)
