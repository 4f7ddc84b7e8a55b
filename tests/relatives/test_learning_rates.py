"""Learning rates come from numbers and functions, and bad ones are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powermeans.relatives.learning_rates import rates_of


def test_a_number_is_the_rate_of_every_step():
    np.testing.assert_array_equal(rates_of(0.25, 7, 3), [0.25] * 3)
    np.testing.assert_array_equal(rates_of(np.float32(0.25), 7, 3), [0.25] * 3)
    np.testing.assert_array_equal(rates_of(1, 1, 2), [1.0, 1.0])


def test_a_function_is_asked_for_its_steps_from_one():
    np.testing.assert_array_equal(rates_of(lambda t: 1 / t, 1, 3), [1, 1 / 2, 1 / 3])
    np.testing.assert_array_equal(rates_of(lambda t: 1 / t, 4, 2), [1 / 4, 1 / 5])


@pytest.mark.parametrize("bad", [-0.1, 1.5, math.nan, math.inf])
def test_a_bad_rate_is_named_with_its_step(bad):
    with pytest.raises(ValueError, match=rf"learning_rate is {bad} at step 12.*in \[0, 1\]"):
        rates_of(lambda t: bad if t == 12 else 0.5, 10, 5)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_without_a_limit_rates_must_still_be_finite(bad):
    np.testing.assert_array_equal(rates_of(1e9, 1, 1, highest=math.inf), [1e9])
    with pytest.raises(ValueError, match="finite and not negative"):
        rates_of(bad, 1, 1, highest=math.inf)


def test_a_word_is_no_rate():
    with pytest.raises(ValueError, match="'fast' is unknown"):
        rates_of("fast", 1, 3)
