"""Damaged checkpoints: a fit that resumes ends with the same bits, or refuses in words."""

import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from powermeans import KMeans, PowerKMeans, open_data
from powermeans.methods import FuzzyCMeans
from powermeans.scale import checkpoint
from powermeans.scale.checkpoint import CheckpointError
from powermeans.scale.records import HEAD, record
from tests.attacks.models import with_bytes_changed
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

# Each has a checkpoint of its own; the first two differ in a parameter alone.
FITS: list[tuple[Callable[[], Any], int, int]] = [
    (lambda: PowerKMeans(3, random_state=0), 0, 40),
    (lambda: PowerKMeans(3, random_state=1), 0, 40),
    (lambda: PowerKMeans(3, divergence="cosine", effort="none", random_state=0), 0, 40),
    (lambda: KMeans(3, init="random", n_init=3, random_state=0), 0, 40),
    (lambda: FuzzyCMeans(3, random_state=0), 1, 40),
    (lambda: KMeans(3, init="random", n_init=3, random_state=0), 0, 50),
]


def points_of(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(120, 3)) + 4 * np.eye(3)[np.arange(120) % 3]


def fitted(number: int, path: Path | None) -> tuple[bytes, bytes, float]:
    make, seed, rows = FITS[number]
    data = open_data(points_of(seed), rows_per_part=rows, checkpoint=path, checkpoint_seconds=0.0)
    model = make()
    if "n_threads" in model.get_params():
        model.set_params(n_threads=1)
    model.fit(data)
    return model.cluster_centers_.tobytes(), model.history_.inertia.tobytes(), model.inertia_


def records_of(content: bytes) -> list[bytes]:
    """Return the whole records of a checkpoint, with their heads."""
    at, records = len(checkpoint._MAGIC), []
    while at + HEAD.size <= len(content):
        end = at + HEAD.size + HEAD.unpack_from(content, at)[0]
        if end > len(content):
            break
        records.append(content[at:end])
        at = end
    return records


def written(records: list[bytes]) -> bytes:
    return checkpoint._MAGIC + b"".join(records)


def mixed(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Put records of another checkpoint in, or these in another order."""
    records, strangers = records_of(content), records_of(other)
    at = rng.randrange(len(records))
    match rng.randrange(4):
        case 0:
            records[at:] = strangers[at:]
        case 1:
            records[at] = rng.choice(strangers)
        case 2:
            rng.shuffle(records)
        case 3:
            del records[at]
    return written(records)


def forged(content: bytes, rng: random.Random) -> bytes:
    """Change the bytes of a record, and write the checksum of what it has become."""
    records = records_of(content)
    at, n_head = rng.randrange(len(records)), HEAD.size
    contents = with_bytes_changed(records[at][n_head:], rng)
    before = zlib.crc32(records[0][n_head:]) if at else 0
    records[at] = record(contents, before)
    return written(records)


def prepare(folder: Path) -> Try:
    path = folder / "state"
    plain = [fitted(number, None) for number in range(len(FITS))]
    whole = []
    for number, expected in enumerate(plain):
        path.unlink(missing_ok=True)
        if fitted(number, path) != expected:
            raise Failure(f"a checkpoint changes the bits of fit {number}")
        whole.append(path.read_bytes())

    def one(rng: random.Random) -> str:
        number, other = rng.randrange(len(FITS)), rng.randrange(len(FITS))
        kind = rng.choice(["cut", "damaged", "mixed", "forged", "other", "longer"])
        content = whole[number]
        damaged = {
            "cut": lambda: content[: rng.randrange(len(content) + 1)],
            "damaged": lambda: with_bytes_changed(content, rng),
            "mixed": lambda: mixed(content, whole[other], rng),
            "forged": lambda: forged(content, rng),
            "other": lambda: whole[other],
            "longer": lambda: content + rng.randbytes(rng.choice([1, 12, 300])),
        }[kind]()
        path.write_bytes(damaged)
        try:
            found = fitted(number, path)
        except CheckpointError:
            return refusal(number, path, damaged)
        # A checksum that is right vouches for the record: nobody can tell that it was forged.
        if found != plain[number] and kind != "forged":
            raise Failure(f"a checkpoint that is {kind} changes the bits of fit {number}")
        return RIGHT

    def refusal(number: int, path: Path, damaged: bytes) -> str:
        if path.read_bytes() != damaged:
            raise Failure("a checkpoint that is refused is changed")
        path.unlink()
        if fitted(number, path) != plain[number]:
            raise Failure(f"fit {number} has other bits after a refusal")
        return REFUSED

    return one


ATTACK = Attack(prepare, seconds=10.0, megabytes=100.0)
