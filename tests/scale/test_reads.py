"""How often a fit reads its rows: with a checkpoint, and where it ends early."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans import FuzzyCMeans, KHarmonicMeans, KMeans, PowerKMeans, open_data
from powermeans.scale.files import FileSource

RNG = np.random.default_rng(0)
MEANS = 5 + 2 * RNG.normal(size=(6, 3))
POINTS = np.abs(MEANS[RNG.integers(6, size=3000)] + RNG.random((3000, 3)))


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
    np.save(tmp_path / "rows.npy", POINTS)
    return tmp_path / "rows.npy"


ONCE = {"effort": "none", "random_state": 0}
MODELS = {
    "search": PowerKMeans(6, random_state=0),
    "one descent": PowerKMeans(6, **ONCE),
    "cosine": PowerKMeans(6, divergence="cosine", **ONCE),
    "poisson": PowerKMeans(6, divergence="poisson", **ONCE),
    "missing": PowerKMeans(6, missing="observed", **ONCE),
    "starts": KMeans(6, init="random", n_init=3, random_state=0),
    "plain": PowerKMeans(6, init="plain-k-means++", **ONCE),
    "harmonic": KHarmonicMeans(6, random_state=0),
    "fuzzy": FuzzyCMeans(6, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_finished_fit_takes_no_look_at_the_rows_again(name, file, reads):
    data = open_data(file, rows_per_part=1000, checkpoint=file.with_name("state"))
    centers, inertia = MODELS[name].fit(data).cluster_centers_, MODELS[name].inertia_
    assert len(reads) > 3
    reads.clear()
    again = MODELS[name].fit(data)
    assert reads == []
    assert again.cluster_centers_.tobytes() == centers.tobytes()
    assert again.inertia_ == inertia


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_neither_where_the_critical_power_is_that_of_a_sample(tmp_path, reads):
    np.save(tmp_path / "rows.npy", RNG.normal(size=(41_000, 2)) * [3.0, 1.0])
    data = open_data(tmp_path / "rows.npy", rows_per_part=10_000, checkpoint=tmp_path / "state")
    model = PowerKMeans(2, max_iter=3, polish=False, **ONCE)
    power = model.fit(data).critical_power_
    reads.clear()
    assert model.fit(data).critical_power_ == power
    assert reads == []


def test_scaling_is_learned_anew_each_time_in_one_pass(file, reads):
    for _ in range(2):
        reads.clear()
        data = open_data(file, scale="standard", checkpoint=file.with_name("state"))
        KMeans(6, random_state=0).fit(data)
    assert reads == [0]


# Fits that end early.


class Interrupt:
    """A callback that ends a fit after some sweeps, and forgets the reads before."""

    def __init__(self, reads, n_sweeps, error=KeyboardInterrupt):
        self.reads, self.left, self.error, self.states = reads, n_sweeps, error, []

    def __call__(self, state):
        self.states.append(state)
        self.left -= 1
        if not self.left:
            self.reads.clear()
            raise self.error("now")


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
def test_a_fit_that_is_interrupted_reads_nothing_more(error, file, reads):
    ends = Interrupt(reads, 4, error)
    model = PowerKMeans(6, callback=ends, **ONCE)
    with pytest.raises(error, match="now"):
        model.fit(open_data(file, rows_per_part=1000))
    assert reads == []
    np.testing.assert_array_equal(model.cluster_centers_, ends.states[-1].centers)
    assert (model.inertia_, model.n_iter_) == (ends.states[-1].inertia, 4)


def test_what_a_search_has_accepted_is_kept_with_its_inertia(file, reads):
    data, states = open_data(file, rows_per_part=1000), []
    PowerKMeans(6, random_state=0, callback=states.append).fit(data)
    in_a_breath = max(state.sweep for state in states if len(state.centers) > 6)
    ends = Interrupt(reads, in_a_breath)
    model = PowerKMeans(6, random_state=0, callback=ends)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data)
    assert reads == []
    assert len(model.cluster_centers_) == 6 < len(ends.states[-1].centers)
    assert model.inertia_ == pytest.approx(-model.score(data), rel=1e-12)


def test_rows_that_cannot_be_read_are_not_read_once_more(file, reads, monkeypatch):
    counting = FileSource.blocks

    def failing(source, *where):
        if len(reads) > 20:
            reads.append(-1)
            raise OSError(5, "Input/output error")
        return counting(source, *where)

    monkeypatch.setattr(FileSource, "blocks", failing)
    model = PowerKMeans(6, random_state=0)
    with pytest.raises(OSError, match="Input/output error"):
        model.fit(open_data(file, rows_per_part=1000))
    assert reads.count(-1) == 1
    assert model.n_iter_ > 0
