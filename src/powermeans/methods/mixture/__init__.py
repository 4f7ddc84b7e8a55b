"""The mixture of spherical Gaussians: the estimator, its M-step, and estimates by moments.

It imports what estimators import, and their base.
"""
