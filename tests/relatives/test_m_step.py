"""What a mixture learns from a sweep, against the M-step written out."""

from __future__ import annotations

import numpy as np
import pytest

from powermeans.engine.updates import SeparateCoincident, Sweep, Update
from powermeans.mathematics.rules import Gaussian
from powermeans.points.compiled import EuclideanRows
from powermeans.points.reference import ReferenceRows
from powermeans.relatives.mixture.learning import GaussianLearner

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))
CENTERS = POINTS[:3].copy()


def learner(first: Gaussian | None, **changes) -> GaussianLearner:
    usual = {"learns_variance": True, "learns_shares": True, "hottest": 0.0, "tolerance": 0.0}
    return GaussianLearner(first=first, **{"separate": Update(), **usual, **changes})


def learned_from(learn: GaussianLearner, rows, centers=CENTERS):
    rule = next(iter(learn))
    learn.after(Sweep(rows, centers, rule.power), rows.sweep(centers, rule))
    return learn.known


def test_coincident_centers_are_separated_until_the_likelihood_is_known():
    learn = learner(Gaussian(2.0), separate=SeparateCoincident(np.inf, 1.0))
    rows = ReferenceRows(POINTS)
    first, second = (Sweep(rows, np.zeros((3, 3)), np.nan) for _ in range(2))
    assert learn.before(first) is not first.centers
    learned_from(learn, rows)
    assert learn.before(second) is second.centers
    assert (first.n_separated, second.n_separated) == (2, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_the_variance_of_small_clusters_far_apart_is_found(dtype, distance):
    points = np.random.default_rng(1).normal(size=(200, 2)).astype(dtype)
    points[100:] += dtype(distance)
    centers = np.array([[0.1, 0.0], [distance, distance + 0.1]])
    halves = [half - half.mean(axis=0, dtype=float) for half in np.split(points.astype(float), 2)]
    model = learned_from(learner(None), EuclideanRows(points, None), centers)
    least = max(1e-12, np.finfo(dtype).eps) * distance**2 / 4
    assert model.variance == pytest.approx(max(np.mean(np.square(halves)), least), rel=0.02)
