"""Several attributes of an object at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any


def remember(value: object, attributes: Mapping[str, Any]) -> None:
    """Set attributes in one step, which no interrupt can divide."""
    value.__dict__.update(attributes)


def take_over(value: object, other: object) -> None:
    """Have the attributes of another object and no others, in one step."""
    value.__dict__ = dict(vars(other))


def forget(value: object, *names: str) -> None:
    """Remove the attributes that are there."""
    for name in names:
        with suppress(AttributeError):
            delattr(value, name)
