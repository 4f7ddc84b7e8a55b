"""The compiled rows: what the comparator's cases leave out, threads and instruction sets."""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from comparator import all_that_rows_say, compare_rows, greedy_seeds
from problems import blobs, output_of
from scipy import sparse

from powermeans import _native
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.reference import ReferencePoints

RULES = [Hard(), *(Power(s) for s in (-0.1, -1.0, -3.0, -30.0, -1000.0, -1e6))]
INSTRUCTION_SETS = _native.instruction_sets()
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def clusters(n_points, n_features, n_centers, dtype):
    """Overlapping clusters, weights, and centers near points."""
    points = blobs(n_points, n_features, n_centers, scale=2.0)
    weights = np.random.default_rng(1).uniform(0, 2, n_points)
    return points.astype(dtype), weights, points[:n_centers] + 0.1


def assert_centers_are_right(points, weights, centers, rules, tolerance, n_compared=None):
    """Centers have so many digits of the largest, where others' tolerance is of the extent."""
    exact = ReferencePoints(points, weights, precision=np.longdouble)
    for rule in rules:
        found, expected = (
            rows.sweep(centers, rule).centers(centers)[:n_compared]
            for rows in (EuclideanPoints(points, weights), exact)
        )
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("shape", [(900, 1, 3), (900, 17, 33), (500, 64, 40), (300, 300, 9)])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@every_dtype
def test_centers_have_all_digits(dtype, shape, shift):
    points, weights, centers = clusters(*shape, np.float64)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_centers_are_right(
        (points + shift).astype(dtype), weights, centers + shift, RULES, tolerance
    )


@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8])
def test_a_far_outlier_takes_no_digits_from_the_bulk_in_float32(outlier):
    points = np.vstack([3 + blobs(1000, 2, 1), [[outlier, 0]]]).astype(np.float32)
    centers = np.array([[3.0, 3.0], [2.0, 4.0], [outlier, 0.0]])
    assert_centers_are_right(points, None, centers, [Hard(), Power(-3.0), Power(-30.0)], 1e-5, 2)


def test_the_ends_of_float64_are_told_apart_and_seeding_shares_its_work():
    points = np.array([[0.0], [5e-324], [1e-320], [1.1e-320]])
    labels, _ = EuclideanPoints(points).assign(np.array([[0.0], [1e-320]]))
    np.testing.assert_array_equal(labels, [0, 0, 1, 1])
    labels, _ = EuclideanPoints(np.zeros((5, 2))).assign(np.full((3, 2), np.nan))
    np.testing.assert_array_equal(labels, 0)
    rows = EuclideanPoints(np.array([[0.0], [1.0]]), np.array([1e100, 2e100]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        spread = rows.spread(np.array([[0.0], [1e120]]))
    np.testing.assert_array_equal(spread.utility, [np.inf, 0])
    np.testing.assert_allclose(spread.error, [2e100, 0])
    points = np.random.default_rng(0).normal(size=(600_000, 2))
    order, numbers = np.arange(len(points)), np.random.default_rng(0).uniform(size=(3, 2))
    seeds = []
    for n_threads in (1, 2, 3):
        rows = EuclideanPoints(points, n_threads=n_threads)
        seeds.append(greedy_seeds(rows, order, 0.3, numbers).tolist())
        assert_several_worked(rows, n_threads)
    assert seeds[0] == seeds[1] == seeds[2]
    included = [included_by(kernels) for kernels in (NATIVE / "kernels").glob("*.cpp")]
    assert set().union(*included) == {"<stdint.h>", "<immintrin.h>", "<arm_neon.h>"}
    assert "<vector>" in included_by(NATIVE / "sweep/sweep.cpp")


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e18), (np.float64, 1e150), (np.float32, 1.0)]
)
def test_centers_far_larger_than_the_points_are_told_apart(dtype, size):
    for points in ([[0.01, 0.01], [0.02, 0.01]], [[0.0, 0.0], [1e-20, 0.0]]):
        rows = EuclideanPoints(np.array(points, dtype=dtype))
        labels, inertia = rows.assign(np.array([[5.0, 5.0], [1.0, 1.0]]) * size)
        np.testing.assert_array_equal(labels, [1, 1])
        assert inertia == pytest.approx(4 * size**2, rel=0.1)


@every_dtype
@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e-10, 1.0, 1e10, 1e18, 1e150])
def test_a_point_of_any_size_gets_alone_the_label_that_it_gets_among_others(
    size, n_features, dtype
):
    if dtype == np.float32 and abs(np.log10(size)) > 30:
        pytest.skip("float32 has no such numbers")
    points, _, centers = clusters(60, n_features, 5, dtype)
    expected, _ = EuclideanPoints(points).assign(centers)
    points, centers = (points * dtype(size)).astype(dtype), centers * size
    labels, _ = EuclideanPoints(points).assign(centers)
    alone = [EuclideanPoints(points[i : i + 1]).assign(centers)[0][0] for i in range(len(points))]
    np.testing.assert_array_equal(labels, alone)
    np.testing.assert_array_equal(labels, expected)


@every_dtype
@pytest.mark.parametrize("power", [-1e30, -1e39, -1e300])
def test_a_power_beyond_the_range_of_the_points_takes_lloyds_step(dtype, power):
    points, weights, centers = clusters(500, 3, 4, dtype)
    rows, rtol = EuclideanPoints(points, weights), 1e-5 if dtype == np.float32 else 1e-12
    soft, hard = (rows.sweep(centers, rule).centers(centers) for rule in (Power(power), Hard()))
    np.testing.assert_allclose(soft, hard, rtol=rtol)


def all_bytes(rows, centers):
    said = all_that_rows_say(rows, centers, RULES)
    return b"".join(np.ascontiguousarray(one).tobytes() for one in said)


def assert_several_worked(rows, n_threads):
    """Those that wake when all is done have nothing to do."""
    stripes = rows.team.stripes_by_worker
    assert len(stripes) == n_threads
    assert np.count_nonzero(stripes) >= min(2, n_threads)


@every_dtype
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_features", [3, 50])
def test_any_number_of_threads_gives_the_same_bytes(dtype, kind, n_features):
    points, weights, centers = clusters(40_000, n_features, 40, dtype)
    if kind == "sparse":
        points = sparse.csr_matrix(np.where(points > 1, points, 0))
    found = {}
    for n_threads in (1, 2, 3, 8):
        rows = EuclideanPoints(points, weights, n_threads=n_threads)
        found[n_threads] = all_bytes(rows, centers)
        rows.sweep(centers, Power(-3.0))
        assert_several_worked(rows, n_threads)
    assert len(set(found.values())) == 1
    # The comparison could otherwise compare nothing.
    assert all_bytes(rows, 1.001 * centers) != found[1]


def test_many_python_threads_may_use_the_core_and_the_same_rows_at_once():
    points = np.random.default_rng(0).normal(size=(3000, 5))
    shared = EuclideanPoints(points, n_threads=2)
    centers = points[:12].copy()
    alone = shared.sweep(centers, Power(-3.0)), shared.assign(centers)[0]

    def work(number: int) -> bool:
        own = EuclideanPoints(points, n_threads=1 + number % 3)
        same = True
        for rows in (shared, own) * 5:
            sums, labels = rows.sweep(centers, Power(-3.0)), rows.assign(centers)[0]
            same &= sums.points.tobytes() == alone[0].points.tobytes()
            same &= labels.tobytes() == alone[1].tobytes()
        return same

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(48)))


LONG_SEEDING = """
import signal, time
import numpy as np
from powermeans.points.compiled import EuclideanPoints
sampler = EuclideanPoints(np.random.default_rng(0).normal(size=(100_000, 16))).sampler
numbers = np.random.default_rng(0).uniform(size=(50_000, 8))
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
begin = time.monotonic()
try:
    sampler.greedy_seeds(np.arange(100_000), 0.3, numbers)
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - begin < 30 else "late")
"""
# Threads do not survive a fork; the child starts its own, and neither process hangs.
FORK = """
import os, sys, warnings
import numpy as np
from powermeans.points.compiled import EuclideanPoints
from powermeans.mathematics.rules import Hard
points = np.random.default_rng(0).normal(size=(50_000, 3))
rows = EuclideanPoints(points, n_threads=4)
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
print("the same" if os.waitstatus_to_exitcode(status) == 0 else "another")
"""


@pytest.mark.parametrize(("program", "says"), [(LONG_SEEDING, "interrupted"), (FORK, "the same")])
def test_an_alarm_interrupts_a_long_seeding_and_rows_work_on_after_a_fork(program, says):
    assert output_of(program).strip() == says


DIGEST_PROGRAM = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from powermeans import _native
from test_native_rows import all_bytes, clusters
from powermeans.points.compiled import EuclideanPoints
from scipy import sparse
import numpy as np
digest = hashlib.sha256()
for dtype in (np.float32, np.float64):
    for shape in [(3000, 2, 7), (2000, 17, 33), (2000, 64, 100), (500, 300, 5)]:
        points, weights, centers = clusters(*shape, dtype)
        digest.update(all_bytes(EuclideanPoints(points, weights), centers))
        sparse_points = sparse.csr_matrix(np.where(points > 1, points, 0))
        digest.update(all_bytes(EuclideanPoints(sparse_points, weights), centers))
print(_native.instruction_set(), digest.hexdigest())
"""
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
ACCURACY_PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:]
import numpy as np
import test_native_rows as tests
from comparator import varied_cases
from powermeans import _native
for dtype in (np.float32, np.float64):
    tests.test_own_exponential_and_logarithm_are_right_to_two_ulps(dtype)
    for shape in [(900, 2, 7), (900, 17, 33), (300, 300, 9)]:
        tests.test_centers_have_all_digits(dtype, shape, 0.0)
for case in varied_cases()[::5]:
    tests.compare_with_long_double(case)
print(_native.instruction_set())
"""


def compare_with_long_double(case):
    rows = EuclideanPoints(case.points, case.sample_weight)
    oracle = ReferencePoints(case.points, case.sample_weight, precision=np.longdouble)
    compare_rows(rows, oracle, case.centers, tolerance=case.tolerance)


def run_with(instruction_set, program):
    """The words that a program prints in a process of its own, forced to use these kernels."""
    folders = Path(__file__).parents[:2]
    return output_of(program, *folders, POWERMEANS_ISA=instruction_set).split()


# What the baseline cannot fuse it rounds otherwise, but for moves of single points.
@pytest.mark.parametrize(
    ("program", "sets"),
    [(DIGEST_PROGRAM, ["avx2", "avx512"]), (MOVES_PROGRAM, INSTRUCTION_SETS)],
    ids=["all", "moves"],
)
def test_instruction_sets_agree_to_the_last_bit(program, sets):
    if not {*sets} <= {*INSTRUCTION_SETS}:
        pytest.skip(f"this machine has only {INSTRUCTION_SETS}")
    outputs = [run_with(name, program) for name in sets]
    assert [name for name, _ in outputs] == sets
    assert len({digest for _, digest in outputs}) == 1


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_each_instruction_set_is_accurate_in_its_own_process(instruction_set):
    assert run_with(instruction_set, ACCURACY_PROGRAM) == [instruction_set]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("POWERMEANS_ISA", "avx1024", "POWERMEANS_ISA=avx1024 cannot be had here.*baseline"),
        ("POWERMEANS_SHORTCUTS", "no", "POWERMEANS_SHORTCUTS=no must be 0 or 1"),
    ],
)
def test_an_unknown_value_of_a_variable_is_an_error_that_names_the_choices(variable, value, says):
    with pytest.raises(AssertionError, match=says):
        output_of("import powermeans._native", **{variable: value})


@pytest.mark.parametrize(("value", "taken"), [("0", False), ("1", True)])
def test_shortcuts_are_switched_by_the_environment(value, taken):
    program = "from powermeans import _native; print(_native.takes_shortcuts())"
    assert output_of(program, POWERMEANS_SHORTCUTS=value).split() == [str(taken)]


def ulps(found, exact, dtype):
    exact_here = exact.astype(dtype)
    return np.max(np.abs(found - exact) / np.spacing(np.abs(exact_here)))


@every_dtype
def test_own_exponential_and_logarithm_are_right_to_two_ulps(dtype):
    rng = np.random.default_rng(0)
    lowest = -86.0 if dtype == np.float32 else -707.0
    x = np.concatenate([rng.uniform(lowest, 0, 50_000), -np.geomspace(1e-12, 1, 5000)])
    x, found = x.astype(dtype), np.empty(55_000, dtype=dtype)
    _native.exp(x, found)
    assert ulps(found, np.exp(x.astype(np.longdouble)), dtype) < 2
    x = np.concatenate([rng.uniform(0.01, 2, 50_000), 1 - np.geomspace(1e-6, 0.5, 5000)])
    x = np.concatenate([x, np.geomspace(1e-37, 1e37, 5000)]).astype(dtype)
    x = x[x != 1]
    found = np.empty_like(x)
    _native.log(x, found)
    assert ulps(found, np.log(x.astype(np.longdouble)), dtype) < 2
    x, found = np.array([-1e4, -1e30, -np.inf], dtype=dtype), np.ones(3, dtype=dtype)
    _native.exp(x, found)  # would be subnormal
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("power", [-0.3, -1.5, -3.3, -7.9, -40.5])
@pytest.mark.parametrize("n_features", [1, 20])
@every_dtype
def test_weights_of_any_power_are_right_to_the_rounding_of_their_logarithms(
    power, n_features, dtype
):
    rng = np.random.default_rng(0)
    farthest = 1e-25 ** (0.5 / (power - 1))  # its weight is 1e-25
    distances = np.concatenate([[1.0], np.exp(rng.uniform(0.1, np.log(min(farthest, 1e3)), 200))])
    distances = distances.astype(np.float16).astype(float)  # the squares of which are exact
    centers = np.zeros((len(distances), n_features))
    centers[:, 0] = distances
    rows = EuclideanPoints(np.zeros((1, n_features), dtype))
    weights = np.asarray(rows.sweep(centers, Power(power)).weights, np.longdouble)
    log_weights = np.longdouble(2 * (power - 1)) * np.log(distances.astype(np.longdouble))
    errors = np.abs(weights / weights[0] / np.exp(log_weights) - 1)
    assert np.all(errors <= np.finfo(dtype).eps * (5 - power + 1.5 * np.abs(log_weights)))


NATIVE = Path(__file__).parents[2] / "native"


def included_by(path):
    """Return the system headers that a file includes, also through headers of the core."""
    names = re.findall(r"^#include ([<\"].*?)[>\"]", path.read_text(), flags=re.M)
    ours = [NATIVE / name[1:] for name in names if name.startswith('"')]
    theirs = {f"{name}>" for name in names if name.startswith("<")}
    return theirs.union(*(included_by(path) for path in ours))


def broken_csr():
    points = sparse.csr_matrix(np.eye(4))
    points.indices[1] = 9
    return points


ROWS = EuclideanPoints(np.zeros((5, 3)))
WITHOUT_WEIGHT = EuclideanPoints(np.ones((3, 2)), np.zeros(3))


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (ValueError, "as many columns", lambda: ROWS.sweep(np.zeros((2, 4)), Hard())),
        (TypeError, None, lambda: ROWS.sweep(np.zeros((2, 3), dtype=np.float32), Hard())),
        (ValueError, "at least one point", lambda: EuclideanPoints(np.empty((0, 2)))),
        (ValueError, "and one feature", lambda: EuclideanPoints(np.empty((5, 0)))),
        (ValueError, "column index", lambda: EuclideanPoints(broken_csr())),
        (ValueError, "a weight", lambda: WITHOUT_WEIGHT.nearness(np.empty((0, 2))).draw([0.5])),
    ],
)
def test_the_binding_refuses_what_it_could_not_read(error, says, call):
    with pytest.raises(error, match=says):
        call()
