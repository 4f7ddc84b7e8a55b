"""Fits on Dask of which a process is killed in the middle, each in a process of its own.

`client PATH ADDRESS` kills itself; without an address Dask's threads do the work. `worker` kills
one of two workers, and prints the bits of the centers.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

from powermeans import PowerKMeans, open_data

LAST_SWEEP = 7


def points() -> Any:
    values = np.random.default_rng(0).normal(size=(20_000, 4)) * [1.0, 5.0, 0.1, 1.0]
    return da.from_array(values, chunks=(4_000, 4))


def data(checkpoint: Path | None) -> Any:
    return open_data(points(), scale="standard", checkpoint=checkpoint, checkpoint_seconds=0.0)


def fitted(checkpoint: Path | None, kill: Any = None, at_sweep: int = 0) -> PowerKMeans:
    """A fit of some sweeps, in one of which something happens."""

    def watch(state: Any) -> bool:
        if state.sweep == at_sweep and kill is not None:
            kill()
        return state.sweep >= LAST_SWEEP

    return PowerKMeans(5, effort="none", random_state=0, callback=watch).fit(data(checkpoint))


def be_a_client_that_dies(checkpoint: Path, address: str | None) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if address is None:
        with dask.config.set(scheduler="threads"):
            fitted(checkpoint, kill, 4)
        return
    from distributed import Client

    with Client(address):
        fitted(checkpoint, kill, 4)


def lose_a_worker() -> None:
    """Kill one, go on with the other and whoever comes, and print the centers."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        pids = [guard.process.pid for guard in cluster.workers.values()]

        def kill() -> None:
            os.kill(pids[0], signal.SIGKILL)

        print(fitted(None, kill, 4).cluster_centers_.tobytes().hex())


if __name__ == "__main__":
    if sys.argv[1] == "client":
        be_a_client_that_dies(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    else:
        lose_a_worker()
