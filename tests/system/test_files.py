"""A file is written whole or not at all, and labels piece by piece."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from powermeans.system.atomic_write import atomic_write
from powermeans.system.label_files import write_labels

HAS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def test_a_file_appears_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "file"
    with atomic_write(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_where_writing_fails_the_old_file_stays_and_nothing_else(error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass


def test_an_old_file_keeps_its_mode_and_links_and_a_new_one_has_the_usual_mode(tmp_path):
    old, new, link, usual = (tmp_path / name for name in ("old", "new", "link", "usual"))
    usual.touch()
    old.touch(0o600)
    link.symlink_to(old)
    for path in (link, new):
        with atomic_write(path) as file:
            file.write(b"x")
    assert link.is_symlink()
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"x", 0o600)
    assert new.stat().st_mode == usual.stat().st_mode


@HAS_FULL
def test_a_full_disk_is_an_error():
    with pytest.raises(OSError, match="No space left"), atomic_write("/dev/full") as file:
        file.write(b"x")
    many = (np.zeros(2**16, dtype=np.int32) for _ in range(8))
    with pytest.raises(OSError, match=r"No space left.*labels were not written.*full"):
        write_labels("/dev/full", many)


def test_writers_at_one_path_leave_the_whole_file_of_one_of_them(tmp_path):
    path, contents = tmp_path / "written", [bytes([n]) * 100_000 for n in range(4)]

    def write(content):
        for _ in range(30):
            with atomic_write(path) as file:
                file.write(content[:50_000])
                file.write(content[50_000:])

    with ThreadPoolExecutor(len(contents)) as threads:
        list(threads.map(write, contents))
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


# Labels.


def pieces():
    for first in range(0, 6, 2):
        yield np.array([first, first + 1], dtype=np.int32)


def failing(error):
    yield from pieces()
    raise error


def test_pieces_are_one_array_again(tmp_path):
    path = write_labels(tmp_path / "labels.npy", pieces())
    np.testing.assert_array_equal(np.load(path), np.arange(6))
    path.unlink()
    # What goes wrong with the rows is not said of the labels.
    with pytest.raises(OSError, match="Input/output error") as told:
        write_labels(tmp_path / "labels.npy", failing(OSError(5, "Input/output error")))
    assert "labels" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_with_the_path_that_was_asked_for(tmp_path):
    wanted = tmp_path / "nowhere" / "labels.npy"
    rows_are_read = failing(AssertionError("the rows were read"))
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: make it") as told:
        write_labels(wanted, rows_are_read)
    assert told.value.filename == str(wanted)
    assert ".part" not in str(told.value)
    if sys.platform.startswith("linux"):
        with pytest.raises(OSError, match="/proc/labels") as told:
            write_labels("/proc/labels.npy", pieces())
        assert ".part" not in str(told.value)
