"""Threads, host memory, fingerprints, timers, and files written atomically.

This room imports only `types` and `errors`.
"""
