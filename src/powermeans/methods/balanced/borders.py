"""Prices by Newton's method: points at borders tell how sizes follow the prices."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.points.protocol import AskedNear, PricedLabels, Rows, priced_of
from powermeans.types import FloatArray

MOST_STEPS = 12


def with_better_prices(
    rows: Rows,
    centers: FloatArray,
    priced: PricedLabels,
    prices: FloatArray,
    limits: SizeLimits,
    *,
    enough: float,
    n_most: int = MOST_STEPS,
) -> tuple[PricedLabels, FloatArray]:
    """Return better prices than these, with labels, where too much weight has to move for sizes.

    Each step proves that assignments within the limits cost more than was known. Steps end once no
    more than `enough` weight has to move.
    """
    bound, share, step = limits.bound(priced.sums.objective, prices), 1.0, None
    for _ in range(n_most):
        if _misplaced(priced, prices, limits) <= enough or share < 0.01:
            break
        if step is None:
            step = _step(rows, centers, priced, prices, limits)
            if not step.any():
                break
        moved = _without_needless(prices + share * step, prices, limits)
        tried = priced_of(rows).assign(centers, moved)
        proved = limits.bound(tried.sums.objective, moved)
        if proved > bound:
            priced, prices, bound, step, share = tried, moved, proved, None, min(1.0, 2 * share)
        else:
            share /= 4
    return priced, prices


def _misplaced(priced: PricedLabels, prices: FloatArray, limits: SizeLimits) -> float:
    """Return how much weight has to move for the sizes that are wanted at these prices."""
    excess = priced.sums.weights - limits.wanted(prices, priced.sums.weights)
    return float(max(np.maximum(excess, 0).sum(), np.maximum(-excess, 0).sum()))


def _without_needless(moved: FloatArray, before: FloatArray, limits: SizeLimits) -> FloatArray:
    """Return the prices with zero for those that changed sign.

    At a price of zero all sizes within the limits are as good.
    """
    if limits.curvature > 0:
        return moved
    needless = (np.sign(moved) * np.sign(before) < 0) | ((moved < 0) & (limits.least == 0))
    return np.where(needless, 0.0, moved)


def _step(
    rows: Rows, centers: FloatArray, priced: PricedLabels, prices: FloatArray, limits: SizeLimits
) -> FloatArray:
    """Return the change of prices that gives the wished sizes if these follow in proportion."""
    sizes, mean, step = priced.sums.weights, limits.mean, np.zeros(len(prices))
    wanted = limits.wanted(prices, sizes)
    excess, flow = (sizes - wanted) / mean, _flow(rows, centers, priced, prices, mean)
    response: FloatArray = np.asarray(flow.sum(axis=1), dtype=np.float64)
    if not response.any():
        return step
    if limits.curvature > 0:
        response += ((wanted > limits.least) & (wanted < limits.most)) / (limits.curvature * mean)
    usual = float(np.median(response[response > 0]))
    # Prices of clusters far from all others, without a point at a border, stay near those that they
    # have. Nearly equal points at one border respond so much that rounding would lose the rest.
    response += np.maximum(1e-2 * usual, 1e-6 * response)
    changing = np.flatnonzero((excess != 0) | (prices != 0))
    matrix = sparse.csr_array(sparse.diags_array(response) - flow)[changing][:, changing]
    about = sparse.diags_array(1 / response[changing])
    step[changing], _ = cg(matrix, excess[changing], rtol=1e-3, maxiter=200, M=about)
    return step


def _flow(
    rows: Rows, centers: FloatArray, priced: PricedLabels, prices: FloatArray, unit: float
) -> sparse.csr_array:
    """Return how many units of weight go from one cluster to another as its price rises by one."""
    n, labels = len(centers), priced.labels
    counts = rows.sample_weight(np.arange(rows.n_points))
    means = np.bincount(labels, priced.margins, n) / np.maximum(np.bincount(labels, minlength=n), 1)
    # A point is at the border where another center costs it hardly more.
    reach = 0.1 * means
    points = np.flatnonzero((priced.margins <= reach[labels]) & (reach[labels] > 0) & (counts > 0))
    own = labels[points]
    farthest = float(reach[own].max(initial=0.0))
    near = priced_of(rows).near(AskedNear(points, own, centers, prices, farthest, n_most=2))
    has_other = near.centers[:, 1] >= 0
    points, own, others = points[has_other], own[has_other], near.centers[has_other, 1]
    leaving = sparse.csr_array((counts[points] / unit / reach[own], (own, others)), shape=(n, n))
    # Points on both sides of a border tell how densely they lie there.
    return sparse.csr_array((leaving + leaving.T) / 2)
