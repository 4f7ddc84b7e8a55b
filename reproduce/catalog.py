"""Which items there are, by the files that hold them."""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path
from types import ModuleType

ITEMS = Path(__file__).parent / "items"
_WORD = re.compile(r"[a-z]+|[0-9]+")
_OFFERED = ("TITLE", "SOURCE", "DATA", "cells", "findings", "draw")


class UnknownItemError(LookupError):
    """There is no item of this name."""


def names() -> list[str]:
    """The names of all items: those of their files, with `-` for `_`."""
    return sorted(
        file.stem.replace("_", "-") for file in ITEMS.glob("*.py") if not file.stem.startswith("_")
    )


def checked(name: str) -> str:
    """The name, which may be written with `_`, if it is that of an item."""
    wanted = name.replace("_", "-")
    offered = names()
    if wanted in offered:
        return wanted
    near = _like(wanted, offered) or difflib.get_close_matches(wanted, offered, n=1, cutoff=0.4)
    advice = "python -m reproduce --list shows them all"
    if near:
        advice = f"did you mean {' or '.join(near)}?"
    raise UnknownItemError(f"there is no item {name!r}: {advice}")


def _like(wanted: str, offered: list[str]) -> list[str]:
    """The names that have all words and numbers of the one that is wanted: table2, table1-and-2."""
    words = set(_WORD.findall(wanted))
    return [name for name in offered if words and words <= set(_WORD.findall(name))]


def module_name(name: str) -> str:
    """What the module of an item is imported as."""
    return f"reproduce.items.{checked(name).replace('-', '_')}"


def module_of(name: str) -> ModuleType:
    """The module of an item, which must offer all that an item is made of."""
    module = importlib.import_module(module_name(name))
    missing = [wanted for wanted in _OFFERED if not hasattr(module, wanted)]
    if missing:
        raise AttributeError(
            f"{module.__file__} has no {', '.join(missing)}: see reproduce/item.py"
        )
    return module
