"""The relaxation of Peng & Wei (2007), and what proves a lower bound by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from powermeans.divergences.chunks import as_float64
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels

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
    def of(cls, points: AnyMatrix, weights: FloatArray, n_clusters: int) -> Relaxation:
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
        return self.roots / np.linalg.norm(self.roots)

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


def _columns(points: AnyMatrix, n_at_once: int) -> Iterator[FloatArray]:
    """Yield some columns at a time, dense, in float64."""
    by_column: Any = points.tocsc() if sparse.issparse(points) else points
    for start in range(0, points.shape[1], n_at_once):
        yield as_float64(by_column[:, start : start + n_at_once])


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
        n_on_a_place = 2 * int(np.bincount(self.cuts.places.ravel(), minlength=1).max())
        terms = relaxation.n_features + len(matrix) + n_on_a_place + 16
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


def principal_bound(points: AnyMatrix, weights: FloatArray, n_clusters: int) -> float:
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
    return float(np.trace(scatter) - leading - rounding)


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


# The search for multipliers: the method of alternating directions, with cuts in rounds.


def rising_bounds(
    relaxation: Relaxation, labels: Labels, is_over: Callable[[], bool]
) -> Iterator[float]:
    """Yield ever better lower bounds, until there is nothing left to gain or time is over.

    A bound is computed after ten steps. After three bounds, or where nothing moves any more, cuts
    are exchanged.
    """
    start = from_clustering(relaxation, labels, is_over)
    if start is None:
        return
    best = start.lower_bound(relaxation)
    yield best
    if relaxation.n_clusters == 1 or is_over():
        return
    ascent = Ascent(relaxation, start, relaxation.clustering(labels))
    n_bounds = 0
    while True:
        for _ in range(10):
            ascent.step()
            if is_over():
                break
        n_bounds += 1
        best = max(best, ascent.certificate().lower_bound(relaxation))
        yield best
        if is_over():
            return
        ascent.rebalance()
        is_settled = max(ascent.apart, ascent.moved) < 1e-9
        if n_bounds % 3 == 0 or is_settled:
            n_new = ascent.exchange_cuts(n_most=10 * len(relaxation.roots))
            if n_new == 0 and is_settled:
                return


class Ascent:
    """The method of alternating directions, one step at a time.

    Z has the eigenvalues that a clustering may have, and its copy W the signs and the cuts. Every
    step leaves multipliers of at least zero, which prove a bound however far Z and W are apart.
    """

    def __init__(self, relaxation: Relaxation, start: Certificate, guess: FloatArray) -> None:
        self.relaxation = relaxation
        values = linalg.eigvalsh(relaxation.gram)[-relaxation.n_clusters :]
        self.penalty = max(float(values.mean()), np.finfo(np.float64).tiny)
        self.copy = guess
        self.of_signs = start.of_signs / self.penalty
        self.use(start.cuts, start.of_cuts / self.penalty)
        self.dual = self.cuts.combined(self.of_cuts) - self.of_signs
        self.apart = self.moved = np.inf

    def use(self, cuts: Cuts, of_cuts: FloatArray) -> None:
        """Go on with these cuts and their multipliers."""
        self.cuts, self.of_cuts, self.steps = cuts, of_cuts, cuts.steps

    def certificate(self) -> Certificate:
        """Return the multipliers reached."""
        return Certificate(self.of_signs * self.penalty, self.of_cuts * self.penalty, self.cuts)

    def step(self) -> None:
        """Project on the eigenvalues, then on signs and cuts, and add up what parts the two."""
        former = self.copy
        found = self._with_eigenvalues(former - self.dual + self.relaxation.gram / self.penalty)
        relaxed = 1.6  # as Boyd et al. (2011) advise
        self._split(relaxed * found + (1 - relaxed) * former + self.dual)
        self.apart = float(np.linalg.norm(found - self.copy))
        self.moved = float(np.linalg.norm(former - self.copy))

    def _with_eigenvalues(self, matrix: FloatArray) -> FloatArray:
        """Return the nearest matrix with eigenvalues from 0 to 1, trace k, and u kept."""
        unit = self.relaxation.unit
        projected, _ = self.relaxation.across(matrix)
        lowered = away_from(projected, unit)
        values, vectors = linalg.eigh(lowered, check_finite=False, overwrite_a=True, driver="evd")
        shares = shares_of(values[1:], self.relaxation.n_clusters - 1)
        is_used = shares > 0
        kept = vectors[:, 1:][:, is_used]
        return (kept * shares[is_used]) @ kept.T + np.outer(unit, unit)

    def _split(self, target: FloatArray) -> None:
        """Divide the target into the nearest W with its signs and cuts, and the multipliers."""
        ahead, momentum = self.of_cuts, 1.0
        for _ in range(5 if len(self.of_cuts) else 0):
            copy = np.maximum(target - self.cuts.combined(ahead), 0)
            new = np.maximum(ahead + self.steps * self.cuts.values(copy), 0)
            following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            ahead = np.maximum(new + (momentum - 1) / following * (new - self.of_cuts), 0)
            self.of_cuts, momentum = new, following
        of_cuts = self.cuts.combined(self.of_cuts)
        self.of_signs = np.maximum(of_cuts - target, 0)
        self.copy = np.maximum(target - of_cuts, 0)
        self.dual = of_cuts - self.of_signs

    def rebalance(self) -> None:
        """Change the penalty where Z and W part far faster or slower than W moves."""
        ratio = self.apart / max(self.moved, np.finfo(np.float64).tiny)
        if 0.2 < ratio < 5:
            return
        factor = 0.5 if ratio < 1 else 2.0
        self.penalty *= factor
        self.of_signs, self.of_cuts, self.dual = (
            part / factor for part in (self.of_signs, self.of_cuts, self.dual)
        )

    def exchange_cuts(self, n_most: int) -> int:
        """Add the most violated cuts, drop those that are slack, and return how many are new."""
        is_kept = (self.of_cuts > 0) | (self.cuts.values(self.copy) > -1e-5)
        kept = self.cuts.triples[is_kept]
        found = most_violated(self.copy, self.relaxation.roots, n_most)
        new = found[~np.isin(self.cuts.codes(found), self.cuts.codes(kept))]
        of_cuts = np.concatenate([self.of_cuts[is_kept], np.zeros(len(new))])
        self.use(Cuts.of(np.concatenate([kept, new]), self.relaxation.roots), of_cuts)
        return len(new)


def shares_of(values: FloatArray, total: int) -> FloatArray:
    """Return clip(values - shift, 0, 1), with the shift at which they add up to the total."""
    # The sum falls as the shift rises, along a line between neighbouring knots.
    knots = np.unique(np.concatenate([values, values - 1]))
    sums = np.clip(values - knots[:, None], 0, 1).sum(axis=1)
    shares: FloatArray = np.clip(values - np.interp(-total, -sums, knots), 0, 1)
    return shares


# Inequalities that the matrix of every clustering meets, added where a relaxation breaks them.


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
        return (square + square.T) / 2

    def magnitude(self, multipliers: FloatArray) -> FloatArray:
        """Return the same sum of absolute values."""
        return self.combined(multipliers, np.abs(self.factors))

    def codes(self, triples: IndexArray) -> IndexArray:
        """Return a number for each triple, the same for the same triple."""
        i, j, h = triples.T
        found: IndexArray = (i * self.n_points + j) * self.n_points + h
        return found

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
