"""Search beyond one descent: where a search looks, and the starts that it makes.

A search descends from several seeds, moves the solutions, and crosses them; `moves` has the list.
It needs of rows a descent from centers by sweeps, the objective of centers, and the error and
utility of each. Moves of single points and swaps are an ability that rows may have (`Rows.moves`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from powermeans.engine.anneal import Callback, Stage, StageEnd, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.history import History, SweepState
from powermeans.engine.search.effort import EFFORTS, THRESHOLDS, Effort
from powermeans.engine.search.moves import (
    OF_EACH_START,
    OF_THE_BEST,
    added_and_removed,
    breathed,
    improved,
    n_to_add,
)
from powermeans.engine.search.state import Search, SearchStopped, Solution, different
from powermeans.engine.seeds.choose import drawn_sample
from powermeans.engine.seeds.samples import raced_sample
from powermeans.engine.seeds.tree import TreeSeeds
from powermeans.points.along_axes import along_axes
from powermeans.points.nearby import NearbyRows
from powermeans.points.protocol import Elsewhere, Rows, sampler_of
from powermeans.types import FloatArray

# Of a search along axes, which must save more than it takes to find them.
_SWEEPS_OF_A_START = 60


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the starts of a search come from."""

    n_centers: int
    draw: Callable[..., FloatArray]  # each call returns others, in a sample if one is passed
    are_given: bool = False  # by the user: each call returns the same
    are_by_default: bool = False  # by k-means++: a tree of samples stands for it near many centers


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, or one descent without a search."""

    ends: list[StageEnd]  # the last has the best centers
    # Different ones that were left, the first of which was best where it looked; none near centers.
    solutions: list[FloatArray] = field(default_factory=list)
    n_starts: int = 1
    nearby: NearbyRows | None = None  # the rows, where it looked only at the centers near each

    @property
    def centers(self) -> FloatArray:
        """The best centers."""
        return self.ends[-1].centers

    @property
    def was_stopped(self) -> bool:
        """Whether the callback asked to stop."""
        return self.ends[-1].was_stopped


def search(
    rows: Rows,
    seeds: Seeds,
    stages: Sequence[Stage],
    effort: str,
    fit: Fit,
    history: History,
    callback: Callback,
) -> Found:
    """Search with an effort; with little time, as a fast fit does and then with the effort.

    So no effort ends higher than a fast fit in the same time.
    """
    if fit.end == math.inf or effort == "fast":
        return _searched(rows, seeds, stages, effort, fit, history, callback)
    quick = _searched(rows, seeds, stages, "fast", fit, history, callback)
    if quick.was_stopped:
        return quick
    if quick.nearby is None:
        history.phase("final sweeps")
        quick = replace(quick, ends=anneal(rows, quick.centers, stages[-1:], history, callback))
        history.keep(quick.centers)
    if quick.was_stopped:
        return quick
    history.begin_anew()
    try:
        found = _searched(rows, seeds, stages, effort, fit, history, callback)
    finally:
        if history.centers is None:
            history.keep(quick.centers)
    if rows.spread(found.centers).error.sum() < rows.spread(quick.centers).error.sum():
        return found
    history.keep(quick.centers)
    return replace(found, ends=[replace(found.ends[-1], centers=quick.centers)])


def _searched(
    rows: Rows,
    seeds: Seeds,
    stages: Sequence[Stage],
    effort: str,
    fit: Fit,
    history: History,
    callback: Callback,
) -> Found:
    """Search among all points, in a sample of them, or near the centers that each point has."""
    efforts = [one.from_seeds(seeds.n_centers, seeds.are_given) for one in EFFORTS[effort]]
    whole = Search(rows, stages, fit, history, callback, least_gain=efforts[0].least_gain)
    for move in (*OF_EACH_START, *OF_THE_BEST):
        history.moves[move.__name__] += 0
    solutions, nearby, reason = list[FloatArray](), None, "the search ended"
    try:
        if not seeds.are_given and is_nearby(rows, seeds.n_centers, effort):
            nearby = _search_nearby(whole, seeds, efforts[0])
        elif (place := _place(whole, seeds, efforts[0])) is not None:
            solutions = _search_in_place(whole, place, seeds, efforts)
        else:
            solutions = [one.centers for one in extend(whole, [], seeds.draw, efforts)[-1]]
    except SearchStopped as stopped:
        reason = str(stopped)
    assert history.centers is not None, "the first sweep was complete"
    was_stopped = reason != "the search ended"
    end = StageEnd(history.centers, -math.inf, reason, was_stopped=was_stopped)
    return Found([end], solutions, efforts[0].n_starts, nearby)


def extend(
    search: Search,
    population: list[Solution],
    seeds: Callable[[], FloatArray],
    efforts: Sequence[Effort],
) -> list[list[Solution]]:
    """Go on from a population by one effort after another.

    Return the different solutions that are left after each, the best first. Each call of `seeds`
    gives other centers.
    """
    left = []
    for number, effort in enumerate(efforts):
        if number > 0:
            _settle(search, search.best)
        while not _has_enough(search, population, effort):
            centers, n_made = seeds(), len(population)
            n_expected = max(effort.n_starts, n_made + 1)
            name = f"improving, start {n_made + 1} of {n_expected}"
            search.history.phase(name, n_made, n_expected)
            # The first start is annealed.
            centers = search.descend(centers, search.stages[:-1] if n_made == 0 else ())
            population.append(improved(search, search.measured(centers), effort))
        search.has_agreed = _agree(search, population, effort)
        search.population = sorted(different(population), key=attrgetter("inertia"))
        for move in OF_THE_BEST:
            search.accept(move(search, search.best, effort))
        population = search.population
        left.append(different([search.best, *population]))
    return left


def _has_enough(search: Search, starts: Sequence[Solution], effort: Effort) -> bool:
    """Return whether no more starts are to be made."""
    if not starts:
        return False
    best = min(starts, key=attrgetter("inertia"))
    if best.inertia <= search.perfect:
        return True  # others could differ from it only by rounding
    if len(starts) < effort.n_starts:
        return _agree(search, starts, effort)
    is_small = search.moves is not None and search.is_cheap(len(best.centers))
    if not is_small or effort.n_agreeing == math.inf:
        return True
    n_equal = sum(not best.betters(other) for other in starts)
    return n_equal >= effort.n_agreeing or len(starts) >= THRESHOLDS.n_starts_of_small


def _agree(search: Search, starts: Sequence[Solution], effort: Effort) -> bool:
    """Return whether enough starts found the best to end them, and to cross nothing."""
    best = min(starts, key=attrgetter("inertia"))
    n_found = sum(not best.betters(other, by=effort.least_gain) for other in starts)
    return n_found >= effort.n_agreeing and not search.is_cheap(len(best.centers))


def _settle(search: Search, solution: Solution) -> None:
    """Descend from a solution as a fit does at its end, so that more effort ends no higher."""
    settled = search.measured(search.descend(solution.centers, last=search.stages[-1]))
    if settled.betters(search.best, by=0):
        search.begin(settled)


# In a sample, or along axes.


class Place(NamedTuple):
    """Where a search looks instead of at all points with all features."""

    rows: Rows
    lifted: Callable[[FloatArray], FloatArray] | None = None  # centers with all features
    leaves_out: bool = False  # whether distances lack some of the variance


def _place(whole: Search, seeds: Seeds, effort: Effort) -> Place | None:
    """Return a sample of the points, points along their axes, or both; None for all as they are."""
    sample = _sample(whole, seeds, effort)
    if seeds.are_by_default:
        rows = whole.rows if sample is None else sample
        seen = along_axes(rows, seeds.n_centers, _SWEEPS_OF_A_START * effort.n_starts)
        if seen is not None:
            return Place(seen.rows, seen.lifted, seen.leave_out)
    return None if sample is None else Place(sample)


def n_sampled(rows: Rows, n_centers: int, effort: Effort) -> int:
    """Return how many points to sample and to search among, or none to search among all."""
    n_places, n_values = rows.n_places, n_values_each(rows)
    may_sample = rows.elsewhere is not None or (rows.sampler and rows.moves)
    if not may_sample or n_places * n_values <= effort.most_values:
        return 0
    at_least = max(THRESHOLDS.least_sampled, THRESHOLDS.sampled_for_each_center * n_centers)
    n_drawn = max(int(effort.most_values / n_values), at_least)
    if n_places * n_centers * (n_values + THRESHOLDS.feature_cost) > THRESHOLDS.costly_sweep:
        share = n_places // THRESHOLDS.smallest_share_sampled
        n_drawn = min(n_drawn, max(share, THRESHOLDS.fewest_for_each_center * n_centers))
    return n_drawn if n_drawn < n_places else 0


def n_values_each(rows: Rows) -> float:
    """Return how many values a sweep reads of a point and of the centers beside it, in the mean."""
    return min(rows.n_features, (rows.n_stored + rows.n_features) / rows.n_points)


def _sample(whole: Search, seeds: Seeds, effort: Effort) -> Rows | None:
    """Return a sample to search in, or None where all points are searched."""
    n_drawn = n_sampled(whole.rows, seeds.n_centers, effort)
    if (elsewhere := whole.rows.elsewhere) is not None:
        return _brought(whole, elsewhere, n_drawn) if elsewhere.can_move else None
    if not n_drawn:
        return None
    whole.history.phase("drawing a sample")
    drawn, weights = drawn_sample(whole.rows, n_drawn, whole.fit.rng)
    sample = sampler_of(whole.rows).some(drawn, weights)
    is_varied = 2 * sample.n_places >= n_drawn  # or some points outweigh all others
    return sample if is_varied else None


def _brought(whole: Search, elsewhere: Elsewhere, n_drawn: int) -> Rows | None:
    """Return a sample of the points, or all, in one memory; None where it would be large."""
    rows = whole.rows
    if (n_drawn or rows.n_points) * n_values_each(rows) > THRESHOLDS.most_values_brought:
        return None
    if not n_drawn:
        return elsewhere.together()
    whole.history.phase("drawing a sample")
    return elsewhere.opened(*raced_sample(rows, n_drawn, whole.fit.rng))


def _search_in_place(
    whole: Search, place: Place, seeds: Seeds, efforts: Sequence[Effort]
) -> list[FloatArray]:
    """Search in a place, let all points choose among what it found, and return that."""
    found = _found_in(whole, place, seeds, efforts)
    if seeds.are_given:
        found[0].append(seeds.draw())
    whole.history.phase("comparing solutions on all rows")
    if place.leaves_out:
        whole.move_up_to(THRESHOLDS.most_values_swapped_at_end)
    for number, centers in enumerate(found):
        if number > 0:
            _settle(whole, whole.best)
            centers = [whole.descend(one) for one in centers]
        best = min(map(whole.measured, centers), key=attrgetter("inertia"))
        if place.leaves_out and whole.moves is not None:
            best = improved(whole, best, efforts[number])
        whole.begin(best)
        if number > 0:
            _settle(whole, best)
    if len(found) > 1:  # more effort ends no higher
        whole.begin(whole.best)
        breathed(whole, whole.best)
    return found[-1]


def _found_in(
    whole: Search, place: Place, seeds: Seeds, efforts: Sequence[Effort]
) -> list[list[FloatArray]]:
    """Return the centers that are left in a place after each effort, with all features."""
    lifted, draw = place.lifted, partial(seeds.draw, place.rows)

    def watch(state: SweepState) -> object:
        seen = state.widened(lifted) if whole.fit.listener and lifted is not None else state
        return whole.callback is not None and whole.callback(seen)

    did_apply, is_all = whole.fit.rules_apply, place.rows.n_points == whole.rows.n_points
    whole.fit.rules_apply = did_apply and is_all and not place.leaves_out
    try:
        left = extend(replace(whole, rows=place.rows, callback=watch), [], draw, efforts)
    finally:
        whole.fit.rules_apply = did_apply
        if lifted is not None:
            whole.history.widen(lifted)
    if lifted is None:
        return [[solution.centers for solution in several] for several in left]
    sweep = whole.short_lloyd(max_iter=1)  # in the other directions centers are still at the mean
    return [[whole.descend(lifted(one.centers), last=sweep) for one in several] for several in left]


# Near many centers.


def is_nearby(rows: Rows, n_centers: int, effort: str) -> bool:
    """Return whether a search from drawn seeds looks only at the centers near each point."""
    work = rows.n_points * n_centers * rows.n_features
    is_large = n_centers >= THRESHOLDS.many_centers and work >= THRESHOLDS.least_work_nearby
    return effort == "fast" and is_large and rows.cells is not None


def _search_nearby(whole: Search, seeds: Seeds, effort: Effort) -> NearbyRows:
    """Add and remove centers while that gains, and return the rows that look near centers."""
    rows, fit = whole.rows, whole.fit
    if seeds.are_by_default:
        centers, labels = TreeSeeds().planted(rows, seeds.n_centers, fit.rng, fit.seconds_left)
    else:
        centers = seeds.draw()
        labels, _ = rows.assign(centers)
    nearby = NearbyRows(rows, centers, labels)
    whole.history.phase("improving")
    least_gain = THRESHOLDS.least_gain_nearby
    search = replace(whole, rows=nearby, least_gain=least_gain, lists=nearby.lists)
    solution = search.measured(search.descend(centers, search.stages[:-1]))
    search.begin(solution)
    gains = True
    while gains and solution.inertia > search.perfect:
        better = added_and_removed(search, solution, n_to_add(seeds.n_centers) // 2)
        search.accept(better)
        gains = better.betters(solution, by=effort.least_gain)
        solution = better
    return nearby
