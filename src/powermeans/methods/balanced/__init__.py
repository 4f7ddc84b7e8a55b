"""Clusters of limited size.

A fit without limits is followed by prices of the centers, and by flows of points between clusters,
which keep the sizes. Only `BalancedKMeans` and its search use these parts.
"""
