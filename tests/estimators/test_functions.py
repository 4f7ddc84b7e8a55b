"""The function critical_power at the border; the others are for scikit-learn to test."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans import critical_power


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(200, 3)) * [3, 1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: (X[0], None), "2D array"),
        (lambda X: (X * np.nan, None), "contains NaN"),
        (lambda X: (X * 1e200, None), "Scale X"),
        (lambda X: (X * 1e-200, None), "Scale X"),
        (lambda X: (X, -np.ones(200)), "at least zero"),
        (lambda X: (X, np.ones(50)), "sample_weight"),
    ],
)
def test_bad_input_is_refused(points, change, message):
    X, weights = change(points)
    with pytest.raises(ValueError, match=message):
        critical_power(X, sample_weight=weights)
