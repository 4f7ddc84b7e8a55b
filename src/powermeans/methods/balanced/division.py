"""Centers for clusters of limited size, made of centers that were found without limits.

Where a cluster has the points of several, prices would have to drive most of them far away, and
centers would follow slowly. Instead it is divided, and where the sum of squares rises least,
clusters are joined to make up for that.
"""

import numpy as np

from powermeans.points.opening import open_rows
from powermeans.points.protocol import AskedNear, Points, priced_of
from powermeans.types import FloatArray, IndexArray

# A cluster is divided into as many as it would fill to this share of the largest size.
_FULL = 0.95
# It is cut among this many points for each of these.
_POINTS_OF_A_CENTER = 400


def divided(rows: Points, centers: FloatArray, most: float) -> FloatArray:
    """Return as many centers, none with the points of several clusters of weight `most`.

    Where there are none of these, the same centers are returned.
    """
    labels, _ = rows.assign(centers)
    counts, n_centers = rows.sample_weight(np.arange(rows.n_points)), len(centers)
    hosts = _hosts(centers, np.bincount(labels, counts, n_centers).astype(np.float64), most)
    hosted = hosts[labels]
    n_points = np.bincount(hosted[counts > 0], minlength=n_centers)
    quotas = _quotas(np.bincount(hosted, counts, n_centers).astype(np.float64), n_points, most)
    if np.array_equal(hosts, np.arange(n_centers)) or quotas.sum() < n_centers:
        return centers
    order, n_each = np.argsort(hosted, kind="stable"), np.bincount(hosted, minlength=n_centers)
    members = np.split(order, np.cumsum(n_each)[:-1])
    is_joined = np.bincount(hosts, minlength=n_centers) > 1
    parts = []
    for cluster in np.flatnonzero(quotas):
        quota = int(quotas[cluster])
        if quota == 1 and not is_joined[cluster]:
            parts.append(centers[cluster])
            continue
        some = members[cluster][counts[members[cluster]] > 0]
        n_most = min(_POINTS_OF_A_CENTER * quota, max(quota, 2**24 // rows.n_features))
        some = some[np.linspace(0, len(some) - 1, min(len(some), n_most)).astype(np.intp)]
        parts += _even_parts(rows.take(some), counts[some], quota)
    return np.stack(parts)


def _even_parts(points: FloatArray, counts: FloatArray, n_parts: int) -> list[FloatArray]:
    """Return the means of parts of even weight, cut across where the points spread most."""
    if n_parts == 1 or len(points) == 1:
        return n_parts * [_mean(points, counts)]
    n_low = n_parts // 2
    order = _ordered_across_cut(points, counts, n_low / n_parts)
    sums = np.cumsum(counts[order])
    n_before = int(np.searchsorted(sums, n_low / n_parts * sums[-1])) + 1
    low, high = np.split(order, [min(n_before, len(order) - 1)])
    parts = _even_parts(points[low], counts[low], n_low)
    return parts + _even_parts(points[high], counts[high], n_parts - n_low)


def _ordered_across_cut(points: FloatArray, counts: FloatArray, share: float) -> IndexArray:
    """Return the points along a line, of which this share lies at one end, far from the others."""
    away = points - _mean(points, counts)
    line = away[np.argmax(np.einsum("if,if->i", away, away))]
    for _ in range(5):  # until the line across the cut is steady
        order = np.argsort(away @ line, kind="stable")
        sums = np.cumsum(counts[order])
        low, high = np.split(order, [max(1, int(np.searchsorted(sums, share * sums[-1])))])
        if not len(high):
            break
        line = _mean(away[high], counts[high]) - _mean(away[low], counts[low])
    return np.argsort(away @ line, kind="stable")


def _mean(points: FloatArray, counts: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("i,if->f", counts / counts.sum(), points))


def _times_full(weights: FloatArray, most: float) -> IndexArray:
    """Return into how many clusters of limited size each should be divided."""
    return np.maximum(1, np.rint(weights / (_FULL * most))).astype(np.intp)


def _hosts(centers: FloatArray, weights: FloatArray, most: float) -> IndexArray:
    """Return for each center the one that it is joined with, or itself.

    So many are joined that there are enough for the clusters to divide.
    """
    centers, weights, hosts = centers.copy(), weights.copy(), np.arange(len(centers))
    while True:
        left = np.flatnonzero(hosts == np.arange(len(hosts)))
        quotas = _times_full(weights[left], most)
        n_wanted = int(quotas.sum()) - len(hosts)
        if n_wanted <= 0:
            return hosts
        near, loss = _nearest_other(centers[left], weights[left])
        loss[quotas > 1] = np.inf
        # Others are the cheapest once half of these are joined.
        pairs = _cheapest_pairs(near, loss, int(np.ceil(0.5 * n_wanted)))
        if not pairs:
            return hosts
        for guest, host in ((left[i], left[near[i]]) for i in pairs):
            both = max(weights[guest] + weights[host], np.finfo(float).tiny)
            centers[host] += weights[guest] / both * (centers[guest] - centers[host])
            weights[host] += weights[guest]
            hosts[hosts == guest] = host


def _nearest_other(centers: FloatArray, weights: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Return the nearest other center of each, and by how much the error rises if they join."""
    everything, none = np.arange(len(centers)), np.zeros(len(centers))
    if len(centers) == 1:
        return everything, np.full(1, np.inf)
    own = everything.astype(np.int32)
    rows = open_rows(centers)
    found = priced_of(rows).near(AskedNear(everything, own, centers, none, np.inf, n_most=2))
    near = found.centers[:, 1].astype(np.intp)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nan_to_num(1 / (1 / weights + 1 / weights[near]))
    return near, mean * found.distances[:, 1]


def _cheapest_pairs(near: IndexArray, loss: FloatArray, n_wanted: int) -> list[int]:
    """Return the centers to join with their nearest, each center in one pair at most."""
    pairs: list[int] = []
    is_taken = np.zeros(len(near), dtype=bool)
    for i in np.argsort(loss, kind="stable"):
        if len(pairs) == n_wanted or loss[i] == np.inf:
            break
        if not is_taken[i] and not is_taken[near[i]]:
            is_taken[[i, near[i]]] = True
            pairs.append(int(i))
    return pairs


def _quotas(weights: FloatArray, n_points: IndexArray, most: float) -> IndexArray:
    """Return how many centers each cluster gets, as many as there are clusters if points allow."""
    quotas: IndexArray = np.minimum(_times_full(weights, most), n_points)
    while (n_over := int(quotas.sum()) - len(quotas)) != 0:
        can_change = quotas > 1 if n_over > 0 else quotas < n_points
        if not can_change.any():
            break
        loads = weights / np.maximum(quotas, 1)
        if n_over > 0:
            quotas[np.argmin(np.where(can_change, loads, np.inf))] -= 1
        else:
            quotas[np.argmax(np.where(can_change, loads, -np.inf))] += 1
    return quotas
