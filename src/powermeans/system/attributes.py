"""Several attributes of an object at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def remember(value: object, attributes: Mapping[str, Any]) -> None:
    """Set attributes in one step, which no interrupt can divide."""
    value.__dict__.update(attributes)


def forget(value: object, *names: str) -> None:
    """Remove the attributes that are there."""
    for name in names:
        value.__dict__.pop(name, None)
