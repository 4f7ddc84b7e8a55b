"""Search beyond one descent: where a search looks, and the starts that it makes.

A search descends from several seeds, moves the solutions, and crosses them; `moves` has the list.
It needs of points a descent from centers by sweeps, the objective of centers, and the error and
utility of each. Moves of single points and swaps are an ability of some points (`Points.moves`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from powermeans.engine.anneal import Result, anneal
from powermeans.engine.fit import Fit
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
from powermeans.points.nearby import NearbyPoints
from powermeans.points.protocol import Elsewhere, Points, sampler_of
from powermeans.types import FloatArray

# Of a search along axes, which must save more than it takes to find them.
_SWEEPS_OF_A_START = 60


def search(points: Points, effort: str, fit: Fit) -> Result:
    """Search with an effort; with little time, as a fast fit does and then with the effort.

    So no effort ends higher than a fast fit in the same time.
    """
    if fit.end == math.inf or effort == "fast":
        return _searched(points, effort, fit)
    history = fit.history
    quick = _searched(points, "fast", fit)
    if quick.was_stopped:
        return quick
    if quick.nearby is None:
        history.phase("final sweeps")
        end = anneal(points, quick.centers, fit.stages[-1:], fit)
        quick = replace(quick, centers=end.centers, was_stopped=end.was_stopped, reason=end.reason)
        history.keep(quick.centers)
    if quick.was_stopped:
        return quick
    history.begin_anew()
    try:
        found = _searched(points, effort, fit)
    finally:
        if history.centers is None:
            history.keep(quick.centers)
    if points.spread(found.centers).error.sum() < points.spread(quick.centers).error.sum():
        return found
    history.keep(quick.centers)
    return replace(found, centers=quick.centers)


def _searched(points: Points, effort: str, fit: Fit) -> Result:
    """Search among all points, in a sample of them, or near the centers that each point has."""
    seeds = fit.seeds
    efforts = [one.from_seeds(seeds.n_centers, seeds.are_given) for one in EFFORTS[effort]]
    whole = Search(points, fit.stages, fit, least_gain=efforts[0].least_gain)
    for move in (*OF_EACH_START, *OF_THE_BEST):
        fit.history.moves[move.__name__] += 0
    solutions, nearby, reason = list[FloatArray](), None, "the search ended"
    try:
        if not seeds.are_given and is_nearby(points, seeds.n_centers, effort):
            nearby = _search_nearby(whole, efforts[0])
        elif (place := _place(whole, efforts[0])) is not None:
            solutions = _search_in_place(whole, place, efforts)
        else:
            draw = partial(seeds.draw, points, fit)
            solutions = [one.centers for one in extend(whole, [], draw, efforts)[-1]]
    except SearchStopped as stopped:
        reason = str(stopped)
    assert fit.history.centers is not None, "the first sweep was complete"
    return Result(
        fit.history.centers,
        reason,
        was_stopped=reason != "the search ended",
        solutions=solutions,
        n_starts=efforts[0].n_starts,
        nearby=nearby,
    )


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
            search.fit.history.phase(name, n_made, n_expected)
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

    rows: Points
    lifted: Callable[[FloatArray], FloatArray] | None = None  # centers with all features
    leaves_out: bool = False  # whether distances lack some of the variance


def _place(whole: Search, effort: Effort) -> Place | None:
    """Return a sample of the points, points along their axes, or both; None for all as they are."""
    sample = _sample(whole, effort)
    if whole.fit.seeds.are_by_default:
        rows = whole.rows if sample is None else sample
        seen = along_axes(rows, whole.fit.seeds.n_centers, _SWEEPS_OF_A_START * effort.n_starts)
        if seen is not None:
            return Place(seen.rows, seen.lifted, seen.leave_out)
    return None if sample is None else Place(sample)


def n_sampled(rows: Points, n_centers: int, effort: Effort) -> int:
    """Return how many points to sample and to search among, or none to search among all."""
    n_distinct, n_values = rows.n_distinct, values_per_point(rows)
    may_sample = rows.elsewhere is not None or (rows.sampler and rows.moves)
    if not may_sample or n_distinct * n_values <= effort.most_values:
        return 0
    at_least = max(THRESHOLDS.least_sampled, THRESHOLDS.sampled_for_each_center * n_centers)
    n_drawn = max(int(effort.most_values / n_values), at_least)
    if n_distinct * n_centers * (n_values + THRESHOLDS.feature_cost) > THRESHOLDS.costly_sweep:
        share = n_distinct // THRESHOLDS.smallest_share_sampled
        n_drawn = min(n_drawn, max(share, THRESHOLDS.fewest_for_each_center * n_centers))
    return n_drawn if n_drawn < n_distinct else 0


def values_per_point(rows: Points) -> float:
    """Return the mean number of stored values that a sweep reads per point."""
    return min(rows.n_features, (rows.n_stored + rows.n_features) / rows.n_points)


def _sample(whole: Search, effort: Effort) -> Points | None:
    """Return a sample to search in, or None where all points are searched."""
    n_drawn = n_sampled(whole.rows, whole.fit.seeds.n_centers, effort)
    if (elsewhere := whole.rows.elsewhere) is not None:
        return _brought(whole, elsewhere, n_drawn)
    if not n_drawn:
        return None
    whole.fit.history.phase("drawing a sample")
    drawn, weights = drawn_sample(whole.rows, n_drawn, whole.fit.rng)
    sample = sampler_of(whole.rows).some(drawn, weights)
    is_varied = 2 * sample.n_distinct >= n_drawn  # or some points outweigh all others
    return sample if is_varied else None


def _brought(whole: Search, elsewhere: Elsewhere, n_drawn: int) -> Points | None:
    """Return a sample of the points, or all, in one memory; None where it would be large."""
    rows = whole.rows
    if (n_drawn or rows.n_points) * values_per_point(rows) > THRESHOLDS.most_values_brought:
        return None
    if not n_drawn:
        return elsewhere.together()
    whole.fit.history.phase("drawing a sample")
    return elsewhere.opened(*raced_sample(rows, n_drawn, whole.fit.rng))


def _search_in_place(whole: Search, place: Place, efforts: Sequence[Effort]) -> list[FloatArray]:
    """Search in a place, let all points choose among what it found, and return that."""
    found = _found_in(whole, place, efforts)
    if whole.fit.seeds.are_given:
        found[0].append(whole.fit.seeds.draw(whole.rows, whole.fit))
    whole.fit.history.phase("comparing solutions on all rows")
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


def _found_in(whole: Search, place: Place, efforts: Sequence[Effort]) -> list[list[FloatArray]]:
    """Return the centers that are left in a place after each effort, with all features."""
    fit, lifted, is_all = whole.fit, place.lifted, place.rows.n_points == whole.rows.n_points
    there = replace(
        fit,
        as_searched=lifted,
        rules_apply=fit.rules_apply and is_all and not place.leaves_out,
    )
    draw = partial(fit.seeds.draw, whole.rows, fit, place.rows)
    try:
        left = extend(replace(whole, rows=place.rows, fit=there), [], draw, efforts)
    finally:
        if lifted is not None:
            fit.history.widen(lifted)
    if lifted is None:
        return [[solution.centers for solution in several] for several in left]
    sweep = whole.short_lloyd(max_iter=1)  # in the other directions centers are still at the mean
    return [[whole.descend(lifted(one.centers), last=sweep) for one in several] for several in left]


# Near many centers.


def is_nearby(rows: Points, n_centers: int, effort: str) -> bool:
    """Return whether a search from drawn seeds looks only at the centers near each point."""
    work = rows.n_points * n_centers * rows.n_features
    is_large = n_centers >= THRESHOLDS.many_centers and work >= THRESHOLDS.least_work_nearby
    return effort == "fast" and is_large and rows.cells is not None


def _search_nearby(whole: Search, effort: Effort) -> NearbyPoints:
    """Add and remove centers while that gains, and return the rows that look near centers."""
    rows, fit, seeds = whole.rows, whole.fit, whole.fit.seeds
    if seeds.are_by_default:
        centers, labels = TreeSeeds().planted(rows, seeds.n_centers, fit.rng, fit.seconds_left)
    else:
        centers = seeds.draw(rows, fit)
        labels, _ = rows.assign(centers)
    nearby = NearbyPoints(rows, centers, labels)
    whole.fit.history.phase("improving")
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
