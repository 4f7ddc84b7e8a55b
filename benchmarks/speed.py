"""Speed beside the peers and beside what the machine can do at most.

Contestants take turns in one process with the same number of threads; figures are medians of
several rounds. The parts:

- ceilings: multiply-adds and bytes a second, by benchmarks/ceilings.cpp
- lloyd: seconds for an iteration of Lloyd's algorithm, in fits of a fixed number of iterations
- power: sweeps at fixed powers beside a hard sweep that takes no shortcuts
- seeding: greedy k-means++
- fits: whole fits as users ask for them
- threads: several threads beside one
- memory: how far a fit rises above its input

`make bench-speed` compiles the ceilings and runs it in the environment of the peers. Nothing else
should run meanwhile. Parts that are not asked for stay as they were stored.
"""

from __future__ import annotations

import argparse
import datetime
import time
import warnings
from collections.abc import Iterator

import threadpoolctl

from benchmarks import machine
from benchmarks.bystanders import Bystanders
from benchmarks.lloyd_peers import runners
from benchmarks.peers import digest
from benchmarks.speed_parts import PARTS, Settings
from benchmarks.speed_report import PAGE, as_page, as_report
from benchmarks.speed_targets import target_lines


def with_bystanders(cells: Iterator[dict]) -> Iterator[dict]:
    """The cells, each with the processors that others used while it was measured."""
    while True:
        bystanders = Bystanders()
        figures = next(cells, None)
        if figures is None:
            return
        yield {**figures, "bystanders": bystanders.processors()}


def run_part(name: str, settings: Settings, figures: dict) -> None:
    """Measure a part anew, storing after each cell."""
    cells: list[dict] = []
    figures["parts"][name] = {
        "date": datetime.date.today().isoformat(),
        "command": machine.command(),
        "made with": figures["made with"],
        "cells": cells,
    }
    began = time.perf_counter()
    for measured in with_bystanders(PARTS[name](settings)):
        cells.append(measured)
        machine.store(figures["name"], figures | {"targets": target_lines(figures)})
        where = measured.get("point", {}).get("name", "")
        print(f"{time.perf_counter() - began:6.0f} s  {name:9} {where}", flush=True)


def begun(arguments: argparse.Namespace) -> dict:
    """Parts that are stored already, on this machine and with these settings."""
    settings = {"threads": arguments.threads, "rounds": arguments.rounds}
    fresh = {
        "name": arguments.name,
        "made with": digest("powermeans"),
        "settings": settings,
        "parts": {},
    }
    if not machine.stored_at(arguments.name).is_file() or set(arguments.parts) == set(PARTS):
        return fresh
    stored = machine.read(arguments.name, "speed")
    then = {**stored["figures"]["settings"], "processor": stored["processor"]}
    now = {**settings, "processor": machine.processor()}
    if then != now:
        raise SystemExit(
            f"what is stored was measured with {then}, and not with {now}: run all parts anew, or "
            f"pass another --name than {arguments.name}"
        )
    return fresh | {"parts": stored["figures"]["parts"]}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, in less than a minute")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="(3; with --quick 1)")
    parser.add_argument("--name", help="of the stored file (speed; with --quick speed-quick)")
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.name = arguments.name or ("speed-quick" if arguments.quick else "speed")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    figures = begun(arguments)
    settings = Settings(arguments.threads, arguments.rounds, arguments.quick)
    figures["methods"] = {
        runner.name: {"label": runner.label, "made with": runner.made_with}
        for runner in runners(settings.n_threads)
    }
    with threadpoolctl.threadpool_limits(settings.n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits are cut short on purpose
        for name in arguments.parts:
            run_part(name, settings, figures)


def main() -> None:
    arguments = parse()
    if not (arguments.report or arguments.page):
        run(arguments)
    stored = machine.read(arguments.name, "speed")
    print("\n" + as_report(stored["figures"]))
    if arguments.page:
        PAGE.write(as_page(stored))
    print(f"\n{PAGE.path if arguments.page else machine.stored_at(arguments.name)}")


if __name__ == "__main__":
    main()
