"""Errors and warnings of the package."""

from __future__ import annotations


class ObjectiveRoseWarning(RuntimeWarning):
    """The objective rose between two sweeps at equal power by more than rounding explains."""


class IndefiniteKernelWarning(UserWarning):
    """A kernel has negative eigenvalues, which were taken as zero."""


class ModelFileError(ValueError):
    """A file holds no model that can be loaded, or only a newer powermeans can read it."""
