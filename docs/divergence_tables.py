"""Tables of all divergences, in Markdown, from what each says of itself."""

from __future__ import annotations

import inspect

from powermeans.divergences import KINDS, Divergence, resolve


def by_differences() -> str:
    """Return which divergence is right where two measurements differ in one way."""
    heads = "two measurements of the same thing differ by", "divergence"
    return _table(heads, [(kind.differences, _called(kind)) for kind in KINDS])


def by_abilities() -> str:
    """Return what each divergence takes, and whether the search swaps centers."""
    heads = "divergence", "accepts", "sparse matrices", "missing entries", "rows in parts", "swaps"
    return _table(heads, [(_called(kind), kind.wanted, *_abilities(kind)) for kind in KINDS])


def _abilities(kind: type[Divergence]) -> list[str]:
    value = next(filter(None, map(_value, kind.names)))
    are_taken = kind.takes_sparse, kind.takes_missing, value.needs_all_points is None
    return ["yes" if is_so else "no" for is_so in (*are_taken, value.moves is not None)]


def _called(kind: type[Divergence]) -> str:
    """Return how users ask for it: by names, and by a class where these do not tell all."""
    names = [f'`"{name}"`' for name in kind.names if _value(name) is not None]
    if len(names) == len(kind.names):
        return ", ".join(names)
    return ", ".join([f"`divergences.{kind.__name__}{_needed(kind)}`", *names])


def _value(name: str) -> Divergence | None:
    try:
        return resolve(name)
    except ValueError:
        return None


def _needed(kind: type[Divergence]) -> str:
    parameters = inspect.signature(kind).parameters.values()
    return f"({', '.join(one.name for one in parameters if one.default is one.empty)})"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
