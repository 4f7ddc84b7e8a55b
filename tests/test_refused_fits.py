"""A fit that is refused leaves what was there before, and is refused again."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans import KMeans, MiniBatchPowerKMeans, OnlineKMeans, PowerKMeans, open_data

POINTS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize(
    ("points", "wrong"),
    [
        (POINTS[:9], "n_clusters"),
        (POINTS * 1e-200, "squared distances would vanish"),
    ],
    ids=["too few", "too near"],
)
def test_what_is_refused_is_refused_again_beside_its_checkpoint(tmp_path, points, wrong):
    data = open_data([points], rows_per_part=20, checkpoint=tmp_path / "state")
    for _ in range(2):
        with pytest.raises(ValueError, match=wrong):
            KMeans(10, random_state=0).fit(data)


@pytest.mark.parametrize(
    ("weight", "scale", "wrong"),
    [
        (5e-324, 1.0, "sample_weight is at most 4.94e-324.*divide it by 5e-324"),
        (1e-290, 1e-20, "sample_weight adds up to 6e-289 and X varies by.*sample_weight by 6e-289"),
    ],
)
def test_weights_whose_sums_would_lose_digits_are_refused(weight, scale, wrong):
    weights = np.full(60, weight)
    with pytest.raises(ValueError, match=wrong):
        KMeans(3, random_state=0).fit(POINTS * scale, sample_weight=weights)

    def fit_in_parts():
        KMeans(3, random_state=0).fit(open_data(POINTS * scale, weights=weights, rows_per_part=20))

    with pytest.raises(ValueError, match=wrong):
        fit_in_parts()


def test_equal_points_whose_products_with_weights_would_vanish_are_refused():
    points, weights = np.full((7, 2), 1e-142), np.full(7, 1e-295)
    wrong = "sample_weight adds up to 7e-295 and X has no value above 1e-142.*weight by 7e-295"
    with pytest.raises(ValueError, match=wrong):
        PowerKMeans(2, divergence="gamma", random_state=0).fit(points, sample_weight=weights)
    with pytest.raises(ValueError, match=wrong):
        KMeans(2, random_state=0).fit(open_data(points, weights=weights, rows_per_part=3))


@pytest.mark.parametrize(("weight", "scale"), [(1e-290, 1.0), (0.01, 1e-150)])
def test_small_weights_whose_sums_of_squares_have_their_digits_are_taken(weight, scale):
    plain = KMeans(3, random_state=0).fit(POINTS)
    model = KMeans(3, random_state=0).fit(POINTS * scale, sample_weight=np.full(60, weight))
    assert model.inertia_ / weight / scale / scale == pytest.approx(plain.inertia_, rel=1e-9)


def test_a_checkpoint_that_knows_the_rows_but_not_that_they_are_right_looks_again(tmp_path):
    data = open_data(POINTS, rows_per_part=20, checkpoint=tmp_path / "state")
    fitted = KMeans(3, random_state=0).fit(data)
    again = KMeans(3, random_state=0).fit(data)
    np.testing.assert_array_equal(fitted.cluster_centers_, again.cluster_centers_)


def test_centers_keep_the_scaling_that_they_are_of():
    model = KMeans(3, random_state=0).fit(open_data(POINTS, scale="standard"))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((9, 3), np.nan))
    with pytest.raises(ValueError, match="fitted with scaled columns"):
        model.score(POINTS)


@pytest.mark.parametrize("bad", [np.full((9, 3), np.nan), POINTS[:2]], ids=["NaN", "too few"])
def test_unscaled_centers_are_not_said_to_be_scaled(bad):
    model = KMeans(3, random_state=0).fit(POINTS)
    score = model.score(POINTS)
    with pytest.raises(ValueError, match=r"NaN|n_clusters"):
        model.fit(open_data(bad, scale="standard"))
    assert model.score(POINTS) == score


@pytest.mark.parametrize("kind", [MiniBatchPowerKMeans, OnlineKMeans])
def test_a_stream_goes_on_where_it_was_after_a_fit_that_was_refused(kind):
    stream = kind(3, init_size=100, random_state=0)
    for _ in range(30):
        stream.partial_fit(POINTS)
    weight = stream.drift_.total_weight
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(np.full((9, 3), np.nan))
    assert stream.partial_fit(POINTS[:5]).drift_.total_weight == weight + 5
