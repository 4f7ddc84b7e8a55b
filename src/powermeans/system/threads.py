"""How many threads a fit may use."""

import contextlib
import functools
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import threadpoolctl

from powermeans.errors import ArgumentError

# No machine has more processors: a larger number is a slip, and would exhaust the machine.
_MOST_THREADS = 4096


def effective_n_threads(n_threads: int | None, limit: int = 0) -> int:
    """Return the number of threads for one fit: the first of these that is given.

    `n_threads`, counted down from all processors if negative, as in joblib; the limit that
    threadpoolctl sets for this thread, 0 for none; POWERMEANS_NUM_THREADS; OMP_NUM_THREADS, which
    OpenMP ignores unless it is a positive number; the processors that this process may use.
    """
    if n_threads is not None:
        return _asked_for(n_threads)
    if limit > 0:
        return min(limit, _MOST_THREADS)
    return _from_environment() or usable_processors()


def _asked_for(n_threads: int) -> int:
    if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__") or n_threads == 0:
        raise ValueError(
            f"n_threads={n_threads!r} must be a positive integer, a negative one to count down "
            "from all processors, or None to choose by limits and environment"
        )
    n_threads = int(n_threads)
    if n_threads > _MOST_THREADS:
        raise ArgumentError(
            f"is more than {_MOST_THREADS}",
            "leave it out for all processors",
            argument="n_threads",
            value=n_threads,
        )
    return n_threads if n_threads > 0 else max(1, usable_processors() + 1 + n_threads)


def _from_environment() -> int | None:
    value = os.environ.get("POWERMEANS_NUM_THREADS", "").strip()
    ours = positive_number(value)
    if value and (ours is None or ours > _MOST_THREADS):
        raise ValueError(
            f"POWERMEANS_NUM_THREADS={value!r} must be a positive integer of at most "
            f"{_MOST_THREADS}: correct or unset it"
        )
    # That of OpenMP has one number for each level of nesting; ours is the outermost.
    theirs = positive_number(os.environ.get("OMP_NUM_THREADS", "").split(",")[0])
    return ours or (None if theirs is None else min(theirs, _MOST_THREADS))


def positive_number(value: str) -> int | None:
    """Return the number from 1 on that a text is; None for others, and for thousands of digits."""
    # Asked first, because CPython 3.11 loses a Ctrl-C that arrives as int() words its error.
    with contextlib.suppress(ValueError):
        return int(value) or None if value.strip().isdecimal() else None
    return None


def usable_processors() -> int:
    """Return how many processors the affinity and the control group allow this process."""
    by_affinity = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(by_affinity, _control_group_quota() or by_affinity))


@functools.cache
def _control_group_quota() -> int | None:
    """Return the quota of a control group, version 2 or 1, in processors, rounded up."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        folder = Path("/sys/fs/cgroup/cpu")
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return -(-int(quota) // int(period))


def _expected_threads(limit: int) -> int:
    """Return the threads that a fit would use; all processors where it would raise."""
    try:
        return effective_n_threads(None, limit)
    except ValueError:
        return usable_processors()


class _OneThread:
    """Holds BLAS to one thread as long as it has a user, then restores the old limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = Counter[int]()  # by thread
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._limit is None:
                self._limit = _blas_pools(len(sys.modules)).limit(limits=1)
            self._users[threading.get_ident()] += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= Counter([threading.get_ident()])  # which drops what is zero
            if not self._users and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None

    def lose_other_threads(self) -> None:
        """Go on in a forked child, where only this thread is, and another may have had the lock."""
        mine = threading.get_ident()
        self._lock, self._users = threading.Lock(), Counter({mine: self._users[mine] + 1})
        self.leave()


_ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ONE_THREAD.lose_other_threads)


@contextlib.contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Keep BLAS from starting threads, in any thread of Python."""
    _ONE_THREAD.enter()
    try:
        yield
    finally:
        _ONE_THREAD.leave()


@functools.lru_cache(maxsize=1)
def _blas_pools(n_modules: int) -> Any:
    # The search for libraries takes longer than most of what they compute here, so it waits for the
    # import of a module, which may bring another library: SciPy's beside NumPy's, say.
    del n_modules
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _TeamController(threadpoolctl.LibController):
    """Lets `threadpoolctl` see and limit our threads as it does those of OpenMP.

    Nothing here raises, since another library may be the one that calls threadpoolctl.
    """

    user_api = "openmp"
    internal_api = "powermeans"
    filename_prefixes = ("_native",)
    check_symbols = ("powermeans_get_num_threads",)

    def get_num_threads(self) -> int:
        """Return the threads that a fit started by this thread would use."""
        return _expected_threads(self.dynlib.powermeans_get_num_threads())

    def set_num_threads(self, n_threads: int) -> None:
        """Limit the fits that this thread starts."""
        # The number that a fit would use anyway lifts the limit: threadpoolctl restores the number
        # that it found, and the environment must count again afterwards.
        limit = 0 if n_threads == _expected_threads(limit=0) else n_threads
        self.dynlib.powermeans_set_num_threads(min(max(limit, 0), _MOST_THREADS))

    def get_version(self) -> Any:
        """Return None: the core has no version of its own."""
        return None

    def set_additional_attributes(self) -> None:
        """Add nothing."""


threadpoolctl.register(_TeamController)
