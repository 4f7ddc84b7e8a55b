"""Choose the number of clusters of points, wherever they are."""

from __future__ import annotations

import functools
import itertools
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, EffortForEachK, centers_by_k
from powermeans.choosing_k.choose import ListenerUntil, choose
from powermeans.choosing_k.counted import CountedPoints
from powermeans.choosing_k.evaluate import CRITERIA, Question
from powermeans.choosing_k.result import ChoiceOfK
from powermeans.engine.fit import Callback, random_numbers
from powermeans.engine.search.state import Solution
from powermeans.errors import ArgumentError, FewRowsError
from powermeans.mathematics.sums import Spread
from powermeans.methods.balanced.balanced_kmeans import BalancedKMeans
from powermeans.methods.documented import one_of
from powermeans.methods.power_kmeans import PowerKMeans
from powermeans.points.needs import FitNeeds, Measure, Needs
from powermeans.points.opening import MatrixLike
from powermeans.points.protocol import Points

_LIMITS = ("size_min", "size_max", "balance")


def choose_k(
    X: MatrixLike,
    k_range: Iterable[int] = range(2, 21),
    *,
    criteria: str | Iterable[str] = "all",
    sample_weight: ArrayLike | None = None,
    missing: Literal["error", "observed"] = "error",
    size_min: float | None = None,
    size_max: float | None = None,
    balance: float | None = None,
    effort: Literal["fast", "balanced", "thorough"] = "balanced",
    silhouette_size: int = 2_000,
    max_seconds: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> ChoiceOfK:
    """Cluster with each of several k, and recommend a number of clusters.

    Centers for all k are found together: the search for k + 1 begins at those for k, and vice
    versa, so that 19 values of k take a few times as long as one and the inertia never rises with
    k. Each criterion then chooses a k.

    The recommended k is the largest at which any two clusters are apart, as "separation" measures
    it, and further apart than the parts of one cluster of the same shape. A larger one, which "bic"
    or "dp_means" says, is recommended if any two of its clusters that touch are further apart than
    halves of one cluster of their shape. `certainty` is "clear", "at least" if there may be more
    clusters, as at the largest k tried, or "not clear" if there is no such k and "dp_means" makes
    the best guess; `why` explains it. With more than 30 000 rows, k is chosen on a sample and
    confirmed on all rows.

    A weight of three counts like three copies of a point, in samples too. Weights that add up to
    less than the number of their points are treated as shares of that number.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), path, chunks, PartedData, Dask
        The points. Scale the columns first, as for any clustering. A path, chunks, what `open_data`
        returns and Dask collections are read part by part. Words in a file that fits into memory
        are blurred at random, since words alone look like clusters.
    k_range : iterable of int, default=range(2, 21)
        The values of k to try, increasing, up to the number of distinct rows. Let the range extend
        beyond the largest k that you expect, without gaps. If it includes 1, "separation" and "bic"
        may choose it.
    criteria : str or iterable of str, default="all"
        The criteria to evaluate, or "all"; `powermeans.mathematics.criteria` has formulas and
        sources.

        - "separation": the largest k at which any two clusters are apart: further apart than the
          halves of one cluster, with a valley between them unless another criterion says this k.
        - "dp_means": the k with the least W(k) + λk for the longest range of penalties λ.
        - "bic": likelihood of round Gaussians, with a penalty for each parameter.
        - "calinski_harabasz": variance between clusters over variance within.
        - "silhouette": how much nearer points are to their own cluster than to the next.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative weights.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry, as in `PowerKMeans`. "bic" and "silhouette"
        cannot be computed with missing entries.
    size_min : float, optional
        Smallest size of a cluster, as in `BalancedKMeans`: clusters are found and judged within
        these limits, a k that they make impossible is left out, and `model()` returns a
        `BalancedKMeans` with the same limits. If k is chosen on a sample, the centers are those of
        the sample. If the search ends early, they may be those without limits.
    size_max : float, optional
        Largest size, likewise.
    balance : float, optional
        Preference for equal sizes, likewise.
    effort : {"fast", "balanced", "thorough"}, default="balanced"
        How much to search for lower inertia: "fast" adds and removes centers from k to k and
        improves each solution, "balanced" also seeds each k anew a few times, and "thorough" does
        more of this and crosses solutions.
    silhouette_size : int, default=2000
        The size of the sample for "silhouette", which compares all pairs.
    max_seconds : float, optional
        Choose k on a sample of the rows, as large as fits into about this time. If even the
        smallest sample takes longer, the result has the values of k tried so far, and the criteria
        that were evaluated or follow from the inertias; `was_stopped` is True, and `why` states
        what is missing. If not even the first k was finished, the result has that one, with the
        first rows as centers. Ctrl-C ends the search in the same way.
    random_state : int, RandomState instance or None, default=None
        An int makes the result the same each time. The k of a criterion does not depend on which
        others are evaluated.
    n_threads : int, optional
        As in `PowerKMeans`; the result does not depend on it.
    callback : callable, optional
        Called after each sweep with a `SweepState`, whose sweeps are counted across all k. If it
        returns True, the search ends as after `max_seconds`. ``powermeans.progress()`` shows how
        many numbers of clusters have been tried.

    Returns
    -------
    ChoiceOfK

    See Also
    --------
    DPMeans : Takes the price of a cluster instead of the number of clusters.
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

    With at least 100 of the 300 points in each cluster, there are at most three:

    >>> choice = choose_k(X, range(2, 11), size_min=100, random_state=0)
    >>> choice.table["k"].tolist()
    [2, 3]
    >>> choice.model(3).fit(X).sizes_.tolist()
    [100.0, 100.0, 100.0]
    """
    given = locals()
    constraints: dict[str, list[Any]] = {
        "silhouette_size": [Interval(Integral, 2, None, closed="left")],
        "missing": [one_of({"error", "observed"})],
        **{name: BalancedKMeans._parameter_constraints[name] for name in _LIMITS},
        "effort": [one_of(EFFORTS_FOR_EACH_K)],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
        "callback": [callable, None],
    }
    checked = {name: given[name] for name in constraints}
    validate_parameter_constraints(constraints, checked, caller_name="choose_k")
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    sizes, has_missing = _checked_sizes(k_range), missing == "observed"
    question = Question(
        sizes=sizes,
        criteria=_checked_criteria(criteria, has_missing=has_missing),
        effort=EFFORTS_FOR_EACH_K[effort],
        silhouette_size=silhouette_size,
        n_threads=n_threads,
        has_missing=has_missing,
    )
    listener = ListenerUntil(callback, end, ends_on=(KeyboardInterrupt,))
    needs = Needs(
        name="choose_k",
        offers_missing=True,
        measure=Measure(has_missing=has_missing, n_threads=n_threads),
        fit=FitNeeds(
            n_points=sizes[-1],
            must_differ=True,
            warns_of_scales=True,
            leaves_out_columns=True,
            tell=listener.part if listener.callbacks else None,
        ),
    )
    try:
        points = CountedPoints.of(X, sample_weight, needs)
    except FewRowsError as error:
        raise ArgumentError(
            f"has k={sizes[-1]}, and there are {error.n_rows} rows",
            f"pass numbers up to {error.n_rows}",
            argument="k_range",
            value=k_range,
        ) from error
    limits = {name: size for name in _LIMITS if (size := given[name]) is not None}
    make_model = PowerKMeans.from_centers
    if limits:
        question = _within(limits, question, points)
        make_model = functools.partial(BalancedKMeans.from_centers, **limits)
    with listener:
        choice = choose(points, question, random_numbers(random_state), listener)
    return replace(choice, make_model=make_model, missing=missing)


def _within(limits: dict[str, Any], question: Question, points: CountedPoints) -> Question:
    """Return the question with the k that the limits leave possible, found within these."""
    sizes, refusals = [], []
    for k in question.sizes:
        try:
            BalancedKMeans(k, **limits)._hard_limits(points.rows, points.unit)
            sizes.append(k)
        except ArgumentError as error:
            refusals.append(error)
    if not sizes:  # few clusters come nearest to a least size, many to a largest one
        raise next((one for one in refusals if one.argument == "size_min"), refusals[-1])
    model = BalancedKMeans(**limits)
    total = points.rows.total_weight / points.unit
    model.set_params(
        **{name: _as_share(getattr(model, name), total) for name in ("size_min", "size_max")},
        balance=model._balance(),
        effort="none",
        missing="observed" if question.has_missing else "error",
        n_threads=question.n_threads,
        random_state=0,
    )
    return replace(question, sizes=sizes, find=functools.partial(_centers_within, model))


def _as_share(size: Any, total: float) -> float | None:
    """Return a size as a share of the total, which samples can keep; None where it is no limit."""
    if size is None:
        return None
    share = size if 0 < size < 1 else size / total
    return float(share) if 0 < share < 1 else None


def _centers_within(
    model: BalancedKMeans,
    rows: Points,
    sizes: Sequence[int],
    effort: EffortForEachK,
    rng: np.random.RandomState,
    callback: Callback | None,
) -> Iterator[dict[int, Solution]]:
    """Yield centers as `centers_by_k` does, and in the end those within the limits of a model."""
    found: dict[int, Solution] = {}
    for found in centers_by_k(rows, sizes, effort, rng, callback):
        yield found
    model = clone(model).set_params(callback=callback)
    yield {k: _solution_within(model, rows, found[k]) if k > 1 else found[k] for k in sizes}


def _solution_within(model: BalancedKMeans, rows: Points, free: Solution) -> Solution:
    """Return a solution within the limits of a model, from one without."""
    everything, n_centers = np.arange(rows.n_points), len(free.centers)
    points, counts = rows.sample(everything), rows.sample_weight(everything)
    model.set_params(n_clusters=n_centers, init=free.centers)
    if model.size_max is not None:  # a row that was drawn often may exceed it in a sample
        model.set_params(size_max=max(model.size_max, counts.max() / rows.total_weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # copies of rows may miss limits that rows keep
        model.fit(points, sample_weight=counts)
    centers, labels = model.cluster_centers_.astype(np.float64), model.labels_
    errors = counts * np.square(model.transform(points)[everything, labels])
    spread = Spread(
        error=np.bincount(labels, errors, n_centers).astype(np.float64),
        utility=np.full(n_centers, math.nan),
        weights=np.bincount(labels, counts, n_centers).astype(np.float64),
    )
    return Solution(centers, spread, model.prices_)


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
    possible = [name for name, one in CRITERIA.items() if one.takes_missing or not has_missing]
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
