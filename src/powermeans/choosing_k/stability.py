"""How often each cluster comes back when the points are drawn anew."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.engine.fit import random_numbers
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import open_points
from powermeans.system.containers import refuse_tensor_elsewhere, to_array
from powermeans.types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How much of each cluster returns in bootstrap samples.

    Attributes
    ----------
    jaccard : ndarray of shape (n_clusters,)
        For each cluster the mean over the samples of the Jaccard similarity to the most similar
        cluster that is found there: of the points that are in one of the two, the share in both.
        Above 0.85 a cluster is stable, below 0.6 it should not be trusted (Hennig 2007).
    n_samples : int
        The number of samples.

    See Also
    --------
    stability : Returns one.

    Examples
    --------
    >>> from powermeans import KMeans, stability
    >>> X = [[x] for x in (*range(20), *range(80, 100))]
    >>> print(stability(KMeans(2, random_state=0).fit(X), X, random_state=0))
    cluster 0 comes back in 100 % of the samples
    cluster 1 comes back in 100 % of the samples
    """

    jaccard: FloatArray
    n_samples: int

    def __repr__(self) -> str:
        return f"Stability(jaccard={self.jaccard.round(2).tolist()}, n_samples={self.n_samples})"

    def __str__(self) -> str:
        return "\n".join(
            f"cluster {j} comes back in {100 * share:.0f} % of the samples"
            for j, share in enumerate(self.jaccard)
        )


def stability(model: Any, X: Any, *, n_samples: int = 50, random_state: Any = None) -> Stability:
    """Return how much of each cluster of a fitted model returns when the points are resampled.

    Points are drawn with replacement, and each sample, without its copies, is clustered again
    (Hennig 2007, `clusterboot` of the R package fpc). An estimator with centers starts from these
    and from seeds of its own, and keeps the result with less inertia; any other is fitted as it is.
    The numbers therefore match `clusterboot` with five starts for each sample; with one, its
    default, it also counts bad starts against the clusters.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted, with `labels_` or `predict`. It is not changed. In a pipeline, only the last step is
        fitted again.
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or path
        The points, or what a pipeline takes.
    n_samples : int, default=50
        The number of samples.
    random_state : int, RandomState instance or None, default=None
        An int makes the result the same each time.

    Returns
    -------
    Stability

    See Also
    --------
    choose_k : Tests whether clusters are apart.

    References
    ----------
    Hennig, C. "Cluster-wise assessment of cluster stability". Computational Statistics & Data
    Analysis 52, 2007.

    Examples
    --------
    >>> from powermeans import KMeans, stability
    >>> X = [[x] for x in (*range(20), *range(80, 100))]
    >>> stability(KMeans(2, random_state=0).fit(X), X, random_state=0).jaccard.tolist()
    [1.0, 1.0]
    """
    validate_parameter_constraints(
        {
            "n_samples": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state"],
        },
        {"n_samples": n_samples, "random_state": random_state},
        caller_name="stability",
    )
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            X = step.transform(X)
        model = model.steps[-1][1]
    refuse_tensor_elsewhere(X)
    points = open_points(to_array(X), None, _needs(model)).given.array
    labels = np.asarray(to_array(model.predict(X) if hasattr(model, "predict") else model.labels_))
    labels = labels[labels >= 0]  # not those of rows without a point
    if len(labels) != points.shape[0]:
        raise ValueError(
            f"{type(model).__name__} does not predict, and was fitted to {len(labels)} points, "
            f"while X has {points.shape[0]}: pass the X of its fit"
        )
    rng = random_numbers(random_state)
    jaccard = mean_jaccards(
        labels, lambda drawn: _labels_again(model, points[drawn], rng), n_samples, rng
    )
    return Stability(jaccard, n_samples)


def _needs(model: Any) -> Needs:
    """Return what is asked of the points of a fitted model, whoever wrote it."""
    of_model = getattr(model, "_fitted_needs", None)
    measure = Measure(has_missing=getattr(model, "missing", None) == "observed")
    needs = Needs(name="stability", measure=measure) if of_model is None else of_model()
    return needs.refusing(parts="stability draws samples of all rows")


def mean_jaccards(
    labels: Any,
    cluster_again: Callable[[IndexArray], Any],
    n_samples: int,
    rng: np.random.RandomState,
) -> FloatArray:
    """Return for each cluster how much of it comes back, in the mean over samples that have it."""
    n_clusters = int(labels.max()) + 1
    sums, n_met = np.zeros(n_clusters), np.zeros(n_clusters)
    for _ in range(n_samples):
        drawn = np.unique(rng.randint(len(labels), size=len(labels)))
        found = jaccards(labels[drawn], np.asarray(cluster_again(drawn)), n_clusters)
        is_met = ~np.isnan(found)
        sums[is_met] += found[is_met]
        n_met += is_met
    return sums / np.where(n_met > 0, n_met, np.nan)


def jaccards(labels: Any, others: Any, n_clusters: int) -> FloatArray:
    """Return the similarity of each cluster to the most similar other one; NaN where it is empty.

    >>> jaccards(np.array([0, 0, 0, 1]), np.array([1, 1, 0, 0]), 2).round(2)  # 2 / 3 and 1 / 2
    array([0.67, 0.5 ])
    """
    shape = (n_clusters, int(others.max()) + 1)
    both = sparse.csr_array((np.ones(len(labels)), (labels, others)), shape=shape).toarray()
    of_one, of_other = both.sum(axis=1)[:, None], both.sum(axis=0)
    shares = both / np.maximum(of_one + of_other - both, 1.0)
    return np.where(of_one[:, 0] > 0, shares.max(axis=1), np.nan)


def _labels_again(model: Any, points: Any, rng: np.random.RandomState) -> Any:
    """Return labels of points by the better of a warm and a cold start."""
    centers = to_array(getattr(model, "cluster_centers_", None))
    fresh = _made_anew(model, rng)
    if centers is None or "init" not in model.get_params() or len(centers) > points.shape[0]:
        return fresh.fit(points).labels_
    warm = _made_anew(model, rng).set_params(init=copy.deepcopy(centers))
    if "n_init" in model.get_params():
        warm.set_params(n_init=1)
    starts = [warm.fit(points), fresh.fit(points)]
    return min(starts, key=lambda fitted: float(fitted.inertia_)).labels_


def _made_anew(model: Any, rng: np.random.RandomState) -> Any:
    """Return the model unfitted, with a seed of its own and with the number of its clusters."""
    anew, params = clone(model), model.get_params()
    if "random_state" in params:
        anew.set_params(random_state=rng.randint(2**31 - 1))
    if params.get("n_clusters") == "auto":
        anew.set_params(n_clusters=model.n_clusters_)
    if params.get("effort") in ("balanced", "thorough"):
        anew.set_params(effort="fast")
    return anew
