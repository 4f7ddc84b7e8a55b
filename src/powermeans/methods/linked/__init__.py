"""Pairs of points that belong together or apart.

Those together are one point, and a coloring keeps those apart in different clusters. Only
`LinkedKMeans` uses these parts.
"""
