"""Callbacks that watch a fit: the progress bar and the recorder of paths.

It imports `loop` and what is below it.
"""
