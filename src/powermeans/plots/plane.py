"""Points with any number of features, projected to the plane."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from powermeans.divergences.chunks import as_float64
from powermeans.mathematics.principal_axes import principal_axes
from powermeans.types import FloatArray, SparseMatrix


@dataclass(frozen=True, slots=True)
class Plane:
    """Points in the plane, and how the plane lies in the space of the points."""

    points: FloatArray  # (n_points, 2)
    names: tuple[str, str]  # of the two directions, empty for one without meaning
    origin: FloatArray  # (n_features,)
    axes: FloatArray  # (2, n_features), orthonormal or zero
    share: float = 1.0  # of the variance that the plane shows

    @classmethod
    def of(cls, points: FloatArray | SparseMatrix, names: list[str]) -> Self:
        """Make the plane of the two columns, or of the two principal axes if there are more."""
        n_features = points.shape[1]
        if n_features == 1:  # at random heights, which keep points apart
            heights = np.random.default_rng(0).uniform(-0.4, 0.4, points.shape[0])
            flat = np.column_stack([as_float64(points)[:, 0], heights])
            return cls(flat, (names[0], ""), np.zeros(1), np.array([[1.0], [0.0]]))
        if n_features == 2:
            return cls(as_float64(points), (names[0], names[1]), np.zeros(2), np.eye(2))
        found = principal_axes(points, None, 2)
        if len(found.axes) < 2:  # of a single point
            found = replace(found, axes=np.zeros((2, n_features)), deviations=np.zeros(2))
        shares = np.square(found.deviations / (found.total_deviation or 1.0))
        one, two = (f"{100 * share:.0f} % of the variance" for share in shares)
        named = f"principal axis 1 ({one})", f"principal axis 2 ({two})"
        flat = np.asarray(points @ found.axes.T) - found.mean @ found.axes.T
        return cls(flat, named, found.mean, found.axes, float(shares.sum()))

    def project(self, others: FloatArray) -> FloatArray:
        """Return other points of the space, projected to the plane."""
        projected: FloatArray = (others - self.origin) @ self.axes.T
        return projected

    def lift(self, places: FloatArray) -> FloatArray:
        """Return the points of the space at these places of the plane."""
        lifted: FloatArray = self.origin + places @ self.axes
        return lifted
