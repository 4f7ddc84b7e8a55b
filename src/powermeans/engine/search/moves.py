"""The moves of a search: each takes a solution and returns one that is no worse.

Annealing cannot carry a center from one side of the data to the other; these moves can. A new move
is a function here and an entry in one of the two lists at the end. It takes random numbers from
``search.fit.rng``, lets centers settle by ``search.descend``, which raises once the fit is over,
and counts its steps by ``search.count(move)``: a fitted model then has the number as
``spent_.moves["move"]``.
"""

import math
from collections.abc import Callable
from operator import attrgetter

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans.engine.search.effort import THRESHOLDS, Effort
from powermeans.engine.search.state import Search, Solution, different
from powermeans.types import FloatArray, IndexArray, Labels

Move = Callable[[Search, Solution, Effort], Solution]

# Breathing adds and removes this many centers, or one in so many if that is more.
_LEAST_ADDED, _CENTERS_FOR_EACH_ADDED = 5, 5
PASSES_OF_SINGLE_MOVES = 10


def swaps(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Dissolve one cluster and split another, with moves of single points (Hartigan 1975).

    It counts the swaps that gained.
    """
    if search.moves is None:
        return solution
    return _swapped(search, solution, effort, effort.n_swaps)


def breathing(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Add centers where the error is largest and remove the least useful, where none can swap.

    This is the breathing k-means algorithm (Fritzke 2020).
    """
    return solution if search.moves is not None else breathed(search, solution)


def annealed_breathing(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Breathe again from the best solutions, with a short annealing before each descent."""
    if search.moves is not None:
        return solution
    n_annealed = min(effort.n_annealed, len(search.population))
    for i in range(n_annealed):
        name = f"improving solution {i + 1} of {n_annealed} again"
        search.fit.history.phase(name, i, n_annealed)
        search.begin(search.population[i])
        search.population[i] = breathed(search, search.population[i], annealed=True)
    search.population = different(search.population)
    return search.best


def crossings(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Cross two solutions and improve the child, until several in a row gain nothing.

    A child that betters the worst solution replaces it (Gribel & Vidal 2019, "HG-means").
    """
    population = search.population
    if search.has_agreed or len(population) < 2:
        return solution
    if len(population[0].centers) > THRESHOLDS.many_centers:
        return solution
    population.sort(key=attrgetter("inertia"))
    search.begin(population[0])
    n_fruitless = 0
    while n_fruitless < effort.n_crossings and population[0].inertia > search.perfect:
        search.fit.history.phase("crossing solutions", n_fruitless, effort.n_crossings)
        child = _child(search, population, effort)
        gains = child.betters(population[0], by=effort.least_gain)
        n_fruitless = 0 if gains else n_fruitless + 1
        if child.betters(population[0]):
            search.accept(child)
        if child.betters(population[-1]) and child.is_new_among(population):
            population[-1] = child
            population.sort(key=attrgetter("inertia"))
    return population[0]


def single_moves(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Move single points to other clusters until none gains, or for some passes (Hartigan 1975).

    It counts the points that moved, also those before swaps.
    """
    if search.moves is None:
        return solution
    search.fit.history.phase("moving single rows")
    moved = search.moves.move_points(solution.centers, PASSES_OF_SINGLE_MOVES)
    search.count(single_moves, moved.n_moves)
    better = search.measured(moved.centers)
    return better if better.betters(solution) else solution


# A search moves each of its starts by the first list, one move after another, and the best of them
# by the second: crossings need what breathing left, and single moves come last, so that a search
# ends where none gains. A move of the best puts what it finds into `search.population` too, where
# crossings look. Names must differ, since moves are counted by them.
OF_EACH_START: tuple[Move, ...] = (swaps, breathing)
OF_THE_BEST: tuple[Move, ...] = (annealed_breathing, crossings, single_moves)


def improved(search: Search, solution: Solution, effort: Effort) -> Solution:
    """Begin a chain of solutions, and move the start."""
    search.begin(solution)
    for move in OF_EACH_START:
        solution = move(search, solution, effort)
        search.accept(solution)
    return solution


# What moves consist of.


def breathed(search: Search, solution: Solution, *, annealed: bool = False) -> Solution:
    """Add and remove fewer and fewer centers, and return a solution that is no worse.

    After a step that gains too little, the next moves two thirds as many.
    """
    n_added = n_to_add(len(solution.centers))
    while n_added > 0 and solution.inertia > search.perfect:
        better = added_and_removed(search, solution, n_added, annealed=annealed)
        search.accept(better)
        if not better.betters(solution, by=search.least_gain):
            n_added = 2 * n_added // 3
        solution = better
    return solution


def n_to_add(n_centers: int) -> int:
    """Return how many centers the first step of breathing adds and removes."""
    return min(max(_LEAST_ADDED, n_centers // _CENTERS_FOR_EACH_ADDED), n_centers // 2)


def added_and_removed(
    search: Search, solution: Solution, n_added: int, *, annealed: bool = False
) -> Solution:
    """Add centers and descend, remove as many and descend; return the better solution.

    Most of these steps gain nothing, so both descents are short.
    """
    annealing = search.annealing(n_powers=12, growth=1.2) if annealed else []
    more = _with_centers_added(search, solution, n_added)
    more = search.descend(more, annealing, search.short_lloyd(max_iter=3))
    lists = None if search.lists is None else search.lists(more)
    removed = least_useful(search.measured(more), n_added, lists)
    left = np.delete(more, removed, axis=0)
    left = search.descend(left, annealing, search.short_lloyd(max_iter=6))
    search.count(annealed_breathing if annealed else breathing)
    if search.fit.history.records[-1].inertia >= solution.inertia:
        # Most steps end here: the last sweep tells without another one to measure it.
        return solution
    better = search.measured(left)
    return better if better.betters(solution) else solution


def _with_centers_added(search: Search, solution: Solution, n_added: int) -> FloatArray:
    """Add a new center close to each of those with the largest error.

    They are a hundredth of the root mean squared error apart.
    """
    rows = search.rows
    worst = (-solution.spread.error).argsort(kind="stable")[:n_added]
    pushes = search.fit.rng.standard_normal((n_added, rows.n_features))
    pushes /= _row_norms(pushes)[:, None]
    root_mean_square = math.sqrt(solution.inertia / rows.total_weight)
    added = solution.centers[worst] + 0.01 * root_mean_square * rows.unit_steps() * pushes
    return np.concatenate([solution.centers, added])


def least_useful(solution: Solution, n_removed: int, lists: Labels | None = None) -> IndexArray:
    """Return the centers of least utility, without neighbours of one another if possible.

    Neighbours are those in the lists, which begin with the center itself, or any without lists.
    """
    centers = solution.centers
    if lists is None:
        nearest = nearest_neighbour_distances(centers)
    else:
        nearest = _row_norms(centers - centers[lists[:, 1]])
    # Two neighbours may each be useless only while the other is there.
    limit = 1.1 * float(nearest.mean())
    is_frozen = np.zeros(len(centers), dtype=bool)
    removed: list[int] = []
    for least in solution.spread.utility.argsort(kind="stable"):
        if len(removed) == n_removed:
            break
        if is_frozen[least]:
            continue
        removed.append(int(least))
        is_frozen[least] = True
        others = np.arange(len(centers)) if lists is None else lists[least]
        or_near = is_frozen.copy()
        or_near[others[_row_norms(centers[others] - centers[least]) < limit]] = True
        # Freeze neighbours only while enough others can be removed.
        if len(centers) - np.count_nonzero(or_near) >= n_removed - len(removed):
            is_frozen = or_near
    return np.array(removed)


def nearest_neighbour_distances(centers: FloatArray) -> FloatArray:
    """Return the distance from each of at least two centers to the nearest other."""
    nearest = np.empty(len(centers))
    step = max(1, 2**20 // len(centers))  # blocks of distances of 8 MiB
    for start in range(0, len(centers), step):
        rows = slice(start, start + step)
        distances = cdist(centers[rows], centers)
        distances[np.arange(len(distances)), np.arange(start, start + len(distances))] = np.inf
        nearest[rows] = distances.min(axis=1)
    return nearest


def _row_norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.add.reduce(np.square(rows), axis=1)))


def _swapped(search: Search, solution: Solution, effort: Effort, n_swaps: int) -> Solution:
    """Move points near borders, and then centers; return the better solution."""
    moves = search.moves
    assert moves is not None, "these rows swap"
    moved = moves.move_points(solution.centers, 2)  # swaps move points too, near their centers
    n_centers, n_features = moved.centers.shape
    cost = n_features + THRESHOLDS.feature_cost
    of_sweeps = effort.n_sweeps_of_swaps * search.rows.n_distinct * n_centers
    most = max(of_sweeps, THRESHOLDS.work_of_swaps / cost)
    least = THRESHOLDS.work_not_noticed / cost
    found = moves.swap_centers(moved.centers, n_swaps, most, effort.least_gain, least)
    search.count(single_moves, moved.n_moves)
    search.count(swaps, found.n_moves)
    swapped = search.measured(found.centers)
    return swapped if swapped.betters(solution) else solution


def _child(search: Search, population: list[Solution], effort: Effort) -> Solution:
    """Cross two parents, taking each center from either, and improve the child."""
    rng = search.fit.rng
    first, second = rng.choice(len(population), 2, replace=False)
    mine, theirs = population[first].centers, population[second].centers
    matched = theirs[match_centers(mine, theirs)]
    crossed = np.where(rng.uniform(size=(len(mine), 1)) < 0.5, mine, matched)
    search.count(crossings)
    child = search.measured(search.descend(crossed))
    if search.moves is not None:
        return _swapped(search, child, effort, effort.n_swaps // 2)
    return added_and_removed(search, child, min(_LEAST_ADDED, len(mine) // 2))


def match_centers(centers: FloatArray, others: FloatArray) -> IndexArray:
    """Return the permutation of the others that is nearest to the centers, by squared distances."""
    _, matched = linear_sum_assignment(cdist(centers, others, "sqeuclidean"))
    return np.asarray(matched)
