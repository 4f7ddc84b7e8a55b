"""Ctrl-C at random moments: it is heard soon, and the process goes on as if nothing had been."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from powermeans import KMeans, MiniBatchKMeans, PowerKMeans, choose_k, kmeans_plusplus
from powermeans_tables.command import failures
from tests.attacks.running import FORK, RIGHT, Attack, Failure, Try, bits_of
from tests.attacks.tables import told

# Seconds of the processor from the signal to the error, beyond one sweep.
LATENCY = 0.2
SHAPES = [(200_000, 3, 100, "float64"), (20_000, 64, 100, "float32"), (3000, 500, 200, "float32")]


def send(seconds: float, target: int, to: Any) -> None:
    """Interrupt a process some seconds after it says so, and tell what its clock said before."""
    clock = (~target << 3) | 2  # of the processor, of another process (Linux)
    to.recv()
    time.sleep(seconds)
    to.send(time.clock_gettime(clock))
    with suppress(ProcessLookupError):
        os.kill(target, signal.SIGINT)


def interrupted(work: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of the processor from an interrupt to the error."""
    here, there = FORK.Pipe()
    sender = FORK.Process(target=send, args=(seconds, os.getpid(), there))
    sender.start()  # what `os.fork` calls in this process would swallow the error
    try:
        here.send("begin")
        while not here.poll():
            work()
        time.sleep(10)  # the signal comes after what the sender says, and ends this
        raise Failure("Ctrl-C is lost")
    except KeyboardInterrupt:
        ended = time.process_time()
    sender.join()
    return ended - float(here.recv())


def works(number: int) -> tuple[dict[str, Callable[[], Any]], float]:
    """Return kinds of work, and the seconds of the processor of a sweep with what opens points."""
    n, d, k, dtype = SHAPES[number]
    points = np.random.default_rng(number).normal(size=(n, d)).astype(dtype)
    began = time.process_time()
    model = KMeans(k, init=points[:k], n_init=1, max_iter=1).fit(points)
    seconds = time.process_time() - began
    weights, positive = np.linspace(0.5, 2, n), np.abs(points[:5000])
    power, lloyd = PowerKMeans(k, random_state=0, n_threads=1), KMeans(k, n_init=1, random_state=0)
    few, poisson = clone(power).set_params(n_clusters=5), PowerKMeans(5, divergence="poisson")
    kinds = {
        "fit": lambda: power.fit(points),
        "weighted fit": lambda: few.fit(points, sample_weight=weights),
        "poisson": lambda: poisson.fit(positive),
        "Lloyd's": lambda: lloyd.fit(points),
        "mini-batches": lambda: MiniBatchKMeans(k, n_init=1, random_state=0).fit(points),
        "seeding": lambda: kmeans_plusplus(points, k, random_state=0),
        "predict": lambda: model.predict(points),
        "transform": lambda: model.transform(points[:2000]),
        "choose_k": lambda: _choice(points[:5000]),
    }
    return kinds, seconds


def _choice(points: np.ndarray) -> None:
    """Choose; an interrupt ends that with the best so far, which counts as its error."""
    if choose_k(points, range(2, 6), random_state=0, n_threads=1).was_stopped:
        raise KeyboardInterrupt


def prepare(folder: Path) -> Try:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    points = np.random.default_rng(9).normal(size=(500, 3))
    table = folder / "points.npy"
    np.save(table, np.random.default_rng(8).normal(size=(40_000, 20)))
    output, saved = folder / "labels.csv", b"what was there before\n"
    works(0)  # what is loaded once is no part of a sweep
    all_works = [works(number) for number in range(len(SHAPES))]

    def probe() -> dict[str, bytes]:
        return bits_of(PowerKMeans(5, random_state=0).fit(points))

    expected = probe()

    def command() -> None:
        output.write_bytes(saved)
        arguments = ["fit", str(table), "-k", "30", "--output", str(output), "--quiet"]
        arguments += ["--labels-only"]  # all rows take as long to write as may pass
        code, said = told(arguments)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # an ended command ignores it
        if code == failures.INTERRUPTED:
            has_result = "interrupted: this is the best result so far" in said
            if not has_result and "interrupted before there was a result" not in said:
                raise Failure(f"an interrupted command says {said!r:.300}")
            content = output.read_bytes()
            if content != saved if not has_result else content.count(b"\n") < 40_000:
                raise Failure(f"an interrupted command left {len(content)} bytes: {said!r:.300}")
            raise KeyboardInterrupt
        if code:
            raise Failure(f"an interrupted command ends with {code}: {said[-300:]}")

    def one(rng: random.Random) -> str:
        number = rng.randrange(len(SHAPES))
        kinds, of_sweep = all_works[number]
        name = rng.choice([*kinds, "command"])
        work = command if name == "command" else kinds[name]
        seconds = interrupted(work, rng.expovariate(1 / 0.3))
        if seconds > LATENCY + of_sweep:
            raise Failure(f"{name} of {SHAPES[number]} goes on for {seconds:.2f} s")
        if probe() != expected:
            raise Failure(f"a fit has other bits after {name} was interrupted")
        return RIGHT

    return one


ATTACK = Attack(prepare, seconds=60.0, megabytes=500.0, hangs_after=120.0)
