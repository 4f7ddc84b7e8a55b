"""Names of columns, and of what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(name: str, names: Iterable[str]) -> str:
    """Of some names the one most like another, as the end of an error; empty where none is.

    Examples
    --------
    >>> from powermeans.tables import nearest
    >>> nearest("heihgt", ["height", "weight"])
    ': did you mean "height"?'
    """
    by_lower = {other.lower(): other for other in reversed(list(names))}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f': did you mean "{by_lower[found[0]]}"?' if found else ""


def listed(names: Sequence[str], length: int = 200) -> str:
    """Names as an error shows them, in no more letters than this."""
    return shortened(", ".join(f'"{name}"' for name in names), length)


def shortened(text: str, length: int) -> str:
    """Text that is no longer than this, but for dots."""
    return text if len(text) <= length else f"{text[:length]}..."


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns: those without one are numbered, and of several the later ones as well."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        found.append(plain if plain not in found else f"{plain}.{number}")
    return tuple(found)
