"""The HTML report on a fit, summaries, warnings about data, Python code, and versions.

It imports plots and what is below them.
"""
