"""The same fits again and again, in one process: its memory does not grow.

A try makes fits of two estimators, small ones and some larger, in cycles. Each cycle does the same,
so what is held more after many than after half of them is a leak. Ten tries of one process make
2 000 small and 50 larger fits: `--classes memory --tries 10 --jobs 1`.
"""

import ctypes
import gc
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.base import clone

from tests.attacks.numbers import Case, drawn_case, drawn_points, drawn_subject, fitted
from tests.attacks.running import MEGABYTE, RIGHT, Attack, Failure, Try, status

N_CASES, N_CYCLES, CYCLES_PER_LARGE = 2, 100, 20
WARM_UP, N_LOOKS = 60, 4
N_LARGE, N_CLUSTERS = 30_000, 12
# Python's own caches take some 150 objects more until they are full, after 200 cycles.
MOST_BYTES, MOST_BLOCKS = MEGABYTE // 2, 300
MOST_ROUNDS = 5


def small(case: Case) -> Callable[[], object]:
    """Return a fit that may be refused, since errors must not hold memory either."""

    def fit() -> None:
        with suppress(ValueError, TypeError):
            fitted(case, case.given, 2)

    return fit


def large(rng: np.random.Generator) -> Callable[[], object]:
    subject = drawn_subject(rng)
    while not subject.takes_parts:  # others take long with many points
        subject = drawn_subject(rng)
    drawn = drawn_points(rng, subject.domain)
    points = drawn[rng.integers(len(drawn), size=N_LARGE)]
    points = points + rng.integers(2, size=points.shape)
    points[~points.any(axis=1)] = 1  # some have to have a direction
    model = subject.model.set_params(n_clusters=N_CLUSTERS)
    return lambda: clone(model).fit(points)


def held() -> tuple[int, int]:
    """Return the bytes that the process holds, and the objects that Python does."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(status("VmRSS") * 1024**2), sys.getallocatedblocks()


def check(smalls: Sequence[Callable[[], object]], larges: Sequence[Callable[[], object]]) -> None:
    """Raise where more is held after many cycles than after some, round after round.

    What fills until it is full, such as a heap that is cut into pieces, ends; a leak does not.
    """
    for _ in range(MOST_ROUNDS):
        n_bytes, n_blocks = growth(smalls, larges)
        if n_bytes <= MOST_BYTES and n_blocks <= MOST_BLOCKS:
            return
    n_cycles = N_CYCLES - WARM_UP
    raise Failure(f"{n_bytes} bytes and {n_blocks} objects more after {n_cycles} cycles")


def growth(
    smalls: Sequence[Callable[[], object]], larges: Sequence[Callable[[], object]]
) -> tuple[int, int]:
    """Return the bytes and the objects by which more is held at the end of a round of cycles."""
    found = np.zeros((N_CYCLES, 2), dtype=np.int64)  # holds no object more from cycle to cycle
    looks = [range(WARM_UP - N_LOOKS, WARM_UP), range(N_CYCLES - N_LOOKS, N_CYCLES)]
    for cycle in range(N_CYCLES):
        for fit in [*smalls, *(larges if cycle % CYCLES_PER_LARGE == 0 else [])]:
            fit()
        if any(cycle in look for look in looks):
            found[cycle] = held()
    n_bytes, n_blocks = found[looks[1]].min(axis=0) - found[looks[0]].max(axis=0)
    return int(n_bytes), int(n_blocks)


def prepare(folder: Path) -> Try:
    def one(rng: random.Random) -> str:
        numbers = np.random.default_rng(rng.getrandbits(64))
        cases = [drawn_case(numbers) for _ in range(N_CASES)]
        try:
            check([small(case) for case in cases], [large(numbers)])
        except Failure as failure:
            fits = " and ".join(case.describe() for case in cases)
            raise Failure(f"{failure}: {fits}") from None
        return RIGHT

    return one


ATTACK = Attack(prepare, seconds=300.0, megabytes=500.0, hangs_after=900.0, share=0.5)
