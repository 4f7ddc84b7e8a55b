"""What watches a fit: the progress bar and the recorder of paths.

It imports `loop` and what is below it.
"""
