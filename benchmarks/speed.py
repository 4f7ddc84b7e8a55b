"""Speed beside the peers, beside a former commit, and beside what the machine can do at most.

Contestants take turns with the same number of threads; figures are medians of several rounds. The
peers are called here; powermeans answers from a process of its own, and so does its former code.
The parts:

- ceilings: multiply-adds and bytes a second, by benchmarks/ceilings.cpp
- lloyd: seconds for an iteration of Lloyd's algorithm, in fits of a fixed number of iterations
- power: sweeps at fixed powers beside a hard sweep that takes no shortcuts
- shares: of the distances, how many are computed in the first sweep and in a fit
- seeding: greedy k-means++
- fits: whole fits as users ask for them
- threads: several threads beside one
- memory: how far a fit rises above its input

`make bench-speed` compiles the ceilings and runs it in the environment of the peers. Nothing else
should run meanwhile. `make bench-speed FORMER=v0.1` builds that commit and measures it too; the
default is the commit whose figures are stored. Parts that are not asked for stay as they were
stored.
"""

from __future__ import annotations

import argparse
import datetime
import time
import warnings
from collections.abc import Iterable, Iterator

import threadpoolctl

from benchmarks import former, machine
from benchmarks.apart import Code
from benchmarks.bystanders import Bystanders
from benchmarks.lloyd_peers import OURS, runners
from benchmarks.speed_parts import PARTS, Settings
from benchmarks.speed_report import PAGE, TARGETS_PAGE, as_page, as_report, as_targets_page
from benchmarks.speed_targets import FORMER, target_lines


def with_bystanders(cells: Iterator[dict], codes: Iterable[Code]) -> Iterator[dict]:
    """The cells, each with the processors that others used while it was measured."""
    while True:
        bystanders = Bystanders(code.pid for code in codes)
        figures = next(cells, None)
        if figures is None:
            return
        yield {**figures, "bystanders": bystanders.processors()}


def run_part(name: str, settings: Settings, figures: dict) -> None:
    """Measure a part anew, storing after each cell."""
    cells: list[dict] = []
    part = figures["parts"][name] = {
        "date": datetime.date.today().isoformat(),
        "command": machine.command(),
        "made with": figures["made with"],
        "cells": cells,
    }
    began = time.perf_counter()
    for measured in with_bystanders(PARTS[name](settings), settings.codes.values()):
        cells.append(measured)
        part["minutes"] = (time.perf_counter() - began) / 60
        machine.store(figures["name"], figures | {"targets": target_lines(figures)})
        where = measured.get("point", {}).get("name", "")
        print(f"{time.perf_counter() - began:6.0f} s  {name:9} {where}", flush=True)


def begun(arguments: argparse.Namespace) -> dict:
    """Parts that are stored already, on this machine and with these settings."""
    settings = {"threads": arguments.threads, "rounds": arguments.rounds}
    stored = None if arguments.anew else stored_figures(arguments.name)
    with_all = set(arguments.parts) == set(PARTS)
    fresh = {
        "name": arguments.name,
        "commit": former.commit_if_known("HEAD"),
        "settings": settings | {"former": former_commit(arguments, stored, with_all)},
        "parts": {},
    }
    if stored is None or with_all:
        return fresh
    then = {"former": None, **stored["settings"]}
    now = fresh["settings"] | {"processor": machine.processor()}
    if then != now:
        raise SystemExit(
            f"what is stored was measured with {then}, and not with {now}: run all parts anew, or "
            f"pass --anew or another --name than {arguments.name}"
        )
    return fresh | {"parts": stored["parts"]}


def stored_figures(name: str) -> dict | None:
    """What an earlier run stored, the processor among its settings."""
    if not machine.stored_at(name).is_file():
        return None
    stored = machine.read(name, "speed")
    figures: dict = stored["figures"]
    return figures | {"settings": figures["settings"] | {"processor": stored["processor"]}}


def former_commit(arguments: argparse.Namespace, stored: dict | None, with_all: bool) -> str | None:
    """The commit to measure besides: the one asked for, or the one whose figures are replaced."""
    if arguments.former == "none":
        return None
    if arguments.former:
        return former.commit_of(arguments.former)
    if stored is None:
        return None
    return stored.get("commit") if with_all else stored["settings"].get("former")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, in less than a minute")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="(3; with --quick 1)")
    parser.add_argument("--name", help="of the stored file (speed; with --quick speed-quick)")
    parser.add_argument("--former", help="a commit to measure beside this code, or none")
    parser.add_argument("--anew", action="store_true", help="forget the parts that are stored")
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.name = arguments.name or ("speed-quick" if arguments.quick else "speed")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    figures = begun(arguments)
    commit = figures["settings"]["former"]
    codes = {"": Code()} | ({FORMER: Code(former.installed(commit))} if commit else {})
    settings = Settings(arguments.threads, arguments.rounds, arguments.quick, codes)
    figures["made with"] = codes[""].made_with
    figures["methods"] = methods(settings)
    with threadpoolctl.threadpool_limits(settings.n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits are cut short on purpose
        for name in arguments.parts:
            run_part(name, settings, figures)
    for code in codes.values():
        code.end()


def methods(settings: Settings) -> dict[str, dict]:
    ours = {
        before + OURS: {"label": f"{before}powermeans KMeans", "made with": code.made_with}
        for before, code in settings.codes.items()
    }
    return ours | {
        runner.name: {"label": runner.label, "made with": runner.made_with}
        for runner in runners(settings.n_threads)
    }


def main() -> None:
    arguments = parse()
    if not (arguments.report or arguments.page):
        run(arguments)
    stored = machine.read(arguments.name, "speed")
    print("\n" + as_report(stored["figures"]))
    if arguments.page:
        PAGE.write(as_page(stored))
        TARGETS_PAGE.write(as_targets_page(stored))
        print(f"\n{PAGE.path}\n{TARGETS_PAGE.path}")
    else:
        print(f"\n{machine.stored_at(arguments.name)}")


if __name__ == "__main__":
    main()
