"""A file is written whole or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from powermeans.system.atomic_write import atomic_write


def test_a_file_appears_when_all_of_it_is_written(tmp_path) -> None:
    path = tmp_path / "file"
    with atomic_write(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_where_writing_fails_the_old_file_stays_and_nothing_else(error, tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_old_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o600)
    for path in (old, new):
        with atomic_write(path) as file:
            file.write(b"x")
    usual = tmp_path / "usual"
    usual.touch()
    assert old.stat().st_mode & 0o777 == 0o600
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_link_goes_on_pointing_to_the_file(tmp_path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_folder_is_refused(tmp_path) -> None:
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_an_error() -> None:
    with pytest.raises(OSError, match="No space left"), atomic_write("/dev/full") as file:
        file.write(b"x")


def test_writers_at_one_path_leave_the_whole_file_of_one_of_them(tmp_path: Path) -> None:
    path, contents = tmp_path / "written", [bytes([n]) * 100_000 for n in range(4)]

    def write(content: bytes) -> None:
        for _ in range(30):
            with atomic_write(path) as file:
                file.write(content[:50_000])
                file.write(content[50_000:])

    with ThreadPoolExecutor(len(contents)) as threads:
        list(threads.map(write, contents))
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
