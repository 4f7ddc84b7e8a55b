"""The classes whose objects files of models may hold: each registers itself where it is defined."""

from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type[Any])
SAVED_CLASSES: dict[str, type[Any]] = {}


def saved(kind: Kind) -> Kind:
    """Let files of models hold objects of a class of this package: its parameters or fields.

    Further attributes are those that its `_state` describes, as `powermeans.saving` explains.
    """
    SAVED_CLASSES[kind.__name__] = kind
    return kind
