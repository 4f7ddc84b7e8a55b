"""Rows of tensors: on the CPU here, on the first GPU where there is one.

The identities of the protocol are tested over them in test_rows_identities.py. Where there is no
GPU, the fused kernels run in Triton's interpreter.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from divergence_cases import CASES
from scipy import sparse
from sklearn.base import clone

import powermeans
from powermeans import KMeans, PowerKMeans, RobustPowerKMeans, open_data
from powermeans.divergences import Mahalanobis, Poisson
from powermeans.errors import ModelFileError
from powermeans.parts.checkpoint import CheckpointError
from powermeans.rows.bregman import BregmanRows
from powermeans.rows.cosine import CosineRows
from powermeans.rows.native import NativeRows
from powermeans.rows.reference import ReferenceRows
from powermeans.rules import EvenHarmonic, Gaussian, Hard, Harmonic, Online, Power

torch = pytest.importorskip(
    "torch", reason='PyTorch is not installed: pip install "powermeans[gpu]", or make test-gpu'
)
torch.set_num_threads(1)  # what is multiplied here is too little to be divided
HAS_GPU = torch.cuda.is_available()
HAS_TRITON = find_spec("triton") is not None
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # is read when the kernels are imported

from powermeans.rows.on_device import like  # noqa: E402
from powermeans.rows.torch import (  # noqa: E402
    TorchBregmanRows,
    TorchCosineRows,
    TorchRows,
    admission,
    formulas,
    fused,
    open_tensor,
    placing,
)
from powermeans.rows.torch import rows as rows_of_torch  # noqa: E402

DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
NO_MEMORY_LIMIT = float("inf")
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no CUDA device")
KERNELS = ["plain", pytest.param("triton", marks=needs_triton)]
RULES = [
    Hard(),
    Power(-1.0),
    Power(-30.0),
    Harmonic(3.5),
    Gaussian(0.7),
    Gaussian(2.0, (0.25,) * 4),
]


@pytest.fixture(autouse=True)
def interpreted_overflow_is_silent(monkeypatch):
    """A GPU does not warn of infinities, and the interpreter's NumPy would."""
    if not HAS_GPU:
        monkeypatch.setattr(fused, "_current", lambda points: np.errstate(all="ignore"))


def tensor(points, dtype=torch.float32):
    return torch.as_tensor(np.asarray(points), dtype=dtype, device=DEVICE)


def clusters(n_points, n_features, n_centers, *, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_centers, n_features))
    points = means[rng.integers(n_centers, size=n_points)] + rng.normal(size=(n_points, n_features))
    centers = means + 0.1 * rng.normal(size=means.shape)
    return (points + shift).astype(np.float32), rng.uniform(0, 2, n_points), centers + shift


def assert_same_sums(sums, expected, tolerance):
    size = np.abs(expected.points).max()
    np.testing.assert_allclose(sums.points, expected.points, rtol=0, atol=tolerance * size)
    weights = tolerance * expected.weights.max()
    np.testing.assert_allclose(sums.weights, expected.weights, rtol=tolerance, atol=weights)
    assert sums.objective == pytest.approx(expected.objective, rel=tolerance)
    assert sums.inertia == pytest.approx(expected.inertia, rel=tolerance)


def all_bytes(rows, centers):
    """Everything that the rows compute at these centers, as bytes."""
    parts = []
    for rule in (Hard(), Power(-3.0), Gaussian(1.0)):
        sums = rows.sweep(centers, rule)
        parts += [sums.points, sums.weights, np.array([sums.objective, sums.inertia])]
    spread, (labels, inertia) = rows.spread(centers), rows.assign(centers)
    parts += [spread.error, spread.utility, labels, np.array(inertia), rows.sq_distances(centers)]
    numbers = np.random.default_rng(0).uniform(size=(5, 3))
    parts += [rows.greedy_seeds(np.arange(rows.n_points)[::-1].copy(), 0.3, numbers)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


# ---- Against the readable rows ------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sweeps_with_every_rule_are_those_of_the_reference(kernel, n_features, rule):
    points, weights, centers = clusters(150, n_features, 4, shift=5.0)
    swept = TorchRows(tensor(points), weights, kernel=kernel).sweep(centers, rule)
    assert_same_sums(swept, ReferenceRows(points, weights).sweep(centers, rule), 3e-5)


@needs_triton
@pytest.mark.parametrize("n_features", [3, 40])
def test_more_centers_than_a_tile_and_more_points_than_a_stretch(n_features, monkeypatch):
    monkeypatch.setattr(fused, "_FEWEST_POINTS_OF_STRETCH", 64)
    points, weights, _ = clusters(150, n_features, 3)
    centers = np.random.default_rng(1).normal(scale=2, size=(140, n_features))
    assert fused._rows_of_stretch(150, 140, n_features) == 64
    rows, reference = (
        TorchRows(tensor(points), weights, kernel="triton"),
        ReferenceRows(points, weights),
    )
    for rule in (Power(-3.0), Gaussian(1.0)):
        assert_same_sums(rows.sweep(centers, rule), reference.sweep(centers, rule), 3e-5)
    np.testing.assert_array_equal(rows.assign(centers)[0], reference.assign(centers)[0])
    found, expected = rows.spread(centers), reference.spread(centers)
    np.testing.assert_allclose(found.error, expected.error, rtol=1e-5)
    np.testing.assert_allclose(found.utility, expected.utility, rtol=1e-4, atol=1e-4)


def two_passes_that_round_differently(monkeypatch):
    """As on a card, where they take distances by other instructions."""
    log_sums, tiles = fused.Fused._log_sums, fused.soft_tiles

    def nearly(self, *args):
        references, *others = log_sums(self, *args)
        return references * (1 - 2**-22), *others

    monkeypatch.setattr(fused.Fused, "_log_sums", nearly)
    monkeypatch.setattr(fused, "soft_tiles", lambda *args: {**tiles(*args), "FEATURES": 16})


def points_between(n_features):
    """Points as far from one center as from the other, so that each has half of their weights."""
    points = np.random.default_rng(0).normal(size=(90, n_features)).astype(np.float32)
    points[:, 0] = 0
    centers = np.zeros((2, n_features))
    centers[:, 0] = (1, -1)
    return points, centers


@needs_triton
@pytest.mark.parametrize("power", [-100.0, -1e3, -1e4, -1e6])
@pytest.mark.parametrize("n_features", [4, 40])
def test_weights_of_steep_powers_add_up_where_two_passes_round_differently(
    n_features, power, monkeypatch
):
    two_passes_that_round_differently(monkeypatch)
    points, centers = points_between(n_features)
    rows = TorchRows(tensor(points), kernel="triton")
    swept = rows.sweep(centers, Power(power))
    # Of two distances that are equal S is 2, and w_1 + w_2 is S^(1/s).
    assert swept.weights.sum() == pytest.approx(90 * 2 ** (1 / power), rel=5e-4)
    is_steep = power < fused.STEEPEST_POWER
    expected = "triton, plain for powers below -1024" if is_steep else "triton"
    assert rows.placement.kernel == expected


@needs_triton
@pytest.mark.parametrize("variance", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("n_features", [4, 40])
def test_weights_of_narrow_gaussians_add_up_where_two_passes_round_differently(
    n_features, variance, monkeypatch
):
    two_passes_that_round_differently(monkeypatch)
    points, centers = points_between(n_features)
    swept = TorchRows(tensor(points), kernel="triton").sweep(centers, Gaussian(variance))
    assert swept.weights.sum() == pytest.approx(90, rel=5e-4)


def test_steeper_powers_ask_for_distances_with_more_digits():
    assert fused._cancellation(Hard()) == fused._cancellation(Power(-16.0)) == 1 / 256
    assert fused._cancellation(Power(-1024.0)) == 1 / 8


def test_a_rule_without_a_kernel_is_swept_by_its_formulas():
    points, weights, centers = clusters(300, 20, 4)
    swept = TorchRows(tensor(points), weights).sweep(centers, EvenHarmonic(3.0))
    assert_same_sums(swept, ReferenceRows(points, weights).sweep(centers, EvenHarmonic(3.0)), 1e-5)


def test_online_sweeps_are_refused():
    points, _, centers = clusters(20, 3, 2)
    with pytest.raises(TypeError, match="cannot sweep with the rule Online"):
        TorchRows(tensor(points)).sweep(centers, Online(np.zeros(2)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_16_bit_points_are_swept_as_exactly_as_float32_that_holds_them(dtype, kernel):
    points, weights, centers = clusters(200, 24, 4)
    halves = tensor(points, dtype)
    held = halves.float().cpu().numpy()
    rows = TorchRows(halves, weights, kernel=kernel, precision="highest")
    assert rows.dtype == np.float32
    for rule in (Hard(), Power(-3.0)):
        assert_same_sums(
            rows.sweep(centers, rule), ReferenceRows(held, weights).sweep(centers, rule), 1e-5
        )
    labels, inertia = rows.assign(centers)
    expected, expected_inertia = ReferenceRows(held, weights).assign(centers)
    np.testing.assert_array_equal(labels, expected)
    assert inertia == pytest.approx(expected_inertia, rel=1e-6)


@needs_triton
def test_rounded_products_find_nearly_the_nearest_and_still_add_up_exactly():
    points, _, centers = clusters(300, 24, 4)
    halves = tensor(points, torch.float16)
    rows = TorchRows(halves, kernel="triton", precision="high")
    labels, inertia = rows.assign(centers)
    held = halves.double().cpu().numpy()
    assert np.mean(labels == ReferenceRows(held).assign(centers)[0]) > 0.99
    of_labels = float(np.sum((held - centers[labels]) ** 2))
    assert inertia == pytest.approx(of_labels, rel=1e-6)
    assert rows.sweep(centers, Hard()).inertia == pytest.approx(of_labels, rel=1e-12)
    assert rows.rounding() > 0
    assert "high" in rows.placement.precision


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_soft_weights_rounded_to_16_bits_are_so_in_all_sums(dtype):
    points, weights, centers = clusters(150, 24, 4)
    halves = tensor(points, dtype)
    rows = TorchRows(halves, weights, kernel="triton", precision="high")
    expected = ReferenceRows(halves.double().cpu().numpy(), weights).sweep(centers, Power(-2.0))
    swept = rows.sweep(centers, Power(-2.0))
    eps = torch.finfo(dtype).eps
    assert_same_sums(swept, expected, 16 * eps)
    # Points that are all alike have their mean at themselves, however weights are rounded.
    same = TorchRows(
        tensor(np.full((90, 24), 1.5), dtype), weights[:90], kernel="triton", precision="high"
    )
    found = same.sweep(centers, Power(-2.0)).centers(centers)
    np.testing.assert_allclose(found, 1.5, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_norms_above_the_range_of_float16_do_not_overflow(kernel):
    points, _, centers = clusters(100, 32, 4)
    halves = tensor(1000 * points, torch.float16)
    held = halves.double().cpu().numpy()
    assert np.max(np.sum(held**2, axis=1)) > 65504
    rows = TorchRows(halves, kernel=kernel)
    np.testing.assert_array_equal(
        rows.assign(1000 * centers)[0], ReferenceRows(held).assign(1000 * centers)[0]
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_tight_clusters_far_from_the_mean_survive_cancellation(kernel):
    rng = np.random.default_rng(0)
    means = 100 * rng.normal(size=(5, 60))
    labels = rng.integers(0, 5, 200)
    points = (means[labels] + 1e-3 * rng.normal(size=(200, 60))).astype(np.float32)
    found, inertia = TorchRows(tensor(points), kernel=kernel).assign(means)
    np.testing.assert_array_equal(found, labels)
    assert inertia == pytest.approx(ReferenceRows(points).assign(means)[1], rel=1e-3)
    swept = TorchRows(tensor(points), kernel=kernel).sweep(means, Power(-3.0))
    assert_same_sums(swept, ReferenceRows(points).sweep(means, Power(-3.0)), 2e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_labels_and_inertia_are_those_of_the_compiled_core(kernel):
    points, weights, centers = clusters(400, 30, 6)
    labels, inertia = TorchRows(tensor(points), weights, kernel=kernel).assign(centers)
    expected, expected_inertia = NativeRows(points, weights).assign(centers)
    np.testing.assert_array_equal(labels, expected)
    assert inertia == pytest.approx(expected_inertia, rel=1e-5)


def test_greedy_seeds_are_those_of_the_compiled_core():
    points, weights, _ = clusters(3000, 20, 8)
    order = np.random.default_rng(1).permutation(3000)
    numbers = np.random.default_rng(2).uniform(size=(9, 4))
    wide = points.astype(np.float64)
    found = TorchRows(tensor(wide, torch.float64), weights).greedy_seeds(order, 0.4, numbers)
    expected = NativeRows(wide, weights).greedy_seeds(order, 0.4, numbers)
    np.testing.assert_array_equal(found, expected)


def test_greedy_seeds_are_the_same_where_few_distances_can_be_kept(monkeypatch):
    points, weights, _ = clusters(500, 20, 8)
    order, numbers = np.arange(500), np.random.default_rng(2).uniform(size=(5, 4))
    rows = TorchRows(tensor(points), weights)
    expected = rows.greedy_seeds(order, 0.4, numbers)
    monkeypatch.setattr(TorchRows, "most_entries_kept", lambda self: 0.0)
    np.testing.assert_array_equal(rows.greedy_seeds(order, 0.4, numbers), expected)


def test_few_distances_are_kept_where_free_memory_is_unknown(monkeypatch):
    rows = TorchRows(tensor(np.ones((3, 2))))
    monkeypatch.setattr("powermeans.rows.torch.rows.free_bytes", lambda device: float("inf"))
    assert rows.most_entries_kept() == 2**25
    monkeypatch.setattr("powermeans.rows.torch.rows.free_bytes", lambda device: 3200.0)
    assert rows.most_entries_kept() == 100


@pytest.mark.parametrize("n_features", [2, 30])
def test_critical_power_is_that_of_the_compiled_core(n_features):
    points, weights, _ = clusters(800, n_features, 3, shift=4.0)
    found = TorchRows(tensor(points), weights).critical_power()
    assert found == pytest.approx(NativeRows(points, weights).critical_power(), rel=1e-4)


def test_critical_power_of_equal_points_is_a_half():
    assert TorchRows(tensor(np.ones((5, 3)))).critical_power() == 0.5


# ---- Divergences --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CASES))
def test_divergences_are_swept_as_by_the_compiled_core(name):
    case = CASES[name]
    points = case.points(120, 20, seed=1)
    weights = np.random.default_rng(0).uniform(0, 2, 120)
    centers = np.array([points[start::5].mean(axis=0) for start in range(5)])
    divergence = case.divergence(20)
    rows = TorchBregmanRows(tensor(points, torch.float64), weights, divergence=divergence)
    expected = BregmanRows(points, weights, divergence=divergence)
    for rule in (Hard(), Power(-3.0), Gaussian(2.0)):
        assert_same_sums(rows.sweep(centers, rule), expected.sweep(centers, rule), 1e-7)
    assert rows.assign(centers)[1] == pytest.approx(expected.assign(centers)[1], rel=1e-9)
    assert rows.critical_power() == pytest.approx(expected.critical_power(), rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_divergence_in_float32_loses_few_digits(kernel):
    points = CASES["poisson"].points(150, 20, seed=1).astype(np.float32)
    centers = np.array([points[start::5].mean(axis=0) for start in range(5)], dtype=np.float64)
    rows = TorchBregmanRows(tensor(points), divergence=Poisson(), kernel=kernel)
    reference = ReferenceRows(points, divergence=Poisson())
    for rule in (Hard(), Power(-3.0)):
        assert_same_sums(rows.sweep(centers, rule), reference.sweep(centers, rule), 2e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_angles_are_swept_as_by_the_compiled_core(kernel):
    points, weights, centers = clusters(150, 12, 4)
    rows, expected = TorchCosineRows(tensor(points), weights, kernel=kernel), None
    expected = CosineRows(points, weights)
    for rule in (Hard(), Power(-3.0)):
        swept, wanted = rows.sweep(centers, rule), expected.sweep(centers, rule)
        assert_same_sums(swept, wanted, 2e-5)
        np.testing.assert_allclose(np.linalg.norm(swept.centers(centers), axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(rows.assign(centers)[0], expected.assign(centers)[0])
    assert rows.critical_power() == pytest.approx(expected.critical_power(), rel=1e-3)


@pytest.mark.parametrize("spread", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("divergence", [Poisson(), Mahalanobis(np.eye(20))], ids=["P", "M"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_divergences_of_tight_clusters_keep_their_digits_in_float32(kernel, divergence, spread):
    rng = np.random.default_rng(0)
    means, labels = rng.uniform(1, 100, size=(5, 20)), rng.integers(5, size=80)
    points = (means[labels] * (1 + spread * rng.normal(size=(80, 20)))).astype(np.float32)
    centers = np.array([points[labels == j].mean(axis=0, dtype=float) for j in range(5)])
    rows = TorchBregmanRows(tensor(points), divergence=divergence, kernel=kernel)
    expected = BregmanRows(points.astype(float), divergence=divergence)
    found, inertia = rows.assign(centers)
    np.testing.assert_array_equal(found, labels)
    assert inertia == pytest.approx(expected.assign(centers)[1], rel=1e-5)
    for rule in (Hard(), Power(-3.0)):
        assert_same_sums(rows.sweep(centers, rule), expected.sweep(centers, rule), 1e-5)
    assert rows.sweep(centers, Hard()).inertia == pytest.approx(inertia, rel=1e-12)
    split = np.vstack([centers, centers[0] * (1 + 1e-2 * spread)])
    np.testing.assert_array_equal(rows.assign(split)[0], expected.assign(split)[0])
    assert rows.spread(split).utility == pytest.approx(expected.spread(split).utility, rel=1e-4)


# ---- The ends of dtypes -------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [Hard(), Power(-2.0), Gaussian(1e8)], ids=repr)
@pytest.mark.parametrize("kernel", KERNELS)
def test_points_beyond_float16_when_told_from_their_mean_are_swept_in_low_precision(kernel, rule):
    rng = np.random.default_rng(0)
    points = 40_000 + 2_000 * rng.normal(size=(60, 20))
    points[:3] = -50_000
    halves = tensor(points, torch.float16)
    held = halves.double().cpu().numpy()
    centers = np.stack([held[0] + 5, held[10], held[20], np.full(20, 9e4)])
    swept = TorchRows(halves, kernel=kernel, precision="high").sweep(centers, rule)
    assert_same_sums(swept, ReferenceRows(held).sweep(centers, rule), 2e-2)


@pytest.mark.parametrize("n_features", [3, 20])
@pytest.mark.parametrize("kernel", KERNELS)
def test_subnormal_float32_points_are_swept_like_their_multiples(kernel, n_features):
    points, weights, centers = clusters(60, n_features, 3)
    unit = 2.0**-140  # of which float32 still holds some digits
    points = np.round(64 * points) / 64
    tiny = (points * unit).astype(np.float32)
    multiples = tiny.astype(np.float64) / unit
    rows, expected = (
        TorchRows(tensor(tiny), weights, kernel=kernel),
        ReferenceRows(multiples, weights),
    )
    for rule in (Hard(), Power(-3.0)):
        sums, wanted = rows.sweep(unit * centers, rule), expected.sweep(centers, rule)
        np.testing.assert_allclose(sums.centers(centers) / unit, wanted.centers(centers), rtol=1e-4)
        assert sums.inertia / unit**2 == pytest.approx(wanted.inertia, rel=1e-4)


def test_float64_points_whose_squares_vanish_still_have_centers():
    points, weights, centers = clusters(60, 4, 3)
    rows = TorchRows(tensor(1e-250 * points.astype(float), torch.float64), weights)
    found = rows.sweep(1e-250 * centers, Power(-2.0)).centers(centers)
    expected = ReferenceRows(points, weights).sweep(centers, Power(-2.0)).centers(centers)
    np.testing.assert_allclose(found * 1e250, expected, rtol=1e-9)


@pytest.mark.parametrize("as_given", ["tensor", "array at a device"])
@pytest.mark.parametrize("unit", [1e25, 1e-25, 1.0])
def test_distances_and_memberships_of_float32_far_from_one(unit, as_given):
    points = (unit * clusters(80, 5, 3)[0]).astype(np.float32)
    is_array = as_given == "array at a device"
    X = points if is_array else tensor(points)
    model = PowerKMeans(
        3, random_state=0, effort="fast", device=DEVICE.type if is_array else None
    ).fit(X)
    found, shares = model.transform(X), model.memberships(X)
    if not is_array:
        assert found.dtype == torch.float32
        found, shares = found.cpu().numpy(), shares.cpu().numpy()
        centers = model.cluster_centers_.cpu().numpy()
    else:
        centers = model.cluster_centers_
        assert found.dtype == centers.dtype
    wide = points.astype(np.float64) / unit
    expected = np.linalg.norm(wide[:, None] - centers.astype(np.float64) / unit, axis=2)
    np.testing.assert_allclose(found / unit, expected, rtol=1e-4)
    np.testing.assert_array_equal(shares.argmax(1), expected.argmin(1))
    np.testing.assert_allclose(shares.sum(1), 1.0)
    plain = clone(model).set_params(device=None).fit(points)
    np.testing.assert_allclose(np.sort(shares), np.sort(plain.memberships(points)), atol=1e-3)


# ---- Determinism, streams, memory ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_sweep_gives_the_same_bytes(kernel):
    points, weights, centers = clusters(300, 20, 5)
    first = all_bytes(TorchRows(tensor(points), weights, kernel=kernel), centers)
    assert first == all_bytes(TorchRows(tensor(points), weights, kernel=kernel), centers)


def test_bytes_can_differ():
    points, weights, centers = clusters(300, 20, 5)
    moved = centers * (1 + 1e-15)
    rows = TorchRows(tensor(points, torch.float64), weights)
    assert all_bytes(rows, centers) != all_bytes(rows, moved)


@pytest.mark.parametrize("kernel", KERNELS)
def test_points_in_host_memory_are_streamed_to_the_same_result(kernel):
    points, weights, centers = clusters(333, 20, 5)
    whole = TorchRows(torch.as_tensor(points), weights, device=DEVICE, kernel=kernel)
    streamed = TorchRows(
        torch.as_tensor(points), weights, device=DEVICE, kernel=kernel, rows_of_piece=100
    )
    assert not whole.placement.streamed
    assert streamed.placement.streamed
    for rule in (Hard(), Power(-3.0)):
        assert_same_sums(streamed.sweep(centers, rule), whole.sweep(centers, rule), 1e-6)
    np.testing.assert_array_equal(streamed.assign(centers)[0], whole.assign(centers)[0])
    order, numbers = np.arange(333), np.random.default_rng(2).uniform(size=(5, 4))
    np.testing.assert_array_equal(
        streamed.greedy_seeds(order, 0.4, numbers), whole.greedy_seeds(order, 0.4, numbers)
    )


def test_a_block_of_distances_is_far_smaller_than_all_of_them():
    n_at_once = placing.rows_at_once(10**7, 1000, torch.device("cpu"), 4, NO_MEMORY_LIMIT)
    assert n_at_once * 1000 <= 2**20


def test_a_block_shrinks_where_memory_is_short_and_says_so():
    with pytest.warns(RuntimeWarning, match=r"8 MiB are free on cpu: .* 256 points at once"):
        assert placing.rows_at_once(10**6, 1000, torch.device("cpu"), 4, 8 * 2**20) == 256


def test_too_little_memory_for_any_block_is_an_error():
    with pytest.raises(MemoryError, match="1 MiB are free on cpu, and 24000 bytes are needed"):
        placing.rows_at_once(10**6, 1000, torch.device("cpu"), 4, 2**20)


@pytest.mark.parametrize("kernel", KERNELS)
def test_smaller_blocks_add_up_to_the_same(kernel, monkeypatch):
    points, weights, centers = clusters(700, 20, 5)
    expected = TorchRows(tensor(points), weights).sweep(centers, Power(-3.0))
    monkeypatch.setattr(placing, "free_bytes", lambda device: 20 * 8 * 6 * 128)
    with pytest.warns(RuntimeWarning, match="works on 128 points at once instead of 700"):
        rows = TorchRows(tensor(points), weights, kernel=kernel)
    assert_same_sums(rows.sweep(centers, Power(-3.0)), expected, 1e-6)


class Watched:
    """How many points `formulas.distances` is asked for at a time."""

    def __init__(self, monkeypatch):
        self.sizes, distances = [], formulas.distances

        def watched(part, seen, view):
            self.sizes.append(len(part.points))
            return distances(part, seen, view)

        monkeypatch.setattr(formulas, "distances", watched)


def tight_clusters(n_points=300):
    rng = np.random.default_rng(0)
    means, labels = 100 * rng.normal(size=(5, 24)), rng.integers(0, 5, n_points)
    points = (means[labels] + 1e-3 * rng.normal(size=(n_points, 24))).astype(np.float32)
    return points, means, labels


@needs_triton
def test_labels_of_tight_clusters_need_no_float64_where_no_two_centers_are_alike(monkeypatch):
    points, means, labels = tight_clusters()
    rows, watched = TorchRows(tensor(points), kernel="triton"), Watched(monkeypatch)
    np.testing.assert_array_equal(rows.assign(means)[0], labels)
    rows.spread(means)
    assert (sum(watched.sizes), rows.n_swept_again) == (0, 0)
    halves = np.vstack([means, means[0] + 1e-3])
    expected = ReferenceRows(points).assign(halves)[0]
    np.testing.assert_array_equal(rows.assign(halves)[0], expected)
    assert sum(watched.sizes) == rows.n_swept_again == np.sum(labels == 0)
    assert rows.spread(halves).utility == pytest.approx(
        ReferenceRows(points).spread(halves).utility
    )


@needs_triton
@pytest.mark.parametrize("rule", [Hard(), Power(-3.0)], ids=repr)
def test_points_swept_again_are_taken_in_blocks_that_fit(rule, monkeypatch):
    points, means, _ = tight_clusters()
    centers = np.repeat(means, 8, axis=0) + 1e-3 * np.random.default_rng(1).normal(size=(40, 24))
    rows = TorchRows(tensor(points), kernel="triton")
    monkeypatch.setattr(rows, "_n_at_once", lambda width: 2000 // max(width, 24))
    watched = Watched(monkeypatch)
    swept = rows.sweep(centers, rule)
    assert sum(watched.sizes) == 300
    assert max(watched.sizes) == 2000 // 40
    assert_same_sums(swept, ReferenceRows(points).sweep(centers, rule), 1e-5)


@needs_gpu
def test_points_larger_than_the_card_would_be_streamed(monkeypatch):
    monkeypatch.setattr(placing, "free_bytes", lambda device: 2**23)
    held = placing.Held(torch.zeros((10**5, 64)), DEVICE)
    assert held.is_streamed


def test_what_is_held_for_each_point_counts_where_there_are_few_features(monkeypatch):
    points, elsewhere = torch.zeros((10_000, 2)), torch.device("meta")
    monkeypatch.setattr(placing, "free_bytes", lambda device: 1_300_000)
    assert not placing.Held(points, elsewhere).is_streamed
    monkeypatch.setattr(placing, "free_bytes", lambda device: 1_100_000)
    held = placing.Held(points, elsewhere)
    assert held.is_streamed
    sizes = [len(piece) for _, piece in held.pieces()]
    assert sum(sizes) == 10_000
    assert max(sizes) * 108 <= 700_000 / 8
    monkeypatch.setattr(placing, "free_bytes", lambda device: 410_000)
    with pytest.raises(MemoryError, match="40 bytes stay there for each of 10000 points"):
        placing.Held(points, elsewhere)


def test_a_device_without_memory_left_is_told_as_an_error_of_python(monkeypatch):
    def lacking(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 52 GiB")

    points, _, centers = clusters(20, 3, 2)
    rows = TorchRows(tensor(points), kernel="plain")
    monkeypatch.setattr(formulas, "distances", lacking)
    for work in (lambda: rows.sweep(centers, Hard()), lambda: rows.assign(centers)):
        with pytest.raises(MemoryError, match=r"allocate 52 GiB. Free memory on the device"):
            work()
    monkeypatch.setattr(TorchRows, "_look_at_columns", lacking)
    with pytest.raises(MemoryError, match="allocate 52 GiB"):
        open_tensor(tensor(points), divergence="cosine")


@pytest.mark.parametrize("kernel", KERNELS)
def test_parts_too_long_for_32_bits_are_cut(kernel, monkeypatch):
    points, weights, centers = clusters(60, 20, 3)
    rows = TorchRows(tensor(points), weights, kernel=kernel)
    expected = rows.assign(centers)[0], rows.sweep(centers, Power(-3.0)), rows.spread(centers)
    monkeypatch.setattr("powermeans.rows.torch.rows._MOST_POINTS_OF_PART", 25)
    assert [len(part.points) for part in rows._parts()] == [25, 25, 10]
    np.testing.assert_array_equal(rows.assign(centers)[0], expected[0])
    assert_same_sums(rows.sweep(centers, Power(-3.0)), expected[1], 1e-6)
    np.testing.assert_allclose(rows.spread(centers).error, expected[2].error, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_points", "n_centers", "fewest", "most"),
    [(100_000, 64, 150, 600), (1_000_000, 64, 400, 600), (10**9, 10, 512, 65_535)],
)
def test_stretches_are_enough_for_a_card_and_no_more_than_a_grid_has(
    n_points, n_centers, fewest, most
):
    rows_of_stretch = fused._rows_of_stretch(n_points, n_centers, 128)
    assert rows_of_stretch % 64 == 0
    assert fewest <= -(-n_points // rows_of_stretch) <= most
    assert -(-(2**31) // fused._rows_of_stretch(2**31, 1, 1)) <= 65_535


# ---- What is chosen is told ---------------------------------------------------------------------


@needs_triton
def test_the_placement_tells_device_kernel_and_precision():
    points, _, _ = clusters(20, 3, 2)
    placement = TorchRows(tensor(points), kernel="triton").placement
    assert placement.kernel == "triton"
    assert placement.device.startswith(DEVICE.type)
    assert placement.precision == "float32, highest"
    assert TorchRows(tensor(points, torch.float64)).placement.kernel == "plain"
    wide = TorchRows(tensor(np.ones((3, 257))), kernel="triton").placement
    assert wide.kernel == "triton, plain for soft weights"


def test_lower_precision_is_taken_only_where_it_is_asked_for():
    points = tensor(clusters(20, 3, 2)[0])
    assert TorchRows(points).placement.precision == "float32, highest"
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert TorchRows(points).placement.precision == "float32, high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_plain_pytorch_on_a_card_is_told_as_its_own_switch_says(monkeypatch):
    chosen, card = rows_of_torch._chosen_precision, torch.device("cuda", 0)
    monkeypatch.setattr(rows_of_torch, "_precision_of_torch", lambda: "high")
    with pytest.raises(ValueError, match=r'"highest" is not available to plain PyTorch on cuda:0'):
        chosen("highest", card)
    assert chosen("highest", None) == chosen("highest", torch.device("cpu")) == "highest"
    assert chosen(None, card) == chosen("high", card) == "high"
    monkeypatch.setattr(rows_of_torch, "_precision_of_torch", lambda: "highest")
    assert chosen("high", card) == "highest"


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="older")
def test_the_newer_switch_of_precision_is_read():
    points = tensor(clusters(20, 3, 2)[0])
    switch = torch.backends.cuda.matmul
    before = switch.fp32_precision
    try:
        for told, expected in (("tf32", "high"), ("ieee", "highest")):
            switch.fp32_precision = told
            assert TorchRows(points).placement.precision == f"float32, {expected}"
    finally:
        switch.fp32_precision = before


@pytest.mark.parametrize("kernel", KERNELS)
def test_autocasting_and_a_default_device_change_nothing(kernel):
    points, weights, centers = clusters(60, 20, 4)

    def everything():
        rows = TorchRows(tensor(points), weights, kernel=kernel)
        formed = np.array([rows.critical_power(), *rows.mean()])
        formulaic = rows.sweep(centers, EvenHarmonic(3.0)).points
        of_divergence = TorchBregmanRows(tensor(np.abs(points) + 1), divergence=Poisson())
        swept = of_divergence.sweep(np.abs(centers) + 1, Power(-1.0)).points
        arrays = (formed, formulaic, swept)
        return all_bytes(rows, centers) + b"".join(array.tobytes() for array in arrays)

    expected = everything()
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        assert everything() == expected
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        assert everything() == expected
    finally:
        torch.set_default_device(None if before == torch.device("cpu") else before)


@needs_gpu
def test_points_are_streamed_where_the_default_device_is_a_gpu():
    points = torch.as_tensor(clusters(333, 20, 5)[0])
    rows = TorchRows(points, device=DEVICE, rows_of_piece=100)
    expected = rows.mean()
    torch.set_default_device(DEVICE)
    try:
        again = TorchRows(points, device=DEVICE, rows_of_piece=100)
        np.testing.assert_array_equal(again.mean(), expected)
    finally:
        torch.set_default_device(None)


def test_cards_that_kernels_are_not_for_are_told(monkeypatch):
    points, card = tensor(clusters(20, 3, 2)[0]), torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert "compute capability 8.0 or more, which cuda:0 lacks" in fused.why_not(points, card)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert "ROCm" in fused.why_not(points, card)


def test_a_pytorch_that_does_not_tell_shared_memory_has_that_of_the_least_card(monkeypatch):
    points = SimpleNamespace(is_cuda=True, device=torch.device("cuda", 0))
    card = SimpleNamespace(name="of PyTorch 2.6")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    assert fused._shared(points) == min(SHARED_MEMORY.values())
    card.shared_memory_per_block_optin = 232_448
    assert fused._shared(points) == 232_448


def test_kernels_that_cannot_be_had_are_an_error(monkeypatch):
    points = tensor(clusters(20, 3, 2)[0], torch.float64)
    with pytest.raises(
        ValueError, match=r'kernel="triton" is not available: the points are float64'
    ):
        TorchRows(points, kernel="triton")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    if not HAS_GPU:
        with pytest.raises(ValueError, match="Triton has no kernels for cpu"):
            TorchRows(points.float(), kernel="triton")


# What a program may have on the cards of a compute capability, by the CUDA programming guide.
SHARED_MEMORY = {80: 166_912, 89: 101_376, 90: 232_448, 120: 101_376}


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize(
    ("capability", "dtype", "precision", "n_features", "more"),
    [
        (90, "float32", "highest", 128, []),
        (90, "float16", "high", 128, ["--moved"]),
        (90, "bfloat16", "high", 768, ["--moved"]),
        (80, "float32", "high", 256, ["--gaussian"]),
        (89, "float16", "high", 256, ["--moved"]),
        (89, "float16", "highest", 256, []),
        (120, "bfloat16", "high", 768, []),
    ],
)
def test_kernels_compile_for_gpus_and_fit_there(capability, dtype, precision, n_features, more):
    """No GPU is needed to compile, in a process that does not interpret."""
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu_compiled", dtype, precision]
    command += ["--capability", str(capability), "--features", str(n_features), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = [line.split() for line in done.stdout.splitlines()]
    assert len(figures) == (6 if n_features <= fused.MOST_FEATURES_SOFT else 4)
    for name, shared, _registers, spilled, products in figures:
        assert int(shared) <= SHARED_MEMORY[capability]
        assert int(spilled) <= 32
        # The interpreter multiplies with all digits whatever it is told.
        takes_distances = name in ("nearest_kernel", "log_sums_kernel", "soft_sums_kernel")
        if dtype == "float32" and takes_distances:
            assert products == {"highest": "tf32x3", "high": "tf32"}[precision]


# ---- The border ---------------------------------------------------------------------------------


def admitted(points, **requirements):
    return admission.admit_points(points, device=points.device, **requirements)


@pytest.mark.parametrize(
    ("points", "complaint"),
    [
        (lambda: torch.zeros((3, 2), requires_grad=True), r"requires a gradient.*X\.detach\(\)"),
        (lambda: torch.zeros((2, 3)).T, r"not contiguous, with strides \(1, 3\).*contiguous"),
        (lambda: torch.zeros(3), r"the shape \(3,\)"),
        (lambda: torch.zeros((0, 2)), "at least one point"),
        (lambda: torch.zeros((3, 2), dtype=torch.int32), r"dtype torch.int32.*X\.float\(\)"),
        (lambda: torch.zeros((3, 2), dtype=torch.complex64), "dtype torch.complex64"),
        (lambda: torch.zeros((3, 2)).to_sparse(), "layout torch.sparse_coo"),
        (lambda: torch.tensor([[0.0, 1.0], [2.0, torch.nan]]), "NaN.*row 1, column 1"),
        (lambda: torch.tensor([[torch.inf, 1.0]]), "infinity.*row 0, column 0"),
        (lambda: torch.tensor([[7e4]]).half(), "float16 holds nothing above 65504"),
        (lambda: torch.full((2, 2), 1e200, dtype=torch.float64), "would overflow float64"),
    ],
)
def test_bad_tensors_are_refused_with_a_way_out(points, complaint):
    with pytest.raises(ValueError, match=complaint):
        admitted(points())


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        admitted(torch.zeros((3, 2)), n_clusters=4)


def test_good_tensors_pass_without_a_copy():
    points = torch.zeros((3, 2), dtype=torch.bfloat16)
    assert admitted(points) is points


def test_points_outside_of_the_domain_are_refused():
    with pytest.raises(ValueError, match="in row 1, column 0"):
        admitted(torch.tensor([[1.0], [-2.0]]), divergence=Poisson())
    with pytest.raises(ValueError, match="nothing but zeros in row 1"):
        admitted(torch.tensor([[1.0], [0.0]]), divergence="cosine")
    for refused in (lambda x: admitted(x, divergence="manhattan"), lambda x: manhattan(x)):
        with pytest.raises(ValueError, match=r'divergence="manhattan" has no rows for tensors'):
            refused(torch.ones((3, 1)))


def manhattan(points):
    return open_tensor(points, divergence="manhattan")


def test_tensors_on_two_devices_are_refused():
    points, elsewhere = torch.zeros((3, 2)), torch.ones(3, device="meta")
    with pytest.raises(ValueError, match=r"sample_weight is on meta and X on cpu.*to\(X\.device\)"):
        admission.admit_weights(elsewhere, points)
    with pytest.raises(ValueError, match="init is on meta and X on cpu"):
        admission.admit_init(torch.ones((2, 2), device="meta"), points)


def test_weights_may_be_tensors_or_arrays():
    points = torch.zeros((3, 2))
    np.testing.assert_array_equal(admission.admit_weights(torch.ones(3), points), np.ones(3))
    np.testing.assert_array_equal(admission.admit_weights([1, 2, 3], points), [1, 2, 3])
    assert admission.admit_weights(None, points) is None
    with pytest.raises(ValueError, match="sample_weight has the shape"):
        admission.admit_weights(torch.ones(2), points)


@pytest.mark.skipif(HAS_GPU, reason="there is a CUDA device")
def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match=r"device='cuda' is not available.*finds no CUDA device"):
        placing.find_device("cuda")


def test_devices_that_are_none_are_an_error():
    with pytest.raises(ValueError, match="device='graphics' is not a device of PyTorch"):
        placing.find_device("graphics")
    with pytest.raises(ValueError, match="device='meta' is not supported"):
        placing.find_device("meta")


def test_points_are_not_moved_from_one_device_to_another():
    points = torch.zeros((3, 2), device="meta")
    assert admission.device_for(points, None) == points.device
    with pytest.raises(ValueError, match="X is on meta and device='cpu'"):
        admission.device_for(points, "cpu")


def test_nothing_warns_in_an_ordinary_sweep():
    points, weights, centers = clusters(50, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TorchRows(tensor(points), weights).sweep(centers, Power(-3.0))
    assert fused.why_not(tensor(points, torch.float64), DEVICE) == "the points are float64"


# ---- Estimators ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KMeans, PowerKMeans])
def test_a_fit_of_a_tensor_is_that_of_an_array_as_tensors(kind):
    points, weights, _ = clusters(400, 5, 4)
    fitted = kind(4, random_state=0).fit(tensor(points), sample_weight=weights)
    expected = kind(4, random_state=0).fit(points, sample_weight=weights)
    assert fitted.cluster_centers_.device == fitted.labels_.device == tensor(points).device
    np.testing.assert_array_equal(fitted.labels_.cpu().numpy(), expected.labels_)
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-5)
    assert fitted.placement_.device == str(tensor(points).device)
    assert not hasattr(expected, "placement_")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_a_fit_of_16_bit_points_has_float32_centers(dtype):
    points, _, _ = clusters(300, 20, 4)
    fitted = PowerKMeans(4, random_state=0, effort="fast").fit(tensor(points, dtype))
    assert fitted.cluster_centers_.dtype == torch.float32
    assert torch.equal(fitted.predict(tensor(points, dtype)), fitted.labels_)


def test_what_follows_a_fit_is_of_the_kind_of_its_input():
    points, _, _ = clusters(200, 20, 4)
    for model in (
        PowerKMeans(4, random_state=0).fit(points),
        PowerKMeans(4, random_state=0).fit(tensor(points)),
    ):
        labels, distances = model.predict(tensor(points)), model.transform(tensor(points))
        shares = model.memberships(tensor(points))
        assert all(isinstance(result, torch.Tensor) for result in (labels, distances, shares))
        np.testing.assert_array_equal(labels.cpu().numpy(), model.predict(points))
        np.testing.assert_allclose(distances.cpu().numpy(), model.transform(points), rtol=1e-4)
        np.testing.assert_allclose(shares.cpu().numpy(), model.memberships(points), atol=1e-3)
        assert isinstance(model.predict(points), np.ndarray)
        assert model.score(tensor(points)) == pytest.approx(model.score(points), rel=1e-5)
        assert model.score(points) == pytest.approx(-model.inertia_, rel=1e-5)


def test_results_are_there_whatever_the_default_device_is():
    torch.set_default_device("meta")
    try:
        found = like(torch.zeros(1, device=DEVICE), np.arange(3))
    finally:
        torch.set_default_device(None)
    assert found.device.type == DEVICE.type
    assert found.tolist() == [0, 1, 2]


def test_an_array_is_worked_on_at_a_device_that_is_asked_for():
    points, weights, _ = clusters(400, 5, 4)
    points.setflags(write=False)
    fitted = PowerKMeans(4, random_state=0, device=DEVICE.type).fit(points, sample_weight=weights)
    assert isinstance(fitted.labels_, np.ndarray)
    assert fitted.placement_.device.startswith(DEVICE.type)
    expected = PowerKMeans(4, random_state=0).fit(points, sample_weight=weights)
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-5)
    np.testing.assert_allclose(fitted.transform(points), expected.transform(points), rtol=1e-3)


def test_distances_that_would_vanish_are_refused_as_those_of_arrays_are():
    points = clusters(60, 3, 3)[0].astype(np.float64) * 1e-170
    for of_kind in (points, tensor(points, torch.float64)):
        with pytest.raises(ValueError, match="squared distances would vanish"):
            KMeans(3).fit(of_kind)


def fitted_in_parts(source, weights=None, **options):
    data = open_data(source, weights=weights, rows_per_part=64)
    return PowerKMeans(4, random_state=0, device=DEVICE.type, **options).fit(data)


def test_parts_are_worked_on_at_a_device(tmp_path):
    points, weights, _ = clusters(400, 5, 4)
    fitted = fitted_in_parts(points, weights=weights)
    assert fitted.placement_.device.startswith(DEVICE.type)
    assert not fitted.placement_.streamed
    whole = PowerKMeans(4, init=fitted.cluster_centers_, device=DEVICE.type, random_state=0)
    whole.fit(points, sample_weight=weights)
    assert fitted.inertia_ == pytest.approx(whole.inertia_, rel=1e-5)
    expected = PowerKMeans(4, random_state=0).fit(
        open_data(points, weights=weights, rows_per_part=64)
    )
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-5)
    np.testing.assert_array_equal(fitted.predict(points), expected.predict(points))


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine", "poisson"])
def test_parts_of_a_file_at_a_device_give_the_bits_of_those_in_memory(tmp_path, divergence):
    points = np.abs(clusters(400, 5, 4)[0]) + 0.1
    np.save(tmp_path / "points.npy", points)
    from_file = fitted_in_parts(tmp_path / "points.npy", divergence=divergence)
    in_memory = fitted_in_parts(points, divergence=divergence)
    np.testing.assert_array_equal(from_file.cluster_centers_, in_memory.cluster_centers_)
    assert from_file.inertia_ == in_memory.inertia_
    assert from_file.placement_.streamed
    labels = from_file.predict(tmp_path / "points.npy", output=tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(labels), in_memory.predict(points))


def test_partitions_of_dask_are_worked_on_at_a_device():
    dask_array = pytest.importorskip("dask.array")
    points, weights, _ = clusters(400, 5, 4)
    partitions = dask_array.from_array(points, chunks=(64, 5))
    model = PowerKMeans(4, random_state=0, device=DEVICE.type)
    fitted = model.fit(partitions, sample_weight=weights)
    expected = fitted_in_parts(points, weights=weights)
    assert fitted.placement_ == expected.placement_
    np.testing.assert_array_equal(fitted.cluster_centers_, expected.cluster_centers_)
    assert fitted.inertia_ == expected.inertia_
    np.testing.assert_array_equal(fitted.labels_.compute(), expected.predict(points))


def test_partitions_are_worked_on_at_the_devices_of_workers():
    dask_array = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    points, weights, _ = clusters(400, 5, 4)
    partitions = dask_array.from_array(points, chunks=(64, 5))
    model = PowerKMeans(4, random_state=0, effort="fast", device=DEVICE.type)
    one_worker = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**one_worker) as cluster, distributed.Client(cluster) as client:
        fitted = model.fit(partitions, sample_weight=weights)
        labels = fitted.labels_.compute()
        has_rows_of_tensors = client.run(has_imported, "powermeans.rows.torch")
    assert list(has_rows_of_tensors.values()) == [True]
    expected = fitted_in_parts(points, weights=weights, effort="fast")
    assert fitted.history_.placement == expected.placement_
    np.testing.assert_allclose(
        fitted.cluster_centers_, expected.cluster_centers_, rtol=1e-5, atol=1e-5
    )
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-6)
    np.testing.assert_array_equal(labels, expected.predict(points))


def has_imported(module):
    return module in sys.modules


def test_a_checkpoint_is_of_fits_at_the_same_device(tmp_path):
    points, _, _ = clusters(400, 5, 4)
    data = open_data(points, rows_per_part=64, checkpoint=tmp_path / "state")
    model = PowerKMeans(4, effort="fast", random_state=0, device=DEVICE.type)
    first, again = (clone(model).fit(data) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    assert again.placement_ == first.placement_
    with pytest.raises(CheckpointError, match="no checkpoint of a fit of these rows"):
        clone(model).set_params(device=None).fit(data)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"device": "cuda:99"}, "device='cuda:99' is not available"),
        ({"device": "tpu"}, "device='tpu' is not a device of PyTorch"),
        ({"device": "cpu", "missing": "observed"}, 'missing="observed" has no rows for tensors'),
    ],
    ids=["too many", "unknown", "missing entries"],
)
def test_what_cannot_be_had_for_parts_is_refused(options, wrong):
    points, _, _ = clusters(50, 5, 4)
    with pytest.raises(ValueError, match=wrong):
        KMeans(4, **options).fit(open_data(points))


@pytest.mark.parametrize("divergence", ["cosine", "poisson"])
def test_a_fit_with_another_divergence(divergence):
    points = np.abs(clusters(300, 20, 4)[0]) + 0.1
    model = PowerKMeans(4, random_state=0, divergence=divergence)
    fitted = model.fit(tensor(points, torch.float64)).inertia_
    assert fitted == pytest.approx(model.fit(points.astype(np.float64)).inertia_, rel=1e-6)


def test_initial_centers_may_be_a_tensor_or_a_function_that_returns_one():
    points, _, centers = clusters(200, 5, 4)
    there = tensor(centers)
    given = KMeans(4, init=there, n_init=1).fit(tensor(points))
    called = KMeans(4, init=lambda X, k, random_state: there, n_init=1).fit(tensor(points))
    assert torch.equal(given.labels_, called.labels_)
    with pytest.raises(ValueError, match="init is on meta and X on"):
        KMeans(4, init=there.to("meta"), n_init=1).fit(tensor(points))


def test_estimators_refuse_what_has_no_rows_on_a_device():
    points = clusters(50, 3, 2)[0]
    for model, complaint in (
        (KMeans(2, missing="observed"), 'missing="observed" has no rows for tensors'),
        (PowerKMeans(2, divergence="manhattan"), "medians for centers"),
        (PowerKMeans(2, divergence="mahalanobis"), "learns its covariance"),
        (RobustPowerKMeans(2), "which points are left out is decided by all of them"),
    ):
        with pytest.raises(ValueError, match=complaint):
            model.fit(tensor(points))
    with pytest.raises(ValueError, match="device='cpu' takes only dense points"):
        KMeans(2, device="cpu").fit(sparse.csr_array(points))
    with pytest.raises(ValueError, match=r"device='cpu' cannot be had, since missing="):
        KMeans(2, device="cpu", missing="observed").fit(points)
    with pytest.raises(ValueError, match="expecting 3 features"):
        KMeans(2).fit(tensor(points)).predict(tensor(points[:, :2].copy()))


def test_a_model_of_a_tensor_is_read_again_as_one_of_arrays(tmp_path):
    points = clusters(100, 3, 2)[0]
    fitted = PowerKMeans(2, random_state=0, effort="fast").fit(tensor(points))
    powermeans.save(fitted, tmp_path / "model.pm")
    read = powermeans.load(tmp_path / "model.pm")
    np.testing.assert_array_equal(read.predict(points), fitted.labels_.cpu().numpy())
    np.testing.assert_array_equal(read.cluster_centers_, fitted.cluster_centers_.cpu().numpy())
    np.testing.assert_array_equal(fitted.to_sklearn().labels_, read.labels_)


@pytest.mark.parametrize("device", [None, DEVICE.type], ids=["tensor", "array"])
def test_the_history_tells_device_kernel_and_precision_also_when_it_was_saved(tmp_path, device):
    points = clusters(100, 3, 2)[0]
    X = points if device else tensor(points)
    fitted = PowerKMeans(2, random_state=0, effort="fast", device=device).fit(X)
    powermeans.save(fitted, tmp_path / "model.pm")
    read, unpickled = powermeans.load(tmp_path / "model.pm"), pickle.loads(pickle.dumps(fitted))
    kernel = TorchRows(tensor(points)).placement.kernel
    for model in (fitted, read, unpickled):
        placement = model.history_.placement
        assert placement == fitted.placement_
        assert placement.device.startswith(DEVICE.type)
        assert (placement.kernel, placement.precision) == (kernel, "float32, highest")
        np.testing.assert_array_equal(model.history_.inertia, fitted.history_.inertia)
    powermeans.save(PowerKMeans(2, random_state=0, effort="fast").fit(points), tmp_path / "core.pm")
    assert powermeans.load(tmp_path / "core.pm").history_.placement is None


def test_a_placement_that_a_file_tells_has_to_be_one(tmp_path):
    fitted = KMeans(2, random_state=0).fit(tensor(clusters(100, 3, 2)[0]))
    powermeans.save(fitted, tmp_path / "model.pm")
    told = f'"kernel": "{fitted.placement_.kernel}"'
    for entry in ('"kernel": 7', '"kernel": null', '"colonel": "plain"'):
        with zipfile.ZipFile(tmp_path / "model.pm") as archive:
            members = {
                name: archive.read(name).replace(told.encode(), entry.encode())
                for name in archive.namelist()
            }
        with zipfile.ZipFile(tmp_path / "other.pm", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with pytest.raises(ModelFileError, match="do not tell where the sweeps were computed"):
            powermeans.load(tmp_path / "other.pm")


def test_a_fit_that_is_interrupted_leaves_tensors_and_its_own_placement():
    points = tensor(clusters(200, 5, 4)[0])

    def interrupt(state):
        if state.sweep == 3:
            raise KeyboardInterrupt

    model = PowerKMeans(4, random_state=0, effort="fast").fit(points.double())
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt).fit(points)
    assert model.cluster_centers_.device == model.labels_.device == points.device
    assert model.cluster_centers_.dtype == torch.float32
    assert model.placement_.precision == model.history_.placement.precision == "float32, highest"
    assert len(model.history_) == 3
    assert torch.equal(model.predict(points), model.labels_)


def test_a_fit_that_fails_before_its_first_sweep_leaves_the_former_one():
    points = clusters(200, 5, 4)[0]
    model = PowerKMeans(4, random_state=0, effort="fast").fit(points)

    def fail(X, n_clusters, random_state):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model.set_params(init=fail).fit(tensor(points))
    assert isinstance(model.cluster_centers_, np.ndarray)
    assert isinstance(model.labels_, np.ndarray)
    assert not hasattr(model, "placement_")


def test_without_pytorch_a_device_is_an_error_that_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("powermeans.rows.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delattr("powermeans.rows.torch", raising=False)
    with pytest.raises(ImportError, match=r'pip install "powermeans\[gpu\]"'):
        KMeans(2, device="cpu").fit(np.eye(3))


@pytest.fixture
def one_worker_in_this_process(monkeypatch):
    """What `dask_cuda` starts, but one worker in this process, whatever devices it has."""
    distributed = pytest.importorskip("distributed")
    started = []

    def start():
        options = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
        started.append(distributed.LocalCluster(**options))
        return started[-1]

    monkeypatch.setitem(sys.modules, "dask_cuda", SimpleNamespace(LocalCUDACluster=start))
    yield started
    for cluster in started:
        cluster.close()


def test_the_code_of_the_page_on_gpus_runs(one_worker_in_this_process):
    dask_frame = pytest.importorskip("dask.dataframe")
    page = (Path(__file__).parent.parent / "docs" / "gpu.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```{code-block} python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    table = pd.DataFrame(clusters(300, 3, 4)[0], columns=["a", "b", "c"])
    namespace = {"frame": dask_frame.from_pandas(table, npartitions=3), "columns": ["a", "b"]}
    for block in blocks:
        here = block.replace('"cuda"', repr(DEVICE.type))
        exec(here.replace("2000, 64", "300, 8").replace("=1000", "=4, effort='fast'"), namespace)
    namespace["client"].close()
    assert len(blocks) == 3
    assert np.bincount(namespace["labels"]).shape == (20,)
    assert len(one_worker_in_this_process) == 1
    assert namespace["model"].placement_.device.startswith(DEVICE.type)
    assert namespace["model"].n_features_in_ == 2


def test_importing_the_package_imports_no_pytorch():
    command = "import sys, powermeans; powermeans.PowerKMeans; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", command], check=True)
