"""How much memory is free, as the machine and groups of processes tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from powermeans.system import free_memory as module
from powermeans.system.free_memory import free_memory

GIB = 2**30


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with eight GiB that are free, and no groups so far."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {8 * GIB // 1024} kB\n")
    monkeypatch.setattr(module, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(module, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "groups")
    return tmp_path


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"memory.{name}").write_text(f"{content}\n")


def test_without_groups_it_is_what_the_machine_says(system: Path) -> None:
    assert free_memory() == 8 * GIB
    (system / "meminfo").unlink()
    assert free_memory() is None


def test_pages_of_files_that_were_read_count_as_free(system: Path) -> None:
    stat = f"anon {GIB}\ninactive_file {2 * GIB}\nactive_file {GIB // 2}\nfile {3 * GIB}"
    write(system / "groups", max=4 * GIB, current=int(3.5 * GIB), stat=stat)
    assert free_memory() == 3 * GIB
    (system / "groups" / "memory.stat").unlink()
    assert free_memory() == GIB // 2


def test_a_group_without_a_limit_sets_none(system: Path) -> None:
    write(system / "groups", max="max", current=3 * GIB)
    assert free_memory() == 8 * GIB


def test_groups_of_the_first_kind_are_known_too(system: Path) -> None:
    stat = f"inactive_file 5\ntotal_inactive_file {GIB}\ntotal_active_file {GIB}"
    write(system / "groups" / "memory", limit_in_bytes=4 * GIB, usage_in_bytes=3 * GIB, stat=stat)
    assert free_memory() == 3 * GIB


@pytest.mark.parametrize("kind", ["0::", "7:memory:"])
def test_the_narrowest_of_the_groups_of_this_process_decides(system: Path, kind: str) -> None:
    (system / "own").write_text(f"3:cpu,cpuacct:/other\n{kind}/user/job\n")
    root = system / "groups" / ("memory" if "memory" in kind else "")
    names = ("limit_in_bytes", "usage_in_bytes") if "memory" in kind else ("max", "current")
    write(root / "other", **dict.fromkeys(names, 0))
    write(root / "user", **dict(zip(names, (2 * GIB, GIB), strict=True)))
    write(root / "user" / "job", **dict(zip(names, (6 * GIB, GIB), strict=True)))
    assert free_memory() == GIB
