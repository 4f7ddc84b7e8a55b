"""Where a checkpoint may be, and who has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powermeans import KMeans, PowerKMeans, open_data
from powermeans.engine.history import SweepState
from powermeans.scale import checkpoint as journal
from powermeans.scale.checkpoint import CheckpointError, Journal
from powermeans.scale.files import FileSource
from powermeans.scale.records import HEAD
from powermeans.types import FloatArray

HAS_LOCKS = pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")


@pytest.fixture(scope="module")
def points() -> FloatArray:
    return np.random.default_rng(0).normal(size=(3000, 4))


def fitted(points: Any, path: Path, seconds: float = 0.0, **params: Any) -> PowerKMeans:
    data = open_data(points, rows_per_part=1000, checkpoint=path, checkpoint_seconds=seconds)
    return PowerKMeans(4, **{"random_state": 0, "effort": "none", **params}).fit(data)


# Whose it is.


@HAS_LOCKS
def test_a_checkpoint_that_a_fit_has_is_refused_to_another(
    tmp_path: Path, points: FloatArray
) -> None:
    state, n_refused = tmp_path / "state", 0

    def begin_another(sweep: SweepState) -> None:
        nonlocal n_refused
        with pytest.raises(CheckpointError, match="state' is in use by another fit: wait"):
            fitted(points, state, random_state=1)
        n_refused += 1

    whole = fitted(points, tmp_path / "whole")
    first = fitted(points, state, callback=begin_another)
    assert n_refused == first.n_iter_
    assert state.read_bytes() == (tmp_path / "whole").read_bytes()
    assert fitted(points, state).cluster_centers_.tobytes() == whole.cluster_centers_.tobytes()


@HAS_LOCKS
def test_another_fit_is_refused_before_the_first_one_has_written(tmp_path: Path) -> None:
    claim = Journal(tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == b""
    with pytest.raises(CheckpointError, match="in use"):
        Journal(tmp_path / "state", 0.0).begin("these rows")
    claim.close()
    Journal(tmp_path / "state", 0.0).begin("these rows").close()


HOLD = """
import sys
from powermeans.scale.checkpoint import Journal
journal = Journal(sys.argv[1], 0.0).begin("these rows")
journal.note("first", 1.0)
print("held", flush=True)
sys.stdin.read()
"""


@HAS_LOCKS
def test_what_a_process_had_that_was_killed_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "state")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match="in use"):
            Journal(tmp_path / "state")
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    again = Journal(tmp_path / "state", 0.0).begin("these rows")
    assert again.answer("first") == (True, 1.0)
    again.close()


FORK = """
import os, signal, sys
from powermeans.scale.checkpoint import Journal
claim = Journal(sys.argv[1])
if not os.fork():
    if sys.argv[2] == "releases":
        claim.close()
    print("forked", flush=True)
    sys.stdin.read()
    os._exit(0)
signal.pause()
"""


@HAS_LOCKS
@pytest.mark.parametrize("what_is_forked", ["releases", "waits"])
def test_what_is_forked_from_a_process_neither_frees_nor_keeps_what_that_holds(
    tmp_path: Path, what_is_forked: str
) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "state"), what_is_forked]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "forked\n"
            with pytest.raises(CheckpointError, match="in use"):
                Journal(tmp_path / "state")
        finally:
            process.kill()
        process.wait()
        Journal(tmp_path / "state").close()


@HAS_LOCKS
def test_what_is_released_is_free_also_where_another_process_has_the_file_still(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").write_bytes(journal._MAGIC)
    claim = Journal(tmp_path / "state")
    inherited = os.dup(claim._file.fileno())  # as a fork does of which Python is not told
    claim.close()
    Journal(tmp_path / "state").close()
    os.close(inherited)


def test_a_disk_without_locks_has_checkpoints_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: FloatArray
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*arguments: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    first = fitted(points, tmp_path / "state")
    assert fitted(points, tmp_path / "state").inertia_ == first.inertia_


@pytest.mark.parametrize("scale", [None, "standard"])
def test_a_fit_that_fails_gives_its_checkpoint_back(
    tmp_path: Path, points: FloatArray, scale: Any
) -> None:
    state, wrong = tmp_path / "state", points.copy()
    wrong[2500, 1] = np.nan
    data = open_data(wrong, rows_per_part=1000, scale=scale, checkpoint=state)
    with pytest.raises(ValueError, match="X contains NaN"):
        KMeans(4, random_state=0).fit(data)
    assert state.read_bytes() == b""
    fitted(points, state)


# What it is, and where.


def test_a_file_that_is_no_checkpoint_is_left_alone_and_nobody_says_to_remove_it(
    tmp_path: Path, points: FloatArray
) -> None:
    other = tmp_path / "thesis"
    for contents in (b"all of my work", b"powermeans?", b"p" * 2000):
        other.write_bytes(contents)
        with pytest.raises(CheckpointError) as told:
            fitted(points, other)
        assert str(told.value) == f"checkpoint={str(other)!r} is no checkpoint: name another file"
        assert other.read_bytes() == contents
    other.write_bytes(b"powermeans checkpoint 1\nand results")
    with pytest.raises(CheckpointError, match="of another version of powermeans: name another"):
        fitted(points, other)
    with pytest.raises(OSError, match="Is a directory"):
        fitted(points, tmp_path)


def test_a_checkpoint_that_was_hardly_begun_is_begun_anew(
    tmp_path: Path, points: FloatArray
) -> None:
    state, whole = tmp_path / "state", tmp_path / "whole"
    fitted(points, whole)
    n_magic = len(journal._MAGIC)
    n_head = n_magic + HEAD.unpack_from(whole.read_bytes(), n_magic)[0]
    assert n_head > 100
    for n_bytes in (0, 5, len(journal._MAGIC), len(journal._MAGIC) + 7, n_head // 2):
        state.write_bytes(whole.read_bytes()[:n_bytes])
        fitted(points, state)
        assert state.read_bytes() == whole.read_bytes()


def test_a_checkpoint_with_a_damaged_beginning_is_not_written_over(
    tmp_path: Path, points: FloatArray
) -> None:
    state = tmp_path / "state"
    fitted(points, state)
    for place in (len(journal._MAGIC) + 2, len(journal._MAGIC) + 20):
        contents = bytearray(state.read_bytes())
        contents[place] ^= 64
        state.write_bytes(contents)
        with pytest.raises(CheckpointError, match="no checkpoint of a fit of these rows"):
            fitted(points, state)
        assert state.read_bytes() == bytes(contents)


def test_a_checkpoint_among_the_rows_or_in_their_place_is_refused_at_the_start(
    tmp_path: Path, points: FloatArray
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "one.npy", points)
    for path in (folder / "state", folder / "one.npy"):
        with pytest.raises(ValueError, match="is a file that rows are read from, or in a folder"):
            fitted(folder, path)
    assert os.listdir(folder) == ["one.npy"]
    first = fitted(folder, tmp_path / "state")
    assert fitted(folder, tmp_path / "state").inertia_ == first.inertia_


def test_a_place_where_there_can_be_no_file_is_told_before_a_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: FloatArray
) -> None:
    np.save(tmp_path / "rows.npy", points)
    wanted = tmp_path / "nowhere" / "state"
    data = open_data(tmp_path / "rows.npy", scale="standard", checkpoint=wanted)
    monkeypatch.setattr(FileSource, "blocks", lambda *where: pytest.fail("rows were read"))
    with pytest.raises(FileNotFoundError) as told:
        KMeans(4, random_state=0).fit(data)
    assert told.value.filename == str(wanted)
    assert "nowhere: make it first" in str(told.value)


@pytest.mark.parametrize("scale", [None, "standard"])
def test_nor_is_anything_computed_on_dask(tmp_path: Path, points: FloatArray, scale: Any) -> None:
    da = pytest.importorskip("dask.array", reason="dask is an extra")

    def refuse(block: FloatArray) -> FloatArray:
        pytest.fail("a partition was computed")

    array = da.from_array(points, chunks=(1000, 4)).map_blocks(
        refuse, dtype=np.float64, meta=np.empty((0, 0))
    )
    data = open_data(array, scale=scale, checkpoint=tmp_path / "nowhere" / "state")
    with pytest.raises(FileNotFoundError, match="make it first"):
        KMeans(4, random_state=0).fit(data)


def test_a_column_of_that_name_is_no_checkpoint(points: FloatArray) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(points[:, :2], columns=["checkpoint", "b"]), npartitions=2)
    assert KMeans(2).fit(frame).cluster_centers_.shape == (2, 2)


# Disks that are full.


def test_a_disk_that_is_full_at_the_very_end_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: FloatArray
) -> None:
    whole, n_writes, sync = fitted(points, tmp_path / "whole"), 0, os.fsync

    def fail_at_the_end(number: int) -> None:
        nonlocal n_writes
        n_writes += 1
        if n_writes > 1:  # after what the checkpoint is of
            raise OSError(28, "No space left on device")
        sync(number)

    monkeypatch.setattr(os, "fsync", fail_at_the_end)
    with pytest.warns(
        RuntimeWarning, match=r"No space left.*make room.*fit itself is complete"
    ) as told:
        model = fitted(points, tmp_path / "state", seconds=1e6)
    assert told[0].filename == __file__
    assert n_writes == 2
    assert model.cluster_centers_.tobytes() == whole.cluster_centers_.tobytes()
    assert model.inertia_ == whole.inertia_
    monkeypatch.undo()
    fitted(points, tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == (tmp_path / "whole").read_bytes()
