"""Known answers on real data. Where POWERMEANS_DATA names its folder these must hold."""

import pytest

from powermeans import PowerKMeans

pytestmark = pytest.mark.data

# The least sums of squares: published as proved for iris and ruspini, and for s2 the least that any
# method is known to have found.
OPTIMA = [
    ("iris", 3, 78.8514414261),
    ("ruspini", 4, 12881.0512361466),
    ("s2", 15, 13279109490729.508),
]


@pytest.mark.parametrize(("name", "n_clusters", "optimum"), OPTIMA)
def test_the_optimum_is_found(real_data, name, n_clusters, optimum) -> None:
    points = real_data(name).points
    for seed in range(3):
        model = PowerKMeans(n_clusters, random_state=seed).fit(points)
        # Which of two clusters a few points on their border go to is left to more effort.
        assert model.inertia_ == pytest.approx(optimum, rel=1e-4)
    thorough = PowerKMeans(n_clusters, effort="thorough", random_state=0).fit(points)
    assert thorough.inertia_ == pytest.approx(optimum, rel=1e-9)


def test_glass_between_minus_one_and_one_is_solved_from_every_seed(real_data) -> None:
    glass = real_data("glass").points
    low, high = glass.min(axis=0), glass.max(axis=0)
    points = 2 * (glass - low) / (high - low) - 1
    for seed in range(5):
        model = PowerKMeans(6, random_state=seed).fit(points)
        # The proved optimum is published with six digits.
        assert model.inertia_ == pytest.approx(72.9647, abs=5e-5)
