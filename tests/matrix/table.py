"""The table of the matrix: public estimators and functions, their points, and their exemptions.

A relation is a function of test_relations.py, named here by what follows `test_`. An exemption says
why the relation cannot hold. It must fail there, so that no exemption outlives its reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

import powermeans as pm
from powermeans import divergences, methods
from powermeans.engine.seeds import MarkovChainSeeds, ParallelSeeds, TreeSeeds
from tests.matrix.data import K, counts, groups, half_circles, shares, sizes, with_gaps
from tests.matrix.outcomes import found


@dataclass(frozen=True)
class Row:
    """An estimator of the matrix, or a function whose result is taken for a fitted estimator."""

    make: Any  # an estimator that is not fitted, or a function of points, weights and parameters
    points: Callable[[int], np.ndarray] = groups  # from a number of points
    # To which powers of the unit of length inertia, centers and objective are proportional.
    degree: float = 2.0
    center_degree: float = 1.0
    objective_degree: float = 2.0
    far: float = 30.0  # how many times as large as others points without weight may be
    # Parameters for points that are so many times as large, and weights.
    in_unit: Callable[[float, float], Mapping[str, Any]] = lambda length, weight: {}
    units: tuple[float, ...] = (1e-90, 1e90)  # how many times as large points may be
    is_dense: bool = False  # whether sparse points are refused
    is_numbered: bool = True  # whether clusters have the same numbers after changes by rounding
    many: Mapping[str, Any] = field(default_factory=dict)  # for many points: n_points and others
    exempt: Mapping[str, str] = field(default_factory=dict)  # from relations to the reason

    @property
    def is_estimator(self) -> bool:
        return hasattr(self.make, "fit")

    def fit(self, points: Any, weights: Any = None, **parameters: Any) -> Any:
        if not self.is_estimator:
            return self.make(points, weights, **parameters)
        model = clone(self.make).set_params(random_state=3, **parameters)
        return model.fit(points) if weights is None else model.fit(points, sample_weight=weights)

    @cached_property
    def given(self) -> np.ndarray:
        return self.points(100)

    @cached_property
    def weights(self) -> np.ndarray:
        return np.random.default_rng(1).uniform(0.5, 2, size=len(self.given))

    @cached_property
    def plain(self) -> dict[str, np.ndarray]:
        return found(self.fit(self.given), self.given)

    @cached_property
    def weighted(self) -> dict[str, np.ndarray]:
        return found(self.fit(self.given, self.weights), self.given, self.weights)


def power(**parameters: Any) -> pm.PowerKMeans:
    return pm.PowerKMeans(K, **parameters)


def fast(divergence: Any) -> pm.PowerKMeans:
    return power(divergence=divergence, effort="fast")


def priced(model: Any, exempt: Any = (), **options: Any) -> Row:
    """A row of clusters with a price, which has the unit of inertia."""
    options = {"is_numbered": False, "exempt": dict(exempt), **options}
    return Row(model, in_unit=lambda x, w: {"penalty": model.penalty * x**2 * w}, **options)


def balanced(**parameters: Any) -> pm.BalancedKMeans:
    return pm.BalancedKMeans(K, **parameters)


NO_SHIFT = {"shifting": "the divergence has a place where it is zero"}
BOUNDED = {"scaling": "numbers of successes have no unit", **NO_SHIFT}
BY_BITS = dict.fromkeys(
    ("scaling", "shifting", "single_precision"), "the bits of the points draw their order"
)
BATCHES = {"weights_as_copies": "batches have so many points, whatever these weigh"}
LIMITS = {"weights_as_copies": "limits part copies, and no point"}
UNWEIGHTED = dict.fromkeys(
    ("weights_as_copies", "no_weight", "scaled_weights"), "it takes no weights"
)
OF_ONE = {"scaled_weights": "a point that opens a cluster is as far as one of weight one"}
NO_KERNEL_UNIT = "the kernel is not linear in the points"
SHORT = {"n_clusters": 20, "max_iter": 3}
FAST = {**SHORT, "effort": "fast"}
FEWER = {**FAST, "n_points": 4000}
ONCE = {"n_clusters": 20, "max_iter": 2, "effort": "none"}
BARE = {"n_clusters": 20, "max_iter": 2, "effort": None}
GAPS: dict[str, Any] = {"points": with_gaps, "is_dense": True, "is_numbered": False}
OF_F: dict[str, Any] = {"degree": 1, "is_numbered": False, "is_dense": True, "many": ONCE}

ROWS = {
    "power": Row(power(), many=FAST),
    "power, fast": Row(power(effort="fast")),
    "power, thorough": Row(power(effort="thorough")),
    "power, one descent": Row(power(effort="none")),
    "power, as published": Row(
        power(power=-3.0, schedule=1.5, polish=False, init="plain-k-means++")
    ),
    "power, d-weighted": Row(power(init="d-weighted")),
    "power, random": Row(power(init="random", n_init=2)),
    "cosine": Row(
        power(divergence="cosine"), degree=0, center_degree=0, many=ONCE, exempt=NO_SHIFT
    ),
    "manhattan": Row(fast("manhattan"), degree=1, is_numbered=False, many=ONCE, is_dense=True),
    "poisson": Row(power(divergence="poisson"), counts, degree=1, many=FEWER, exempt=NO_SHIFT),
    "gamma": Row(fast("gamma"), sizes, degree=0, is_numbered=False, many=ONCE, exempt=NO_SHIFT),
    "inverse gaussian": Row(
        fast("inverse_gaussian"), sizes, degree=-1, is_numbered=False, many=ONCE, exempt=NO_SHIFT
    ),
    "logistic": Row(fast("logistic"), shares, far=1.0, exempt=BOUNDED),
    "binomial": Row(fast(divergences.Binomial(60)), counts, far=1.0, exempt=BOUNDED),
    "hellinger": Row(fast("hellinger"), counts, exempt=NO_SHIFT, **OF_F),
    "chi-squared": Row(fast("chi_squared"), counts, exempt=NO_SHIFT, **OF_F),
    "jeffreys": Row(
        fast("jeffreys"),
        sizes,
        exempt={**NO_SHIFT, "effort": "a search that moves no single point may end higher"},
        **OF_F,
    ),
    "learned covariance": Row(fast("mahalanobis"), units=(1e-30, 1e30)),
    "Mahalanobis": Row(power(divergence=divergences.Mahalanobis(np.diag([1.0, 2.0, 3.0])))),
    "gaps": Row(power(missing="observed"), with_gaps, many=ONCE, is_dense=True),
    "largest size": Row(balanced(size_max=0.25), is_numbered=False, many=FAST),
    "least size": Row(balanced(size_min=0.15, effort="fast"), is_numbered=False, exempt=LIMITS),
    "balance": Row(balanced(balance=0.5), is_numbered=False, many=FAST),
    "links": Row(pm.LinkedKMeans(K), many=FAST),
    "k-means": Row(pm.KMeans(K, tol=1e-12), many=SHORT),
    "k-means, random": Row(pm.KMeans(K, init="random", n_init=2, tol=1e-12)),
    "k-means, Markov chain": Row(pm.KMeans(K, init=MarkovChainSeeds(), tol=1e-12), many=SHORT),
    "k-means, parallel": Row(
        pm.KMeans(K, init=ParallelSeeds(), tol=1e-12), is_numbered=False, many=SHORT
    ),
    "k-means, tree": Row(pm.KMeans(K, init=TreeSeeds(), tol=1e-12), many=SHORT),
    "k-means, gaps": Row(
        pm.KMeans(K, missing="observed", tol=1e-12), with_gaps, many=SHORT, is_dense=True
    ),
    "harmonic": Row(methods.KHarmonicMeans(K, tol=0, max_iter=30), many=SHORT),
    "harmonic, 3.5": Row(
        methods.KHarmonicMeans(K, p=3.5, tol=0, max_iter=30),
        objective_degree=3.5,
        units=(1e-60, 1e60),
    ),
    "harmonic, gaps": Row(
        methods.KHarmonicMeans(K, missing="observed", tol=0, max_iter=30), with_gaps, is_dense=True
    ),
    "fuzzy": Row(methods.FuzzyCMeans(K, tol=0, max_iter=30), many=SHORT),
    "fuzzy, gaps": Row(
        methods.FuzzyCMeans(K, missing="observed", tol=0, max_iter=30), with_gaps, is_dense=True
    ),
    "mixture": Row(methods.SphericalMixture(K), many=BARE),
    "mixture, shares": Row(methods.SphericalMixture(K, shares="learned")),
    "mixture, spherical": Row(
        methods.SphericalMixture(K, covariance_type="spherical", shares="learned", effort="fast"),
        many=BARE,
    ),
    "mixture, gaps": Row(methods.SphericalMixture(K, missing="observed", effort="fast"), **GAPS),
    "mixture, spherical, gaps": Row(
        methods.SphericalMixture(
            K, covariance_type="spherical", shares="learned", missing="observed", effort="fast"
        ),
        **GAPS,
    ),
    "penalty, gaps": priced(
        methods.DPMeans(60.0, missing="observed", effort="fast"), OF_ONE, **GAPS
    ),
    "entropy, gaps": Row(
        methods.EntropyWeightedPowerKMeans(K, missing="observed", effort="fast"),
        degree=0,
        objective_degree=0,
        **GAPS,
        exempt={"no_weight": "rounding places a row without the one feature that counts"},
    ),
    "penalty": priced(methods.DPMeans(100.0, effort="fast")),
    "penalty, as published": priced(methods.DPMeans(20.0, effort="none"), OF_ONE),
    "penalty, auto": Row(
        methods.DPMeans(n_clusters_wanted=K), exempt={"effort": "a search derives another penalty"}
    ),
    "entropy": Row(
        methods.EntropyWeightedPowerKMeans(K, effort="fast"),
        degree=0,
        objective_degree=0,
        many=BARE,
        is_dense=True,
    ),
    "gradient": Row(methods.GradientKMeans(K, tol=0, max_iter=30), many=SHORT),
    "kernel": Row(methods.KernelPowerKMeans(K), degree=0, is_numbered=False),
    "kernel, landmarks": Row(
        methods.KernelPowerKMeans(K, n_landmarks=20), degree=0, is_numbered=False, many=FAST
    ),
    "kernel, linear": Row(
        methods.KernelPowerKMeans(K, kernel="linear", effort="fast"), is_numbered=False
    ),
    "kernel, poly": Row(
        methods.KernelPowerKMeans(K, kernel="poly", gamma=0.1, effort="fast"),
        degree=0,
        in_unit=lambda length, weight: {"gamma": 0.1 / length**2},
        units=(1e-30, 1e30),
        is_numbered=False,
        exempt={"shifting": NO_KERNEL_UNIT},
    ),
    "kernel, cosine": Row(
        methods.KernelPowerKMeans(K, kernel="cosine", effort="fast"),
        degree=0,
        units=(1e-9, 1e90),
        is_numbered=False,
        exempt={"shifting": NO_KERNEL_UNIT},
    ),
    "mini-batch": Row(
        pm.MiniBatchKMeans(K, batch_size=50),
        many={**SHORT, "batch_size": 8000},
        exempt={**BATCHES, "order_of_points": "batches are drawn by the numbers of rows"},
    ),
    "mini-batch power": Row(
        pm.MiniBatchPowerKMeans(K, batch_size=50),
        exempt=BATCHES,
        many={**SHORT, "batch_size": 8000},
    ),
    "online": Row(methods.OnlineKMeans(K, tol=1e-12), many=SHORT, exempt=BY_BITS),
    "online, epochs": Row(methods.OnlineKMeans(K, batch=False, n_epochs=2), exempt=BY_BITS),
    "online, in order": Row(
        methods.OnlineKMeans(K, shuffle=False, batch=False),
        exempt={"order_of_points": "it takes one row after the other"},
    ),
    "robust": Row(pm.RobustPowerKMeans(K), many=FAST),
    "map": Row(methods.SelfOrganizingMap((2, 3)), many={"shape": (5, 5), "n_epochs": 2}),
    "map, hexagonal": Row(methods.SelfOrganizingMap((2, 3), topology="hexagonal", init="random")),
    "spectral": Row(
        methods.SpectralClustering(2, gamma=20.0),
        half_circles,
        is_numbered=False,
        in_unit=lambda length, weight: {"gamma": 20.0 / length**2},
        exempt=UNWEIGHTED,
    ),
    "spectral, neighbours": Row(
        methods.SpectralClustering(2, affinity="nearest_neighbors"),
        half_circles,
        is_numbered=False,
        exempt=UNWEIGHTED,
    ),
}


def chosen(points: Any, weights: Any = None) -> SimpleNamespace:
    of = pm.choose_k(points, [2, 4, 5, 6], sample_weight=weights, random_state=3, effort="fast")
    scores = [values for name, values in of.table.items() if name not in ("k", "inertia")]
    scores = [values[~np.isnan(values)] for values in scores]
    return SimpleNamespace(
        by_k=of.table["inertia"], number=of.recommended, scores=np.concatenate(scores)
    )


def seeds(points: Any, weights: Any = None) -> SimpleNamespace:
    centers, _ = pm.kmeans_plusplus(points, K, sample_weight=weights, random_state=3)
    return SimpleNamespace(cluster_centers_=centers)


def moments(points: Any, weights: Any = None) -> SimpleNamespace:
    of = methods.moment_estimates(points, 3, sample_weight=weights)
    return SimpleNamespace(cluster_centers_=of.means, shares_=of.shares, variance_=of.variance)


def critical(points: Any, weights: Any = None) -> SimpleNamespace:
    return SimpleNamespace(number=pm.critical_power(points, sample_weight=weights))


def chunks(stream: Any) -> Callable[..., Any]:
    """Learn from two chunks, from centers that do not depend on them."""

    def learn(points: Any, weights: Any = None) -> Any:
        model = stream.from_centers(groups(K))
        for _ in range(2):
            model.partial_fit(points, sample_weight=weights)
        return model

    return learn


OF_STREAM = dict.fromkeys(
    ("scaling", "shifting", "single_precision"), "the centers were there before the points"
)
ROWS |= {
    "mini-batch power, chunks": Row(chunks(pm.MiniBatchPowerKMeans), exempt=OF_STREAM),
    "online, chunks": Row(
        chunks(methods.OnlineKMeans),
        exempt={**OF_STREAM, "order_of_points": "it takes one row after the other"},
    ),
    "choose_k": Row(
        chosen, exempt={"scaled_weights": "weights of at least one are counts, and others shares"}
    ),
    "seeds": Row(seeds),
    "moments": Row(moments),
    "critical power": Row(critical),
}
