"""Which points come first: k-means++, k-means||, orders and samples.

It imports `parts`, `rows`, `loop` and the mathematics.
"""
