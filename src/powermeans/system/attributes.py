"""Attributes of an object, several at once; where a class is public; objects not stored."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """Without the lock of Python 3.11, which is one for all objects of a class.

        Threads would wait for each other, and a forked child for a thread that it does not have.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            known = vars(instance)
            if self.attrname not in known:
                known[self.attrname] = self.func(instance)
            return known[self.attrname]


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


def references(*values: object) -> list[weakref.ref[Any]]:
    """Return references that keep nothing alive to what is not None; none if there cannot be any.

    There are none to lists, among others.
    """
    try:
        return [weakref.ref(value) for value in values if value is not None]
    except TypeError:
        return []


def public_module(kind: type) -> str:
    """Name the module that users import a class from: the nearest to the root that lists it."""
    parts = kind.__module__.split(".")
    for n_parts in range(1, len(parts)):
        name = ".".join(parts[:n_parts])
        if kind.__name__ in getattr(sys.modules.get(name), "__all__", ()):
            return name
    return kind.__module__
