"""Online k-means: a center moves with every point."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from powermeans.engine.anneal import Result, Stage, anneal, run_stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepState
from powermeans.engine.seeds.orders import order_by_chance
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import Learner, RelocateEmpty, Sweep
from powermeans.mathematics.rules import Online
from powermeans.mathematics.schedules import Fixed
from powermeans.mathematics.sums import Sums
from powermeans.methods.learning_rates import LearningRate, rates_of
from powermeans.methods.streams.base import StreamEstimator, that_weigh
from powermeans.methods.streams.running_sums import found_anew, handed_over, leaders_of
from powermeans.points.checks.points import Admitted
from powermeans.points.protocol import Points
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray, IndexArray


@saved
@dataclass(frozen=True, slots=True)
class _Counted:
    """The centers, the weight n_j of the points that each has won, and the number of steps."""

    _state = "centers: finite[k,d] counts: weight[k] n_steps: count"

    centers: FloatArray
    counts: FloatArray
    n_steps: int = 0


class OnlineKMeans(StreamEstimator[_Counted]):
    """Online k-means followed by batch k-means, for one pass or a stream (Bottou & Bengio 1995).

    For each point x in turn, the nearest center moves towards it (equation 7, MacQueen 1967):

        n_j += 1,  w_j += (x - w_j) / n_j.

    Every center is the mean of the points that it has won; its first point replaces its seed. With
    a learning rate of your own this is the online gradient of the quantisation error (equation 4),
    w_j += rate * (x - w_j).

    The first online pass gains more than a batch pass, and later ones gain less. The authors
    therefore advise one online epoch followed by batch (Lloyd's) sweeps, and `fit` follows them.
    Use it for points that arrive one by one, and for comparisons. When they are at hand,
    `PowerKMeans` finds lower inertia. When they arrive by the thousand, `MiniBatchPowerKMeans`
    learns more from each point and is faster, because threads cannot share an online pass.

    `partial_fit` chooses the seeds among the first `init_size` points. If these differ from later
    ones, as in a sorted stream, the centers end at a higher inertia than those of `fit`. For rows
    that are read in parts, `fit` finds seeds in several passes by k-means||, takes one part after
    the other in an online epoch, and then sweeps all of them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    learning_rate : "auto", float or callable, default="auto"
        "auto" is 1 / n_j. Otherwise a number in [0, 1], which follows points that change with time,
        or a function of the step t = 1, 2, ..., which is counted over all epochs and chunks.
    n_epochs : int, default=1
        Number of online passes of `fit`.
    batch : bool, default=True
        Whether Lloyd's sweeps follow in `fit`. They move empty clusters to where the error is
        largest.
    shuffle : bool, default=True
        Whether each epoch takes the points in a new random order, which does not depend on that of
        the rows. Without it, sorted points give poor centers. Rows in parts are shuffled within
        each part; `partial_fit` never shuffles.
    init_size : int or None, default=None
        Number of points that `partial_fit` waits for before it chooses seeds among them, unless
        `init` is an array. None takes ten for each center.
    max_iter : int, default=300
        The largest number of Lloyd's sweeps.
    tol : float, default=1e-4
        Lloyd's sweeps end when the sum of the squared center shifts is at most `tol` times the mean
        variance of the features, or when no center moves.
    init, random_state, n_threads, verbose
        As in `PowerKMeans`. Online passes use one thread.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the widest dtype of the points so far.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point; after `partial_fit`, of each point of the last
        chunk. Absent when the rows were read in parts.
    inertia_ : float
        Weighted sum of the squared distances of the same points to the nearest center.
    counts_ : ndarray of shape (n_clusters,)
        The weights n_j of the points that each center has won, or has after Lloyd's sweeps.
    n_steps_ : int
        Number of points that have moved a center.
    n_iter_ : int
        Number of epochs and sweeps of `fit`. Like `history_`, it is set by `fit` and left unchanged
        by `partial_fit`.
    history_ : recarray
        One record for each epoch and sweep. In an epoch, each point counts in the inertia with its
        distance at the time when it came.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    MiniBatchPowerKMeans : For streams of many points at a time.
    GradientKMeans : The same gradient, over all points at once.

    Notes
    -----
    A weight of three moves the center as three copies would: for 1 / n_j in one step of
    3 / (n_j + 3), for a rate e in one step of 1 - (1 - e)^3. A weighted point counts as one step,
    which matters only if the rate depends on t.

    References
    ----------
    L. Bottou, Y. Bengio: Convergence Properties of the K-Means Algorithms. NIPS 1995.
    J. MacQueen: Some methods for classification and analysis of multivariate observations. 1967.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import OnlineKMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = OnlineKMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> stream = OnlineKMeans(n_clusters=2, init=X[[0, 3]])
    >>> for start in range(0, len(X), 2):
    ...     stream = stream.partial_fit(X[start : start + 2])
    >>> stream.counts_
    array([3., 3.])
    >>> stream.cluster_centers_
    array([[ 1.,  2.],
           [10.,  2.]])
    """

    _state = "counts_: weight[k] _stream: _Counted|Waiting"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StreamEstimator._parameter_constraints,
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, 1, closed="both"),
            callable,
        ],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch": ["boolean"],
        "shuffle": ["boolean"],
    }

    counts_: FloatArray
    n_steps_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        learning_rate: Literal["auto"] | LearningRate = "auto",
        n_epochs: int = 1,
        batch: bool = True,
        shuffle: bool = True,
        init_size: int | None = None,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.batch = batch
        self.shuffle = shuffle
        self.init_size = init_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    # All points at once.

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        settled = CentersSettled(self.tol * points.mean_variance())
        lloyd = Stage(Fixed(-math.inf), settled, self.max_iter)
        return [lloyd] if self.batch else []

    def _fit(self, points: Points, fit: Fit) -> Result:
        origin, tally = fit.seeds.draw(points, fit), _Tally(np.zeros(self.n_clusters))
        fit.learned = tally
        after_online = [replace(stage, update=_Recount(tally)) for stage in fit.stages]
        if points.parts is not None:
            centers = self._epochs_in_parts(points, origin, tally, fit)
            online = Result(centers, f"{self.n_epochs} epochs")
            return anneal(points, centers, after_online, fit) if after_online else online
        epochs = _Epochs(points, self.learning_rate, fit.rng if self.shuffle else None, tally)
        return anneal(points, origin, [Stage.of(epochs, self.n_epochs), *after_online], fit)

    def _epochs_in_parts(
        self, points: Any, centers: FloatArray, tally: _Tally, fit: Fit
    ) -> FloatArray:
        """Make online passes over the parts, one after the other, each shuffled by itself."""
        learned, history = _Counted(centers, tally.counts), fit.history
        for _ in range(self.n_epochs):
            started, before, inertia = time.perf_counter(), learned.centers, 0.0
            for array, weights in that_weigh(points.contents()):
                part = self._opened(Admitted(array, weights, math.nan))
                rng = fit.rng if self.shuffle else None
                learned, of_part = self._learned_from(learned, part, rng)
                inertia += of_part
            tally.counts, tally.n_steps = learned.counts, learned.n_steps
            state = SweepState(
                run=history.run,
                sweep=len(history.records) + 1,
                power=-math.inf,
                objective=inertia,
                inertia=inertia,
                center_shift=float(np.linalg.norm(learned.centers - before)),
                seconds=time.perf_counter() - started,
                centers=learned.centers,
            )
            history.append(state)
            fit.why_over(state)
        return learned.centers

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        tally = fit.learned
        learned = _Counted(fit.best_centers(), tally.counts, tally.n_steps)
        return self._taught(super()._attributes(points, fit, result), learned)

    def _report_end(self, result: Result) -> None:
        if self.verbose and self.batch:
            print(f"The end: {result.reason}.")

    # A stream.

    def _n_awaited(self) -> int:
        if not self._draws_centers():
            return 1
        return self._size_of_first(10 * self.n_clusters)

    def _from(self, centers: FloatArray) -> _Counted:
        return _Counted(centers, np.zeros(len(centers)))

    def _begin(self, points: Points, fit: Fit) -> _Counted:
        return self._learn(self._from(fit.seeds.draw(points, fit)), points)

    def _learn(self, learned: _Counted, points: Points) -> _Counted:
        return self._learned_from(learned, points, None)[0]

    def _learned_from(
        self, learned: _Counted, points: Points, rng: np.random.RandomState | None
    ) -> tuple[_Counted, float]:
        """Learn from points in their order or, with random numbers, in a random order.

        Return also the inertia of the points, each at the centers when it came.
        """
        centers, counts = self._separated(learned, points)
        tally, fit = _Tally(counts, learned.n_steps), Fit()
        epoch = _Epochs(points, self.learning_rate, rng, tally)
        end = run_stage(points, centers, Stage.of(epoch, 1), fit)
        return _Counted(end.centers, tally.counts, tally.n_steps), fit.history.records[0].inertia

    def _separated(self, learned: _Counted, points: Points) -> tuple[FloatArray, FloatArray]:
        """Move all but one of the centers that coincide to points of the chunk.

        Before the first point, all centers stay at their seeds, since each may still win points.
        """
        centers, counts = learned.centers, learned.counts
        if not counts.any():
            return centers, counts
        leaders = leaders_of(centers, counts)
        lost = np.flatnonzero(leaders != np.arange(len(centers)))
        if not len(lost):
            return centers, counts
        centers, found = found_anew(points, centers, lost)
        return centers, handed_over(counts, found, leaders)

    def _described(self, learned: _Counted) -> dict[str, Any]:
        return {"counts_": learned.counts.copy(), "n_steps_": learned.n_steps}


@dataclass(slots=True)
class _Tally:
    """The weight of the points that each center has won so far, and the number of steps."""

    counts: FloatArray
    n_steps: int = 0


@dataclass(frozen=True, slots=True)
class _Epochs(Learner):
    """Online passes that continue from the counts of earlier ones."""

    points: Points
    learning_rate: LearningRate | str
    rng: np.random.RandomState | None
    tally: _Tally

    def __iter__(self) -> Iterator[Online]:
        while True:
            yield Online(self.tally.counts, self._rates(), self._order())

    def _order(self) -> IndexArray | None:
        if self.rng is None:
            return None
        return order_by_chance(self.points.given.array, self.points.given.weights, self.rng)

    def _n_steps_each(self) -> int:
        weights = self.points.given.weights
        return self.points.n_points if weights is None else int(np.count_nonzero(weights))

    def _rates(self) -> FloatArray | None:
        if isinstance(self.learning_rate, str):
            return None
        return rates_of(self.learning_rate, self.tally.n_steps + 1, self._n_steps_each())

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Take the weights of the sums for counts, since they are what each center has won."""
        self.tally.counts = sums.weights
        self.tally.n_steps += self._n_steps_each()
        return sums


@dataclass(frozen=True, slots=True)
class _Recount(RelocateEmpty):
    """Relocate empty clusters, and count the points of each center anew."""

    tally: _Tally

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Relocate empty clusters, and take the weights of the sums for counts."""
        relocated = RelocateEmpty.after(self, sweep, sums)
        self.tally.counts = relocated.weights
        return relocated
