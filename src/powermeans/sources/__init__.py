"""Rows that need not fit into memory: files, folders, chunks and Dask collections.

A fit reads them in parts, once for each pass. A source gives blocks, a partition cuts these into
parts, and the room `parts` opens each part as rows. This room imports `inputs` and `tables`.
"""

from __future__ import annotations

from powermeans.sources.block import SourceError
from powermeans.sources.kinds import is_dask, is_parted
from powermeans.sources.parted_data import PartedData, open_data
from powermeans.sources.scaling import Scaling

__all__ = ["PartedData", "Scaling", "SourceError", "is_dask", "is_parted", "open_data"]
