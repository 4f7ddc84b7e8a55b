"""Algorithm 1 of Xu & Lange, "Power k-Means Clustering", ICML 2019, and nothing else.

Every fit runs `powermeans.engine.anneal`, which makes the same sweeps and adds stages, updates, a
history and callbacks.
"""

import math
from collections.abc import Iterable

from powermeans.mathematics.rules import Power
from powermeans.points.protocol import Points
from powermeans.types import FloatArray


def power_k_means(
    rows: Points,
    centers: FloatArray,  # Theta_0, (n_centers, n_features)
    powers: Iterable[float],  # s_0, s_1, ..., finite and negative
    tolerance: float,
) -> FloatArray:
    """Sweep until the objective falls by at most `tolerance` of itself, and return the centers.

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.mathematics.schedules import Geometric
    >>> from powermeans.engine.algorithm_1 import power_k_means
    >>> from powermeans.points.opening import open_rows
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> powers = Geometric(start=-3.0, growth=1.05)
    >>> centers = power_k_means(open_rows(X), X[:5], powers, tolerance=1e-6 / np.sqrt(2))
    >>> options = {"power": -3.0, "schedule": 1.05, "tol": 1e-6, "effort": "none", "polish": False}
    >>> model = PowerKMeans(5, init=X[:5], **options).fit(X)
    >>> bool((model.cluster_centers_ == centers).all())
    True
    """
    before = math.nan  # so that the first comparison is false
    for power in powers:  # lines 2 and 5
        sums = rows.sweep(centers, Power(power))  # line 3, and the sums of line 4
        centers = sums.centers(fallback=centers)  # line 4
        if before - sums.objective <= tolerance * before:  # line 6
            break
        before = sums.objective
    return centers
