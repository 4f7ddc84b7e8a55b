"""A command in this process, in a folder with files to read."""

import io
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tables.answers import EXAMPLE

from powermeans_tables import command

N_ROWS = 3000


@dataclass(frozen=True)
class Ended:
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Run:
    """A command in a folder with the example; one text may hold all its words.

    It has to end with this exit code.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("customers.csv").write_text(EXAMPLE)

    def run(words: str = "", *more: object, stdin: bytes = b"", code: int = 0) -> Ended:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        heard = {each: signal.getsignal(each) for each in command._ending_signals()}
        with pytest.raises(SystemExit) as ended:
            command.main([*words.split(), *map(str, more)])
        for each, before in heard.items():  # which an ended command ignores
            signal.signal(each, before)
        captured = capfdbinary.readouterr()
        out, err = captured.out.decode(), captured.err.decode()
        assert int(ended.value.code or 0) == code, err
        return Ended(out, err)

    return run


@pytest.fixture(scope="session")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    means = 9 * rng.normal(size=(4, 3))
    points = means[np.arange(N_ROWS) % 4] * [1, 5, 1] + rng.normal(size=(N_ROWS, 3))
    weights = rng.integers(1, 4, size=N_ROWS).astype(float)
    return pa.table({**dict(zip("abc", points.T, strict=True)), "w": weights})


@pytest.fixture
def folder(run: Run, table: pa.Table) -> None:
    """The rows in one file, and in a folder of three."""
    parquet.write_table(table, "rows.parquet", row_group_size=700)
    Path("folder").mkdir()
    for number in range(3):
        parquet.write_table(table.slice(1000 * number, 1000), f"folder/part-{number}.parquet")
