"""Choosing the number of clusters: centers for each k, criteria, and the result.

It imports estimators and what is below them.
"""
