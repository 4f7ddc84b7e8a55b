"""The loop of every method, with its stop rules, updates and history, and the search around it.

It imports the mathematics and the protocol of points, the only way in which it knows points.
"""
