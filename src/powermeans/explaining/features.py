"""The columns of the data behind a model: values, phrases and names, in units and words."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.errors import ArgumentError
from powermeans.plots import fitted
from powermeans.preparing import features as encoding
from powermeans.preparing.kinds import Column
from powermeans.preparing.prepare import Prepare
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of each row, in the unit of its column; 1 and 0 for a word."""

    name: str
    column: Column
    part: int = 0  # of the features of its column

    def phrase(self, low: float, high: float) -> str:
        """Say that a value is above `low` and at most `high`."""
        column = self.column
        match column.kind:
            case "category":
                said = "is not" if low == -np.inf else "is"
                return f"{column.name} {said} {column.words[self.part]}"
            case "yes/no":
                return f"{column.name} is {'no' if low == -np.inf else 'yes'}"
            case "ordered":
                inside = [
                    word
                    for word, level in zip(column.words, column.levels, strict=True)
                    if low < level <= high
                ]
                return f"{column.name} is {' or '.join(inside)}"
        if low == -np.inf:
            return f"{self.name} <= {self._told(high)}"
        if high == np.inf:
            return f"{self.name} > {self._told(low)}"
        return f"{self._told(low)} < {self.name} <= {self._told(high)}"

    def _told(self, value: float) -> str:
        unit = self.column.unit
        if self.column.kind == "date":
            return str(np.datetime64(int(np.floor(value)), "D"))
        if unit == "%":  # 12 % is 0.12
            value = 100 * value
        return f"{value:.10g}{f' {unit}' if unit else ''}"

    def roundest(self, low: float, high: float) -> float:
        """Return the number from `low` to below `high` that has the fewest digits, or `low`."""
        if self.column.kind in ("category", "yes/no", "ordered"):
            return float(low + high) / 2
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


def prepare_of(model: Any) -> Prepare | None:
    """Return the `Prepare` that a pipeline begins with."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    return first if isinstance(first, Prepare) else None


def in_units(model: Any, X: Any) -> tuple[list[Feature], FloatArray]:
    """Return the columns of the data that a model looks at, and their values, NaN if missing."""
    if (prepare := prepare_of(model)) is not None:
        plain = copy.copy(prepare)
        # Not their logarithms, and not scaled: rules tell what the table holds.
        plain.columns_ = [
            replace(
                column,
                kind="number" if column.kind == "log" else column.kind,
                offsets=[0.0] * len(column.offsets),
                scales=[1.0] * len(column.scales),
            )
            for column in prepare.columns_
        ]
        return features_of(plain.columns_), plain.transform(X)
    if hasattr(X, "toarray"):
        raise ArgumentError("X is sparse, and rules need all values", "pass X.toarray()")
    values = np.asarray(on_host(X), dtype=np.float64)
    names = fitted.names_of(model, X)
    return features_of([Column(name, "number") for name in names]), values


def features_of(columns: Sequence[Column]) -> list[Feature]:
    """Return the features of the columns that are used."""
    return [
        Feature(name, column, part)
        for column in columns
        if column.is_used
        for part, name in enumerate(encoding.names_of(column))
    ]


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
