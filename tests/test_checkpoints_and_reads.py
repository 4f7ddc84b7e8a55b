"""How often a fit with a checkpoint reads its rows, and how often one that ended early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powermeans import FuzzyCMeans, KHarmonicMeans, KMeans, PowerKMeans, open_data
from powermeans.engine.history import SweepState
from powermeans.scale.block import Block
from powermeans.scale.files import FileSource

N_ENOUGH_TO_SAMPLE = 41_000


class Reads(list[int]):
    """The first rows of all reads of files."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted, blocks = Reads(), FileSource.blocks

    def counting(
        source: FileSource, first_row: int = 0, at_once: int | None = None
    ) -> Iterator[Block]:
        counted.append(first_row)
        return blocks(source, first_row, at_once)

    monkeypatch.setattr(FileSource, "blocks", counting)
    return counted


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    means = 5 + 2 * rng.normal(size=(6, 3))
    np.save(
        tmp_path / "rows.npy", np.abs(means[rng.integers(6, size=3000)] + rng.random((3000, 3)))
    )
    return tmp_path / "rows.npy"


MODELS: dict[str, Callable[[], Any]] = {
    "search": lambda: PowerKMeans(6, random_state=0),
    "one descent": lambda: PowerKMeans(6, effort="none", random_state=0),
    "cosine": lambda: PowerKMeans(6, divergence="cosine", effort="none", random_state=0),
    "poisson": lambda: PowerKMeans(6, divergence="poisson", effort="none", random_state=0),
    "missing": lambda: PowerKMeans(6, missing="observed", effort="none", random_state=0),
    "starts": lambda: KMeans(6, init="random", n_init=3, random_state=0),
    "plain": lambda: PowerKMeans(6, init="plain-k-means++", effort="none", random_state=0),
    "harmonic": lambda: KHarmonicMeans(6, random_state=0),
    "fuzzy": lambda: FuzzyCMeans(6, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_finished_fit_takes_no_look_at_the_rows_again(
    name: str, file: Path, reads: Reads
) -> None:
    data = open_data(file, rows_per_part=1000, checkpoint=file.with_name("state"))
    first = MODELS[name]().fit(data)
    assert len(reads) > 3
    reads.clear()
    again = MODELS[name]().fit(data)
    assert reads == []
    assert again.cluster_centers_.tobytes() == first.cluster_centers_.tobytes()
    assert again.inertia_ == first.inertia_


def test_neither_where_the_critical_power_is_that_of_a_sample(tmp_path: Path, reads: Reads) -> None:
    points = np.random.default_rng(0).normal(size=(N_ENOUGH_TO_SAMPLE, 2)) * [3.0, 1.0]
    np.save(tmp_path / "rows.npy", points)
    data = open_data(tmp_path / "rows.npy", rows_per_part=10_000, checkpoint=tmp_path / "state")

    def fitted() -> PowerKMeans:
        return PowerKMeans(2, effort="none", max_iter=3, polish=False, random_state=0).fit(data)

    with pytest.warns(UserWarning, match="cut short|not converged"):
        first = fitted()
    reads.clear()
    with pytest.warns(UserWarning, match="cut short|not converged"):
        again = fitted()
    assert reads == []
    assert again.critical_power_ == first.critical_power_


def test_scaling_is_learned_anew_each_time_in_one_pass(file: Path, reads: Reads) -> None:
    state = file.with_name("state")
    for _ in range(2):
        reads.clear()
        KMeans(6, random_state=0).fit(open_data(file, scale="standard", checkpoint=state))
    assert reads == [0]


# Fits that end early.


class Interrupt:
    """A callback that ends a fit after some sweeps, and forgets the reads before."""

    def __init__(self, reads: Reads, n_sweeps: int, error: type[BaseException]) -> None:
        self.reads, self.left, self.error = reads, n_sweeps, error
        self.states: list[SweepState] = []

    def __call__(self, state: SweepState) -> None:
        self.states.append(state)
        self.left -= 1
        if not self.left:
            self.reads.clear()
            raise self.error("now")


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
def test_a_fit_that_is_interrupted_reads_nothing_more(
    error: type[BaseException], file: Path, reads: Reads
) -> None:
    ends = Interrupt(reads, 4, error)
    model = PowerKMeans(6, effort="none", random_state=0, callback=ends)
    with pytest.raises(error, match="now"):
        model.fit(open_data(file, rows_per_part=1000))
    assert reads == []
    np.testing.assert_array_equal(model.cluster_centers_, ends.states[-1].centers)
    assert model.inertia_ == ends.states[-1].inertia
    assert model.n_iter_ == 4


def test_what_a_search_has_accepted_is_kept_with_its_inertia(file: Path, reads: Reads) -> None:
    data, states = open_data(file, rows_per_part=1000), list[SweepState]()
    PowerKMeans(6, random_state=0, callback=states.append).fit(data)
    in_a_breath = max(state.sweep for state in states if len(state.centers) > 6)
    ends = Interrupt(reads, in_a_breath, KeyboardInterrupt)
    model = PowerKMeans(6, random_state=0, callback=ends)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data)
    assert reads == []
    assert len(model.cluster_centers_) == 6 < len(ends.states[-1].centers)
    assert model.inertia_ == pytest.approx(-model.score(data), rel=1e-12)


def test_rows_that_cannot_be_read_are_not_read_once_more(
    file: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = FileSource.blocks

    def failing(source: FileSource, *where: Any) -> Iterator[Block]:
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


def test_workers_that_are_gone_are_not_waited_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    from powermeans.scale import dask_executor as on_dask

    n_asked, compute = 0, on_dask.computed

    def give_up(*what: Any, **more: Any) -> Any:
        nonlocal n_asked
        n_asked += 1
        if n_asked > 30:
            raise TimeoutError("no worker")
        return compute(*what, **more)

    monkeypatch.setattr(on_dask, "computed", give_up)
    model = PowerKMeans(6, random_state=0)
    with pytest.raises(TimeoutError, match="no worker"):
        model.fit(da.from_array(np.random.default_rng(0).normal(size=(600, 2)), chunks=(200, 2)))
    assert n_asked == 31
    assert model.n_iter_ > 0
    assert model.labels_.shape == (600,)
