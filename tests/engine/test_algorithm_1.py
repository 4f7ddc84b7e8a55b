"""Algorithm 1 stands in one place, gives the bits of the estimator, and is what the page shows."""

import ast
import inspect
import math
import re
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from problems import sq_distances
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from powermeans import Geometric, PowerKMeans
from powermeans.engine.algorithm_1 import power_k_means
from powermeans.points.opening import open_rows

PAGE = Path(__file__).parents[2] / "docs" / "algorithm.md"


def counted(powers, used):
    for power in powers:
        used.append(power)
        yield power


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_features", "max_iter"), [(1, 300), (2, 6), (2, 300), (30, 300)])
def test_it_gives_the_bits_of_the_estimator(kind, dtype, n_features, max_iter):
    rng = np.random.default_rng(n_features)
    points = rng.normal(size=(500, n_features)).astype(dtype)
    weights = rng.uniform(0.5, 2.0, size=500)
    seeds, used = points[:6].astype(np.float64), []
    powers = counted(islice(Geometric(-3.0, 1.05), max_iter), used)
    tolerance = 1e-6 / math.sqrt(n_features)
    centers = power_k_means(open_rows(kind(points), weights), seeds, powers, tolerance)
    model = PowerKMeans(6, init=seeds, power=-3.0, schedule=1.05, polish=False)
    model.set_params(effort="none", tol=1e-6, max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match="cut short") if max_iter == 6 else nullcontext():
        model.fit(kind(points), sample_weight=weights)
    assert model.cluster_centers_.tobytes() == centers.astype(dtype).tobytes()
    assert model.history_.power.tolist() == used


def swept(points, centers, power):
    """Equations 4 and 5 of the paper in NumPy: the centers after a sweep, and its objective."""
    sq_dist = sq_distances(points, centers)
    least = sq_dist.min(axis=1)
    # Weights depend on ratios only, whose powers do not overflow.
    ratios = sq_dist / least[:, None]
    means = np.mean(ratios**power, axis=1)
    weights = ratios ** (power - 1) * means[:, None] ** (1 / power - 1)
    moved = weights.T @ points / weights.sum(axis=0)[:, None]
    return moved, float(np.sum(least * means ** (1 / power)))


def as_the_paper_says(points, centers):
    power, before = -3.0, math.nan
    while True:
        centers, now = swept(points, centers, power)
        yield power, centers
        if before - now <= 1e-6 / math.sqrt(points.shape[1]) * before:
            return
        power, before = 1.05 * power, now


def as_the_authors_code_says(points, centers, power):
    before, root = math.nan, math.sqrt(points.shape[1])
    for number in range(10_000):
        centers, now = swept(points, centers, power)
        yield power, centers
        if (before - now) / before / root <= 1e-7 and power <= -root:
            return
        before = now
        if number % 2 and power > -120:
            power = power - 0.2 if power > -1 else 1.06 * power


@pytest.mark.parametrize("n_features", [2, 9])
@pytest.mark.parametrize("start", [-0.5, -1.0, -4.0, None])
def test_presets_go_where_the_paper_and_the_authors_code_go(n_features, start):
    points = np.random.default_rng(1).normal(size=(200, n_features))
    seeds = points[:4] + 0.01
    if start is None:
        model, twin = PowerKMeans.as_published(4, init=seeds), as_the_paper_says(points, seeds)
    else:
        model = PowerKMeans.as_authors_code(4, power=start, init=seeds)
        twin = as_the_authors_code_says(points, seeds, start)
    powers, centers = zip(*twin, strict=True)
    model.fit(points)
    np.testing.assert_allclose(model.history_.power, powers, rtol=1e-12)
    np.testing.assert_allclose(model.cluster_centers_, centers[-1], rtol=1e-12, atol=1e-12)
    assert len(powers) > 10
    assert PowerKMeans.as_published(4, power=-9.0).power == -9


def test_the_page_shows_the_function():
    block = next(b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (shown,) = (node for node in ast.parse(block).body if isinstance(node, ast.FunctionDef))
    (ours,) = ast.parse(inspect.getsource(power_k_means)).body
    assert isinstance(ours, ast.FunctionDef)
    without_docstring = ours.body[1:]
    assert [ast.unparse(line) for line in shown.body] == [*map(ast.unparse, without_docstring)]
    assert len(ast.unparse(shown).splitlines()) <= 10
