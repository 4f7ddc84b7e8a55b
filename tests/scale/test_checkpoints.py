"""Fits that were ended, killed or damaged go on where they were, and end with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
from scale.sources import SOURCES

import powermeans.scale.checkpoint
from powermeans import KMeans, PowerKMeans, open_data
from powermeans.divergences import Bregman, Cosine, Generated, Mahalanobis, Poisson
from powermeans.errors import ArgumentError
from powermeans.scale.checkpoint import _MAGIC, CheckpointError, Journal
from powermeans.scale.executors import PartOpener
from powermeans.scale.records import HEAD

HAS_LOCKS = pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
RNG = np.random.default_rng(0)
POINTS = (2 * RNG.normal(size=(6, 4)))[RNG.integers(6, size=3000)] + RNG.normal(size=(3000, 4))
MODELS = {
    "search": PowerKMeans(6, random_state=0),
    "one descent": PowerKMeans(6, effort="none", random_state=0),
    "cosine": PowerKMeans(6, divergence="cosine", effort="none", random_state=0),
    "starts": KMeans(6, init="random", n_init=3, random_state=0),
}
ONE = MODELS["one descent"]
FLIPPED = bytes(byte ^ 1 for byte in range(256))


def fitted(path, model=ONE, points=POINTS, seconds=1e6, **params):
    data = open_data(points, rows_per_part=1000, checkpoint=path, checkpoint_seconds=seconds)
    return type(model)(**{**model.get_params(), **params}).fit(data)


def same_fit(one, other):
    return (
        one.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()
        and one.history_.inertia.tobytes() == other.history_.inertia.tobytes()
        and one.inertia_ == other.inertia_
    )


def holds(path, contents):
    """Whether a file has these bytes; pytest would look for minutes for what differs."""
    return path.read_bytes() == contents


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    """A checkpoint of each whole fit, which is that of one without."""
    folder = tmp_path_factory.mktemp("wholes")
    found = {}
    for name, model in MODELS.items():
        found[name] = fitted(folder / name, model), (folder / name).read_bytes()
        assert same_fit(found[name][0], fitted(None, model))
    return found


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def end_of_head(contents):
    """Where the record of what the checkpoint is of ends."""
    return len(_MAGIC) + HEAD.size + HEAD.unpack_from(contents, len(_MAGIC))[0]


# Going on.


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_was_cut_short_or_damaged_anywhere_ends_with_the_same_bits(name, wholes, state):
    model, whole = wholes[name]
    places = (*(int(share * len(whole)) for share in (0.1, 0.37, 0.9)), len(whole))
    # Within what is the same in all checkpoints, and at its ends.
    starts = (0, 5, len(_MAGIC), len(_MAGIC) + 7, 90) if name == "one descent" else ()
    for kept in (*starts, *places):
        for damaged in (b"", whole[kept : kept + 1].translate(FLIPPED) + whole[kept + 1 :]):
            if kept in places or not damaged:
                state.write_bytes(whole[:kept] + damaged)
                assert same_fit(fitted(state, MODELS[name]), model), kept
                assert holds(state, whole), kept


class Ends:
    """A callback that ends a fit in its n-th sweep, in one of three ways."""

    def __init__(self, way, n_sweeps):
        self.way, self.left = way, n_sweeps

    def __call__(self, state):
        self.left -= 1
        if self.left:
            return False
        if self.way == "stop":
            return True
        raise KeyboardInterrupt if self.way == "interrupt" else RuntimeError("no more")


@pytest.mark.parametrize(
    ("name", "n_sweeps"), [("one descent", 1), ("one descent", 7), ("search", 7)]
)
@pytest.mark.parametrize("way", ["stop", "interrupt", "error"])
def test_a_fit_that_was_ended_goes_on_to_the_same_bits(way, name, n_sweeps, wholes, state):
    model, whole = wholes[name]
    for seconds in (1e6, 0.0):
        how = {"seconds": seconds, "callback": Ends(way, n_sweeps)}
        if way == "stop":
            assert fitted(state, MODELS[name], **how).inertia_ > 0
        else:
            with pytest.raises((KeyboardInterrupt, RuntimeError)):
                fitted(state, MODELS[name], **how)
        assert whole.startswith(state.read_bytes())
    assert same_fit(fitted(state, MODELS[name]), model)
    # What was known stays known where a later fit ends sooner.
    fitted(state, MODELS[name], callback=Ends("stop", 1))
    assert holds(state, whole)


def test_the_file_is_written_to_at_most_so_often(state):
    lengths = []

    def watch(_):
        lengths.append(state.stat().st_size)

    fitted(state, callback=watch)
    assert len(set(lengths)) == 1
    assert state.stat().st_size > lengths[-1]  # at the end of the fit
    state.unlink()
    lengths.clear()
    fitted(state, seconds=0.0, callback=watch)
    assert sorted(set(lengths)) == lengths


# What it is of.


def test_a_checkpoint_of_another_fit_is_refused_and_left_alone(state, wholes, monkeypatch):
    _, whole = wholes["one descent"]
    damaged, other_head, forged = (bytearray(whole) for _ in range(3))
    damaged[len(_MAGIC) + 2] ^= 64
    other_head[len(_MAGIC) + 20] ^= 64
    second = end_of_head(whole)
    of_head = HEAD.unpack_from(whole, len(_MAGIC))[1]
    cases = [
        (whole, {"n_clusters": 5}, "other parameters"),
        (whole, {"random_state": 1}, "other parameters"),
        (whole, {"divergence": "cosine"}, "other parameters|this divergence"),
        (whole, {"points": POINTS + 1}, "these rows"),
        (whole, {"points": POINTS[:2000]}, "these rows"),
        (damaged, {}, "these rows"),
        (other_head, {}, "these rows"),
        (b"powermeans checkpoint 1\nand results", {}, "another version"),
        *(
            (text, {}, "is no checkpoint")
            for text in (b"all of my work", b"powermeans?", b"p" * 2000)
        ),
    ]
    # A record that no fit wrote, though its checksum is right.
    for change in (b"", b"\xff" * 60, b"\x02\0\0\0\0\0\0\0[]"):
        head = HEAD.pack(len(change), zlib.crc32(change, of_head))
        cases.append((bytes(forged[:second]) + head + change, {}, "what no fit wrote"))
    for contents, changes, told in cases:
        state.write_bytes(contents)
        with pytest.raises(CheckpointError, match=told) as error:
            fitted(state, **changes)
        assert (error.value.argument, error.value.value) == ("checkpoint", str(state))
        assert holds(state, contents)
    state.write_bytes(whole)
    monkeypatch.setattr(powermeans.scale.checkpoint, "version", lambda name: "0.0.0")
    with pytest.raises(CheckpointError, match="this version"):
        fitted(state)


def test_results_of_rows_in_other_parts_do_not_count(tmp_path, wholes):
    """Their last digits differ, though the calls are the same."""
    model, one = wholes["starts"]
    data = open_data(POINTS, rows_per_part=1100, checkpoint=tmp_path / "a")
    MODELS["starts"].fit(data)
    other = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(one[: end_of_head(one)] + other[end_of_head(other) :])
    assert same_fit(fitted(tmp_path / "a", MODELS["starts"]), model)
    assert holds(tmp_path / "a", one)


@pytest.mark.parametrize(
    ("source", "first", "second"),
    [
        ("npz", {"array": "rows"}, {"array": "others"}),
        ("reader", {"columns": ["height", "width"]}, {"columns": ["width", "depth"]}),
        ("reader", {"columns": ["height", "width"]}, {"columns": ["height"], "weights": "width"}),
    ],
)
def test_a_checkpoint_of_other_columns_or_arrays_is_refused(source, first, second, tmp_path, state):
    def fit(options):
        given = SOURCES["reader"].given(tmp_path, points) if source == "reader" else path
        return KMeans(2, random_state=0).fit(open_data(given, checkpoint=state, **options))

    points = np.abs(POINTS[:, :3])
    path = SOURCES["npz"].given(tmp_path, points)
    found = fit(first)
    with pytest.raises(CheckpointError, match="these rows"):
        fit(second)
    assert same_fit(fit(first), found)


class Stretched(Bregman):
    def __init__(self, by):
        self.by = by

    def generator(self, points):
        return self.by * np.asarray((points**2).sum(axis=1))

    def gradient(self, points):
        return 2 * self.by * points


def generated(by):
    return Generated(lambda x: by * (x * x).sum(axis=1), lambda x: 2 * by * x)


@pytest.mark.parametrize("kind", [Stretched, generated])
def test_a_divergence_of_ones_own_goes_on_and_another_one_does_not(kind, state):
    first = fitted(state, divergence=kind(1.5))
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    assert same_fit(fitted(state, divergence=kind(1.5)), first)
    assert holds(state, whole)
    with pytest.raises(CheckpointError, match="with this divergence"):
        fitted(state, divergence=kind(2.5))


class Curve:
    """A function with a state that nothing tells."""

    def __call__(self, points):
        return np.asarray(points.sum(axis=-1))


def test_another_function_or_parameter_is_another_opening(state):
    openings = [
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
    with pytest.raises(ValueError, match="leave checkpoint out"):
        fitted(state, divergence=Generated(Curve(), lambda x: 0 * x + 1))
    assert state.read_bytes() == b""


# Whose it is.


@HAS_LOCKS
def test_a_checkpoint_that_a_fit_has_is_refused_to_another(state, wholes):
    n_refused, (model, whole) = 0, wholes["one descent"]

    def begin_another(_):
        nonlocal n_refused
        with pytest.raises(CheckpointError, match="state' is in use by another fit: wait"):
            fitted(state, random_state=1)
        n_refused += 1

    assert fitted(state, callback=begin_another).n_iter_ == n_refused
    assert holds(state, whole)
    assert same_fit(fitted(state), model)
    state.unlink()
    claim = Journal(state)  # also before anything is written
    assert state.read_bytes() == b""
    with pytest.raises(CheckpointError, match="in use"):
        Journal(state, 0.0).begin("these rows")
    inherited = os.dup(claim._file.fileno())  # as a fork does of which Python is not told
    claim.close()
    Journal(state, 0.0).begin("these rows").close()
    os.close(inherited)


HOLD = """
import os, sys
from powermeans.scale.checkpoint import Journal
journal = Journal(sys.argv[1], 0.0).begin("these rows")
journal.note("first", 1.0)
if sys.argv[2] != "alone" and not os.fork():
    if sys.argv[2] == "releases":
        journal.close()
    print("held", flush=True)
    sys.stdin.read()
    os._exit(0)
if sys.argv[2] == "alone":
    print("held", flush=True)
sys.stdin.read()
"""


@HAS_LOCKS
@pytest.mark.parametrize("forked", ["alone", "releases", "waits"])
def test_what_a_process_had_that_was_killed_is_free_and_forks_neither_free_nor_keep_it(
    forked, state
):
    command, pipe = [sys.executable, "-c", HOLD, str(state), forked], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            with pytest.raises(CheckpointError, match="in use"):
                Journal(state)
        finally:
            process.kill()
        process.wait()
        again = Journal(state, 0.0).begin("these rows")
    assert again.answer("first") == (True, 1.0)
    again.close()


def test_a_disk_without_locks_has_checkpoints_all_the_same(state, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert same_fit(fitted(state), fitted(state))


@pytest.mark.parametrize("scale", [None, "standard"])
def test_a_fit_that_fails_gives_its_checkpoint_back(scale, state):
    wrong = POINTS.copy()
    wrong[2500, 1] = np.nan
    data = open_data(wrong, rows_per_part=1000, scale=scale, checkpoint=state)
    for _ in range(2):
        with pytest.raises(ValueError, match="X contains NaN"):
            KMeans(4, random_state=0).fit(data)
    assert state.read_bytes() == b""
    fitted(state)


def test_a_checkpoint_among_the_rows_or_in_no_folder_is_refused_at_the_start(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "one.npy", POINTS)
    for path in (folder / "state", folder / "one.npy"):
        with pytest.raises(ArgumentError, match="is a file that rows are read from"):
            fitted(path, points=folder)
    assert os.listdir(folder) == ["one.npy"]
    assert same_fit(fitted(tmp_path / "a", points=folder), fitted(tmp_path / "a", points=folder))
    with pytest.raises(OSError, match="Is a directory"):
        fitted(tmp_path)
    wanted = tmp_path / "nowhere" / "state"
    data = open_data(folder, scale="standard", checkpoint=wanted)
    (folder / "one.npy").unlink()  # nothing is read before
    with pytest.raises(FileNotFoundError, match="nowhere: make it first") as told:
        KMeans(4, random_state=0).fit(data)
    assert told.value.filename == str(wanted)


# Disks that fail.


@pytest.mark.parametrize(
    ("error", "at"),
    [(OSError(28, "No space left on device"), 12), (KeyboardInterrupt(), 12),
     (OSError(28, "No space left on device"), None)],
)  # fmt: skip
def test_what_a_failed_write_left_is_taken_back(error, at, state, wholes, monkeypatch):
    """At the very end it costs no result."""
    (model, whole), n_calls, sync = wholes["one descent"], 0, os.fsync

    def fail(number):
        nonlocal n_calls
        n_calls += 1
        if n_calls == (at or 2):
            raise error
        sync(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        if at:
            with pytest.raises(type(error)):
                fitted(state, seconds=0.0)
        else:
            with pytest.warns(RuntimeWarning, match=r"No space left.*make room") as told:
                assert same_fit(fitted(state), model)
            assert told[0].filename == __file__
    assert n_calls >= (at or 2)
    assert whole.startswith(state.read_bytes())
    assert same_fit(fitted(state), model)
    assert holds(state, whole)


def test_a_record_that_does_not_fit_on_the_disk_leaves_those_before_it(state):
    resource = pytest.importorskip("resource", reason="limits of file sizes are those of Unix")
    journal = Journal(state, 0.0).begin("these points")
    journal.note("first", [1.0])
    size, limits = state.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, limits[1]))
    try:
        with pytest.raises(OSError, match="the checkpoint was not written"):
            journal.note("second", list(range(100)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.close()
    assert state.stat().st_size == size
    journal = Journal(state, 0.0).begin("these points")
    assert journal.answer("first") == (True, [1.0])
    assert journal.answer("second") == (False, None)
    journal.close()
