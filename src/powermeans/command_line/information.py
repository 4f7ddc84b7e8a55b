"""``powermeans info``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from powermeans.command_line.screen import Screen
from powermeans.reporting.versions import versions

_OPTIONAL = ("typer", "rich", "pyarrow", "pillow", "matplotlib")


def inform(screen: Screen) -> None:
    """Versions, instruction set and threads, for a bug report."""
    found = {**versions(), **{name: _version(name) for name in _OPTIONAL}}
    for name, value in found.items():
        screen.say(f"{name:16} {value}")
    screen.tell_machines(found)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
