"""Power k-means on a stream of batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result, Stage, run_stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepState
from powermeans.engine.seeds.samples import weighted_sample
from powermeans.engine.stopping import StopRule, are_hard
from powermeans.mathematics.sums import Sums
from powermeans.methods.power_kmeans import PowerKMeans, searched
from powermeans.methods.streams.base import StreamEstimator
from powermeans.methods.streams.running_sums import RunningSums
from powermeans.points.checks.points import Admitted
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import open_batch
from powermeans.points.protocol import Points
from powermeans.system.saved_classes import saved
from powermeans.types import AnyMatrix, FloatArray, IndexArray

# The first sample of a fit has at least one point in this many.
_POINTS_PER_POINT_OF_FIRST = 50
# A batch much smaller than the points so far would hardly move the centers, so batches grow with
# them as long as they fit into the cache.
_MOST_ELEMENTS = 2**18


@saved
@dataclass(frozen=True, slots=True)
class _Remembered:
    """The centers, their sums, the weight of all points, and the power of the next batch."""

    _state = "centers: finite[k,d] sums: Sums weight: weight power: number n_steps: count"

    centers: FloatArray
    sums: Sums
    weight: float
    power: float
    n_steps: int = 0


class MiniBatchPowerKMeans(StreamEstimator[_Remembered]):
    """Power k-means in batches, for streams and for data too large for `PowerKMeans`.

    `PowerKMeans` finds the first centers in a sample, by its search. The other points come in
    batches. Each batch is swept once, with the weights of power k-means, and its sums are added to
    those of earlier batches; the centers are the quotients of these sums. From batch to batch the
    power falls towards minus infinity, where the weights are those of Lloyd's algorithm. Memory
    does not grow with the stream.

    Sums of soft and of hard batches can be added because their weights share a unit, in which a
    point at a center weighs one at every power: they are k^(1/s) times the gradient of the power
    mean M_s, a factor that cancels within one sweep. Later points count more, in proportion to the
    square of the number of points before them, so that early centers do not hold back later ones.

    Use it when `PowerKMeans` takes too long or the points do not fit into memory: after one pass
    the centers are nearly as good. Rare clusters that the first sample misses are not found, so the
    sample must cover the space, and so should each chunk. `fit` draws sample and batches from all
    points of an array or a file; `partial_fit` takes points in the order in which they arrive. A
    stream that is sorted, or that drifts through space, ends at an inertia far above that of a fit.
    Shuffle these points first, or fit them at once.

    For rows that are read in parts, such as a file, `fit` draws the first sample in one pass
    (heavier rows are more likely) and then treats all rows as one batch in each pass, with hard
    weights. The order of the rows and the size of the parts do not matter. The rows are read once
    to check them, once for the sample, `max_iter` times to learn, and once for `inertia_`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    init : {"k-means++", "random"}, array-like or callable, default="k-means++"
        Where `PowerKMeans` starts in the first sample. An array has the shape (n_clusters,
        n_features).
    batch_size : int, default=1024
        Number of points in a batch of `fit`; it grows after ten times as many points, up to 2^18
        numbers. In `partial_fit` each chunk is a batch.
    max_iter : int, default=1
        Number of passes of `fit` over the points, each in a new random order.
    power : float or "auto", default="auto"
        Power of the first batch, negative. "auto" is the power at which `PowerKMeans` starts. At
        ``-math.inf`` all batches are hard.
    growth : float, default=1.2
        Factor from the power of one batch to that of the next, until the weights are practically
        hard; in `fit`, until half of the points have been seen.
    effort : {"fast", "balanced", "thorough"}, default="fast"
        How much `PowerKMeans` searches in the first sample.
    init_size : int or None, default=None
        Number of points in the first sample: `fit` draws them at random, `partial_fit` waits for
        them. None takes the largest of three batches, 30 points for each center, and, in `fit`, a
        fiftieth of all points. More points help if there are many or rare clusters.
    memory : float or None, default=None
        Approximate number of points (by weight) to remember; older ones fade. None remembers all,
        which is best when the points do not change with time.
    reassignment_ratio : float, default=0
        A center whose weight is at most this share of the heaviest center's moves to a point of the
        batch. Use a value such as 0.01, together with `memory`, for streams in which clusters come
        and go; a rare cluster may then lose its center.
    random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the widest dtype of the points so far.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point; after `partial_fit`, of each point of the last
        chunk. Absent when the rows were read in parts.
    inertia_ : float
        Weighted sum of the squared distances of the same points to the nearest center.
    power_ : float
        Power of the next batch.
    n_steps_ : int
        Number of batches so far, including the first sample.
    n_iter_ : int
        Number of passes of `fit`; an interrupt may have cut the last one short. Like `history_`, it
        is set by `fit` and left unchanged by `partial_fit`.
    history_ : recarray
        One record for each batch of `fit`: its power, objective and inertia.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : Sweeps all points each time and finds lower inertia.
    OnlineKMeans : Moves a center after each point.

    Notes
    -----
    In a chunk, a weight of three equals three copies. The batches of `fit` are made of rows, so
    when there are more rows than the first sample contains, weights and copies lead to different
    centers.

    Ctrl-C during `fit` keeps the centers learned so far; `partial_fit` can continue from them.

    References
    ----------
    Xu, J. and Lange, K. "Power k-Means Clustering". ICML 2019.
    Cappé, O. and Moulines, E. "On-line expectation-maximization algorithm for latent data models".
    Journal of the Royal Statistical Society B, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import MiniBatchPowerKMeans
    >>> rng = np.random.default_rng(0)
    >>> stream = MiniBatchPowerKMeans(n_clusters=2, init_size=50, random_state=0)
    >>> for _ in range(100):
    ...     chunk = rng.choice([-5.0, 5.0], size=(200, 1)) + rng.normal(size=(200, 1))
    ...     stream = stream.partial_fit(chunk)
    >>> np.sort(stream.cluster_centers_.ravel()).round(1)
    array([-5.,  5.])
    >>> stream.n_steps_
    100
    """

    _state = "power_: number _stream: _Remembered|Waiting"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StreamEstimator._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        **{name: PowerKMeans._parameter_constraints[name] for name in ("power", "effort")},
        "growth": [Interval(Real, 1, None, closed="neither")],
        "memory": [Interval(Real, 0, None, closed="neither"), None],
        "reassignment_ratio": [Interval(Real, 0, 1, closed="both")],
    }

    power_: float
    n_steps_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        batch_size: int = 1024,
        max_iter: int = 1,
        power: float | Literal["auto"] = "auto",
        growth: float = 1.2,
        effort: Literal["fast", "balanced", "thorough"] = "fast",
        init_size: int | None = None,
        memory: float | None = None,
        reassignment_ratio: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.power = power
        self.growth = growth
        self.effort = effort
        self.init_size = init_size
        self.memory = memory
        self.reassignment_ratio = reassignment_ratio
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    # All points, in batches.

    def _needs(self) -> Needs:
        return super()._needs().measured(opener=_open_batch)

    def _fit(self, points: Points, fit: Fit) -> Result:
        rng, fit.learned = fit.rng, {}
        # With a generator of their own, later draws do not depend on the number of rows.
        orders = np.random.RandomState(rng.randint(2**31))
        n_all, parts = self._all_parts(points, orders)
        _, first = next(parts)
        learned, state = self._begin_at(first, first, rng)
        self._take_down(learned, 1, state, fit)
        n_seen, n_begun, reason = first.n_points, self.max_iter, None
        why_end = self._rule_of_end(points)
        for n_passes, batch in parts:
            # From the middle of a fit on, all batches are hard, even if there are only a few.
            if 2 * n_seen >= n_all or batch.parts is not None:
                learned = replace(learned, power=-math.inf)
            learned, state = self._swept(learned, batch)
            self._take_down(learned, n_passes, state, fit)
            n_seen += batch.n_points
            if (reason := why_end(state, batch.total_weight)) is not None:
                n_begun = n_passes
                break
        learned = replace(learned, power=-math.inf)
        fit.learned[learned.n_steps] = learned, n_begun
        return Result(learned.centers, reason or "the points came to their end")

    def _rule_of_end(self, points: Points) -> Callable[[SweepState, float], str | None]:
        """Return what says after each batch why the fit ends before its last pass, if it does.

        It gets the sweep of the batch, and the weight of its points.
        """
        return lambda state, weight: None

    def _all_parts(
        self, points: Points, orders: np.random.RandomState
    ) -> tuple[int, Iterator[tuple[int, Points]]]:
        """Return the number of points of all passes, and batches with the number of the pass."""
        if points.parts is not None:
            return points.n_points * self.max_iter, self._parts_of_parts(points, orders)
        indices = self._that_come(points)
        return len(indices) * self.max_iter, self._parts(points, indices, orders)

    def _that_come(self, points: Points) -> IndexArray:
        """Return the points with weight, and enough others for one in each cluster."""
        weights = points.given.weights
        if weights is None:
            return np.arange(points.n_points)
        n_others = max(0, self.n_clusters - np.count_nonzero(weights))
        others = np.flatnonzero(weights == 0)[:n_others]
        return np.concatenate([np.flatnonzero(weights), others])

    def _parts(
        self, points: Points, indices: IndexArray, orders: np.random.RandomState
    ) -> Iterator[tuple[int, Points]]:
        """Yield the first sample and batches of the other points, with the number of the pass."""
        most, weights = self._largest_batch(points.given.array), points.given.weights
        n_first, n_seen = self._n_awaited(len(indices) // _POINTS_PER_POINT_OF_FIRST), 0
        for n_passes in range(1, self.max_iter + 1):
            order = orders.permutation(indices)
            end = 0
            while end < len(order):
                wanted = min(max(self.batch_size, n_seen // 10), most)
                start, end = end, end + (wanted if n_seen else n_first)
                part = order[start:end]
                if not n_seen or weights is None or weights[part].any():
                    yield n_passes, self._part(points, part)
                n_seen += len(part)

    def _parts_of_parts(
        self, points: Points, orders: np.random.RandomState
    ) -> Iterator[tuple[int, Points]]:
        """Yield a sample of the parts, then all of them as one batch in each pass.

        If the parts were batches, sorted rows would drag the centers along.
        """
        share = points.n_points // _POINTS_PER_POINT_OF_FIRST
        fitting = _MOST_ELEMENTS // points.n_features
        n_first = self._n_awaited(min(share, fitting))
        sample = weighted_sample(points, n_first, orders, n_least=self.n_clusters)
        yield 1, self._opened(Admitted(sample.points, sample.weights, math.nan))
        for n_passes in range(2 if sample.is_all else 1, self.max_iter + 1):
            yield n_passes, points

    def _take_down(self, learned: _Remembered, n_passes: int, state: SweepState, fit: Fit) -> None:
        """Record a batch, so that an interrupt falls before or after it, never within."""
        fit.learned[learned.n_steps] = learned, n_passes
        fit.history.append(state._replace(sweep=learned.n_steps))
        fit.learned.pop(learned.n_steps - 1, None)
        fit.why_over(state._replace(sweep=learned.n_steps))

    def _part(self, points: Points, indices: IndexArray) -> Points:
        if len(indices) == points.n_points:
            return points
        given = points.given
        whole = Admitted(given.array, given.weights, given.largest)
        return self._opened(whole.at(indices), beside=points)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        learned, n_passes = fit.learned[len(fit.history.records)]
        result = self._taught(super()._attributes(points, fit, result), learned)
        return result.with_attributes(n_iter_=n_passes)

    # A stream.

    def _chunks_of(self, part: Admitted) -> Iterator[Admitted]:
        n_points, n_each = part.points.shape[0], self._largest_batch(part.points)
        for start in range(0, n_points, n_each):
            chunk = part.at(slice(start, start + n_each))
            if chunk.weights is None or chunk.weights.any():
                yield chunk

    def _largest_batch(self, points: AnyMatrix) -> int:
        return max(self.batch_size, _MOST_ELEMENTS // _elements_per_point(points))

    def _n_awaited(self, at_least: int = 0) -> int:
        return self._size_of_first(max(3 * self.batch_size, 30 * self.n_clusters, at_least))

    def _from(self, centers: FloatArray) -> _Remembered:
        nothing = Sums(np.zeros_like(centers), np.zeros(len(centers)), 0.0, 0.0)
        return _Remembered(centers, nothing, 0.0, -math.inf)

    def _begin(self, points: Points, fit: Fit) -> _Remembered:
        n_points, n_awaited = points.n_points, self._n_awaited()
        if n_points <= n_awaited:
            return self._begin_at(points, points, fit.rng)[0]
        sample = self._part(points, fit.rng.permutation(n_points)[:n_awaited])
        return self._begin_at(sample, points, fit.rng)[0]

    def _begin_at(
        self, sample: Points, points: Points, rng: np.random.RandomState
    ) -> tuple[_Remembered, SweepState]:
        """Fit the sample, and sum all of the points at its centers."""
        model = searched(
            sample.given.array,
            sample.given.weights,
            self.n_clusters,
            effort=self.effort,
            rng=rng,
            n_threads=self.n_threads,
            init=self.init,
            power=self.power,
            n_init=self.n_init,
        )
        at_sample = self._from(model.cluster_centers_.astype(np.float64))
        learned, state = self._swept(at_sample, points)
        return replace(learned, power=float(model.history_.power[0])), state

    def _learn(self, learned: _Remembered, points: Points) -> _Remembered:
        return self._swept(learned, points)[0]

    def _swept(self, learned: _Remembered, points: Points) -> tuple[_Remembered, SweepState]:
        """Sweep once, and move the centers to the quotients of the sums of all batches."""
        running = RunningSums(
            learned.sums,
            learned.weight,
            memory=math.inf if self.memory is None else self.memory,
            least_share=self.reassignment_ratio,
        )
        stage = Stage([learned.power], StopRule(), 1, running)
        of_batch = Fit()
        end = run_stage(points, learned.centers, stage, of_batch)
        state = of_batch.history.last
        assert state is not None, "a stage has a sweep"
        power, n_steps = self._harder(learned.power, running.sums), learned.n_steps + 1
        return _Remembered(end.centers, running.sums, running.weight, power, n_steps), state

    def _harder(self, power: float, batch: Sums) -> float:
        """Return the next power: minus infinity once the weights are practically hard."""
        if are_hard(power, self.n_clusters, batch.objective, batch.inertia):
            return -math.inf
        return power * self.growth

    def _described(self, learned: _Remembered) -> dict[str, Any]:
        return {"power_": learned.power, "n_steps_": learned.n_steps}


def _open_batch(points: Any, weights: FloatArray | None, measure: Measure) -> Points:
    return open_batch(points, weights, n_threads=measure.n_threads)


def _elements_per_point(points: AnyMatrix) -> int:
    """Return the mean number of stored values of a point."""
    n_stored = points.nnz if sparse.issparse(points) else points.size
    return max(1, int(n_stored) // int(points.shape[0]))
