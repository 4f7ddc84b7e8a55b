"""Inequalities that the matrix of every clustering meets, added where a relaxation breaks them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.types import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class Cuts:
    """Inequalities <A_c, Z> <= 0 among the entries Y_ij = Z_ij / sqrt(w_i w_j).

    A triple (i, j, h) stands for Y_ij + Y_ih <= Y_ii + Y_jh, and with h = j for Y_ij <= Y_ii. Each
    is multiplied by w_i.
    """

    triples: IndexArray  # (n_cuts, 3), j <= h
    places: IndexArray  # (n_cuts, 4), in the flat matrix
    factors: FloatArray  # (n_cuts, 4)
    n_points: int

    @classmethod
    def of(cls, triples: IndexArray, roots: FloatArray) -> Cuts:
        """Return the cuts of these triples, given the roots of the weights."""
        i, j, h = triples.T
        n_points = len(roots)
        places = np.stack(
            [i * n_points + j, i * n_points + h, i * (n_points + 1), j * n_points + h], 1
        )
        to_j, to_h = roots[i] / roots[j], roots[i] / roots[h]
        factors = np.stack([to_j, to_h, np.full(len(i), -1.0), -to_j * to_h], axis=1)
        factors[j == h, 1] = factors[j == h, 3] = 0.0
        return cls(triples, places, factors, n_points)

    def values(self, matrix: FloatArray) -> FloatArray:
        """Return <A_c, matrix> for each cut; positive where it is violated."""
        found: FloatArray = np.einsum("ce,ce->c", self.factors, matrix.ravel()[self.places])
        return found

    def combined(self, multipliers: FloatArray, factors: FloatArray | None = None) -> FloatArray:
        """Return the symmetric matrix sum of multiplier_c A_c."""
        terms = (self.factors if factors is None else factors) * multipliers[:, None]
        flat = np.bincount(self.places.ravel(), terms.ravel(), self.n_points**2)
        square = flat.reshape(self.n_points, self.n_points)
        symmetric: FloatArray = (square + square.T) / 2
        return symmetric

    def magnitude(self, multipliers: FloatArray) -> FloatArray:
        """Return the same sum of absolute values."""
        return self.combined(multipliers, np.abs(self.factors))

    def codes(self, triples: IndexArray) -> IndexArray:
        """Return a number for each triple, the same for the same triple."""
        i, j, h = triples.T
        found: IndexArray = (i * self.n_points + j) * self.n_points + h
        return found

    @property
    def most_on_a_place(self) -> int:
        """Return the largest number of terms that one entry of their sum adds up."""
        return 2 * int(np.bincount(self.places.ravel(), minlength=1).max())

    @property
    def steps(self) -> FloatArray:
        """Return for each multiplier a step of ascent that cannot overshoot."""
        counts = np.bincount(self.places.ravel(), minlength=self.n_points**2)
        is_diagonal = self.places % (self.n_points + 1) == 0
        shares = np.where(is_diagonal, 1.0, 0.5) * counts[self.places]
        found: FloatArray = 1 / (np.square(self.factors) * shares).sum(axis=1)
        return found


def most_violated(matrix: FloatArray, roots: FloatArray, n_most: int) -> IndexArray:
    """Return the triples of the cuts that a matrix violates most, the worst first."""
    shares = matrix / np.outer(roots, roots)
    n_points = len(roots)
    n_each = min(max(4, 4 * n_most // n_points), n_points**2)
    is_lower = np.tril(np.ones((n_points, n_points), dtype=bool), -1)
    triples, violations = [], []
    for i, row in enumerate(shares):
        found = (row[:, None] - shares) + (row - row[i])
        np.fill_diagonal(found, row - row[i])
        found[is_lower] = -np.inf
        found[i], found[:, i] = -np.inf, -np.inf
        flat = found.ravel() * roots[i] ** 2
        best = np.argpartition(flat, -n_each)[-n_each:]
        j, h = np.divmod(best, n_points)
        triples.append(np.stack([np.full(len(best), i), j, h], axis=1))
        violations.append(flat[best])
    amounts = np.concatenate(violations)
    order = np.argsort(-amounts, kind="stable")[:n_most]
    return np.concatenate(triples)[order[amounts[order] > 1e-7]]
