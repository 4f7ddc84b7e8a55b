"""k-means by steps along the gradient of the quantisation error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from powermeans.engine.anneal import Stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepRecord
from powermeans.engine.spread import rounding_inertia, tolerance_by_weight
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import Learner, Sweep
from powermeans.mathematics.rules import Hard, Reached, Rule
from powermeans.mathematics.sums import Sums
from powermeans.methods.base import CenterEstimator
from powermeans.methods.learning_rates import LearningRate, rates_of
from powermeans.points.protocol import Points
from powermeans.types import FloatArray


def stepped(centers: FloatArray, sums: Sums, rate: float | FloatArray) -> FloatArray:
    """Return w_j + rate * sum of (x - w_j) over the points x of each center w_j.

    At one over the weight of a center, the center moves to its mean: Lloyd's step.
    """
    rates = np.reshape(rate, (-1, 1))
    moved: FloatArray = centers + rates * (sums.points - sums.weights[:, None] * centers)
    return moved


@dataclass(slots=True)
class GradientSteps(Learner):
    """Hard sweeps, each with a step at a given rate.

    A step at rate e moves a center of weight n by e n times the distance to its mean. "auto" is one
    over the weight of the heaviest center, the largest rate at which no center passes its mean.
    """

    learning_rate: LearningRate | str
    settled: CentersSettled
    dtype: np.dtype[Any]  # of the centers that the fit ends with
    _n_steps: int = 0
    _highest_inertia: float = math.inf
    _rate: float = 0.0  # of the longest step
    _heaviest: float = 1.0

    def __iter__(self) -> Iterator[float | Rule]:
        self._n_steps, self._rate, self._heaviest = 0, 0.0, 1.0
        return itertools.repeat(-math.inf if self._is_automatic() else Hard(descends=False))

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return why the centers count as settled."""
        return self.settled.reason(records)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return sums with centers that made a step, or raise if the steps diverge."""
        if self._n_steps == 0:
            # A step beyond its points may raise the inertia for a while, but not by this factor.
            self._highest_inertia = 1e3 * max(sums.inertia, rounding_inertia(sweep.rows))
        self._n_steps += 1
        heaviest = float(sums.weights.max())
        rate = self._next_rate(heaviest)
        if rate >= self._rate * self._heaviest / heaviest:
            self._rate, self._heaviest = rate, heaviest
        with np.errstate(over="ignore", invalid="ignore"):
            moved = stepped(sweep.centers, sums, rate)
            has_room = self._has_room(moved, sweep)
        if not has_room or sums.inertia > self._highest_inertia:
            raise ValueError(self._divergence())
        return Reached.of(sums, moved)

    def _has_room(self, moved: FloatArray, sweep: Sweep) -> bool:
        """Return whether float64 holds the squared step, and the dtype of the points the centers.

        A center that leaps away from all points would not raise the inertia.
        """
        sq_step = np.square(moved - sweep.centers).sum()
        return bool(np.isfinite(sq_step) and np.abs(moved).max() <= np.finfo(self.dtype).max)

    def _is_automatic(self) -> bool:
        return isinstance(self.learning_rate, str) and self.learning_rate == "auto"

    def _next_rate(self, heaviest: float) -> float:
        if self._is_automatic():
            return 1 / heaviest
        return float(rates_of(self.learning_rate, self._n_steps, 1, highest=math.inf)[0])

    def _divergence(self) -> str:
        if self._rate * self._heaviest <= 2:
            return (
                f"a step leads to a center that {self.dtype} cannot store: scale X, or pass a "
                f"learning_rate below {1 / self._heaviest:.2g}, where no center moves past its mean"
            )
        return (
            f"the centers move ever farther away: learning_rate={self._rate:.3g} times "
            f"{self._heaviest:.6g}, the weight of the heaviest cluster, is above 2, where a step "
            f'leads away from the mean. Pass at most {2 / self._heaviest:.2g}, or "auto"'
        )


class GradientKMeans(CenterEstimator):
    """k-means by batch gradient descent (Bottou & Bengio 1995, equation 3).

    Each sweep moves every center along the gradient of the quantisation error,

        w_j += rate * sum over the points x nearest to w_j of (x - w_j),

    that is, by ``rate * n_j`` times the distance to the mean of its n_j points. At ``rate =
    1 / n_j`` this is Lloyd's algorithm, which the paper shows to be Newton's method for the same
    error. With one rate for all centers, large clusters converge fast and small ones slowly, and
    above ``rate * n_j = 2`` a center moves away from its mean with every step.

    Use it for comparisons, or when steps must be small. `KMeans` reaches the same centers in fewer
    sweeps. There is no search, which would hide what the steps do; `PowerKMeans` has one, and
    reaches better centers.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    learning_rate : "auto", float or callable, default="auto"
        "auto" is one over the weight of the heaviest cluster: no center moves past its mean.
        Otherwise a number or a function of the sweep t = 1, 2, ..., such as ``lambda t: 0.03 / t``,
        which the authors found best for their data. Diverging steps raise a ValueError.
    max_iter : int, default=300
        Largest number of sweeps.
    tol : float, default=1e-4
        The fit ends when the sum of the squared center shifts is at most `tol` times the mean
        variance of the features. Small rates make small shifts: lower `tol` with them.
    init, random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points. A center without points does not move.
    labels_, inertia_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    OnlineKMeans : Moves a center after each point.

    References
    ----------
    L. Bottou, Y. Bengio: Convergence Properties of the K-Means Algorithms. NIPS 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import GradientKMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = GradientKMeans(n_clusters=2, init=[[1.0], [9.0]], learning_rate=0.25).fit(X)
    >>> model.history_.inertia[:3]
    array([2.    , 1.25  , 1.0625])
    >>> model.set_params(learning_rate="auto").fit(X).cluster_centers_.ravel()
    array([0.5, 9.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
            callable,
        ],
    }

    _advice = (
        "raise max_iter or tol, or choose another learning_rate; above 2 over the weight of a "
        "cluster steps do not converge"
    )
    _why_whole = "A step depends on the weight of a center, which has another in each column then"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        learning_rate: Literal["auto"] | LearningRate = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        settled = CentersSettled(tolerance_by_weight(points, self.tol))
        steps = GradientSteps(self.learning_rate, settled, points.given.dtype)
        return [Stage.of(steps, self.max_iter)]
