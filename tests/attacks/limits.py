"""Low memory, full disks and folders that nobody may write to, at the command line.

A command says a sentence and leaves the files that were there, or does its work.
"""

import os
import random
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd

from powermeans import load
from tests.attacks.running import FORK, MEGABYTE, REFUSED, RIGHT, Attack, Failure, Try
from tests.attacks.tables import fault_of, told

SAVED = b"what was saved before\n"
NOBODY = 65534
N_ROWS = 3000
OUTPUTS = {
    "--output": [".csv", ".npy", ".parquet", ".feather", ".txt", ".xlsx", ".jsonl"],
    "--model": [".pm"],
    "--report": [".html"],
    "--checkpoint": [""],
}


def in_a_child(act: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Run something in a forked process, whose limits end with it."""
    here, there = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: there.send(act()))
    process.start()
    there.close()
    try:
        ended, words = here.recv()
    except EOFError:
        process.join()
        raise Failure(f"the process ends with {process.exitcode}") from None
    process.join()
    return int(ended), str(words)


def lower(what: int, to: int) -> None:
    resource.setrlimit(what, (to, resource.getrlimit(what)[1]))


def with_little_memory(rng: random.Random) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    room = int(MEGABYTE * rng.choice([0.1, 1, 3, 10, 30, 60]) * rng.uniform(0.5, 1.5))
    lower(resource.RLIMIT_AS, used + room)


def with_short_files(rng: random.Random) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = rng.choice([0, 1, 100, 4096, 20_000, 100_000, 400_000])
    lower(resource.RLIMIT_FSIZE, most)


def with_few_files(rng: random.Random) -> None:
    os.close(next_number := os.dup(1))
    lower(resource.RLIMIT_NOFILE, next_number + rng.randrange(0, 8))


def without_rights(folder: Path) -> Callable[[random.Random], None]:
    def limit(rng: random.Random) -> None:
        folder.chmod(0o555)
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

    return limit


def command_of(table: Path, outputs: dict[str, Path], rng: random.Random) -> list[str]:
    command = ["fit", str(table), "-k", "3", "--quiet", "--effort", "fast", "--threads", "1"]
    command += [f"--{rng.choice(['json', 'verbose'])}"] if rng.random() < 0.5 else []
    command += [] if outputs else ["--json"]  # which writes no files by itself
    for option, path in outputs.items():
        command += [option, str(path)]
    return command


def points_in(folder: Path) -> Path:
    table = folder / "points.csv"
    points = np.random.default_rng(0).normal(size=(N_ROWS, 4)).round(4)
    pd.DataFrame(points, columns=list("abcd")).to_csv(table, index=False)
    table.chmod(0o644)
    return table


def prepare(folder: Path) -> Try:
    folder.chmod(0o755)
    table, place = points_in(folder), folder / "place"
    # What is imported on the way is imported now: no limit is for imports.
    for option, suffixes in OUTPUTS.items():
        for suffix in suffixes:
            code, said = told(["fit", str(table), "-k", "3", option, str(folder / f"f{suffix}")])
            if code:
                raise Failure(f"without limits, {option} {suffix} ends with {code}: {said}")
            (folder / f"f{suffix}").unlink()

    def one(rng: random.Random) -> str:
        place.mkdir()
        try:
            return attacked(table, place, rng)
        finally:
            place.chmod(0o755)
            shutil.rmtree(place)

    return one


def attacked(table: Path, place: Path, rng: random.Random) -> str:
    """Run a command under one limit, and look at its words and at the files that it leaves."""
    outputs = {
        option: place / f"{number}{rng.choice(OUTPUTS[option])}"
        for number, option in enumerate(OUTPUTS)
        if rng.random() < 0.4
    }
    # A file that is no checkpoint would be refused in any case.
    had_before = [path for path in outputs.values() if path.suffix and rng.random() < 0.5]
    for path in had_before:
        path.write_bytes(SAVED)
        path.chmod(0o644)
    limits = {
        "little memory": with_little_memory,
        "short files": with_short_files,
        "few files": with_few_files,
        "a folder without rights": without_rights(place),
    }
    name = rng.choice(list(limits))
    command = command_of(table, outputs, rng)

    def act() -> tuple[int, str]:
        limits[name](rng)
        return told(command)

    code, said = in_a_child(act)
    if (fault := fault_of(code, said)) is not None:
        raise Failure(f"with {name}: {fault} ({' '.join(command)})")
    for option, path in outputs.items():
        check_file(option, path, had_before=path in had_before, name=name, is_done=code == 0)
    strays = [path.name for path in place.iterdir() if path not in outputs.values()]
    if strays:
        raise Failure(f"with {name}: {strays} are left behind")
    return REFUSED if code else RIGHT


def check_file(option: str, path: Path, *, had_before: bool, name: str, is_done: bool) -> None:
    """Raise unless a file is the one from before, or is complete."""
    if option == "--checkpoint":
        return
    if not path.exists():
        if had_before or is_done:
            raise Failure(f"with {name}: {option} {path.name} is gone, or was not written")
        return
    content = path.read_bytes()
    if content == SAVED:
        if not had_before or is_done:
            raise Failure(f"with {name}: {option} {path.name} was not written")
        return
    if not is_complete(path, content):
        raise Failure(f"with {name}: {option} {path.name} is left incomplete")


def is_complete(path: Path, content: bytes) -> bool:
    match path.suffix:
        case ".xlsx":
            return int(openpyxl.load_workbook(path).active.max_row) == N_ROWS + 1
        case ".csv" | ".txt" | ".jsonl":
            return content.endswith(b"\n") and content.count(b"\n") >= N_ROWS
        case ".html":
            return content.rstrip().endswith(b"</html>")
        case ".npy":
            return np.load(path).shape == (N_ROWS,)
        case ".parquet" | ".feather" as kind:
            return len(getattr(pd, f"read_{kind[1:]}")(path)) == N_ROWS
    model = load(path)
    last = model[-1] if hasattr(model, "steps") else model
    return last.cluster_centers_.shape == (3, 4)


ATTACK = Attack(prepare, seconds=20.0, megabytes=500.0)
