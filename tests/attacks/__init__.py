"""Hostile use of the package by a machine, for minutes or hours: `make attack SECONDS=600`.

Each class of attack is a module with a function `prepare`, which returns another that makes the
try of a seed. `CONTRIBUTING.md` says how to use them.
"""
