"""`ProductQuantizer` codes by nearest codewords; its tables give distances to what is decoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from powermeans import ProductQuantizer
from powermeans.estimators import product_quantizer
from powermeans.rows import native


def draw(n_points: int = 1500, n_features: int = 12, seed: int = 0) -> np.ndarray:
    """Points with correlated features, so that a rotation has something to gain."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_points, n_features)) @ rng.normal(size=(n_features, n_features)) + 3


def error_by_definition(quantizer: ProductQuantizer, points: np.ndarray) -> float:
    decoded = quantizer.decode(quantizer.encode(points))
    return float(((points - decoded) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("rotation", [None, "learned"])
@pytest.mark.parametrize(("dtype", "precision"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_codes_name_the_nearest_codewords(rotation: Any, dtype: type, precision: float) -> None:
    points = draw().astype(dtype)
    quantizer = ProductQuantizer(3, 4, rotation=rotation, random_state=0).fit(points)
    rotated = points if quantizer.rotation_ is None else points @ quantizer.rotation_
    codes = quantizer.encode(points)
    assert codes.dtype == np.uint8
    assert quantizer.codebooks_.shape == (3, 16, 4)
    assert quantizer.decode(codes).dtype == dtype
    for m, codewords in enumerate(quantizer.codebooks_):
        distances = cdist(rotated[:, 4 * m : 4 * m + 4], codewords, "sqeuclidean")
        chosen = distances[np.arange(len(points)), codes[:, m]]
        assert chosen == pytest.approx(distances.min(axis=1), rel=1e-3, abs=precision)
    told = quantizer.reconstruction_error(points)
    assert told == pytest.approx(error_by_definition(quantizer, points), rel=precision)


def test_the_error_falls_with_bits_and_with_subspaces() -> None:
    points = draw()
    by_bits = [
        ProductQuantizer(3, bits, random_state=0).fit(points).reconstruction_error(points)
        for bits in (1, 2, 4, 7)
    ]
    by_subspaces = [
        ProductQuantizer(m, 4, random_state=0).fit(points).reconstruction_error(points)
        for m in (1, 2, 6, 12)
    ]
    for errors in (by_bits, by_subspaces):
        assert np.all(np.diff(errors) < 0)


@pytest.mark.parametrize("rotation", [None, "learned"])
def test_few_points_are_coded_without_loss(rotation: Any) -> None:
    points = draw(60)
    quantizer = ProductQuantizer(4, 6, rotation=rotation, random_state=0).fit(points)
    assert quantizer.codebooks_.shape == (4, 60, 3)
    assert quantizer.decode(quantizer.encode(points)) == pytest.approx(points, abs=1e-9)
    assert quantizer.reconstruction_error(points) == pytest.approx(0, abs=1e-18)


@pytest.mark.parametrize("rotation", [None, "learned"])
def test_distances_by_tables_are_those_to_decoded_points(rotation: Any) -> None:
    points = draw()
    quantizer = ProductQuantizer(3, 5, rotation=rotation, random_state=0).fit(points)
    queries, codes = draw(20, seed=1), quantizer.encode(points)
    expected = cdist(queries, quantizer.decode(codes), "sqeuclidean")
    assert quantizer.distances(queries, codes) == pytest.approx(expected, rel=1e-9)


def test_a_learned_rotation_is_orthogonal_and_lowers_the_error() -> None:
    points = draw()
    plain = ProductQuantizer(3, 4, tol=0, random_state=0).fit(points)
    rotated = ProductQuantizer(3, 4, tol=0, rotation="learned", random_state=0).fit(points)
    assert plain.rotation_ is None
    assert rotated.rotation_ is not None
    assert rotated.rotation_.T @ rotated.rotation_ == pytest.approx(np.eye(12), abs=1e-12)
    assert rotated.reconstruction_error(points) < 0.9 * plain.reconstruction_error(points)


def test_more_turns_never_raise_the_error_of_the_training_points() -> None:
    points = draw(400)
    errors = [
        ProductQuantizer(3, 4, rotation="learned", n_turns=n, random_state=0)
        .fit(points)
        .reconstruction_error(points)
        for n in (1, 2, 4, 8)
    ]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("rotation", [None, "learned"])
def test_the_number_of_threads_changes_no_bit(
    rotation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams = []

    def start(n_threads: int | None) -> native.Team:
        teams.append(native.Team(n_threads))
        return teams[-1]

    monkeypatch.setattr(native, "start_team", start)
    monkeypatch.setattr(product_quantizer, "start_team", start)
    points = draw()
    found = []
    for n_threads in (1, 3):
        quantizer = ProductQuantizer(
            3, 4, rotation=rotation, random_state=0, n_threads=n_threads
        ).fit(points)
        found.append((quantizer.codebooks_, quantizer.encode(points), quantizer.rotation_))
    assert {len(team.stripes_by_worker) for team in teams} == {1, 3}
    for one, three in zip(*found, strict=True):
        assert np.array_equal(one, three)


def test_more_than_eight_bits_take_sixteen() -> None:
    points = draw(700, 4)
    quantizer = ProductQuantizer(2, 9, random_state=0).fit(points)
    codes = quantizer.encode(points)
    assert codes.dtype == np.uint16
    assert codes.max() > 255


def test_a_fit_takes_a_sample_of_many_points() -> None:
    points = draw(1000)
    few, whole = (
        ProductQuantizer(3, 2, max_points_per_center=n, random_state=0).fit(points)
        for n in (1, 250)
    )
    for m, codewords in enumerate(few.codebooks_):  # one point for each codeword: it stays there
        assert np.all(cdist(codewords, points[:, 4 * m : 4 * m + 4]).min(axis=1) == 0)
    assert few.reconstruction_error(points) > whole.reconstruction_error(points)


def test_constant_subspaces_are_coded() -> None:
    points = np.hstack([draw(200, 4), np.full((200, 4), 7.0)])
    quantizer = ProductQuantizer(2, 3, random_state=0).fit(points)
    assert np.array_equal(quantizer.decode(quantizer.encode(points))[:, 4:], points[:, 4:])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_subspaces": 5}, r"n_subspaces=5 does not divide the 12 features: choose one of 1, 2,"),
        ({"n_subspaces": 5}, r"append columns of zeros, 3 of them"),
        ({"n_bits": 17}, "'n_bits'"),
        ({"rotation": "random"}, "'rotation'"),
        ({"n_threads": 0}, "n_threads=0 must be"),
    ],
)
def test_a_fit_refuses(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProductQuantizer(**{"n_subspaces": 3, "n_bits": 2, **parameters}).fit(draw(50))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((5, 2), dtype=int), r"codes has the shape \(5, 2\)"),
        (np.zeros((5, 3)), "the dtype float64: pass integers of shape"),
        (np.full((5, 3), 4), "codes has numbers from 4 to 4: each subspace has 4 codewords"),
        (np.full((5, 3), -1), "codes has numbers from -1 to -1"),
    ],
)
def test_codes_that_stand_for_nothing_are_refused(codes: np.ndarray, message: str) -> None:
    quantizer = ProductQuantizer(3, 2, random_state=0).fit(draw(50))
    for use in (quantizer.decode, lambda codes: quantizer.distances(draw(2), codes)):
        with pytest.raises(ValueError, match=message):
            use(codes)


def test_points_of_weight_zero_are_left_out_and_heavy_ones_lose_least() -> None:
    points = np.concatenate([0.2 * draw(300, seed=1) + 30, draw(300)])
    weights = np.repeat([50.0, 1.0, 0.0], [300, 200, 100])
    for rotation in (None, "learned"):
        quantizer = ProductQuantizer(3, 3, rotation=rotation, random_state=0)
        weighted = quantizer.fit(points, sample_weight=weights).codebooks_
        without = quantizer.fit(points[:500], sample_weight=weights[:500]).codebooks_
        np.testing.assert_array_equal(weighted, without)
        loss_of_heavy = quantizer.reconstruction_error(points[:300])
        assert loss_of_heavy < 0.8 * quantizer.fit(points).reconstruction_error(points[:300])


@pytest.mark.parametrize(
    ("dtype", "factor", "offset"),
    [(np.float64, 1.0, 1e9), (np.float32, 1e25, 0.0), (np.float32, 1e-15, 0.0)],
)
def test_a_rotation_is_as_good_far_from_the_origin_and_at_any_scale(
    dtype: type, factor: float, offset: float
) -> None:
    points = draw()
    moved = (factor * (points + offset)).astype(dtype)
    errors = [
        ProductQuantizer(3, 4, rotation="learned", random_state=0).fit(x).reconstruction_error(x)
        for x in (points, moved)
    ]
    assert errors[1] / factor**2 == pytest.approx(errors[0], rel=0.02)
