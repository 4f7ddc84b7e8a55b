"""Errors and warnings of the package."""

from __future__ import annotations


class ObjectiveRoseWarning(RuntimeWarning):
    """The objective rose between two sweeps at equal power by more than rounding explains."""
