"""Colorings of a graph: no two neighbors have the same color, and each color costs its node.

Nodes are points, or groups of points, and colors are clusters. Kempe's chain of a node towards a
color has the nodes that must change between two colors so that it can take the other one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from powermeans.system.attributes import cached_property
from powermeans.types import FloatArray, IndexArray

# How many times the search for a coloring may give a node a color.
MOST_TRIED = 20_000
# A gain below this share of the cost is rounding.
ROUNDING = 1e-12


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
        color_of = colors.data  # whose entries are plain numbers, and change with the array
        for node, color in wishes:
            own: int = color_of[node]
            if color == own or (node, color) in seen:
                continue
            found, waiting = {node}, [node]
            while waiting:
                for other in self.neighbors.get(waiting.pop(), ()):
                    if color_of[other] in (own, color) and other not in found:
                        found.add(other)
                        waiting.append(other)
            chain = np.array(sorted(found))
            seen.update(zip(chain.tolist(), (own + color - colors[chain]).tolist(), strict=True))
            yield (own, color), chain

    def cheaper(
        self, parts: Sequence[Sequence[int]], cost: FloatArray, colors: IndexArray
    ) -> IndexArray:
        """Return all colors, with those of some components exchanged as long as that lowers costs.

        The given colors are allowed, and the result costs at most what they do. Row i of the cost,
        (n_nodes, n_colors), belongs to node i of these components.
        """
        nodes, found = np.concatenate(parts), colors.copy()
        rows = np.zeros(self.n_nodes, dtype=np.intp)
        rows[nodes] = np.arange(len(nodes))
        for part in parts:
            found[part] = _renamed(colors[part], cost[rows[part]])
        least, gained = ROUNDING * float(cost[rows[nodes], found[nodes]].sum()), True
        while gained:
            gained = False
            own = cost[rows[nodes], found[nodes]]
            places, wanted = np.nonzero(cost < own[:, None] - least)
            wishes = zip(nodes[places].tolist(), wanted.tolist(), strict=True)
            for pair, chain in self.chains(wishes, found):
                former = found[chain]
                new = sum(pair) - former
                if (cost[rows[chain], new] - cost[rows[chain], former]).sum() < -least:
                    found[chain], gained = new, True
        return found


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
        members = graph.members[number]
        part = {node: core[node] for node in members if node in core}
        for node, color in _colored(part, n_colors, members).items():
            colors[node] = color
    for node in reversed(waiting):
        colors[node] = min(set(range(n_colors)).difference(colors[graph.neighbors[node]].tolist()))
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


def _renamed(colors: IndexArray, cost: FloatArray) -> IndexArray:
    """Return the same coloring with the names of its colors exchanged so that it costs least."""
    used, which = np.unique(colors, return_inverse=True)
    by_color = np.zeros((len(used), cost.shape[1]))
    np.add.at(by_color, which, cost)
    renamed: IndexArray = linear_sum_assignment(by_color)[1]
    return renamed[which]
