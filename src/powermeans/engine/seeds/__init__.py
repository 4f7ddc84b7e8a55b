"""Choose seeds, orders and samples of points: k-means++, k-means||, races.

It imports the engine, the kinds of points and the mathematics.
"""
