"""The sections of a report, in HTML."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from powermeans.app.report.cards import Cards
from powermeans.app.report.charts import line_chart
from powermeans.app.report.row_sample import CLEAR
from powermeans.app.report.subject import Subject
from powermeans.app.report.text import breakable, count, escaped, listed, number, percent, plain
from powermeans.app.report.versions import versions
from powermeans.app.report.warnings_on_data import find_warnings
from powermeans.divergences import resolve
from powermeans.engine.callbacks import PathRecorder
from powermeans.types import IndexArray

Section = tuple[str, str, str]
"""The name of a section in links, its heading, and the HTML below it."""


def sections_of(subject: Subject, code: str) -> list[Section]:
    """Return the sections of a report in order, without those that have nothing to show."""
    cards = Cards.of(subject)
    found = [
        _answer(cards),
        _warnings(subject),
        _clusters(cards),
        _scatter(subject),
        _means(subject),
        _sureness(cards),
        _annealing(subject.told.annealing),
        _what_was_run(subject, code),
    ]
    return [section for section in found if section is not None]


def _answer(cards: Cards) -> Section:
    sentences = (_how_many(cards.subject), _how_good(cards.subject), _how_sure(cards))
    body = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    return "answer", "The answer", f'<div class="answer">{body}</div>'


def _how_many(subject: Subject) -> str:
    """Say how many clusters of what there are, and where they differ."""
    n_clusters, source = len(subject.clusters), subject.told.source
    of = "" if source in (None, "-") else f" of {escaped(os.path.basename(str(source)))}"
    text = f"The {count(len(subject.labels))} rows{of} form "
    if n_clusters == 1:
        return f"{text}one cluster."
    explained = subject.explained()
    most = np.argsort(-explained, kind="stable")[:3]
    names = [plain(subject.columns.names[f]) for f in most if explained[f] > 0]
    differ = f", which differ most in {escaped(listed(names))}" if names else ""
    return f"{text}<strong>{count(n_clusters)} clusters</strong>{differ}."


def _how_good(subject: Subject) -> str:
    """Say how much of the variance the clusters explain, and how large they are."""
    shares = sorted(cluster.share for cluster in subject.clusters)
    of = "weight" if subject.weights is not None else "rows"
    sizes = (
        f"the largest holds {percent(shares[-1])} of the {of}, the smallest {percent(shares[0])}"
    )
    explained = _variance_explained(subject)
    if len(shares) == 1 or explained is None:
        return f"Of the clusters {sizes}." if len(shares) > 1 else "It holds all rows."
    strong = f"<strong>{percent(explained)}</strong>"
    return f"The clusters explain {strong} of the variance of the rows; {sizes}."


def _how_sure(cards: Cards) -> str:
    """Say how sure the clusters are: by distances, by the choice of k, and by a proof."""
    told, parts = cards.subject.told, []
    if (clear := cards.sample.clear_share()) is not None:
        parts.append(
            f"<strong>{percent(clear)}</strong> of the rows are clearly nearer to the center of "
            "their cluster than to any other"
        )
    if told.choice is not None:
        parts.append(_how_k_was_chosen(told.choice))
    if told.optimality is not None:
        parts.append(f"as a whole they are {escaped(told.optimality.verdict)}")
    elif len(cards.subject.clusters) > 1:
        parts.append("whether others are better as a whole was not proved")
    text = "; ".join(parts) or "With one cluster there is nothing to be unsure of"
    return f"{text[0].upper()}{text[1:]}."


def _how_k_was_chosen(choice: Any) -> str:
    if not choice.is_clear:
        return f"no number of clusters is clear, and {choice.recommended} is a guess"
    return (
        f"{choice.recommended} clusters were chosen by {choice.decided_by.replace('_', ' ')}, and "
        f"{choice.agreement:.0%} of all criteria say the same"
    )


def _variance_explained(subject: Subject) -> float | None:
    variance = float(np.square(subject.columns.deviations).sum())
    total = sum(cluster.weight for cluster in subject.clusters) * variance
    within = sum(cluster.weight * cluster.spread**2 for cluster in subject.clusters)
    return 1 - within / total if total > 0 else None


def _warnings(subject: Subject) -> Section:
    found = find_warnings(subject.points, subject.labels, subject.columns, subject.clusters)
    if not found:
        body = "<p>Nothing looked wrong: scales, sizes, gaps between clusters, copies of rows.</p>"
        return "warnings", "Checks", body
    items = "".join(f"<li>{escaped(text)}</li>" for text in found.values())
    return "warnings", "Warnings", f'<ul class="warnings">{items}</ul>'


def _clusters(cards: Cards) -> Section:
    subject, sample = cards.subject, cards.sample
    text = (
        "A name says where the mean of a cluster is high or low: at least half a standard "
        "deviation of all rows from the mean of all, “very” if two. "
    )
    if sample.ratios is not None:
        text += f"A row is clearly its own if the next center is at least {CLEAR} times as far. "
    text += (
        "Bars are the rows of the cluster, the line all other rows; values far beyond the rest "
        "count in the outermost bars. Rows are counted from 1."
    )
    if len(sample.rows) < len(subject.labels):
        text += (
            f" Bars, lines and rows are of {count(len(sample.rows))} rows, drawn by chance; "
            "sizes and means are of all."
        )
    body = f'{cards.overview()}<p class="note">{text}</p>{cards.cards()}'
    return "clusters", "The clusters", body


def _scatter(subject: Subject) -> Section:
    n_points, n_shown = len(subject.labels), len(subject.shown)
    body = ""
    if n_shown < n_points:
        body += (
            f"<p>A sample of {count(n_shown)} of the {count(n_points)} points is shown, drawn by "
            "chance.</p>"
        )
    if subject.points.shape[1] > 2:
        body += (
            f"<p>The plane of the two principal axes shows {subject.plane.share:.0%} of the "
            "variance: clusters that overlap here may be apart in other directions.</p>"
        )
    return "points", "The points", body + _SCATTER


_SCATTER = """<div class="tools">
<label for="right">horizontal axis</label><select id="right"></select>
<label for="up">vertical axis</label><select id="up"></select>
<button type="button" id="in" aria-label="zoom in">+</button>
<button type="button" id="out" aria-label="zoom out">−</button>
<button type="button" id="reset">show everything</button>
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
    """Show the means of the columns that differ most; few clusters stand side by side."""
    clusters, n_features = subject.weighing, subject.points.shape[1]
    are_across = len(clusters) <= 8
    n_columns = min(20 if are_across else 8, 2000 // len(clusters), n_features)
    if n_columns == 0:
        return None
    columns = subject.distinguishing(n_columns)
    names = [breakable(subject.columns.names[column]) for column in columns]
    named = [f"{one.label} {escaped(subject.names[one.label])}" for one in clusters]
    cells = _heat_cells(subject, columns)
    table = (
        _heat_table("column", named, names, list(zip(*cells, strict=True)))
        if are_across
        else _heat_table("cluster", names, named, cells)
    )
    in_units = ", in the units of the data" if subject.scalers else ""
    some = f" The {n_columns} columns that differ most." if n_columns < n_features else ""
    body = (
        f"<p>The mean of each cluster{in_units}; blue is below the mean of all points, red above."
        f'{some}</p><div class="wide" tabindex="0" role="region" aria-label="means">{table}</div>'
    )
    return "means", "Means by column", body


def _heat_table(of: str, heads: list[str], sides: list[str], cells: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th class="column" scope="col">{name}</th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{side}</th>{"".join(row)}</tr>'
        for side, row in zip(sides, cells, strict=True)
    )
    return (
        f'<table class="heat"><thead><tr><th scope="col">{of}</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _heat_cells(subject: Subject, columns: IndexArray) -> list[list[str]]:
    clusters, deviations = subject.weighing, subject.own_deviations()
    means = subject.in_own_units(np.stack([cluster.mean for cluster in clusters]))
    reach = max(float(np.abs([cluster.z_scores for cluster in clusters]).max()), 1e-12)
    return [
        [_heat_cell(number(mean[f], deviations[f]), one.z_scores[f] / reach) for f in columns]
        for one, mean in zip(clusters, means, strict=True)
    ]


def _heat_cell(text: str, share: float) -> str:
    """Return a cell whose colour fades into that of the page, dark or light."""
    rgb = "178,24,43" if share > 0 else "33,102,172"
    return f'<td style="background:rgba({rgb},{0.55 * abs(share):.2f})">{text}</td>'


def _sureness(cards: Cards) -> Section:
    """Say how sure rows, the number of clusters and the whole are."""
    told = cards.subject.told
    parts = [f"<h3>Each row</h3><p>{_of_rows(cards)}</p>"]
    if told.choice is not None:
        parts.append(f"<h3>The number of clusters</h3>{_choice(told.choice)}")
    parts.append(f"<h3>The whole</h3><p>{_of_whole(cards.subject, told.optimality)}</p>")
    return "sure", "How sure", "".join(parts)


def _of_rows(cards: Cards) -> str:
    sample = cards.sample
    if (clear := sample.clear_share()) is None:
        many = len(cards.subject.clusters) > 1
        return "This model tells no distances to centers." if many else "There is one cluster."
    text = (
        f"For {clear:.1%} of the rows the next center is at least {CLEAR} times as far as their "
        f"own. The other {1 - clear:.1%} lie between clusters, and a little more or other data "
        "might put them elsewhere."
    )
    if (soft := sample.mean_membership()) is not None:
        text += (
            f" By the memberships of the model a row is {percent(soft)} in its own cluster, on "
            "average."
        )
    return text


def _of_whole(subject: Subject, optimality: Any) -> str:
    if optimality is None:
        return f"No bound on the optimum was searched for.{_how_to_prove(subject.model)}"
    bound, inertia = f"{optimality.bound:.6g}", f"{optimality.inertia:.6g}"
    sure = (
        "" if optimality.confidence is None else f", at a confidence of {optimality.confidence:g}"
    )
    return (
        f"The inertia of these clusters is {inertia}, and no {len(subject.clusters)} clusters have "
        f"less than {bound}{sure}: they are {escaped(optimality.verdict)}."
    )


def _how_to_prove(model: Any) -> str:
    """Tell how to search for a bound, where there is one: for squared Euclidean distances."""
    parameters = model.get_params(deep=False)
    is_squared = resolve(parameters.get("divergence", "squared_euclidean")).is_squared
    is_whole = parameters.get("missing", "error") == "error"
    if not (hasattr(model, "optimality_gap") and is_squared and is_whole):
        return ""
    return (
        " To search for one: <code>powermeans fit --prove 10</code>, or "
        "<code>model.optimality_gap(X)</code>."
    )


def _choice(choice: Any) -> str:
    names = [name for name in choice.table if name != "k" and not name.endswith("_error")]
    says: dict[str, int | None] = getattr(choice, "by_criterion", {})
    charts = "".join(_criterion(name, choice.table, says.get(name)) for name in names)
    verdict = f"Recommended is k = {choice.recommended}"
    if not choice.is_clear:
        verdict = (
            f"There is no clear k: {html.escape(choice.doubt)}. A guess is {choice.recommended}"
        )
    text = f"{verdict}; {choice.agreement:.0%} of the criteria say so."
    return f'<p>{text}</p><div class="charts of-k">{charts}</div>'


def _criterion(name: str, table: dict[str, Any], says: int | None) -> str:
    title = name.replace("_", " ")
    chart = line_chart(table["k"], table[name], x_name="k", y_name=title, mark=says)
    chosen = "" if says is None else f": k = {says}"
    return f"<figure><figcaption>{escaped(title)}{chosen}</figcaption>{chart}</figure>"


def _annealing(annealing: PathRecorder | None) -> Section | None:
    if annealing is None:
        return None
    n_more = len(annealing.descents()) - 1
    search = (
        f" A search then began {count(n_more)} more times elsewhere; dashed lines lead to where "
        "it found less inertia, and to the result."
    )
    body = (
        "<p>Where the sweeps moved the centers. A soft power draws them to the middle; as it falls "
        f"they part.{search * (n_more > 0)} The last step is the clusters of this page.</p>"
        '<div class="tools"><button type="button" id="play">play</button>'
        '<input type="range" id="sweep" min="0" max="0" value="0" aria-label="step">'
        '<output id="said" for="sweep"></output></div>'
        '<canvas id="ways" role="img" aria-label="the ways of the centers"></canvas>'
    )
    return "annealing", "How the centers were found", body


def _what_was_run(subject: Subject, code: str) -> Section:
    body = (
        f"<details><summary>method, parameters, history, versions, code</summary>"
        f"{_listed(_facts(subject, subject.told.optimality))}"
        f"<h3>Parameters</h3>{_listed(_parameters(subject.model))}"
        f"{_sweeps(getattr(subject.model, 'history_', None))}"
        f"<h3>Versions</h3>{_listed(versions().items())}{_code(code)}</details>"
    )
    return "run", "What was run", body


def _listed(facts: Iterable[tuple[str, str]]) -> str:
    entries = (f"<div><dt>{name}</dt><dd>{escaped(fact)}</dd></div>" for name, fact in facts)
    return f'<dl class="facts">{"".join(entries)}</dl>'


def _facts(subject: Subject, optimality: Any) -> Iterator[tuple[str, str]]:
    model, (n_points, n_features) = subject.model, subject.points.shape
    yield "method", type(model).__name__
    yield "points", count(n_points)
    yield "columns", count(n_features)
    yield "clusters", count(len(subject.clusters))
    if hasattr(model, "inertia_"):
        yield "inertia", f"{model.inertia_:.6g}"
    if optimality is not None:
        yield "optimality", optimality.verdict
    if subject.weights is not None:
        yield "weight of all points", number(float(subject.weights.sum()))
    if subject.scalers:
        yield "scaled by", ", then ".join(type(scaler).__name__ for scaler in subject.scalers)
    if (explained := _variance_explained(subject)) is not None:
        yield "variance explained", f"{explained:.1%}"
    yield from _facts_of_fit(model)


def _facts_of_fit(model: Any) -> Iterator[tuple[str, str]]:
    if hasattr(model, "n_iter_"):
        yield "sweeps", count(int(np.max(model.n_iter_)))
    if math.isfinite(getattr(model, "critical_power_", math.nan)):
        yield "critical power", f"{model.critical_power_:.3g}".replace("-", "−")
    if hasattr(model, "spent_"):
        yield "seconds", f"{model.spent_.seconds:.3g}"


def _parameters(model: Any) -> Iterator[tuple[str, str]]:
    for name, value in model.get_params(deep=False).items():
        text = " ".join(repr(value).split())
        if name != "callback":
            yield name, text if len(text) <= 80 else f"{text[:80]}…"


def _sweeps(history: Any) -> str:
    if history is None or len(history) < 2:
        return ""
    numbers, inertias = np.arange(1, len(history) + 1), history.inertia
    is_log = bool((inertias > 0).all())
    chart = line_chart(numbers, inertias, x_name="sweep", y_name="inertia", is_log=is_log)
    scale = ", on a logarithmic scale" if is_log else ""
    text = f"The inertia at the centers before each of the {len(history)} sweeps{scale}."
    if (np.diff(inertias) > 0).any():
        text += (
            " It may rise on the way, while powers are soft or a search moves centers elsewhere."
        )
    return f"<h3>Sweep by sweep</h3><p>{text}</p><figure>{chart}</figure>"


def _code(code: str) -> str:
    return (
        '<h3>The same in Python</h3><button type="button" id="copy">copy</button>'
        f'<pre><code id="program">{html.escape(code)}</code></pre>'
    )
