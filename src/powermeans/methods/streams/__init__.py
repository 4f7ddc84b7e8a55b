"""Estimators that learn from a stream with `partial_fit`: mini-batches and online k-means.

It imports what estimators import, and their base.
"""
