"""Colorings of a graph: no two neighbors have the same color, and each color costs its node.

Nodes are points, or groups of points, and colors are clusters. Kempe's chain of a node towards a
color has the nodes that must change between two colors so that it can take the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from powermeans.types import FloatArray, IndexArray

# What an exact search may try, each a color of one node: for any coloring, and for the cheapest.
MOST_TRIED = 20_000
_MOST_TRIED_FOR_LESS = 500
_FEW_NODES = 50
# A gain below this share of the cost is rounding.
_ROUNDING = 1e-12


class NoColoringError(Exception):
    """These nodes have no coloring: a clique, or for another reason; or none was found in time."""

    def __init__(self, nodes: Sequence[int], *, is_clique: bool, is_certain: bool = True) -> None:
        super().__init__(nodes)
        self.nodes, self.is_clique, self.is_certain = nodes, is_clique, is_certain


@dataclass(frozen=True)
class Graph:
    """An undirected graph of distinct edges (n_edges, 2), each between two nodes."""

    edges: IndexArray
    n_nodes: int

    @cached_property
    def neighbors(self) -> dict[int, list[int]]:
        """The neighbors of each node that has any."""
        found: dict[int, list[int]] = {}
        for start, end in self.edges.tolist():
            found.setdefault(start, []).append(end)
            found.setdefault(end, []).append(start)
        return found

    @cached_property
    def component_of(self) -> IndexArray:
        """The connected component of each node."""
        return components(self.edges, self.n_nodes)

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The nodes of each component that has an edge."""
        found: dict[int, list[int]] = {}
        for node in sorted(self.neighbors):
            found.setdefault(int(self.component_of[node]), []).append(node)
        return found

    def clashing(self, colors: IndexArray) -> list[list[int]]:
        """Return the nodes of each component in which two neighbors have the same color."""
        start, end = self.edges.T
        clashes = colors[start] == colors[end]
        numbers = np.unique(self.component_of[start[clashes]]).tolist()
        return [self.members[number] for number in numbers]

    def chains(
        self, wishes: Iterable[tuple[int, int]], colors: IndexArray
    ) -> Iterator[tuple[tuple[int, int], IndexArray]]:
        """Yield two colors for each wish of a node, and Kempe's chain, unless that came before.

        These nodes must change between the two colors, as they are then, so that the node can.
        """
        seen: set[tuple[int, int]] = set()
        for node, color in wishes:
            own = int(colors[node])
            if color == own or (node, color) in seen:
                continue
            found, waiting = {node}, [node]
            while waiting:
                for other in self.neighbors.get(waiting.pop(), ()):
                    if other not in found and colors[other] in (own, color):
                        found.add(other)
                        waiting.append(other)
            chain = np.array(sorted(found))
            seen.update(zip(chain.tolist(), (own + color - colors[chain]).tolist(), strict=True))
            yield (own, color), chain

    def cheapest(self, nodes: Sequence[int], cost: FloatArray, colors: IndexArray) -> IndexArray:
        """Return a coloring of a component that costs at most what the given one does.

        Row i of the cost, (n_nodes, n_colors), belongs to node i of the nodes. The result is the
        cheapest of all, unless there are too many for an exact search; exchanges go on then.
        """
        branches = _Branches(self, nodes, cost, colors[nodes])
        if branches.is_exact:
            return branches.best
        tried = (branches.best, _renamed(colors[nodes], cost))
        return self._exchanged(nodes, cost, min(tried, key=lambda one: _price(cost, one)))

    def _exchanged(self, nodes: Sequence[int], cost: FloatArray, colors: IndexArray) -> IndexArray:
        """Exchange along Kempe chains as long as that lowers the cost."""
        found = np.zeros(self.n_nodes, dtype=np.intp)
        place = np.zeros(self.n_nodes, dtype=np.intp)
        found[nodes], place[nodes] = colors, np.arange(len(nodes))
        least, gained = _ROUNDING * _price(cost, colors), True
        while gained:
            gained = False
            own = cost[place[nodes], found[nodes]]
            places, wanted = np.nonzero(cost < own[:, None] - least)
            wishes = zip(np.take(nodes, places).tolist(), wanted.tolist(), strict=True)
            for pair, chain in self.chains(wishes, found):
                rows, former = place[chain], found[chain]
                new = sum(pair) - former
                if (cost[rows, new] - cost[rows, former]).sum() < -least:
                    found[chain], gained = new, True
        return found[nodes]


class _Branches:
    """Branch and bound for the cheapest coloring of some nodes, from one that is known.

    The node whose second color would cost most more comes first. No coloring costs less than the
    nodes so far and, for each other node, the cheapest color that its neighbors have not taken.
    """

    def __init__(
        self, graph: Graph, nodes: Sequence[int], cost: FloatArray, known: IndexArray
    ) -> None:
        place = {node: i for i, node in enumerate(nodes)}
        self._near = [[place[other] for other in graph.neighbors[node]] for node in nodes]
        # One of the cheapest is free, whatever the neighbors take.
        self._cheapest = [
            sorted(zip(prices, range(len(prices)), strict=True))[: len(near) + 1]
            for prices, near in zip(cost.tolist(), self._near, strict=True)
        ]
        self._colors = [-1] * len(nodes)
        self._left_to_try = _MOST_TRIED_FOR_LESS
        self.best, self._price = known, _price(cost, known)
        self.is_exact = len(nodes) <= _FEW_NODES
        if self.is_exact:
            self._branch(set(range(len(nodes))), 0.0)

    def _branch(self, left: set[int], price: float) -> None:
        if not left:
            self.best, self._price = np.array(self._colors, dtype=np.intp), price
            return
        free = {i: self._free(i) for i in left}
        if not all(free.values()):
            return
        least = price + sum(colors[0][0] for colors in free.values())
        node = max(left, key=lambda i: free[i][1][0] - free[i][0][0] if free[i][1:] else np.inf)
        for cost, color in free[node]:
            if least - free[node][0][0] + cost >= self._price * (1 - _ROUNDING):
                return
            self._left_to_try -= 1
            self.is_exact = self._left_to_try > 0
            if not self.is_exact:
                return
            self._colors[node] = color
            self._branch(left - {node}, price + cost)
            self._colors[node] = -1

    def _free(self, i: int) -> list[tuple[float, int]]:
        """Return the colors that no neighbor has, each after its cost, the cheapest first."""
        taken = {self._colors[other] for other in self._near[i]}
        return [one for one in self._cheapest[i] if one[1] not in taken]


def components(edges: IndexArray, n_nodes: int) -> IndexArray:
    """Return the connected component of each node, numbered by their first nodes."""
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(n_nodes, n_nodes))
    labels = connected_components(graph, directed=False)[1]
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which].astype(np.intp)


def any_coloring(graph: Graph, n_colors: int) -> IndexArray:
    """Return a coloring with so many colors; nodes without neighbors have color zero.

    A node with fewer neighbors than colors can wait until all others are colored, and so on: what
    is left is the core. It is colored by the node with the fewest free colors first (Brélaz 1979),
    with backtracking.
    """
    colors = np.zeros(graph.n_nodes, dtype=np.intp)
    core, waiting = _core(graph.neighbors, n_colors)
    colors[[*core, *waiting]] = -1
    if clique := _large_clique(core, n_colors):
        raise NoColoringError(clique, is_clique=True)
    numbers = graph.component_of[list(core)]
    for number in np.unique(numbers).tolist():
        part = {v: core[v] for v in core if graph.component_of[v] == number}
        for node, color in _colored(part, n_colors, graph.members[number]).items():
            colors[node] = color
    for node in reversed(waiting):
        colors[node] = _first_free(colors[graph.neighbors[node]].tolist(), n_colors)
    return colors


def _core(
    neighbors: Mapping[int, list[int]], n_colors: int
) -> tuple[dict[int, set[int]], list[int]]:
    """Return the graph without nodes that can wait, and these in the order of their removal."""
    core = {node: set(near) for node, near in neighbors.items()}
    ready = [node for node, near in core.items() if len(near) < n_colors]
    waiting = []
    while ready:
        node = ready.pop()
        waiting.append(node)
        for other in core.pop(node):
            core[other].discard(node)
            if len(core[other]) == n_colors - 1:
                ready.append(other)
    return core, waiting


def _large_clique(core: Mapping[int, set[int]], n_colors: int) -> list[int]:
    """Return more nodes than colors, all neighbors, if a greedy search finds them."""
    for node, near in core.items():
        clique, common = [node], set(near)
        while common and len(clique) + len(common) > n_colors:
            nearest = max(sorted(common), key=lambda other: len(core[other] & common))
            clique.append(nearest)
            common &= core[nearest]
            if len(clique) > n_colors:
                return sorted(clique)
    return []


def _colored(
    core: Mapping[int, set[int]], n_colors: int, component: Sequence[int]
) -> dict[int, int]:
    """Color a core by backtracking without recursion, or raise."""
    nodes = list(core)
    place = {node: i for i, node in enumerate(nodes)}
    near = [np.array([place[other] for other in core[node]]) for node in nodes]
    degree = np.array([len(others) for others in near])
    taken = np.zeros((len(nodes), n_colors), dtype=np.intp)  # by how many neighbors
    colors = np.full(len(nodes), -1)
    path: list[tuple[int, list[int]]] = []
    for _ in range(MOST_TRIED + len(nodes)):
        urgency = np.count_nonzero(taken, axis=1) + degree / (degree.max() + 1)
        node = int(np.argmax(np.where(colors < 0, urgency, -1.0)))
        n_told_apart = min(int(colors.max()) + 2, n_colors)  # unused colors are alike
        path.append((node, np.flatnonzero(taken[node, :n_told_apart] == 0)[::-1].tolist()))
        while not path[-1][1]:
            path.pop()
            if not path:
                raise NoColoringError(component, is_clique=False)
            last = path[-1][0]
            taken[near[last], colors[last]] -= 1
            colors[last] = -1
        node, free = path[-1]
        colors[node] = free.pop()
        taken[near[node], colors[node]] += 1
        if len(path) == len(nodes):
            return dict(zip(nodes, colors.tolist(), strict=True))
    raise NoColoringError(component, is_clique=False, is_certain=False)


def _first_free(taken: Iterable[int], n_colors: int) -> int:
    return min(set(range(n_colors)).difference(taken))


def _renamed(colors: IndexArray, cost: FloatArray) -> IndexArray:
    """Return the same coloring with the names of its colors exchanged so that it costs least."""
    n_colors = cost.shape[1]
    by_color = np.zeros((n_colors, n_colors))
    np.add.at(by_color, colors, cost)
    renamed: IndexArray = linear_sum_assignment(by_color)[1]
    return renamed[colors]


def _price(cost: FloatArray, colors: IndexArray) -> float:
    return float(cost[np.arange(len(cost)), colors].sum())
