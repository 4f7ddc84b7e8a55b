"""Fits that are killed end with the same bits; `kill_fits.py` kills more of them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import kill_fits
import pytest

from powermeans.scale.checkpoint import Journal

KILL = Path(kill_fits.__file__)


def test_a_process_killed_at_two_random_moments_goes_on_to_the_same_bits() -> None:
    command = [sys.executable, KILL, "--times", "2", "--seed", "3", "--points", "20000"]
    command += ["--what", "process"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "2 killed, 2 of them ended with the same bits" in done.stdout
    assert "2 of them used every result" in done.stdout


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


def test_a_checkpoint_that_is_not_used_is_told_apart() -> None:
    used = kill_fits.Kill("process", 1.0, 2.0, 3, 3, 4.0, has_same_bits=True)
    unused = dataclasses.replace(used, n_used=0)
    assert kill_fits.line_of(used).endswith("yes")
    assert kill_fits.line_of(unused).endswith("NO")


def test_fits_that_are_always_over_before_do_not_go_on_for_ever() -> None:
    with pytest.raises(SystemExit, match="more --points"):
        list(kill_fits.repeated(lambda: None, 2))


def test_other_bits_are_told_apart() -> None:
    points = kill_fits.problem(2000)
    model = kill_fits.model(is_on_dask=True).set_params(random_state=1).fit(points)
    others = kill_fits.bits_without_risk(points, is_on_dask=True)
    assert kill_fits.bits_of(model) != others
    assert kill_fits.bits_without_risk(points, is_on_dask=True) == others
    shown = kill_fits.line_of(kill_fits.Kill("process", 1.0, 2.0, 3, 3, 4.0, has_same_bits=False))
    assert shown.endswith("NO")
