"""What stored runs of benchmarks.scale and benchmarks.clusters say, for docs/scale.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.cost_model import Cost, Job, Rates, Seeding, cost_of_sweep
from benchmarks.pages import Page, Rows, as_markdown

PAGE = Page("scale", "python -m benchmarks.scale --page")

# The plan: 100 machines of 32 cores like those measured, and 10 Gbit/s between them.
LARGE = Job(1e9, 128, 10_000, n_parts=0, n_workers=100, cores=32)
NETWORK_BYTES_PER_SECOND = 1.25e9
MEGABYTES_OF_A_PART = (50, 100, 400, 1600)


def memory_line(run: Mapping[str, Any]) -> str:
    if "refused" in run:
        return f"{run['model']} of {run['file']} within {run['limit'] / 1e6:.0f} MB: refused"
    return (
        f"{run['model']} of {run['file']} within {run['limit'] / 1e6:.0f} MB: peak "
        f"{run['peak'] / 1e6:.0f} MB, {run['held before'] / 1e6:.0f} MB of it before, "
        f"{run['sweeps']} sweeps, {run['seconds']:.1f} s, same bits: {run['same bits']}"
    )


def megabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.0f}"


def memory_table(figures: Mapping[str, Any]) -> Rows:
    head = ["fit", "limit, MB", "rise, MB", "peak with the program, MB", "sweeps", "same bits"]
    rows = [head]
    for run in figures["fits"]:
        name = f"{run['model']}, `{run['file']}`"
        if "refused" in run:
            rows.append([name, megabytes(run["limit"]), "refused", "", "", ""])
            continue
        rise = run["peak"] - run["held before"]
        cells = [run["limit"], rise, run["peak"]]
        same = "yes" if run["same bits"] else "no"
        rows.append([name, *map(megabytes, cells), str(run["sweeps"]), same])
    return rows


def throughput_table(figures: list[Mapping[str, Any]]) -> Rows:
    rows = [["file", "k", "reading, s", "in memory, s", "from the file, s", "of the smaller speed"]]
    for run in figures:
        taken = run["seconds"]
        name = f"`{run['file']}` from the {run['from']}"
        shown = (f"{taken[what]:.2f}" for what in ("reading", "in memory", "from the file"))
        rows.append([name, str(run["clusters"]), *shown, f"{run['of the smaller speed']:.2f}"])
    return rows


def rate(value: float, unit: str) -> str:
    """A rate as a person says it, or that there is nothing to be said."""
    return f"{1 / value:.2g} {unit}" if value else "not to be told from nothing"


def constants_table(costs: Mapping[str, Any]) -> Rows:
    hard, power = costs["kernels"]["hard"], costs["kernels"]["power"]
    rows = [
        ["constant", "measured"],
        ["$a$: multiply-adds, hard rule", rate(hard["multiply_add"], "a second and core")],
        ["$a$: multiply-adds, power rule", rate(power["multiply_add"], "a second and core")],
        ["$b$: each distance besides, hard rule", f"{1e9 * hard['distance']:.2g} ns"],
        ["$b$: each distance besides, power rule", f"{1e9 * power['distance']:.2g} ns"],
        ["$c$: each value of the points besides, hard rule", f"{1e9 * hard['value']:.2g} ns"],
        ["$c$: each value of the points besides, power rule", f"{1e9 * power['value']:.2g} ns"],
        ["each part", f"{1e6 * costs['part']:.0f} µs"],
        ["sums of $k = 10^4$, $d = 128$", f"{costs['addition']['bytes'] / 1e6:.2f} MB"],
        ["adding two of them", f"{1e3 * costs['addition']['seconds']:.1f} ms"],
    ]
    for n_workers, there in costs["dask"].items():
        name = f"{n_workers} worker{'s' * (n_workers != '1')}"
        rows.append([f"$t$: a task of Dask, {name}", f"{1e3 * there['task']:.2f} ms"])
        rows.append([f"a turn of Dask, {name}", f"{1e3 * there['turn']:.0f} ms"])
        rows.append([f"bytes from worker to client, {name}", rate(there["byte_sent"], "a second")])
    return rows


def checked_table(costs: Mapping[str, Any]) -> Rows:
    rows = [
        ["n", "d", "k", "parts", "where", "rule", "model, ms", "measured, ms", "model : measured"]
    ]
    for run in costs["checked"]:
        job, model = run["job"], run["model"]["total"]
        where = f"{run['workers']} on Dask" if run["workers"] else "one core"
        shape = [job["n_points"], job["n_features"], job["n_clusters"], job["n_parts"]]
        taken = [f"{1e3 * model:.1f}", f"{1e3 * run['measured']:.1f}"]
        ratio = f"{model / run['measured']:.2f}"
        rows.append([*(f"{int(value):,}" for value in shape), where, run["rule"], *taken, ratio])
    return rows


def rates_on_a_network(costs: Mapping[str, Any], rule: str) -> Rates:
    """Those measured, but for the network, which here is none."""
    there = costs["dask"]["2"]
    byte_added = costs["addition"]["seconds of a byte"]
    rates = Rates(**costs["kernels"][rule], part=costs["part"], byte_added=byte_added, **there)
    return replace(rates, byte_sent=1 / NETWORK_BYTES_PER_SECOND)


def large_job(megabytes_of_a_part: float) -> Job:
    n_parts = round(LARGE.bytes_of_points / (1e6 * megabytes_of_a_part))
    return replace(LARGE, n_parts=n_parts)


def plan_table(costs: Mapping[str, Any]) -> Rows:
    head = ["partition", "partitions", "tasks", "kernels, s", "Dask's tasks, s", "sent, s"]
    rows = [[*head, "added, s", "hard sweep, s", "power sweep, s", "if the client added alone, s"]]
    for size in MEGABYTES_OF_A_PART:
        job = large_job(size)
        hard = cost_of_sweep(job, rates_on_a_network(costs, "hard"))
        power = cost_of_sweep(job, rates_on_a_network(costs, "power"))
        alone = job.bytes_to_a_client_that_adds_alone / NETWORK_BYTES_PER_SECOND
        rows.append(
            [
                f"{size} MB",
                f"{job.n_parts:,}",
                f"{job.n_tasks:,}",
                *seconds_of(hard),
                f"{hard.total:.1f}",
                f"{power.total:.1f}",
                f"{alone:.0f}",
            ]
        )
    return rows


def seconds_of(cost: Cost) -> list[str]:
    return [f"{value:.2f}" for value in (cost.kernels, cost.tasks, cost.sent, cost.added)]


def seeding_table(costs: Mapping[str, Any]) -> Rows:
    """The seeds of the plan, and what a sweep writes down."""
    job = large_job(400)
    seeding, rates = Seeding(job), rates_on_a_network(costs, "hard")
    sweep = cost_of_sweep(job, rates)
    per_value = 8 * (job.n_features + 1)
    return [
        ["of the whole", "amount"],
        ["points", f"{job.bytes_of_points / 1e9:.0f} GB"],
        ["points of a machine", f"{job.bytes_of_points / job.n_workers / 1e9:.1f} GB"],
        ["multiply-adds of a sweep", f"{job.multiply_adds:.2g}"],
        ["sums of a partition", f"{job.bytes_of_sums / 1e6:.1f} MB"],
        ["height of the tree", f"{job.height}"],
        ["sums sent to one machine in a sweep", f"{job.bytes_of_sums_sent / 1e6:.0f} MB"],
        ["k-means‖: distances, in sweeps", f"{seeding.in_sweeps:.0f}"],
        ["k-means‖: kernels", f"{seeding.in_sweeps * sweep.kernels / 60:.1f} min"],
        ["k-means‖: candidates", f"{seeding.n_candidates:,}"],
        ["candidates of one partition in a round", f"{seeding.n_drawn * per_value / 1e6:.1f} MB"],
        [
            "greedy k-means++ among them, one core",
            f"{seeding.seconds_of_greedy(rates):.0f} s",
        ],
        ["checkpoint, each sweep", f"{job.bytes_of_sums / 1e6:.1f} MB"],
    ]


def overhead_table(figures: Mapping[str, Any]) -> Rows:
    rows = [["sweep", "one array, s", "parts in memory, s", "Dask, s", "Dask over parts in memory"]]
    for rule, taken in figures["seconds of a sweep"].items():
        shown = (f"{taken[where]:.2f}" for where in ("one array", "kept parts", "dask"))
        rows.append([rule, *shown, f"{100 * taken['dask over kept parts']:+.0f} %"])
    return rows


def peers_table(figures: Mapping[str, Any]) -> Rows:
    rows = [["fit", "seed", "seconds", "inertia", "what it says itself"]]
    for run in figures["runs"]:
        sums = (f"{run[what] / 1e6:.1f} M" for what in ("inertia", "own inertia"))
        rows.append([run["name"], str(run["seed"]), f"{run['seconds']:.0f}", *sums])
    return rows


def times_sentence(figures: Mapping[str, Any]) -> str:
    """By how many times ours is as good sooner."""
    told = []
    for name, times in figures["times to match"].items():
        shown = ", ".join("never" if time is None else f"{time:.1f}" for time in times)
        told.append(f"`{name}` {shown}")
    return (
        "How many times sooner an inertia as low as theirs is reached, other seeds tried where one "
        f"does not: {'; '.join(told)}."
    )


def measured_by(record: Mapping[str, Any]) -> str:
    return (
        f"`{record['command']}` on {record['date']}, {record['processor']}, "
        f"{record['processors used']} processors."
    )


def as_page(
    record: Mapping[str, Any], overhead: Mapping[str, Any], peers: Mapping[str, Any]
) -> str:
    return "\n\n".join([*of_scale(record), *of_overhead(overhead), *of_peers(peers)])


def of_overhead(record: Mapping[str, Any]) -> list[str]:
    figures = record["figures"]
    return [
        "### Dask beside memory",
        measured_by(record),
        f"{figures['parts']} partitions of {figures['megabytes']:.0f} MB, "
        f"{figures['features']} features, $k = {figures['centers']}$, two worker processes of one "
        "thread beside two threads of one process.",
        as_markdown(overhead_table(figures)),
    ]


def of_peers(record: Mapping[str, Any]) -> list[str]:
    figures = record["figures"]
    made_with = ", ".join(f"{name} {found}" for name, found in figures["made with"].items())
    return [
        "### Beside dask-ml",
        f"{measured_by(record)} {made_with}.",
        f"{figures['points']:,} points of {figures['features']} features around means, in "
        f"{figures['parts']} partitions of a cluster of two worker processes, "
        f"$k = {figures['centers']}$. Inertias are computed anew, in double precision, by "
        "differences of points and centers and with nothing of either package; the last column is "
        "what the estimator says itself.",
        as_markdown(peers_table(figures)),
        times_sentence(figures),
    ]


def of_scale(record: Mapping[str, Any]) -> list[str]:
    figures = record["figures"]
    parts = ["### Rows on disk, and the model of a sweep", measured_by(record)]
    if "memory" in figures:
        memory = figures["memory"]
        parts += [
            f"**Memory.** A file of {memory['bytes of the file']['.npy'] / 1e6:.0f} MB, "
            f"$k = {memory['clusters']}$, and a process that may map "
            f"{memory['limit'] / 1e6:.0f} MB more than the program itself. To read all of the "
            f"file at once there: {memory['all at once'].partition(':')[0]}.",
            as_markdown(memory_table(memory)),
        ]
    if "throughput" in figures:
        table = as_markdown(throughput_table(figures["throughput"]))
        told = (
            "**Throughput.** One hard sweep, beside the slower of reading alone and a sweep in "
            "memory. To read from the cache of the system is work for a processor, and the kernels "
            "use them all: what a sweep from there takes is nearly the sum of both."
        )
        parts += [told, table]
    if "costs" in figures:
        costs = figures["costs"]
        parts += [
            "**Constants.**",
            as_markdown(constants_table(costs)),
            "**The model beside sweeps that were measured.**",
            as_markdown(checked_table(costs)),
            "**$10^9 \\times 128$, $k = 10^4$, 100 machines of 32 such cores, 10 Gbit/s.**",
            as_markdown(plan_table(costs)),
            as_markdown(seeding_table(costs)),
        ]
    return parts
