"""The cost model says what it should, and a fit of a file stays within a limit of memory."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import scale_report
from benchmarks.cost_model import Cost, Job, Rates, Seeding, cost_of_sweep
from benchmarks.limited import Task
from benchmarks.scale import limited, write_npy
from powermeans.parts.executors import added
from powermeans.sums import Sums

FREE = Rates(0, 0, 0, 0, 0, 0, 0, 0)
FEW = Job(1000, 3, 5, n_parts=4, n_workers=2)
MANY = Job(1e6, 128, 1000, n_parts=16, n_workers=4)


def test_each_rate_is_paid_for_what_it_counts() -> None:
    def total(**rates: float) -> float:
        return cost_of_sweep(replace(FEW, cores=2), replace(FREE, **rates)).total

    assert total(multiply_add=1) == 1000 * 5 * 3 / 4
    assert total(distance=1) == 1000 * 5 / 4
    assert total(value=1) == 1000 * 3 / 4
    assert total(part=1) == 4 / 4
    assert total(task=1) == 4
    assert total(turn=1) == 1
    # Four tasks with 8 * 5 * 3 bytes of centers, and as many sums of 5 * 4 + 3 numbers.
    assert total(byte_sent=1) == 4 * 120 + 4 * 184
    assert total(byte_added=1) == 3 * 184


def test_large_sums_are_added_by_the_workers() -> None:
    assert not FEW.is_added_by_workers
    assert MANY.is_added_by_workers
    assert MANY.n_tasks == 16 + 15 + 1
    assert MANY.height == 4
    assert MANY.additions_in_a_row == 3 + 2
    size = 8 * (1000 * 129 + 3)
    assert MANY.bytes_of_sums_sent == size * (1 + 0.75 * 5)
    assert MANY.bytes_to_a_client_that_adds_alone == 16 * size


def test_one_process_sends_nothing_and_has_no_tasks() -> None:
    alone = replace(MANY, n_workers=1, on_dask=False)
    rates = replace(FREE, task=1, turn=1, byte_sent=1)
    assert cost_of_sweep(alone, rates) == Cost(0, 0, 0, 0)


def test_the_bytes_of_sums_are_those_of_sums() -> None:
    sums = Sums(np.zeros((1000, 128)), np.zeros(1000), 0.0, 0.0, 0.0)
    assert MANY.bytes_of_sums == sums.points.nbytes + sums.weights.nbytes + 3 * 8


def test_the_tree_is_as_high_as_the_one_that_adds() -> None:
    class Counted(int):
        def __add__(self, other: int) -> Counted:
            return Counted(max(int(self), int(other)) + 1)

    for n_parts in (1, 2, 5, 16, 17):
        assert added(Counted(0) for _ in range(n_parts)) == replace(MANY, n_parts=n_parts).height


def test_rounds_of_seeding_are_counted_in_sweeps() -> None:
    seeding = Seeding(FEW, n_rounds=3, oversampling=2.0)
    assert (seeding.n_drawn, seeding.n_candidates) == (10, 30)
    # Nothing, 10 and 20 candidates in the rounds, and 30 to be weighed, where a sweep has five.
    assert seeding.in_sweeps == (0 + 10 + 20 + 30) / 5
    # Three places are tried for each of five seeds.
    assert seeding.seconds_of_greedy(replace(FREE, distance=1)) == 30 * 5 * 3


KERNELS = {"multiply_add": 1e-10, "distance": 1e-9, "value": 0.0}
COSTS: dict[str, Any] = {
    "kernels": {"hard": KERNELS, "power": {**KERNELS, "distance": 5e-9}},
    "part": 0.0,
    "addition": {"bytes": 10, "seconds": 1e-3, "seconds of a byte": 1e-4},
    "dask": {"2": {"task": 1e-3, "turn": 1e-2, "byte_sent": 1e-9}},
    "checked": [
        {
            "job": asdict(FEW),
            "workers": 2,
            "rule": "hard",
            "model": {"total": 0.5},
            "measured": 0.25,
        }
    ],
}


def test_the_page_has_what_was_measured() -> None:
    assert scale_report.checked_table(COSTS)[1][-3:] == ["500.0", "250.0", "2.00"]
    (hundred,) = (row for row in scale_report.plan_table(COSTS) if row[0] == "100 MB")
    # 1e9 * 1e4 distances of 128 multiply-adds on 3200 cores, and 5120 parts, as many additions.
    assert hundred[1:4] == ["5,120", "10,240", f"{1e13 * (128e-10 + 1e-9) / 3200:.2f}"]
    assert hundred[4] == f"{10_240 * 1e-3 + 1e-2:.2f}"


def test_the_page_has_the_ratios_of_dask_and_of_its_peer() -> None:
    sweep = {"one array": 1.0, "kept parts": 1.0, "dask": 1.125, "dask over kept parts": 0.125}
    table = scale_report.overhead_table({"seconds of a sweep": {"hard": sweep}})
    assert table[1] == ["hard", "1.00", "1.00", "1.12", "+12 %"]
    run = {"name": "ours", "seed": 1, "seconds": 32.7, "inertia": 2e6, "own inertia": 1e6}
    assert scale_report.peers_table({"runs": [run]})[1] == ["ours", "1", "33", "2.0 M", "1.0 M"]
    told = scale_report.times_sentence({"times to match": {"ours": [10.46, None]}})
    assert told.endswith("`ours` 10.5, never.")


def test_a_fit_that_was_refused_is_shown_as_one() -> None:
    run = {"model": "KMeans", "file": ".npy", "limit": 1e6}
    good = {**run, "peak": 9e6, "held before": 8e6, "sweeps": 3, "same bits": True}
    table = scale_report.memory_table({"fits": [{**run, "refused": "MemoryError"}, good]})
    assert table[1][2] == "refused"
    assert table[2][1:] == ["1", "1", "9", "3", "yes"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are those of Linux")
@pytest.mark.parametrize("in_memory", [False, True], ids=["part by part", "at once"])
def test_a_file_of_four_times_the_limit_is_fitted_only_part_by_part(
    tmp_path: Path, in_memory: bool
) -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((2**16, 32), dtype=np.float32) for _ in range(16)]
    path = tmp_path / "points.npy"
    write_npy(path, iter(blocks), 16 * blocks[0].nbytes)
    limit = path.stat().st_size // 4
    np.testing.assert_array_equal(np.load(path, mmap_mode="r")[-1], blocks[-1][-1])
    task = Task(str(path), "KMeans", 2, limit, in_memory=in_memory)
    found = limited(task)
    if in_memory:
        assert "MemoryError" in found["refused"]
    else:
        assert 0 < found["peak"] - found["held before"] < limit
        assert found["mapped at most"] <= found["mapped before"] + limit
