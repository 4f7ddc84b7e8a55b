"""Timing contestants in turns, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Container, Mapping

import numpy as np

# Threads of another pool may spin for a while after their work.
PAUSE_SECONDS = 0.1
SHORTEST_TIMING_SECONDS = 0.02
# A contestant that takes so many times as long as the fastest is not measured further.
HOPELESS = 5

Contestants = Mapping[str, Callable[[], float]]


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def repeated(action: Callable[[], object]) -> float:
    """Return the seconds of one of several in a row, as many as the clock can measure."""
    once = seconds(action)
    n = int(np.clip(SHORTEST_TIMING_SECONDS / once, 1, 1000))
    return once if n == 1 else seconds(lambda: [action() for _ in range(n)]) / n


def in_turns(
    contestants: Contestants,
    rounds: int,
    *,
    trials: Contestants | None = None,
    may_be_left_out: Container[str] = (),
) -> dict[str, dict]:
    """Return the median of what each contestant returned, or the reason why there is none.

    Each is tried once, by `trials` if those are shorter, before its values count.
    """
    tried = {name: attempt(action) for name, action in (trials or contestants).items()}
    reasons = {name: value for name, value in tried.items() if isinstance(value, str)}
    trial = {name: value for name, value in tried.items() if not isinstance(value, str)}
    for name, value in trial.items():
        if name in may_be_left_out and value > HOPELESS * min(trial.values()):
            reasons[name] = f"{value:.3g} s in a trial: too slow to be timed further"
    values: dict[str, list[float]] = {name: [] for name in contestants if name not in reasons}
    for _ in range(rounds):
        for name, column in values.items():
            time.sleep(PAUSE_SECONDS)
            column.append(contestants[name]())
    medians = {name: statistics.median(column) for name, column in values.items()}
    return {"seconds": medians, "left out": reasons}


def seconds_in_turns(actions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each action, after one that does not count."""
    timed = {name: lambda action=action: seconds(action) for name, action in actions.items()}
    found = in_turns(timed, rounds)
    if found["left out"]:
        raise RuntimeError(f"some failed: {found['left out']}")
    return found["seconds"]


def attempt(action: Callable[[], float]) -> float | str:
    """Return what the action returns, or how it failed: packages refuse some sizes."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[-1][:200]}"


def several_in_turns(
    contestants: Mapping[str, Callable[..., dict]], most: Mapping[str, tuple[int, float]]
) -> dict[str, list[dict]]:
    """Return what each contestant returned for the first random states.

    `most` limits how many, and the seconds after which there is no further one.
    """
    runs: dict[str, list[dict]] = {name: [] for name in contestants}
    for random_state in range(max(n for n, _ in most.values())):
        for name, found in runs.items():
            n, patience = most[name]
            if len(found) < n and sum(run["seconds"] for run in found) < patience:
                time.sleep(PAUSE_SECONDS)
                found.append(contestants[name](random_state=random_state))
    return runs
