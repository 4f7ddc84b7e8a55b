"""Fits that were ended, killed or damaged go on where they were: the same bits, and no reads."""

import itertools
import os
import random
import subprocess
import sys
import zlib
from unittest.mock import Mock

import numpy as np
import pytest
from scale.sources import SOURCES

import powermeans.scale.checkpoint
from powermeans import KMeans, PowerKMeans, open_data
from powermeans.divergences import Bregman, Cosine, Generated, Mahalanobis, Poisson
from powermeans.errors import ArgumentError
from powermeans.methods import FuzzyCMeans, KHarmonicMeans
from powermeans.scale.checkpoint import _MAGIC, HEAD, CheckpointError, Journal
from powermeans.scale.executors import PartOpener
from powermeans.scale.files import FileSource
from tests.attacks import kills
from tests.attacks.running import RIGHT

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


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_was_cut_short_or_damaged_anywhere_ends_with_the_same_bits(name, wholes, state):
    model, whole = wholes[name]
    places = [int(share * len(whole)) for share in (0.1, 0.37, 0.9, 1)]
    flipped = [whole[at : at + 1].translate(FLIPPED) + whole[at + 1 :] for at in places]
    # Within what is the same in all checkpoints, and at its ends.
    starts = (0, 5, len(_MAGIC), len(_MAGIC) + 7, 90) if name == "one descent" else ()
    cut = [(at, b"") for at in (*starts, *places)]
    for kept, damaged in [*cut, *zip(places, flipped, strict=True)]:
        state.write_bytes(whole[:kept] + damaged)
        assert same_fit(fitted(state, MODELS[name]), model), kept
        assert holds(state, whole), kept


class Ends:
    def __init__(self, way, n_sweeps, reads=()):
        self.way, self.left, self.reads, self.states = way, n_sweeps, reads, []

    def __call__(self, state):
        self.states.append(state)
        self.left -= 1
        if self.left:
            return False
        if self.reads:
            self.reads.clear()
        if self.way is None:
            return True
        raise self.way("now")


@pytest.mark.parametrize(
    ("way", "name", "n_sweeps"),
    [
        *(
            (way, "one descent", n)
            for way in (None, KeyboardInterrupt, LookupError)
            for n in (1, 7)
        ),
        (None, "search", 7),
        (KeyboardInterrupt, "search", 7),
    ],
)
def test_a_fit_that_was_ended_goes_on_to_the_same_bits(way, name, n_sweeps, wholes, state):
    model, whole = wholes[name]
    for seconds in (1e6, 0.0):
        how = {"seconds": seconds, "callback": Ends(way, n_sweeps)}
        if way is None:
            assert fitted(state, MODELS[name], **how).inertia_ > 0
        else:
            with pytest.raises(way):
                fitted(state, MODELS[name], **how)
        assert whole.startswith(state.read_bytes())
    assert same_fit(fitted(state, MODELS[name]), model)
    # What was known stays known where a later fit ends sooner.
    fitted(state, MODELS[name], callback=Ends(None, 1))
    assert holds(state, whole)


def test_a_checkpoint_of_another_fit_is_refused_and_left_alone(state, wholes, monkeypatch):
    _, whole = wholes["one descent"]
    damaged, other_head = bytearray(whole), bytearray(whole)
    damaged[len(_MAGIC) + 2] ^= 64
    other_head[len(_MAGIC) + 20] ^= 64
    start, of_head = whole[: end_of_head(whole)], HEAD.unpack_from(whole, len(_MAGIC))[1]
    # Records that no fit wrote, though their checksums are right.
    forged = [
        start + HEAD.pack(len(change), zlib.crc32(change, of_head)) + change
        for change in (b"", b"\xff" * 60, b"\x02\0\0\0\0\0\0\0[]")
    ]
    for contents, changes, told in [
        (whole, {"n_clusters": 5}, "other parameters"),
        (whole, {"random_state": 1}, "other parameters"),
        (whole, {"divergence": "cosine"}, "other parameters|this divergence"),
        (damaged, {}, "these rows"),
        (other_head, {}, "these rows"),
        (b"powermeans checkpoint 1\nand results", {}, "another version"),
        *((text, {}, "is no checkpoint") for text in (b"all of my work", b"powermeans?")),
        (b"p" * 2000, {}, "is no checkpoint"),
        *((contents, {}, "what no fit wrote") for contents in forged),
    ]:
        state.write_bytes(contents)
        with pytest.raises(CheckpointError, match=told) as error:
            fitted(state, **changes)
        assert (error.value.argument, error.value.value) == ("checkpoint", str(state))
        assert holds(state, contents)
    state.write_bytes(whole)
    monkeypatch.setattr(powermeans.scale.checkpoint, "version", lambda name: "0.0.0")
    with pytest.raises(CheckpointError, match="this version"):
        fitted(state)


def test_results_of_other_parts_do_not_count_and_writes_are_seldom(tmp_path, wholes, state):
    """Their last digits differ, though the calls are the same."""
    model, one = wholes["starts"]
    data = open_data(POINTS, rows_per_part=1100, checkpoint=tmp_path / "a")
    MODELS["starts"].fit(data)
    other = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(one[: end_of_head(one)] + other[end_of_head(other) :])
    assert same_fit(fitted(tmp_path / "a", MODELS["starts"]), model)
    assert holds(tmp_path / "a", one)
    lengths = []
    for seconds in (1e6, 0.0):
        lengths.append([])
        fitted(state, seconds=seconds, callback=lambda _: lengths[-1].append(state.stat().st_size))
        lengths[-1].append(state.stat().st_size)
        state.unlink()
    (*seldom, at_the_end), often = lengths
    assert len(set(seldom)) == 1
    assert at_the_end > seldom[0]
    assert sorted({*often[:-1]}) == often[:-1]


def test_a_checkpoint_of_another_array_is_refused(tmp_path, state):
    file = SOURCES["npz"].given(tmp_path, np.abs(POINTS[:, :3]))

    def fit(array):
        return KMeans(2, random_state=0).fit(open_data(file, checkpoint=state, array=array))

    found = fit("rows")
    with pytest.raises(CheckpointError, match="these rows"):
        fit("others")
    assert same_fit(fit("rows"), found)


class Stretched(Bregman):
    def __init__(self, by):
        self.by = by

    def generator(self, points):
        return self.by * np.asarray((points**2).sum(axis=1))

    def gradient(self, points):
        return 2 * self.by * points


class Curve:
    """A function with a state that nothing tells."""

    def __call__(self, points):
        return np.asarray(points.sum(axis=-1))


@pytest.mark.parametrize(
    "kind",
    [Stretched, lambda by: Generated(lambda x: by * (x * x).sum(axis=1), lambda x: 2 * by * x)],
)
def test_a_divergence_of_ones_own_goes_on_and_another_one_does_not(kind, state):
    first = fitted(state, divergence=kind(1.5))
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    assert same_fit(fitted(state, divergence=kind(1.5)), first)
    assert holds(state, whole)
    with pytest.raises(CheckpointError, match="with this divergence"):
        fitted(state, divergence=kind(2.5))


def test_another_function_or_parameter_is_another_opening(state):
    matrices = [Mahalanobis(np.eye(2)), Mahalanobis(2 * np.eye(2))]
    functions = [lambda x: 2 * x, lambda x: 3 * x, np.exp]
    generated = [Generated(lambda x: (x * x).sum(axis=1), function) for function in functions]
    openings = [Cosine(), Poisson(), *matrices, *generated, Stretched(1.0), Stretched(2.0)]
    texts = [PartOpener(divergence).fingerprint() for divergence in openings]
    assert len(set(texts)) == len(openings)
    assert not any(" at 0x" in text for text in texts)
    with pytest.raises(ValueError, match="leave checkpoint out"):
        fitted(state, divergence=Generated(Curve(), lambda x: 0 * x + 1))
    assert state.read_bytes() == b""


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


HOLD = """
import os, sys
from powermeans.scale.checkpoint import Journal
journal = Journal(sys.argv[1], 0.0).begin("these rows")
journal.note("first", 1.0)
for is_closed in (True, False):
    if not os.fork():
        if is_closed:
            journal.close()
        os.write(1, b"held\\n")  # at once: lines of two that print may mix
        sys.stdin.read()
        os._exit(0)
sys.stdin.read()
"""


@HAS_LOCKS
def test_what_a_killed_process_had_is_free_and_forks_neither_free_nor_keep_it(state):
    """One of its forks closes the checkpoint, and the other only waits."""
    command, pipe = [sys.executable, "-c", HOLD, str(state)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert [process.stdout.readline() for _ in range(2)] == ["held\n"] * 2
            with pytest.raises(CheckpointError, match="in use"):
                Journal(state)
        finally:
            process.kill()
        process.wait()
        again = Journal(state, 0.0).begin("these rows")
    assert again.answer("first") == (True, 1.0)
    inherited = os.dup(again._file.fileno())  # as a fork does of which Python is not told
    again.close()
    Journal(state).close()
    os.close(inherited)


def test_a_disk_without_locks_has_checkpoints_all_the_same(state, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    refused = Mock(side_effect=OSError(37, "No locks available"))
    monkeypatch.setattr(fcntl, "flock", refused)
    assert same_fit(fitted(state), fitted(state))


def test_a_fit_that_fails_gives_its_checkpoint_back(state):
    wrong = POINTS.copy()
    wrong[2500, 1] = np.nan
    data = open_data(wrong, rows_per_part=1000, checkpoint=state)
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
    data = open_data(folder, checkpoint=wanted)
    (folder / "one.npy").unlink()  # nothing is read before
    with pytest.raises(FileNotFoundError, match="nowhere: make it first") as told:
        KMeans(4, random_state=0).fit(data)
    assert told.value.filename == str(wanted)


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize(("error", "at"), [(FULL, 12), (KeyboardInterrupt(), 12), (FULL, 2)])
def test_what_a_failed_write_left_is_taken_back(error, at, state, wholes, monkeypatch):
    (model, whole), calls, sync = wholes["one descent"], itertools.count(1), os.fsync

    def fail(number):
        if next(calls) == at:
            raise error
        sync(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        if at == 2:  # at the very end it costs no result
            with pytest.warns(RuntimeWarning, match=r"No space left.*free some space") as told:
                assert same_fit(fitted(state), model)
            assert told[0].filename == __file__
        else:
            with pytest.raises(type(error)):
                fitted(state, seconds=0.0)
    assert next(calls) > at
    assert whole.startswith(state.read_bytes())
    assert same_fit(fitted(state), model)
    assert holds(state, whole)


# How often a fit reads its rows.


@pytest.fixture
def reads(monkeypatch):
    """The first rows of all reads of files."""
    counted, blocks = [], FileSource.blocks

    def counting(source, first_row=0, at_once=None):
        counted.append(first_row)
        return blocks(source, first_row, at_once)

    monkeypatch.setattr(FileSource, "blocks", counting)
    return counted


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "rows.npy", np.abs(POINTS))
    return tmp_path / "rows.npy"


READ = {
    **MODELS,
    "poisson": PowerKMeans(6, divergence="poisson", effort="none", random_state=0),
    "missing": PowerKMeans(6, missing="observed", effort="none", random_state=0),
    "plain": PowerKMeans(6, init="plain-k-means++", effort="none", random_state=0),
    "harmonic": KHarmonicMeans(6, random_state=0),
    "fuzzy": FuzzyCMeans(6, random_state=0),
}


@pytest.mark.parametrize("name", READ)
def test_a_finished_fit_takes_no_look_at_the_rows_again(name, file, state, reads):
    first = fitted(state, READ[name], file)
    assert len(reads) > 3
    reads.clear()
    again = fitted(state, READ[name], file)
    assert reads == []
    assert again.cluster_centers_.tobytes() == first.cluster_centers_.tobytes()
    assert again.inertia_ == first.inertia_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_neither_for_the_power_of_a_sample(file, state, reads):
    np.save(file, RNG.normal(size=(41_000, 2)) * [3.0, 1.0])
    data = open_data(file, rows_per_part=10_000, checkpoint=state)
    model = PowerKMeans(2, max_iter=3, polish=False, effort="none", random_state=0)
    power = model.fit(data).critical_power_
    reads.clear()
    assert model.fit(data).critical_power_ == power
    assert reads == []


def test_an_interrupted_fit_reads_nothing_more_and_keeps_what_was_accepted(file, reads):
    np.save(file, np.where(POINTS > 4, np.nan, POINTS))
    data, states = open_data(file, rows_per_part=1000), []
    PowerKMeans(6, missing="observed", random_state=0, callback=states.append).fit(data)
    in_a_breath = max(state.sweep for state in states if len(state.centers) > 6)
    for error, effort, n_sweeps in (
        (KeyboardInterrupt, "none", 4),
        (LookupError, "none", 4),
        (KeyboardInterrupt, "balanced", in_a_breath),
    ):
        ends = Ends(error, n_sweeps, reads)
        model = PowerKMeans(6, missing="observed", effort=effort, callback=ends, random_state=0)
        with pytest.raises(error, match="now"):
            model.fit(data)
        assert reads == []
        last = ends.states[-1]
        if effort == "none":
            np.testing.assert_array_equal(model.cluster_centers_, last.centers)
            assert (model.inertia_, model.n_iter_) == (last.inertia, 4)
        else:
            assert len(model.cluster_centers_) == 6 < len(last.centers)
            assert model.inertia_ == pytest.approx(-model.score(data), rel=1e-12)


def test_rows_that_cannot_be_read_are_not_read_once_more(file, reads, monkeypatch):
    counting = FileSource.blocks

    def failing(source, *where):
        if len(reads) > 12:
            reads.append(-1)
            raise OSError(5, "Input/output error")
        return counting(source, *where)

    monkeypatch.setattr(FileSource, "blocks", failing)
    model = PowerKMeans(6, random_state=0)
    with pytest.raises(OSError, match="Input/output error"):
        model.fit(open_data(file, rows_per_part=1000))
    assert reads.count(-1) == 1
    assert model.n_iter_ > 0


# Fits that are killed; `make kill-test` kills more of them.


@pytest.mark.skipif(sys.platform != "linux", reason="attacks need Linux")
@pytest.mark.parametrize("prepare", [kills.of_a_process, kills.of_a_worker])
def test_what_is_killed_at_a_random_moment_goes_on_to_the_same_bits(prepare, tmp_path):
    assert prepare(tmp_path, 6_000)(random.Random(3)) == RIGHT
