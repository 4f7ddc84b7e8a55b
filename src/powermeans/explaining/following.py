"""Clusters from month to month: numbers that stay, centers that stay, and what has changed."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from powermeans.errors import ArgumentError
from powermeans.explaining.features import last_of, percent
from powermeans.mathematics.rules import Hard
from powermeans.methods.base import CenterEstimator
from powermeans.plots import fitted
from powermeans.points.predictions import assigned
from powermeans.system.attributes import forget, remember
from powermeans.system.containers import to_array
from powermeans.types import FloatArray, IndexArray, Labels

# A share that changes by less than this, of itself, is as before.
_NOTABLE = 0.1
_MOST_SWEEPS = 300


def match_labels(new: Any, old: Any, X: Any = None) -> Any:
    """Renumber clusters so that they keep the numbers of an earlier clustering.

    Clusters are assigned to former ones so that they share as many rows as possible. Two are the
    same if they share half of the rows of either. Without rows in common, centers are assigned at
    the least sum of squared distances, and are the same if one is the nearest to the other.

    Parameters
    ----------
    new : estimator, pipeline, or array-like of shape (n_samples,)
        A fitted model, or labels.
    old : estimator, pipeline, or array-like of shape (n_samples,)
        The former model, or the former labels of the same rows.
    X : table or array, optional
        Rows that both models label. Without it, models are matched by their centers.

    Returns
    -------
    estimator, pipeline or ndarray
        Labels in which new clusters have numbers above all former ones; or a renumbered copy of the
        model. A model of k clusters has the numbers from 0 to k - 1: a new cluster takes the number
        of one that is gone only if no higher number is left.

    See Also
    --------
    refit : Fits a model again, and keeps the numbers.
    what_changed : Reports which clusters are new, and which are gone.

    Examples
    --------
    >>> from powermeans import match_labels
    >>> match_labels([1, 1, 0, 0, 2], old=[0, 0, 1, 1, 1])
    array([0, 0, 1, 1, 2])
    """
    if hasattr(new, "predict") != hasattr(old, "predict"):
        raise ArgumentError(
            "of new and old, one is a model and one is not", "pass two models, or labels of both"
        )
    if not hasattr(new, "predict"):
        labels, former = np.asarray(to_array(new)), np.asarray(to_array(old))
        if labels.shape != former.shape or labels.ndim != 1:
            raise ArgumentError(
                f"new has {labels.size:,} labels, and old has {former.size:,}",
                "pass labels of the same rows",
            )
        if len(labels) and any(
            each.dtype.kind not in "iu" or each.min() < 0 for each in (labels, former)
        ):
            raise ArgumentError(
                "labels are whole numbers from 0 on", "leave out rows of no cluster"
            )
        numbers, former = np.unique(former, return_inverse=True)
        _, labels = np.unique(labels, return_inverse=True)
        found = _same(_shared(labels.astype(np.int32), former.astype(np.int32)))
        is_new = found < 0
        found[~is_new] = numbers[found[~is_new]]
        found[is_new] = int(numbers.max(initial=-1)) + 1 + np.arange(int(is_new.sum()))
        return found[labels]
    places = [fitted.centers_of(last_of(each)) for each in (new, old)]
    if X is None:
        found = _same_centers(*places)
    else:
        labels, former = (fitted.labels_of(each, X) for each in (new, old))
        found = _same(_shared(labels, former, *map(len, places)))
    is_kept = (found >= 0) & (found < len(found))
    # The highest numbers first, since no former cluster may have had them.
    found[~is_kept] = np.setdiff1d(np.arange(len(found)), found[is_kept])[::-1]
    return _renumbered(new, found)


def refit(
    model: Any,
    X: Any,
    *,
    keep: Sequence[int] = (),
    worth: float = 0.01,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Fit a model to new rows, so that clusters keep their numbers.

    Lloyd's sweeps start from the centers of the model. A new fit with its parameters is made as
    well, and replaces them, with the numbers of `match_labels`, if its inertia is lower by more
    than the share `worth`. Scaling and the kinds of columns are those of the model.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted `KMeans` or `PowerKMeans`, alone or in a pipeline.
    X : table or array
        The new rows.
    keep : sequence of int, default=()
        Clusters whose centers do not move. If there are any, there is no new fit.
    worth : float, default=0.01
        The share by which a new fit must lower the inertia to be used; ``float("inf")`` never
        uses it.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    estimator or pipeline
        A fitted model of the same kind.

    See Also
    --------
    what_changed : Compares it with the former model.

    Examples
    --------
    >>> from powermeans import KMeans, refit
    >>> april = KMeans.from_centers([[9.0], [0.0]])
    >>> refit(april, [[1.0], [2.0], [9.0], [11.0]]).cluster_centers_.ravel()
    array([10. ,  1.5])
    >>> refit(april, [[1.0], [2.0], [9.0], [11.0]], keep=[0]).cluster_centers_.ravel()
    array([9. , 1.5])
    """
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            X = step.transform(X)
        name, last = model.steps[-1]
        again = refit(last, X, keep=keep, worth=worth, sample_weight=sample_weight)
        return Pipeline([*model.steps[:-1], (name, again)])
    if not getattr(model, "_lowers_inertia", False):
        raise ArgumentError(
            f"model is a {type(model).__name__}, and only KMeans and PowerKMeans can go on",
            "fit it again, and match_labels(new, old) keeps the numbers",
        )
    n_clusters = len(fitted.centers_of(model))
    if any(not 0 <= label < n_clusters for label in keep):
        raise ArgumentError(
            "names other clusters than those of the model",
            f"they are 0 to {n_clusters - 1}",
            argument="keep",
            value=[*keep],
        )
    went_on = _gone_on(model, X, list(keep), sample_weight)
    if len(keep) or worth >= 1:
        return went_on
    fresh = clone(model)
    if getattr(model, "n_clusters", None) == "auto":
        fresh.set_params(n_clusters=n_clusters)
    fresh.fit(X, sample_weight=sample_weight)
    is_worth = fresh.inertia_ < (1 - worth) * went_on.inertia_
    return match_labels(fresh, model, X) if is_worth else went_on


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed from one clustering to another; printing it gives a sentence.

    Attributes
    ----------
    table : dict
        A column for each key, a row for each cluster: its number `before` and `now` (-1 where
        there was or is none), its `share_before` and `share_now` of the rows, how far its center
        `moved`, in units of the spread of its rows, and in words `what` happened to it.
        ``pandas.DataFrame`` takes it.
    flows : ndarray of shape (n_clusters_before, n_clusters_now)
        Number of rows by cluster before and now.
    stayed : float
        The share of the rows that are in the same cluster as before.

    See Also
    --------
    what_changed : Returns it.

    Examples
    --------
    >>> from powermeans import KMeans, what_changed
    >>> april, may = KMeans.from_centers([[0.0], [9.0]]), KMeans.from_centers([[4.0], [9.0]])
    >>> what_changed(april, may, [[0.0], [5.0], [9.0]]).flows
    array([[1, 0],
           [1, 1]])
    """

    table: dict[str, list[Any]]
    flows: IndexArray
    stayed: float

    def __str__(self) -> str:
        first = f"{percent(self.stayed)} of {self.flows.sum():,} rows stay in their cluster."
        return "\n".join([first, *self.table["what"]])

    def plot(self, *, ax: Any = None) -> Any:
        """Draw how many rows went from where to where; see `powermeans.plots.flows`."""
        from powermeans.plots.trees import flows

        return flows(self, ax=ax)


def what_changed(old: Any, new: Any, X: Any) -> Change:
    """Report which clusters grew, shrank, moved, came or went, and where their rows went.

    Both models label the same rows. The shares before are those of the rows that the former model
    was fitted to, if it has their labels.

    Parameters
    ----------
    old, new : estimator or pipeline
        Fitted, with centers in the same units, as after `refit`.
    X : table or array
        Rows, such as those of the new fit.

    Returns
    -------
    Change

    See Also
    --------
    match_labels : Finds which clusters are the same.

    Examples
    --------
    >>> from powermeans import KMeans, what_changed
    >>> april, may = KMeans.from_centers([[0.0], [9.0]]), KMeans.from_centers([[0.0], [8.0]])
    >>> print(what_changed(april, may, [[0.0], [1.0], [7.0], [9.0]]))
    100 % of 4 rows stay in their cluster.
    Cluster 0 is as before (50 % of the rows).
    Cluster 1 moved by 1 of its spread (50 % of the rows).
    """
    former, labels = fitted.labels_of(old, X), fitted.labels_of(new, X)
    was, is_now = fitted.centers_of(last_of(old)), fitted.centers_of(last_of(new))
    flows = _shared(labels, former, len(is_now), len(was)).T
    own = np.asarray(to_array(getattr(last_of(old), "labels_", former)))
    own = own[own >= 0]  # others are of rows of a file that were left out
    shares_before = [*np.bincount(own, minlength=len(was)) / len(own), 0.0]
    shares_now = [*flows.sum(axis=0) / flows.sum(), 0.0]
    same = _same(flows.T)
    pairs = [(int(i), j) for j, i in enumerate(same)]
    pairs += [(i, -1) for i in range(len(was)) if i not in same]
    spreads = _spreads(new, X, labels, len(is_now))
    table: dict[str, list[Any]] = {
        "before": [i for i, _ in pairs],
        "now": [j for _, j in pairs],
        "share_before": [float(shares_before[i]) for i, _ in pairs],
        "share_now": [float(shares_now[j]) for _, j in pairs],
        "moved": [
            float(np.linalg.norm(is_now[j] - was[i]) / spreads[j]) if min(i, j) >= 0 else np.nan
            for i, j in pairs
        ],
    }
    rows = list(zip(*table.values(), strict=True))
    table["what"] = [_told(*row, flows=flows) for row in rows]
    stayed = sum(flows[i, j] for i, j in pairs if min(i, j) >= 0) / flows.sum()
    return Change(table, flows, float(stayed))


def _told(i: int, j: int, before: float, now: float, moved: float, *, flows: IndexArray) -> str:
    """Say what happened to a cluster."""
    if i < 0:
        return f"Cluster {j} is new, with {percent(now)} of the rows{_most(', from', flows[:, j])}."
    if j < 0:
        had = f"Cluster {i} is gone, with {percent(before)} of the rows before"
        return f"{had}{_most('; its rows are in', flows[i])}."
    has_moved = f"moved by {moved:.2g} of its spread" if moved >= _NOTABLE else ""
    if abs(now - before) >= _NOTABLE * max(now, before):
        verb = "grew" if now > before else "shrank"
        grew = f"{verb} from {percent(before)} to {percent(now)} of the rows"
        said = f"{grew} and {has_moved}" if has_moved else grew
    else:
        said = f"{has_moved or 'is as before'} ({percent(now)} of the rows)"
    return f"Cluster {j}{'' if i == j else f', which was {i},'} {said}."


def _most(words: str, counts: IndexArray) -> str:
    order = [j for j in np.argsort(-counts, kind="stable")[:3] if counts[j]]
    return f"{words} {', '.join(f'{j} ({counts[j]:,})' for j in order)}" if order else ""


def _spreads(model: Any, X: Any, labels: Labels, n_clusters: int) -> FloatArray:
    """Return the root of the mean squared distance of the rows of each cluster to its center."""
    own = fitted.distances_of(model, X)[np.arange(len(labels)), labels][labels >= 0]
    labels = labels[labels >= 0]
    sizes = np.maximum(np.bincount(labels, minlength=n_clusters), 1)
    spreads = np.sqrt(np.bincount(labels, np.square(own), minlength=n_clusters) / sizes)
    return np.where(spreads > 0, spreads, 1.0)


def _gone_on(model: Any, X: Any, keep: list[int], sample_weight: ArrayLike | None) -> Any:
    """Return the model after hard sweeps from its centers, of which some stay."""
    found = copy.copy(model)
    with model._new_points(X, sample_weight) as points:
        centers = model._centers(points.given.n_features)
        enough = float(getattr(model, "tol", 0.0)) * points.mean_variance()
        for found.n_iter_ in range(1, _MOST_SWEEPS + 1):
            moved = points.sweep(centers, Hard()).centers(centers)
            moved[keep] = centers[keep]
            shift, centers = float(np.square(moved - centers).sum()), moved
            if shift <= enough:
                break
        dtype = np.asarray(to_array(model.cluster_centers_)).dtype
        found.cluster_centers_ = np.asarray(centers, dtype=dtype)
        found.labels_, found.inertia_ = assigned(points, found.cluster_centers_.astype(np.float64))
        remember(found, found._at_home(vars(found), X, points))
    # What belongs to the former fit.
    forget(found, "history_", "spent_", "is_optimal_", "n_relocated_", "n_separated_")
    return found


def _renumbered(model: Any, numbers: IndexArray) -> Any:
    """Return a copy of a model in which each cluster has another number."""
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return Pipeline([*model.steps[:-1], (name, _renumbered(last, numbers))])
    if not isinstance(model, CenterEstimator):
        raise ArgumentError(
            f"new is a {type(model).__name__}, which this package cannot renumber",
            "pass labels: match_labels(new.labels_, old.predict(X))",
        )
    found, order = copy.copy(model), np.argsort(numbers)
    states = " ".join(getattr(kind, "_state", "") for kind in type(model).__mro__)
    # A class says of its attributes which have an entry for each center, and which are labels.
    for attribute, kind, axis in re.findall(r"(\w+): (\w+)\[(\w+)", states):
        value = to_array(getattr(model, attribute, None))
        if value is not None and kind == "label":
            setattr(found, attribute, numbers[value].astype(value.dtype))
        elif value is not None and axis == "k":
            setattr(found, attribute, value[order])
    return found


def _shared(new: Labels, old: Labels, *least: int) -> IndexArray:
    """Return how many rows clusters share, (n_new, n_old), of rows that count."""
    are_used = np.minimum(new, old) >= 0
    new, old = new[are_used], old[are_used]
    k, former_k = least or (int(new.max(initial=-1)) + 1, int(old.max(initial=-1)) + 1)
    return np.bincount(new * former_k + old, minlength=k * former_k).reshape(k, former_k)


def _same(shared: IndexArray) -> IndexArray:
    """Return for each new cluster the former one that it is, or -1."""
    found = np.full(len(shared), -1)
    smaller = np.minimum(shared.sum(axis=1)[:, None], shared.sum(axis=0))
    for new, old in zip(*linear_sum_assignment(-shared), strict=True):
        if shared[new, old] and 2 * shared[new, old] >= smaller[new, old]:
            found[new] = old
    return found


def _same_centers(new: FloatArray, old: FloatArray) -> IndexArray:
    distances = cdist(new, old, "sqeuclidean")
    found = np.full(len(new), -1)
    for i, j in zip(*linear_sum_assignment(distances), strict=True):
        if distances[i, j] <= max(distances[i].min(), distances[:, j].min()):
            found[i] = j
    return found
