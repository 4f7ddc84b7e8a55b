"""Quality and time of powermeans and its peers, problem by problem.

Every method is run on every problem with every seed. The time is that of the fit alone; the inertia
is computed anew from the centers that a method returns. Methods take turns within a problem. What
is measured is stored after each problem, so that an interrupt loses one problem at most.

A loop of a second before and after each problem tells whether the machine kept its speed.

Run it in the environment that `make peers` sets up, with nothing else running.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import multiprocessing
import os
import shlex
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks import machine
from benchmarks.families import Matrix
from benchmarks.families import draw as draw_points
from benchmarks.peers import (
    ON_REQUEST,
    Fit,
    HgMeans,
    Method,
    any_class,
    build_methods,
    method_names,
)
from benchmarks.problems import DATA_VARIABLE, QUICK, Problem, all_problems
from benchmarks.quality_report import (
    PAGE,
    PAGE_OF_STEPS,
    Record,
    as_page,
    disturbed,
    inertia,
    summary,
    table_of_steps,
)

# What is tuned on the even half is judged on the odd one.
HALVES = ("even", "odd")
FALSE_CLAIM = 1e-5
# A problem during which the machine's speed changed is measured again, at most so often.
MOST_TRIES = 2


def new_figures(settings: dict) -> dict:
    return {
        "settings": settings,
        "runs": [],
        "methods": {},
        "problems": {},
        "warnings": {},
        "cells": {},
    }


def write(name: str, figures: dict) -> Path:
    """Store the cells and their summary."""
    record = Record(figures["problems"], figures["cells"])
    return machine.store(name, {**figures, "summary": summary(record)})


def resumed(name: str, settings: dict, methods: Sequence[Method]) -> dict:
    """What is stored, without the cells of methods that have changed since."""
    if not machine.stored_at(name).is_file():
        return new_figures(settings)
    stored = machine.read(name, "quality")
    now = {**settings, "processor": machine.processor()}
    then = {**stored["figures"]["settings"], "processor": stored["processor"]}
    for key in ("threads", "data seed", "processor"):
        if now[key] != then[key]:
            raise SystemExit(
                f"--resume would mix {key} {then[key]!r} with {now[key]!r}: leave it out to begin "
                f"anew, or pass another --name than {name}"
            )
    figures = {key: stored["figures"][key] for key in new_figures(settings)}
    figures["settings"] = {**settings, "seeds": sorted({*now["seeds"], *then["seeds"]})}
    for method in methods:
        if figures["methods"].get(method.name, {}).get("made with") != method.made_with:
            for cells in figures["cells"].values():
                cells.pop(method.name, None)
    return figures


def forget_disturbed(figures: dict) -> None:
    for name in disturbed(Record(figures["problems"], figures["cells"])):
        del figures["cells"][name], figures["problems"][name]


def measure(
    problem: Problem, methods: Sequence[Method], seeds: Sequence[int], figures: dict
) -> None:
    """Fill the cells of a problem that are not there yet."""
    points = problem.load()
    about = described(problem, points)
    about |= {
        key: figures["problems"].get(problem.name, about)[key] for key in ("bystanders", "drift")
    }
    figures["problems"][problem.name] = about
    cells = figures["cells"].setdefault(problem.name, {})
    missing = [
        (seed, method)
        for seed in seeds
        for method in in_turn(methods, problem, seed)
        if str(seed) not in cells.get(method.name, {})
    ]
    if not missing:
        return
    for _ in range(MOST_TRIES):
        bystanders, steadiness = machine.Bystanders(siblings()), machine.Steadiness()
        found = measured(problem, points, missing, figures)
        known = (about["bystanders"], bystanders.processors())
        about["drift"] = steadiness.drift()
        if about["drift"] <= machine.STEADY:
            break
    about["bystanders"] = max((share for share in known if share is not None), default=None)
    cells.update(found)


def measured(
    problem: Problem, points: Matrix, missing: Sequence[tuple[int, Method]], figures: dict
) -> dict:
    """The cells of a problem, those stored and those that were missing."""
    cells = {name: dict(column) for name, column in figures["cells"][problem.name].items()}
    for seed, method in missing:
        times = {
            name: column[str(seed)]["seconds"]
            for name, column in cells.items()
            if "seconds" in column.get(str(seed), {})
        }
        warned = figures["warnings"].setdefault(method.name, {})
        cell = measure_one(method, points, problem.n_clusters, seed, times, warned)
        cells.setdefault(method.name, {})[str(seed)] = cell
    return cells


def siblings() -> list[int]:
    """The other processes that measure meanwhile."""
    parent = os.getppid()
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return [child for child in map(int, children) if child != os.getpid()]


def described(problem: Problem, points: Matrix) -> dict:
    return {
        "group": problem.group,
        "n_points": points.shape[0],
        "n_features": points.shape[1],
        "n_clusters": problem.n_clusters,
        "best_known": problem.best_known,
        "bystanders": None,
        "drift": 0.0,
    }


def in_turn(methods: Sequence[Method], problem: Problem, seed: int) -> list[Method]:
    """Shuffled, so that no method always runs after the same one; hgmeans needs others' times."""
    rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode())])
    order = [methods[i] for i in rng.permutation(len(methods))]
    return sorted(order, key=lambda method: isinstance(method, HgMeans))


def measure_one(
    method: Method, points: Matrix, n_clusters: int, seed: int, seconds_of: dict, warned: dict
) -> dict:
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = method.fit(points, n_clusters, seed, seconds_of)
            check_centers(fit, points, n_clusters)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    for warning in caught:
        name = warning.category.__name__
        warned[name] = warned.get(name, 0) + 1
    found = {"inertia": inertia(points, fit.centers), "seconds": fit.seconds}
    if fit.claimed is not None and abs(fit.claimed / found["inertia"] - 1) > FALSE_CLAIM:
        found["claimed"] = fit.claimed
    return found


def check_centers(fit: Fit, points: Matrix, n_clusters: int) -> None:
    """More centers than were asked for would be an advantage; fewer are not."""
    n_centers, n_features = fit.centers.shape
    if n_centers > n_clusters or n_features != points.shape[1]:
        raise ValueError(
            f"centers of shape {fit.centers.shape} are not {n_clusters} centers with "
            f"{points.shape[1]} features"
        )
    if not np.isfinite(fit.centers).all():
        raise ValueError("some centers are not finite")


def warm_up(methods: Sequence[Method]) -> None:
    """Imports and pools of threads, of which the first fit is not to pay."""
    points = draw_points("overlapping", 2, 10)[:500]
    seconds_of = {"thorough": 0.01}
    for method in methods:
        measure_one(method, points, 10, 0, seconds_of, {})


def choose(arguments: argparse.Namespace) -> list[Problem]:
    problems = all_problems(data_seed=arguments.data_seed, large=arguments.large)
    if arguments.half:
        problems = problems[HALVES.index(arguments.half) :: 2]
    if arguments.quick:
        problems = [problem for problem in problems if problem.name in QUICK]
    patterns = arguments.problems.split(",") if arguments.problems else ["*"]
    for pattern in patterns:
        if not fnmatch.filter([problem.name for problem in problems], pattern):
            raise SystemExit(
                f"--problems: nothing is called {pattern!r}; names look like overlapping-2d/50, "
                f"and like iris/3 where {DATA_VARIABLE} is set"
            )
    return [p for p in problems if any(fnmatch.fnmatch(p.name, pattern) for pattern in patterns)]


def choose_methods(arguments: argparse.Namespace) -> list[str]:
    offered = method_names()
    if arguments.methods is None:
        return [name for name in offered if name not in ON_REQUEST]
    chosen = arguments.methods.split(",")
    if unknown := sorted(set(chosen) - set(offered)):
        raise SystemExit(f"--methods: {', '.join(unknown)} not among {', '.join(offered)}")
    return chosen


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a dozen problems, one seed")
    parser.add_argument("--half", choices=HALVES, help="every second problem")
    parser.add_argument("--problems", help="names or patterns, separated by commas")
    parser.add_argument(
        "--method", help="only compare this module:Class with PowerKMeans, and store nothing"
    )
    parser.add_argument("--seconds", type=float, help="with --method: begin no problem after these")
    parser.add_argument("--methods", help=f"of {', '.join(method_names())}")
    parser.add_argument("--seeds", type=int, help="how many (3; with --quick 1)")
    parser.add_argument("--data-seed", type=int, default=0, help="another draw of generated data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--jobs", type=int, default=1, help="problems at once, on cores of their own"
    )
    parser.add_argument("--large", action="store_true", help="with birch1 too")
    parser.add_argument("--resume", action="store_true", help="keep what is stored already")
    parser.add_argument(
        "--redo-disturbed",
        action="store_true",
        help="with --resume: measure problems again beside which other processes were busy",
    )
    parser.add_argument("--name", help="of the stored file (quality; with --quick quality-quick)")
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or (1 if arguments.quick else 3)
    kind = "-quick" if arguments.quick else f"-{arguments.half}" if arguments.half else ""
    arguments.name = arguments.name or f"quality{kind}"
    return arguments


def run(arguments: argparse.Namespace) -> None:
    methods = build_methods(choose_methods(arguments), arguments.threads)
    settings = {
        "seeds": list(range(arguments.seeds)),
        "threads": arguments.threads,
        "data seed": arguments.data_seed,
        "jobs": arguments.jobs,
    }
    figures = (
        resumed(arguments.name, settings, methods) if arguments.resume else new_figures(settings)
    )
    if arguments.redo_disturbed:
        forget_disturbed(figures)
    figures["runs"].append(shlex.join(["python", "-m", "benchmarks.quality", *sys.argv[1:]]))
    figures["methods"] |= {m.name: {"label": m.label, "made with": m.made_with} for m in methods}
    for problem, part, seconds in measured_parts(arguments, figures):
        for key in ("problems", "cells"):
            figures[key] |= part[key]
        for method, counts in part["warnings"].items():
            known = Counter(figures["warnings"].get(method, {}))
            figures["warnings"][method] = known + Counter(counts)
        write(arguments.name, figures)
        print(f"{problem.name:22} {seconds:6.1f} s", flush=True)


def measured_parts(
    arguments: argparse.Namespace, figures: dict
) -> Iterator[tuple[Problem, dict, float]]:
    """Each problem with its problems, cells and warnings of the figures, as soon as it is measured.

    Several problems at once are measured by as many processes, each on processors of its own.
    """
    problems = choose(arguments)
    parts: list[dict] = [{"warnings": {}} for _ in problems]
    for problem, part in zip(problems, parts, strict=True):
        for key in ("problems", "cells"):
            part[key] = {k: v for k, v in figures[key].items() if k == problem.name}
    if arguments.jobs == 1:
        with threadpoolctl.threadpool_limits(arguments.threads):
            prepare(arguments)
            for index, problem in enumerate(problems):
                yield problem, *measured_part(index, parts[index])
        return
    processes = multiprocessing.get_context("spawn")
    prepared = (arguments, processes.Value("i", 0))
    with ProcessPoolExecutor(arguments.jobs, processes, prepare_apart, prepared) as executor:
        asked = {executor.submit(measured_part, *one): one[0] for one in enumerate(parts)}
        for ended in as_completed(asked):
            yield problems[asked[ended]], *ended.result()


# What each process has made for itself: problems and methods hold functions.
mine = argparse.Namespace()


def prepare(arguments: argparse.Namespace) -> None:
    mine.problems = choose(arguments)
    mine.methods = build_methods(choose_methods(arguments), arguments.threads)
    mine.seeds = range(arguments.seeds)
    warm_up(mine.methods)


def prepare_apart(arguments: argparse.Namespace, n_prepared: Any) -> None:
    """Take processors that no other process takes, far from theirs, since neighbors share cores."""
    with n_prepared.get_lock():
        place, n_prepared.value = n_prepared.value, n_prepared.value + 1
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < arguments.jobs * arguments.threads:
        raise SystemExit(f"--jobs {arguments.jobs}: there are {len(usable)} processors")
    usable = usable[place * (len(usable) // arguments.jobs) :][: arguments.threads]
    os.sched_setaffinity(0, usable)
    threadpoolctl.threadpool_limits(arguments.threads)
    prepare(arguments)


def measured_part(index: int, part: dict) -> tuple[dict, float]:
    began = time.perf_counter()
    measure(mine.problems[index], mine.methods, mine.seeds, part)
    return part, time.perf_counter() - began


def compare(arguments: argparse.Namespace) -> None:
    """Print the excess over the lowest known, and the seconds, of any class and of ours."""
    names = ["balanced", "sklearn-10"]
    methods = [any_class(arguments.method), *build_methods(names, arguments.threads)]
    problems = choose(arguments)
    order = np.random.default_rng(2026).permutation(len(problems))
    figures: dict[str, dict] = {"problems": {}, "cells": {}}
    print(f"{'problem':24}" + "".join(f"{method.name[:20]:>22}" for method in methods))
    with threadpoolctl.threadpool_limits(arguments.threads):
        warm_up(methods)
        began = time.perf_counter()
        for problem in (problems[place] for place in order):
            if arguments.seconds and time.perf_counter() - began > arguments.seconds:
                break
            points = problem.load()
            figures["problems"][problem.name] = described(problem, points)
            cells = {
                method.name: {"0": measure_one(method, points, problem.n_clusters, 0, {}, {})}
                for method in in_turn(methods, problem, 0)
            }
            figures["cells"][problem.name] = cells
            record = Record(figures["problems"], figures["cells"])
            print(f"{problem.name:24}" + "".join(cell_of(record, m, problem) for m in methods))
    for line in sorted(summary(record), key=lambda line: line["mean excess %"]):
        print(
            f"{line['method']}: mean excess {line['mean excess %']:.3f} %, worst "
            f"{line['worst excess %']:.2f} %, {line['seconds']:.1f} s for {line['problems']} of "
            f"{len(figures['problems'])} problems"
        )


def cell_of(record: Record, method: Method, problem: Problem) -> str:
    cell = record.cells[problem.name][method.name]["0"]
    if "error" in cell:
        return cell["error"][:20].rjust(22)
    excess = 100 * record.excess[method.name][problem.name]
    return f"+{excess:.3f} %, {cell['seconds']:.2f} s".rjust(22)


def main() -> None:
    arguments = parse()
    if arguments.method:
        compare(arguments)
        return
    if not (arguments.report or arguments.page):
        run(arguments)
    stored = machine.read(arguments.name, "quality")
    print("\n" + as_page(stored))
    if arguments.page:
        PAGE.write(as_page(stored))
        PAGE_OF_STEPS.write(table_of_steps(stored))
    print(f"\n{PAGE.path if arguments.page else machine.stored_at(arguments.name)}")


if __name__ == "__main__":
    main()
