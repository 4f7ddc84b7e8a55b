"""Draw one cluster of the same shape as given points, as the null hypothesis of choosing k.

Either each feature keeps the nearest distribution with one peak, and features stay as correlated as
they are (a Gaussian copula), or the density falls from the mean in all directions alike. Clusters
that are apart fill their valleys, and one cluster stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import RandomState
from scipy.special import ndtr, ndtri

from powermeans.mathematics.criteria import lower_hull
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray

# Of the distribution of a feature, so that a hull of 10 000 values need not be walked along.
_N_QUANTILES = 64


def draws_by_feature(
    points: FloatArray, counts: FloatArray, rng: RandomState
) -> Iterator[FloatArray]:
    """Yield as many points, again and again, whose features each have one peak."""
    shares = np.column_stack([_shares_up_to(column, counts) for column in points.T])
    with blas_on_one_thread():
        root = _root_of_correlation(ndtri(shares), counts)
    features = [
        _feature(column, share, counts) for column, share in zip(points.T, shares.T, strict=True)
    ]
    while True:
        with blas_on_one_thread():
            uniform = ndtr(rng.standard_normal(points.shape) @ root)
        drawn = [draw(u) for u, draw in zip(uniform.T, features, strict=True)]
        yield np.ascontiguousarray(np.column_stack(drawn))


def _feature(
    values: FloatArray, shares: FloatArray, counts: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the quantile function of the nearest distribution with one peak."""
    x, place = np.unique(values, return_inverse=True)
    if not 1 < len(x) <= min(_N_QUANTILES, len(values) // 2):
        x, known = with_one_peak(*_quantiles(values, shares))
        return lambda uniform: np.interp(uniform, known, x)
    # Few values, such as counts, stay multiples of a step, each for its half of the way around.
    step = np.diff(x).min()
    edges = np.column_stack([x - step / 2, x + step / 2])
    up_to = np.cumsum(np.bincount(place, weights=counts)) / counts.sum()
    known = with_one_peak(edges.ravel(), np.column_stack([[0.0, *up_to[:-1]], up_to]).ravel())[1]
    return lambda uniform: (
        x[0] + step * np.rint((np.interp(uniform, known, edges.ravel()) - x[0]) / step)
    )


def draws_by_distance(
    points: FloatArray, counts: FloatArray, rng: RandomState
) -> Iterator[FloatArray]:
    """Yield as many points whose density falls with the distance from the mean.

    A disk that is cut has parts further apart than a square whose features are distributed alike.
    """
    mean = np.average(points, axis=0, weights=counts)
    with blas_on_one_thread():
        values, axes = np.linalg.eigh(np.atleast_2d(np.cov(points, rowvar=False, aweights=counts)))
        scales = np.sqrt(values[is_axis := values > values.max() * 1e-12])
        axes, n_axes = axes[:, is_axis], int(np.count_nonzero(is_axis))
        lengths = np.linalg.norm((points - mean) @ axes / scales, axis=1)
    longest = lengths.max()
    # The density falls where the share of the points is a concave function of the volume.
    volumes = (lengths / longest) ** n_axes
    x, shares = _quantiles(volumes, _shares_up_to(volumes, counts))
    x, shares = np.append(0.0, x), np.append(0.0, shares)
    shares = -_lower(x, -shares)
    while True:
        directions = rng.standard_normal((len(points), n_axes))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        drawn = np.interp(rng.uniform(size=len(points)), shares, x) ** (1 / n_axes)
        with blas_on_one_thread():
            found = mean + longest * drawn[:, None] * (directions * scales) @ axes.T
        yield found


def with_one_peak(x: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nearest distribution function whose density rises to a peak and falls after it.

    On each side of the peak it is the estimator of Grenander (1956): the greatest convex minorant
    before it, the least concave majorant after it. The peak is where the largest distance from the
    function is least, as in the dip of Hartigan & Hartigan (1985).

    >>> with_one_peak(np.arange(5.0), np.array([0.0, 0.4, 0.5, 0.6, 1.0]))[1].round(2)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    fits = [_with_peak_at(x, shares, peak) for peak in range(0, len(x), 2)]
    return x, min(fits, key=lambda fit: float(np.abs(fit - shares).max()))


def _with_peak_at(x: FloatArray, shares: FloatArray, peak: int) -> FloatArray:
    rising, falling = slice(None, peak + 1), slice(peak, None)
    return np.append(_lower(x[rising], shares[rising])[:-1], -_lower(x[falling], -shares[falling]))


def _lower(x: FloatArray, y: FloatArray) -> FloatArray:
    corners = lower_hull(x, y)
    return np.asarray(np.interp(x, x[corners], y[corners]))


def _shares_up_to(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Return for each value the share of the values below it and of half of those at it."""
    _, place, n_at = np.unique(values, return_inverse=True, return_counts=True)
    at = np.bincount(place, weights=counts, minlength=len(n_at))
    return np.asarray((np.cumsum(at) - at / 2)[place] / counts.sum())


def _quantiles(values: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return some rising values, from the least to the largest, with the shares up to them."""
    x, place = np.unique(values, return_index=True)
    ends = np.interp(np.linspace(0, 1, _N_QUANTILES), np.linspace(0, 1, len(x)), np.arange(len(x)))
    some = np.unique(np.round(ends).astype(np.intp))
    known = shares[place[some]]
    known[[0, -1]] = 0.0, 1.0
    return x[some], known


def _root_of_correlation(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Return R with R.T @ R the correlation of the scores, also where it is singular."""
    correlation = np.atleast_2d(np.cov(scores, rowvar=False, aweights=counts))
    deviations = np.sqrt(np.maximum(np.diag(correlation), np.finfo(np.float64).tiny))
    correlation = _without_noise(correlation / deviations / deviations[:, None], counts)
    values, axes = np.linalg.eigh(correlation)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T)


def _without_noise(correlation: FloatArray, counts: FloatArray) -> FloatArray:
    """Return correlations shrunk by the share of them that is noise (Schäfer & Strimmer 2005).

    Else those of the draws would have that noise twice, and clusters would be cut along it.
    """
    between = correlation[~np.eye(len(correlation), dtype=bool)]
    noise = float(np.sum(np.square(1 - np.square(between)))) / counts.sum()
    share = min(1.0, noise / max(float(between @ between), np.finfo(np.float64).tiny))
    return np.asarray((1 - share) * correlation + share * np.eye(len(correlation)))
