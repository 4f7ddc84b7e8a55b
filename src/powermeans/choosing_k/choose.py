"""Choose the number of clusters: find centers for each k, and evaluate criteria on them."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from operator import itemgetter
from typing import Literal

import numpy as np

from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, centers_by_k, settled_on
from powermeans.choosing_k.counted import MOST_ROWS, CountedPoints, RowsWithWords
from powermeans.choosing_k.evaluate import (
    CRITERIA,
    Evaluation,
    Question,
    Study,
    by_separation,
)
from powermeans.choosing_k.result import ChoiceOfK
from powermeans.choosing_k.stability import mean_jaccards
from powermeans.engine.fit import Callback, Listener
from powermeans.engine.history import SweepState
from powermeans.engine.search.state import Solution
from powermeans.errors import ArgumentError
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points
from powermeans.types import FloatArray, IndexArray, Labels

# Of more rows a sample is asked. What it says of 100 000 rows is what they say, 10 times as fast.
_ROWS_OF_A_SAMPLE = 10_000
# Where time is limited, the first answer is that of as many rows, and 50 for each cluster.
_LEAST_ROWS = 1_000


def choose(
    points: CountedPoints, question: Question, rng: np.random.RandomState, listener: ListenerUntil
) -> ChoiceOfK:
    """Return the number of clusters, with the centers and the criteria of each k.

    Words of a table are blurred at random, since words alone look like clusters.
    """
    seed = rng.randint(2**31 - 1, size=10)[1]  # as when the figures of the guide were measured
    table, began = points.table, time.monotonic()
    points = points if table is None else table.blurred(seed)
    choice = _choose_in_time(points, question, rng, seed, listener)
    is_late = time.monotonic() - began > (listener.end - began) / 3
    if table is None or choice.certainty == "not clear" or is_late or not question.n_bootstraps:
        return choice
    try:
        return _doubted(choice, table, question, seed + 1)
    except listener.ends_on:
        why = "the choice ended before another try confirmed it"
        return replace(_unclear(choice, why), was_stopped=True)


def _doubted(choice: ChoiceOfK, table: RowsWithWords, question: Question, seed: int) -> ChoiceOfK:
    """Return the choice, unclear if clusters of a table with words are apart by chance."""
    k, names = choice.recommended, ["separation", "dp_means", "calinski_harabasz"]
    place = question.sizes.index(k)
    near = question.sizes[max(place - 1, 0) : place + 2]
    question = replace(question, sizes=near, criteria=names, n_bootstraps=0)

    def are_apart(*, is_shuffled: bool) -> bool:
        rows = table.blurred(seed, _ROWS_OF_A_SAMPLE, is_shuffled=is_shuffled)
        rng, listener = np.random.RandomState(seed), ListenerUntil(None, math.inf)
        found = _choose_among(rows, question, rng, seed, listener)
        return found.by_criterion["separation"] == k

    if not are_apart(is_shuffled=False):
        return _unclear(choice, "in another try its clusters are not apart")
    if len(table.preparation.used) > 1 and are_apart(is_shuffled=True):
        why = "clusters are as apart in columns that have nothing to do with each other"
        return _unclear(choice, why)
    return choice


def _choose_in_time(
    points: CountedPoints,
    question: Question,
    rng: np.random.RandomState,
    seed: int,
    listener: ListenerUntil,
) -> ChoiceOfK:
    """Choose k among all rows, or in a sample of many, which all rows confirm.

    Where time is limited, a small sample is asked first, and then one as large as the time that is
    left allows.
    """
    n_rows, least = points.rows.n_points, max(_LEAST_ROWS, 50 * question.sizes[-1])
    size = n_rows if n_rows <= MOST_ROWS else max(_ROWS_OF_A_SAMPLE, 2 * least)
    small = None
    if listener.end < math.inf and size > 2 * least:
        began = time.monotonic()
        small = _choose_in_sample(points, least, question, rng, seed, listener)
        ended = time.monotonic()
        affordable = 0.5 * least * (listener.end - ended) / max(ended - began, 1e-9)
        if small.was_stopped or affordable < 2 * least:
            return small
        size = min(size, int(affordable))
    if size == n_rows:
        choice = _choose_among(points, question, rng, seed, listener)
    else:
        choice = _choose_in_sample(points, size, question, rng, seed, listener)
    lacks_some = choice.was_stopped and len(choice.centers) < len(question.sizes)
    return small if small is not None and lacks_some else choice


def recommended_k(
    points: CountedPoints,
    has_missing: bool,
    n_threads: int | None,
    rng: np.random.RandomState,
    end: float,
) -> int:
    """Return the best k of 2 to 20, or one where too few rows differ."""
    n_distinct = points.n_distinct()
    sizes = list(range(2, min(20, n_distinct - (n_distinct == points.rows.n_points)) + 1))
    if not sizes:
        return 1
    question = Question(
        sizes,
        ["separation", "dp_means", "calinski_harabasz"],
        EFFORTS_FOR_EACH_K["balanced"],
        n_threads=n_threads,
        has_missing=has_missing,
        n_bootstraps=0,
    )
    return choose(points, question, rng, ListenerUntil(None, end)).recommended


def _choose_in_sample(
    points: CountedPoints,
    size: int,
    question: Question,
    rng: np.random.RandomState,
    seed: int,
    listener: ListenerUntil,
) -> ChoiceOfK:
    """Choose in a sample of the rows, and let all rows confirm it."""
    sample = points.sample(size, seed, question)
    choice = _choose_among(sample, question, rng, seed, listener)
    choice = replace(choice, n_sampled=size)
    why = "the choice ended before all rows confirmed what a sample says"
    unconfirmed = _unclear(choice, why if choice.certainty != "not clear" else choice.why)
    if choice.was_stopped:
        return unconfirmed
    listener.phase("confirming on all rows")
    try:
        return _confirmed(choice, points, question, seed + 1, listener)
    except listener.ends_on as reason:
        return replace(unconfirmed, was_stopped=not isinstance(reason, _OutOfTime))


def _choose_among(
    points: CountedPoints,
    question: Question,
    rng: np.random.RandomState,
    seed: int,
    listener: ListenerUntil,
) -> ChoiceOfK:
    watch = points.watch(listener.heard)
    found, was_stopped = _search(points.rows, question, rng, watch, listener)
    searched = found
    if not searched:
        k = question.sizes[0]
        start = points.rows.take(np.arange(k))
        searched = {k: Solution(start, points.rows.spread(start))}
    study = Study(points.rows, points.n_weighing, searched, question, seed, listener.heard)
    evaluations, was_stopped = _evaluate(study, question.criteria, was_stopped, listener)
    choice = _choice(study, points, evaluations)
    if was_stopped:
        missing = _with_what_is_missing(choice, len(found), len(question.sizes), evaluations)
        return replace(missing, was_stopped=True)
    if not question.n_bootstraps or listener.is_late():
        return choice
    try:
        solution = study.found[choice.recommended]
        return replace(choice, stability=_stability_of(solution, study))
    except listener.ends_on as reason:
        return replace(choice, was_stopped=not isinstance(reason, _OutOfTime))


def _stability_of(solution: Solution, study: Study) -> FloatArray | None:
    """Return how much of each cluster comes back in bootstrap samples; None for very many."""
    question, centers = study.question, solution.centers
    rng = np.random.RandomState(study.seed)
    sample = study.sample(2_000)
    n_points = sample.rows.n_points
    if n_points < 20 * len(centers):
        return None
    points = sample.rows.sample(np.arange(n_points))

    def cluster_again(drawn: IndexArray) -> Labels:
        rows = open_rows(
            points[drawn],
            sample.counts[drawn],
            n_threads=question.n_threads,
            has_missing=question.has_missing,
            n_columns=sample.rows.n_columns,
        )
        *_, found = question.find(rows, [len(centers)], EFFORTS_FOR_EACH_K["fast"], rng, None)
        fresh = found[len(centers)]
        if np.any(fresh.prices):
            return fresh.labels(rows)
        starts = [settled_on(rows, centers, None), fresh.centers]
        return min((rows.assign(start) for start in starts), key=itemgetter(1))[0]

    return mean_jaccards(solution.labels(sample.rows), cluster_again, question.n_bootstraps, rng)


def _confirmed(
    choice: ChoiceOfK,
    points: CountedPoints,
    question: Question,
    seed: int,
    listener: ListenerUntil,
) -> ChoiceOfK:
    """Settle the recommended centers on all rows, and ask other rows whether they are apart.

    Centers within limits of size stay those of the sample, and other rows find their own.
    """
    k, is_limited = choice.recommended, question.find is not centers_by_k
    found: dict[int, Solution] = {}
    if not is_limited:
        watch = points.watch(listener.heard)
        for size, given in choice.centers.items():
            centers = points.as_searched(given)
            if size == k:
                centers = settled_on(points.rows, centers, watch)
            found[size] = Solution(centers, points.rows.spread(centers))
        whole = Study(points.rows, points.n_weighing, found, question, seed, listener.heard)
        table = choice.table | {"inertia": points.inertias(whole.inertias)}
        choice = replace(choice, table=table, centers=points.centers(found))
    if choice.certainty == "not clear":
        return choice
    others = points.sample(choice.n_sampled, seed, question)
    if is_limited:
        rng = np.random.RandomState(seed)
        *_, found = question.find(others.rows, [k], question.effort, rng, listener.heard)
    found = {k: found[k]}
    study = Study(others.rows, others.n_weighing, found, question, seed, listener.heard)
    if by_separation(study).chosen is not None:
        return choice
    return _unclear(choice, "in another sample of the rows not all clusters are apart")


def _unclear(choice: ChoiceOfK, why: str) -> ChoiceOfK:
    return replace(choice, certainty="not clear", why=why)


class _Stopped(Exception):
    """Raised when the callback asks to stop."""


class _OutOfTime(Exception):
    """Raised when time is up."""


class ListenerUntil(Listener):
    """Hears of sweeps, counted as if of one fit, until it is time to stop."""

    def __init__(
        self,
        callback: Callback | None,
        end: float,  # on the monotonic clock
        ends_on: tuple[type[BaseException], ...] = (),  # besides, with what was found until then
    ) -> None:
        super().__init__(callback)
        self.end = end
        self.ends_on: tuple[type[BaseException], ...] = (_Stopped, _OutOfTime, *ends_on)
        self._sweeps = itertools.count(1)
        self.may_end = callback is not None or end < math.inf

    @property
    def heard(self) -> Callback | None:
        """What to call after each sweep, if that may end the choice."""
        return self.on_sweep if self.may_end else None

    def is_late(self) -> bool:
        """Return whether time is up."""
        return time.monotonic() >= self.end

    def on_sweep(self, state: SweepState) -> None:
        """Raise if the callback asks to stop, or time is up."""
        if self(state._replace(run=0, sweep=next(self._sweeps))):
            raise _Stopped
        if self.is_late():
            raise _OutOfTime


def _search(
    rows: Points,
    question: Question,
    rng: np.random.RandomState,
    callback: Callback | None,
    listener: ListenerUntil,
) -> tuple[dict[int, Solution], bool]:
    """Find centers for each k, or for some or none if the search is stopped."""
    found: dict[int, Solution] = {}
    sizes, effort = question.sizes, question.effort
    n_sizes = len(sizes)
    try:
        listener.phase(f"1 of {n_sizes} numbers of clusters", 0, n_sizes)
        for found in question.find(rows, sizes, effort, rng, callback):
            n_found = len(found)  # a stop keeps them
            ahead = f"{n_found + 1} of {n_sizes} numbers of clusters"
            ahead = ahead if n_found < n_sizes else "improving from one to the next"
            listener.phase(ahead, n_found, n_sizes)
    except listener.ends_on:
        if not found and not listener.may_end:
            raise
        return found, True
    return found, False


def _evaluate(
    study: Study, names: list[str], was_stopped: bool, listener: ListenerUntil
) -> tuple[dict[str, Evaluation], bool]:
    """Evaluate the criteria; after a stop only those that follow from the inertias have values."""
    evaluations: dict[str, Evaluation] = {}
    for number, name in enumerate(names):
        listener.phase("comparing the numbers of clusters", number, len(names))
        was_stopped = was_stopped or listener.is_late()
        try:
            if was_stopped and CRITERIA[name].looks_at_points:
                raise _Stopped
            evaluations[name] = CRITERIA[name].evaluate(study)
        except listener.ends_on:
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
    separation = evaluations.get("separation")
    certainty, why = _certainty(chosen, separation, is_largest=recommended == study.sizes[-1])
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
        certainty=certainty,
        why=why,
        centers=points.centers(study.found),
    )


def _with_what_is_missing(
    choice: ChoiceOfK, n_tried: int, n_sizes: int, evaluations: dict[str, Evaluation]
) -> ChoiceOfK:
    """Say what a search that was stopped has not tried, in place of other reasons."""
    missing = [
        name.replace("_", " ")
        for name, evaluation in evaluations.items()
        if CRITERIA[name].looks_at_points and np.isnan(evaluation.values).all()
    ]
    lacks = [f"it tried {n_tried or 'none'} of {n_sizes} values of k"] * (n_tried < n_sizes)
    lacks += [f"{'and' if lacks else 'it'} did not evaluate {', '.join(missing)}"] * bool(missing)
    lacks = lacks or ["it did not finish improving the clusters"]
    return _unclear(choice, f"the search ended early: {', '.join(lacks)}")


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


def _certainty(
    chosen: dict[str, int | None], separation: Evaluation | None, *, is_largest: bool
) -> tuple[Literal["clear", "at least", "not clear"], str]:
    """Say how certain the recommended k is, and why."""
    if separation is None:
        return "not clear", "whether its clusters are separate is unknown without the separation"
    if (chosen["separation"] or 1) == 1:
        return "not clear", (
            "at no k above one that was tried are all clusters apart: there may be one cluster, or "
            "clusters that overlap or are too small"
        )
    if is_largest:
        return "at least", "it is the largest k tried, so that there may be more clusters"
    if separation.is_least:
        return "at least", "some of its clusters may be two that touch"
    return "clear", "any two of its clusters are further apart than halves of one would be"
