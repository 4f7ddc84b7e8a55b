"""A fit that ends early, or whose disk fails, leaves a checkpoint from which it goes on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powermeans.scale.checkpoint
from powermeans import KMeans, PowerKMeans, open_data
from powermeans.divergences import Bregman, Cosine, Generated, Mahalanobis, Poisson
from powermeans.scale.checkpoint import CheckpointError, Journal
from powermeans.scale.executors import PartOpener
from powermeans.types import FloatArray


@pytest.fixture(scope="module")
def points() -> FloatArray:
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(6, 4))
    points: FloatArray = means[rng.integers(6, size=3000)] + rng.normal(size=(3000, 4))
    return points


def fitted(points: Any, path: Path | None, seconds: float = 0.0, **params: Any) -> PowerKMeans:
    data = open_data(points, rows_per_part=1000, checkpoint=path, checkpoint_seconds=seconds)
    return PowerKMeans(6, random_state=0, **params).fit(data)


def same_fit(one: PowerKMeans, other: PowerKMeans) -> bool:
    return (
        one.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()
        and one.history_.inertia.tobytes() == other.history_.inertia.tobytes()
    )


class Ends:
    """A callback that ends a fit in its n-th sweep, in one of three ways."""

    def __init__(self, way: str, n_sweeps: int) -> None:
        self.way, self.left = way, n_sweeps

    def __call__(self, state: object) -> bool:
        self.left -= 1
        if self.left:
            return False
        if self.way == "stop":
            return True
        raise KeyboardInterrupt if self.way == "interrupt" else RuntimeError("no more")


@pytest.mark.parametrize(("n_sweeps", "effort"), [(1, "none"), (7, "none"), (7, "balanced")])
@pytest.mark.parametrize("way", ["stop", "interrupt", "error"])
def test_a_fit_that_was_ended_goes_on_to_the_same_bits(
    tmp_path: Path, points: FloatArray, way: str, n_sweeps: int, effort: str
) -> None:
    state = tmp_path / "state"
    whole = fitted(points, tmp_path / "whole", effort=effort)
    for seconds in (1e6, 0.0):
        ends = Ends(way, n_sweeps)
        if way == "stop":
            early = fitted(points, state, seconds, effort=effort, callback=ends)
            assert early.inertia_ > 0
        else:
            with pytest.raises((KeyboardInterrupt, RuntimeError)):
                fitted(points, state, seconds, effort=effort, callback=ends)
        written = state.read_bytes()
        assert (tmp_path / "whole").read_bytes().startswith(written)
    assert same_fit(fitted(points, state, effort=effort), whole)
    assert state.read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_fit_that_is_ended_where_it_was_known_keeps_what_was_known(
    tmp_path: Path, points: FloatArray
) -> None:
    fitted(points, tmp_path / "state", effort="none")
    before = (tmp_path / "state").read_bytes()
    fitted(points, tmp_path / "state", effort="none", callback=Ends("stop", 3))
    assert (tmp_path / "state").read_bytes() == before


# Disks that fail.


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_a_failed_write_left_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: FloatArray, error: BaseException
) -> None:
    whole, n_calls, sync = fitted(points, tmp_path / "whole", effort="none"), 0, os.fsync

    def fail_once(number: int) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 12:
            raise error
        sync(number)

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(type(error)):
        fitted(points, tmp_path / "state", effort="none")
    assert n_calls >= 12
    assert (tmp_path / "whole").read_bytes().startswith((tmp_path / "state").read_bytes())
    assert same_fit(fitted(points, tmp_path / "state", effort="none"), whole)


FULL = """
import resource, signal, sys
from powermeans.scale.checkpoint import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1], 0.0).begin("these points")
journal.note("first", [1.0])
size = journal.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, size + 30))
try:
    journal.note("second", list(range(100)))
except OSError as error:
    assert "the checkpoint was not written" in str(error), error
    journal.close()
    assert journal._file.closed
    assert journal.path.stat().st_size == size
    print("told")
"""


def test_a_record_that_does_not_fit_on_the_disk_leaves_those_before_it(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="limits of file sizes are those of Unix")
    command = [sys.executable, "-c", FULL, str(tmp_path / "state")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("told\n", "")
    journal = Journal(tmp_path / "state", 0.0).begin("these points")
    assert journal.answer("first") == (True, [1.0])
    assert journal.answer("second") == (False, None)
    journal.close()


# Labels that somebody else computes.


def test_labels_of_a_fit_on_dask_with_a_checkpoint_are_computed_elsewhere(
    tmp_path: Path, points: FloatArray
) -> None:
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    cloudpickle = pytest.importorskip("cloudpickle", reason="it comes with dask")
    array = da.from_array(points, chunks=(1000, 4))
    model = KMeans(6, random_state=0).fit(open_data(array, checkpoint=tmp_path / "state"))
    labels = pickle.loads(cloudpickle.dumps(model.labels_))
    expected = model.predict(points)
    np.testing.assert_array_equal(labels.compute(scheduler="sync"), expected)


# Divergences of one's own.


class Stretched(Bregman):
    def __init__(self, by: float) -> None:
        self.by = by

    def generator(self, points: FloatArray) -> FloatArray:
        return self.by * np.asarray((points**2).sum(axis=1))

    def gradient(self, points: FloatArray) -> FloatArray:
        return 2 * self.by * points


def generated(by: float) -> Generated:
    return Generated(lambda x: by * (x * x).sum(axis=1), lambda x: 2 * by * x)


@pytest.mark.parametrize("kind", [Stretched, generated])
def test_a_divergence_of_ones_own_goes_on_and_another_one_does_not(
    tmp_path: Path, points: FloatArray, kind: Any
) -> None:
    state = tmp_path / "state"
    first = fitted(points, state, divergence=kind(1.5), effort="none")
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    assert same_fit(fitted(points, state, divergence=kind(1.5), effort="none"), first)
    assert state.read_bytes() == whole
    with pytest.raises(CheckpointError, match="with this divergence"):
        fitted(points, state, divergence=kind(2.5), effort="none")


def test_another_function_or_parameter_is_another_opening() -> None:
    openings: list[Any] = [
        Cosine(),
        Poisson(),
        Mahalanobis(np.eye(2)),
        Mahalanobis(2 * np.eye(2)),
        Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x),
        Generated(lambda x: (x * x).sum(axis=1), lambda x: 3 * x),
        Generated(lambda x: (x * x).sum(axis=1), np.exp),
        Stretched(1.0),
        Stretched(2.0),
    ]
    texts = [PartOpener(divergence).fingerprint() for divergence in openings]
    assert len(set(texts)) == len(openings)
    assert not any(" at 0x" in text for text in texts)


@dataclass
class Curve:
    """A function with a state that nothing tells."""

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.asarray(points.sum(axis=-1))


def test_a_divergence_that_nobody_can_tell_from_others_has_no_checkpoint(
    tmp_path: Path, points: FloatArray
) -> None:
    with pytest.raises(ValueError, match="or leave checkpoint out"):
        fitted(points, tmp_path / "state", divergence=Generated(Curve(), lambda x: 0 * x + 1))
    assert (tmp_path / "state").read_bytes() == b""


def test_another_version_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: FloatArray
) -> None:
    fitted(points, tmp_path / "state", effort="none")
    monkeypatch.setattr(powermeans.scale.checkpoint, "version", lambda name: "0.0.0")
    with pytest.raises(CheckpointError, match="this version of powermeans"):
        fitted(points, tmp_path / "state", effort="none")
