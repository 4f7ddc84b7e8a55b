"""Fits on Dask with empty and unequal partitions, some of which lose a worker on the way."""

import itertools
import random
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from powermeans import KMeans, MiniBatchKMeans, PowerKMeans
from tests.attacks import kills, oracle
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

HANGS_AFTER = 180.0
# A fit without workers is to end by itself, and say why, before it counts as hung.
NO_WORKERS_TIMEOUT = {"distributed.scheduler.no-workers-timeout": HANGS_AFTER / 2}


def cuts(n: int, rng: random.Random) -> list[int]:
    """Return the lengths of some partitions, of which some are empty and some are long."""
    places = sorted(rng.choice([0, n, rng.randrange(n + 1)]) for _ in range(rng.randrange(1, 7)))
    return [b - a for a, b in zip([0, *places], [*places, n], strict=True)]


def model(rng: random.Random) -> Any:
    k, seed = rng.randrange(1, 6), rng.randrange(1000)
    kind = rng.choice([KMeans, MiniBatchKMeans, PowerKMeans, PowerKMeans])
    given = {"effort": "none"} if kind is PowerKMeans else {"n_init": 1}
    if kind is PowerKMeans and rng.random() < 0.5:
        given["divergence"] = "cosine"
    return kind(k, random_state=seed, **given)


def collection(points: Any, lengths: list[int], kind: str) -> Any:
    """Return the points as a Dask collection of these partitions."""
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    ends = np.cumsum([0, *lengths])
    pieces = [points[a:b] for a, b in itertools.pairwise(ends)]
    if kind == "array":
        delayed = [(dask.delayed(piece), piece.shape, points.dtype) for piece in pieces]
        return da.concatenate([da.from_delayed(*of_piece) for of_piece in delayed])
    names = [f"c{number}" for number in range(points.shape[1])]
    frames = [dask.delayed(pd.DataFrame(piece, columns=names)) for piece in pieces]
    return dd.from_delayed(frames, meta=pd.DataFrame(points[:0], columns=names))


def prepare(folder: Path) -> Try:
    stack = ExitStack()
    cluster: list[Any] = []

    def workers() -> Any:
        import dask

        if not cluster:
            stack.enter_context(dask.config.set(NO_WORKERS_TIMEOUT))
            cluster.append(stack.enter_context(kills.workers()))
        return cluster[0]

    def one(rng: random.Random) -> str:
        numbers = np.random.default_rng(rng.getrandbits(64))
        n = rng.choice([1, 3, 50, 2000])
        points = numbers.normal(size=(n, rng.choice([1, 4]))) + 5 * numbers.integers(3, size=(n, 1))
        lengths = cuts(n, rng)
        given = collection(points, lengths, rng.choice(["array", "frame"]))
        here = workers()
        wanted, is_killed = model(rng), n == 2000 and rng.random() < 0.3
        killing = kills.killer(here, rng, rng.uniform(0, 0.5)) if is_killed else nullcontext()
        try:
            with killing:
                fitted = wanted.fit(given)
        except ValueError as error:
            if n > wanted.n_clusters:
                raise
            return REFUSED if str(error).strip() else RIGHT
        judge(fitted, points, lengths)
        return RIGHT

    return one


def judge(fitted: Any, points: Any, lengths: list[int]) -> None:
    """Raise unless the inertia and the labels are those of the centers."""
    is_cosine = getattr(fitted, "divergence", "") == "cosine"
    distances = oracle.cosine if is_cosine else oracle.squared_euclidean
    labels = np.asarray(fitted.predict(points))
    centers, inertia = fitted.cluster_centers_, fitted.inertia_
    fault = oracle.fault_of(oracle.Claim(points, None, centers, labels, inertia, distances))
    if fault is None and not np.array_equal(getattr(fitted, "labels_", labels), labels):
        fault = "labels_ are others than those predicted"
    if fault is not None:
        raise Failure(f"{fitted!r} with partitions of {lengths}: {fault}")


ATTACK = Attack(prepare, seconds=60.0, megabytes=500.0, hangs_after=HANGS_AFTER)
