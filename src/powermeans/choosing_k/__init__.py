"""Choosing the number of clusters: centers for each k, criteria, and the result.

It works on points that are open, and imports the engine and what is below it. Its face for users
is `powermeans.estimators.choose_k`.
"""
