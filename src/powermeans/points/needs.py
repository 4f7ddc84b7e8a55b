"""What an estimator or a function asks of points, and how they are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.points.checks.faults import way_out_of
from powermeans.points.columns import Columns
from powermeans.points.protocol import Points
from powermeans.types import FloatArray, Matrix

Tell = Callable[[int, int | None], object]
"""Is called with the number of parts done in a pass, and the number of all if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How points are compared with centers, and what makes rows of an array for it."""

    divergence: Divergence = SquaredEuclidean()
    has_missing: bool = False
    weighs_features: bool = False
    takes_narrow: bool = False  # points of whole bytes or half floats as they are, if plain
    n_threads: int | None = None
    n_columns: int | None = None  # of the points, where some are left out
    opener: Callable[[Any, FloatArray | None, Measure], Points] | None = None  # other rows

    @property
    def is_plain(self) -> bool:
        """Whether whole points are compared by squared Euclidean distances."""
        return self.divergence.is_squared and not self.has_missing and not self.weighs_features

    @property
    def keeps_narrow(self) -> bool:
        """Whether narrow points stay as they are."""
        return self.takes_narrow and self.is_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Why an estimator does not take some points; None where it does."""

    missing: str | None = None
    parts: str | None = None
    tensors: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNeeds:
    """What a fit asks of its points; predictions ask for nothing of it."""

    n_points: int = 1  # at the least
    must_differ: bool = False  # whether squared distances among points must not vanish
    warns_of_scales: bool = False  # whether columns in unlike units deserve a warning
    is_read_once: bool = False  # a stream, which no first pass checks
    leaves_out_columns: bool = False  # of sparse points, where they have no entry
    init: Any = None  # a tensor must be where the points are
    random_state: Any = None  # an int where a checkpoint is wanted
    tell: Tell | None = None  # is told how far each pass over parts is


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an estimator or a function asks of points."""

    name: str  # of the estimator or function, for errors
    estimator: Any = None  # where scikit-learn keeps names and number of the features of arrays
    measure: Measure = field(default_factory=Measure)
    refusals: Refusals = field(default_factory=Refusals)
    fit: FitNeeds = field(default_factory=FitNeeds)
    known: Columns | None = None  # of the fit, for new points; None for a fit
    as_wide_as: Matrix | None = None  # centers to compare with, which may take float64
    offers_missing: bool = False  # whether a function, not an estimator, has `missing=`

    def way_out(self, value: float, is_dense: bool) -> str:
        """Say what to do about an entry that is not finite."""
        kind: Any = type(self.estimator)
        offers = self.offers_missing or (
            self.estimator is not None and "missing" in kind._get_param_names()
        )
        return way_out_of(
            value, offers_missing=offers and is_dense, why_whole=self.refusals.missing
        )

    def measured(self, **changes: Any) -> Needs:
        """Return the same needs with another measure."""
        return replace(self, measure=replace(self.measure, **changes))

    def refusing(self, **reasons: str | None) -> Needs:
        """Return the same needs with other refusals."""
        return replace(self, refusals=replace(self.refusals, **reasons))

    def of_a_fit(self, **changes: Any) -> Needs:
        """Return the same needs with others of the fit."""
        return replace(self, fit=replace(self.fit, **changes))

    def for_new(self, known: Columns) -> Needs:
        """Return what is asked of new points, given the columns of those of the fit."""
        return replace(self, known=known, fit=FitNeeds())

    def for_blocks(self) -> Needs:
        """Return what is asked of blocks of points that were opened here; it can be pickled."""
        known = Columns(None if self.known is None else self.known.n_features, None)
        return replace(self.for_new(known), estimator=None)
