"""The sections of a report, in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.plots.canvas import color_of
from powermeans.reporting.line_chart import line_chart
from powermeans.reporting.page_data import decimals_of
from powermeans.reporting.subject import Subject
from powermeans.reporting.summaries import ClusterSummary
from powermeans.reporting.warnings_on_data import find_warnings
from powermeans.types import IndexArray

_MOST_CELLS = 2000
_MOST_HEAT_COLUMNS = 20
# Numbers outside this range have four digits and an exponent.
_LARGEST, _LEAST = 1e15, 1e-4
_ALL_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the HTML below it."""

    name: str
    title: str
    body: str


def sections_of(
    subject: Subject,
    annealing: PathRecorder | None,
    choice: Any,
    code: str,
    optimality: Any = None,
) -> list[Section]:
    """Return the sections of a report in order, without those that have nothing to show."""
    found = [
        _what_was_run(subject, optimality),
        _warnings(subject),
        _clusters(subject),
        _scatter(subject),
        _means(subject),
        _annealing(annealing),
        _sweeps(getattr(subject.model, "history_", None)),
        _choice(choice),
        _code(code),
    ]
    return [section for section in found if section is not None]


def _what_was_run(subject: Subject, optimality: Any) -> Section:
    facts = (
        f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in _facts(subject, optimality)
    )
    return Section("run", "What was run", f'<dl class="facts">{"".join(facts)}</dl>')


def _facts(subject: Subject, optimality: Any) -> Iterator[tuple[str, str]]:
    model, (n_points, n_features) = subject.model, subject.points.shape
    yield "method", html.escape(type(model).__name__)
    yield "points", _count(n_points)
    yield "columns", _count(n_features)
    yield "clusters", _count(len(subject.clusters))
    if hasattr(model, "inertia_"):
        yield "inertia", f"{model.inertia_:.6g}"
    if optimality is not None:
        yield "optimality", html.escape(optimality.verdict)
    if subject.weights is not None:
        yield "weight of all points", _number(float(subject.weights.sum()))
    if subject.scalers:
        names = ", then ".join(type(scaler).__name__ for scaler in subject.scalers)
        yield "scaled by", html.escape(names)
    variance = float(np.square(subject.columns.deviations).sum())
    total = sum(cluster.weight for cluster in subject.clusters) * variance
    within = sum(cluster.weight * cluster.spread**2 for cluster in subject.clusters)
    if total > 0:
        yield "variance explained", f"{1 - within / total:.1%}"
    yield from _facts_of_fit(model)


def _facts_of_fit(model: Any) -> Iterator[tuple[str, str]]:
    if hasattr(model, "n_iter_"):
        yield "sweeps", _count(int(np.max(model.n_iter_)))
    if hasattr(model, "critical_power_"):
        yield "critical power", f"{model.critical_power_:.3g}".replace("-", "−")
    if hasattr(model, "spent_"):
        yield "seconds", f"{model.spent_.seconds:.3g}"
    random_state = model.get_params(deep=False).get("random_state")
    if random_state is not None:
        yield "random_state", html.escape(repr(random_state)[:40])


def _warnings(subject: Subject) -> Section:
    found = find_warnings(subject.points, subject.labels, subject.columns, subject.clusters)
    if not found:
        body = "<p>Nothing looked wrong: scales, sizes, gaps between clusters, copies of rows.</p>"
        return Section("warnings", "Checks", body)
    items = "".join(f"<li>{html.escape(warning.text)}</li>" for warning in found)
    return Section("warnings", "Look at this first", f'<ul class="warnings">{items}</ul>')


def _clusters(subject: Subject) -> Section:
    largest, names = max(one.size for one in subject.clusters), subject.columns.names
    rows = "".join(_cluster_row(one, largest, names) for one in subject.clusters)
    scaled = ", of the scaled points" if subject.scalers else ""
    weighted = ". Shares are of the weight" if subject.weights is not None else ""
    body = (
        "<p>“sd” counts standard deviations of all points from their mean. The spread is the root "
        f"of the mean squared distance of the points of a cluster from their mean{scaled}{weighted}"
        '.</p><div class="wide"><table class="clusters"><thead><tr><th>cluster</th><th>points</th>'
        '<th>share</th><th>spread</th><th>nearest</th><th class="words">what sets it apart</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return Section("clusters", "The clusters", body)


def _cluster_row(cluster: ClusterSummary, largest: int, names: list[str]) -> str:
    width, color = 3.5 * cluster.size / max(largest, 1), color_of(cluster.label)
    bar = f'<span class="bar" style="width:{width:.2f}rem;background:{color}"></span>'
    nearest = "" if cluster.nearest is None else str(cluster.nearest)
    return (
        f'<tr><th scope="row">{cluster.label}</th>'
        f'<td data-of="points">{bar}{_count(cluster.size)}</td>'
        f'<td data-of="share">{cluster.share:.1%}</td>'
        f'<td data-of="spread">{_number(cluster.spread)}</td>'
        f'<td data-of="nearest">{nearest}</td>'
        f'<td class="words">{html.escape(cluster.words(names))}</td></tr>'
    )


def _scatter(subject: Subject) -> Section:
    n_points, n_shown = len(subject.labels), len(subject.shown)
    body = ""
    if n_shown < n_points:
        body += (
            f"<p>A sample of {_count(n_shown)} of the {_count(n_points)} points is shown, drawn by "
            "chance.</p>"
        )
    if subject.points.shape[1] > 2:
        body += (
            f"<p>The plane of the two principal axes shows {subject.plane.share:.0%} of the "
            "variance: clusters that overlap here may be apart in other directions.</p>"
        )
    return Section("points", "The points", body + _SCATTER)


_SCATTER = """<div class="tools">
<label for="right">to the right</label><select id="right"></select>
<label for="up">upwards</label><select id="up"></select>
<button type="button" id="in" aria-label="zoom in">+</button>
<button type="button" id="out" aria-label="zoom out">−</button>
<button type="button" id="reset">all in sight</button>
</div>
<div class="stage">
<canvas id="scatter" tabindex="0" role="application" aria-describedby="scatter-help"
 aria-label="the points, by cluster"></canvas>
<div id="tip" role="status" hidden></div>
</div>
<p class="note" id="scatter-help">Drag to move; click, then turn the wheel, or pinch, to zoom. By
keyboard: arrows, + and −, 0 for all, n and p for the next and previous point.</p>
<div class="tools"><span>clusters</span><button type="button" id="all">show all</button>
<button type="button" id="none">hide all</button></div>
<div id="legend" role="group" aria-label="clusters to show"></div>
"""


def _means(subject: Subject) -> Section | None:
    clusters, n_features = subject.weighing, subject.points.shape[1]
    n_columns = min(_MOST_HEAT_COLUMNS, _MOST_CELLS // len(clusters), n_features)
    if n_columns == 0:
        return None
    columns = subject.distinguishing(n_columns)
    head = "".join(_heat_head(subject.columns.names[column]) for column in columns)
    in_units = ", in the units of the data" if subject.scalers else ""
    some = f" The {n_columns} columns that differ most." if n_columns < n_features else ""
    body = (
        f"<p>The mean of each cluster{in_units}; blue is below the mean of all points, red above."
        f'{some}</p><div class="wide" tabindex="0" role="region" aria-label="means">'
        f'<table class="heat"><thead><tr><th>cluster</th>{head}</tr></thead>'
        f"<tbody>{_heat_rows(subject, columns)}</tbody></table></div>"
    )
    return Section("means", "Means by column", body)


def _heat_head(name: str) -> str:
    escaped = html.escape(name)
    return f'<th class="column" scope="col" title="{escaped}">{escaped}</th>'


def _heat_rows(subject: Subject, columns: IndexArray) -> str:
    clusters, deviations = subject.weighing, subject.own_deviations()
    means = subject.in_own_units(np.stack([cluster.mean for cluster in clusters]))
    reach = max(float(np.abs([cluster.z_scores for cluster in clusters]).max()), 1e-12)
    rows = []
    for cluster, mean in zip(clusters, means, strict=True):
        shares = cluster.z_scores / reach
        cells = [_heat_cell(_number(mean[f], deviations[f]), shares[f]) for f in columns]
        rows.append(f'<tr><th scope="row">{cluster.label}</th>{"".join(cells)}</tr>')
    return "".join(rows)


def _heat_cell(text: str, share: float) -> str:
    """Return a cell whose colour fades into that of the page, dark or light."""
    rgb = "178,24,43" if share > 0 else "33,102,172"
    return f'<td style="background:rgba({rgb},{0.55 * abs(share):.2f})">{text}</td>'


def _annealing(annealing: PathRecorder | None) -> Section | None:
    if annealing is None:
        return None
    n_descents = len(annealing.descents())
    first = f"<p>This is the first of {n_descents} descents of the search.</p>"
    body = (
        "<p>Where each sweep moved the centers. A soft power draws them to the middle; as it falls "
        f"they part.</p>{first if n_descents > 1 else ''}"
        '<div class="tools"><button type="button" id="play">play</button>'
        '<input type="range" id="sweep" min="0" max="0" value="0" aria-label="sweep">'
        '<output id="said" for="sweep"></output></div>'
        '<canvas id="ways" role="img" aria-label="the ways of the centers"></canvas>'
    )
    return Section("annealing", "The annealing", body)


def _sweeps(history: Any) -> Section | None:
    if history is None or len(history) < 2:
        return None
    numbers, inertias = np.arange(1, len(history) + 1), history.inertia
    is_log = bool((inertias > 0).all())
    chart = line_chart(numbers, inertias, x_name="sweep", y_name="inertia", is_log=is_log)
    scale = ", on a logarithmic scale" if is_log else ""
    text = f"<p>The inertia at the centers before each of the {len(history)} sweeps{scale}."
    if (np.diff(inertias) > 0).any():
        text += (
            " It may rise on the way, while powers are soft or a search moves centers elsewhere."
        )
    return Section("sweeps", "Sweep by sweep", f"{text}</p><figure>{chart}</figure>")


def _choice(choice: Any) -> Section | None:
    if choice is None:
        return None
    names = [name for name in choice.table if name != "k" and not name.endswith("_error")]
    says: dict[str, int | None] = getattr(choice, "by_criterion", {})
    charts = "".join(_criterion(name, choice.table, says.get(name)) for name in names)
    agreement = f"with {choice.agreement:.0%} of the criteria"
    body = f"<p>Recommended is k = {choice.recommended}, {agreement}.</p>"
    return Section("choice", "Which k", f'{body}<div class="charts">{charts}</div>')


def _criterion(name: str, table: dict[str, Any], says: int | None) -> str:
    title = name.replace("_", " ")
    chart = line_chart(table["k"], table[name], x_name="k", y_name=title, mark=says)
    chosen = "" if says is None else f": k = {says}"
    return f"<figure><figcaption>{html.escape(title)}{chosen}</figcaption>{chart}</figure>"


def _code(code: str) -> Section:
    body = (
        '<button type="button" id="copy">copy</button><pre><code id="program">'
        f"{html.escape(code)}</code></pre>"
    )
    return Section("code", "The same in Python", body)


def _count(number: int) -> str:
    """Return a number with thin spaces, which do not break, between thousands."""
    return f"{number:,}".replace(",", "\u202f")


def _number(value: float, deviation: float = 0.0) -> str:
    """Return a number with all whole digits, and decimals to show four digits of it or its sd."""
    if not math.isfinite(value) or abs(value) >= _LARGEST or 0 < abs(value) < _LEAST:
        return f"{value:.4g}"
    wanted = max(decimals_of(value), decimals_of(deviation))
    return f"{value:.{min(wanted, decimals_of(value, _ALL_DIGITS))}f}"
