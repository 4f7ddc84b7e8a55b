"""Damaged tables and models, read by the command line: a sentence or a result, nothing else."""

import contextlib
import io
import random
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from powermeans_tables.command import failures, main
from tests.attacks import models
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

CELLS = [
    "", " ", "nan", "NaN", "inf", "-inf", "1e400", "-0", "1,5", "1.234,5", "1'000", "0x10", "١٢",
    "=1+1", '"', '""', '"\n"', "\x00", "\x1b]0;x\x07", "\u202e", "2024-13-01", "3/4/2024", "NULL",
    "1" * 400, "x" * 20_000, "true", "1e", "1_000", "½", "\ufeff1", "€5", "5%", "(3)", "--", "\r",
    "12 kg", "3 g", "18-24", "65+", "Strongly agree", "never", "-999", "99", "Total", "90", "no",
]  # fmt: skip
DELIMITERS = [",", ";", "\t", "|", " ", ",,", "\x1f"]
OPTIONS = [
    [], [], [], ["--missing", "drop"], ["--missing", "observed"], ["--header"], ["--no-header"],
    ["--columns", "1"], ["--columns", "a-b"], ["--weights", "c"], ["--delimiter", ";"],
    ["--decimal", ","], ["--thousands", "."], ["--dates", "days"], ["--encoding", "cp1252"],
    ["--encoding", "no-such"], ["--array", "a0"], ["--scale", "standard"], ["--json"],
    ["--as", "d=category"], ["--as", "a=category,b=ordered"], ["--as", "a=place,b=place"],
    ["--as", "e=date"], ["--keep-codes"], ["--keep-totals"], ["--order", "never<no"],
    ["--missing-values", "-999"], ["--skip-rows", "2"], ["--scale", "minmax"], ["--add", "sure"],
]  # fmt: skip
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32-le"]
SUFFIXES = [
    *(".csv", ".tsv", ".txt", ".npy", ".npz", ".parquet", ".feather", ".arrow", ".csv.gz"),
    *(".xlsx", ".jsonl", ".sqlite", ".zip"),
]


def frame() -> Any:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.round(rng.normal(size=(30, 3)) + 3, 3), columns=["a", "b", "c"])
    words = [["low", "medium", "high"][row % 3] for row in range(30)]
    return table.assign(d=[f"id{row}" for row in range(30)], e=pd.Timestamp("2024-05-01"), f=words)


def tables(folder: Path) -> dict[str, bytes]:
    """Files that are right, by their suffix."""
    table, path = frame(), folder / "table"
    files = {".csv": table.to_csv(index=False).encode()}
    files[".tsv"] = table.to_csv(index=False, sep="\t").encode()
    table.to_parquet(path)
    files[".parquet"] = path.read_bytes()
    table.to_feather(path)
    files[".feather"] = path.read_bytes()
    files[".arrow"] = as_stream(table)
    files[".jsonl"] = table.to_json(orient="records", lines=True, date_format="iso").encode()
    table.to_excel(path.with_suffix(".xlsx"), index=False)
    files[".xlsx"] = path.with_suffix(".xlsx").read_bytes()
    with contextlib.closing(sqlite3.connect(path.with_suffix(".sqlite"))) as opened:
        table.to_sql("whole", opened, index=False)
    files[".sqlite"] = path.with_suffix(".sqlite").read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("whole.csv", files[".csv"])
    files[".zip"] = packed.getvalue()
    numbers = table[["a", "b", "c"]].to_numpy()
    for name, write in ((".npy", np.save), (".npz", np.savez)):
        buffer = io.BytesIO()
        write(buffer, numbers)
        files[name] = buffer.getvalue()
    return files


def as_stream(table: Any) -> bytes:
    import pyarrow as pa

    written, sink = pa.Table.from_pandas(table), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, written.schema) as stream:
        stream.write_table(written)
    return bytes(sink.getvalue())


def with_cells_changed(content: bytes, rng: random.Random) -> bytes:
    """Put strange cells into the text, take lines out or double them, and encode it anew."""
    lines = content.decode().splitlines()
    for _ in range(rng.choice([1, 1, 3, 20])):
        at = rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                del lines[at:]
                lines.append(rng.choice(CELLS))
            case 1:
                lines.insert(at, rng.choice(["", lines[at], "#", ",,,,,,,", '"' * 3]))
            case _:
                cells = lines[at].split(",")
                cells[rng.randrange(len(cells))] = rng.choice(CELLS)
                lines[at] = ",".join(cells)
    text = rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines)
    if rng.random() < 0.3:
        text = text.replace(",", rng.choice(DELIMITERS))
    return text.encode(rng.choice(ENCODINGS), "replace")


def damaged(content: bytes, suffix: str, rng: random.Random) -> bytes:
    if suffix in (".csv", ".tsv", ".jsonl") and rng.random() < 0.7:
        return with_cells_changed(content, rng)
    if suffix == ".npy" and rng.random() < 0.5:
        return models.hostile_array(rng)
    if suffix == ".npz" and rng.random() < 0.5:
        return models.with_members_changed(content, rng)
    return models.with_bytes_changed(content, rng)


def told(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its code, and what it says of errors."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as end:
            return (end.code if isinstance(end.code, int) else 0), said.getvalue()
    raise Failure("the command does not exit")


def fault_of(code: int, said: str) -> str | None:
    """Return in words what is wrong with how a command ended."""
    is_known = code in (0, failures.USAGE, failures.DATA, failures.OUTPUT, failures.PIPE_CLOSED)
    if not is_known or "unexpected" in said or "Traceback" in said:
        return f"ends with {code}: {said.strip()[-400:]}"
    if any(not letter.isprintable() for line in said.splitlines() for letter in line):
        return f"writes control characters: {said!r:.300}"
    if code and not said.strip():
        return f"ends with {code} without a word"
    return None


def prepare(folder: Path) -> Try:
    files = tables(folder)
    command = ["fit", "-k", "2", "--quiet", "--effort", "fast", "--threads", "1", "-o", "rows.csv"]
    for suffix, content in files.items():
        Path(f"whole{suffix}").write_bytes(content)
        code, said = told([*command, f"whole{suffix}"])
        if code:
            raise Failure(f"whole{suffix} is refused: {said}")
    saved = [*models.seeds(folder)]
    np.save("two.npy", np.linspace(1, 3, 10).reshape(5, 2))

    def judged(arguments: list[str]) -> str:
        code, said = told(arguments)
        if (fault := fault_of(code, said)) is not None:
            raise Failure(f"{arguments}: {fault}")
        return REFUSED if code else RIGHT

    def one(rng: random.Random) -> str:
        if rng.random() < 0.2:
            Path("m.pm").write_bytes(rng.choice(models.DAMAGE)(rng.choice(saved), rng))
            output = rng.choice([["--output", "out.csv"]] * 4 + [["--report", "out.html"]])
            return judged(["predict", "m.pm", "two.npy", *output])
        suffix = rng.choice(list(files))
        path = Path("t" + (suffix if rng.random() < 0.9 else rng.choice(SUFFIXES)))
        path.write_bytes(damaged(files[suffix], suffix, rng))
        try:
            options = [*rng.choice(OPTIONS), "--output", "out.csv", str(path)]
            return judged([*command, *options])
        finally:
            path.unlink()

    return one


ATTACK = Attack(prepare, seconds=5.0, megabytes=300.0, hangs_after=60.0)
