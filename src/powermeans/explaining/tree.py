"""Threshold trees that lose little: each leaf is a cluster, each question asks one column.

A tree first parts the centers: by the cuts that cost least when each row goes to the nearest center
on its side, or by those that part the fewest rows from their center, as IMM does (Dasgupta, Frost,
Moshkovitz & Rashtchian 2020). Then the leaves that gain most are cut further, as in ExKMC (Frost,
Moshkovitz & Rashtchian 2020). At last each cut is chosen anew while all others stand, from the
bottom up, as long as that lowers the cost (Carreira-Perpiñán & Tavallali 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from powermeans.types import FloatArray, IndexArray, Labels

_MOST_POLISHES = 8
# Thresholds that are tried in a column at a time: quantiles where it has more values.
_MOST_CUTS = 1000


Price = Callable[[IndexArray, IndexArray, int], FloatArray]
"""What cuts cost, given rows in an order, after which of them to cut, and the feature."""


class Cut(NamedTuple):
    """Ask of a column whether its value is at most a threshold, which lies in a gap of values."""

    cost: float
    feature: int
    low: float
    high: float
    missing_left: bool


@dataclass(slots=True)
class Node:
    """A leaf with a label, or a cut with two nodes below."""

    label: int
    feature: int = -1
    threshold: float = np.nan
    missing_left: bool = False
    below: tuple[Node, Node] | None = None

    def goes_left(self, values: FloatArray, rows: IndexArray) -> NDArray[np.bool_]:
        """Return which of these rows go left at this cut."""
        asked = values[rows, self.feature]
        with np.errstate(invalid="ignore"):
            left: NDArray[np.bool_] = asked <= self.threshold
        return left | np.isnan(asked) if self.missing_left else left

    def route(
        self, values: FloatArray, rows: IndexArray | None = None
    ) -> Iterator[tuple[Node, IndexArray]]:
        """Yield each leaf with the rows that end there."""
        rows = np.arange(len(values)) if rows is None else rows
        if self.below is None:
            yield self, rows
            return
        left = self.goes_left(values, rows)
        yield from self.below[0].route(values, rows[left])
        yield from self.below[1].route(values, rows[~left])

    def predict(self, values: FloatArray) -> NDArray[np.int32]:
        """Return the labels of rows."""
        labels = np.empty(len(values), dtype=np.int32)
        for leaf, rows in self.route(values):
            labels[rows] = leaf.label
        return labels


class Grown(NamedTuple):
    """A tree that goes on growing."""

    root: Node
    n_leaves: int
    cost: float
    gain: float  # of the next leaf


@dataclass(slots=True)
class Grower:
    """Rows to grow trees on: values, and what each row costs at each center."""

    values: FloatArray  # (n, d), NaN where missing
    costs: FloatArray  # (k, n), times the weight of the row
    weights: FloatArray  # (n,)
    centers: FloatArray  # (k, d), in the units of the values
    roundest: Callable[[int, float, float], float]
    _sorted: IndexArray = field(init=False)  # (d, n), by value, missing ones last

    def __post_init__(self) -> None:
        self._sorted = np.argsort(self.values, axis=0, kind="stable").T.copy()

    def grown(self, *, by_count: bool = False) -> Iterator[Grown]:
        """Yield one tree that grows leaf by leaf, from parted centers on.

        Cuts between centers lose little cost, or few rows, as those of IMM do.
        """
        lost = self.costs
        if by_count:
            lost = (np.argmin(self.costs, axis=0) != np.arange(len(lost))[:, None]) * self.weights
        root = Node(0)
        waiting: list[tuple[float, Cut, Node, IndexArray]] = []
        total, n_leaves = 0.0, 0
        for node, order in self._parted(root, lost, np.arange(len(lost)), self._sorted):
            total += self._settle(node, order[0])
            n_leaves += 1
            waiting += self._offer(node, order)
        while waiting:
            place = max(range(len(waiting)), key=lambda i: waiting[i][0])
            gain, cut, node, order = waiting.pop(place)
            yield Grown(root, n_leaves, total, gain)
            for child, of_child in self._cut(node, cut, order):
                self._settle(child, of_child[0])
                waiting += self._offer(child, of_child)
            total, n_leaves = total - gain, n_leaves + 1
        yield Grown(root, n_leaves, total, 0.0)

    def plain(self, labels: Labels, n_leaves: int) -> Node:
        """Return a plain decision tree on labels, whose leaves take the labels that cost least."""
        if n_leaves < 2:
            return self.relabelled(Node(0))
        ranks = self._ranks()
        model = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)
        found = model.fit(ranks, labels, sample_weight=self.weights).tree_
        left, right = found.children_left, found.children_right

        def node(i: int, rows: IndexArray) -> Node:
            if left[i] < 0:
                return Node(0)
            feature, asked = int(found.feature[i]), self.values[rows, int(found.feature[i])]
            missing, below = np.isnan(asked), ranks[rows, feature] <= found.threshold[i]
            low, above = asked[below].max(), asked[~below & ~missing]
            # A cut may part missing values from all others.
            threshold = self.roundest(feature, low, above.min() if len(above) else low)
            missing_left = bool(found.missing_go_to_left[i] and missing.any())
            goes = below | missing if missing_left else below
            children = node(left[i], rows[goes]), node(right[i], rows[~goes])
            return Node(0, feature, threshold, missing_left, children)

        return self.relabelled(node(0, np.arange(len(self.values))))

    def _ranks(self) -> FloatArray:
        """Return the values as ranks, since scikit-learn's trees round values to float32."""
        in_order = np.take_along_axis(self.values.T, self._sorted, axis=1)
        steps = np.zeros(in_order.shape)
        with np.errstate(invalid="ignore"):
            np.cumsum(in_order[:, 1:] > in_order[:, :-1], axis=1, out=steps[:, 1:])
        ranks = np.empty(in_order.shape)
        np.put_along_axis(ranks, self._sorted, steps, axis=1)
        return np.where(np.isnan(self.values), np.nan, ranks.T)

    def relabelled(self, root: Node) -> Node:
        """Give each leaf the label that costs its rows least."""
        for leaf, rows in root.route(self.values):
            self._settle(leaf, rows)
        return root

    def cost(self, root: Node) -> float:
        """Return the cost of a tree."""
        ends = root.route(self.values)
        return float(sum(self.costs[leaf.label, rows].sum() for leaf, rows in ends))

    def polish(self, root: Node) -> float:
        """Choose each cut anew while the others stand, until the cost falls no more; return it."""
        cost = self.cost(root)
        for _ in range(_MOST_POLISHES):
            self._choose_anew(root, np.arange(len(self.values)))
            self.relabelled(root)
            former, cost = cost, self.cost(root)
            if cost >= former * (1 - 1e-4):
                break
        return cost

    def _settle(self, leaf: Node, rows: IndexArray) -> float:
        if not len(rows):
            return 0.0
        costs = self.costs[:, rows].sum(axis=1)
        leaf.label = int(np.argmin(costs))
        return float(costs[leaf.label])

    def _parted(
        self, node: Node, lost: FloatArray, centers: IndexArray, order: IndexArray
    ) -> Iterator[tuple[Node, IndexArray]]:
        """Cut until each leaf has one center, and yield the leaves with the order of their rows."""
        places = self.centers[centers]
        price = _parting(lost[centers], places, self.values)
        cut = self._best(order, price, places) if len(centers) > 1 else None
        if cut is None:
            yield node, order
            return
        children = self._cut(node, cut, order)
        on_left = self.centers[centers, node.feature] <= node.threshold
        for (child, of_child), own in zip(children, (on_left, ~on_left), strict=True):
            yield from self._parted(child, lost, centers[own], of_child)

    def _cut(self, node: Node, cut: Cut, order: IndexArray) -> list[tuple[Node, IndexArray]]:
        node.feature, node.missing_left = cut.feature, cut.missing_left
        node.threshold = self.roundest(cut.feature, cut.low, cut.high)
        node.below = Node(node.label), Node(node.label)
        is_left = np.zeros(len(self.values), dtype=bool)
        is_left[order[0]] = node.goes_left(self.values, order[0])
        goes = is_left[order]
        n_left = int(goes[0].sum())
        parts = order[goes].reshape(-1, n_left), order[~goes].reshape(-1, order.shape[1] - n_left)
        return list(zip(node.below, parts, strict=True))

    def _offer(self, node: Node, order: IndexArray) -> list[tuple[float, Cut, Node, IndexArray]]:
        """Return what cutting a leaf gains, if anything."""
        rows = order[0]
        if len(rows) < 2:
            return []
        # Centers that are nearest to none of the rows hardly ever label a leaf of them.
        used = np.union1d(np.argmin(self.costs[:, rows], axis=0), [node.label])
        before = float(self.costs[node.label, rows].sum())
        cut = self._best(order, _two_labels(self.costs[used])) if len(used) > 1 else None
        if cut is None or cut.cost >= before * (1 - 1e-9):
            return []
        return [(before - cut.cost, cut, node, order)]

    def _best(
        self, order: IndexArray, price: Price, centers: FloatArray | None = None
    ) -> Cut | None:
        """Return the cut of least price; one that parts centers lies between them."""
        best: Cut | None = None
        for feature, own in enumerate(order):
            asked = self.values[own, feature]
            n_there = len(own) - int(np.isnan(asked).sum())
            places = np.flatnonzero(np.diff(asked[:n_there]) > 0)
            if not len(places):
                continue
            if len(places) > _MOST_CUTS:
                places = places[np.linspace(0, len(places) - 1, _MOST_CUTS).astype(np.intp)]
            n_missing = len(own) - n_there
            for missing_left in (False, True) if n_missing else (False,):
                turned = np.roll(own, n_missing) if missing_left else own
                costs = price(turned, places + n_missing * missing_left, feature)
                least = int(np.argmin(costs))
                if costs[least] < (np.inf if best is None else best.cost):
                    low, high = map(float, asked[places[least] : places[least] + 2])
                    if centers is not None:
                        along = np.sort(centers[:, feature])
                        place = int(_n_left(along, low, high))
                        low, high = max(low, along[place - 1]), min(high, along[place])
                    best = Cut(float(costs[least]), feature, low, high, missing_left)
        return best

    def _choose_anew(self, node: Node, rows: IndexArray) -> None:
        """Choose each cut of a part of the tree anew, those below first."""
        if node.below is None:
            return
        left = node.goes_left(self.values, rows)
        self._choose_anew(node.below[0], rows[left])
        self._choose_anew(node.below[1], rows[~left])
        sides = np.empty((2, len(self.values)))
        for side, below in zip(sides, node.below, strict=True):
            for leaf, there in below.route(self.values, rows):
                side[there] = self.costs[leaf.label, there]
        now = float(sides[0, rows[left]].sum() + sides[1, rows[~left]].sum())
        is_here = np.zeros(len(self.values), dtype=bool)
        is_here[rows] = True
        order = self._sorted[is_here[self._sorted]].reshape(len(self._sorted), -1)
        cut = self._best(order, _two_sides(sides)) if len(rows) > 1 else None
        if cut is not None and cut.cost < now * (1 - 1e-9):
            node.feature, node.missing_left = cut.feature, cut.missing_left
            node.threshold = self.roundest(cut.feature, cut.low, cut.high)


def _two_labels(costs: FloatArray) -> Price:
    """Price cuts after which each side gets the label that costs its rows least."""

    def price(own: IndexArray, places: IndexArray, feature: int) -> FloatArray:
        summed = _sums(costs[:, own], places)
        left = np.cumsum(summed[:, :-1], axis=1)
        right = left[:, -1:] + summed[:, -1:] - left
        return np.asarray(left.min(axis=0) + right.min(axis=0))

    return price


def _two_sides(sides: FloatArray) -> Price:
    """Price cuts after which rows go on below as now, given what each costs on either side."""

    def price(own: IndexArray, places: IndexArray, feature: int) -> FloatArray:
        left, right = _sums(sides[:, own], places)
        return np.asarray(np.cumsum(left[:-1]) + right.sum() - np.cumsum(right[:-1]))

    return price


def _parting(costs: FloatArray, centers: FloatArray, values: FloatArray) -> Price:
    """Price cuts with centers on both sides, after which rows go to the nearest on theirs."""

    def price(own: IndexArray, places: IndexArray, feature: int) -> FloatArray:
        by_place = np.argsort(centers[:, feature], kind="stable")
        ordered = costs[np.ix_(by_place, own)]
        left = np.cumsum(_sums(np.minimum.accumulate(ordered, axis=0), places), axis=1)
        right = _sums(np.minimum.accumulate(ordered[::-1], axis=0)[::-1], places)
        right = right.sum(axis=1, keepdims=True) - np.cumsum(right, axis=1)
        asked, at = values[own, feature], np.arange(len(places))
        n_left = _n_left(centers[by_place, feature], asked[places], asked[places + 1])
        is_parted = (n_left > 0) & (n_left < len(centers))
        n_left = np.clip(n_left, 1, len(centers) - 1)
        return np.where(is_parted, left[n_left - 1, at] + right[n_left, at], np.inf)

    return price


def _n_left(along: FloatArray, low: Any, high: Any) -> Any:
    """Return how many centers are on the left: of those in the gap, half of it and one at least."""
    first, last = np.searchsorted(along, low, "right"), np.searchsorted(along, high, "left")
    middle = np.searchsorted(along, low / 2 + high / 2, "right")
    return np.clip(np.clip(middle, 1, len(along) - 1), first, last)


def _sums(costs: FloatArray, places: IndexArray) -> FloatArray:
    """Add up costs of rows in an order, (n_labels, n), between these places."""
    return np.asarray(np.add.reduceat(costs, np.concatenate([[0], places + 1]), axis=1))
