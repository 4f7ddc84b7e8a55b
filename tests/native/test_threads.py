import os
import sys

import numpy as np
import pytest
import threadpoolctl
from problems import output_of

from powermeans import PowerKMeans
from powermeans.points.compiled import EuclideanPoints
from powermeans.system.threads import blas_on_one_thread, effective_n_threads, usable_processors


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    monkeypatch.delenv("POWERMEANS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def threads_of_a_fit(n_threads=None):
    return EuclideanPoints(np.zeros((3, 2)), n_threads=n_threads).team.n_threads


def test_the_argument_comes_before_limits_and_these_before_variables(monkeypatch):
    assert threads_of_a_fit() == usable_processors()
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert threads_of_a_fit() == 4
    monkeypatch.setenv("POWERMEANS_NUM_THREADS", "5")
    assert threads_of_a_fit() == 5
    with threadpoolctl.threadpool_limits(1):
        assert threads_of_a_fit() == 1
    with threadpoolctl.threadpool_limits(3, user_api="openmp"):
        assert threads_of_a_fit() == 3
        assert threads_of_a_fit(7) == 7
    assert threads_of_a_fit() == 5
    assert effective_n_threads(-1) == usable_processors()
    assert effective_n_threads(-1000) == 1


@pytest.mark.parametrize("value", ["", "none", " "])
def test_no_error_is_made_within_that_could_lose_a_ctrl_c(monkeypatch, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    usable_processors()  # looks for a control group once
    errors = []

    def follow(frame, event, argument):
        if event == "exception" and issubclass(argument[0], ValueError):
            errors.append(argument[1])
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        effective_n_threads(None)
    finally:
        sys.settrace(before)
    assert not errors


@pytest.mark.parametrize("n_threads", [0, 2.5, "two", True, 4097, 2**40])
def test_nonsense_and_absurdly_many_threads_are_refused(n_threads):
    with pytest.raises(ValueError, match=f"n_threads={n_threads!r} (must be|is more than 4096)"):
        effective_n_threads(n_threads)


NONSENSE = ["0", "abc", "-1", "2.5", "\u00b2", "9" * 5000]


@pytest.mark.parametrize("value", [*NONSENSE, "4097"])
def test_nonsense_in_our_variable_is_refused_by_name(monkeypatch, value):
    monkeypatch.setenv("POWERMEANS_NUM_THREADS", value)
    with pytest.raises(ValueError, match=f"POWERMEANS_NUM_THREADS='{value}'"):
        threads_of_a_fit()


@pytest.mark.parametrize("value", [*NONSENSE, ",2"])
def test_nonsense_in_the_variable_of_openmp_counts_as_not_set(monkeypatch, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads_of_a_fit() == usable_processors()


FIT_OF_ANOTHER_LIBRARY = """
import powermeans
import numpy as np, threadpoolctl
from sklearn.cluster import KMeans

pools = threadpoolctl.threadpool_info()
ours, = [pool for pool in pools if pool["internal_api"] == "powermeans"]
assert ours["num_threads"] == powermeans.system.threads.usable_processors()
KMeans(2, n_init=1).fit(np.eye(4))
"""


def test_nonsense_in_variables_breaks_no_other_library():
    output_of(FIT_OF_ANOTHER_LIBRARY, OMP_NUM_THREADS="0", POWERMEANS_NUM_THREADS="abc")


def threads_of_blas():
    pools = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


LIBRARY_LOADED_LATER = """
import threadpoolctl
from powermeans.system.threads import blas_on_one_thread

def threads():
    return [p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]

with blas_on_one_thread():
    n_before = len(threads())
import scipy.linalg
with threadpoolctl.threadpool_limits(2, user_api="blas"), blas_on_one_thread():
    print(n_before, *threads())
"""


def test_blas_has_one_thread_until_all_are_done_also_if_it_is_loaded_later():
    n_before, *threads = map(int, output_of(LIBRARY_LOADED_LATER).split())
    if len(threads) == n_before:
        pytest.skip("SciPy brings no BLAS of its own here")
    assert set(threads) == {1}
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        if 2 not in before:
            pytest.skip("BLAS cannot have two threads here")
        first, second = blas_on_one_thread(), blas_on_one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads_of_blas()) == {1}
        second.__exit__(None, None, None)
        assert threads_of_blas() == before


def threads_during_a_fit(n_points, **params):
    """The most threads of this process while it fits, beyond those it had before."""
    before, seen = len(os.listdir("/proc/self/task")), []
    model = PowerKMeans(8, random_state=0, n_threads=4, **params)
    model.callback = lambda state: seen.append(len(os.listdir("/proc/self/task")))
    model.fit(np.random.default_rng(0).normal(size=(n_points, 4)))
    return max(seen) - before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux does")
def test_a_small_fit_starts_no_threads_and_a_large_one_does():
    assert threads_during_a_fit(2000, effort="fast") == 0
    assert threads_during_a_fit(100_000, effort="none", power=-np.inf, max_iter=2, tol=10) == 3


def test_the_affinity_of_the_process_is_respected():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)


FITS_IN_THREADS = """
import os, sys, threading, time, warnings
import numpy as np
from powermeans import PowerKMeans

warnings.simplefilter("ignore")
points = np.random.default_rng(0).normal(size=(3000, 8))

def fit():
    while True:
        PowerKMeans(6).fit(points)

for _ in range(3):
    threading.Thread(target=fit, daemon=True).start()
time.sleep(0.5)
"""
# Each child forked while other threads hold a lock would wait for it, about one in eight.
FORKS = """
for _ in range(20):
    if not (child := os.fork()):
        PowerKMeans(3).fit(points[:300])
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("after", ["", FORKS] if hasattr(os, "fork") else [""])
def test_threads_that_fit_keep_no_process_from_its_end(after):
    assert output_of(FITS_IN_THREADS + after) == ""
