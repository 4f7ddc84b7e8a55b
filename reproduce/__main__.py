"""Run items by name: see `python -m reproduce --help`."""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path

import threadpoolctl

from powermeans.errors import MissingDataError, WrongDataError
from reproduce import catalog
from reproduce.as_text import findings_as_text
from reproduce.results import mark_left_over
from reproduce.running import Code, Folders, Pace, run

_MOST_THREADS = 2
_FAILED, _WRONG_USE, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and give the exit code."""
    asked = parsed(arguments)
    if asked.list:
        return show_all()
    names, wrong = checked(asked.names)
    if wrong:
        print(*(f"error: {advice}" for advice in wrong), sep="\n", file=sys.stderr)
        return _WRONG_USE
    if asked.all:
        names = catalog.names()
    if not names:
        print("error: name an item, or --all; --list shows them", file=sys.stderr)
        return _WRONG_USE
    try:
        Folders(asked.cache, asked.results).check(is_quick=asked.quick)
    except OSError as error:
        print(f"error: nothing can be written: {error}", file=sys.stderr)
        return _WRONG_USE
    logging.basicConfig(format="%(message)s")
    os.environ.setdefault("MPLBACKEND", "Agg")
    with threadpoolctl.threadpool_limits(_MOST_THREADS):
        return run_all(dict.fromkeys(names), asked)


def checked(asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of items, and what is wrong with those that are none."""
    names, wrong = [], []
    for name in asked:
        try:
            names.append(catalog.checked(name))
        except catalog.UnknownItemError as error:
            wrong.append(str(error))
    return names, wrong


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce",
        description="Compute the tables, figures and claims of the sources, and compare.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which items; see --list")
    parser.add_argument("--all", action="store_true", help="all items")
    parser.add_argument("--list", action="store_true", help="say which items there are")
    parser.add_argument("--quick", action="store_true", help="a small part of each, in seconds")
    parser.add_argument("--fresh", action="store_true", help="compute finished cells again")
    parser.add_argument(
        "--stored", action="store_true", help="take the rows beside the results as finished cells"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        default=math.inf,
        help="begin no cell after so many minutes, and show what is finished",
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results go")
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", default=Folders().cache, help="where cells are kept"
    )
    return parser.parse_args(arguments)


def show_all() -> int:
    """Print the names of all items and what they are about."""
    names = catalog.names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:{width}}  {catalog.module_of(name).TITLE}")
    return 0


def run_all(names: Collection[str], asked: argparse.Namespace) -> int:
    """Run items one after another; one that fails does not keep the others from running.

    An item without its data is not tested, which is no failure.

    All are imported before the first is run, so that what is edited meanwhile changes none.
    """
    failed, untested = [], []
    codes = codes_of(names)
    for name in names:
        try:
            run_one(name, codes.get(name) or Code.on_disk(name), asked)
        except BrokenPipeError:
            raise
        except MissingDataError as error:
            print(f"{name} is not tested: {error}", file=sys.stderr)
            untested.append(name)
            mark(name, f"its data were missing: {error}", asked)
        except WrongDataError as error:
            print(f"error: {name} was not run: {error}", file=sys.stderr)
            failed.append(name)
            mark(name, f"it was not run: {error}", asked)
        except KeyboardInterrupt:
            print(
                f"\ninterrupted: finished cells of {name} are kept, and the same command goes on "
                "from there",
                file=sys.stderr,
            )
            return _INTERRUPTED
        except Exception:
            traceback.print_exc()
            print(f"error: {name} failed, see above", file=sys.stderr)
            failed.append(name)
            mark(name, "it failed", asked)
    if untested:
        print(f"not tested, as data are missing: {', '.join(untested)}", file=sys.stderr)
    if failed:
        print(f"error: without results: {', '.join(failed)}", file=sys.stderr)
    return _FAILED if failed else 0


def codes_of(names: Collection[str]) -> dict[str, Code]:
    """The code of items as it is on disk; they are imported then. Broken ones are left out."""
    codes = {}
    for name in names:
        with contextlib.suppress(Exception):
            codes[name] = Code.on_disk(name)
    for name in names:
        with contextlib.suppress(Exception):
            catalog.module_of(name)
    return codes


def mark(name: str, why: str, asked: argparse.Namespace) -> None:
    """Say in older results of an item that they are not of this run."""
    folder = Folders(asked.cache, asked.results).written(is_quick=asked.quick)
    mark_left_over(folder / f"{name}.json", why)


def run_one(name: str, code: Code, asked: argparse.Namespace) -> None:
    """Run an item and print what it shows."""
    folders = Folders(asked.cache, asked.results)
    module = catalog.module_of(name)
    pace = Pace(is_fresh=asked.fresh, takes_stored=asked.stored, seconds=60 * asked.minutes)
    report = run(name, module, code, folders, is_quick=asked.quick, pace=pace)
    print(f"\n== {report.title} ==\n\n{findings_as_text(report.findings)}\n")
    print(f"written to {folders.written(is_quick=asked.quick)}")


def as_program() -> int:
    """Run as a command, which ends in silence once nobody reads what it says."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return code


if __name__ == "__main__":
    sys.exit(as_program())
