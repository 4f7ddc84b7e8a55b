"""Odd surroundings of a command: streams, encodings, widths, homes, full disks.

It says a sentence or does its work, with the exit code that is documented, and leaves nothing else.
"""

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from powermeans_tables.command import failures
from tests.attacks.limits import check_file, points_in, with_short_files
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try
from tests.attacks.tables import fault_of

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
WRITTEN_BY_ITSELF = ["points-clusters.csv", "points-report.html"]
NOWHERE = "/proc"  # where nobody can make files
SURROUNDINGS = {
    "PYTHONIOENCODING": ["ascii", "cp1252", "cp437", "utf-16", "latin-1:strict", "utf-8"],
    "COLUMNS": ["abc", "", "0", "-5", "1", "20", "400", "²", "9" * 30],
    "LINES": ["x", "0", "1", "²"],
    "TERM": ["dumb", "unknown", "xterm-256color", ""],
    "NO_COLOR": ["1"],
    "LC_ALL": ["C", "POSIX", "C.UTF-8", "tr_TR.UTF-8", "no_SUCH"],
    "PYTHONUTF8": ["0", "1"],
    "HOME": [NOWHERE, "/no/such/home", ""],
    "TMPDIR": [NOWHERE, "/no/such/folder"],
    "MPLCONFIGDIR": [NOWHERE],
}
STREAMS: dict[int, list[str | None]] = {
    0: [None, os.devnull, "/proc/self/mem"],
    1: [None, "/dev/full", "out", "out", "out"],
    2: [None, "/dev/full", "err", "err", "err", "err"],
}
COMMANDS = [
    "--help", "--version", "", "info", "info --json", "fit no.csv -k 2", "fit points.csv -k 0",
    "fit points.csv -k 3 --output rows.csv", "fit points.csv -k 3 -o rows.xlsx --report page.html",
    "fit points.csv -k 3 -o rows.parquet --model m.pm --verbose", "fit - -k 3 -o rows.jsonl",
    "fit points.csv -k 3 --output -", "fit points.csv -k 3 --model m.pm --json",
    "fit points.csv -k 3 --memory-limit 1MB -o rows.csv", "fit points.csv -k 2-4 --effort none",
]  # fmt: skip


def with_streams(streams: dict[int, str | None], rng: random.Random, *, is_full: bool) -> None:
    """In the process of the command, before it runs: give it these streams, and short files."""
    for number, path in streams.items():
        if path is None:
            os.close(number)
        else:
            os.dup2(os.open(path, os.O_RDWR), number)
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    if is_full:
        with_short_files(rng)


def prepare(folder: Path) -> Try:
    points_in(folder)
    return partial(attacked, folder)


def attacked(folder: Path, rng: random.Random) -> str:
    place = folder / "place"
    (place / "temporary").mkdir(parents=True)
    shutil.copy(folder / "points.csv", place)
    try:
        return surrounded(place, rng)
    finally:
        shutil.rmtree(place)


def surrounded(place: Path, rng: random.Random) -> str:
    words = rng.choice(COMMANDS).split()
    told = {name: rng.choice(SURROUNDINGS[name]) for name in SURROUNDINGS if rng.random() < 0.3}
    streams = {number: rng.choice(paths) for number, paths in STREAMS.items()}
    is_full, number = rng.random() < 0.15, rng.choice([0, 0, 0, *ENDING])
    about = f"{told} {streams} {'short files ' * is_full}signal {number} {' '.join(words)}"
    for name in ("out", "err"):
        (place / name).touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "powermeans", *words],
        cwd=place,
        env=os.environ | {"TMPDIR": str(place / "temporary")} | told,
        preexec_fn=lambda: with_streams(streams, rng, is_full=is_full),
    )
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, 3) if number else ATTACK.hangs_after / 2)
        process.send_signal(number)
        code = process.wait(ATTACK.hangs_after / 2)
    except subprocess.TimeoutExpired:
        raise Failure(f"hangs: {about}") from None
    finally:
        process.kill()
    was_ended = number and code in (128 + number, -number)
    encoding = told.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
    said = (place / "err").read_bytes().decode(encoding, "replace")
    hears = streams[2] == "err" and not is_full and bool(words)  # without, it shows its help
    judged = said if hears else said or "nothing is heard"
    if (fault := fault_of(0 if was_ended else code, judged)) is not None:
        raise Failure(f"{fault} ({about})")
    if streams[1] in (None, "/dev/full") and code in (0, failures.PIPE_CLOSED):
        raise Failure(f"what cannot be printed is lost, and nothing told ({about})")
    for option, name in itertools.pairwise(words):
        if option in ("--output", "-o", "--model", "--report") and name != "-":
            is_done = words[1] == "points.csv" and code == 0
            check_file(option, place / name, had_before=False, name=about, is_done=is_done)
    kept = {"temporary", "points.csv", "out", "err", *words, *WRITTEN_BY_ITSELF}
    if strays := {*os.listdir(place)} - kept | {*os.listdir(place / "temporary")}:
        raise Failure(f"{strays} are left behind ({about})")
    return REFUSED if code else RIGHT


ATTACK = Attack(prepare, seconds=60.0, megabytes=500.0, hangs_after=120.0)
