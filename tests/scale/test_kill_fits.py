"""Fits that are killed end with the same bits; `kill_fits.py` kills more of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scale import kill_fits

from powermeans.scale.checkpoint import Journal


@pytest.mark.parametrize("what", ["process", "worker"])
def test_what_is_killed_at_a_random_moment_goes_on_to_the_same_bits(what):
    command = [sys.executable, kill_fits.__file__, "--times", "1", "--seed", "3", "--what", what]
    command += ["--points", "10000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 killed, 1 of them went on to the same bits" in done.stdout


def test_other_bits_unused_results_and_fits_that_are_over_before_are_told(tmp_path):
    with pytest.raises(SystemExit, match="more --points"):
        list(kill_fits.repeated(lambda: None, 2))
    rights = [kill_fits.Kill("process", 1.0, 3, *how).is_right()
              for how in ((3, True), (0, True), (3, False))]  # fmt: skip
    assert rights == [True, False, False]
    points = kill_fits.problem(2000)
    model = kill_fits.model(is_on_dask=True).set_params(random_state=1).fit(points)
    assert kill_fits.bits_of(model) != kill_fits.bits_without_risk(points, is_on_dask=True)
    path = tmp_path / "state"
    assert kill_fits.n_results_in(path) == 0
    journal = Journal(path, 0.0)
    assert kill_fits.n_results_in(path) == 0
    journal.begin("of these rows")
    for question in ("first", "second"):
        journal.note(question, 1.0)
    journal.close()
    assert kill_fits.n_results_in(path) == 2
    path.write_bytes(path.read_bytes()[:-1])
    assert kill_fits.n_results_in(path) == 1
