"""The benchmark on a GPU compares what is equal, and says what it did not measure."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "torch", reason='PyTorch is not installed: pip install "powermeans[gpu]", or make test-gpu'
)
import torch

from benchmarks import gpu, gpu_peers, gpu_report, pages

# 1000 points, 10 features, 20 centers; 400 points and 5 centers to seed: 200,000 products a sweep.
CEILINGS = {
    "float16 high": 8e5,
    "bfloat16 high": 8e5,
    "float32 high": 4e5,
    "float32 highest": 1e5,
    "bytes": 1e9,
}
FIGURES = {
    "sizes": (1000, 10, 20, 400, 5),
    "parts": {
        "ceilings": [{"what": what, "per second": rate} for what, rate in CEILINGS.items()],
    },
}


def cell(dtype: str, precision: str) -> dict:
    return {"dtype": dtype, "precision": precision}


def with_bytes(rate: float) -> dict:
    slow = [line for line in FIGURES["parts"]["ceilings"] if line["what"] != "bytes"]
    return {**FIGURES, "parts": {"ceilings": [*slow, {"what": "bytes", "per second": rate}]}}


@pytest.mark.parametrize(
    ("dtype", "precision", "hard", "power"),
    [
        ("float16", "high", 0.25, 0.75),  # weights are rounded to float16 as well
        ("float32", "high", 0.5, 1.5),
        ("float32", "highest", 1.5, 4.5),  # three TF32 products, faster than plain ones here
    ],
)
def test_the_limit_by_arithmetic_is_that_of_the_products_taken(
    dtype: str, precision: str, hard: float, power: float
) -> None:
    limits = [
        gpu_report.sweep_limit(FIGURES, cell(dtype, precision), kind) for kind in ("hard", "power")
    ]
    assert limits == pytest.approx([hard, power])


def test_the_limit_is_that_of_memory_where_it_is_larger() -> None:
    figures = with_bytes(1e3)  # 1000 * 10 entries of 2 bytes, read once and twice
    limits = [
        gpu_report.sweep_limit(figures, cell("float16", "high"), kind) for kind in ("hard", "power")
    ]
    assert limits == pytest.approx([20.0, 40.0])


def test_the_limits_of_seeding_and_of_fits_add_up() -> None:
    # Four centers more, three candidates, 400 * 10 entries at a rate of 4e5 / 3.
    assert gpu_report.seeding_limit(FIGURES, {"candidates": 3}) == pytest.approx(4 * 12e3 * 3 / 4e5)
    reads = gpu_report.seeding_limit(with_bytes(1e3), {"candidates": 3})
    assert reads == pytest.approx(4 * 4e3 * 4 / 1e3)
    fit = {**cell("float32", "high"), "hard sweeps": 3, "power sweeps": 2}
    assert gpu_report.fit_limit(FIGURES, fit) == pytest.approx(3 * 0.5 + 2 * 1.5)


def test_both_precisions_are_measured_and_peers_stand_beside_their_own() -> None:
    for precisions in (gpu.PRECISIONS, gpu.PRECISIONS_OF_FITS):
        assert {("float32", "high"), ("float32", "highest"), ("float16", "high")} <= set(precisions)
    rows = {
        precision: {**cell("float32", precision), "flash": 0.5} for precision in ("high", "highest")
    }
    assert gpu_report.of_peer(rows["high"], "flash", gpu_peers.FLASH_PRECISION) == "0.5"
    assert gpu_report.of_peer(rows["highest"], "flash", "high") == "other precision"
    unknown = {**rows["high"], "flash": None}
    assert gpu_report.of_peer(unknown, "flash", "high") == "not measured"


def test_ties_are_told_from_labels_that_are_wrong() -> None:
    points = np.array([[0.0], [5.0], [5.0], [9.0]])
    centers = np.array([[0.0], [10.0]])
    ours, core = np.array([0, 0, 1, 0]), np.array([0, 1, 1, 1])
    found = gpu.compared(points, centers, (ours, 51.0), (core, 50.0))
    assert (found["labels"], found["differ"], found["of these, ties"]) == (4, 2, 1)
    assert found["inertia, relative"] == pytest.approx(0.02)


def test_flash_kmeans_without_its_kernels_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flash_kmeans", ModuleType("flash_kmeans"))
    monkeypatch.setitem(sys.modules, "flash_kmeans.kmeans_triton_impl", None)
    with pytest.raises(SystemExit, match="installed without its kernels"):
        gpu_peers.flash()
    kernels = SimpleNamespace(batch_kmeans_Euclid=len)
    monkeypatch.setitem(sys.modules, "flash_kmeans.kmeans_triton_impl", kernels)
    assert gpu_peers.flash() is len
    monkeypatch.setitem(sys.modules, "flash_kmeans", None)
    assert gpu_peers.flash() is None


def test_peers_that_write_to_their_seeds_get_the_same_ones_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, seen = gpu.Bench(torch.device("cpu"), "small", 2), []

    def run(points: torch.Tensor, n_centers: int, **options: Any) -> tuple:
        seeds = options["init_centroids"]
        seen.append(seeds.clone())
        return None, seeds.zero_()

    monkeypatch.setattr(gpu, "flash", lambda: run)
    monkeypatch.setattr(bench, "device", torch.device("cuda"))
    monkeypatch.setattr(bench, "wait", lambda: None)
    gpu.flash_iteration(bench, bench.points, gpu_peers.FLASH_PRECISION)
    gpu.flash_fit(bench, bench.points, gpu_peers.FLASH_PRECISION)
    assert len(seen) == 2 * 3 + 3
    assert all(torch.equal(seeds[0], bench.centers) for seeds in seen)


def test_a_card_without_kernels_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = gpu.Bench(torch.device("cpu"), "small", 1)
    placement = gpu.TorchRows(bench.points).placement
    bench.check(placement)
    monkeypatch.setattr(bench, "device", torch.device("cuda"))
    with pytest.raises(SystemExit, match="the kernel is 'plain' and not Triton's"):
        bench.check(placement)


def test_each_figure_is_the_median_of_rounds_after_one_that_is_not_counted() -> None:
    bench, calls = gpu.Bench(torch.device("cpu"), "small", 5), []
    assert bench.seconds(lambda: calls.append(1)) >= 0
    assert len(calls) == 6
    calls.clear()
    gpu.timed_fit(bench, lambda: calls.append(1))
    assert len(calls) == 1 + gpu.MOST_ROUNDS_OF_FITS


def test_all_parts_are_measured_and_told_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu.SIZES, "small", (300, 24, 5, 200, 4))
    before = torch.get_float32_matmul_precision()
    bench = gpu.Bench(torch.device("cpu"), "small", 1)
    try:
        parts = {name: list(part(bench)) for name, part in gpu.PARTS.items()}
    finally:
        torch.set_float32_matmul_precision(before)
    figures = {"sizes": gpu.SIZES["small"], "parts": parts, "device": "d", "versions": "v"}
    stored = {"figures": figures, "date": "today", "command": "command"}
    text = gpu_report.report(stored, pages.as_markdown)
    for row in ("float32, high |", "float32, highest |", "the same centers | 300 | 0 | 0 |"):
        assert row in text
    assert text.count("not measured") == 3 + 2 + 1  # flash-kmeans, its fits, cuML
    assert text.count("other precision") == 1 + 1 + 2
