"""Lloyd's k-means with scikit-learn's signature."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result, Stage
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepState
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import RelocateEmpty
from powermeans.errors import warn_caller
from powermeans.mathematics.schedules import Fixed
from powermeans.methods.base import CenterEstimator
from powermeans.methods.documented import one_of
from powermeans.points.needs import Needs
from powermeans.points.protocol import Points

_N_RUNS_FROM_RANDOM_STARTS = 10


class KMeans(CenterEstimator):
    """k-means by Lloyd's algorithm, a drop-in replacement for `sklearn.cluster.KMeans`.

    It does what scikit-learn's class does; `PowerKMeans` adds a search.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of centers. "auto" is the number from 2 to 20 that `choose_k` recommends.
    init : {"k-means++", "random"}, array-like or callable, default="k-means++"
        Initial centers. "k-means++" is the greedy variant, which keeps the best of
        2 + floor(ln k) candidates for each center; "random" draws points by their weights. An
        array has the shape (n_clusters, n_features). A callable is called as
        ``init(X, n_clusters, random_state=random_state)`` and returns such an array.
    n_init : int or "auto", default="auto"
        Number of runs; the one with the lowest inertia is kept. "auto" is 10 for
        ``init="random"`` and for a callable, else 1.
    max_iter : int, default=300
        Largest number of sweeps of a run.
    tol : float, default=1e-4
        A run ends when the sum of the squared center shifts is at most `tol` times the mean
        variance of the features, or when no center moves.
    verbose : int, default=0
        Whether to print a line for each sweep, as scikit-learn does.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial centers. An int makes the result reproducible.
    copy_x : bool, default=True
        Accepted for compatibility with scikit-learn; X is never changed.
    algorithm : {"lloyd", "elkan", "auto"}, default="lloyd"
        Accepted for compatibility with scikit-learn; all values run the same code.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry. With "observed", distances and means use only
        the observed entries, as in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point, the same as `predict` gives for these points.
    inertia_ : float
        Weighted sum of squared distances to the nearest center.
    n_iter_ : int
        Number of sweeps of the best run.
    n_relocated_ : int
        Number of times an empty cluster moved to where the error is largest.
    history_ : recarray
        One record for each of these sweeps: `power` (always -inf), `objective` and `inertia` at the
        centers before the sweep, `center_shift`, `seconds` and `skipped`.
    n_clusters_ : int
        The number of centers that was chosen; set only with ``n_clusters="auto"``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X have names.

    See Also
    --------
    PowerKMeans : Finds a lower inertia in a few more sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.inertia_
    16.0
    """

    _state = "n_clusters_: count"

    n_clusters_: int

    _lowers_inertia = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), one_of({"auto"})],
        "n_init": [one_of({"auto"}), Interval(Integral, 1, None, closed="left")],
        "copy_x": ["boolean"],
        "algorithm": [one_of({"lloyd", "elkan", "auto"})],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        copy_x: bool = True,
        algorithm: Literal["lloyd", "elkan", "auto"] = "lloyd",
        missing: Literal["error", "observed"] = "error",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.missing = missing

    def _needs(self) -> Needs:
        return super()._needs().measured(takes_narrow=True).refusing(parts=None, tensors=None)

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        if self.algorithm == "elkan" and self._n_centers == 1:
            warn_caller(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
            )
        settled = CentersSettled(self.tol * points.mean_variance())
        return [Stage(Fixed(-math.inf), settled, self.max_iter, RelocateEmpty())]

    def _n_runs(self) -> int:
        if self.n_init != "auto":
            return super()._n_runs()
        varies = callable(self.init) or (isinstance(self.init, str) and self.init == "random")
        return _N_RUNS_FROM_RANDOM_STARTS if varies else 1

    def _report_end(self, result: Result) -> None:
        if self.verbose and result.has_converged and not result.was_stopped:
            n_iter = result.attributes["n_iter_"]
            print(f"Converged at iteration {n_iter - 1}: {result.reason}.")

    def _lines(self) -> _LinesOfSklearn:
        return _LinesOfSklearn()


class _LinesOfSklearn:
    """Print what scikit-learn's KMeans prints."""

    def __call__(self, state: SweepState) -> None:
        print(f"Iteration {state.sweep - 1}, inertia {state.inertia}.")

    def phase(self, name: str, done: int, total: int | None) -> None:
        if name.endswith("improving"):  # in which run it may be says what precedes
            print("Initialization complete")
