"""Charts of the report are well-formed and lie within their frame."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powermeans.app.report.charts import line_chart


def places(chart: str) -> np.ndarray:
    line = re.search(r'class="first" d="M([^"]*)"', chart)
    assert line is not None
    return np.array([pair.split() for pair in line[1].split("L")], dtype=float)


@given(
    values=st.lists(
        st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf]), min_size=1, max_size=50
    ),
    is_log=st.booleans(),
)
def test_any_numbers_make_a_chart_within_its_frame(values: list[float], is_log: bool) -> None:
    chart = line_chart(range(len(values)), values, x_name="x", y_name="y", is_log=is_log)
    ElementTree.fromstring(chart)
    if 'class="first"' in chart:
        assert ((places(chart) >= 0) & (places(chart) <= [320, 190])).all()


def test_higher_values_are_higher_and_further_ones_to_the_right() -> None:
    chart = line_chart([1, 2, 3], [5.0, 9.0, 7.0], x_name="k", y_name="inertia", mark=2)
    rights, downs = places(chart).T
    assert (np.diff(rights) > 0).all()
    assert downs[1] < downs[2] < downs[0]
    assert f'class="mark" d="M{rights[1]:.1f} ' in chart


def test_equal_ratios_are_equal_heights_on_a_logarithmic_scale() -> None:
    downs = places(line_chart([1, 2, 3], [1.0, 10.0, 100.0], x_name="", y_name="", is_log=True))
    assert np.ptp(np.diff(downs[:, 1])) == pytest.approx(0.0, abs=0.11)


def test_names_are_escaped() -> None:
    chart = line_chart([1], [1.0], x_name="<script>", y_name='"&')
    assert "<script>" not in chart
    assert ElementTree.fromstring(chart).get("aria-label") == '"& by <script>'


def test_numbers_that_differ_in_late_digits_are_told_apart_on_both_axes() -> None:
    far = [100_000.0, 100_400.0]
    chart = line_chart(far, far, x_name="x", y_name="y")
    for anchor in ("middle", "end"):
        texts = re.findall(f'text-anchor="{anchor}">([0-9][^<]*)</text>', chart)
        assert texts == ["100000", "100100", "100200", "100300", "100400"]


@given(low=st.integers(0, 1000), range_=st.integers(3, 10**6))
def test_an_axis_has_three_to_eight_round_numbers(low: int, range_: int) -> None:
    chart = line_chart([low, low + range_], [1.0, 1.0], x_name="x", y_name="y")
    below = re.findall(r'text-anchor="middle">([^<]*)</text>', chart)
    assert 3 <= len(set(below) - {"x"}) <= 8
