"""Columns of people's tables as numbers: what each one holds, and how it counts in distances.

`prepare` is the transformer, `kinds` tells what a column holds, and the other files read its cells.
A new kind of column is a line in `kinds.KINDS` and one in `features`.
"""
