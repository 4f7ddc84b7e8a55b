"""What `choose_k` finds: a table, what each criterion says, and a recommendation."""

from __future__ import annotations

import html
import math
import textwrap
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.types import FloatArray

# Told apart without colour.
_MARKERS = "osD^vP*X<>"
_LEGEND_WIDTH = 32


@dataclass(frozen=True, eq=False)
class ChoiceOfK:
    """How many clusters there are, by several criteria.

    Attributes
    ----------
    table : dict from str to ndarray of shape (n_sizes,)
        Columns: `k`, `inertia`, and the values of each criterion, NaN where it is undefined;
        `gap_error` and `stability_error` beside two of them. ``pandas.DataFrame(choice.table)``
        takes it as it is.
    recommended : int
        The k to take.
    decided_by : str
        The criterion that recommends it, or "vote".
    by_criterion : dict from str to int or None
        The k that each criterion says; None where it says nothing.
    agreement : float
        The share of the criteria that say something that say the recommended k.
    silhouette_sample : int
        How many points the silhouette was computed on; 0 where it was not asked.
    centers : dict from int to ndarray of shape (k, n_features)
        The centers of each k; empty if they were not to be kept.
    was_stopped : bool
        Whether the callback ended the search: the table has what was found by then.
    missing : {"error", "observed"}
        What NaN was taken for.

    See Also
    --------
    choose_k : Makes one.
    powermeans.plots.knee : Draws the inertia by k, and where it bends.

    Examples
    --------
    >>> from powermeans import choose_k
    >>> X = [[0.0], [1.0], [2.0], [20.0], [21.0], [22.0], [40.0], [41.0], [42.0]]
    >>> choice = choose_k(X, range(1, 6), criteria=["bic", "silhouette"], random_state=0)
    >>> choice.recommended, choice.agreement
    (3, 1.0)
    >>> choice.table["inertia"].tolist()[2]  # of k = 3
    6.0
    """

    table: dict[str, np.ndarray[Any, Any]]
    recommended: int
    decided_by: str
    by_criterion: dict[str, int | None]
    agreement: float
    silhouette_sample: int
    centers: dict[int, FloatArray] = field(default_factory=dict, repr=False)
    was_stopped: bool = False
    missing: Literal["error", "observed"] = "error"

    def model(self, k: int | None = None) -> PowerKMeans:
        """An estimator that predicts with the centers of one k.

        Parameters
        ----------
        k : int, optional
            One of the values that were tried, by default the recommended one.

        Returns
        -------
        PowerKMeans
            As from `PowerKMeans.from_centers`.

        Examples
        --------
        >>> from powermeans import choose_k
        >>> choice = choose_k([[0.0], [1.0], [9.0], [10.0]], [1, 2], criteria="bic")
        >>> choice.model().predict([[2.0], [8.0]]).tolist() in ([0, 1], [1, 0])
        True
        """
        wanted = self.recommended if k is None else k
        if wanted not in self.centers:
            kept = f"for k in {list(self.centers)}" if self.centers else "with keep_centers=True"
            raise ValueError(f"k={wanted} has no centers here: they are kept {kept}")
        return PowerKMeans.from_centers(self.centers[wanted], missing=self.missing)

    def plot(self, column: str = "inertia", *, ax: Any = None) -> Any:
        """Draw a column of the table by k, with marks at what the criteria say.

        Parameters
        ----------
        column : str, default="inertia"
            A name in `table`.
        ax : matplotlib.axes.Axes, optional
            Where to draw, by default a new figure. Needs matplotlib:
            ``pip install "powermeans[plot]"``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if column not in self.table or column == "k":
            names = [name for name in self.table if name != "k"]
            raise ValueError(f"column={column!r} is not in the table: pass one of {names}")
        ax = _new_axes() if ax is None else ax
        sizes, values = self.table["k"], self.table[column]
        drawn = np.where(np.isfinite(values), values, math.nan)
        ax.plot(sizes, drawn, color="0.5", marker=".", zorder=1)
        ax.axvline(self.recommended, color="0.8", zorder=0)
        for marker, (k, said_by) in zip(_MARKERS, self._said().items(), strict=False):
            at = values[sizes == k]
            label = textwrap.fill(f"{k}: {said_by}", _LEGEND_WIDTH)
            ax.scatter([k], at, marker=marker, color="k", zorder=2, label=label)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("number of clusters k")
        ax.set_ylabel(column.replace("_", " "))
        ax.set_title(f"k = {self.recommended}, by {self.decided_by.replace('_', ' ')}")
        ax.legend(title="k by criterion", fontsize="small")
        return ax

    def _said(self) -> dict[int, str]:
        """The names of the criteria by the k that they say, the smallest first."""
        said: dict[int, list[str]] = {}
        for name, k in self.by_criterion.items():
            if k is not None:
                said.setdefault(k, []).append(name.replace("_", " "))
        return {k: ", ".join(said[k]) for k in sorted(said)}

    def _cells(self) -> list[list[str]]:
        """The table as text, a star behind what a criterion says."""
        rows = [[name.replace("_", " ") for name in self.table]]
        for i, k in enumerate(self.table["k"]):
            cells = [str(k)]
            for name, values in list(self.table.items())[1:]:
                star = "*" if self.by_criterion.get(name) == k else ""
                cells.append("" if math.isnan(values[i]) else f"{values[i]:.4g}{star}")
            rows.append(cells)
        return rows

    def _summary(self) -> str:
        n_said = sum(k is not None for k in self.by_criterion.values())
        n_agreeing = sum(k == self.recommended for k in self.by_criterion.values())
        return (
            f"k = {self.recommended} by {self.decided_by.replace('_', ' ')}; "
            f"{n_agreeing} of {n_said} criteria say so"
        )

    def __str__(self) -> str:
        rows = self._cells()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([self._summary(), *lines])

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        lines = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
        for row in body:
            tag = "th" if row[0] == str(self.recommended) else "td"
            lines.append("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row))
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{html.escape(self._summary())}</p><table>{rows}</table>"


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plot() needs matplotlib: pip install "powermeans[plot]"') from error
    return pyplot.subplots()[1]
