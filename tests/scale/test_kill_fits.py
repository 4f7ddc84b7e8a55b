"""Fits that are killed end with the same bits; `kill_fits.py` kills more of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scale import kill_fits

from powermeans.scale.checkpoint import Journal

KILL = Path(kill_fits.__file__)


@pytest.mark.parametrize("what", ["process", "worker"])
def test_what_is_killed_at_a_random_moment_goes_on_to_the_same_bits(what: str) -> None:
    command = [sys.executable, KILL, "--times", "1", "--seed", "3", "--points", "20000"]
    done = subprocess.run([*command, "--what", what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 killed, 1 of them ended with the same bits" in done.stdout
    assert "1 of them used every result" in done.stdout


def test_what_a_checkpoint_holds_is_counted_to_the_last_whole_result(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert kill_fits.n_results_in(path) == 0
    path.touch()
    assert kill_fits.n_results_in(path) == 0
    path.unlink()
    journal = Journal(path, 0.0).begin("of these rows")
    assert kill_fits.n_results_in(path) == 0
    for question in ("first", "second"):
        journal.note(question, 1.0)
    journal.close()
    assert kill_fits.n_results_in(path) == 2
    path.write_bytes(path.read_bytes()[:-1])
    assert kill_fits.n_results_in(path) == 1


@pytest.mark.parametrize(
    ("n_used", "has_same_bits", "told"), [(3, True, "yes"), (0, True, "NO"), (3, False, "NO")]
)
def test_other_bits_and_a_checkpoint_that_is_not_used_are_told(n_used, has_same_bits, told) -> None:
    kill = kill_fits.Kill("process", 1.0, 2.0, 3, n_used, 4.0, has_same_bits)
    assert kill_fits.line_of(kill).endswith(told)


def test_fits_that_are_always_over_before_do_not_go_on_for_ever() -> None:
    with pytest.raises(SystemExit, match="more --points"):
        list(kill_fits.repeated(lambda: None, 2))


def test_other_bits_are_told_apart() -> None:
    points = kill_fits.problem(2000)
    model = kill_fits.model(is_on_dask=True).set_params(random_state=1).fit(points)
    others = kill_fits.bits_without_risk(points, is_on_dask=True)
    assert kill_fits.bits_of(model) != others
    assert kill_fits.bits_without_risk(points, is_on_dask=True) == others
