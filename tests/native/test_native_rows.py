"""The compiled rows against the reference: accuracy, extremes, threads and instruction sets."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from comparator import greedy_seeds
from scipy import sparse

from powermeans import _native
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.compiled import EuclideanRows
from powermeans.points.reference import ReferenceRows

RULES = [Hard(), *(Power(s) for s in (-0.1, -1.0, -3.0, -30.0, -1000.0, -1e6))]
SHAPES = [(2000, 1, 3), (2000, 2, 7), (3000, 16, 20), (2000, 17, 33), (3000, 64, 40), (800, 300, 9)]
INSTRUCTION_SETS = _native.instruction_sets()


def clusters(n_points, n_features, n_centers, dtype, *, shift=0.0, seed=0):
    """Overlapping clusters, weights, and centers near points, all shifted."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_centers, n_features)) * 2
    points = means[rng.integers(0, n_centers, n_points)] + rng.normal(size=(n_points, n_features))
    weights = rng.uniform(0, 2, n_points)
    centers = means + rng.normal(size=means.shape) * 0.1
    return (points + shift).astype(dtype), weights, centers + shift


def relative_error(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_one_step_agrees_with_extended_precision(dtype, tolerance, shape, shift, rule):
    points, weights, centers = clusters(*shape, dtype, shift=shift)
    swept = EuclideanRows(points, weights).sweep(centers, rule)
    expected = ReferenceRows(points, weights, precision=np.longdouble).sweep(centers, rule)
    error = relative_error(swept.centers(centers), expected.centers(centers))
    assert error < tolerance
    assert swept.objective == pytest.approx(expected.objective, rel=tolerance)
    assert swept.inertia == pytest.approx(expected.inertia, rel=tolerance)


@pytest.mark.parametrize(
    ("dtype", "magnitude"),
    [(np.float64, 1e150), (np.float64, 1e-150), (np.float32, 1e18), (np.float32, 1e-18)],
)
@pytest.mark.parametrize("n_features", [2, 40])
def test_extreme_magnitudes_keep_their_labels(dtype, magnitude, n_features):
    points, _, centers = clusters(500, n_features, 5, dtype)
    extreme = (points * dtype(magnitude)).astype(dtype)
    rows = EuclideanRows(extreme)
    labels, _ = rows.assign(centers * magnitude)
    np.testing.assert_array_equal(labels, EuclideanRows(points).assign(centers)[0])
    moved = rows.sweep(centers * magnitude, Power(-3.0)).centers(centers) / magnitude
    expected = ReferenceRows(points).sweep(centers, Power(-3.0)).centers(centers)
    assert relative_error(moved, expected) < (1e-12 if dtype == np.float64 else 1e-5)


def test_subnormal_differences_are_told_apart():
    points = np.array([[0.0], [5e-324], [1e-320], [1.1e-320]])
    labels, _ = EuclideanRows(points).assign(np.array([[0.0], [1e-320]]))
    np.testing.assert_array_equal(labels, [0, 0, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tight_clusters_far_from_the_mean_survive_cancellation(dtype):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(20, 60)) * 100
    labels = rng.integers(0, 20, 2000)
    points = (means[labels] + rng.normal(size=(2000, 60)) * 1e-3).astype(dtype)
    found, inertia = EuclideanRows(points).assign(means)
    np.testing.assert_array_equal(found, labels)
    expected = ReferenceRows(points, precision=np.longdouble).assign(means)[1]
    assert inertia == pytest.approx(expected, rel=1e-3 if dtype == np.float32 else 1e-9)


def test_a_point_on_its_center_does_not_drown_the_others_in_float32():
    """At a small |s| and many centers its weight is 1e30 times that of the rest."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1000, 2)).astype(np.float32)
    centers = points[:300].astype(np.float64)
    for power in (-0.1, -0.05):
        swept = EuclideanRows(points).sweep(centers, Power(power))
        expected = ReferenceRows(points, precision=np.longdouble).sweep(centers, Power(power))
        assert relative_error(swept.centers(centers), expected.centers(centers)) < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("size", [1e-30, 1e-10, 1.0, 1e10, 1e18])
def test_a_point_alone_gets_the_label_that_it_gets_among_others(size, n_features, dtype):
    points, _, centers = clusters(60, n_features, 5, dtype)
    points, centers = (points * dtype(size)).astype(dtype), centers * size
    labels, _ = EuclideanRows(points).assign(centers)
    alone = [EuclideanRows(points[i : i + 1]).assign(centers)[0][0] for i in range(len(points))]
    np.testing.assert_array_equal(labels, alone)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e18), (np.float64, 1e150), (np.float32, 1.0)]
)
def test_centers_far_larger_than_the_points_are_told_apart(dtype, size):
    centers = np.array([[5.0, 5.0], [1.0, 1.0]]) * size
    for points in ([[0.01, 0.01], [0.02, 0.01]], [[0.0, 0.0], [1e-20, 0.0]]):
        rows = EuclideanRows(np.array(points, dtype=dtype))
        labels, inertia = rows.assign(centers)
        np.testing.assert_array_equal(labels, [1, 1])
        assert inertia == pytest.approx(4 * size**2, rel=1e-1)
        if size < 1e100:  # nearness keeps squares in the unit of the points, here 1e-150 of it
            nearness = rows.nearness(centers[:1])
            assert nearness.sq_dist(np.array([0])) == pytest.approx(50 * size**2, rel=0.1)


@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8])
def test_a_far_outlier_takes_no_digits_from_the_bulk_in_float32(outlier):
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(3, 1, (1000, 2)), [[outlier, 0]]]).astype(np.float32)
    centers = np.array([[3.0, 3.0], [2.0, 4.0], [outlier, 0.0]])
    for rule in (Hard(), Power(-3.0), Power(-30.0)):
        swept = EuclideanRows(points).sweep(centers, rule).centers(centers)[:2]
        expected = ReferenceRows(points, precision=np.longdouble).sweep(centers, rule)
        assert relative_error(swept, expected.centers(centers)[:2]) < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-1e30, -1e39, -1e300])
def test_a_power_beyond_the_range_of_the_points_takes_lloyds_step(dtype, power):
    points, weights, centers = clusters(500, 3, 4, dtype)
    rows = EuclideanRows(points, weights)
    np.testing.assert_allclose(
        rows.sweep(centers, Power(power)).centers(centers),
        rows.sweep(centers, Hard()).centers(centers),
        rtol=1e-5 if dtype == np.float32 else 1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_of_tiny_weight_still_have_a_center(dtype):
    points, _, centers = clusters(600, 2, 3, dtype)
    labels, _ = EuclideanRows(points).assign(centers)
    weights = np.where(labels == 0, 1e-60, 1.0)
    for rule in (Hard(), Power(-40.0)):
        swept = EuclideanRows(points, weights).sweep(centers, rule).centers(centers)
        expected = ReferenceRows(points, weights).sweep(centers, rule).centers(centers)
        assert relative_error(swept, expected) < 1e-5


def test_distances_that_are_not_numbers_end_in_a_label():
    rows = EuclideanRows(np.zeros((5, 2)))
    labels, _ = rows.assign(np.full((3, 2), np.nan))
    np.testing.assert_array_equal(labels, 0)


def test_a_center_worth_more_than_can_be_told_is_worth_infinitely_much():
    rows = EuclideanRows(np.array([[0.0], [1.0]]), np.array([1e100, 2e100]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        spread = rows.spread(np.array([[0.0], [1e120]]))
    np.testing.assert_array_equal(spread.utility, [np.inf, 0])
    np.testing.assert_allclose(spread.error, [2e100, 0])


@pytest.mark.parametrize("shape", [(0, 2), (5, 0)])
def test_points_without_rows_or_columns_are_refused(shape):
    with pytest.raises(ValueError, match="at least one point and one feature"):
        EuclideanRows(np.empty(shape))


# ---- Threads ------------------------------------------------------------------------------------


def all_bytes(rows, centers):
    """Everything that the rows compute at these centers, as bytes."""
    parts = []
    for rule in RULES:
        sums = rows.sweep(centers, rule)
        parts += [sums.points, sums.weights, np.array([sums.objective, sums.inertia])]
    spread = rows.spread(centers)
    labels, inertia = rows.assign(centers)
    nearness = rows.nearness(centers[:2], np.arange(rows.n_points)[::-1].copy())
    draws = nearness.draw(np.linspace(0, 0.999, 50))
    potentials = nearness.potentials(draws)
    parts += [spread.error, spread.utility, labels, np.array(inertia), draws, potentials]
    parts += [rows.sq_distances(centers), np.array(nearness.farthest())]
    numbers = np.random.default_rng(0).uniform(size=(30, 9))
    parts += [greedy_seeds(rows, np.arange(rows.n_points)[::-1].copy(), 0.3, numbers)]
    return b"".join(part.tobytes() for part in parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_features", [3, 50])
def test_any_number_of_threads_gives_the_same_bytes(dtype, kind, n_features):
    points, weights, centers = clusters(40_000, n_features, 40, dtype)
    if kind == "sparse":
        points = sparse.csr_matrix(np.where(points > 1, points, 0))
    found = {}
    for n_threads in (1, 2, 3, 8):
        rows = EuclideanRows(points, weights, n_threads=n_threads)
        found[n_threads] = all_bytes(rows, centers)
        rows.sweep(centers, Power(-3.0))
        stripes = rows.team.stripes_by_worker
        assert len(stripes) == n_threads
        assert all(n > 0 for n in stripes), "some thread had nothing to do"
    assert len(set(found.values())) == 1


def test_a_tiny_sweep_starts_no_threads():
    rows = EuclideanRows(np.random.default_rng(0).normal(size=(200, 3)), n_threads=8)
    rows.sweep(np.zeros((3, 3)), Hard())
    assert len(rows.team.stripes_by_worker) == 1


def test_seeding_shares_its_work_among_threads():
    points = np.random.default_rng(0).normal(size=(600_000, 2))
    order, numbers = np.arange(len(points)), np.random.default_rng(0).uniform(size=(3, 2))
    seeds = {}
    for n_threads in (1, 2, 3):
        rows = EuclideanRows(points, n_threads=n_threads)
        seeds[n_threads] = greedy_seeds(rows, order, 0.3, numbers).tolist()
        stripes = rows.team.stripes_by_worker
        assert len(stripes) == n_threads
        assert all(n > 0 for n in stripes), "some thread had nothing to do"
    assert seeds[1] == seeds[2] == seeds[3]


def test_an_alarm_interrupts_a_long_seeding():
    program = """
import signal, time
import numpy as np
from powermeans.points.compiled import EuclideanRows
sampler = EuclideanRows(np.random.default_rng(0).normal(size=(100_000, 16))).sampler
numbers = np.random.default_rng(0).uniform(size=(50_000, 8))
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
begin = time.monotonic()
try:
    sampler.greedy_seeds(np.arange(100_000), 0.3, numbers)
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - begin < 30 else "late")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.stdout.split() == ["interrupted"], result.stderr


def test_rows_work_on_after_a_fork():
    """Threads do not survive a fork; the child starts its own, and neither process hangs."""
    program = """
import os, sys, warnings
import numpy as np
from powermeans.points.compiled import EuclideanRows
from powermeans.mathematics.rules import Hard
points = np.random.default_rng(0).normal(size=(50_000, 3))
rows = EuclideanRows(points, n_threads=4)
before = rows.sweep(points[:40].copy(), Hard()).points
assert len(rows.team.stripes_by_worker) == 4
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    after = rows.sweep(points[:40].copy(), Hard()).points
    several = len(rows.team.stripes_by_worker) == 4
    del rows
    os._exit(0 if several and np.array_equal(before, after) else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


# ---- Instruction sets ---------------------------------------------------------------------------

DIGEST_PROGRAM = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from powermeans import _native
from test_native_rows import all_bytes, clusters
from powermeans.points.compiled import EuclideanRows
from scipy import sparse
import numpy as np
digest = hashlib.sha256()
for dtype in (np.float32, np.float64):
    for shape in [(3000, 2, 7), (2000, 17, 33), (2000, 64, 100), (500, 300, 5)]:
        points, weights, centers = clusters(*shape, dtype)
        digest.update(all_bytes(EuclideanRows(points, weights), centers))
        sparse_points = sparse.csr_matrix(np.where(points > 1, points, 0))
        digest.update(all_bytes(EuclideanRows(sparse_points, weights), centers))
print(_native.instruction_set(), digest.hexdigest())
"""


def run_in(environment, program):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, Path(__file__).parents[:2])],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_with(instruction_set, program):
    """The words that a program prints in a process of its own, forced to use these kernels."""
    result = run_in({"POWERMEANS_ISA": instruction_set}, program)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_avx2_and_avx512_agree_to_the_last_bit():
    wanted = [name for name in ("avx2", "avx512") if name in INSTRUCTION_SETS]
    if len(wanted) < 2:
        pytest.skip(f"this machine has only {INSTRUCTION_SETS}")
    outputs = [run_with(name, DIGEST_PROGRAM) for name in wanted]
    assert [name for name, _ in outputs] == wanted
    assert outputs[0][1] == outputs[1][1]


MOVES_PROGRAM = """
import hashlib
import numpy as np
from scipy import sparse
from powermeans import _native
from powermeans.divergences import Binomial, Cosine, Gamma, InverseGaussian
from powermeans.divergences import Poisson, SquaredEuclidean
from powermeans.points.opening import open_rows
digest = hashlib.sha256()
for shape in [(900, 2), (600, 17), (300, 64)]:
    points = np.random.default_rng(0).integers(1, 30, size=shape).astype(float)
    ratios = Gamma(2.0), InverseGaussian()
    for divergence in (Poisson(), *ratios, Binomial(40), Cosine(), SquaredEuclidean()):
        for kind in (np.asarray, sparse.csr_array):
            rows = open_rows(kind(points), divergence=divergence)
            moved = rows.moves.move_points(points[:8].copy(), 3)
            assert moved.n_moves > 0, (shape, divergence)
            digest.update(np.ascontiguousarray(moved.centers).tobytes())
print(_native.instruction_set(), digest.hexdigest())
"""


def test_moves_of_single_points_have_the_same_bits_with_every_instruction_set():
    outputs = [run_with(name, MOVES_PROGRAM) for name in INSTRUCTION_SETS]
    assert [name for name, _ in outputs] == INSTRUCTION_SETS
    assert len({digest for _, digest in outputs}) == 1


ACCURACY_PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:]
from powermeans import _native
import test_native_rows as tests
import numpy as np
for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
    for shape in tests.SHAPES:
        for rule in tests.RULES:
            tests.test_one_step_agrees_with_extended_precision(dtype, tolerance, shape, 0.0, rule)
    tests.test_own_exponential_and_logarithm_are_right_to_two_ulps(dtype)
print(_native.instruction_set())
"""


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_each_instruction_set_is_accurate_in_its_own_process(instruction_set):
    assert run_with(instruction_set, ACCURACY_PROGRAM) == [instruction_set]


def test_an_unknown_instruction_set_is_an_error_that_names_the_choices():
    result = run_in({"POWERMEANS_ISA": "avx1024"}, "import powermeans._native")
    assert result.returncode != 0
    assert "POWERMEANS_ISA=avx1024 cannot be had here" in result.stderr
    assert "baseline" in result.stderr


# ---- Shortcuts ----------------------------------------------------------------------------------


@pytest.fixture
def all_distances():
    _native.take_shortcuts(False)
    yield
    _native.take_shortcuts(True)


@pytest.mark.parametrize("shape", [(20_000, 2, 50), (20_000, 20, 30)])
def test_without_shortcuts_every_point_meets_every_center(shape, all_distances):
    points, weights, centers = clusters(*shape, np.float64)
    rows = EuclideanRows(points, weights)
    swept = [rows.sweep(centers, Hard()) for _ in range(2)]
    assert [sums.n_skipped for sums in swept] == [0, 0]
    _native.take_shortcuts(True)
    for _ in range(3):
        shorter = rows.sweep(centers, Hard())
        np.testing.assert_allclose(shorter.points, swept[0].points, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(shorter.inertia, swept[0].inertia, rtol=1e-12)
    assert shorter.n_skipped > 0


@pytest.mark.parametrize(("value", "taken"), [("0", False), ("1", True)])
def test_shortcuts_are_switched_by_the_environment(value, taken):
    program = "from powermeans import _native; print(_native.takes_shortcuts())"
    assert run_in({"POWERMEANS_SHORTCUTS": value}, program).stdout.split() == [str(taken)]


def test_shortcuts_are_switched_by_nothing_else_than_0_and_1():
    result = run_in({"POWERMEANS_SHORTCUTS": "no"}, "import powermeans._native")
    assert result.returncode != 0
    assert "POWERMEANS_SHORTCUTS=no must be 0 or 1" in result.stderr


def ulps(found, exact, dtype):
    exact_here = exact.astype(dtype)
    return np.max(np.abs(found - exact) / np.spacing(np.abs(exact_here)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_own_exponential_and_logarithm_are_right_to_two_ulps(dtype):
    rng = np.random.default_rng(0)
    lowest = -86.0 if dtype == np.float32 else -707.0
    x = np.concatenate([rng.uniform(lowest, 0, 50_000), -np.geomspace(1e-12, 1, 5000)]).astype(
        dtype
    )
    found = np.empty_like(x)
    _native.exp(x, found)
    assert ulps(found, np.exp(x.astype(np.longdouble)), dtype) < 2
    x = np.concatenate([rng.uniform(0.01, 2, 50_000), 1 - np.geomspace(1e-6, 0.5, 5000)])
    x = np.concatenate([x, np.geomspace(1e-37, 1e37, 5000)]).astype(dtype)
    x = x[x != 1]
    found = np.empty_like(x)
    _native.log(x, found)
    assert ulps(found, np.log(x.astype(np.longdouble)), dtype) < 2


@pytest.mark.parametrize("power", [-0.3, -1.5, -3.3, -7.9, -40.5])
@pytest.mark.parametrize("n_features", [1, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_any_power_are_right_to_the_rounding_of_their_logarithms(
    power, n_features, dtype
):
    rng = np.random.default_rng(0)
    farthest = 1e-25 ** (0.5 / (power - 1))  # its weight is 1e-25
    distances = np.concatenate([[1.0], np.exp(rng.uniform(0.1, np.log(min(farthest, 1e3)), 200))])
    distances = distances.astype(np.float16).astype(float)  # the squares of which are exact
    centers = np.zeros((len(distances), n_features))
    centers[:, 0] = distances
    rows = EuclideanRows(np.zeros((1, n_features), dtype))
    weights = np.asarray(rows.sweep(centers, Power(power)).weights, np.longdouble)
    log_weights = np.longdouble(2 * (power - 1)) * np.log(distances.astype(np.longdouble))
    errors = np.abs(weights / weights[0] / np.exp(log_weights) - 1)
    assert np.all(errors <= np.finfo(dtype).eps * (5 - power + 1.5 * np.abs(log_weights)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_vanishes_where_it_would_be_subnormal(dtype):
    x = np.array([-1e4, -1e30, -np.inf], dtype=dtype)
    found = np.empty_like(x)
    _native.exp(x, found)
    np.testing.assert_array_equal(found, 0)


NATIVE = Path(__file__).parents[2] / "native"
# The folders of the core, from below; `dispatch` lies beside them.
FLOORS = ["kernels", "threads", "dispatch", "points", "sweep"]
FLOORS += ["line", "seeds", "moves", "transport", "python"]


def includes_of(path):
    return re.findall(r"^#include ([<\"].*?)[>\"]", path.read_text(), flags=re.M)


def included_by(path):
    """Return the system headers that a file includes, also through headers of the core."""
    names = includes_of(path)
    ours = [NATIVE / name[1:] for name in names if name.startswith('"')]
    theirs = {f"{name}>" for name in names if name.startswith("<")}
    return theirs.union(*(included_by(path) for path in ours))


def floor_of(name):
    return FLOORS.index(name.partition("/")[0].partition(".")[0])


def test_kernels_include_no_header_that_defines_functions_to_be_shared():
    """An inline function compiled for one set could be linked into the path of another."""
    included = [included_by(kernels) for kernels in (NATIVE / "kernels").glob("*.cpp")]
    assert set().union(*included) == {"<stdint.h>", "<immintrin.h>", "<arm_neon.h>"}
    assert "<vector>" in included_by(NATIVE / "sweep/sweep.cpp")


def test_no_include_of_the_core_runs_up():
    files = [path for path in NATIVE.rglob("*.?pp") if path.parent.name != "tests"]
    pairs = [
        (path.relative_to(NATIVE).as_posix(), name[1:])
        for path in files
        for name in includes_of(path)
        if name.startswith('"')
    ]
    assert len(pairs) > 100
    assert [pair for pair in pairs if floor_of(pair[0]) < floor_of(pair[1])] == []


# ---- The binding --------------------------------------------------------------------------------


def test_centers_of_the_wrong_width_are_refused():
    rows = EuclideanRows(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="as many columns"):
        rows.sweep(np.zeros((2, 4)), Hard())
    with pytest.raises(TypeError):
        rows.sweep(np.zeros((2, 3), dtype=np.float32), Hard())


def test_an_invalid_sparse_matrix_is_refused():
    points = sparse.csr_matrix(np.eye(4))
    points.indices[1] = 9
    with pytest.raises(ValueError, match="column index"):
        EuclideanRows(points)


def test_hashes_differ_when_the_bytes_do():
    """The comparison of bytes above could otherwise compare nothing."""
    points, weights, centers = clusters(300, 3, 4, np.float64)
    plain = hashlib.sha256(all_bytes(EuclideanRows(points, weights), centers)).digest()
    nudged = np.nextafter(centers, np.inf)
    assert hashlib.sha256(all_bytes(EuclideanRows(points, weights), nudged)).digest() != plain


def test_many_python_threads_may_use_the_core_and_the_same_rows_at_once():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 5))
    shared = EuclideanRows(points, n_threads=2)
    centers = points[:12].copy()
    alone = shared.sweep(centers, Power(-3.0)), shared.assign(centers)[0]

    def work(number: int) -> bool:
        own = EuclideanRows(points, n_threads=1 + number % 3)
        same = True
        for rows in (shared, own) * 5:
            sums, labels = rows.sweep(centers, Power(-3.0)), rows.assign(centers)[0]
            same &= sums.points.tobytes() == alone[0].points.tobytes()
            same &= labels.tobytes() == alone[1].tobytes()
        return same

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(48)))


def test_nothing_is_drawn_where_no_point_has_a_weight():
    rows = EuclideanRows(np.ones((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="no point has a weight"):
        rows.nearness(np.empty((0, 2))).draw(np.array([0.5]))
