"""The search for multipliers: the method of alternating directions, with cuts in rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import linalg

from powermeans.optimality.cuts import Cuts, most_violated
from powermeans.optimality.relaxation import (
    Certificate,
    Relaxation,
    away_from,
    from_clustering,
)
from powermeans.types import FloatArray, Labels


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
        found: FloatArray = (kept * shares[is_used]) @ kept.T + np.outer(unit, unit)
        return found

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
