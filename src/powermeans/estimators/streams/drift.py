"""Measures of how far a stream moves the centers, and how well they fit new points."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drift:
    """How far a call of `partial_fit`, or a fit in batches, moved the centers.

    The distances of new points are measured before the centers learn from them, so they tell how
    well the centers fit unseen points. The stream has changed when `mean_sq_dist` rises above
    `running_mean_sq_dist`, or when centers still move far after many points.

    Attributes
    ----------
    center_shifts : ndarray of shape (n_clusters,)
        Distance of each center from its place before the call. For the first points of a stream,
        that place is its seed.
    rms_shift : float
        Root mean square of the shifts, each center weighted by the points that it represents.
    mean_sq_dist : float
        Weighted mean of the squared distances of the points to the nearest center. The centers
        are those before the batch, except for lost ones, which were moved to points of the batch;
        in `OnlineKMeans` they are those before the point itself.
    running_mean_sq_dist : float
        The same mean over all points of the stream, or over about the last `memory` points where
        the estimator has that parameter.
    total_weight : float
        Total weight of the points of the stream.

    See Also
    --------
    MiniBatchPowerKMeans : Reports it as `drift_`.
    OnlineKMeans : Reports it as `drift_`.

    Examples
    --------
    >>> from powermeans.relatives import OnlineKMeans
    >>> stream = OnlineKMeans.from_centers([[0.0], [9.0]]).partial_fit([[1.0], [3.0]])
    >>> stream.cluster_centers_.ravel()
    array([2., 9.])
    >>> stream.drift_
    <centers moved by 2, at most by 2 (center 0); mean squared distance 2.5, so far 2.5>
    >>> stream.partial_fit([[9.0]]).drift_
    <centers moved by 0, at most by 0 (center 0); mean squared distance 0, so far 1.66667>
    >>> stream.drift_.center_shifts
    array([0., 0.])
    """

    _state = """center_shifts: weight[k] rms_shift: weight mean_sq_dist: number
        running_mean_sq_dist: weight total_weight: weight"""

    center_shifts: FloatArray
    rms_shift: float
    mean_sq_dist: float
    running_mean_sq_dist: float
    total_weight: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Drift):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        farthest = int(np.argmax(self.center_shifts))
        return (
            f"<centers moved by {self.rms_shift:.6g}, at most by "
            f"{self.center_shifts[farthest]:.6g} (center {farthest}); mean squared distance "
            f"{self.mean_sq_dist:.6g}, so far {self.running_mean_sq_dist:.6g}>"
        )


@dataclass(frozen=True, slots=True)
class RunningDrift:
    """Sums over the points of a call so far, which determine its `Drift`."""

    origin: FloatArray  # the centers before the call
    sum_sq_dist: float = 0.0
    weight: float = 0.0
    running_mean_sq_dist: float = 0.0  # of the whole stream
    total_weight: float = 0.0  # of the whole stream

    @classmethod
    def after(cls, before: Drift | None, origin: FloatArray) -> RunningDrift:
        """Begin a call, continuing the means of the call before it."""
        if before is None:
            return cls(origin)
        return cls(origin, 0.0, 0.0, before.running_mean_sq_dist, before.total_weight)

    def with_points(
        self, sum_sq_dist: float, weight: float, memory: float = math.inf
    ) -> RunningDrift:
        """Add points, and let the running mean cover about the last ones of weight `memory`."""
        if weight == 0:
            return self
        share = weight / (min(self.total_weight, memory) + weight)
        change = sum_sq_dist / weight - self.running_mean_sq_dist
        return RunningDrift(
            self.origin,
            self.sum_sq_dist + sum_sq_dist,
            self.weight + weight,
            self.running_mean_sq_dist + share * change,
            self.total_weight + weight,
        )

    def drift(self, centers: FloatArray, weights: FloatArray) -> Drift:
        """Return the drift from the origin to these centers, weighted by their points."""
        shifts = np.linalg.norm(centers - self.origin, axis=1)
        shares = weights / weights.sum() if weights.any() else np.full(len(shifts), 1 / len(shifts))
        return Drift(
            shifts,
            float(np.sqrt(shares @ shifts**2)),
            self.sum_sq_dist / self.weight if self.weight else math.nan,
            self.running_mean_sq_dist,
            self.total_weight,
        )
