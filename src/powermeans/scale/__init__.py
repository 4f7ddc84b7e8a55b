"""Rows that need not fit into memory: files, folders, chunks and Dask collections.

A fit reads them in parts, once for each pass. A source gives blocks, a partition cuts these into
parts, and each part is opened as points in memory, whose sums add.
"""

from __future__ import annotations

from powermeans.scale.block import SourceError
from powermeans.scale.kinds import is_dask, is_parted
from powermeans.scale.parted_data import PartedData, open_data
from powermeans.scale.scaling import Scaling

__all__ = ["PartedData", "Scaling", "SourceError", "is_dask", "is_parted", "open_data"]
