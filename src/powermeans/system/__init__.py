"""Threads, host memory, fingerprints, timers, and files written atomically.

It imports only `types` and `errors`.
"""
