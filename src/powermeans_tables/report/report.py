"""The report on a fit: one HTML file that needs no network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from powermeans.optimality.of_points import gap_in_a_moment
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.points.streams import is_stream
from powermeans.system.atomic_write import atomic_write
from powermeans.system.containers import is_dask, to_array
from powermeans_tables.report.details import Section, details
from powermeans_tables.report.overview import map_data, map_of, overview
from powermeans_tables.report.profile import without_names
from powermeans_tables.report.rows import Rows
from powermeans_tables.report.subject import Subject
from powermeans_tables.report.text import escaped


@without_names()  # of columns, which points of a table lack
def report(
    model: Any,
    X: PointsLike,
    path: str | os.PathLike[str],
    *,
    title: str = "Clusters",
    choice: Any = None,
    scalers: Sequence[Any] = (),
    sample_weight: ArrayLike | None = None,
    optimality: Any = None,
    names: Mapping[int, str] | None = None,
    max_points: int = 5_000,
) -> Path:
    """Write a report on a fit: one HTML file that opens anywhere, without a network.

    The first screen has the number of clusters, how near rows are, a map, a card for each cluster,
    and what was left out or needs a check. Below stand the means, typical rows and the least
    typical, the choice of k, the gap to the optimum, how the data were read, and code for it all.

    Parameters
    ----------
    model : estimator
        Fitted; of this package, or with `predict` and `cluster_centers_` such as scikit-learn's.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or table
        The points, or the table that the model was fitted to: a path or a frame.
    path : str or path
        Where to write the report. The file appears once it is complete.
    title : str, default="Clusters"
        The title of the page.
    choice : result of `choose_k`, optional
        Adds the k of each criterion, and a chart of the inertia by k.
    scalers : sequence of transformer
        Fitted linear transformers, such as `Prepare` and `StandardScaler`, that made the points;
        means and values are then in the units and words of the data.
    sample_weight : array-like of shape (n_samples,), optional
        The weights of the fit. Shares and means are then weighted.
    optimality : OptimalityGap, optional
        What `powermeans.optimality_gap` proved; found here if that takes only a moment.
    names : dict from int to str, optional
        Names of clusters, by label. The others are named after what sets them apart.
    max_points : int, default=5_000
        If there are more points, the map, the examples and how near rows are come from a sample
        of this size, which the page states. Everything else is computed from all points.

    Returns
    -------
    Path
        The path of the file.

    See Also
    --------
    powermeans.plots.clusters : Draws the clusters as a picture.

    Examples
    --------
    >>> import os, tempfile
    >>> import powermeans
    >>> X = [[0.0, 5.0], [1.0, 5.0], [9.0, 6.0], [10.0, 6.0]]
    >>> model = powermeans.PowerKMeans(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = powermeans.report(model, X, os.path.join(folder, "report.html"))
    ...     written.stat().st_size < 100_000
    True
    """
    if (prepare := fitted.preparation_of(model)) is not None and not is_dask(X):
        (model, X), scalers = fitted.as_points(model, X), [prepare, *scalers]
    if is_dask(X) or is_stream(X):
        kind = "a Dask collection" if is_dask(X) else "to be read part by part"
        raise ValueError(
            f"a report looks at all rows at once, and X is {kind}, which may not fit into memory: "
            "pass some of the rows, as an array"
        )
    X, weights = to_array(X, "X"), to_array(sample_weight, "sample_weight")
    subject = Subject.of(model, X, sample_weight=weights, scalers=scalers, names=names)
    if optimality is None:
        optimality = gap_in_a_moment(model, X, weights)
    code = f"model = {type(model).__name__}(...)  # {model!r}"
    return write_page(subject, path, title, code, choice, optimality, max_points)


def write_page(
    subject: Subject,
    path: str | os.PathLike[str],
    title: str,
    code: str,
    choice: Any = None,
    optimality: Any = None,
    max_points: int = 5_000,
) -> Path:
    """Write the page about a fit; `report` explains the arguments."""
    rows = Rows.of(subject, max_points)
    found = map_of(subject, rows)
    first = overview(subject, rows, found, choice)
    sections = details(subject, rows, choice, optimality, code)
    page = _page(title, first, sections, map_data(found, subject, rows))
    with atomic_write(path) as written:
        written.write(page.encode("utf-8", "backslashreplace"))
    return Path(path)


def _page(title: str, first: str, sections: list[Section], data: dict[str, Any]) -> str:
    bodies = (
        f'<section id="{name}"><h2>{escaped(title)}</h2>\n{body}</section>'
        for name, title, body in sections
    )
    today = datetime.now().astimezone()
    told = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    parts = {
        "title": escaped(title),
        "date": f"{today.day} {today:%B %Y}",
        "overview": first,
        "version": escaped(version("powermeans")),
        "sections": "\n".join(bodies),
        # Nothing in it may end the element that holds it.
        "data": re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", told),
        "style": _file("page.css"),
        "script": _file("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files("powermeans_tables.report").joinpath("page", name).read_text("utf-8")
