"""Lower bounds on the inertia of any clustering, each with its proof.

Bounds work on arrays and import the mathematics and what limits threads; `of_points` opens points.
"""

from powermeans.optimality.gap import OptimalityGap

__all__ = ["OptimalityGap"]
