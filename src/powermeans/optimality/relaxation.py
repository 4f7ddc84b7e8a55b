"""The relaxation of Peng & Wei (2007), and what proves a lower bound by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from powermeans.optimality.cuts import Cuts
from powermeans.types import FloatArray, Labels, Points, SparsePoints

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Minimize total - <gram, Z> over Z >= 0 with 0 <= Z <= I, Z u = u and trace Z = n_clusters.

    Every clustering is a feasible Z: the sum of z z' over its clusters, where z is the root of the
    weights in the cluster, of length one.
    """

    gram: FloatArray  # (n_points, n_points), of sqrt(w) (x - mean)
    roots: FloatArray  # of the weights, (n_points,)
    total: float  # the trace of gram: the inertia of one cluster
    n_clusters: int
    n_features: int

    @classmethod
    def of(cls, points: Points | SparsePoints, weights: FloatArray, n_clusters: int) -> Relaxation:
        """Return the relaxation for points of positive weight."""
        n_points, n_features = points.shape
        roots, gram = np.sqrt(weights), np.zeros((n_points, n_points))
        for block in _columns(points, 4096):
            residuals = roots[:, None] * _centered(block, weights)
            gram += residuals @ residuals.T
        return cls(gram, roots, float(np.trace(gram)), n_clusters, n_features)

    @property
    def unit(self) -> FloatArray:
        """Return u, the direction that every Z keeps."""
        direction: FloatArray = self.roots / np.linalg.norm(self.roots)
        return direction

    def no_cuts(self) -> Cuts:
        """Return none."""
        return Cuts.of(np.empty((0, 3), dtype=np.intp), self.roots)

    def across(self, matrix: FloatArray) -> tuple[FloatArray, float]:
        """Return a symmetric matrix projected on the complement of u, and its value u'Mu."""
        unit = self.unit
        product = matrix @ unit
        along = float(unit @ product)
        half = product - (along / 2) * unit
        projected = matrix - np.outer(unit, half)
        projected -= np.outer(half, unit)
        return projected, along

    def inertia(self, labels: Labels) -> float:
        """Return the inertia of a clustering about its own means."""
        return self.total - float(np.vdot(self.gram, self.clustering(labels)))

    def largest_within(self, labels: Labels) -> float:
        """Return the largest eigenvalue of the Gram matrix about the means of the clusters."""
        means = self.clustering(labels)
        half = self.gram @ means
        within = self.gram - half - half.T + means @ half
        return float(linalg.eigvalsh(within, check_finite=False)[-1])

    def clustering(self, labels: Labels) -> FloatArray:
        """Return the matrix Z of a clustering."""
        shares = np.bincount(labels, np.square(self.roots))
        scaled = self.roots / np.sqrt(shares[labels])
        return np.where(labels[:, None] == labels, np.outer(scaled, scaled), 0.0)


def _columns(points: Points | SparsePoints, n_at_once: int) -> Iterator[FloatArray]:
    """Yield some columns at a time, dense, in float64."""
    by_column = points.tocsc() if sparse.issparse(points) else points
    for start in range(0, points.shape[1], n_at_once):
        block = by_column[:, start : start + n_at_once]
        dense = block.toarray() if sparse.issparse(block) else block
        yield dense.astype(np.float64, copy=False)


def _centered(block: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what remains of each column about its mean."""
    # Twice: far from the origin a mean is rounded, and the points keep a common offset. It moves
    # no clustering, but loosens the bound, and whoever bounds must take its square off the trace.
    for _ in range(2):
        block = block - weights @ block / weights.sum()
    return block


@dataclass(frozen=True, slots=True)
class Certificate:
    """Multipliers that prove a lower bound, however they were found: all are at least zero."""

    of_signs: FloatArray  # B, of Z >= 0, (n_points, n_points), symmetric
    of_cuts: FloatArray  # mu, (n_cuts,)
    cuts: Cuts

    def lower_bound(self, relaxation: Relaxation) -> float:
        """Return what every clustering has at least as inertia.

        With M = G + B - sum of mu_c A_c, every feasible Z has <G, Z> <= <M, Z>, since <B, Z> >= 0
        and <A_c, Z> <= 0. Z is u u' and, in the complement of u, a matrix of trace k - 1 with
        eigenvalues between 0 and 1, so that <M, Z> is at most u'Mu and the sum of the k - 1 largest
        eigenvalues of M there.
        """
        if min(self.of_signs.min(), self.of_cuts.min(initial=0.0)) < 0:
            raise ValueError("a multiplier is below zero and proves nothing: clip it")
        of_cuts = self.cuts.combined(self.of_cuts)
        # LAPACK reads one triangle, and what the search rounds is far larger than B itself.
        of_signs = (self.of_signs + self.of_signs.T) / 2
        matrix = relaxation.gram + of_signs - of_cuts
        projected, along = relaxation.across(matrix)
        most = sum_of_largest(projected, relaxation)
        return relaxation.total - along - most - self._rounding(relaxation, matrix)

    def _rounding(self, relaxation: Relaxation, matrix: FloatArray) -> float:
        """Return more than all that rounding may have added to the bound.

        Sums of t terms are off by t eps of the sum of magnitudes: t is the number of features for
        the Gram matrix, of points for projections and traces, of terms for cuts. LAPACK returns the
        eigenvalues of a matrix that is off by a modest multiple of n eps of its norm, and each of
        the k - 1 largest moves by at most the norm of an error.
        """
        terms = relaxation.n_features + len(matrix) + self.cuts.most_on_a_place + 16
        magnitude = relaxation.total + float(
            np.linalg.norm(matrix)
            + np.linalg.norm(self.of_signs)
            + np.linalg.norm(self.cuts.magnitude(self.of_cuts))
        )
        return 8 * _EPSILON * terms * relaxation.n_clusters * magnitude


def sum_of_largest(projected: FloatArray, relaxation: Relaxation) -> float:
    """Return the sum of the k - 1 largest eigenvalues in the complement of u."""
    if relaxation.n_clusters == 1:
        return 0.0
    # All eigenvalues, by LAPACK: those of an iteration for some lie below the true ones.
    values = linalg.eigvalsh(away_from(projected, relaxation.unit), check_finite=False)
    return float(values[1:][1 - relaxation.n_clusters :].sum())


def away_from(projected: FloatArray, unit: FloatArray) -> FloatArray:
    """Move the eigenvalue zero of u below all others."""
    depth = 2 * float(np.linalg.norm(projected))
    return projected - np.outer(depth * unit, unit)


def principal_bound(points: Points | SparsePoints, weights: FloatArray, n_clusters: int) -> float:
    """Return the bound at B = 0, by principal components (Ding & He 2004), which needs no search.

    The Gram matrix and the scatter of the features have the same positive eigenvalues.
    """
    n_points, n_features = points.shape
    if n_features >= n_points:
        relaxation = Relaxation.of(points, weights, n_clusters)
        nothing = Certificate(np.zeros_like(relaxation.gram), np.empty(0), relaxation.no_cuts())
        return nothing.lower_bound(relaxation)
    (block,) = _columns(points, n_features)
    roots = np.sqrt(weights)
    residuals = roots[:, None] * _centered(block, weights)
    scatter = residuals.T @ residuals
    rounding = 8 * _EPSILON * (n_points + n_features + 16) * n_clusters * float(np.trace(scatter))
    along = (roots / np.linalg.norm(roots)) @ residuals  # nearly zero; see _centered
    scatter -= np.outer(along, along)
    values = linalg.eigvalsh(scatter, check_finite=False)
    n_leading = min(n_clusters - 1, len(values))
    leading = float(values[len(values) - n_leading :].sum())
    bound: float = float(np.trace(scatter)) - leading - rounding
    return bound


def from_clustering(
    relaxation: Relaxation, labels: Labels, is_over: Callable[[], bool]
) -> Certificate | None:
    """Return a certificate that is tight if the clusters lie far apart (Iguchi et al. 2017).

    It is None if time is over before.

    Between clusters a and b, B_ij = sqrt(w_i w_j) r_i r_j / mean r with
    r_i = (|x_i - c_b|^2 - |x_i - c_a|^2) / 2 - z (1 / W_a + 1 / W_b) / 2. Then M maps the span of
    the clusters to itself, with the eigenvalue z across u. The smallest z that none of the other
    eigenvalues is above proves the optimum, as far as it leaves r positive.
    """
    roots, weights = relaxation.roots, np.square(relaxation.roots)
    names = np.unique(labels)
    is_in = labels[:, None] == names
    shares = weights @ is_in
    of_means = roots[:, None] * is_in / shares
    by_center = relaxation.gram @ of_means / roots[:, None]  # x_i'c_b
    nearer = by_center - np.diag(of_means.T @ relaxation.gram @ of_means) / 2
    level = relaxation.largest_within(labels)
    of_signs = np.zeros_like(relaxation.gram)
    for a in range(len(names)):
        if is_over():
            return None
        for b in range(a):
            less = level * (1 / shares[a] + 1 / shares[b]) / 2
            in_a, in_b = is_in[:, a], is_in[:, b]
            rise = nearer[:, a] - nearer[:, b]
            less = max(0.0, min(less, float(rise[in_a].min()), float(-rise[in_b].max())))
            of_a, of_b = np.maximum(rise[in_a] - less, 0), np.maximum(-rise[in_b] - less, 0)
            means = np.average(of_a, weights=weights[in_a]), np.average(of_b, weights=weights[in_b])
            if min(means) > 0:
                block = np.outer(roots[in_a] * of_a, roots[in_b] * of_b)
                of_signs[np.ix_(in_a, in_b)] = block / np.sqrt(means[0] * means[1])
    return Certificate(of_signs + of_signs.T, np.empty(0), relaxation.no_cuts())
