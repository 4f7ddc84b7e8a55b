"""Many rows as one: parts that are read in turn, kept in memory or held by Dask, and checkpoints.

A part is opened as rows, and its sums add. It imports `rows`, `sources` and what is below them.
"""
