"""Columns of tables as numbers: what each one contains, and how it counts in distances.

`prepare` is the transformer, `kinds` infers what a column contains, and the other files read its
cells. A new kind of column is a line in `kinds.KINDS` and one in `features`.
"""
