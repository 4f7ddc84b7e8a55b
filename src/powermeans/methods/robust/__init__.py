"""Power k-means that leaves a share of the points out.

In each sweep these are the farthest from all centers. Only `RobustPowerKMeans` has such points.
"""
