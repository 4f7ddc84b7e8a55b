"""Rows that need not fit into memory: files, folders, chunks and Dask collections.

A fit reads them in parts, once for each pass. A source gives blocks, a partition cuts these into
parts, and each part is opened as points in memory, whose sums add.
"""

from powermeans.scale.parted_data import PartedData

__all__ = ["PartedData"]
