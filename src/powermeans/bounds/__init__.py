"""Lower bounds on the inertia of any clustering, each with its proof.

Modules here import the mathematics and what limits threads; they know no estimator and no rows.
"""
