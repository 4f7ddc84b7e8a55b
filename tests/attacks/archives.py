"""Damaged and packed files that grow, read in Python: a refusal that names the file, or rows."""

import bz2
import gzip
import lzma
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from powermeans import PowerKMeans, read_frame
from powermeans.errors import FewRowsError
from tests.attacks import models, tables
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

PACKERS: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
NAMES = ["a.csv", "../a.csv", "/etc/a.csv", "b/a.csv", "a.zip", "a.csv/", ".a", "a\0b.csv", "a.npy"]
UNITS = [b"\0", b",", b"1,2\n", b'{"a": 1}\n', b'{"a":', b"[", b'"', b"x", b"<a>"]


def packed_in_arrow(folder: Path) -> list[bytes]:
    """Return files of Arrow, Parquet and DuckDB, whose columns are packed in several ways."""
    table, found = pa.Table.from_pandas(tables.frame()), list[bytes]()
    for kind in ("lz4", "zstd"):
        for opens in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = pa.BufferOutputStream()
            how = pa.ipc.IpcWriteOptions(compression=kind)
            with opens(sink, table.schema, options=how) as writer:
                writer.write_table(table)
            found.append(sink.getvalue().to_pybytes())
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression=kind)
        found.append(sink.getvalue().to_pybytes())
    with duckdb.connect(folder / "a.duckdb") as opened:
        opened.execute("create table t as select range as a, 7 * range % 5 as b from range(50)")
    return [*found, (folder / "a.duckdb").read_bytes()]


def in_archive(content: bytes, rng: random.Random) -> bytes:
    """Pack a file once or more often, in archives with other members and sizes too."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        if rng.random() < 0.5:
            content = rng.choice(PACKERS)(content)
            continue
        n_members = rng.choice([1, 1, 1, 2, 3000])
        members = [(rng.choice(NAMES), content)] + [("b.csv", b"")] * (n_members - 1)
        content = models.archive_of(members, [rng.choice([0, 8, 12, 14])])
        if rng.random() < 0.5:
            content = models.with_sizes_changed(content, rng)
    return content


def bomb(rng: random.Random) -> bytes:
    """Return many times the same bytes, packed into few."""
    unit = rng.choice(UNITS)
    whole = unit * (rng.choice([10**5, 3 * 10**7]) // len(unit))
    if rng.random() < 0.3:
        return models.archive_of([("a.csv", b"a,b\n1,2\n" + whole)], [zipfile.ZIP_DEFLATED])
    return gzip.compress(b"a,b\n1,2\n") + gzip.compress(whole, 1) * rng.choice([1, 50])


def prepare(folder: Path) -> Try:
    files = tables.tables(folder) | dict(enumerate(packed_in_arrow(folder)))

    def one(rng: random.Random) -> str:
        suffix = rng.choice(list(files))
        content, damage = files[suffix], rng.randrange(3)
        if damage == 1:
            content = tables.damaged(content, str(suffix), rng)
        content = bomb(rng) if damage == 2 and rng.random() < 0.2 else content
        content = in_archive(content, rng) if rng.random() < 0.5 else content
        content = models.with_bytes_changed(content, rng) if rng.random() < 0.3 else content
        path = folder / f"strange{rng.choice(tables.SUFFIXES)}"
        path.write_bytes(content)
        try:
            read_frame(path)
            PowerKMeans(2, n_init=1, effort="none", random_state=0).fit(path)
        except FewRowsError:
            return REFUSED
        except ValueError as error:
            if path.name not in str(error):
                raise Failure(f"names no file: {error!r:.300}") from None
            return REFUSED
        finally:
            path.unlink()
        return RIGHT

    return one


ATTACK = Attack(prepare, seconds=20.0, megabytes=1500.0, hangs_after=120.0)
