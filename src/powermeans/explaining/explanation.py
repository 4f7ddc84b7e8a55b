"""`explain`: rules that tell the clusters apart, with their price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from powermeans.errors import ArgumentError
from powermeans.explaining.features import Feature, in_units, is_squared, percent
from powermeans.explaining.tree import Grower, Grown, Node
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.plots import fitted
from powermeans.system.extensions import extension
from powermeans.types import FloatArray, IndexArray, Labels

# Trees are grown on a sample of the rows, a few hundred of each cluster at the least.
_ROWS, _ROWS_OF_WIDE, _ROWS_OF_A_CLUSTER = 8_000, 3_000, 200
_WIDE = 100  # columns
# With n_leaves="auto" leaves are added while the price is above the first, and the next leaf saves
# more than the second, both in the sum of squares.
_CHEAP, _WORTH_A_LEAF = 0.05, 0.005
# A description goes on while its F1 rises by more than this.
_WORTH_A_CONDITION = 0.02
_MOST_CONDITIONS, _GOOD_F1, _ROWS_DESCRIBED, _COLUMNS_DESCRIBED = 4, 0.9, 4_000, 50


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions of a cluster, in the units and words of the data, and how good they are."""

    label: int
    text: str
    share: float  # of all rows that meet them, by weight
    precision: float  # how many of these are in the cluster
    coverage: float  # how many of the cluster these are


@dataclass(frozen=True, slots=True)
class Explanation:
    """Rules for the clusters of a model; printing it shows them in words.

    Attributes
    ----------
    rules : list of Rule
        One for each leaf of the tree, with `label`, `text`, `share`, `precision` and `coverage`.
    descriptions : list of Rule
        For each cluster the shortest rule that describes it; these may overlap.
    kept : float
        Share of the rows whose rule names their cluster, by weight.
    price : float
        How much more the rows cost at the centers of their rules than at those of the model, as a
        share: 0.024 is 2.4 % of the sum of squares.
    is_plain : bool
        Whether a plain decision tree on the labels was cheaper, and is used.
    tree : Node
        The tree: `feature`, `threshold` and `missing_left` of a cut, `label` of a leaf, and the
        nodes `below`.

    See Also
    --------
    explain : Returns it.

    Examples
    --------
    >>> from powermeans import KMeans, explain
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> found = explain(KMeans.from_centers([[0.5], [9.5]]), X)
    >>> found.price, [rule.text for rule in found.rules]
    (0.0, ['column 0 <= 5', 'column 0 > 5'])
    """

    rules: list[Rule]
    descriptions: list[Rule]
    kept: float
    price: float
    is_plain: bool
    tree: Node
    features: list[Feature]
    model: Any
    _cost: str = "sum of squares"

    @property
    def n_leaves(self) -> int:
        """The number of rules."""
        return len(self.rules)

    @property
    def sentence(self) -> str:
        """What the rules keep and cost, in words."""
        keep, cost = ("rule keeps", "costs") if self.n_leaves == 1 else ("rules keep", "cost")
        kept = f"{self.n_leaves} {keep} {percent(self.kept)} of the rows in their cluster"
        return f"{kept} and {cost} {percent(self.price)} of the {self._cost}"

    def __str__(self) -> str:
        lines = [f"{self.sentence}."]
        for short in self.descriptions:
            if not short.coverage:
                lines.append(f"\nCluster {short.label} has no rows here")
                continue
            own = [rule for rule in self.rules if rule.label == short.label]
            lines += [
                f"\nCluster {short.label}, in short: {short.text}",
                f"  ({percent(short.precision)} of the matching rows are in the cluster; they are "
                f"{percent(short.coverage)} of its rows)",
                *(f"  {percent(rule.share):>6} of all rows: {rule.text}" for rule in own),
            ]
            lines += [] if own else ["  no rule of its own, since that would cost more"]
        return "\n".join(lines)

    def predict(self, X: Any) -> Labels:
        """Return the cluster that the rules give each row, int32, of shape (n_samples,).

        A value that is missing goes the way that the rules tell, or else as a large one.
        """
        return self.tree.predict(in_units(self.model, X)[1])

    def to_sql(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        dialect: str = "duckdb",
        name: str = "cluster",
    ) -> str:
        """Return a query for all columns of a table and the cluster; see `to_sql`."""
        query = extension("query_of_rules")
        return str(query(self.tree, self.features, table, columns, dialect, name))

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the tree; see `powermeans.plots.rules`."""
        from powermeans.plots.trees import rules

        return rules(self, ax=ax)


def explain(
    model: Any,
    X: Any,
    *,
    n_leaves: int | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
) -> Explanation:
    """Explain clusters by rules on one column at a time, and report what the rules cost.

    The rules are the leaves of a tree that is built to add as little as possible to the sum of
    squares. A plain decision tree on the labels is tried as well, and is used if it is cheaper.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted model. After `Prepare` or a scaler, rules are in the units and words of the data.
    X : table or array
        Rows as the model takes them.
    n_leaves : int or "auto", default="auto"
        Number of rules. "auto" starts with one for each cluster, and adds others, up to four for
        each cluster, while the price is above 5 % and the next rule saves 0.5 %, both of the sum
        of squares.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    Explanation
        Printing it gives the rules.

    See Also
    --------
    to_sql : A query with the labels of the model itself.

    Notes
    -----
    The tree is grown on at most 8,000 rows (3,000 with 100 columns or more), or 200 for each
    cluster if that is more, drawn from each cluster; the price and all shares are of all rows.
    Distances are those of the model; for one without centers, such as `SpectralClustering`, they
    are to the means of its clusters.

    References
    ----------
    Frost, N., Moshkovitz, M. and Rashtchian, C. "ExKMC: Expanding Explainable k-Means Clustering".
    2020.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans, explain
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> found = explain(PowerKMeans(2, random_state=0).fit(X), X)
    >>> found.sentence
    '2 rules keep 100 % of the rows in their cluster and cost 0 % of the sum of squares'
    >>> sorted(rule.text for rule in found.rules)
    ['column 0 <= 6', 'column 0 > 6']
    """
    labels = fitted.labels_of(model, X)
    features, values = in_units(model, X)
    counts = check_sample_weight(sample_weight, len(labels))
    weights = np.ones(len(labels)) if counts is None else counts
    costs, is_used = _costs(model, X, values, labels), labels >= 0  # of a file some may not be
    labels, values = labels[is_used], values[is_used]
    weights, costs = weights[is_used], costs[is_used]
    most = _ROWS if values.shape[1] < _WIDE else _ROWS_OF_WIDE
    rows, of_sample = _sample(labels, weights, costs.shape[1], most)
    grower = Grower(
        values[rows],
        (costs[rows] * of_sample[:, None]).T.copy(),
        of_sample,
        means_of(values[rows], labels[rows], of_sample, costs.shape[1]),
        lambda feature, low, high: features[feature].roundest(low, high),
    )
    own, plain = _trees(grower, labels[rows], n_leaves)
    is_plain = grower.polish(plain) < grower.polish(own) * (1 - 1e-9)
    tree = _pruned(plain if is_plain else own)
    told = _Told(features, values, labels, weights)
    some = slice(None, None, -(-len(rows) // _ROWS_DESCRIBED))
    ends = list(tree.route(values))
    found = tree.predict(values)
    least = float(weights @ costs.min(axis=1))
    excess = float(weights @ costs[np.arange(len(found)), found]) - least
    return Explanation(
        [
            told.rule(leaf.label, box, there)
            for (leaf, there), box in zip(ends, _conditions(tree, {}), strict=True)
        ],
        [told.description(label, rows[some], of_sample[some]) for label in range(len(costs.T))],
        float(weights @ (found == labels) / weights.sum()),
        max(0.0, excess / least) if least > 0 else np.inf if excess > 0 else 0.0,
        is_plain,
        tree,
        features,
        model,
        "sum of squares" if is_squared(model) else "sum of distances",
    )


def means_of(
    values: FloatArray, labels: Labels, weights: FloatArray, n_clusters: int
) -> FloatArray:
    """Return the weighted mean of each cluster over values that are there; of all where none is."""
    is_there = ~np.isnan(values)
    filled = np.where(is_there, values, 0.0) * weights[:, None]
    member = (labels == np.arange(n_clusters)[:, None]).astype(np.float64)
    counts, sums = member @ (is_there * weights[:, None]), member @ filled
    of_all = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), np.finfo(float).tiny)
    return np.asarray(np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), of_all))


def _costs(model: Any, X: Any, values: FloatArray, labels: Labels) -> FloatArray:
    if hasattr(model, "transform"):
        distances = fitted.distances_of(model, X)
        return np.square(distances) if is_squared(model) else distances
    means = means_of(values, labels, np.ones(len(values)), int(labels.max()) + 1)
    return np.stack([np.nansum(np.square(values - mean), axis=1) for mean in means], axis=1)


def _sample(
    labels: Labels, weights: FloatArray, n_clusters: int, most: int
) -> tuple[IndexArray, FloatArray]:
    """Return rows to grow on, some of each cluster, and their weights, which stand for all."""
    most, rng = max(most, _ROWS_OF_A_CLUSTER * n_clusters), np.random.default_rng(0)
    counted = np.flatnonzero(weights > 0)
    if len(counted) <= most:
        return counted, weights[counted]
    rows, of_sample = [], []
    for label in range(n_clusters):
        own = counted[labels[counted] == label]
        n_drawn = min(len(own), max(_ROWS_OF_A_CLUSTER, most * len(own) // len(counted)))
        drawn = np.sort(rng.choice(own, n_drawn, replace=False))
        total = weights[drawn].sum()
        rows.append(drawn)
        of_sample.append(weights[drawn] * (weights[own].sum() / total if n_drawn else 1.0))
    return np.concatenate(rows), np.concatenate(of_sample)


def _trees(grower: Grower, labels: Labels, n_leaves: Any) -> tuple[Node, Node]:
    """Return a tree of the given number of leaves, and a plain one of the same number."""
    n_clusters, least = len(grower.costs), float(grower.costs.min(axis=0).sum())
    is_number = isinstance(n_leaves, Integral)
    if n_leaves != "auto" and not (is_number and n_leaves >= n_clusters):
        few = f"is less than {n_clusters}, the number of clusters"
        problem = few if is_number else "is no number of rules"
        way_out = f'pass a whole number from {n_clusters} on, or "auto"'
        raise ArgumentError(problem, way_out, argument="n_leaves", value=n_leaves)

    def has_enough(now: Grown) -> bool:
        if n_leaves != "auto":
            return now.n_leaves >= int(n_leaves)
        is_enough = now.cost <= (1 + _CHEAP) * least or now.gain < _WORTH_A_LEAF * least
        return is_enough or now.n_leaves >= 4 * n_clusters

    found = []
    for by_count in (False, True):
        for now in grower.grown(by_count=by_count):
            if has_enough(now):
                break
        found.append(now)
    own = min(found, key=lambda now: now.cost + _WORTH_A_LEAF * least * now.n_leaves)
    wanted = max(own.n_leaves, n_clusters) if n_leaves == "auto" else int(n_leaves)
    return own.root, grower.plain(labels, wanted)


def _pruned(node: Node) -> Node:
    """Join leaves beside each other that have the same label."""
    if node.below is not None:
        left, right = node.below = _pruned(node.below[0]), _pruned(node.below[1])
        if left.below is None and right.below is None and left.label == right.label:
            return left
    return node


Box = dict[int, tuple[float, float, bool]]
"""By feature: above what, at most what, and whether a missing value will do."""


def _conditions(node: Node, box: Box) -> Iterator[Box]:
    """Yield the conditions that lead to each leaf."""
    if node.below is None:
        yield box
        return
    low, high, missing = box.get(node.feature, (-np.inf, np.inf, True))
    left = low, min(high, node.threshold), missing and node.missing_left
    right = max(low, node.threshold), high, missing and not node.missing_left
    yield from _conditions(node.below[0], {**box, node.feature: left})
    yield from _conditions(node.below[1], {**box, node.feature: right})


class _Told:
    """All rows, which the rules describe."""

    def __init__(
        self, features: list[Feature], values: FloatArray, labels: Labels, weights: FloatArray
    ) -> None:
        self.features, self.values, self.labels, self.weights = features, values, labels, weights
        self.has_missing: Any = np.isnan(values).any(axis=0)
        self.sizes = np.bincount(labels, weights)

    def rule(self, label: int, box: Box, rows: IndexArray) -> Rule:
        """Return a rule with what it is worth, given the rows that meet it."""
        words = {
            self.features[feature].column_name
            for feature, (low, _, _) in box.items()
            if self.features[feature].is_of_words and low > -np.inf
        }
        said = [  # what is one word is no other
            self.features[feature].phrase(low, high)
            + " or missing" * bool(missing and self.has_missing[feature])
            for feature, (low, high, missing) in box.items()
            if low > -np.inf or self.features[feature].column_name not in words
        ]
        met = np.bincount(self.labels[rows], self.weights[rows], minlength=label + 1)
        both, n_met = float(met[label]), float(met.sum())
        of_label = float(self.sizes[label]) if label < len(self.sizes) else 0.0
        return Rule(
            label,
            " and ".join(said) or "any row",
            n_met / float(self.sizes.sum()),
            both / (n_met or 1.0),
            both / (of_label or 1.0),
        )

    def description(self, label: int, rows: IndexArray, weights: FloatArray) -> Rule:
        """Return few conditions that tell a cluster, by their F1 among some of the rows."""
        values, is_in = self.values[rows], np.asarray(self.labels[rows] == label)
        total, best, chosen = float(weights @ is_in), -1.0, Box()
        # Where a cluster is small, cuts that leave many other rows in come first.
        columns = _telling(values, is_in, weights)
        for ease in (1.0, 0.1, 0.01):
            box = self._narrowed(values, columns, is_in, np.where(is_in, weights, weights * ease))
            met = _meeting(values, box)
            score = 2 * float(weights[met] @ is_in[met]) / (weights[met].sum() + total or 1.0)
            if score - _WORTH_A_CONDITION * len(box) > best:
                best, chosen = score - _WORTH_A_CONDITION * len(box), box
            if score > _GOOD_F1:
                break
        return self.rule(label, chosen, _meeting(self.values, chosen))

    def _narrowed(
        self, values: FloatArray, columns: IndexArray, is_in: Any, weights: FloatArray
    ) -> Box:
        """Return conditions that raise the F1 one by one."""
        box, inside, total = Box(), np.arange(len(values)), float(weights @ is_in)
        score = 2 * total / (float(weights.sum()) + total or 1.0)
        for _ in range(_MOST_CONDITIONS):
            asked = values[np.ix_(inside, columns)]
            found = _best_condition(asked, is_in[inside], weights[inside], total)
            if found is None or found[0] < score + _WORTH_A_CONDITION:
                break
            score, place, left, low, high = found
            feature = int(columns[place])
            threshold = self.features[feature].roundest(low, high)
            low, high, _ = box.get(feature, (-np.inf, np.inf, False))
            box[feature] = (low, threshold, False) if left else (threshold, high, False)
            inside = inside[_meeting(values[inside], {feature: box[feature]})]
        return box


def _telling(values: FloatArray, is_in: Any, weights: FloatArray) -> IndexArray:
    """Return the columns in which a cluster is farthest from all rows, in their spread."""
    if values.shape[1] <= _COLUMNS_DESCRIBED:
        return np.arange(values.shape[1])
    all_rows = np.zeros(len(values), dtype=np.int32)
    (of_all,) = means_of(values, all_rows, weights, 1)
    (own,) = means_of(values, all_rows, weights * is_in, 1)
    (variance,) = means_of(np.square(values - of_all), all_rows, weights, 1)
    apart = np.square(own - of_all) / np.where(variance > 0, variance, np.inf)
    return np.argsort(-apart, kind="stable")[:_COLUMNS_DESCRIBED]


def _meeting(values: FloatArray, box: Box) -> IndexArray:
    """Return the rows that meet conditions, for which no missing value will do."""
    rows = np.arange(len(values))
    for feature, (low, high, _) in box.items():
        asked = values[rows, feature]
        with np.errstate(invalid="ignore"):
            rows = rows[(asked > low) & (asked <= high)]
    return rows


def _best_condition(
    values: FloatArray, is_in: Any, weights: FloatArray, total: float
) -> tuple[float, int, bool, float, float] | None:
    """Return the F1 of the best cut, its feature, whether the left side counts, and its gap."""
    if len(values) < 2:
        return None
    order = np.argsort(values, axis=0, kind="stable")
    asked = np.take_along_axis(values, order, axis=0)
    met = np.where(np.isnan(asked), 0.0, weights[order])
    hits = np.where(is_in[order], met, 0.0)
    met, hits = np.cumsum(met, axis=0), np.cumsum(hits, axis=0)
    with np.errstate(invalid="ignore"):
        is_gap = asked[1:] > asked[:-1]
    left = 2 * hits[:-1] / (met[:-1] + total)
    right = 2 * (hits[-1] - hits[:-1]) / (met[-1] - met[:-1] + total)
    scores = np.where(is_gap, np.stack([left, right]), -1.0)
    side, place, feature = np.unravel_index(int(np.argmax(scores)), scores.shape)
    low, high = float(asked[place, feature]), float(asked[place + 1, feature])
    best = float(scores[side, place, feature])
    return None if best < 0 else (best, int(feature), side == 0, low, high)
