"""Points on a line: against an exact dynamic program in fractions, and by brute force."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from powermeans import KMeans, PowerKMeans, breaks, optimality_gap
from powermeans.optimality.line import line_through

DRAWN = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: np.round(3 * rng.normal(size=n)),
    "far from zero": lambda rng, n: rng.normal(size=n) + 1e12,
    "subnormal": lambda rng, n: np.ldexp(np.round(1000 * rng.normal(size=n)), -1074),
    "large": lambda rng, n: 1e150 * rng.normal(size=n),
    "long tail": lambda rng, n: np.exp(6 * rng.normal(size=n)),
    "far groups": lambda rng, n: 1e5 * rng.integers(-1, 2, n) + 1e-3 * rng.normal(size=n),
}


def inertia(values, weights) -> Fraction:
    total = sum(weights)
    mean = sum(w * x for x, w in zip(values, weights, strict=True)) / total
    return sum(w * (x - mean) ** 2 for x, w in zip(values, weights, strict=True))


def least_inertias(values, weights, most: int) -> list[Fraction]:
    """Return the exact optimum for each number of clusters, of sorted values, by all divisions."""
    n = len(values)
    run = {
        (i, j): inertia(values[i:j], weights[i:j]) for i in range(n) for j in range(i + 1, n + 1)
    }
    layer = {0: Fraction(0)}
    optima = []
    for _ in range(most):
        layer = {
            j: min(layer[i] + run[i, j] for i in layer if i < j)
            for j in range(1, n + 1)
            if any(i < j for i in layer)
        }
        optima.append(layer[n])
    return optima


def drawn(kind: str, seed: int):
    rng = np.random.default_rng(seed)
    values = DRAWN[kind](rng, int(rng.integers(1, 15)))
    weights = rng.choice([1.0, 2.0, 0.5, 1e-3, 0.0], len(values)) if seed % 2 else None
    if weights is not None:
        weights[0] = 1.0
    return values, weights


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", DRAWN)
def test_divisions_have_the_least_inertia(kind, seed):
    values, weights = drawn(kind, seed)
    line = line_through(values[:, None], weights, 20)
    exact = [Fraction(x) for x in line.values], [Fraction(w) for w in line.weights]
    optima = least_inertias(*exact, len(line.values))
    for number, starts in enumerate(line.divisions(20, least=1)):
        assert len(starts) == number + 1
        ends = [*starts, len(line.values)]
        found = sum(inertia(exact[0][i:j], exact[1][i:j]) for i, j in pairwise(ends))
        assert found <= optima[number] * (1 + Fraction(1, 10**9))


def test_layers_that_do_not_fit_in_memory_give_the_same_divisions():
    values = np.sort(np.random.default_rng(0).lognormal(size=169_000))[:, None]
    line = line_through(values, None, 400)
    in_blocks = line.divisions(400)[0]  # above 2^26 entries
    at_once = line.divisions(150, least=149)
    assert line.inertia(in_blocks) < line.inertia(at_once[1]) < line.inertia(at_once[0])
    model = KMeans(400, init=line.centers(in_blocks), max_iter=5).fit(values)
    assert model.inertia_ == pytest.approx(line.inertia(in_blocks), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power_k_means_finds_and_says_the_optimum(dtype):
    X = np.random.default_rng(1).normal(size=(300, 1)).astype(dtype)
    model = PowerKMeans(40, random_state=0).fit(X)
    assert model.is_optimal_
    found = KMeans(40, n_init=20, random_state=0).fit(X)
    assert model.inertia_ < found.inertia_
    assert optimality_gap(X, model).gap < 1e-6
    gap = optimality_gap(X, found)
    assert gap.bound == pytest.approx(model.inertia_, rel=1e-5 if dtype == np.float32 else 1e-7)
    assert gap.method == "line"


def test_points_on_a_slanting_line_are_solved():
    along = np.random.default_rng(2).normal(size=500)
    X = [3.0, -1.0, 7.0] + along[:, None] * [1.0, 2.0, -0.5]
    model = PowerKMeans(30, random_state=0).fit(X)
    assert model.is_optimal_
    of_line = PowerKMeans(30, random_state=0).fit(along[:, None])
    assert model.inertia_ == pytest.approx(of_line.inertia_ * 5.25, rel=1e-9)


def test_threads_change_no_bit():
    X = np.random.default_rng(6).normal(size=(40_000, 1))
    one, three = (line_through(X, None, 20).divisions(20, n_threads=n)[0] for n in (1, 3))
    assert np.array_equal(one, three)


def test_other_fits_and_points_beside_a_line_are_searched():
    rng = np.random.default_rng(3)
    X = rng.gamma(2.0, size=(200, 1))
    for params in ({"effort": "none"}, {"divergence": "gamma"}, {"divergence": "manhattan"}):
        assert not PowerKMeans(4, random_state=0, **params).fit(X).is_optimal_
    beside = X * [1.0, 2.0] + 1e-9 * rng.normal(size=(200, 2))
    model = PowerKMeans(3, random_state=0).fit(beside)
    assert not model.is_optimal_
    assert optimality_gap(beside, model, max_seconds=0.5).method == "all points"


def test_breaks():
    assert breaks([1, 2, 3, 20, 22, 70], 3).tolist() == [1.0, 3.0, 22.0, 70.0]
    assert breaks([4.0, 4.0], 3).tolist() == [4.0, 4.0]
    weighted = breaks([0.0, 1.0, 2.0], 2, sample_weight=[1, 100, 100])
    assert weighted.tolist() == [0.0, 1.0, 2.0]
    for values, n_classes, told in (
        ([[1.0, 2.0]] * 3, 2, "1d"),
        ([], 2, "0 sample"),
        ([1.0, np.nan], 2, "NaN"),
        (["a", "b"], 2, "text"),
        ([1.0, 2.0], 0, "n_classes"),
    ):
        with pytest.raises(ValueError, match=told):
            breaks(values, n_classes)
