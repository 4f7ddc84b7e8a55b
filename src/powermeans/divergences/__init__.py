"""Divergences: what a distance between a point and a center is."""
