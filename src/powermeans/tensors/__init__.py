"""Rows in PyTorch tensors, swept where they lie: on a GPU or in host memory.

Only this package imports PyTorch, and only a tensor loads it.
"""
