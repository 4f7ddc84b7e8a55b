"""A fit that is refused leaves what was there before, and is refused again."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans import KMeans, MiniBatchPowerKMeans, OnlineKMeans, PowerKMeans, open_data

POINTS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize(
    ("model", "points", "weight", "wrong"),
    [
        (KMeans(3), POINTS, 5e-324, "sample_weight is at most 4.94e-324.*divide it by 5e-324"),
        (KMeans(3), POINTS * 1e-20, 1e-290, "sample_weight adds up to 6e-289 .* by 6e-289"),
        (PowerKMeans(2, divergence="gamma"), np.full((7, 2), 1e-142), 1e-295,
         "sample_weight adds up to 7e-295 .* 1e-142.* by 7e-295"),
        (KMeans(3), POINTS * 1e-200, 1.0, "squared distances would vanish"),
    ],
)  # fmt: skip
def test_what_would_lose_its_digits_is_refused_in_memory_and_in_parts(model, points, weight, wrong):
    weights = np.full(len(points), weight)
    with pytest.raises(ValueError, match=wrong):
        model.fit(points, sample_weight=weights)

    def fit_in_parts():
        model.fit(open_data(points, weights=weights, rows_per_part=3))

    for _ in range(2):
        with pytest.raises(ValueError, match=wrong):
            fit_in_parts()


@pytest.mark.parametrize(("weight", "scale"), [(1e-290, 1.0), (0.01, 1e-150)])
def test_small_weights_whose_sums_of_squares_have_their_digits_are_taken(weight, scale):
    plain = KMeans(3, random_state=0).fit(POINTS)
    model = KMeans(3, random_state=0).fit(POINTS * scale, sample_weight=np.full(60, weight))
    assert model.inertia_ / weight / scale / scale == pytest.approx(plain.inertia_, rel=1e-9)


@pytest.mark.parametrize("bad", [np.full((9, 3), np.nan), POINTS[:2]], ids=["NaN", "too few"])
def test_centers_keep_the_scaling_that_they_are_of(bad):
    for given, other in ((open_data(POINTS, scale="standard"), bad),
                         (POINTS, open_data(bad, scale="standard"))):  # fmt: skip
        model = KMeans(3, random_state=0).fit(given)
        score = model.score(given)
        with pytest.raises(ValueError, match=r"NaN|n_clusters"):
            model.fit(other)
        assert model.score(given) == score


@pytest.mark.parametrize("kind", [MiniBatchPowerKMeans, OnlineKMeans])
def test_a_stream_goes_on_where_it_was_after_a_fit_that_was_refused(kind):
    stream = kind(3, init_size=100, random_state=0)
    for _ in range(30):
        stream.partial_fit(POINTS)
    weight = stream.drift_.total_weight
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(np.full((9, 3), np.nan))
    assert stream.partial_fit(POINTS[:5]).drift_.total_weight == weight + 5
