"""Estimators that learn from a stream with `partial_fit`: mini-batches and online k-means.

It imports what estimators import, and their base.
"""

from __future__ import annotations

from powermeans.estimators.streams.drift import Drift

__all__ = ["Drift"]
