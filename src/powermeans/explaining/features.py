"""The columns of the data behind a model: values, phrases and names, in units and words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.errors import ArgumentError
from powermeans.plots import fitted
from powermeans.system.containers import to_array
from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of each row. What prepares tables has features of other kinds."""

    name: str

    @property
    def column_name(self) -> str:
        """The column of the table that it comes from."""
        return self.name

    @property
    def is_of_words(self) -> bool:
        """Whether it tells one word of a column from its others, by 1 and 0."""
        return False

    def phrase(self, low: float, high: float) -> str:
        """Say that a value is above `low` and at most `high`."""
        if low == -np.inf:
            return f"{self.name} <= {self.told(high)}"
        if high == np.inf:
            return f"{self.name} > {self.told(low)}"
        return f"{self.told(low)} < {self.name} <= {self.told(high)}"

    def told(self, value: float) -> str:
        """Return a value in words."""
        return f"{value:.10g}"

    def roundest(self, low: float, high: float) -> float:
        """Return the number from `low` to below `high` that has the fewest digits, or `low`."""
        if not low < high:
            return float(low)
        middle = low / 2 + high / 2
        largest = int(np.floor(np.log10(max(high - low, np.finfo(float).tiny)))) + 1
        for digits in range(-largest, 18 - largest):
            if low <= (rounded := float(np.round(middle, digits)) + 0.0) < high:
                return rounded
        return float(low)


def last_of(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def in_units(model: Any, X: Any) -> tuple[list[Feature], FloatArray]:
    """Return the columns of the data that a model looks at, and their values, NaN if missing."""
    if (preparation := fitted.preparation_of(model)) is not None:
        # A pipeline passes on rows of a file that count, and a fit to a file labels all.
        is_of_fit = not isinstance(model, Pipeline)
        found: tuple[list[Feature], FloatArray] = preparation.explained(X, every_row=is_of_fit)
        return found
    if hasattr(X, "toarray"):
        raise ArgumentError("X is sparse, and rules need all values", "pass X.toarray()")
    values = np.asarray(to_array(X), dtype=np.float64)
    return numbers_called(fitted.names_of(model, X)), values


def numbers_called(names: Iterable[str]) -> list[Feature]:
    """Return features that are columns of numbers."""
    return [Feature(name) for name in names]


def is_squared(model: Any) -> bool:
    """Return whether the costs of a model are squares of its distances."""
    last = last_of(model)
    return not hasattr(last, "_fitted_needs") or last._fitted_needs().measure.divergence.is_squared


def percent(share: float) -> str:
    """Return a share in percent with two digits, and more close to all.

    >>> [percent(share) for share in (0.0, 0.00314, 0.024, 0.25, 0.9966, 1.0)]
    ['0 %', '0.31 %', '2.4 %', '25 %', '99.7 %', '100 %']
    """
    text = f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.1f}".removesuffix(".0")
    return f"{text} %"
