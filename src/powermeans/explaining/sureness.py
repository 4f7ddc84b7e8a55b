"""How near rows are to their center, and how sure to be in their cluster."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.divergences import resolve
from powermeans.plots import fitted
from powermeans.types import AnyMatrix, FloatArray, Labels, Matrix


def nearness_of_rows(model: Any, points: Matrix, labels: Labels) -> dict[str, Any]:
    """Return the distance to the own center, the next cluster, and how sure the own one is.

    A row is sure by 1 at its center, and by 0 from halfway to another one on.
    """
    n_points = len(points)
    own, sure, seconds = np.zeros(n_points), np.ones(n_points), np.full_like(labels, -1)
    n_at_once = 2**14
    for start in range(0, n_points, n_at_once):
        rows = slice(start, start + n_at_once)
        distances = np.array(model.transform(points[rows]), dtype=np.float64)
        place = np.arange(len(distances))
        own[rows] = distances[place, labels[rows]]
        if distances.shape[1] > 1:
            ways = ways_to_others(model, points[rows], labels[rows], distances)
            sure[rows] = np.clip(1 - 2 * ways, 0.0, 1.0)
            distances[place, labels[rows]] = np.inf
            seconds[rows] = np.argmin(distances, axis=1)
    return {"distance": own, "second_cluster": seconds, "sure": sure}


def ways_to_others(
    model: Any,
    points: AnyMatrix,
    labels: Labels,
    distances: FloatArray,
    drawn: FloatArray | None = None,
) -> FloatArray:
    """Return how far each row is on the way from its center to that of another cluster.

    Only the way along the line counts: in many columns most of each distance lies beside it, and
    all distances seem alike. `drawn` is the weight of a row as a share of the rest of its cluster,
    by which it has drawn its center.
    """
    kind = resolve(model.get_params(deep=False).get("divergence", "squared_euclidean"))
    if not kind.is_squared or not fitted.has_centers(model):
        return _ways_by_distances(distances, labels)
    centers, each = fitted.centers_of(model), np.arange(len(labels))
    centers = centers - centers.mean(axis=0)
    lines = np.square(cdist(centers, centers))[labels]  # their squared lengths
    is_holed = np.full(len(labels), False)
    if not sparse.issparse(points):
        is_holed = np.isnan(np.asarray(points)).any(axis=1)
    if is_holed.any():  # these go by the columns that they have
        there, own = (
            (~np.isnan(np.asarray(points)[is_holed])).astype(float),
            centers[labels[is_holed]],
        )
        lines[is_holed] = there @ np.square(centers).T - 2 * (there * own) @ centers.T
        lines[is_holed] += (there * np.square(own)).sum(axis=1)[:, None]
    away = np.square(distances[each, labels])[:, None]
    ways = (away + lines - np.square(distances)) / 2
    if drawn is not None:
        pull = drawn[:, None]
        lines = lines + 2 * pull * ways + pull**2 * away
        ways = (1 + pull) * (ways + pull * away)
    ways = np.divide(ways, lines, out=np.ones_like(ways), where=lines > 0)
    ways[each, labels] = -np.inf
    return np.asarray(ways.max(axis=1))


def _ways_by_distances(distances: FloatArray, labels: Labels) -> FloatArray:
    rest, each = distances.copy(), np.arange(len(labels))
    own, rest[each, labels] = distances[each, labels], np.inf
    both = own + rest.min(axis=1)
    ways: FloatArray = np.divide(own, both, out=np.full(len(own), 0.5), where=both > 0)
    return ways
