"""How far a stream has moved the centers, and how well they fitted what came."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drift:
    """What a call of `partial_fit`, or a fit in batches, has done to the centers.

    Points are looked at before they teach, so that their distances say how well the centers
    fitted what they had not seen: where `mean_sq_dist` rises above `running_mean_sq_dist`, or
    centers move far although many points have come, the stream is no longer what it was.

    Attributes
    ----------
    center_shifts : ndarray of shape (n_clusters,)
        How far each center is from where it was before the points of the call came; the first
        points of a stream find the centers at their seeds.
    rms_shift : float
        Root of the mean of their squares, in which a center counts by the weight of the points
        that it stands for.
    mean_sq_dist : float
        Weighted mean of the squared distances of the points to the nearest center, each to the
        centers as they were when it came: before its batch, but for those that were lost and sent
        to points of it, or in `OnlineKMeans` before the point itself.
    running_mean_sq_dist : float
        The same mean over all points of the stream or, where an estimator has a `memory`, over
        about the last so many.
    total_weight : float
        How much all points of the stream weigh.

    See Also
    --------
    MiniBatchPowerKMeans : Has one as `drift_`, as has `OnlineKMeans`.

    Examples
    --------
    >>> from powermeans import OnlineKMeans
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
class Course:
    """What is known of the points of a call so far, from which its `Drift` follows.

    Attributes
    ----------
    origin : (n_centers, n_features)
        The centers before the first of them.
    sum_sq_dist, weight : float
        Of the points of this call.
    running_mean_sq_dist, total_weight : float
        Of the points of the whole stream.
    """

    origin: FloatArray
    sum_sq_dist: float = 0.0
    weight: float = 0.0
    running_mean_sq_dist: float = 0.0
    total_weight: float = 0.0

    @classmethod
    def after(cls, before: Drift | None, origin: FloatArray) -> Course:
        """Where a call begins, after another one if there was one."""
        if before is None:
            return cls(origin)
        return cls(origin, 0.0, 0.0, before.running_mean_sq_dist, before.total_weight)

    def with_points(self, sum_sq_dist: float, weight: float, memory: float = math.inf) -> Course:
        """Further on, once some points have come.

        Parameters
        ----------
        sum_sq_dist : float
            Weighted sum of their squared distances to the centers they met.
        weight : float
            Of the points together.
        memory : float
            The running mean is over about the last points of this weight.
        """
        if weight == 0:
            return self
        share = weight / (min(self.total_weight, memory) + weight)
        change = sum_sq_dist / weight - self.running_mean_sq_dist
        return Course(
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
