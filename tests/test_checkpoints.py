"""Fits that were killed go on where they were, and end with the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from powermeans import KMeans, PowerKMeans, open_data
from powermeans.mathematics.rules import Power
from powermeans.scale.checkpoint import (
    _MAGIC,
    CheckpointError,
    Journal,
    JournaledExecutor,
)
from powermeans.scale.executors import MemoryExecutor, PartOpener
from powermeans.scale.parted_rows import PartedRows
from powermeans.scale.records import HEAD

MODELS = {
    "search": lambda: PowerKMeans(6, random_state=0),
    "cosine": lambda: PowerKMeans(6, divergence="cosine", effort="none", random_state=0),
    "starts": lambda: KMeans(6, init="random", n_init=3, random_state=0),
}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(6, 4))
    return means[rng.integers(6, size=3000)] + rng.normal(size=(3000, 4))


def fitted(model, points, checkpoint=None, seconds=0.0):
    data = open_data(points, rows_per_part=1000, checkpoint=checkpoint, checkpoint_seconds=seconds)
    return model.fit(data)


def same_fit(one, other):
    return (
        np.array_equal(one.cluster_centers_, other.cluster_centers_)
        and np.array_equal(one.history_.inertia, other.history_.inertia)
        and one.inertia_ == other.inertia_
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_was_cut_short_anywhere_ends_with_the_same_bits(tmp_path, points, name):
    plain, path = fitted(MODELS[name](), points), tmp_path / "state"
    assert same_fit(fitted(MODELS[name](), points, path), plain)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for length in rng.integers(200, len(whole), size=3):
        path.write_bytes(whole[:length])
        assert same_fit(fitted(MODELS[name](), points, path), plain)
        assert path.read_bytes() == whole


def test_what_is_known_is_not_asked_for_again(tmp_path, points):
    def refuse(rows, number):
        raise AssertionError("the parts were looked at again")

    parts = [(points[:1000], None), (points[1000:], None)]
    for call in ("write", "read"):
        executor = MemoryExecutor(parts, PartOpener(), n_threads=1)
        if call == "read":
            executor.each = executor.total = refuse
        journal = Journal(tmp_path / "state", 0.0).begin("these points")
        rows = PartedRows(JournaledExecutor(executor, journal))
        found = rows.sweep(points[:3], Power(-2.0)), rows.critical_power(), rows.mean()
        journal.close()
        if call == "write":
            first = found
    np.testing.assert_array_equal(found[0].points, first[0].points)
    assert found[1] == first[1]
    np.testing.assert_array_equal(found[2], first[2])


@pytest.mark.parametrize("place", [0.3, 0.9])
def test_a_damaged_record_ends_what_is_known(tmp_path, points, place):
    plain, path = fitted(MODELS["search"](), points), tmp_path / "state"
    fitted(MODELS["search"](), points, path)
    contents = bytearray(path.read_bytes())
    contents[int(place * len(contents))] ^= 1
    path.write_bytes(contents)
    assert same_fit(fitted(MODELS["search"](), points, path), plain)


@pytest.mark.parametrize("change", [b"", b"\xff" * 60, b"\x02\0\0\0\0\0\0\0[]"])
def test_a_forged_record_with_a_right_checksum_is_refused(tmp_path, points, change):
    path = tmp_path / "state"
    fitted(MODELS["starts"](), points, path)
    contents = path.read_bytes()
    n_bytes, of_fit = HEAD.unpack_from(contents, len(_MAGIC))
    second = len(_MAGIC) + HEAD.size + n_bytes
    forged = contents[:second] + HEAD.pack(len(change), zlib.crc32(change, of_fit)) + change
    path.write_bytes(forged)
    with pytest.raises(CheckpointError, match=r"holds what no fit wrote .* remove this one"):
        fitted(MODELS["starts"](), points, path)
    assert path.read_bytes() == forged


def test_results_of_rows_in_other_parts_do_not_count(tmp_path, points):
    """Their last digits differ, though the calls are the same."""
    paths, fits = [tmp_path / "one", tmp_path / "other"], []
    for path, n in zip(paths, (1000, 1100), strict=True):
        data = open_data(points, rows_per_part=n, checkpoint=path, checkpoint_seconds=0.0)
        fits.append(MODELS["starts"]().fit(data))
    one, other = (path.read_bytes() for path in paths)
    seconds = [
        len(_MAGIC) + HEAD.size + HEAD.unpack_from(contents, len(_MAGIC))[0]
        for contents in (one, other)
    ]
    paths[0].write_bytes(one[: seconds[0]] + other[seconds[1] :])
    data = open_data(points, rows_per_part=1000, checkpoint=paths[0], checkpoint_seconds=0.0)
    assert same_fit(MODELS["starts"]().fit(data), fits[0])
    assert paths[0].read_bytes() == one


def test_the_file_is_written_to_at_most_so_often(tmp_path, points):
    lengths = []

    def watch(state):
        lengths.append((tmp_path / "state").stat().st_size)

    model = PowerKMeans(6, effort="none", random_state=0, callback=watch)
    fitted(model, points, tmp_path / "state", seconds=1e6)
    assert len(set(lengths)) == 1
    assert (tmp_path / "state").stat().st_size > lengths[-1]  # at the end of the fit
    (tmp_path / "state").unlink()
    lengths.clear()
    fitted(model, points, tmp_path / "state", seconds=0.0)
    assert sorted(set(lengths)) == lengths


def test_a_checkpoint_of_another_fit_is_refused(tmp_path, points):
    path = tmp_path / "state"
    fitted(PowerKMeans(6, random_state=0), points, path)
    for model in (PowerKMeans(5, random_state=0), PowerKMeans(6, random_state=1)):
        with pytest.raises(CheckpointError, match="a fit with other parameters"):
            fitted(model, points, path)
    with pytest.raises(CheckpointError, match="no checkpoint of a fit of these rows"):
        fitted(PowerKMeans(6, random_state=0), points + 1, path)
    path.write_bytes(b"something else altogether")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        fitted(PowerKMeans(6, random_state=0), points, path)
    assert path.read_bytes() == b"something else altogether"


def _file_of_two_arrays(folder: Path, points: np.ndarray) -> Path:
    path = folder / "two.npz"
    if not path.exists():
        np.savez(path, one=points, other=2 * points)
    return path


def _stream_of(_: Path, points: np.ndarray) -> Any:
    return pa.table(dict(zip("abcd", points.T, strict=True))).to_reader()


@pytest.mark.parametrize(
    ("source_in", "first", "second"),
    [
        (_file_of_two_arrays, {"array": "one"}, {"array": "other"}),
        (_stream_of, {"columns": ["a", "b"]}, {"columns": ["b", "c"]}),
        (_stream_of, {"columns": ["a", "b"]}, {"columns": ["a"], "weights": "b"}),
    ],
)
def test_a_checkpoint_of_other_columns_or_arrays_is_refused(
    tmp_path, points, source_in, first, second
):
    def fit(**options):
        source = source_in(tmp_path, np.abs(points))
        opened = open_data(source, checkpoint=tmp_path / "state", **options)
        return KMeans(6, random_state=0).fit(opened)

    found = fit(**first)
    with pytest.raises(CheckpointError, match="is no checkpoint of a fit of these rows"):
        fit(**second)
    assert same_fit(fit(**first), found)


def test_a_fit_by_chance_has_no_checkpoint(tmp_path, points):
    for random_state in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="pass an int"):
            fitted(PowerKMeans(6, random_state=random_state), points, tmp_path / "state")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("seconds", [-1, float("nan"), "60", None, True])
def test_what_is_no_number_of_seconds_is_refused(tmp_path, points, seconds):
    with pytest.raises(ValueError, match=f"checkpoint_seconds={seconds!r} must be a number"):
        open_data(points, checkpoint=tmp_path / "state", checkpoint_seconds=seconds)


FIT = """
import sys
import numpy as np
from powermeans import PowerKMeans, open_data
data = open_data(sys.argv[1], rows_per_part=1000, checkpoint=sys.argv[2], checkpoint_seconds=0)
model = PowerKMeans(6, random_state=0, n_threads=1).fit(data)
np.save(sys.argv[3], model.cluster_centers_)
"""


def grown(path: Path, n_bytes: int, process: subprocess.Popen) -> bool:
    """Wait until the file is so long; False where the process is over before."""
    while process.poll() is None:
        if path.exists() and path.stat().st_size >= n_bytes:
            return True
        time.sleep(0.001)
    return False


def test_a_killed_process_resumes_to_the_same_bits(tmp_path, points):
    np.save(tmp_path / "points.npy", points)
    plain = fitted(PowerKMeans(6, random_state=0), tmp_path / "points.npy")
    state, result = tmp_path / "state", tmp_path / "centers.npy"
    command = [sys.executable, "-c", FIT, tmp_path / "points.npy", state, result]
    with subprocess.Popen(command) as process:
        assert grown(state, 30_000, process)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not result.exists()
    subprocess.run(command, check=True)
    np.testing.assert_array_equal(np.load(result), plain.cluster_centers_)
