"""Choose the number of clusters: find centers for each k, and evaluate criteria on them."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
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

from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, centers_by_k
from powermeans.choosing_k.evaluate import (
    CRITERIA,
    FOR_WHOLE_POINTS,
    FROM_INERTIAS,
    MOST_AXES,
    Evaluation,
    Settings,
    Study,
)
from powermeans.choosing_k.in_parts import NOT_IN_PARTS, PartedStudy, counted, unit_of_counts
from powermeans.choosing_k.result import ChoiceOfK
from powermeans.errors import ArgumentError
from powermeans.estimators.opening import MatrixLike, OpeningSpec, admit_array, open_array
from powermeans.estimators.used_columns import UsedColumns
from powermeans.inputs.points import Admitted, divide_by_power_of_two, exponent_to_square
from powermeans.loop.anneal import Callback, says_stop
from powermeans.loop.history import SweepState
from powermeans.loop.search import Solution
from powermeans.rows.protocol import Rows
from powermeans.seeds.orders import order_by_place
from powermeans.seeds.samples import distinct_places
from powermeans.sources.kinds import Kind, kind_of
from powermeans.types import FloatArray

# "separation", which can say that no k is clear, and the others by how often each was right in
# benchmarks/choosing_k.py, which leaves out "gap".
RANKING = (
    "separation",
    "dp_means",
    "knee",
    "bic",
    "simplified_silhouette",
    "calinski_harabasz",
    "silhouette",
    "davies_bouldin",
    "stability",
    "jump",
    "gap",
)
# As large a share of at least so many criteria speaks for a k where "separation" does not.
_MAJORITY, _LEAST_VOTERS = 2 / 3, 3
_IN_PARTS = (Kind.PARTS, Kind.DASK)
# "gap" takes too long: it clusters as many points again for each reference set.
DEFAULT = tuple(name for name in CRITERIA if name != "gap")


def choose_k(
    X: MatrixLike,
    k_range: Iterable[int] = range(2, 21),
    *,
    criteria: str | Iterable[str] = "default",
    decide_by: str = "auto",
    sample_weight: ArrayLike | None = None,
    missing: Literal["error", "observed"] = "error",
    effort: Literal["fast", "balanced", "thorough"] = "balanced",
    silhouette_size: int = 2_000,
    n_references: int = 10,
    n_resamples: int = 10,
    max_seconds: float | None = None,
    keep_centers: bool = True,
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

    A weight of three always counts like three copies of a point, in samples too. Weights that add
    up to less than the number of their points are taken for shares of that number.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), path, chunks, PartedData, Dask
        The points. Scale the columns first, as for any clustering. A path, chunks, or what
        `open_data` returns, is read part by part: each k takes some dozens of passes, "silhouette"
        and "stability" use samples, as they do of many points in memory, and "gap" is refused. The
        same holds for a Dask array or DataFrame, whose partitions stay where Dask has them.
    k_range : iterable of int, default=range(2, 21)
        The values of k to try, rising, up to the number of distinct rows. Let the range extend
        beyond the largest k that you expect; `jump` and `dp_means` compare neighbours and need
        ranges without holes. If the range has k = 1, "separation", "gap", "bic" and "jump" may
        choose it. The other criteria are undefined there, and "knee" and "dp_means" also at the
        largest k.
    criteria : str or iterable of str, default="default"
        The criteria to evaluate, "all", or the "default", which is all except "gap": that one
        clusters `n_references` other sets for every k, and takes as many times as long.

        - "knee": the k at which log W(k) bends most (`criteria.knee`).
        - "silhouette": how much nearer points are to their own cluster than to the next (Rousseeuw
          1987), exact on a sample of points.
        - "simplified_silhouette": the same from distances to centers, for all points.
        - "calinski_harabasz": variance between clusters over variance within.
        - "davies_bouldin": width of clusters over their distance.
        - "bic": likelihood of round Gaussians of one variance, with a penalty for each parameter
          (Pelleg & Moore 2000).
        - "jump": the largest jump of transformed distortions (Sugar & James 2003).
        - "dp_means": the k that is best for the longest range of penalties of `DPMeans`.
        - "stability": the largest k at which centers of resamples agree as well as at any k, within
          one standard error (after Fang & Wang 2012).
        - "separation": the largest k at which any two clusters are apart: further than the halves
          of one cluster, with a valley between them, on a sample of at most 10 000 points. With
          more than ten features, these are clusters of its own: of the directions of at most 3000
          points from the middle, along the axes that vary more than by chance.
        - "gap": W(k) compared with that of sets without clusters, in a box along the principal
          axes, by the rule of one standard error (Tibshirani, Walther & Hastie 2001).
    decide_by : str, default="auto"
        Which criterion recommends: one of those evaluated, or "vote" for the k that most of them
        say. "auto" decides as said above; without "separation", it is the one of those evaluated
        that was right most often in the benchmarks.
    sample_weight : array-like of shape (n_samples,), optional
        Not negative.
    missing : {"error", "observed"}, default="error"
        What NaN is: an error, or an entry that is missing, as in `PowerKMeans`. Then the criteria
        are those that need no whole points: all but "silhouette", "bic", "jump", "separation" and
        "gap".
    effort : {"fast", "balanced", "thorough"}, default="balanced"
        How much to search for lower inertia: "fast" adds centers from k to k + 1, removes them
        again, and improves each solution by swaps, as `PowerKMeans` does; "balanced" also seeds
        each k anew a few times and improves the best starts; "thorough" does more of this, and
        crosses solutions. Where `PowerKMeans` breathes, "fast" only descends.
    silhouette_size : int, default=2000
        The size of the sample for "silhouette", which compares all pairs, and for comparing
        resamples. Fewer points are all used.
    n_references : int, default=10
        The number of sets without clusters drawn for "gap", with at most 10 000 points each.
    n_resamples : int, default=10
        The number of resamples drawn for "stability", with at most 2000 points each; every two are
        compared.
    max_seconds : float, optional
        Stop after about this time; a sweep is always completed. The result then has only the values
        of k that were tried by then, and only the criteria that were evaluated or that follow from
        the inertias: "knee", "calinski_harabasz", "bic", "jump" and "dp_means". `was_stopped` is
        True, and `doubt` says what is missing. If not even the first k was done, the result has
        that one, with the first rows as centers.
    keep_centers : bool, default=True
        Whether to keep the centers of each k.
    random_state : int, RandomState instance or None, default=None
        An int makes the result the same each time. The k of a criterion does not depend on which
        others are evaluated.
    n_threads : int, optional
        As in `PowerKMeans`; the result does not depend on it.
    callback : callable, optional
        Called after each sweep with a `SweepState`, whose sweeps are counted through all k. If it
        returns True, the search ends as after `max_seconds`. Its methods
        `phase_begins` and `fit_ended` are called as by `PowerKMeans`, if there are such:
        ``powermeans.progress()`` shows how many numbers of clusters have been tried.

    Returns
    -------
    ChoiceOfK

    See Also
    --------
    DPMeans : Takes the price of a cluster instead of their number.

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
    sizes, has_missing = checked_sizes(k_range), missing == "observed"
    names = _checked_criteria(criteria, has_missing=has_missing)
    _check_decider(decide_by, names)
    spec = OpeningSpec(
        name="choose_k",
        has_missing=has_missing,
        n_threads=n_threads,
        n_needed=sizes[-1],
        must_differ=True,
        warns_of_scales=True,
        tell=getattr(callback, "pass_goes_on", None),
    )
    if kind_of(X) in _IN_PARTS:
        names = _checked_for_parts(criteria, names, decide_by)
    scaled = _opened(X, sample_weight, spec, names)
    _check_distinct(scaled.n_distinct, sizes[-1])
    rng = check_random_state(random_state)
    # The separation draws its sample as the silhouette does.
    seeds = {name: rng.randint(2**31 - 1) for name in CRITERIA if name != "separation"}
    numbers = (silhouette_size, n_references, n_resamples)
    with _Listener(callback, end) as listener:
        on_sweep = None if callback is None and end == math.inf else listener.on_sweep
        settings = Settings(
            EFFORTS_FOR_EACH_K[effort],
            *numbers,
            seeds,
            n_threads,
            callback=scaled.watch(on_sweep),
            callback_elsewhere=on_sweep,
        )
        found, was_stopped = _search(scaled.rows, sizes, settings, rng, listener)
        study = scaled.study(found or _unsearched(scaled.rows, sizes[0]), settings)
        evaluations, was_stopped = _evaluate(study, names, was_stopped, listener)
    choice = _choice(study, scaled, evaluations, decide_by)
    if was_stopped:
        choice = _with_what_is_missing(choice, len(found), len(sizes), evaluations)
    kept = choice.centers if keep_centers else {}
    return replace(choice, centers=kept, was_stopped=was_stopped, missing=missing)


def _opened(
    X: MatrixLike, sample_weight: ArrayLike | None, spec: OpeningSpec, names: list[str]
) -> _Scaled:
    if kind_of(X) in _IN_PARTS:
        return _Scaled.of_parts(X, sample_weight, spec)
    data = admit_array(X, sample_weight, spec)
    if "gap" in names:
        _check_axes(data.points.shape[1])
    return _Scaled.of(data, spec)


class _Stopped(Exception):
    """Raised when the callback asks to stop, or time is up."""


class _Listener:
    """Tell the callback of sweeps, counted as if of one fit, of phases, and of the end."""

    def __init__(self, callback: Callback | None, end: float = math.inf) -> None:
        self._callback, self._sweeps = callback, itertools.count(1)
        self._end = end  # on the monotonic clock

    def is_late(self) -> bool:
        """Return whether time is up."""
        return time.monotonic() >= self._end

    def on_sweep(self, state: SweepState) -> None:
        """Raise if the callback asks to stop, or time is up."""
        if self._callback is not None and says_stop(
            self._callback(replace(state, run=0, sweep=next(self._sweeps)))
        ):
            raise _Stopped
        if self.is_late():
            raise _Stopped

    def on_phase(self, words: str) -> None:
        """Tell what begins."""
        if (told := getattr(self._callback, "phase_begins", None)) is not None:
            told(words, None)

    def __enter__(self) -> _Listener:
        return self

    def __exit__(self, *reason: object) -> None:
        if (ended := getattr(self._callback, "fit_ended", None)) is not None:
            ended()


@dataclass(frozen=True, slots=True)
class _Scaled:
    """Points divided by a power of two, so that squares fit float32, weighted by counts of copies.

    Weights become shares of the number of their points if they add up to less than that number, or
    to more than float64 counts.
    """

    rows: Rows
    n_distinct: int  # in parts, no more than the largest k
    study: Callable[[dict[int, Solution], Settings], Study]
    exponent: int
    unit: float
    columns: UsedColumns | None = None  # None for all

    @classmethod
    def of(cls, data: Admitted, spec: OpeningSpec) -> _Scaled:
        exponent = exponent_to_square(data.largest, data.points.dtype)
        points = divide_by_power_of_two(data.points, exponent)
        columns = UsedColumns.of(points, spec.divergence)
        if columns is not None:
            points = columns.of_points(points)
            spec = replace(spec, n_columns=columns.n_columns)
        weights = np.ones(points.shape[0]) if data.weights is None else data.weights
        unit = unit_of_counts(float(weights.sum()), int(np.count_nonzero(weights)))
        counts = weights * unit
        rows = open_array(points, None if data.weights is None else counts, spec)
        order, key = order_by_place(rows, np.random.RandomState(0))
        n_distinct = len(np.unique(key[rows.sample_weight(order) > 0]))
        study = functools.partial(Study, points, counts, rows, has_missing=spec.has_missing)
        return cls(rows, n_distinct, study, exponent, unit, columns)

    @classmethod
    def of_parts(cls, X: Any, sample_weight: Any, spec: OpeningSpec) -> _Scaled:
        rows, unit = counted(X, sample_weight, spec)
        places = distinct_places(rows, spec.n_needed, np.random.RandomState(0))
        study = functools.partial(PartedStudy.of, rows, has_missing=spec.has_missing)
        return cls(rows, len(np.unique(places, axis=0)), study, 0, unit)

    def inertias(self, study: Study) -> FloatArray:
        """Return inertias in the units of the user."""
        return np.ldexp(study.inertias, 2 * self.exponent) / self.unit

    def centers(self, found: dict[int, Solution]) -> dict[int, FloatArray]:
        scaled = {k: np.ldexp(solution.centers, self.exponent) for k, solution in found.items()}
        if self.columns is None:
            return scaled
        return {k: self.columns.all_of(centers) for k, centers in scaled.items()}

    def watch(self, callback: Callback | None) -> Callback | None:
        """Return the callback for sweeps over these rows, told of centers with all columns."""
        if callback is None or self.columns is None:
            return callback
        return self.columns.shown_to(callback)


def _check_parameters(arguments: dict[str, Any]) -> None:
    at_least = {"silhouette_size": 2, "n_references": 1, "n_resamples": 2}
    constraints: dict[str, list[Any]] = {
        **{name: [Interval(Integral, n, None, closed="left")] for name, n in at_least.items()},
        "decide_by": [StrOptions({"auto", "vote", *CRITERIA})],
        "missing": [StrOptions({"error", "observed"})],
        "effort": [StrOptions(set(EFFORTS_FOR_EACH_K))],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "keep_centers": ["boolean"],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
        "callback": [callable, None],
    }
    given = {name: arguments[name] for name in constraints}
    validate_parameter_constraints(constraints, given, caller_name="choose_k")


def checked_sizes(k_range: Iterable[int]) -> list[int]:
    """Return the values of k as integers, or raise unless they rise from one on."""
    way_out = "pass rising integers from 1 on, for example range(2, 21)"
    try:
        sizes: list[Any] = list(k_range)
    except TypeError:
        raise ValueError(f"k_range={k_range!r} is no range: {way_out}") from None
    if not sizes:
        raise ValueError(f"k_range={k_range!r} is empty: {way_out}")
    for k in sizes:
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k_range has {k!r}: {way_out}")
    for before, after in itertools.pairwise(sizes):
        if after <= before:
            raise ValueError(f"k_range has {after} after {before}: {way_out}")
    return [int(k) for k in sizes]


def _checked_criteria(criteria: str | Iterable[str], *, has_missing: bool) -> list[str]:
    sets: dict[object, tuple[str, ...]] = {"default": DEFAULT, "all": tuple(CRITERIA)}
    is_name = isinstance(criteria, str)
    wanted = sets.get(criteria, (str(criteria),)) if is_name else tuple(criteria)
    unknown = [name for name in wanted if name not in CRITERIA]
    if unknown or not wanted:
        raise ValueError(
            f"criteria={criteria!r} names {unknown[0] if unknown else 'nothing'!r}: pass "
            f'"default", "all", or some of {list(CRITERIA)}'
        )
    if not has_missing:
        return [name for name in CRITERIA if name in wanted]
    possible = [name for name in CRITERIA if name not in FOR_WHOLE_POINTS]
    refused = [name for name in wanted if name not in possible]
    if refused and not (is_name and criteria in sets):
        raise ArgumentError(
            f"names {refused[0]!r}, which needs whole points and takes no missing values",
            f"pass some of {', '.join(possible)}",
            argument="criteria",
            value=criteria,
        )
    return [name for name in possible if name in wanted]


def _checked_for_parts(
    criteria: str | Iterable[str], names: list[str], decide_by: str
) -> list[str]:
    """Leave out criteria that need all points at once, or raise if the caller named one."""
    refused = [name for name in names if name in NOT_IN_PARTS]
    if refused and (criteria != "all" or decide_by in refused):
        raise ArgumentError(
            f"names {refused[0]!r}, which draws in a box about all points along their principal "
            "axes, and the rows are read part by part",
            "leave it out, or choose k on some of the rows",
            argument="criteria",
            value=criteria,
        )
    return [name for name in names if name not in refused]


def _check_decider(decide_by: str, names: list[str]) -> None:
    if decide_by not in ("auto", "vote", *names):
        raise ValueError(
            f"decide_by={decide_by!r} is not among the criteria {names}: pass one of them, "
            '"vote" or "auto"'
        )


def _check_axes(n_features: int) -> None:
    if n_features > MOST_AXES:
        raise ArgumentError(
            f"draws along all principal axes, and {n_features} features are more than {MOST_AXES}",
            "leave it out, or reduce the features",
            argument="criteria",
            value="gap",
        )


def _check_distinct(n_distinct: int, largest: int) -> None:
    if n_distinct < largest:
        raise ArgumentError(
            f"is more than the {n_distinct} distinct rows with a weight",
            f"pass values of k up to {n_distinct}",
            argument="k",
            value=largest,
        )


def _search(
    rows: Rows,
    sizes: list[int],
    settings: Settings,
    rng: np.random.RandomState,
    listener: _Listener,
) -> tuple[dict[int, Solution], bool]:
    """Find centers for each k, or for some or none if the search is stopped."""
    found: dict[int, Solution] = {}
    n_sizes = len(sizes)
    try:
        listener.on_phase(f"1 of {n_sizes} numbers of clusters")
        for found in centers_by_k(rows, sizes, settings.effort, rng, settings.callback):
            n_next = len(found) + 1  # a stop keeps the solutions before it
            ahead = f"{n_next} of {n_sizes} numbers of clusters"
            listener.on_phase(ahead if n_next <= n_sizes else "improving from one to the next")
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
        listener.on_phase(f"criterion {number} of {len(names)}, {name.replace('_', ' ')}")
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


def _choice(
    study: Study, scaled: _Scaled, evaluations: dict[str, Evaluation], decide_by: str
) -> ChoiceOfK:
    chosen = {
        name: None if evaluation.chosen is None else study.sizes[evaluation.chosen]
        for name, evaluation in evaluations.items()
    }
    guesses = {name: study.sizes[e.guess] for name, e in evaluations.items() if e.guess is not None}
    recommended, decided_by = _decide(chosen, guesses, decide_by, study.sizes)
    ks = [k for k in chosen.values() if k is not None]
    doubt = _doubt(chosen, recommended, study.sizes)
    return ChoiceOfK(
        table=_table(study, scaled, evaluations),
        recommended=recommended,
        decided_by=decided_by,
        by_criterion=chosen,
        agreement=ks.count(recommended) / max(1, len(ks)),
        silhouette_sample=len(study.sample.counts) if "silhouette" in evaluations else 0,
        is_clear=not doubt,
        doubt=doubt,
        centers=scaled.centers(study.found),
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
    chosen: dict[str, int | None], guesses: dict[str, int], decide_by: str, sizes: list[int]
) -> tuple[int, str]:
    """Return the recommended k, and the name of the criterion that recommends it."""
    votes = {name: k for name, k in chosen.items() if k is not None}
    if decide_by == "auto":
        votes = guesses | votes
    ranked = [name for name in RANKING if name in votes]
    if not ranked or (decide_by not in ("auto", "vote") and decide_by not in votes):
        silent = decide_by if decide_by in CRITERIA else ", ".join(chosen)
        raise ArgumentError(
            f"{silent} recommends no k in {sizes}",
            "pass other values of k (larger ones if the gap still rises at the largest), or other "
            "criteria",
        )
    if decide_by == "vote":
        return vote(votes), "vote"
    decider = ranked[0] if decide_by == "auto" else decide_by
    return votes[decider], decider


def _has_majority(votes: dict[str, int]) -> bool:
    """Tell whether two thirds of at least three criteria say the same k."""
    most = max(Counter(votes.values()).values(), default=0)
    return len(votes) >= _LEAST_VOTERS and most >= _MAJORITY * len(votes)


def _doubt(chosen: dict[str, int | None], recommended: int, sizes: list[int]) -> str:
    """Say why the recommended k is not clear; nothing if it is."""
    votes = {name: k for name, k in chosen.items() if k is not None}
    doubts = []
    if "separation" in chosen and (chosen["separation"] or 1) == 1:
        doubts.append(
            "at no k above one are all clusters apart: there may be one cluster, or clusters that "
            "overlap or are too small"
        )
    elif votes.get("separation") != recommended and not (
        _has_majority(votes) and vote(votes) == recommended
    ):
        doubts.append(
            _doubt_of_votes(votes)
            if "separation" not in votes
            else f"all clusters are apart up to k = {votes['separation']}"
        )
    if recommended == sizes[-1] > 1:
        doubts.append("it is the largest k tried, so that there may be more clusters")
    return "; ".join(doubts)


def _doubt_of_votes(votes: dict[str, int]) -> str:
    if len(votes) < _LEAST_VOTERS:
        return "fewer than three criteria were asked, and not the separation"
    return "fewer than two thirds of the criteria say so"


def vote(votes: dict[str, int]) -> int:
    """Return the k that most criteria say; in a tie the first criterion of the ranking decides."""
    counts = Counter(votes.values())
    most = max(counts.values())
    return next(votes[name] for name in RANKING if name in votes and counts[votes[name]] == most)


def _table(
    study: Study, scaled: _Scaled, evaluations: dict[str, Evaluation]
) -> dict[str, np.ndarray[Any, Any]]:
    table: dict[str, np.ndarray[Any, Any]] = {
        "k": np.array(study.sizes),
        "inertia": scaled.inertias(study),
    }
    for name, evaluation in evaluations.items():
        table[name] = evaluation.values
        if evaluation.errors is not None:
            table[f"{name}_error"] = evaluation.errors
    return table
