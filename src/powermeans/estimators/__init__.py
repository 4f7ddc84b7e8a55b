"""scikit-learn's parameters in, attributes out: one method a file, with all that only it uses.

`base` holds what all share and `opening` turns what a user passes into rows. It imports every room
below it: seeds, loop, parts, rows, sources, inputs.
"""
