"""The comparator accepts what is right, and names the quantity where rows are broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from comparator import Case, compare_rows, varied_cases
from scipy import sparse

from powermeans.divergences import SquaredEuclidean
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.by_definition import NearnessByDefinition
from powermeans.points.reference import ReferenceRows

CASES = varied_cases()


def oracle_of(case: Case) -> ReferenceRows:
    return ReferenceRows(case.points, case.sample_weight, precision=np.longdouble)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_passes_against_itself_in_long_double(case):
    rows = ReferenceRows(case.points, case.sample_weight)
    compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-12)


# Broken in the sweep.


class DropsTheLastChunk(ReferenceRows):
    def sweep(self, centers, rule):
        kept = ReferenceRows(self._points[:-7], self._weight[:-7])
        return kept.sweep(centers, rule)


class CountsTheLastPointTwice(ReferenceRows):
    def sweep(self, centers, rule):
        last = ReferenceRows(self._points[-1:], self._weight[-1:])
        return super().sweep(centers, rule) + last.sweep(centers, rule)


class ForgetsWeights(ReferenceRows):
    def sweep(self, centers, rule):
        return ReferenceRows(self._points).sweep(centers, rule)


class SweepsOneLessThanThePower(ReferenceRows):
    def sweep(self, centers, rule):
        return super().sweep(centers, rule if rule == Hard() else Power(rule.power - 1))


class SweepsHardAtHighPowers(ReferenceRows):
    def sweep(self, centers, rule):
        return super().sweep(centers, Hard() if rule.power < -100 else rule)


class HalvesThePower(ReferenceRows):
    def sweep(self, centers, rule):
        return super().sweep(centers, rule if rule == Hard() else Power(rule.power / 2))


class UsesMembershipsAsWeights(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        if rule == Hard():
            return sums
        weights, _ = rule.weigh(self._sq_dist(centers))
        shares = self._weight[:, None] * weights / weights.sum(axis=1, keepdims=True)
        return Sums(shares.T @ self._points, shares.sum(axis=0), sums.objective, sums.inertia)


class SwapsTwoCenters(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        order = np.arange(len(centers))
        order[:2] = order[:2][::-1]
        return Sums(sums.points[order], sums.weights[order], sums.objective, sums.inertia)


class ClampsDistances(ReferenceRows):
    def _sq_dist(self, centers):
        return super()._sq_dist(centers) + 1e-9


class ExpandsTheSquare(ReferenceRows):
    def _sq_dist(self, centers):
        x, y = self._points, centers
        return (x**2).sum(1)[:, None] - 2 * x @ y.T + (y**2).sum(1)


class AddsInFloat32(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        rounded = sums.points.astype(np.float32).astype(np.float64)
        return Sums(rounded, sums.weights, sums.objective, sums.inertia)


class LeavesPointsOnCentersOut(ReferenceRows):
    def sweep(self, centers, rule):
        is_away = self._sq_dist(centers).min(axis=1) > 0
        return ReferenceRows(self._points[is_away], self._weight[is_away]).sweep(centers, rule)


class AddsDistancesNotTheirPowerMeans(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        return Sums(sums.points, sums.weights, sums.inertia, sums.inertia)


class AddsUnweightedInertia(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        inertia = float(self._sq_dist(centers).min(axis=1).sum())
        return Sums(sums.points, sums.weights, sums.objective, inertia)


class ReturnsNan(ReferenceRows):
    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        return Sums(sums.points, sums.weights * np.nan, sums.objective, sums.inertia)


# Broken in what follows a sweep.


class TakesUtilityFromTheThirdNearest(ReferenceRows):
    def _utility(self, sq_dist, labels):
        others = np.partition(sq_dist, 2, axis=1)
        gain = self._weight * (others[:, 2] - others[:, 0])
        return self._add_by_label(gain, labels, sq_dist.shape[1])


class GivesUtilityToTheSecondNearest(ReferenceRows):
    def _utility(self, sq_dist, labels):
        return super()._utility(sq_dist, np.argsort(sq_dist, axis=1)[:, 1])


class GivesASingleCenterNoUtility(ReferenceRows):
    def _utility(self, sq_dist, labels):
        utility = super()._utility(sq_dist, labels)
        return np.where(np.isinf(utility), 0.0, utility)


class SpreadsUnweighted(ReferenceRows):
    def spread(self, centers):
        return ReferenceRows(self._points).spread(centers)


class CountsPointsInTheSpread(ReferenceRows):
    def spread(self, centers):
        spread = super().spread(centers)
        counts = np.bincount(self.assign(centers)[0], minlength=len(centers)).astype(float)
        return Spread(spread.error, spread.utility, counts)


class LabelsTheLastOfTies(ReferenceRows):
    def assign(self, centers):
        reversed_labels, inertia = super().assign(centers[::-1])
        return (len(centers) - 1 - reversed_labels).astype(np.int32), inertia


class LabelsTheSecondNearest(ReferenceRows):
    def assign(self, centers):
        _, inertia = super().assign(centers)
        return np.argsort(self._sq_dist(centers), axis=1)[:, 1].astype(np.int32), inertia


class MislabelsTheLastPoint(ReferenceRows):
    def assign(self, centers):
        labels, inertia = super().assign(centers)
        labels[-1] = (labels[-1] + 1) % len(centers)
        return labels, inertia


class LabelsInInt64(ReferenceRows):
    def assign(self, centers):
        labels, inertia = super().assign(centers)
        return labels.astype(np.int64), inertia


class AssignsWithUnweightedInertia(ReferenceRows):
    def assign(self, centers):
        return super().assign(centers)[0], ReferenceRows(self._points).assign(centers)[1]


class TakesTheRootOfDistances(ReferenceRows):
    def sq_distances(self, centers):
        return np.sqrt(super().sq_distances(centers))


class GivesDistancesInFloat16(ReferenceRows):
    def sq_distances(self, centers):
        return super().sq_distances(centers).astype(np.float16)


class MeansUnweighted(ReferenceRows):
    def mean(self):
        return ReferenceRows(self._points).mean()


class AddsVariancesOfFeatures(ReferenceRows):
    def mean_variance(self):
        return super().mean_variance() * self.n_features


class CountsPointsAsTotalWeight(ReferenceRows):
    @property
    def total_weight(self):
        return float(self.n_points)


class TakesInSortedOrder(ReferenceRows):
    def take(self, indices):
        return super().take(np.sort(indices))


class WeighsAllAlike(ReferenceRows):
    def sample_weight(self, indices):
        return np.ones(len(indices))


class SamplesTheOtherKind(ReferenceRows):
    def sample(self, indices):
        sample = super().sample(indices)
        return sample.toarray() if sparse.issparse(sample) else sparse.csr_array(sample)


# Broken in the nearness.


class NearnessBreaks(ReferenceRows):
    broken: type[NearnessByDefinition]

    def nearness(self, centers, order=None):
        return self.broken(self._points, self._weight, centers, order, self._pairwise)


def with_broken(method, replacement):
    """Rows whose nearness has this one method replaced."""
    broken = type(replacement.__name__, (NearnessByDefinition,), {method: replacement})
    return type(replacement.__name__, (NearnessBreaks,), {"broken": broken})


class FindsTheFarthestOnlyFromTheGivenCenters(ReferenceRows):
    def farthest(self, centers, n_wanted):
        return n_wanted * list(super().farthest(centers, 1))


class FindsTheFarthestWithoutWeights(ReferenceRows):
    def farthest(self, centers, n_wanted):
        return ReferenceRows(self._points).farthest(centers, n_wanted)


class LabelsTheFarthestWithTheLastCenter(ReferenceRows):
    def farthest(self, centers, n_wanted):
        found = super().farthest(centers, n_wanted)
        return [replace(far, label=len(centers) - 1) for far in found]


class SeedsWithTheWorstCandidate(ReferenceRows):
    def greedy_seeds(self, order, first, others, **limits):
        nearness = self.nearness(np.empty((0, self.n_features)), order)
        seeds = [nearness.draw(np.array([first]))]
        for numbers in others:
            nearness.add(self.take(seeds[-1])[0])
            candidates = nearness.draw(numbers)
            worst = np.argmax(nearness.potentials(candidates))
            seeds.append(candidates[worst : worst + 1])
        return np.concatenate(seeds)


class SeedsWithTheFirstCandidate(ReferenceRows):
    def greedy_seeds(self, order, first, others, **limits):
        return super().greedy_seeds(order, first, others[:, :1], **limits)


class SeedsInTheOrderOfTheRows(ReferenceRows):
    def greedy_seeds(self, order, first, others, **limits):
        return super().greedy_seeds(np.arange(self.n_points), first, others, **limits)


class SeedsWithoutWeights(ReferenceRows):
    def greedy_seeds(self, order, first, others, **limits):
        return ReferenceRows(self._points).greedy_seeds(order, first, others, **limits)


def draws_uniformly(self, uniforms, exponent=2.0):
    return (uniforms * len(self._points)).astype(np.intp)


def draws_without_weights(self, uniforms, exponent=2.0):
    unweighted = NearnessByDefinition(
        self._points, np.ones(len(self._points)), [], self._order, self._pairwise
    )
    unweighted._nearest = self._nearest
    return unweighted.draw(uniforms, exponent)


def ignores_the_order(self, uniforms, exponent=2.0):
    unordered = NearnessByDefinition(self._points, self._weight, [], None, self._pairwise)
    unordered._nearest = self._nearest
    return unordered.draw(uniforms, exponent)


def ignores_the_exponent(self, uniforms, exponent=2.0):
    return NearnessByDefinition.draw(self, uniforms)


def squares_the_exponent(self, uniforms, exponent=2.0):
    return NearnessByDefinition.draw(self, uniforms, 2 * exponent)


def draws_the_next_point(self, uniforms, exponent=2.0):
    return np.minimum(
        NearnessByDefinition.draw(self, uniforms, exponent) + 1, len(self._points) - 1
    )


def forgets_the_present_centers(self, candidates):
    sq_dist = SquaredEuclidean().pairwise(self._points, self._points[candidates])
    return (self._weight @ sq_dist).astype(np.float64)


def sums_potentials_unweighted(self, candidates):
    sq_dist = SquaredEuclidean().pairwise(self._points, self._points[candidates])
    return np.minimum(sq_dist, self._nearest[:, None]).sum(axis=0)


def replaces_instead_of_adding(self, center):
    self._nearest = SquaredEuclidean().pairwise(self._points, np.asarray(center)[None])[:, 0]


def finds_the_last_of_the_farthest(self):
    return len(self._points) - 1 - int(np.argmax(self._weighted()[::-1]))


def finds_the_farthest_without_weights(self):
    return int(np.argmax(self._nearest))


def finds_the_nearest(self):
    return int(np.argmin(self._weighted()))


def adds_inertia_unweighted(self):
    return float(self._nearest.sum())


def has_no_inertia_without_centers(self):
    inertia = NearnessByDefinition.inertia(self)
    return 0.0 if np.isinf(inertia) else inertia


def gives_distances_of_the_first_points(self, indices):
    return self._nearest[: len(indices)] * 0.999


BROKEN = [
    (DropsTheLastChunk, "sweep at power -inf: weights"),
    (CountsTheLastPointTwice, "sweep at power -inf: weights"),
    (ForgetsWeights, "sweep at power -inf: weights"),
    (SweepsOneLessThanThePower, "sweep at power -0.1: weights"),
    (SweepsHardAtHighPowers, "sweep at power -1000.0: weights"),
    (HalvesThePower, "sweep at power -0.1: weights"),
    (UsesMembershipsAsWeights, "sweep at power -0.1: weights"),
    (SwapsTwoCenters, "sweep at power -inf: weights"),
    (ClampsDistances, "sweep at power"),
    (ExpandsTheSquare, "sweep at power"),
    (AddsInFloat32, "sweep at power -inf: points"),
    (LeavesPointsOnCentersOut, "sweep at power -inf: weights"),
    (AddsDistancesNotTheirPowerMeans, "sweep at power -0.1: objective"),
    (AddsUnweightedInertia, "sweep at power -inf: inertia"),
    (ReturnsNan, "sweep at power -inf: weights"),
    (TakesUtilityFromTheThirdNearest, "spread: utility"),
    (GivesUtilityToTheSecondNearest, "spread: utility"),
    (GivesASingleCenterNoUtility, "spread: utility of a single center"),
    (SpreadsUnweighted, "spread: weights"),
    (CountsPointsInTheSpread, "spread: weights"),
    (LabelsTheLastOfTies, "assign: labels are the first of several"),
    (LabelsTheSecondNearest, "assign: labels are those of the nearest"),
    (MislabelsTheLastPoint, "assign: labels are those of the nearest"),
    (LabelsInInt64, "assign: dtype of labels"),
    (AssignsWithUnweightedInertia, "assign: inertia"),
    (TakesTheRootOfDistances, "sq_distances differs"),
    (GivesDistancesInFloat16, "sq_distances: dtype"),
    (MeansUnweighted, "mean differs"),
    (AddsVariancesOfFeatures, "mean_variance"),
    (CountsPointsAsTotalWeight, "total_weight"),
    (TakesInSortedOrder, "take"),
    (WeighsAllAlike, "sample_weight"),
    (SamplesTheOtherKind, "sample: is sparse"),
    (SeedsWithTheWorstCandidate, "leaves the least inertia"),
    (SeedsWithTheFirstCandidate, "leaves the least inertia"),
    (SeedsInTheOrderOfTheRows, "is one of its candidates"),
    (SeedsWithoutWeights, "is one of its candidates"),
    (FindsTheFarthestOnlyFromTheGivenCenters, "farthest point 1"),
    (FindsTheFarthestWithoutWeights, "farthest point 0"),
    (LabelsTheFarthestWithTheLastCenter, "farthest point 0: label"),
    (with_broken("draw", draws_uniformly), "draw"),
    (with_broken("draw", draws_without_weights), "draw"),
    (with_broken("draw", ignores_the_order), "nearness in an order: draw"),
    (with_broken("draw", ignores_the_exponent), "draw is in proportion"),
    (with_broken("draw", squares_the_exponent), "draw is in proportion"),
    (with_broken("draw", draws_the_next_point), "draw"),
    (with_broken("potentials", forgets_the_present_centers), "potentials"),
    (with_broken("potentials", sums_potentials_unweighted), "potentials"),
    (with_broken("add", replaces_instead_of_adding), "sq_dist"),
    (with_broken("farthest", finds_the_last_of_the_farthest), "farthest is the first"),
    (with_broken("farthest", finds_the_farthest_without_weights), "farthest has the largest"),
    (with_broken("farthest", finds_the_nearest), "farthest has the largest"),
    (with_broken("inertia", adds_inertia_unweighted), "inertia"),
    (with_broken("inertia", has_no_inertia_without_centers), "nearness to no center: inertia"),
    (with_broken("sq_dist", gives_distances_of_the_first_points), "sq_dist"),
]

# One of each peculiarity is enough: weights with zeros, duplicates, a single center, a far origin.
REVEALING = ["one center", "odd sizes", "plane, many centers", "duplicates", "far from the origin"]
NEEDS_CENTERS = {
    TakesUtilityFromTheThirdNearest: 3,
    GivesUtilityToTheSecondNearest: 2,
    LabelsTheSecondNearest: 2,
}
# Differences smaller than float32 resolves cannot be asked of it.
TOO_FINE_FOR_FLOAT32 = {AddsInFloat32, ExpandsTheSquare}


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def complaints(kind: type[ReferenceRows], tolerance: float) -> Iterator[str]:
    """What the comparator says of these rows on the revealing cases."""
    for name in REVEALING:
        case = case_named(f"{name}, float64, dense")
        if len(case.centers) < NEEDS_CENTERS.get(kind, 1):
            continue
        rows = kind(case.points, case.sample_weight)
        try:
            compare_rows(rows, oracle_of(case), case.centers, tolerance=tolerance)
        except AssertionError as complaint:
            yield str(complaint)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-5])
@pytest.mark.parametrize(
    ("kind", "complaint"), [pytest.param(*broken, id=broken[0].__name__) for broken in BROKEN]
)
def test_broken_rows_are_found_and_the_quantity_named(kind, complaint, tolerance):
    if tolerance > 1e-12 and kind in TOO_FINE_FOR_FLOAT32:
        pytest.skip("this is within the tolerance of float32")
    assert any(complaint in said for said in complaints(kind, tolerance))


@pytest.mark.parametrize("power", [-0.1, -1.0, -3.3, -20.0, -1e3])
def test_a_power_wrong_by_a_thousandth_is_found(power):
    class SlightlyWrong(ReferenceRows):
        def sweep(self, centers, rule):
            return super().sweep(centers, Power(1.001 * rule.power))

    case = case_named("sixty-four features, float64, dense")
    with pytest.raises(AssertionError, match=f"sweep at power {power}"):
        compare_rows(
            SlightlyWrong(case.points, case.sample_weight),
            oracle_of(case),
            case.centers,
            tolerance=1e-12,
            powers=[power],
        )


def test_float32_arithmetic_passes_as_float32_only():
    case = case_named("plane, float32, dense")
    rows = ReferenceRows(case.points, case.sample_weight, precision=np.float32)
    compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-5)
    with pytest.raises(AssertionError):
        compare_rows(rows, oracle_of(case), case.centers, tolerance=1e-9)


def test_each_case_is_a_new_one_in_its_dtype_and_storage():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert ("float32" in case.name) == (case.points.dtype == np.float32)
        assert ("CSR" in case.name) == sparse.issparse(case.points)
    assert any(np.any(case.sample_weight == 0) for case in CASES if case.sample_weight is not None)
