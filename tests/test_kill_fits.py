"""Fits that are killed end with the same bits; `kill_fits.py` kills more of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kill_fits

KILL = Path(kill_fits.__file__)


def test_a_process_killed_at_two_random_moments_goes_on_to_the_same_bits() -> None:
    command = [sys.executable, KILL, "--times", "2", "--seed", "3", "--points", "20000"]
    command += ["--what", "process"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 killed, 2 of them ended with the same bits" in done.stdout


def test_other_bits_are_told_apart() -> None:
    points = kill_fits.problem(2000)
    model = kill_fits.model(is_on_dask=True).set_params(random_state=1).fit(points)
    others = kill_fits.bits_without_risk(points, is_on_dask=True)
    assert kill_fits.bits_of(model) != others
    assert kill_fits.bits_without_risk(points, is_on_dask=True) == others
    shown = kill_fits.line_of(kill_fits.Kill("process", 1.0, 2.0, 3, 4.0, is_same=False))
    assert shown.endswith("NO")
