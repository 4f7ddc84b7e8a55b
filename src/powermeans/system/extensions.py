"""What other packages add: objects that they list as entry points of the group ``powermeans``."""

import functools
from importlib.metadata import entry_points
from typing import Any


@functools.cache
def extension(name: str) -> Any:
    """Return what is registered under this name."""
    found = [*entry_points(group="powermeans", name=name)]
    if not found:
        raise ModuleNotFoundError(
            f"no installed package registers {name!r} for powermeans: install powermeans again"
        )
    return found[0].load()
