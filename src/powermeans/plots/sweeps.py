"""What each sweep of a fit did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from powermeans.plots.canvas import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    Axes,
    axes_or_new,
    color_of,
    logarithmic,
    marker_of,
    tidy,
)
from powermeans.types import FloatArray

_LINES = ("-", "--", "-.", ":")


def convergence(model: Any, *, ax: Axes | None = None) -> Axes:
    """Objective and inertia by sweep, with the power on a second axis.

    The objective is that of the power of its sweep, which lies above the inertia until the power is
    at minus infinity: in those sweeps, shaded, both are the same. A search descends many times,
    and each descent begins with a soft power again.

    Parameters
    ----------
    model : estimator or recarray
        Fitted, with a `history_`; or such a history.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Of objective and inertia; the second axis is another Axes of the same figure.

    See Also
    --------
    compare_convergence : The inertia of several fits.

    Examples
    --------
    >>> from powermeans import PowerKMeans, plots
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> ax = plots.convergence(PowerKMeans(2, refine=0, random_state=0).fit(X))
    >>> [line.get_label() for line in ax.lines]
    ['objective', 'inertia']
    """
    history = _history_of(model)
    sweeps = np.arange(1, len(history) + 1)
    ax = axes_or_new(ax)
    _shade_hard_sweeps(ax, np.asarray(history.power))
    of_objective, of_inertia = ("s", "o") if len(sweeps) <= 80 else ("", "")
    style: dict[str, Any] = {"markersize": 3.5}
    ax.plot(
        sweeps, history.objective, color=VERMILION, marker=of_objective, label="objective", **style
    )
    ax.plot(sweeps, history.inertia, color=BLUE, marker=of_inertia, label="inertia", **style)
    ax.set(xlabel="sweep", ylabel="objective, inertia", title=_title(history))
    if min(np.min(history.inertia), np.min(history.objective)) > 0:
        logarithmic(ax)
    _draw_power(ax, sweeps, np.asarray(history.power))
    return ax


def compare_convergence(
    models: Mapping[str, Any],
    *,
    by: Literal["sweep", "seconds"] = "sweep",
    ax: Axes | None = None,
) -> Axes:
    """How far the inertia of several fits was above the least of all, by sweep or by time.

    Each line is the least inertia that the fit had seen so far. Where it reaches the least of all
    it ends: zero has no place on a logarithmic axis.

    Parameters
    ----------
    models : mapping of str to estimator or recarray
        Fits of the same points, with a `history_`, by name.
    by : {"sweep", "seconds"}, default="sweep"
        What to count. Seconds are those of sweeps, without seeding.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    See Also
    --------
    convergence : One fit, with its power.

    Examples
    --------
    >>> import math
    >>> from powermeans import Fixed, PowerKMeans, plots
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> lloyd = PowerKMeans(2, schedule=Fixed(-math.inf), refine=0, random_state=0).fit(X)
    >>> annealed = PowerKMeans(2, refine=0, random_state=0).fit(X)
    >>> ax = plots.compare_convergence({"Lloyd": lloyd, "power k-means": annealed})
    >>> len(ax.lines)
    2
    """
    if not models:
        raise ValueError("models is empty: pass at least one fitted estimator by its name")
    if by not in ("sweep", "seconds"):
        raise ValueError(f'by={by!r} is not known: pass "sweep" or "seconds"')
    ax = axes_or_new(ax)
    falls = {name: _inertia_so_far(model) for name, model in models.items()}
    least = min(fall[-1] for fall in falls.values())
    for number, (name, fall) in enumerate(falls.items()):
        seconds = np.cumsum(_history_of(models[name]).seconds)
        steps = seconds if by == "seconds" else np.arange(1, len(fall) + 1)
        excess = fall / least - 1 if least > 0 else fall
        ax.plot(
            steps[: len(fall)], np.where(excess > 0, excess, np.nan), label=name,
            color=color_of(number), linestyle=_LINES[number % len(_LINES)],
            marker=marker_of(number), markersize=4, markevery=max(1, len(fall) // 12),
        )  # fmt: skip
    ax.set(xlabel=by, yscale="log", ylabel="inertia above the least of all, relative")
    ax.set_title("Convergence")
    ax.legend(frameon=False)
    tidy(ax, grid="y")
    return ax


def _history_of(model: Any) -> Any:
    history = getattr(model, "history_", model)
    if not hasattr(history, "inertia") or np.size(history) == 0:
        raise ValueError(
            f"{type(model).__name__} tells nothing of its sweeps: pass a fitted estimator with a "
            "history_, for example PowerKMeans"
        )
    return history


def _inertia_so_far(model: Any) -> FloatArray:
    """Least inertia up to each sweep; the inertia of the result replaces that of the last."""
    fall = np.minimum.accumulate(np.asarray(_history_of(model).inertia, dtype=np.float64))
    found = getattr(model, "inertia_", math.inf)
    fall[-1] = min(fall[-1], found)
    return fall


def _shade_hard_sweeps(ax: Axes, powers: FloatArray) -> None:
    is_hard = np.concatenate([[False], powers == -math.inf, [False]])
    edges = np.flatnonzero(np.diff(is_hard.astype(int)))
    for first, last in edges.reshape(-1, 2):
        ax.axvspan(first + 0.5, last + 0.5, color=GREY, alpha=0.18, linewidth=0)


def _draw_power(ax: Axes, sweeps: ArrayLike, powers: FloatArray) -> None:
    """On an axis that grows downwards in powers: the harder, the lower."""
    tidy(ax, grid="y")
    handles, labels = ax.get_legend_handles_labels()
    soft = np.where(np.isfinite(powers), -powers, np.nan)
    if np.isfinite(soft).any():
        second = ax.twinx()
        (line,) = second.plot(sweeps, soft, color=INK, linestyle=":", linewidth=1.4)
        second.set_ylabel("−power")
        logarithmic(second)
        second.spines["top"].set_visible(False)
        handles, labels = [*handles, line], [*labels, "−power, at the right"]
    ax.legend(
        handles, labels, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3
    )


def _title(history: Any) -> str:
    n_hard = int(np.count_nonzero(np.asarray(history.power) == -math.inf))
    return f"{len(history)} sweeps, {n_hard} of them Lloyd's (shaded)"
