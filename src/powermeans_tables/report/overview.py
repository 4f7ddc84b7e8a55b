"""The first screen of a report: three large numbers, the map, a card for each cluster, a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from powermeans.engine.seeds.orders import row_keys
from powermeans.errors import counted, some
from powermeans.explaining.summaries import ClusterSummary
from powermeans.plots.canvas import color_of
from powermeans.types import FloatArray, SparsePoints
from powermeans_tables.report.maps import Map, drawn
from powermeans_tables.report.rows import Rows
from powermeans_tables.report.subject import Subject
from powermeans_tables.report.text import breakable, escaped, percent

_MOST_CARDS = 12


def overview(subject: Subject, rows: Rows, found: Map, choice: Any) -> str:
    """Return the first screen in HTML."""
    cards = [_card(subject, rows, cluster) for cluster in subject.profile.clusters]
    more = "".join(cards[_MOST_CARDS:])
    if more:
        n_more = counted(len(cards) - _MOST_CARDS, "more cluster")
        more = f'<details><summary>{n_more}</summary><div class="cards">{more}</div></details>'
    n_shown, n_all = len(rows.places), len(subject.labels)
    some_rows = f" {n_shown:,} of {n_all:,} rows, drawn by chance." if n_shown < n_all else ""
    return (
        f"{_figures(subject, rows, choice)}<div class='screen'><figure>"
        f"{_STAGE.format(drawn(found, subject, rows.labels))}"
        f'<figcaption class="note">{found.words}{some_rows}</figcaption></figure>'
        f'<div><div class="cards">{"".join(cards[:_MOST_CARDS])}</div>{more}</div></div>'
        f"{_box(subject)}"
    )


_STAGE = """
<div id="stage" tabindex="0" role="application" aria-label="map" aria-describedby="help">{}
<div id="tip" role="status" hidden></div></div>
<p class="note" id="help">Point at a row, or step through them by the arrow keys. A number on a card
shows its cluster alone.</p>"""


def _figures(subject: Subject, rows: Rows, choice: Any) -> str:
    n_used, table = len(subject.labels), subject.file.table
    n_all = n_used if table is None else table.n_rows
    n_clusters, clear = len(subject.profile.clusters), rows.sure_share()
    sure = "of the rows lie on the first third of the way from their center to any other"
    if clear is None:
        sure = "Nothing says how near other centers are."
    why = "as many as asked for" if choice is None else "no number is clear: this one is a guess"
    if choice is not None and choice.is_clear:
        why = f"chosen by {escaped(choice.decided_by.replace('_', ' '))}"
    n_columns = sum(1 + (one.column.kind == "place") for one in subject.profile.fields)
    n_there = len(subject.columns)
    of_columns = f"in {counted(n_columns, 'column')}{f' of {n_there:,}' * (n_there > n_columns)}"
    figures = (
        ("clusters", f"{n_clusters:,}", why),
        ("rows used", f"{n_used:,} <small>of {n_all:,}</small>", of_columns),
        ("how sure", "–" if clear is None else percent(clear), sure),
    )
    inner = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd class='note'>{note}</dd></div>"
        for name, value, note in figures
    )
    return f"<dl class='figures'>{inner}</dl>"


def _card(subject: Subject, rows: Rows, cluster: ClusterSummary) -> str:
    label, clear = cluster.label, rows.sure_share(cluster.label)
    size = counted(cluster.size, "row")
    of = "of the weight" if subject.weights is not None else "of all"
    is_clear = "" if clear is None else f", {percent(clear)} sure"
    if cluster.weight > 0:
        facts = "".join(
            f"<li><b>{breakable(name)}</b> {escaped(value)} "
            f'<span class="note">{escaped(compared)}</span></li>'
            for name, value, compared in subject.profile.facts(label)
        )
        text = f"{percent(cluster.share)} {of}, {size}{is_clear}"
    else:
        facts = ""
        text = f"{size}, which weigh nothing" if cluster.size else "No row is nearest to its center"
    return (
        f'<article class="card" id="cluster-{label}" style="border-color:{color_of(label)}"><h3>'
        f'<button type="button" class="badge" aria-pressed="false" data-label="{label}" '
        f'aria-label="show cluster {label} alone" style="border-color:{color_of(label)}">{label}'
        f'</button> {breakable(subject.profile.names[label])}</h3><p class="share">{text}</p>'
        f"<ul>{facts}</ul></article>"
    )


def warnings_on(
    points: FloatArray | SparsePoints, summaries: Sequence[ClusterSummary]
) -> Iterator[str]:
    """Yield what may be wrong with finite points and their clusters."""
    mean_size, n_points = sum(one.size for one in summaries) / len(summaries), points.shape[0]
    if tiny := [str(one.label) for one in summaries if 0 < one.size < 0.1 * mean_size]:
        yield f"clusters with less than a tenth of the mean size: {some(tiny)} (outliers?)"
    n_copies = n_points - len(np.unique(row_keys(points, np.random.RandomState(0))))
    if n_copies and n_copies >= 0.01 * n_points:
        yield (
            f"{n_copies:,} of {n_points:,} rows ({percent(n_copies / n_points)}) are copies of "
            "others in all columns used. Each counts; drop them if they are mistakes, or keep one "
            "of each with a weight."
        )


def _box(subject: Subject) -> str:
    """List what was left out, and what needs a check."""
    found = warnings_on(subject.points, subject.profile.clusters)
    told = " ".join(subject.file.notes)
    left = [
        f"“{column.name}” ({column.kind}: {column.why})"
        for column in subject.columns
        if not (column.is_used or column.kind == "place")
        if f'"{column.name}" ({column.why})' not in told
    ]
    columns = [f"columns left out: {some(left, 6)}"] if left else []
    texts = [*columns, *subject.file.notes, *found]
    if not texts:
        return "<p class='note'>Nothing was left out, and no check of the data failed.</p>"
    items = "".join(f"<li>{escaped(text[0].upper() + text[1:])}</li>" for text in texts)
    return f'<aside class="box"><h2>Left out, or to check</h2><ul>{items}</ul></aside>'
