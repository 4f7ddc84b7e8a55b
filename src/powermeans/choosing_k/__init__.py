"""Choosing the number of clusters: centers for each k, criteria, and the result.

It imports the engine and what is below it.
"""
