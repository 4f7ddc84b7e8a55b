"""Centers, objective and inertia, sweep by sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from powermeans.engine.path_recorder import PathRecorder
from powermeans.plots import canvas, fitted
from powermeans.plots.canvas import Axes
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.system.containers import check_choice, to_array
from powermeans.types import FloatArray


def annealing_path(
    path: PathRecorder | Iterable[FloatArray],
    X: PointsLike,
    *,
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Draw the path of each center, from the first sweep to the last, over the points.

    A soft power draws all centers to the middle; as the power falls they part. An empty circle
    marks where a center starts, a filled shape where it ends. A search descends many times; its
    first descent is shown. With ``effort="none"`` there is no other.

    Parameters
    ----------
    path : PathRecorder or iterable of ndarray of shape (n_clusters, n_features)
        The recorder that was the `callback` of a fit, or the centers step by step.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points of the fit.
    max_points : int, default=20_000
        If there are more points, a sample of this size is shown.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    convergence : Draws objective and inertia of the same sweeps.
    powermeans.engine.PathRecorder : Records the path.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> from powermeans.engine import PathRecorder
    >>> X = [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]
    >>> path = PathRecorder()
    >>> model = PowerKMeans(2, effort="none", random_state=0, callback=path).fit(X)
    >>> len(plots.annealing_path(path, X).lines)
    2
    """
    given = path.centers() if isinstance(path, PathRecorder) else path
    steps = [np.asarray(to_array(centers), dtype=np.float64) for centers in given]
    if not steps:
        raise ValueError("path is empty: pass the recorder as callback of a fit before plotting")
    if len({centers.shape for centers in steps}) > 1:
        raise ValueError(
            "path has steps with different numbers of centers: pass those of one descent"
        )
    points = fitted.points_of(None, X, np.empty(0, dtype=np.int32))
    shown = fitted.sample_of(points.shape[0], max_points)
    plane = Plane.of(points[shown], fitted.names_of(None, X))
    ax = canvas.axes_or_new(ax)
    ax.scatter(*plane.points.T, s=6, color=canvas.PALE, linewidths=0, rasterized=len(shown) > 5000)
    paths = np.stack([plane.project(centers) for centers in steps], axis=1)
    for label, places in enumerate(paths):
        color, marker = canvas.color_of(label), canvas.marker_of(label)
        ax.plot(*places.T, color=color, linewidth=1.4, alpha=0.9, zorder=3)
        ax.scatter(*places[0], s=26, facecolor="white", edgecolor=color, linewidths=1.2, zorder=4)
        style = {"marker": marker, "edgecolor": canvas.INK, "linewidths": 0.8}
        ax.scatter(*places[-1], s=60, color=color, zorder=5, **style)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1])
    ax.set_title(f"The paths of {len(paths)} centers in {len(steps)} steps")
    canvas.tidy(ax)
    return ax


def convergence(
    model: Any, *, by: Literal["sweep", "seconds"] = "sweep", ax: Axes | None = None
) -> Axes:
    """Draw objective and inertia by sweep, with the power on a second axis, or compare fits.

    The objective of a sweep is that of its power. It lies above the inertia until the power is
    minus infinity; in those sweeps, shaded, both are the same. A search descends many times, and
    each descent begins with a soft power.

    Of several fits, each line shows how far the lowest inertia so far was above the lowest of all
    fits. It ends where it reaches that, since a logarithmic axis has no zero.

    Parameters
    ----------
    model : estimator, recarray, or mapping of str to these
        Fitted, with a `history_`; or the history itself; or fits of the same points by name.
    by : {"sweep", "seconds"}, default="sweep"
        The unit of the x axis. Seconds are those of the sweeps, without seeding.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Those of objective and inertia; the second axis is another Axes of the same figure.

    See Also
    --------
    annealing_path : Draws the centers of the same sweeps.

    Examples
    --------
    >>> import math
    >>> from powermeans import PowerKMeans, plots
    >>> from powermeans.mathematics.schedules import Fixed
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> annealed = PowerKMeans(2, effort="none", random_state=0).fit(X)
    >>> [line.get_label() for line in plots.convergence(annealed).lines]
    ['objective', 'inertia']
    >>> lloyd = PowerKMeans(2, schedule=Fixed(-math.inf), effort="none", random_state=0).fit(X)
    >>> len(plots.convergence({"Lloyd": lloyd, "power k-means": annealed}).lines)
    2
    """
    check_choice(by, "by", "sweep", "seconds")
    if isinstance(model, Mapping):
        return _compare(model, by, ax)
    history = _history_of(model)
    powers, steps = np.asarray(history.power), _steps_of(history, by)
    n_hard = np.count_nonzero(powers == -math.inf)
    title = f"{len(history)} sweeps, {n_hard} of them Lloyd's (shaded)"
    ax = canvas.axes_or_new(ax)
    halves = np.diff(steps, prepend=0) / 2
    edges = np.append(steps - halves, steps[-1] + halves[-1])
    x, is_hard = np.repeat(edges, 2)[1:-1], np.repeat(powers == -math.inf, 2)
    style = {"transform": ax.get_xaxis_transform(), "alpha": 0.18, "linewidth": 0}
    ax.fill_between(x, 0, 1, where=is_hard, color=canvas.GREY, **style)
    size = 3.5 if len(steps) <= 80 else 0.0
    for name, color, marker in (
        ("objective", canvas.VERMILION, "s"),
        ("inertia", canvas.BLUE, "o"),
    ):
        ax.plot(steps, history[name], color=color, marker=marker, markersize=size, label=name)
    ax.set(xlabel=by, ylabel="objective, inertia", title=title)
    if min(np.min(history.inertia), np.min(history.objective)) > 0:
        canvas.logarithmic(ax)
    _draw_power(ax, steps, powers)
    return ax


def _compare(models: Mapping[str, Any], by: str, ax: Axes | None) -> Axes:
    """Draw how far the inertia of several fits was above the lowest of all."""
    if not models:
        raise ValueError("model is empty: pass at least one fitted estimator by its name")
    ax = canvas.axes_or_new(ax)
    so_far: dict[str, FloatArray] = {}
    for name, model in models.items():
        so_far[name] = np.minimum.accumulate(np.asarray(_history_of(model).inertia, np.float64))
        so_far[name][-1] = min(so_far[name][-1], getattr(model, "inertia_", math.inf))
    least = min(fall[-1] for fall in so_far.values())
    for number, (name, fall) in enumerate(so_far.items()):
        excess = fall / least - 1 if least > 0 else fall
        ax.plot(
            _steps_of(_history_of(models[name]), by), np.where(excess > 0, excess, np.nan),
            label=name, color=canvas.color_of(number), linestyle=("-", "--", "-.", ":")[number % 4],
            marker=canvas.marker_of(number), markersize=4, markevery=max(1, len(fall) // 12),
        )  # fmt: skip
    ax.set(xlabel=by, yscale="log", ylabel="inertia above the least of all, relative")
    ax.set_title("Convergence")
    ax.legend(frameon=False)
    canvas.tidy(ax, grid="y")
    return ax


def _history_of(model: Any) -> Any:
    history = getattr(model, "history_", model)
    if not hasattr(history, "inertia") or np.size(history) == 0:
        raise ValueError(
            f"{type(model).__name__} has no history of its sweeps: pass a fitted estimator with a "
            "history_, for example PowerKMeans"
        )
    return history


def _steps_of(history: Any, by: str) -> FloatArray:
    """Return the number of each sweep, or the seconds until its end."""
    steps: FloatArray = np.cumsum(history.seconds if by == "seconds" else np.ones(len(history)))
    return steps


def _draw_power(ax: Axes, steps: FloatArray, powers: FloatArray) -> None:
    """Draw minus the power on a logarithmic axis at the right, and the legend of both axes."""
    canvas.tidy(ax, grid="y")
    handles, labels = ax.get_legend_handles_labels()
    soft = np.where(np.isfinite(powers), -powers, np.nan)
    if np.isfinite(soft).any():
        second = ax.twinx()
        (line,) = second.plot(steps, soft, color=canvas.INK, linestyle=":", linewidth=1.4)
        second.set_ylabel("−power")
        canvas.logarithmic(second)
        second.spines["top"].set_visible(False)
        handles, labels = [*handles, line], [*labels, "−power, at the right"]
    ax.legend(
        handles, labels, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3
    )
