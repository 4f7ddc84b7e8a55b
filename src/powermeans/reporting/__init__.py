"""What is told of a fit: the HTML report, summaries in words, warnings, code to paste, versions.

It imports plots and what is below them.
"""
