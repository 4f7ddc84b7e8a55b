"""Functions for those who need no estimator.

`choose_k` recommends a number of clusters; seeds and centers come as in scikit-learn's functions.
"""
