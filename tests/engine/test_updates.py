"""Lost centers come back to life, and living ones are left alone."""

import numpy as np
import pytest
from kinds_of_rows import ReadAgain, cut
from problems import sq_distances
from scipy import sparse

from powermeans import KMeans, open_data
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident, Sweep
from powermeans.mathematics.rules import Hard
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows
from powermeans.scale.executors import PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedRows

SPREAD = 2.0
CENTERS = np.array([[0.0, 1.0], [5.0, 5.0], [0.0, 1.0], [3.0, 3.0], [0.0, 1.0 + 1e-9], [5.0, 5.1]])


def separate(centers, power=-3.0, spread=SPREAD, critical_power=-1.0) -> tuple[np.ndarray, int]:
    sweep = Sweep(open_rows(centers), centers, power)
    return SeparateCoincident(critical_power, spread).before(sweep), sweep.n_separated


def gaps(centers: np.ndarray) -> np.ndarray:
    return np.sqrt(sq_distances(centers, centers))[np.triu_indices(len(centers), 1)]


def test_coincident_centers_are_moved_apart_by_a_hair() -> None:
    separated, n_separated = separate(CENTERS)
    assert n_separated == 2
    moved = np.linalg.norm(separated - CENTERS, axis=1)
    assert np.count_nonzero(moved) == 2
    np.testing.assert_allclose(moved[moved > 0], 1e-6 * SPREAD, rtol=1e-6)
    assert gaps(separated).min() > 1e-7 * SPREAD
    again, n_separated = separate(separated)
    assert n_separated == 0
    assert again is separated


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_separating_knows_no_scale_and_moves_far_centers_far_enough_to_differ(scale) -> None:
    separated, n_separated = separate(scale * CENTERS, spread=scale * SPREAD)
    assert n_separated == 2
    assert gaps(separated).min() > 1e-7 * scale * SPREAD
    separated, n_separated = separate(np.full((3, 2), 1e12))
    assert n_separated == 2
    assert gaps(separated).min() > 0


POINTS = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [9.0, 9.0], [9.0, 10.0]])


def relocate(points, centers, weights=None):
    rows = open_rows(points, weights)
    sums = rows.sweep(centers, Hard())
    sweep = Sweep(rows, centers, -np.inf)
    return sums, RelocateEmpty().after(sweep, sums), sweep.n_relocated


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_an_empty_cluster_takes_the_point_of_largest_error_out_of_its_cluster(container) -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [9.0, 9.0]])
    sums, repaired, n_relocated = relocate(container(POINTS), centers)
    assert n_relocated == 1
    np.testing.assert_allclose(sums.weights, [3, 0, 2])
    np.testing.assert_allclose(repaired.weights, [2, 1, 2])
    np.testing.assert_allclose(
        repaired.centers(fallback=centers), [[0.0, 0.5], [4.0, 0.0], [9.0, 9.5]]
    )
    np.testing.assert_allclose(sums.weights, [3, 0, 2])


def test_the_next_empty_cluster_counts_with_the_one_before() -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]])
    _, repaired, n_relocated = relocate(POINTS, centers)
    assert n_relocated == 2
    # The farthest is (9, 10); then (9, 9) is near to it, and (4, 0) is the farthest.
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1:], [[9.0, 10.0], [4.0, 0.0]])


def test_weights_count_in_the_error_and_a_point_without_gets_no_cluster() -> None:
    centers = np.array([[0.0, 0.0], [500.0, 500.0]])
    _, repaired, _ = relocate(POINTS, centers, np.array([1.0, 400.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1], [0.0, 1.0])
    np.testing.assert_allclose(repaired.weights, [4, 400])
    weights = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    sums, repaired, n_relocated = relocate(POINTS, centers, weights)
    assert n_relocated == 0
    np.testing.assert_array_equal(repaired.weights, sums.weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_center_that_misses_its_points_by_rounding_is_at_them(dtype: type, offset: float):
    places = (np.random.default_rng(0).normal(size=(5, 3)) + offset).astype(dtype)
    points = np.repeat(places, 1000, axis=0)
    centers = np.vstack([points.reshape(5, 1000, 3).mean(axis=1, dtype=np.float64), [[9e3] * 3]])
    centers[:5] *= 1 + 1e-14
    _, _, n_relocated = relocate(points, centers)
    assert n_relocated == 0


def test_rounding_does_not_decide_where_coincident_centers_are_pushed():
    rng = np.random.default_rng(5)
    centers = np.concatenate([np.ones((6, 3)), [[5.0, 5, 5]]])
    pushed = [
        separate(centers + noise, np.nan, spread=1.0, critical_power=np.inf)
        for noise in 1e-16 * 2 * rng.integers(-2, 3, size=(5, 7, 3))
    ]
    for separated, n_separated in pushed:
        assert n_separated == 5
        np.testing.assert_allclose(separated, pushed[0][0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(separated[[0, 6]], centers[[0, 6]], rtol=0, atol=1e-14)


# Points in parts, of which a look at all takes a pass. The comparator says that they choose right.


class Counting(ReadAgain):
    n_passes = 0

    def read(self, numbers=None):
        self.n_passes += 1
        return super().read(numbers)


def in_parts(points):
    chunks = Counting(cut(points, None, 50))
    return PartedRows(ReadingExecutor(chunks, PartOpener(), n_threads=1)), chunks


def test_fifteen_empty_clusters_take_two_passes() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(1000, 3)), 100 * rng.normal(size=(40, 3))])
    centers = np.vstack([rng.normal(size=(5, 3)), np.full((15, 3), 1e4)])
    rows, chunks = in_parts(rng.permutation(points))
    found = []
    for of in (rows, ReferenceRows(rows.take(np.arange(1040)))):
        sums, sweep = of.sweep(centers, Hard()), Sweep(of, centers, -np.inf)
        chunks.n_passes = 0
        found.append(RelocateEmpty().after(sweep, sums))
        assert sweep.n_relocated == 15
        assert chunks.n_passes <= 2
    np.testing.assert_allclose(found[0].weights, found[1].weights)
    np.testing.assert_allclose(found[0].points, found[1].points, rtol=1e-9)


def test_a_pass_is_made_again_where_those_chosen_may_change_which_is_next() -> None:
    """All of a far group but one are near to the first of it, and only another pass knows which."""
    rng = np.random.default_rng(1)
    points = np.vstack([rng.normal(size=(300, 2)), 1000 + rng.normal(size=(300, 2))])
    rows, chunks = in_parts(rng.permutation(points))
    whole, nowhere = ReferenceRows(rows.take(np.arange(600))), np.zeros((1, 2))
    chunks.n_passes = 0
    found = list(rows.farthest(nowhere, 6))
    assert 1 < chunks.n_passes <= 6
    for far, expected in zip(found, whole.farthest(nowhere, 6), strict=True):
        assert far.point.tobytes() == expected.point.tobytes()
        assert far.sq_dist == pytest.approx(expected.sq_dist, rel=1e-9)


def test_the_farthest_points_are_known_again_from_a_checkpoint(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "points.npy", np.vstack([rng.normal(size=(900, 2)), [[50.0, 50.0]]]))
    init = np.array([[0.0, 0.0], [1e4, 1e4], [2e4, 2e4]])
    fits = []
    for _ in range(2):
        data = open_data(tmp_path / "points.npy", rows_per_part=256, checkpoint=tmp_path / "state")
        fits.append(KMeans(3, init=init, n_init=1, random_state=0).fit(data))
    assert fits[0].n_relocated_ == fits[1].n_relocated_ >= 2
    assert fits[0].cluster_centers_.tobytes() == fits[1].cluster_centers_.tobytes()
