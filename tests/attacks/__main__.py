"""Attack the package, print a table, and fail where a try did."""

import argparse
import datetime
import os
import random
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path

from tests.attacks import kills, relations
from tests.attacks.running import FAILED, Tally, attempt, run
from tests.tested_module import NAMES_CORE, load_core

OF_MODULES = ["numbers", "models", "tables", "archives", "limits", "databases", "surroundings"]
MIXED = {name: import_module(f"tests.attacks.{name}").ATTACK for name in OF_MODULES}
MIXED |= relations.ATTACKS
ATTACKS = MIXED | kills.ATTACKS  # whose tries take long
HEAD = ["class", "tries", "harmless", "refused", "known", "failures"]
HEAD += ["slowest s", "its try", "largest MB", "its try"]


def row_of(tally: Tally) -> list[str]:
    slowest, largest = tally.slowest, tally.largest
    cells = (tally.name, sum(tally.counts.values()), *tally.counts.values())
    used = (f"{slowest.seconds:.2f}", slowest.seed, f"{largest.megabytes:.0f}", largest.seed)
    return [str(cell) for cell in (*cells, *used)]


def tally_of(name: str, arguments: argparse.Namespace, seconds: float) -> Tally:
    tally, asked = Tally(name), (arguments.jobs, arguments.tries)
    for outcome in run(name, ATTACKS[name], arguments.seed, seconds, *asked):
        tally.add(outcome)
        if outcome.verdict == FAILED and len(tally.failures) <= 20:
            print(f"FAILED python -m tests.attacks --try {name}:{outcome.seed}")
            print(f"  {outcome.words}", flush=True)
    return tally


def again(which: str) -> int:
    """Make one try in this process, and let its error be seen whole."""
    name, seed = which.split(":")
    attack = ATTACKS[name]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        one = attack.prepared(Path(folder))
        outcome = attempt(name, attack, one, int(seed))
        print(f"{outcome.verdict} in {outcome.seconds:.2f} s, {outcome.megabytes:.0f} MB")
        if outcome.verdict == FAILED:
            print(outcome.words)
            one(random.Random(f"{name}:{seed}"))
    return int(outcome.verdict == FAILED)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="in all")
    parser.add_argument("--seed", type=int, default=int(f"{datetime.date.today():%Y%m%d}"))
    parser.add_argument("--classes", nargs="+", choices=ATTACKS, default=[*MIXED])
    parser.add_argument("--tries", type=int, default=sys.maxsize, help="at most, of each class")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--try", dest="which", metavar="CLASS:SEED", help="make one try again")
    return parser.parse_args()


def main() -> int:
    arguments = parsed()
    if tested := os.environ.get(NAMES_CORE):
        load_core(tested)
    if arguments.which is not None:
        return again(arguments.which)
    print(f"seed {arguments.seed}, {arguments.seconds:g} s, {arguments.jobs} processes", flush=True)
    shares = {name: ATTACKS[name].share for name in arguments.classes}
    began, tallies = time.monotonic(), []
    for name, share in shares.items():
        tallies.append(tally_of(name, arguments, arguments.seconds * share / sum(shares.values())))
    for row in [HEAD, *map(row_of, tallies)]:
        print("".join(cell.rjust(13) for cell in row))
    for tally in tallies:
        for reason, n_times in tally.known.items():
            print(f"known in {tally.name}, {n_times} times: {reason}")
    n_failures = sum(len(tally.failures) for tally in tallies)
    print(f"{n_failures} failures in {time.monotonic() - began:.0f} s, seed {arguments.seed}")
    return int(n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
