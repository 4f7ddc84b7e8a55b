"""Choose seeds, orders and samples of points: k-means++, k-means||, races.

It imports `parts`, `rows`, `loop` and the mathematics.
"""
