"""The centers that a fit starts from, by its `init`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from powermeans.engine.fit import Fit
from powermeans.engine.seeds.choose import choose_seeds, n_greedy_candidates, uniform_seeds
from powermeans.engine.seeds.markov_chain import MarkovChainSeeds
from powermeans.engine.seeds.parallel import Candidates, ParallelSeeds
from powermeans.engine.seeds.samples import distinct_places
from powermeans.engine.seeds.tree import TreeSeeds
from powermeans.errors import Argument, ArgumentError
from powermeans.points.checks.centers import check_init
from powermeans.points.checks.points import as_floats
from powermeans.points.protocol import Points
from powermeans.types import FloatArray


@dataclass(slots=True)
class Seeds:
    """Where the starts of a fit come from."""

    init: Any  # of the user: a name, an array, a function or a way of this package
    n_centers: int
    after_first: Iterator[FloatArray] | None = None  # then these, while there are some
    _has_drawn: bool = False

    @property
    def are_given(self) -> bool:
        """Whether the user gave centers, so that each draw returns the same."""
        return not (isinstance(self.init, str) or callable(self.init))

    @property
    def are_by_default(self) -> bool:
        """Whether they are those of k-means++, for which others may stand where these cost much."""
        return isinstance(self.init, str) and self.init == "k-means++"

    def draw(self, points: Points, fit: Fit, sample: Points | None = None) -> FloatArray:
        """Return centers, others at each call if they are drawn.

        Those that a name stands for are drawn in the sample, if there is one.
        """
        if self._has_drawn and sample is None and self.after_first is not None:
            centers = next(self.after_first, None)
            if centers is not None:
                return centers
        self._has_drawn = True
        if not fit.listener.n_sweeps:  # later ones belong to a start of a search
            fit.listener.phase("choosing seeds")
        init, n_clusters = self.init, self.n_centers
        is_drawn_in_sample = sample is not None and isinstance(init, str)
        in_parts = points.parts is not None
        if isinstance(init, ParallelSeeds) or (in_parts and not is_drawn_in_sample):
            return _in_passes(init, n_clusters, points, fit)
        if isinstance(init, TreeSeeds | MarkovChainSeeds):
            return _in_samples(init, n_clusters, points, fit)
        if callable(init):
            init = init(as_floats(points.given.array), n_clusters, random_state=fit.rng)
        if not isinstance(init, str):
            return _checked(init, n_clusters, points, fit)
        rows = points if sample is None else sample
        if init == "random":
            return uniform_seeds(rows, n_clusters, fit.rng)
        drawn, left = _drawing(init, n_clusters), fit.seconds_left()
        return choose_seeds(rows, n_clusters, fit.rng, seconds=left, **drawn)[0]


def asks_for_centers(init: object) -> bool:
    """Return whether `init` is a function of the user, which is called with all columns."""
    return callable(init) and not isinstance(init, ParallelSeeds | MarkovChainSeeds | TreeSeeds)


def _in_samples(
    init: TreeSeeds | MarkovChainSeeds, n_clusters: int, points: Points, fit: Fit
) -> FloatArray:
    """Return seeds that are chosen in samples of the points."""
    if points.sampler is None:
        raise ArgumentError(
            "takes samples, which needs an array of whole points that are all compared by "
            "squared Euclidean distances or cosines",
            "pass ",
            Argument("init", "k-means++"),
            argument="init",
            value=init,
        )
    if isinstance(init, TreeSeeds):
        return init.planted(points, n_clusters, fit.rng, fit.seconds_left)[0]
    return init.seeds(points, n_clusters, fit.rng)


def _in_passes(init: Any, n_clusters: int, points: Points, fit: Fit) -> FloatArray:
    """Return seeds of points that have no order, from candidates found once in a fit."""
    if callable(init) and not isinstance(init, ParallelSeeds):
        raise ValueError(
            "init is a function of all points, and X is read part by part: pass "
            'init="k-means++", "random", an array or powermeans.engine.seeds.ParallelSeeds()'
        )
    if not isinstance(init, str | ParallelSeeds):
        return _checked(init, n_clusters, points, fit)
    if init == "random":
        return distinct_places(points, n_clusters, fit.rng)
    found = fit.candidates
    if not isinstance(found, Candidates) or found.origin is not points:
        way = init if isinstance(init, ParallelSeeds) else ParallelSeeds()
        found = fit.candidates = way.candidates(
            points, n_clusters, fit.rng, divergence=fit.divergence, is_late=fit.is_late
        )
    drawn = _drawing(init, n_clusters)
    return found.seeds(n_clusters, fit.rng, seconds=fit.seconds_left(), **drawn)


def _checked(centers: ArrayLike, n_clusters: int, points: Points, fit: Fit) -> FloatArray:
    checked = check_init(centers, n_clusters, points.given.n_features)
    fit.divergence.check_domain(checked, name="init")
    return points.given.of_used_columns(fit.divergence.in_one_unit(checked))


def _drawing(init: Any, n_clusters: int) -> dict[str, Any]:
    """Return how k-means++ draws by the name of `init`."""
    if init == "plain-k-means++":
        return {"n_candidates": 1}
    if init == "d-weighted":
        return {"n_candidates": 1, "exponent": 1.0}
    return {"n_candidates": n_greedy_candidates(n_clusters)}
