"""What stands below the first screen: means, rows, k, the gap, how it was read, and the code."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.errors import counted
from powermeans.explaining.explanation import explain
from powermeans.explaining.features import is_squared
from powermeans.methods.base import CenterEstimator
from powermeans.plots import fitted
from powermeans.plots.canvas import color_of
from powermeans.versions import versions
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.report.rows import MOST_TOLD, Rows
from powermeans_tables.report.subject import ABOUT_COLUMNS, Subject, about_columns
from powermeans_tables.report.text import breakable, escaped

_MOST_EXPLAINED = 100  # columns; rules on more take longer than all the rest
_MOST_ROWS_EXPLAINED, _MOST_CLUSTERS_EXPLAINED = 2_000, 30
Section = tuple[str, str, str]  # its name in links, its heading, and the HTML below it


def details(subject: Subject, rows: Rows, choice: Any, optimality: Any, code: str) -> list[Section]:
    """Return the sections below the first screen, without those that have nothing to show."""
    found = [
        ("means", "Means of all clusters", _means(subject, rows)),
        ("rows", "Example rows", _examples(subject, rows)),
        ("k", "Number of clusters", _chart_of_k(choice)),
        ("gap", "Gap to the optimum", f"<p>{_gap(subject, optimality)}</p>"),
        ("read", "How it was read and fitted", _how_read(subject)),
        ("code", "Code to repeat it", f"<pre><code>{html.escape(code)}</code></pre>"),
    ]
    return [section for section in found if section[2]]


def _table(heads: Sequence[str], bodies: Sequence[str], kind: str) -> str:
    """Return a table in HTML, which a phone shows row by row."""
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{kind}">'
        f'<table class="{kind}"><thead><tr>{head}</tr></thead>{"".join(bodies)}</table></div>'
    )


def _row(head: str, names: Sequence[str], cells: Sequence[str], styles: Sequence[str] = ()) -> str:
    inner = "".join(
        f'<td data-of="{escaped(name)}"{style}>{escaped(cell)}</td>'
        for name, cell, style in zip(names, cells, styles or [""] * len(cells), strict=True)
    )
    return f'<tr><th scope="row">{head}</th>{inner}</tr>'


def _means(subject: Subject, rows: Rows) -> str:
    """Draw a bar from the mean of all rows to that of each cluster, in each column."""
    profile, clusters = subject.profile, subject.profile.weighing
    are_across = len(clusters) <= 8
    most = min(20 if are_across else 6, max(1, 2000 // len(clusters)))
    told = [profile.fields[j] for j in sorted(profile.telling(most))]
    lines = [line for field in told for line in field.lines(profile.means, profile.of_all)]
    heights = [float(np.nanmax(np.abs(apart))) for *_, apart in lines]
    reach = max(*heights, 1e-12)
    lines = [lines[j] for j in sorted(np.argsort(heights)[::-1][: most + 4])]
    sides = [breakable(name) for name, *_ in lines]
    cells = [[texts[label] for label in clusters] for _, texts, _ in lines]
    bars = [[_bar(float(apart[label]) / reach) for label in clusters] for *_, apart in lines]
    heads, names = [_named(subject, label) for label in clusters], [*map(str, clusters)]
    if not are_across:
        cells, bars = [*map(list, zip(*cells, strict=True))], [*map(list, zip(*bars, strict=True))]
        heads, sides, names = sides, heads, [name for name, *_ in lines]
    body = [_row(*each) for each in zip(sides, [names] * len(sides), cells, bars, strict=True)]
    n_fields = len(profile.fields)
    some = f" Of {n_fields:,} columns, these differ most." * (most < n_fields)
    table = _table(["", *heads], ["<tbody>", *body, "</tbody>"], "means")
    table += _explained(subject, rows).replace(" %", "\N{NO-BREAK SPACE}%")
    return (
        "<p>Bars begin at the mean of all rows: to the right and red where the cluster is above "
        f"it, to the left and blue where it is below.{some}</p>{table}"
    )


def _explained(subject: Subject, rows: Rows) -> str:
    """Say what rules would cost."""
    model, points, n_clusters = subject.model, subject.points, len(subject.profile.clusters)
    if sparse.issparse(points) or points.shape[1] > _MOST_EXPLAINED:
        return ""
    if not isinstance(model, CenterEstimator) or not 2 <= n_clusters <= _MOST_CLUSTERS_EXPLAINED:
        return ""
    step = -(-len(rows.places) // _MOST_ROWS_EXPLAINED)
    some, weights = fitted.rows_of(subject.given, rows.places[::step]), rows.weights[::step]
    of = f"of {len(weights):,} rows; " if len(weights) < len(subject.labels) else ""
    sentence = explain(model, some, sample_weight=weights).sentence
    return f"<p>{escaped(sentence)} ({of}powermeans explain).</p>"


def _bar(share: float) -> str:
    ends = sorted((50.0, 50 + 50 * share))
    way = "above" if share > 0 else "below"
    return f' class="{way}" style="--from:{ends[0]:.1f}%;--to:{ends[1]:.1f}%"'


def _named(subject: Subject, label: int) -> str:
    badge = f'<span class="badge" style="border-color:{color_of(label)}">{label}</span>'
    return f"{badge} {breakable(subject.profile.names[label])}"


def _examples(subject: Subject, rows: Rows) -> str:
    """List the rows nearest to each center and those farthest from it."""
    n_each = 3 if len(subject.profile.clusters) <= 12 else 1
    groups = [
        group
        for label in range(len(subject.profile.clusters))
        for group in (
            (f"{_named(subject, label)}: typical", rows.nearest(label, n_each)),
            ("least typical", rows.nearest(label, n_each, -1)),
        )
    ]
    shown = [place for _, found in groups for place in found]
    names, cells = rows.cells(subject, subject.profile.telling(MOST_TOLD), shown)
    numbers, bodies = subject.row_numbers(rows.places[shown]), list[str]()
    lines = iter(_row(f"row {at:,}", names, told) for at, told in zip(numbers, cells, strict=True))
    for title, found in groups:
        head = f'<tr><th scope="rowgroup" colspan="{len(names) + 1}">{title}</th></tr>'
        bodies += [f"<tbody>{head}", *islice(lines, len(found)), "</tbody>"] if found else []
    if not bodies:
        return ""
    few = len(rows.places) < len(subject.labels)
    some = f" Of {counted(len(rows.places), 'row')}, drawn by chance." if few else ""
    return (
        f"<p>Typical rows are nearest to the center of their cluster, the least typical farthest "
        f"from it.{some}</p>{_table(['', *map(breakable, names)], bodies, 'rows')}"
    )


def _chart_of_k(choice: Any) -> str:
    """Name the k of each criterion, and draw the inertia for each k that was tried."""
    if choice is None:
        return ""
    values = np.asarray(choice.table["inertia"], dtype=np.float64)
    heights = 100 * values / (values.max() or 1.0)
    bars = "".join(
        f'<div{" class=chosen" * int(k == choice.recommended)} title="{value:.4g}">'
        f'<span style="height:{height:.1f}%"></span>{k}</div>'
        for k, value, height in zip(choice.table["k"], values, heights, strict=True)
    )
    verdict = escaped(f"{choice.verdict()}, because {choice.why}")
    said = [f"{name} {k or 'none'}".replace("_", " ") for name, k in choice.by_criterion.items()]
    verdict = f"{verdict[0].upper()}{verdict[1:]}. Each criterion recommends a number"
    return (
        f"<p>{verdict}: {escaped(', '.join(said))}.</p><figure>"
        f'<div role="img" class="of-k" aria-label="inertia by k">{bars}</div>'
        '<figcaption class="note">inertia for each number of clusters</figcaption></figure>'
    )


def _gap(subject: Subject, optimality: Any) -> str:
    """Say how far the clusters may be from the best, or how to find out where there is a bound."""
    if optimality is None:
        way = "<code>powermeans fit --prove 10</code>, or <code>model.optimality_gap(X)</code>"
        has_bound = hasattr(subject.model, "optimality_gap") and is_squared(subject.model)
        how = f" To search for one: {way}." if has_bound else ""
        return f"No bound on the optimum was searched for.{how}"
    confidence = optimality.confidence
    sure = "" if confidence is None else f", at a confidence of {confidence:g}"
    return (
        f"The inertia of these clusters is {optimality.inertia:.6g}, and no "
        f"{counted(len(subject.profile.clusters), 'cluster')} can have less than "
        f"{optimality.bound:.6g}{sure}: <strong>{escaped(optimality.verdict)}</strong>."
    )


def _how_read(subject: Subject) -> str:
    prepare, (_, *heads) = subject.prepare, ABOUT_COLUMNS
    notes = "".join(f"<li>{escaped(text)}</li>" for text in subject.file.how_read)
    told = about_columns(prepare, subject.columns[:200]) if prepare else []
    lines = [_row(breakable(name), heads, cells) for name, *cells in told]
    table = _table(ABOUT_COLUMNS, ["<tbody>", *lines, "</tbody>"], "read") if lines else ""
    if len(lines) > 20:
        table = f"<details class=columns><summary>all columns</summary>{table}</details>"
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    facts = "".join(f"<li>{escaped(fact)}</li>" for fact in (*_how_fitted(subject), used))
    return f"<ul>{notes}{facts}</ul>{table}"


def _how_fitted(subject: Subject) -> Iterator[str]:
    model, scalers = subject.model, subject.scalers
    names = [type(one).__name__ for one in scalers if not isinstance(one, Prepare)]
    if names:
        yield f"scaled by {', then '.join(names)}"
    sweeps = ""
    if hasattr(model, "n_iter_"):
        sweeps = f", {counted(int(np.max(model.n_iter_)), 'sweep')}"
    inertia = f", inertia {model.inertia_:.6g}" if hasattr(model, "inertia_") else ""
    yield f"fitted by {type(model).__name__}{sweeps}{inertia}"
