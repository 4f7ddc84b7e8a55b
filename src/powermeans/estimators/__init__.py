"""scikit-learn's parameters in, attributes out: one method a file, with all that only it uses.

`base` contains what all estimators share, those of `relatives` included.
"""
