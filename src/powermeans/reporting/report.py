"""A report: one HTML file with all there is to say about a fit, which asks for no network."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.inputs.checks import check_sample_weight
from powermeans.plots import fitted
from powermeans.plots.canvas import OKABE_ITO, color_of
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.reporting.line_chart import line_chart
from powermeans.reporting.python_code import python_code
from powermeans.reporting.summaries import ClusterSummary, Columns, summarize
from powermeans.reporting.warnings_on_data import cautions
from powermeans.sources import is_dask, is_parted
from powermeans.system.atomic_write import atomic_write
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints

_MOST_COLUMNS_TO_TELL = 6
_MOST_POINTS_OF_ANNEALING = 3000
_MOST_STEPS = 200
_MOST_PLACES_OF_ANNEALING = 20_000
_MOST_CELLS = 2000
_MOST_HEAT_COLUMNS = 20
_DIGITS = 4
_DIGITS_TO_DRAW = 5
_ALL_DIGITS = 15
_MOST_WHOLE, _LEAST = 1e15, 1e-4
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What the report is about."""

    model: Any
    points: FloatArray | SparsePoints
    labels: Labels
    columns: Columns
    clusters: list[ClusterSummary]
    shown: IndexArray
    plane: Plane
    weights: FloatArray | None
    scalers: Sequence[Any]

    def in_own_units(self, values: Any) -> Any:
        """Rows as they were before they were scaled."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            for scaler in reversed(self.scalers):
                values = scaler.inverse_transform(values)
        return values

    def own_deviations(self) -> FloatArray:
        """The standard deviation of each column in its own units."""
        if not self.scalers:
            return self.columns.deviations
        mean = self.columns.means[None]
        ends = self.in_own_units(np.vstack([mean, mean + self.columns.deviations]))
        deviations: FloatArray = np.abs(ends[1] - ends[0])
        return deviations


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and what stands below it."""

    name: str
    title: str
    body: str


def report(
    model: Any,
    X: PointsLike,
    path: str | os.PathLike[str],
    *,
    title: str = "Clusters",
    annealing: PathRecorder | None = None,
    choice: Any = None,
    source: str | None = None,
    scalers: Sequence[Any] = (),
    reading: Mapping[str, Any] | None = None,
    model_file: str | None = None,
    sample_weight: ArrayLike | None = None,
    max_points: int = 20_000,
) -> Path:
    """Write a report on a fit: one HTML file that opens anywhere, without a network.

    It says what was run, describes each cluster in words and numbers, shows the points in the plane
    (to zoom, to point at, to hide clusters in), the inertia sweep by sweep, and what looks wrong:
    columns of very different scales, clusters that are tiny, empty or not apart, rows that are
    copies. At the end is the Python code that does the same again.

    Parameters
    ----------
    model : estimator
        Fitted; of this package, or with `predict` and `cluster_centers_` such as scikit-learn's.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points. The names of its columns are used.
    path : str or path
        Where to write it. The file appears when all of it is written.
    title : str, default="Clusters"
        Of the page.
    annealing : PathRecorder, optional
        The recorder that was the `callback` of the fit: its centers move along a slider.
    choice : result of `choose_k`, optional
        Shown as a chart for each criterion.
    source : str, optional
        The file that the points came from, for the code at the end.
    scalers : sequence of transformer
        What the points went through before they came here, fitted and linear, as `StandardScaler`
        and `MinMaxScaler` of `sklearn.preprocessing`. Means and values are shown as they were
        before, in the units of the data.
    reading : dict, optional
        How the file was read: what `powermeans.tables.read_table` is given beside it.
    model_file : str, optional
        The saved model, where this is one and was not fitted to these points: the code at the end
        loads it.
    sample_weight : array-like of shape (n_samples,), optional
        Those of the fit. Shares, spreads, means and the variance explained are weighted then.
    max_points : int, default=20_000
        Of more points a sample is shown in the plane, and the page says so. Everything else is
        computed from all of them.

    Returns
    -------
    Path
        That of the file.

    See Also
    --------
    powermeans.plots.clusters : The clusters as a picture; the others are beside it.

    Examples
    --------
    >>> import os, tempfile
    >>> import powermeans
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> path = powermeans.PathRecorder()
    >>> model = powermeans.PowerKMeans(2, refine=0, random_state=0, callback=path).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = powermeans.report(
    ...         model, X, os.path.join(folder, "report.html"), annealing=path
    ...     )
    ...     written.stat().st_size < 100_000
    True
    """
    _refuse_parted(X)
    subject = _subject(model, X, max_points, sample_weight, scalers)
    code = python_code(
        model,
        source,
        scalers,
        reading=reading,
        model_file=model_file,
        weights=subject.weights,
    )
    steps = [] if annealing is None else _steps(annealing, subject.plane)
    sections = [
        _what_was_run(subject),
        *_cautions(subject),
        _clusters(subject),
        _scatter(subject),
        *_heat(subject),
        *_annealing(annealing, steps),
        *_sweeps(model),
        *_choice(choice),
        _code(code),
    ]
    page = _page(title, sections, _data(subject, steps))
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def _refuse_parted(X: Any) -> None:
    if is_dask(X) or is_parted(X):
        kind = "a Dask collection" if is_dask(X) else "to be read part by part"
        raise ValueError(
            f"a report looks at all rows at once, and X is {kind}, which may not fit into memory: "
            "pass some of the rows, as an array"
        )


def _subject(
    model: Any,
    X: PointsLike,
    max_points: int,
    sample_weight: ArrayLike | None,
    scalers: Sequence[Any],
) -> _Subject:
    labels = fitted.labels_of(model, X)
    points = fitted.points_of(model, X, labels)
    names = fitted.names_of(model, X)
    weights = check_sample_weight(sample_weight, len(labels))
    n_clusters = fitted.n_clusters_of(model, labels)
    columns, clusters = summarize(points, labels, n_clusters, names, weights)
    shown = fitted.sample_of(len(labels), max_points)
    in_plane = [f"{name}, scaled" for name in names] if scalers else names
    plane = Plane.of(points[shown], in_plane)
    return _Subject(model, points, labels, columns, clusters, shown, plane, weights, scalers)


# The page.


def _page(title: str, sections: list[_Section], data: dict[str, Any]) -> str:
    links = (f'<li><a href="#{one.name}">{html.escape(one.title)}</a></li>' for one in sections)
    bodies = (
        f'<section id="{one.name}"><h2>{html.escape(one.title)}</h2>\n{one.body}</section>'
        for one in sections
    )
    parts = {
        "title": html.escape(title),
        "version": html.escape(version("powermeans")),
        "navigation": "".join(links),
        "sections": "\n".join(bodies),
        "data": _json(data),
        "style": _file("page.css"),
        "script": _file("page.js"),
    }
    return _PLACEHOLDER.sub(lambda found: parts[found[1]], _file("page.html"))


def _file(name: str) -> str:
    return (
        resources.files("powermeans.reporting").joinpath("page", name).read_text(encoding="utf-8")
    )


def _json(data: dict[str, Any]) -> str:
    """JSON that can stand in a page: nothing in it ends the element that holds it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(subject: _Subject, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script of the page works with."""
    told = _columns_to_tell(subject)
    shown, is_pca = subject.shown, subject.points.shape[1] > 2
    columns: list[dict[str, Any]] = [
        {
            "name": name.partition(" (")[0] if is_pca else name or "chance",
            "values": _encoded(subject.plane.points[:, axis]),
        }
        for axis, name in enumerate(subject.plane.names)
    ]
    columns += _told(subject, told)
    data: dict[str, Any] = {
        "colors": OKABE_ITO,
        "clusters": len(subject.clusters),
        "sizes": [one.size for one in subject.clusters],
        "scatter": {
            "labels": _encoded(subject.labels[shown], "<u4"),
            "rows": _encoded(shown, "<u4"),
            "columns": columns,
            "centers": _places_of_centers(subject, told),
        },
    }
    if steps:
        some = subject.plane.points[fitted.sample_of(len(shown), _MOST_POINTS_OF_ANNEALING)]
        data["annealing"] = {"steps": steps, "points": _encoded(some.ravel())}
    return data


def _told(subject: _Subject, told: list[int]) -> list[dict[str, Any]]:
    """Columns as a point that is pointed at tells them."""
    some: Any = subject.in_own_units(subject.points[subject.shown])[:, told]
    dense: FloatArray = some if isinstance(some, np.ndarray) else some.toarray()
    deviations = subject.own_deviations()[told]
    return [
        {
            "name": subject.columns.names[feature],
            "values": _encoded(values),
            "decimals": _place_of(deviation) if deviation > 0 else 0,
            "tell": True,
        }
        for feature, values, deviation in zip(told, dense.T, deviations, strict=True)
    ]


def _columns_to_tell(subject: _Subject) -> list[int]:
    """Those in which the clusters differ most."""
    heights = np.stack([one.heights for one in subject.clusters if one.weight > 0])
    order = np.argsort(-heights.std(axis=0), kind="stable")[:_MOST_COLUMNS_TO_TELL]
    return [int(feature) for feature in np.sort(order)]


def _places_of_centers(subject: _Subject, told: list[int]) -> list[list[float]]:
    """The centers in the plane and in the columns; of a kernel, the means in their place."""
    if fitted.has_centers(subject.model):
        centers = fitted.centers_of(subject.model)
    else:
        centers = np.stack([one.mean for one in subject.clusters])
    centers = np.where(np.isnan(centers), 0.0, centers)
    own = subject.in_own_units(centers)
    places: list[list[float]] = np.column_stack(
        [subject.plane.project(centers), own[:, told]]
    ).tolist()
    return places


def _encoded(values: ArrayLike, dtype: str | None = None) -> str | dict[str, str]:
    """Bytes as text; numbers in half the bytes where that takes nothing away from them."""
    if dtype is not None:
        return base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode("ascii")
    with np.errstate(over="ignore"):
        is_short = bool((np.asarray(values).astype(np.float32) == values).all())
    dtype = "<f4" if is_short else "<f8"
    return {"dtype": dtype, "bytes": str(_encoded(values, dtype))}


def _place_of(value: float, digits: int = _DIGITS) -> int:
    """How many decimals a number has that is written with so many digits; at least none."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def _number(value: float, deviation: float = 0.0) -> str:
    """With some digits of it and of its deviation; whole digits are never left out."""
    if not math.isfinite(value) or abs(value) >= _MOST_WHOLE or 0 < abs(value) < _LEAST:
        return f"{value:.{_DIGITS}g}"
    wanted = max(_place_of(value), _place_of(deviation))
    return f"{value:.{min(wanted, _place_of(value, _ALL_DIGITS))}f}"


# The sections.


def _what_was_run(subject: _Subject) -> _Section:
    facts = (f"<div><dt>{name}</dt><dd>{said}</dd></div>" for name, said in _facts(subject))
    return _Section("run", "What was run", f'<dl class="facts">{"".join(facts)}</dl>')


def _facts(subject: _Subject) -> Iterator[tuple[str, str]]:
    model, (n_points, n_features) = subject.model, subject.points.shape
    yield "method", html.escape(type(model).__name__)
    yield "points", _count(n_points)
    yield "columns", _count(n_features)
    yield "clusters", _count(len(subject.clusters))
    if hasattr(model, "inertia_"):
        yield "inertia", f"{model.inertia_:.6g}"
    if subject.weights is not None:
        yield "weight of all points", _number(float(subject.weights.sum()))
    if subject.scalers:
        names = ", then ".join(type(scaler).__name__ for scaler in subject.scalers)
        yield "scaled by", html.escape(names)
    total = sum(one.weight for one in subject.clusters) * float(
        np.square(subject.columns.deviations).sum()
    )
    within = sum(one.weight * one.spread**2 for one in subject.clusters)
    if total > 0:
        yield "variance explained", f"{1 - within / total:.1%}"
    if hasattr(model, "n_iter_"):
        yield "sweeps", _count(int(np.max(model.n_iter_)))
    if hasattr(model, "critical_power_"):
        yield "critical power", f"{model.critical_power_:.3g}".replace("-", "−")
    if hasattr(model, "spent_"):
        yield "seconds", f"{model.spent_.seconds:.3g}"
    for name, value in model.get_params(deep=False).items():
        if name == "random_state" and value is not None:
            yield "random_state", html.escape(repr(value)[:40])


def _cautions(subject: _Subject) -> list[_Section]:
    found = cautions(subject.points, subject.labels, subject.columns, subject.clusters)
    items = "".join(f"<li>{html.escape(one.text)}</li>" for one in found)
    if not found:
        body = "<p>Nothing looked wrong: scales, sizes, gaps between clusters, copies of rows.</p>"
    else:
        body = f'<ul class="cautions">{items}</ul>'
    return [_Section("cautions", "Look at this first" if found else "Checks", body)]


def _clusters(subject: _Subject) -> _Section:
    largest = max(one.size for one in subject.clusters)
    rows = "".join(_cluster_row(one, largest, subject.columns.names) for one in subject.clusters)
    body = (
        "<p>“sd” counts standard deviations of all points from their mean. The spread is the root "
        "of the mean squared distance of the points of a cluster from their mean"
        + (", of the scaled points" if subject.scalers else "")
        + (". Shares are of the weight" if subject.weights is not None else "")
        + ".</p>"
        '<div class="wide"><table class="clusters"><thead><tr><th>cluster</th><th>points</th>'
        '<th>share</th><th>spread</th><th>nearest</th><th class="words">what sets it apart</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return _Section("clusters", "The clusters", body)


def _cluster_row(one: ClusterSummary, largest: int, names: list[str]) -> str:
    width = 3.5 * one.size / max(largest, 1)
    bar = f'<span class="bar" style="width:{width:.2f}rem;background:{color_of(one.label)}"></span>'
    nearest = "" if one.nearest is None else str(one.nearest)
    return (
        f'<tr><th scope="row">{one.label}</th><td data-of="points">{bar}{_count(one.size)}</td>'
        f'<td data-of="share">{one.share:.1%}</td><td data-of="spread">{_number(one.spread)}</td>'
        f'<td data-of="nearest">{nearest}</td>'
        f'<td class="words">{html.escape(one.words(names))}</td></tr>'
    )


def _scatter(subject: _Subject) -> _Section:
    n_points, n_shown = len(subject.labels), len(subject.shown)
    sampled = (
        f"<p>A sample of {_count(n_shown)} of the {_count(n_points)} points is shown, drawn by "
        "chance.</p>"
        if n_shown < n_points
        else ""
    )
    flat = (
        f"<p>The plane of the two principal axes shows {subject.plane.share:.0%} of the variance: "
        "clusters that overlap here may be apart in other directions.</p>"
        if subject.points.shape[1] > 2
        else ""
    )
    return _Section("points", "The points", f"{sampled}{flat}{_SCATTER}")


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


def _heat(subject: _Subject) -> list[_Section]:
    found = [one for one in subject.clusters if one.weight > 0]
    heights = np.stack([one.heights for one in found])
    n_columns = min(_MOST_HEAT_COLUMNS, _MOST_CELLS // len(found), heights.shape[1])
    if n_columns == 0:
        return []
    order = np.sort(np.argsort(-heights.std(axis=0), kind="stable")[:n_columns])
    head = "".join(_heat_head(subject.columns.names[feature]) for feature in order)
    reach = max(float(np.abs(heights).max()), 1e-12)
    means, deviations = (
        subject.in_own_units(np.stack([one.mean for one in found])),
        subject.own_deviations(),
    )
    rows = "".join(
        f'<tr><th scope="row">{one.label}</th>'
        + "".join(_heat_cell(_number(mean[f], deviations[f]), one.heights[f], reach) for f in order)
        + "</tr>"
        for one, mean in zip(found, means, strict=True)
    )
    body = (
        "<p>The mean of each cluster"
        + (", in the units of the data" if subject.scalers else "")
        + "; blue is below the mean of all points, red above."
        + (f" The {n_columns} columns that differ most." if n_columns < heights.shape[1] else "")
        + '</p><div class="wide" tabindex="0" role="region" aria-label="means">'
        '<table class="heat">'
        f"<thead><tr><th>cluster</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return [_Section("means", "Means by column", body)]


def _heat_head(name: str) -> str:
    escaped = html.escape(name)
    return f'<th class="column" scope="col" title="{escaped}">{escaped}</th>'


def _heat_cell(said: str, height: float, reach: float) -> str:
    """Its colour fades into that of the page, so that it serves dark and light."""
    rgb = "178,24,43" if height > 0 else "33,102,172"
    return f'<td style="background:rgba({rgb},{0.55 * abs(height) / reach:.2f})">{said}</td>'


def _steps(annealing: PathRecorder, plane: Plane) -> list[dict[str, Any]]:
    """The first descent, thinned where it is long, in the plane."""
    states = annealing.descents()[0] if annealing.states else []
    if not states:
        raise ValueError(
            "annealing has recorded nothing: pass the recorder as callback of the fit, for example "
            "PowerKMeans(8, callback=recorder)"
        )
    most = min(_MOST_STEPS, max(2, _MOST_PLACES_OF_ANNEALING // len(states[0].centers)))
    chosen = np.unique(np.linspace(0, len(states) - 1, most).astype(int))
    decimals = _decimals_to_draw(plane.points)
    return [
        {
            "words": _words_of_step(states[place]),
            "centers": [
                [round(right, decimals), round(up, decimals)]
                for right, up in plane.project(states[place].centers).tolist()
            ],
        }
        for place in chosen
    ]


def _decimals_to_draw(places: FloatArray) -> int:
    """As many as a screen can show of the extent of the points."""
    extents = np.ptp(places, axis=0)
    least = float(extents[extents > 0].min(initial=math.inf))
    return 9 if least == math.inf else _DIGITS_TO_DRAW - math.floor(math.log10(least))


def _words_of_step(state: Any) -> str:
    power = "−∞ (Lloyd)" if state.power == -math.inf else f"{state.power:.3g}".replace("-", "−")
    return f"sweep {state.sweep}, power {power}, inertia {state.inertia:.6g}"


def _annealing(annealing: PathRecorder | None, steps: list[dict[str, Any]]) -> list[_Section]:
    if annealing is None:
        return []
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
    return [_Section("annealing", "The annealing", body)]


def _sweeps(model: Any) -> list[_Section]:
    history = getattr(model, "history_", None)
    if history is None or len(history) < 2:
        return []
    is_positive = bool((history.inertia > 0).all())
    chart = line_chart(
        np.arange(1, len(history) + 1),
        history.inertia,
        x_name="sweep",
        y_name="inertia",
        is_log=is_positive,
    )
    scale = ", on a logarithmic scale" if is_positive else ""
    text = f"<p>The inertia at the centers before each of the {len(history)} sweeps{scale}."
    if (np.diff(history.inertia) > 0).any():
        text += (
            " It may rise on the way, while powers are soft or a search moves centers elsewhere."
        )
    return [_Section("sweeps", "Sweep by sweep", f"{text}</p><figure>{chart}</figure>")]


def _choice(choice: Any) -> list[_Section]:
    if choice is None:
        return []
    table: dict[str, Any] = choice.table
    names = [name for name in table if name != "k" and not name.endswith("_error")]
    said: dict[str, int | None] = getattr(choice, "by_criterion", {})
    charts = "".join(_criterion(name, table, said.get(name)) for name in names)
    agreement = f", with {choice.agreement:.0%} of the criteria"
    body = f"<p>Recommended is k = {choice.recommended}{agreement}.</p>"
    return [_Section("choice", "Which k", f'{body}<div class="charts">{charts}</div>')]


def _criterion(name: str, table: dict[str, Any], says: int | None) -> str:
    spoken = name.replace("_", " ")
    chart = line_chart(table["k"], table[name], x_name="k", y_name=spoken, mark=says)
    verdict = "" if says is None else f": k = {says}"
    return f"<figure><figcaption>{html.escape(spoken)}{verdict}</figcaption>{chart}</figure>"


def _code(code: str) -> _Section:
    body = (
        '<button type="button" id="copy">copy</button><pre><code id="program">'
        f"{html.escape(code)}</code></pre>"
    )
    return _Section("code", "The same in Python", body)


def _count(number: int) -> str:
    """With thin spaces, which do not break."""
    return f"{number:,}".replace(",", "\u202f")
