"""Median of means against the published formulas, sum by sum."""

import math

import numpy as np
import pytest

from benchmarks.family import median_of_means


@pytest.mark.parametrize(("n_points", "n_blocks"), [(60, 7), (41, 5), (30, 4)])
def test_a_step_is_that_of_the_published_formulas(n_points, n_blocks):
    """M_s(y) = (mean y^s)^(1/s) over k centers; its gradient is without the factor k^(-1/s)."""
    n_clusters, n_features, s, eta, alpha = 3, 2, -1.0, 1.02, 0.5
    points = np.random.default_rng(0).normal(size=(n_points, n_features))
    rng, size = np.random.default_rng(1), n_points // n_blocks
    order = rng.permutation(n_blocks * size)
    theta = points[rng.choice(n_blocks * size, n_clusters, replace=False)]
    theta = theta + 0.01 * rng.uniform(size=(n_clusters, n_features))
    b, chosen, medians = [0.0] * n_clusters, [], []
    for t in range(1, 9):
        objectives = []
        for block in range(n_blocks):
            total = 0.0
            for i in order[block * size : (block + 1) * size]:
                y = [sum((points[i] - center) ** 2) for center in theta]
                total += (sum(v**s for v in y) / n_clusters) ** (1 / s)
            objectives.append(total)
        medians.append(sorted(objectives)[math.floor((n_blocks + 1) / 2) - 1])
        if t > 5 and abs((medians[-1] - medians[-2]) / medians[-2]) < 1e-4:
            break
        chosen.append(objectives.index(medians[-1]))
        gradient = np.zeros_like(theta)
        for i in order[chosen[-1] * size : (chosen[-1] + 1) * size]:
            m = [sum((points[i] - center) ** 2) + 1e-4 for center in theta]
            coefficient = sum(v**s for v in m) ** (1 / s - 1)
            for j in range(n_clusters):
                gradient[j] -= m[j] ** (s - 1) * coefficient * (points[i] - theta[j])
        for j in range(n_clusters):
            b[j] += sum(gradient[j] ** 2)
        theta = theta - alpha * gradient / np.sqrt(b)[:, None]
        s = s * eta if t % 2 == 0 else s
    found = median_of_means(
        points, n_clusters, n_blocks, np.random.default_rng(1), rate=alpha, max_iter=8
    )
    assert len(set(chosen)) > 1
    np.testing.assert_allclose(found, theta, rtol=1e-12, atol=1e-13)
