"""The clusters of a report one by one: names, shares, columns beside the rest, and rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.app.report.charts import edges_of, histogram, shares_of
from powermeans.app.report.row_sample import RowSample
from powermeans.app.report.subject import Subject
from powermeans.app.report.summaries import ClusterSummary
from powermeans.app.report.text import breakable, count, entry, escaped, percent, rounded
from powermeans.plots.canvas import color_of
from powermeans.types import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class Cards:
    """What the cards of all clusters have in common."""

    subject: Subject
    sample: RowSample
    told: list[IndexArray]  # the columns of each card, those that set it apart most first
    edges: list[FloatArray]  # of the bars of each column of the sample
    means: FloatArray  # (n_clusters, n_features), in the units of the data
    of_all: FloatArray  # (n_features,)
    deviations: FloatArray  # (n_features,)

    @classmethod
    def of(cls, subject: Subject) -> Cards:
        """Choose the columns that each card tells, and look at some rows."""
        clusters, n_features = subject.clusters, subject.points.shape[1]
        # So that a page of many clusters stays small.
        n_told = min(n_features, 6, max(1, 300 // len(clusters)))
        told = [np.argsort(-np.abs(one.z_scores), kind="stable")[:n_told] for one in clusters]
        sample = RowSample.of(subject, np.unique(np.concatenate(told)))
        both = np.vstack([subject.columns.means, *[one.mean for one in clusters]])
        of_all, *means = subject.in_own_units(both)
        edges = [edges_of(values) for values in sample.values.T]
        deviations = subject.own_deviations()
        return cls(subject, sample, told, edges, np.array(means), of_all, deviations)

    def overview(self) -> str:
        """List all clusters in a table."""
        largest = max(one.size for one in self.subject.clusters)
        rows = "".join(self._line(one, largest) for one in self.subject.clusters)
        clear = '<th scope="col">clearly its own</th>' * (self.sample.ratios is not None)
        return (
            '<div class="wide"><table class="clusters"><thead><tr><th scope="col">cluster</th>'
            '<th scope="col" class="words">name</th><th scope="col">rows</th>'
            f'<th scope="col">share</th>{clear}</tr></thead><tbody>{rows}</tbody></table></div>'
        )

    def _line(self, cluster: ClusterSummary, largest: int) -> str:
        label = cluster.label
        width = 3.5 * cluster.size / max(largest, 1)
        bar = f'<span class="bar" style="width:{width:.2f}rem;background:{color_of(label)}"></span>'
        clear = self.sample.clear_share(label)
        is_known = "" if clear is None else f"{percent(clear)}"
        last = f'<td data-of="clearly its own">{is_known}</td>' * (self.sample.ratios is not None)
        return (
            f'<tr><th scope="row">{label}</th><td class="words"><a href="#cluster-{label}">'
            f'{escaped(self.subject.names[label])}</a></td><td data-of="rows">{bar}'
            f'{count(cluster.size)}</td><td data-of="share">{cluster.share:.1%}</td>{last}</tr>'
        )

    def cards(self) -> str:
        """Describe each cluster; where there are many, each is folded."""
        return "".join(self._card(cluster) for cluster in self.subject.clusters)

    def _card(self, cluster: ClusterSummary) -> str:
        label = cluster.label
        is_open = " open" * (len(self.subject.clusters) <= 12)
        head = (
            f'<h3><span class="badge" style="border-color:{color_of(label)}">{label}</span> '
            f"{escaped(self.subject.names[label])}</h3>"
        )
        body = f"<p>{self._sentences(cluster)}</p>"
        if cluster.weight > 0:
            charts = (self._chart(cluster, f) for f in self.told[label][:4])
            body += f'<div class="charts">{"".join(charts)}</div>{self._examples(label)}'
        return (
            f'<details class="cluster" id="cluster-{label}"{is_open}><summary>{head}</summary>'
            f"{body}</details>"
        )

    def _sentences(self, cluster: ClusterSummary) -> str:
        if cluster.size == 0:
            return "No row is nearest to this center."
        if cluster.weight == 0:
            return f"{count(cluster.size)} rows, which weigh nothing."
        subject = self.subject
        rows = "1 row" if cluster.size == 1 else f"{count(cluster.size)} rows"
        share = f"{cluster.share:.1%} of the weight" if subject.weights is not None else None
        found = [f"{rows}, {share or f'{cluster.share:.1%} of all'}."]
        if (clear := self.sample.clear_share(cluster.label)) is not None:
            found.append(
                f"{percent(clear)} of its rows are clearly nearer to its center than to any other."
            )
        if cluster.nearest is not None:
            name = escaped(subject.names[cluster.nearest])
            found.append(
                f'The cluster most like it is <a href="#cluster-{cluster.nearest}">'
                f"{cluster.nearest}</a>, “{name}”."
            )
        return " ".join(found)

    def _chart(self, cluster: ClusterSummary, feature: int) -> str:
        sample, name = self.sample, self.subject.columns.names[feature]
        place = int(np.searchsorted(sample.columns, feature))
        values, edges = sample.values[:, place], self.edges[place]
        is_mine = sample.labels == cluster.label
        mine, rest = (
            shares_of(values[some], sample.weights[some], edges) for some in (is_mine, ~is_mine)
        )
        words = self._height(cluster, feature)
        drawn = histogram(
            mine, rest, edges, color=color_of(cluster.label), name=name, label=f"{name}: {words}"
        )
        caption = f"<strong>{breakable(name)}</strong> {words}"
        return f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>"

    def _height(self, cluster: ClusterSummary, feature: int) -> str:
        """Say the mean of a column, and how far it is from that of all rows."""
        mean, deviation = self.means[cluster.label, feature], self.deviations[feature]
        difference = float(mean - self.of_all[feature])
        words = f"{rounded(float(mean), deviation)} on average"
        apart = rounded(abs(difference), deviation)
        if deviation == 0 or float(apart) == 0:
            return f"{words}, as in the whole"
        return f"{words}, {apart} {'above' if difference > 0 else 'below'} the whole"

    def _examples(self, label: int) -> str:
        """List typical rows and doubtful ones, with their values."""
        sample = self.sample
        has_next = sample.ratios is not None
        width = 1 + len(self.told[label]) + 2 * has_next
        groups = [("Typical: nearest to the center", sample.typical(label))]
        groups.append(("Doubtful: nearest to another cluster", sample.doubtful(label)))
        body = "".join(
            f'<tbody><tr><th scope="rowgroup" colspan="{width}">{title}</th></tr>'
            f"{''.join(self._row(label, place) for place in places)}</tbody>"
            for title, places in groups
            if places
        )
        if not body:
            return ""
        names = [self.subject.columns.names[feature] for feature in self.told[label]]
        heads = ["row", *names, *["next cluster", "its center is"] * has_next]
        head = "".join(f'<th scope="col">{breakable(name)}</th>' for name in heads)
        return (
            f'<div class="wide" tabindex="0" role="region" aria-label="rows of cluster {label}">'
            f'<table class="rows"><thead><tr>{head}</tr></thead>{body}</table></div>'
        )

    def _row(self, label: int, place: int) -> str:
        sample = self.sample
        places = np.searchsorted(sample.columns, self.told[label])
        values = sample.values[place, places]
        cells = [
            entry(float(value), float(deviation))
            for value, deviation in zip(values, self.deviations[self.told[label]], strict=True)
        ]
        if sample.ratios is not None and sample.others is not None:
            cells += [str(sample.others[place]), _farther(float(sample.ratios[place]))]
        numbered = self.subject.row_numbers[sample.rows[place]]
        inner = "".join(f"<td>{cell}</td>" for cell in cells)
        return f'<tr><th scope="row">{numbered}</th>{inner}</tr>'


def _farther(ratio: float) -> str:
    return "as far" if ratio == 1 else f"{ratio:.2f} times as far" if ratio < 100 else "far away"
