"""Files are written whole or not at all, labels piece by piece, and free memory is told."""

import contextlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from powermeans.system.atomic_write import atomic_write
from powermeans.system.free_memory import free_memory
from powermeans.system.label_files import write_labels

HAS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_file_appears_when_all_of_it_is_written_and_else_the_old_one_stays(error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        with atomic_write(path) as file:
            file.write(b"half")
            assert path.read_bytes() == b"old"
            if error is not None:
                raise error

    with contextlib.nullcontext() if error is None else pytest.raises(error):
        write()
    assert path.read_bytes() == (b"half" if error is None else b"old")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass


def test_a_file_keeps_its_mode_and_links(tmp_path):
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


def test_writers_at_one_path_leave_the_file_of_one(tmp_path):
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


@HAS_FULL
def test_a_full_disk_is_an_error():
    with pytest.raises(OSError, match="No space left"), atomic_write("/dev/full") as file:
        file.write(b"x")
    many = (np.zeros(2**16, dtype=np.int32) for _ in range(8))
    with pytest.raises(OSError, match="No space left"):
        write_labels("/dev/full", many)


def pieces():
    for first in range(0, 6, 2):
        yield np.array([first, first + 1], dtype=np.int32)


def failing(error):
    yield from pieces()
    raise error


def test_pieces_are_one_array_again_in_a_folder_that_can_be_written(tmp_path):
    path = write_labels(tmp_path / "labels.npy", pieces())
    np.testing.assert_array_equal(np.load(path), np.arange(6))
    path.unlink()
    with pytest.raises(OSError, match="Input/output error"):
        write_labels(tmp_path / "labels.npy", failing(OSError(5, "Input/output error")))
    assert list(tmp_path.iterdir()) == []
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


# Free memory, as the machine and groups of processes tell it.

GIB = 2**30
OLD, NEW = ("limit_in_bytes", "usage_in_bytes"), ("max", "current")
STAT = f"anon {GIB}\ninactive_file {2 * GIB}\nactive_file {GIB // 2}\nfile {3 * GIB}"
OLD_STAT = f"inactive_file 5\ntotal_inactive_file {GIB}\ntotal_active_file {GIB}"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A machine with eight GiB that are free, and no groups so far."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {8 * GIB // 1024} kB\n")
    monkeypatch.setattr("powermeans.system.free_memory._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr("powermeans.system.free_memory._OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("powermeans.system.free_memory._GROUPS", tmp_path / "groups")
    return tmp_path


def two_groups(own, root, names):
    """The narrowest of the groups of this process decides; those of others do not."""
    limits = {"other": (0, 0), "user": (2 * GIB, GIB), "user/job": (6 * GIB, GIB)}
    groups = {f"{root}/{group}": dict(zip(names, of, strict=True)) for group, of in limits.items()}
    return f"3:cpu,cpuacct:/other\n{own}/user/job\n", groups, GIB


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("", {}, 8 * GIB),
        # Pages of files that were read count as free.
        ("", {"": {"max": 4 * GIB, "current": 7 * GIB // 2, "stat": STAT}}, 3 * GIB),
        ("", {"": {"max": 4 * GIB, "current": 7 * GIB // 2}}, GIB // 2),
        ("", {"": {"max": "max", "current": 3 * GIB}}, 8 * GIB),
        ("", {"memory": {OLD[0]: 4 * GIB, OLD[1]: 3 * GIB, "stat": OLD_STAT}}, 3 * GIB),
        two_groups("0::", ".", NEW),
        two_groups("7:memory:", "memory", OLD),
    ],
)
def test_memory_is_free_that_neither_the_machine_nor_a_group_denies(own, groups, expected, system):
    (system / "own").write_text(own)
    for group, files in groups.items():
        folder = system / "groups" / group
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / f"memory.{name}").write_text(f"{content}\n")
    assert free_memory() == expected
    if not groups:  # where the machine does not tell, nothing is known
        (system / "meminfo").unlink()
        assert free_memory() is None
