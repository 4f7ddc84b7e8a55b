"""Labels are written piece by piece, and what goes wrong is told of what it is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from powermeans.system.label_files import write_labels
from powermeans.types import Labels


def pieces() -> Iterator[Labels]:
    for first in range(0, 6, 2):
        yield np.array([first, first + 1], dtype=np.int32)


def test_pieces_are_one_array_again(tmp_path: Path) -> None:
    path = write_labels(tmp_path / "labels.npy", pieces())
    np.testing.assert_array_equal(np.load(path), np.arange(6))


def test_what_goes_wrong_with_the_rows_is_not_said_of_the_labels(tmp_path: Path) -> None:
    def failing() -> Iterator[Labels]:
        yield from pieces()
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error") as told:
        write_labels(tmp_path / "labels.npy", failing())
    assert "labels" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_of_the_labels() -> None:
    many = (np.zeros(2**16, dtype=np.int32) for _ in range(8))
    with pytest.raises(OSError, match=r"No space left.*labels were not written.*full"):
        write_labels("/dev/full", many)


def test_a_missing_folder_is_told_with_the_path_that_was_asked_for(tmp_path: Path) -> None:
    wanted = tmp_path / "nowhere" / "labels.npy"

    def rows_are_read() -> Iterator[Labels]:
        pytest.fail("the rows were read")
        yield from pieces()

    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: make it") as told:
        write_labels(wanted, rows_are_read())
    assert told.value.filename == str(wanted)
    assert ".part" not in str(told.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_a_folder_that_takes_no_files_is_told_with_the_path_that_was_asked_for() -> None:
    with pytest.raises(OSError, match="/proc/labels") as told:
        write_labels("/proc/labels.npy", pieces())
    assert ".part" not in str(told.value)
