"""Lloyd's rule in batches, with scikit-learn's signature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from powermeans.engine.anneal import Result
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepState
from powermeans.methods.streams.mini_batch import MiniBatchPowerKMeans
from powermeans.points.protocol import Points


class MiniBatchKMeans(MiniBatchPowerKMeans):
    """K-means in batches, with scikit-learn's signature: change the import and nothing else.

    It is `MiniBatchPowerKMeans` without annealing. A search among a first sample chooses the
    centers, each batch is swept once by Lloyd's rule, and batches grow with the points so far. Use
    `MiniBatchPowerKMeans` for its further parameters, and `PowerKMeans` where the points fit into
    memory and time allows: it finds lower inertia.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    max_iter : int, default=100
        Largest number of passes of `fit` over the points.
    batch_size : int, default=1024
        Number of points in the first batches of `fit`; later ones are larger.
    verbose : int, default=0
        With 1 the fit prints at most one line a second, with 2 a line for each batch.
    compute_labels : bool, default=True
        Whether `fit` sets `labels_`.
    tol : float, default=0.0
        `fit` ends when a batch moves the centers by no more than this: the sum of the squared
        shifts, in units of the mean variance of the features. With 0 it does not end for this
        reason.
    max_no_improvement : int or None, default=10
        `fit` ends after this number of batches in a row that do not lower the smoothed inertia.
        None never ends for this reason.
    n_init : int or "auto", default="auto"
        Number of searches in the first sample; "auto" is one.
    reassignment_ratio : float, default=0.01
        A center moves to another point when its weight is at most this share of the heaviest
        center's.
    init, random_state, init_size
        As in `MiniBatchPowerKMeans`.

    Attributes
    ----------
    n_iter_ : int
        Number of passes begun.
    n_steps_ : int
        Number of batches so far, including the first sample.
    cluster_centers_, labels_, inertia_, n_features_in_, feature_names_in_
        As in `KMeans`.

    See Also
    --------
    MiniBatchPowerKMeans : Anneals from batch to batch, and can forget.
    KMeans : All points in each sweep.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from powermeans import MiniBatchKMeans
    >>> X, _ = make_blobs(n_samples=20_000, centers=5, random_state=0)
    >>> model = MiniBatchKMeans(n_clusters=5, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (5, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: MiniBatchPowerKMeans._parameter_constraints[name]
            for name in ("n_clusters", "init", "max_iter", "batch_size", "verbose", "random_state")
        },
        "compute_labels": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_no_improvement": [Interval(Integral, 0, None, closed="left"), None],
        "init_size": MiniBatchPowerKMeans._parameter_constraints["init_size"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "reassignment_ratio": MiniBatchPowerKMeans._parameter_constraints["reassignment_ratio"],
    }

    # What scikit-learn's signature has no parameters for.
    power = -math.inf
    growth = 1.2
    effort: Literal["fast"] = "fast"
    memory = None
    n_threads = None

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: int | Literal["auto"] = "auto",
        reassignment_ratio: float = 0.01,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio

    def _rule_of_end(self, points: Points) -> Callable[[SweepState, float], str | None]:
        """Return what ends the fit once batches no longer lower the inertia, smoothed."""
        least_shift = self.tol * points.mean_variance() if self.tol > 0 else -math.inf
        most = math.inf if self.max_no_improvement is None else self.max_no_improvement
        total_weight = points.total_weight
        smoothed, lowest, n_without_gain = math.nan, math.inf, 0

        def why_end(state: SweepState, weight: float) -> str | None:
            """Take in a batch and return why the fit ends, in scikit-learn's words."""
            nonlocal smoothed, lowest, n_without_gain
            share = min(1.0, 2 * weight / total_weight)  # over about one pass
            mean = state.inertia / weight
            before = mean if math.isnan(smoothed) else smoothed
            smoothed = before + share * (mean - before)
            n_without_gain = 0 if smoothed < lowest else n_without_gain + 1
            lowest = min(lowest, smoothed)
            if not state.n_relocated and state.center_shift**2 <= least_shift:
                return "Converged (small centers change)"
            is_stuck = n_without_gain >= most
            return "Converged (lack of improvement in inertia)" if is_stuck else None

        return why_end

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        return result if self.compute_labels else replace(result, labels=None)
