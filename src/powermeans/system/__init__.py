"""What the package asks of the machine: threads, host memory, and files written whole.

It imports only `types` and `errors`.
"""
