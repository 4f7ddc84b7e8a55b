"""The self-organizing map as the Neural Network Toolbox of MATLAB trains it by default.

Higuera, Gardiner & Cios: Self-Organizing Feature Maps Identify Proteins Critical to Learning in a
Mouse Model of Down Syndrome. PLoS ONE 10(6), 2015.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import shortest_path
from sklearn.utils import check_random_state

from powermeans.engine.anneal import Stage
from powermeans.engine.fit import Fit
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import Sweep
from powermeans.mathematics.schedules import Fixed
from powermeans.mathematics.sums import Sums
from powermeans.methods import SelfOrganizingMap
from powermeans.methods.self_organizing_map import ShareOverGrid
from powermeans.points.protocol import Points
from powermeans.types import Matrix

FIRST_STEPS, LAST_STEPS, N_SHRINKING = 3.0, 0.98, 102
LEFT_OUT = 0.1
ROUNDING = 1e-9


class MatlabMap(SelfOrganizingMap):
    """A map on a hexagonal grid whose nodes share what is within some steps, and their own twice.

    The number of steps falls from 3 to less than one in 100 epochs; in 100 more only the own points
    of a node count. Each epoch leaves out a tenth of the points, which have no weights.
    """

    def __init__(self, shape=(7, 7), *, init="pca", n_epochs=200, random_state=None):
        super().__init__(
            shape, topology="hexagonal", init=init, n_epochs=n_epochs, random_state=random_state
        )

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        array, rng = points.given.array, check_random_state(self.random_state)
        near = self._grid().distances() <= 1 + ROUNDING
        steps = np.asarray(shortest_path(near))
        n_shrinking = min(N_SHRINKING, self.n_epochs)
        reaches = np.full(self.n_epochs, LAST_STEPS)
        reaches[:n_shrinking] = np.linspace(FIRST_STEPS, LAST_STEPS, n_shrinking)
        own = np.eye(len(steps))
        return [
            Stage(
                Fixed(-math.inf),
                CentersSettled(0.0),
                1,
                _LeaveOut((steps <= reach + ROUNDING) + own, array, rng),
            )
            for reach in reaches
        ]


@dataclass(frozen=True, slots=True)
class _LeaveOut(ShareOverGrid):
    points: Matrix
    rng: np.random.RandomState

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Share the sums of the points that stay, which are added up anew."""
        labels, _ = sweep.rows.assign(sweep.centers)
        stay = np.flatnonzero(self.rng.random_sample(len(labels)) >= LEFT_OUT)
        own = np.zeros((len(sweep.centers), len(labels)))
        own[labels[stay], stay] = 1.0
        kept = replace(sums, points=own @ self.points, weights=own.sum(axis=1))
        return ShareOverGrid.after(self, sweep, kept)
