"""Judge a fitted model from its centers alone, by brute force in long double.

It imports nothing of the package, so that no fault of the package can hide in it.

How far labels and inertia may be off follows from how distances are computed.

- Up to 16 dense features, squared distances are sums of squared differences in float64, whatever
  the dtype of the points: each term is rounded three times and the sum once for each feature, so
  that a distance is right to (d + 3) / 2**53 of itself.
- With more features, in CSR points, or with missing entries, a squared distance is
  |x|^2 - 2 <x, c> + |c|^2 about an origin, in the dtype of the points: it is right to (d + 8)
  units of this dtype, times |x|^2 + |c|^2 about that origin. The same holds of Bregman divergences,
  which are affine in the point, with the largest distance to any center in place of the squares;
  `points/bregman.py` leaves products where they would cost more than 1e-9 of a distance.
  Their centers are moved off a border of the domain by 1e-30 of the size of the entries.
- Directions, for cosines, are rounded to the dtype of the points: half the squared length of a
  difference that is off by e is off by e sqrt(2 D) + e^2 / 2.

- Each of these roundings may also be off by half of the least number above zero, 5e-324, as where
  squares of points near 1e-160 are formed. A weight multiplies what a distance is off, and what the
  product with the weight is off by itself.

Two distances may change places when they differ by what both may be off. The inertia is summed in
float64, and that of float32 points is promised to about seven digits
(`docs/how_do_i/determinism.md`): to four units of float32, which are 1.2e-7 each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LONG = np.longdouble
FEATURES_WITHOUT_CANCELLATION = 16
DIGITS_OF_BREGMAN = 1e-9
SAFETY = 4.0
LEAST = np.finfo(np.float64).smallest_subnormal

Distances = Callable[[Any, Any], Any]


# Formulas: points (n, 1, d) and centers (1, k, d) of long double to distances (n, k).


def squared_euclidean(points: Any, centers: Any) -> Any:
    """sum of (x - c)^2 over the entries that are observed."""
    return np.nansum((points - centers) ** 2, axis=-1)


def manhattan(points: Any, centers: Any) -> Any:
    return np.abs(points - centers).sum(axis=-1)


def cosine(points: Any, centers: Any) -> Any:
    """1 - cos, as half the squared difference of directions."""
    x, c = (a / np.sqrt((a**2).sum(axis=-1, keepdims=True)) for a in (points, centers))
    return ((x - c) ** 2).sum(axis=-1) / 2


def _excess(u: Any) -> Any:
    """(1 + u) log(1 + u) - u, by its series where that cancels."""
    series = u**2 / 2 - u**3 / 6 + u**4 / 12 - u**5 / 20
    with np.errstate(all="ignore"):
        plain = np.where(u > -1, (1 + u) * np.log1p(np.maximum(u, -1)) - u, -u)
    return np.where(np.abs(u) < 1e-4, series, plain)


def _entropy(points: Any, centers: Any) -> Any:
    """x log(x / c) - x + c."""
    return centers * _excess((points - centers) / centers)


def _off_zero(centers: Any) -> Any:
    """Move entries of zero by 1e-30 of the mean entry of their center, or by 1e-30.

    They move at least to the least normal number, since smaller ones lack digits.
    """
    sizes = centers.mean(axis=-1, keepdims=True)
    off = LONG(1e-30) * np.where(sizes > 0, sizes, LONG(1))
    return np.where(centers > 0, centers, np.maximum(off, np.finfo(np.float64).tiny))


def poisson(points: Any, centers: Any) -> Any:
    return _entropy(points, _off_zero(centers)).sum(axis=-1)


def binomial(n_trials: float) -> Distances:
    def distances(points: Any, centers: Any) -> Any:
        trials = LONG(n_trials)
        inner = np.minimum(_off_zero(centers), LONG(np.nextafter(n_trials, 0.0)))
        both = _entropy(points, inner) + _entropy(trials - points, trials - inner)
        return both.sum(axis=-1)

    return distances


def gamma(points: Any, centers: Any) -> Any:
    """r - log(1 + r) with r = (x - c) / c, or x / c - 1 - log(x / c) far below the center."""
    r, share = (points - centers) / centers, points / centers
    series = r**2 / 2 - r**3 / 3 + r**4 / 4 - r**5 / 5
    with np.errstate(all="ignore"):
        usual = np.where(share < 0.5, share - 1 - np.log(share), r - np.log1p(r))
        return np.where(np.abs(r) < 1e-4, series, usual).sum(axis=-1)


def inverse_gaussian(points: Any, centers: Any) -> Any:
    """(x - c)^2 / (x c^2)."""
    return (((points - centers) / centers) ** 2 / points).sum(axis=-1)


def hellinger(points: Any, centers: Any) -> Any:
    return ((np.sqrt(points) - np.sqrt(centers)) ** 2).sum(axis=-1) / 2


def chi_squared(points: Any, centers: Any) -> Any:
    inner = _off_zero(centers)
    return ((points - inner) ** 2 / inner).sum(axis=-1)


def jeffreys(points: Any, centers: Any) -> Any:
    return _entropy(points, centers).sum(axis=-1) + _entropy(centers, points).sum(axis=-1)


def weighted_euclidean(prices: Any) -> Distances:
    """sum of v (x - c)^2 with a weight for each feature, over the entries that are observed."""
    v = np.asarray(prices, LONG)
    return lambda points, centers: np.nansum(v * (points - centers) ** 2, axis=-1)


def mahalanobis(covariance: Any) -> Distances:
    """Squared length after elimination with the Cholesky factor, which is found by hand."""
    factor = cholesky(np.asarray(covariance, dtype=LONG))

    def distances(points: Any, centers: Any) -> Any:
        left = points - centers
        for row in range(len(factor)):
            known = (left[..., :row] * factor[row, :row]).sum(axis=-1)
            left[..., row] = (left[..., row] - known) / factor[row, row]
        return (left**2).sum(axis=-1)

    return distances


def cholesky(matrix: Any) -> Any:
    factor = np.zeros_like(matrix)
    for row in range(len(matrix)):
        for column in range(row + 1):
            rest = matrix[row, column] - (factor[row, :column] * factor[column, :column]).sum()
            factor[row, column] = np.sqrt(rest) if row == column else rest / factor[column, column]
    return factor


# The judgement.


@dataclass(frozen=True)
class Claim:
    """What a model says of some points.

    `points` are dense, of the dtype in which the model holds them. `inertia` is None where the
    model sums something else.
    """

    points: Any
    weights: Any
    centers: Any
    labels: Any
    inertia: float | None
    distances: Distances = squared_euclidean
    is_sparse: bool = False
    has_missing: bool = False

    @property
    def is_affine(self) -> bool:
        """Whether distances are by products, however few the features."""
        return self.is_sparse or self.has_missing


def fault_of(claim: Claim) -> str | None:
    """Return in words what is wrong, or None."""
    centers, labels = np.asarray(claim.centers), np.asarray(claim.labels)
    if not np.isfinite(centers).all():
        return f"centers are not finite: {centers[~np.isfinite(centers).all(axis=1)][:1]}"
    if labels.shape != (len(claim.points),) or labels.dtype.kind != "i":
        return f"labels have shape {labels.shape} and dtype {labels.dtype}"
    if labels.min() < 0 or labels.max() >= len(centers):
        return f"labels are from {labels.min()} to {labels.max()} with {len(centers)} centers"
    distances = distances_of(claim)
    own = distances[np.arange(len(labels)), labels]
    allowed = slack(claim, distances)
    return _fault_of_labels(claim, distances, allowed) or _fault_of_inertia(
        claim, own, allowed[np.arange(len(labels)), labels]
    )


def distances_of(claim: Claim) -> Any:
    points = np.asarray(claim.points, dtype=LONG)[:, None, :]
    return claim.distances(points, np.asarray(claim.centers, dtype=LONG)[None, :, :])


def slack(claim: Claim, distances: Any) -> Any:
    """Return by how much each distance may be off, (n, k)."""
    n_features = claim.points.shape[1]
    return _rounding(claim, distances) + SAFETY * (n_features + 3) * LEAST


def _rounding(claim: Claim, distances: Any) -> Any:
    n_features = claim.points.shape[1]
    own_unit, double = LONG(np.finfo(claim.points.dtype).eps), LONG(2.0**-53)
    are_few = n_features <= FEATURES_WITHOUT_CANCELLATION
    finite = np.where(np.isfinite(distances), distances, 0)
    if claim.distances is cosine:
        by_direction = SAFETY * own_unit * np.sqrt(LONG(n_features))
        off = by_direction * np.sqrt(2 * finite) + by_direction**2 / 2
        is_product = claim.is_affine or not are_few
        return off + is_product * SAFETY * (n_features + 8) * own_unit
    if claim.distances is squared_euclidean:
        squares = _squares_about_origin(claim)
        if claim.is_affine or not are_few:
            return SAFETY * (n_features + 8) * own_unit * (squares + finite)
        return SAFETY * (n_features + 3) * double * finite
    unit = double if are_few else own_unit
    border = 1e-29 * n_features * max(LONG(1), np.nanmean(np.abs(claim.points), dtype=LONG))
    sizes = finite.max(axis=1, keepdims=True) + finite
    return SAFETY * (n_features + 8) * unit * sizes + DIGITS_OF_BREGMAN * finite + border


def _squares_about_origin(claim: Claim) -> Any:
    points, centers = (np.asarray(a, dtype=LONG) for a in (claim.points, claim.centers))
    origin = LONG(0) if claim.is_sparse else np.nanmean(points, axis=0)
    of_points = np.nansum((points - origin) ** 2, axis=1)
    return of_points[:, None] + ((centers - origin) ** 2).sum(axis=1)


def _fault_of_labels(claim: Claim, distances: Any, allowed: Any) -> str | None:
    at, labels = np.arange(len(distances)), np.asarray(claim.labels)
    nearest, own = distances.argmin(axis=1), distances[at, labels]
    least = distances[at, nearest]
    with np.errstate(invalid="ignore"):  # all may be infinitely far
        gap = own - least
        wrong = np.flatnonzero(gap > allowed[at, nearest] + allowed[at, labels])
    if not len(wrong):
        return None
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(gap[wrong] / own[wrong], nan=1.0)
    worst = wrong[np.argmax(share)]
    return (
        f"{len(wrong)} of {len(own)} labels are not the nearest: point {worst} is "
        f"{float(share.max()):.2g} of its distance farther from center "
        f"{labels[worst]} than from {nearest[worst]}"
    )


def _fault_of_inertia(claim: Claim, own: Any, allowed: Any) -> str | None:
    if claim.inertia is None:
        return None
    if not claim.inertia >= 0:
        return f"the inertia is {claim.inertia}"
    weights = np.ones(len(own)) if claim.weights is None else claim.weights
    counted = np.asarray(weights, dtype=LONG) > 0
    weights = np.asarray(weights, dtype=LONG)[counted]
    expected = (weights * own[counted]).sum()
    if expected > np.finfo(np.float64).max:
        return None
    digits = 1e-12 if claim.points.dtype == np.float64 else 4 * np.finfo(np.float32).eps
    room = (weights * allowed[counted]).sum() + digits * expected
    room += len(weights) * max(LONG(1), weights.max()) * LEAST
    if abs(LONG(claim.inertia) - expected) <= room:
        return None
    return f"the inertia is {claim.inertia!r} and should be {float(expected)!r}"
