"""Means and squared deviations of the columns. Those of parts add to those of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Moments of each column.

    Attributes
    ----------
    counts : (n_features,)
        Of the entries that are there, or the sum of their weights.
    means : (n_features,)
        Zero where there is none.
    squares : (n_features,)
        Sum of the squared deviations from the mean.
    """

    counts: FloatArray
    means: FloatArray
    squares: FloatArray

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        """Of both together (Chan, Golub & LeVeque 1979), without a difference of squares."""
        counts = self.counts + other.counts
        share = other.counts / np.where(counts > 0, counts, 1.0)
        apart = other.means - self.means
        return ColumnMoments(
            counts,
            self.means + share * apart,
            self.squares + other.squares + self.counts * share * np.square(apart),
        )
