"""Choose the number of clusters: find centers for each k, and evaluate criteria on them."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, EffortForEachK, centers_by_k
from powermeans.choosing_k.counted import CountedPoints
from powermeans.choosing_k.evaluate import (
    CRITERIA,
    FOR_WHOLE_POINTS,
    FROM_INERTIAS,
    Evaluation,
    Study,
)
from powermeans.choosing_k.result import ChoiceOfK
from powermeans.engine.anneal import Callback
from powermeans.engine.fit import Listener
from powermeans.engine.history import SweepState
from powermeans.engine.search.state import Solution
from powermeans.errors import ArgumentError
from powermeans.points.needs import FitNeeds, Measure, Needs
from powermeans.points.opening import MatrixLike
from powermeans.points.protocol import Rows


def choose_k(
    X: MatrixLike,
    k_range: Iterable[int] = range(2, 21),
    *,
    criteria: str | Iterable[str] = "all",
    sample_weight: ArrayLike | None = None,
    missing: Literal["error", "observed"] = "error",
    effort: Literal["fast", "balanced", "thorough"] = "balanced",
    silhouette_size: int = 2_000,
    max_seconds: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> ChoiceOfK:
    """Cluster with each of several k, and recommend a number of clusters.

    Centers for all k are found together: the search for k + 1 begins at those for k, and the other
    way around, so that 19 values of k take a few times as long as one and the inertia never rises
    with k. Then each criterion says a k.

    The recommended k is the largest at which every two clusters are apart, as "separation" measures
    it. If there is no such k, or it is the largest one tried, the result says that there is no
    clear k (`is_clear`, `doubt`), and recommends a best guess: the k that is best for the longest
    range of penalties, as for "dp_means".

    A weight of three counts like three copies of a point, in samples too. Weights that add up to
    less than the number of their points are taken for shares of that number.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), path, chunks, PartedData, Dask
        The points. Scale the columns first, as for any clustering. A path, chunks, what `open_data`
        returns and Dask collections are read part by part; each k takes some dozens of passes.
    k_range : iterable of int, default=range(2, 21)
        The values of k to try, rising, up to the number of distinct rows. Let the range extend
        beyond the largest k that you expect, without holes. If it has k = 1, "separation" and "bic"
        may choose it.
    criteria : str or iterable of str, default="all"
        The criteria to evaluate, or "all"; `powermeans.mathematics.criteria` has formulas and
        sources.

        - "separation": the largest k at which any two clusters are apart: further than the halves
          of one cluster, with a valley between them.
        - "dp_means": the k with the least W(k) + λk for the longest range of penalties λ.
        - "bic": likelihood of round Gaussians, with a penalty for each parameter.
        - "calinski_harabasz": variance between clusters over variance within.
        - "silhouette": how much nearer points are to their own cluster than to the next.
    sample_weight : array-like of shape (n_samples,), optional
        Not negative.
    missing : {"error", "observed"}, default="error"
        What NaN is: an error, or an entry that is missing, as in `PowerKMeans`. "bic" and
        "silhouette" take no missing entries.
    effort : {"fast", "balanced", "thorough"}, default="balanced"
        How much to search for lower inertia: "fast" adds and removes centers from k to k and
        improves each solution, "balanced" also seeds each k anew a few times, and "thorough" does
        more of this and crosses solutions.
    silhouette_size : int, default=2000
        The size of the sample for "silhouette", which compares all pairs.
    max_seconds : float, optional
        Stop after about this time; a sweep is always completed. The result then has the values of k
        tried by then, and the criteria that were evaluated or that follow from the inertias.
        `was_stopped` is True, and `doubt` says what is missing. If not even the first k was done,
        the result has that one, with the first rows as centers.
    random_state : int, RandomState instance or None, default=None
        An int makes the result the same each time. The k of a criterion does not depend on which
        others are evaluated.
    n_threads : int, optional
        As in `PowerKMeans`; the result does not depend on it.
    callback : callable, optional
        Called after each sweep with a `SweepState`, whose sweeps are counted through all k. If it
        returns True, the search ends as after `max_seconds`. ``powermeans.progress()`` shows how
        many numbers of clusters have been tried.

    Returns
    -------
    ChoiceOfK

    See Also
    --------
    DPMeans : Takes the price of a cluster instead of their number.
    powermeans.plots.choice_of_k : Draws the result.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from powermeans import choose_k
    >>> X, _ = make_blobs(n_samples=300, centers=5, cluster_std=0.5, random_state=3)
    >>> choice = choose_k(X, range(2, 11), random_state=0)
    >>> choice.recommended
    5
    >>> choice.by_criterion["bic"]
    5
    >>> labels = choice.model().predict(X)
    """
    _check_parameters(locals())
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    sizes, has_missing = _checked_sizes(k_range), missing == "observed"
    names = _checked_criteria(criteria, has_missing=has_missing)
    listener = _Listener(callback, end)
    needs = Needs(
        name="choose_k",
        measure=Measure(has_missing=has_missing, n_threads=n_threads),
        fit=FitNeeds(
            n_points=sizes[-1],
            must_differ=True,
            warns_of_scales=True,
            leaves_out_columns=True,
            tell=listener.part if listener else None,
        ),
    )
    points = CountedPoints.of(X, sample_weight, needs)
    rng = check_random_state(random_state)
    seed = rng.randint(2**31 - 1, size=10)[1]  # as when the figures of the guide were measured
    with listener:
        on_sweep = None if callback is None and end == math.inf else listener.on_sweep
        search, watch = EFFORTS_FOR_EACH_K[effort], points.watch(on_sweep)
        found, was_stopped = _search(points.rows, sizes, search, rng, watch, listener)
        study = Study(
            points.rows,
            points.n_weighing,
            found or _unsearched(points.rows, sizes[0]),
            search,
            silhouette_size,
            seed,
            n_threads,
            on_sweep,
            has_missing,
        )
        evaluations, was_stopped = _evaluate(study, names, was_stopped, listener)
    choice = _choice(study, points, evaluations)
    if was_stopped:
        choice = _with_what_is_missing(choice, len(found), len(sizes), evaluations)
    return replace(choice, was_stopped=was_stopped, missing=missing)


class _Stopped(Exception):
    """Raised when the callback asks to stop, or time is up."""


class _Listener(Listener):
    """Hears of sweeps, counted as if of one fit, until it is time to stop."""

    def __init__(self, callback: Callback | None, end: float) -> None:
        super().__init__(callback)
        self._sweeps, self._end = itertools.count(1), end  # on the monotonic clock

    def is_late(self) -> bool:
        """Return whether time is up."""
        return time.monotonic() >= self._end

    def on_sweep(self, state: SweepState) -> None:
        """Raise if the callback asks to stop, or time is up."""
        if self(replace(state, run=0, sweep=next(self._sweeps))) or self.is_late():
            raise _Stopped


def _check_parameters(arguments: dict[str, Any]) -> None:
    constraints: dict[str, list[Any]] = {
        "silhouette_size": [Interval(Integral, 2, None, closed="left")],
        "missing": [StrOptions({"error", "observed"})],
        "effort": [StrOptions(set(EFFORTS_FOR_EACH_K))],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
        "callback": [callable, None],
    }
    given = {name: arguments[name] for name in constraints}
    validate_parameter_constraints(constraints, given, caller_name="choose_k")


def _checked_sizes(k_range: Any) -> list[int]:
    """Return the values of k as integers, or raise unless they rise from one on."""
    sizes: list[Any] = list(k_range) if isinstance(k_range, Iterable) else []
    is_integer = [isinstance(k, Integral) and not isinstance(k, (bool, np.bool_)) for k in sizes]
    if not sizes or not all(is_integer) or any(b <= a for a, b in itertools.pairwise([0, *sizes])):
        raise ValueError(
            f"k_range={k_range!r} has no rising integers from 1 on: pass for example range(2, 21)"
        )
    return [int(k) for k in sizes]


def _checked_criteria(criteria: str | Iterable[str], *, has_missing: bool) -> list[str]:
    possible = [name for name in CRITERIA if not (has_missing and name in FOR_WHOLE_POINTS)]
    if isinstance(criteria, str) and criteria == "all":
        return possible
    asked = (criteria,) if isinstance(criteria, str) else tuple(criteria)
    unknown = [name for name in asked if name not in CRITERIA]
    if unknown or not asked:
        raise ValueError(
            f"criteria={criteria!r} names {unknown[0] if unknown else 'nothing'!r}: pass "
            f'"all" or some of {list(CRITERIA)}'
        )
    refused = [name for name in asked if name not in possible]
    if refused:
        raise ArgumentError(
            f"names {refused[0]!r}, which needs whole points and takes no missing values",
            f"pass some of {', '.join(possible)}",
            argument="criteria",
            value=criteria,
        )
    return [name for name in possible if name in asked]


def _search(
    rows: Rows,
    sizes: list[int],
    effort: EffortForEachK,
    rng: np.random.RandomState,
    callback: Callback | None,
    listener: _Listener,
) -> tuple[dict[int, Solution], bool]:
    """Find centers for each k, or for some or none if the search is stopped."""
    found: dict[int, Solution] = {}
    n_sizes = len(sizes)
    try:
        listener.phase(f"1 of {n_sizes} numbers of clusters", 0, n_sizes)
        for found in centers_by_k(rows, sizes, effort, rng, callback):
            n_found = len(found)  # a stop keeps them
            ahead = f"{n_found + 1} of {n_sizes} numbers of clusters"
            ahead = ahead if n_found < n_sizes else "improving from one to the next"
            listener.phase(ahead, n_found, n_sizes)
    except _Stopped:
        return found, True
    return found, False


def _unsearched(rows: Rows, n_centers: int) -> dict[int, Solution]:
    start = rows.take(np.arange(n_centers))
    return {n_centers: Solution(start, rows.spread(start))}


def _evaluate(
    study: Study, names: list[str], was_stopped: bool, listener: _Listener
) -> tuple[dict[str, Evaluation], bool]:
    """Evaluate the criteria; after a stop only those that follow from the inertias have values."""
    evaluations: dict[str, Evaluation] = {}
    for number, name in enumerate(names, 1):
        words = f"criterion {number} of {len(names)}, {name.replace('_', ' ')}"
        listener.phase(words, number - 1, len(names))
        was_stopped = was_stopped or listener.is_late()
        try:
            if was_stopped and name not in FROM_INERTIAS:
                raise _Stopped
            evaluations[name] = CRITERIA[name](study)
        except _Stopped:
            was_stopped = True
            evaluations[name] = Evaluation(np.full(len(study.sizes), math.nan), None)
    if was_stopped and all(evaluation.chosen is None for evaluation in evaluations.values()):
        raise ValueError(
            f"callback or max_seconds ended choose_k before any of {list(evaluations)} said a k: "
            'let it run for longer, or pass a criterion that follows from inertias, such as "bic"'
        )
    return evaluations, was_stopped


def _choice(study: Study, points: CountedPoints, evaluations: dict[str, Evaluation]) -> ChoiceOfK:
    chosen = {
        name: None if evaluation.chosen is None else study.sizes[evaluation.chosen]
        for name, evaluation in evaluations.items()
    }
    guesses = {name: study.sizes[e.guess] for name, e in evaluations.items() if e.guess is not None}
    recommended, decided_by = _decide(chosen, guesses, study.sizes)
    ks = [k for k in chosen.values() if k is not None]
    doubt = _doubt(chosen, recommended, study.sizes)
    has_sample = "silhouette" in evaluations
    table = {"k": np.array(study.sizes), "inertia": points.inertias(study.inertias)}
    for name, evaluation in evaluations.items():
        table[name] = evaluation.values
        if evaluation.errors is not None:
            table[f"{name}_error"] = evaluation.errors
    return ChoiceOfK(
        table=table,
        recommended=recommended,
        decided_by=decided_by,
        by_criterion=chosen,
        agreement=ks.count(recommended) / max(1, len(ks)),
        silhouette_sample=len(study.silhouette_sample.counts) if has_sample else 0,
        is_clear=not doubt,
        doubt=doubt,
        centers=points.centers(study.found),
    )


def _with_what_is_missing(
    choice: ChoiceOfK, n_tried: int, n_sizes: int, evaluations: dict[str, Evaluation]
) -> ChoiceOfK:
    """Say what a search that was stopped has not tried, in place of other doubts."""
    missing = [
        name.replace("_", " ")
        for name, evaluation in evaluations.items()
        if name not in FROM_INERTIAS and np.isnan(evaluation.values).all()
    ]
    doubt = f"the search ended early: it tried {n_tried or 'none'} of {n_sizes} values of k"
    if missing:
        doubt += f", and did not evaluate {', '.join(missing)}"
    return replace(choice, is_clear=False, doubt=doubt)


def _decide(
    chosen: dict[str, int | None], guesses: dict[str, int], sizes: list[int]
) -> tuple[int, str]:
    """Return the recommended k, and the first of the criteria that says or guesses any."""
    said = guesses | {name: k for name, k in chosen.items() if k is not None}
    for name in CRITERIA:
        if name in said:
            return said[name], name
    raise ArgumentError(
        f"{', '.join(chosen)} recommends no k in {sizes}",
        "pass other values of k, or other criteria",
    )


def _doubt(chosen: dict[str, int | None], recommended: int, sizes: list[int]) -> str:
    """Say why the recommended k is not clear; nothing if it is."""
    doubts = []
    if "separation" not in chosen:
        doubts.append("nothing tells whether its clusters are apart without the separation")
    elif (chosen["separation"] or 1) == 1:
        doubts.append(
            "at no k above one are all clusters apart: there may be one cluster, or clusters that "
            "overlap or are too small"
        )
    if recommended == sizes[-1] > 1:
        doubts.append("it is the largest k tried, so that there may be more clusters")
    return "; ".join(doubts)
