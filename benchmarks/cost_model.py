"""What a sweep costs on paper: operations, bytes and network, from constants that are measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powermeans.parts.dask import _BYTES_ADDED_HERE as BYTES_ADDED_BY_CLIENT
from powermeans.parts.dask import _BYTES_IN_A_TASK as BYTES_IN_A_TASK
from powermeans.seeds.choose import n_greedy_candidates


@dataclass(frozen=True)
class Rates:
    """Seconds of one of each.

    Attributes
    ----------
    multiply_add, distance, value
        On one core: for each feature of each distance, for each distance besides, and for each
        value of the points besides.
    part
        For each part of a sweep, whatever is in it.
    task, turn
        Of Dask: for each task, one after the other, and for a question until its answer.
    byte_sent, byte_added
        Of sums: from process to process, and in an addition.
    """

    multiply_add: float
    distance: float
    value: float
    part: float
    task: float
    turn: float
    byte_sent: float
    byte_added: float


@dataclass(frozen=True)
class Job:
    """A sweep over points in partitions on workers. One worker and no tasks is one process."""

    n_points: float
    n_features: int
    n_clusters: int
    n_parts: int
    n_workers: int = 1
    cores: int = 1
    bytes_per_value: int = 4
    on_dask: bool = True

    @property
    def bytes_of_points(self) -> float:
        return self.n_points * self.n_features * self.bytes_per_value

    @property
    def multiply_adds(self) -> float:
        return self.n_points * self.n_clusters * self.n_features

    @property
    def bytes_of_centers(self) -> int:
        return 8 * self.n_clusters * self.n_features

    @property
    def bytes_of_sums(self) -> int:
        """Weighted points, weights, and three numbers."""
        return 8 * (self.n_clusters * (self.n_features + 1) + 3)

    @property
    def is_added_by_workers(self) -> bool:
        return self.on_dask and self.bytes_of_centers * self.n_parts > BYTES_ADDED_BY_CLIENT

    @property
    def n_tasks(self) -> int:
        if not self.on_dask:
            return 0
        n_additions = self.n_parts - 1 if self.is_added_by_workers else 0
        return self.n_parts + n_additions + (self.bytes_of_centers > BYTES_IN_A_TASK)

    @property
    def height(self) -> int:
        """Of the tree of additions."""
        return math.ceil(math.log2(max(1, self.n_parts)))

    @property
    def additions_in_a_row(self) -> float:
        """Where the workers share them: those of one worker's parts, and then those of workers."""
        if not self.is_added_by_workers:
            return self.n_parts - 1
        return self.n_parts / self.n_workers - 1 + math.ceil(math.log2(self.n_workers))

    @property
    def bytes_of_centers_sent(self) -> float:
        """One after the other: with each task, or by the scheduler and from worker to worker."""
        if not self.on_dask:
            return 0.0
        if self.bytes_of_centers <= BYTES_IN_A_TASK:
            return self.n_parts * self.bytes_of_centers
        return self.bytes_of_centers * (2 + math.ceil(math.log2(self.n_workers)))

    @property
    def bytes_of_sums_sent(self) -> float:
        """One after the other: all to the client, or those that one worker fetches from others.

        Neighbours in the tree are on the same worker by chance alone.
        """
        if not self.on_dask:
            return 0.0
        if not self.is_added_by_workers:
            return self.n_parts * self.bytes_of_sums
        share_elsewhere = 1 - 1 / self.n_workers
        return self.bytes_of_sums * (1 + share_elsewhere * self.additions_in_a_row)

    @property
    def bytes_to_a_client_that_adds_alone(self) -> float:
        return self.n_parts * self.bytes_of_sums


@dataclass(frozen=True)
class Cost:
    """Seconds of a sweep. They are added up, as if nothing went on at the same time."""

    kernels: float
    tasks: float
    sent: float
    added: float

    @property
    def total(self) -> float:
        return self.kernels + self.tasks + self.sent + self.added


def cost_of_sweep(job: Job, rates: Rates) -> Cost:
    n_distances = job.n_points * job.n_clusters
    on_a_core = (
        n_distances * (job.n_features * rates.multiply_add + rates.distance)
        + job.n_points * job.n_features * rates.value
        + job.n_parts * rates.part
    )
    tasks = job.n_tasks * rates.task + rates.turn if job.on_dask else 0.0
    return Cost(
        kernels=on_a_core / (job.n_workers * job.cores),
        tasks=tasks,
        sent=(job.bytes_of_centers_sent + job.bytes_of_sums_sent) * rates.byte_sent,
        added=job.additions_in_a_row * job.bytes_of_sums * rates.byte_added,
    )


@dataclass(frozen=True)
class Seeding:
    """k-means||: rounds over all points, then greedy k-means++ among the candidates.

    Each round computes the distances to all candidates that there are so far, and one sweep more
    weighs them.
    """

    job: Job
    n_rounds: int = 5
    oversampling: float = 2.0

    @property
    def n_drawn(self) -> int:
        return math.ceil(self.oversampling * self.job.n_clusters)

    @property
    def n_candidates(self) -> int:
        return self.n_rounds * self.n_drawn

    @property
    def in_sweeps(self) -> float:
        """How many sweeps of the fit have as many distances."""
        seen = sum(number * self.n_drawn for number in range(self.n_rounds + 1))
        return seen / self.job.n_clusters

    def seconds_of_greedy(self, rates: Rates) -> float:
        """On one core."""
        n_tried = self.job.n_clusters * n_greedy_candidates(self.job.n_clusters)
        n_distances = self.n_candidates * n_tried
        return n_distances * (self.job.n_features * rates.multiply_add + rates.distance)
