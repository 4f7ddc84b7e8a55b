"""Model files: values to JSON and arrays, and back, without code.

It imports estimators and what is below them.
"""
