"""Drawing in proportion to a mass."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powermeans.engine.seeds.choose import n_greedy_candidates
from powermeans.mathematics.weighted_draws import draw_indices

BEFORE_ONE = np.nextafter(1.0, 0.0)

masses = st.lists(
    st.one_of(st.just(0.0), st.floats(5e-324, 1e308)), min_size=1, max_size=20
).filter(any)


@pytest.mark.parametrize(
    ("n_clusters", "n_candidates"), [(1, 2), (2, 2), (3, 3), (7, 3), (8, 4), (20, 4), (21, 5)]
)
def test_candidates_are_two_more_than_the_whole_part_of_the_logarithm(n_clusters, n_candidates):
    assert n_greedy_candidates(n_clusters) == n_candidates


def test_each_index_owns_its_share_of_the_unit_interval():
    mass = np.array([1.0, 0.0, 2.0, 1.0])
    uniforms = np.array([0.0, 0.24, 0.25, 0.5, 0.74, 0.75, BEFORE_ONE])
    np.testing.assert_array_equal(draw_indices(mass, uniforms), [0, 0, 2, 2, 2, 3, 3])


@given(masses, st.lists(st.floats(0, BEFORE_ONE), min_size=1, max_size=20))
def test_an_index_without_mass_is_never_drawn(mass, uniforms):
    mass = np.array(mass)
    drawn = draw_indices(mass, np.array([0.0, BEFORE_ONE, *uniforms]))
    assert np.all(mass[drawn] > 0)


@pytest.mark.parametrize("mass", [[], [0.0, 0.0], [1.0, math.inf], [math.nan, 1.0]])
def test_masses_to_which_nothing_is_proportional_are_refused(mass):
    with pytest.raises(ValueError, match="mass has the maximum"):
        draw_indices(np.array(mass), np.array([0.5]))
