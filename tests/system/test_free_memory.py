"""How much memory is free, as the machine and groups of processes tell it."""

from __future__ import annotations

import pytest

from powermeans.system import free_memory as module
from powermeans.system.free_memory import free_memory

GIB = 2**30
OLD, NEW = ("limit_in_bytes", "usage_in_bytes"), ("max", "current")
STAT = f"anon {GIB}\ninactive_file {2 * GIB}\nactive_file {GIB // 2}\nfile {3 * GIB}"
OLD_STAT = f"inactive_file 5\ntotal_inactive_file {GIB}\ntotal_active_file {GIB}"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A machine with eight GiB that are free, and no groups so far."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {8 * GIB // 1024} kB\n")
    monkeypatch.setattr(module, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(module, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "groups")
    return tmp_path


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("", {}, 8 * GIB),
        # Pages of files that were read count as free.
        ("", {"": {"max": 4 * GIB, "current": 7 * GIB // 2, "stat": STAT}}, 3 * GIB),
        ("", {"": {"max": 4 * GIB, "current": 7 * GIB // 2}}, GIB // 2),
        ("", {"": {"max": "max", "current": 3 * GIB}}, 8 * GIB),
        ("", {"memory": {OLD[0]: 4 * GIB, OLD[1]: 3 * GIB, "stat": OLD_STAT}}, 3 * GIB),
        # The narrowest of the groups of this process decides.
        *(
            (
                f"3:cpu,cpuacct:/other\n{kind}/user/job\n",
                {
                    f"{root}/other": dict.fromkeys(names, 0),
                    f"{root}/user": dict(zip(names, (2 * GIB, GIB), strict=True)),
                    f"{root}/user/job": dict(zip(names, (6 * GIB, GIB), strict=True)),
                },
                GIB,
            )
            for kind, root, names in (("0::", ".", NEW), ("7:memory:", "memory", OLD))
        ),
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


def test_where_the_machine_does_not_tell_nothing_is_known(system):
    (system / "meminfo").unlink()
    assert free_memory() is None
