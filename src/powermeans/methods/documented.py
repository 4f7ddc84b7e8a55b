"""What every estimator has, also one without centers: its page, its picture, its place in files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from html import escape
from importlib.metadata import metadata
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils._param_validation import StrOptions

from powermeans.errors import ArgumentError
from powermeans.system.attributes import public_module
from powermeans.system.containers import to_array
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray


class Documented(BaseEstimator):
    """Let the picture of an estimator in a notebook link to the page of its class."""

    # The attributes of a saved model, besides those of its base; `powermeans.saving` reads it.
    _state: ClassVar[str] = """n_features_in_: length[d]! feature_names_in_: names[d]
        _sklearn_output_config: any"""

    # Why no entries may be missing, in an estimator that cannot do without them.
    _why_whole: ClassVar[str | None] = None

    _doc_link_module = "powermeans"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._why_whole is not None and "__init__" in vars(cls):
            cls.__init__ = _refusing_missing(cls.__init__, cls._why_whole)  # type: ignore[method-assign]
        if "__init__" in vars(cls) and cls.__module__.startswith("powermeans."):
            saved(cls)

    @property
    def _doc_link_template(self) -> str:
        urls = metadata("powermeans").get_all("Project-URL") or []
        root = dict(url.split(", ", 1) for url in urls).get("Documentation")
        page = f"api/{public_module(type(self))}.{{estimator_name}}.html"
        return f"{root.rstrip('/')}/{page}" if root else ""

    def _html_repr(self) -> str:
        """Show a fitted estimator in a notebook by its clusters; scikit-learn's diagram unfolds."""
        diagram: str = estimator_html_repr(self)
        if not (hasattr(self, "cluster_centers_") or hasattr(self, "labels_")):
            return diagram
        summary = card(self, self._told_of_the_optimum(), self._get_doc_link())
        return f"{summary}<details><summary>Parameters and attributes</summary>{diagram}</details>"

    def _told_of_the_optimum(self) -> str | None:
        """Return what is proved of the inertia, if anything."""
        return None


def one_of(words: Iterable[str]) -> StrOptions:
    """Return the constraint of a parameter to words, which errors list in the same order always."""
    return StrOptions(dict.fromkeys(sorted(words)).keys())


def _refusing_missing(init: Callable[..., None], why: str) -> Callable[..., None]:
    """Return a constructor that says why an estimator has no `missing`, which others have."""

    @functools.wraps(init)
    def initialize(self: Any, *given: Any, **named: Any) -> None:
        if "missing" in named:
            raise ArgumentError(
                f"is not for {type(self).__name__}",
                f"{why[0].lower()}{why[1:]}, so leave rows with NaN out, or fill the entries in",
                argument="missing",
                value=named["missing"],
            )
        init(self, *given, **named)

    return initialize


# What a notebook shows of a fitted estimator: its clusters, above scikit-learn's diagram.


_MOST_CLUSTERS, _MOST_FEATURES = 12, 3
_CELL = 'style="text-align:left;padding:2px 12px 2px 0"'


def card(model: Any, verdict: str | None, page: str) -> str:
    """Return HTML with the sizes of the clusters, what sets them apart, the gap and a link.

    It has no colors of its own, so that it suits a dark notebook and a light one.
    """
    centers, sizes = _centers(model), _sizes(model)
    n_clusters = len(centers) if centers is not None else 0 if sizes is None else len(sizes)
    order = np.arange(n_clusters) if sizes is None else np.argsort(-sizes, kind="stable")
    apart = None if centers is None else _apart(model, centers, sizes)
    rows = []
    for label in order[:_MOST_CLUSTERS]:
        cells = [str(label)]
        if sizes is not None:
            cells.append(f"{sizes[label]:,} ({100 * sizes[label] / max(sizes.sum(), 1):.0f} %)")
        if apart is not None:
            cells.append(escape(apart[label]))
        rows.append("".join(f"<td {_CELL}>{cell}</td>" for cell in cells))
    titles = ["cluster"] if sizes is None else ["cluster", "rows"]
    if apart is not None:
        titles.append(f"farthest from the mean of all {'centers' if sizes is None else 'rows'}")
    head = "".join(f"<th {_CELL}>{title}</th>" for title in titles)
    body = "".join(f"<tr>{row}</tr>" for row in [head, *rows])
    more = n_clusters - _MOST_CLUSTERS
    rest = f"<p>and {more} more clusters</p>" if more > 0 else ""
    link = f' · <a href="{escape(page)}">documentation</a>' if page else ""
    said = [f"<b>{type(model).__name__}</b>: {n_clusters} clusters"]
    if isinstance(inertia := getattr(model, "inertia_", None), float):
        said.append(f"inertia {inertia:.6g}")
    said += [verdict] if verdict else []
    return f"<p>{', '.join(said)}{link}</p><table>{body}</table>{rest}"


def _centers(model: Any) -> FloatArray | None:
    centers = np.asarray(to_array(getattr(model, "cluster_centers_", None)))
    is_usable = centers.ndim == 2 and centers.size > 0 and np.issubdtype(centers.dtype, np.number)
    return centers.astype(np.float64) if is_usable else None


def _sizes(model: Any) -> Any:
    """Return the number of rows of each cluster, None if there are no labels in memory."""
    labels = to_array(getattr(model, "labels_", None))
    if not isinstance(labels, np.ndarray) or labels.size == 0:
        return None
    n_clusters = len(getattr(model, "cluster_centers_", ()))
    return np.bincount(labels[labels >= 0], minlength=n_clusters)


def _apart(model: Any, centers: FloatArray, sizes: Any) -> list[str]:
    """Say for each cluster in which features its center differs most from the mean."""
    weights = np.ones(len(centers)) if sizes is None else np.maximum(sizes, 1e-9)
    mean = np.average(centers, axis=0, weights=weights)
    names = getattr(model, "feature_names_in_", [f"x{f}" for f in range(len(mean))])
    said = []
    for center in centers:
        features = np.argsort(-np.abs(center - mean), kind="stable")[:_MOST_FEATURES]
        apart = [f for f in features if abs(center[f] - mean[f]) > 0]
        said.append(", ".join(f"{names[f]} {center[f]:.4g} (mean {mean[f]:.4g})" for f in apart))
    return said
