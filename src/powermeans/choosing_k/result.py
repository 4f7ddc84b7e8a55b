"""The result of `choose_k`: a table, the k that each criterion says, and a recommendation."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from powermeans.types import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceOfK:
    """The number of clusters according to several criteria.

    Attributes
    ----------
    table : dict from str to ndarray of shape (n_sizes,)
        Columns: `k`, `inertia`, and the values of each criterion, NaN where it is undefined;
        `separation_error` has standard errors. Pass it to ``pandas.DataFrame`` as it is.
    recommended : int
        The recommended k; only the best guess if it is not clear.
    decided_by : str
        The criterion that recommends it.
    by_criterion : dict from str to int or None
        The k that each criterion recommends; None if it recommends none.
    agreement : float
        Share of the criteria that recommend this k, among those that recommend any.
    certainty : {"clear", "at least", "not clear"}
        Whether the data support the recommended k. It is clear if all its clusters are apart, the
        least number if it is also the largest k tried or some clusters may be two that touch, and
        otherwise a guess.
    why : str
        Why that is so.
    silhouette_sample : int
        The number of points in the sample for the silhouette; 0 if it was not computed.
    centers : dict from int to ndarray of shape (k, n_features)
        The centers of each k.
    was_stopped : bool
        Whether the callback, Ctrl-C or `max_seconds` ended the search. The table then has the k
        tried so far, and `why` states what is missing. A stop at one of the last steps leaves out
        the stability, or the confirmation on all rows, without which nothing is clear;
        `max_seconds` ends these without a stop.
    missing : {"error", "observed"}
        As given to `choose_k`.
    n_sampled : int
        The number of rows in the sample on which k was chosen; 0 if all rows were used.
    stability : ndarray of shape (recommended,) or None
        How much of each cluster of `model()` returns in 20 bootstrap samples, as
        `powermeans.stability` measures it; None if there are fewer than 20 points for each.
    make_model : callable
        What `model` calls: `PowerKMeans.from_centers` or, with limits, that of `BalancedKMeans`.

    See Also
    --------
    choose_k : Returns one.
    powermeans.plots.choice_of_k : Draws the inertia by k, and the k of each criterion.

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
    certainty: Literal["clear", "at least", "not clear"]
    why: str
    centers: dict[int, FloatArray] = field(default_factory=dict)
    was_stopped: bool = False
    missing: Literal["error", "observed"] = "error"
    n_sampled: int = 0
    stability: FloatArray | None = None
    make_model: Callable[..., Any] | None = None

    def model(self, k: int | None = None) -> Any:
        """Return an estimator that predicts with the centers of one k.

        Parameters
        ----------
        k : int, optional
            One of the values tried; by default the recommended one.

        Returns
        -------
        PowerKMeans or BalancedKMeans
            As from their `from_centers`; the latter if sizes are limited.

        Examples
        --------
        >>> from powermeans import choose_k
        >>> choice = choose_k([[0.0], [1.0], [9.0], [10.0]], [1, 2], criteria="bic")
        >>> choice.model().predict([[2.0], [8.0]]).tolist() in ([0, 1], [1, 0])
        True
        """
        wanted = self.recommended if k is None else k
        if wanted not in self.centers:
            raise ValueError(f"k={wanted} was not tried: pass one of {list(self.centers)}")
        assert self.make_model is not None, "choose_k says what makes models"
        return self.make_model(self.centers[wanted], missing=self.missing)

    def _summary(self) -> str:
        sampled = f" on a sample of {self.n_sampled:,} rows" if self.n_sampled else ""
        return f"{self.verdict()}{sampled}\n({self.why})"

    @property
    def is_clear(self) -> bool:
        """Whether the number is clear."""
        return self.certainty == "clear"

    def verdict(self) -> str:
        """Return how many groups there are, and whether that is clear, in plain words.

        Returns
        -------
        str
            Such as "5 groups; clear", "at least 5 groups", "no clear number of groups; 4 is the
            best guess" or "one group".

        Examples
        --------
        >>> from powermeans import choose_k
        >>> X = [[x] for x in (*range(20), *range(80, 100))]
        >>> choose_k(X, range(1, 6), random_state=0).verdict()
        '2 groups; clear'
        """
        if self.recommended == 1:
            return "one group"
        if self.certainty == "not clear":
            return f"no clear number of groups; {self.recommended} is the best guess"
        k = self.recommended
        return f"{k} groups; clear" if self.is_clear else f"at least {k} groups"

    def __repr__(self) -> str:
        least, most = self.table["k"][[0, -1]]
        said = f"k={self.recommended}, certainty={self.certainty!r}"
        return f"ChoiceOfK({said}, tried={least} to {most})"

    def __str__(self) -> str:
        rows = [[name.replace("_", " ") for name in self.table]]
        for i, k in enumerate(self.table["k"]):
            cells = [str(k)]
            for name, values in list(self.table.items())[1:]:
                star = "*" if self.by_criterion.get(name) == k else ""
                cells.append("" if math.isnan(values[i]) else f"{values[i]:.4g}{star}")
            rows.append(cells)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([self._summary(), *lines])

    def _repr_html_(self) -> str:
        said = str(self)
        if self.stability is not None:
            share = f"{100 * np.nanmin(self.stability):.0f} %"
            said += f"\n\nthe least stable group comes back in {share} of bootstrap samples"
        return f"<pre>{html.escape(said)}</pre>"
