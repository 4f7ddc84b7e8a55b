"""The rows of finished cells, one file for each, so that an interrupted run can go on."""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from powermeans.system.atomic_write import atomic_write
from reproduce.item import Row, Value

_log = logging.getLogger("reproduce")


@dataclass(frozen=True, slots=True)
class FinishedCell:
    """What a cell gave, and when, by which code of the package, and in how many seconds.

    `load` is how many processes wanted a processor in the minute before its end.
    """

    rows: Sequence[Row]
    seconds: float
    date: str
    package: str
    load: float


class CellStore:
    """A folder with a file for each finished cell of an item.

    Parameters
    ----------
    folder : Path
    code : str
        Which code computes the cells. Files of other code are not looked at.
    package : str
        Which code of powermeans is there; it is kept beside the rows.
    """

    def __init__(self, folder: Path, code: str, package: str) -> None:
        self._folder = folder
        self._code = code
        self._package = package

    def path(self, key: Mapping[str, Value]) -> Path:
        """Where the file of a cell is."""
        name = hashlib.sha256(_as_json([self._code, dict(key)]).encode()).hexdigest()[:24]
        return self._folder / f"{name}.json"

    def read(self, key: Mapping[str, Value]) -> FinishedCell | None:
        """What is kept of a cell; nothing, and a warning, where its file is damaged."""
        path = self.path(key)
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            content = record["content"]
            if record["checksum"] != _checksum(content):
                raise ValueError("its checksum is another")
            if content["key"] != dict(key) or content["code"] != self._code:
                raise ValueError("it is of another cell")
            return FinishedCell(*(content[part] for part in FinishedCell.__slots__))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s is no whole file of a cell (%s): computing it again", path, error)
            return None

    def write(self, key: Mapping[str, Value], rows: Sequence[Row], seconds: float) -> FinishedCell:
        """Keep the rows of a cell, all of them or nothing; they come back as a reader gets them."""
        content = {
            "key": dict(key),
            "code": self._code,
            "rows": [dict(row) for row in rows],
            "seconds": seconds,
            "date": datetime.date.today().isoformat(),
            "package": self._package,
            "load": machine_load(),
        }
        content = json.loads(_as_json(content))
        self._folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path(key)) as file:
            record = {"content": content, "checksum": _checksum(content)}
            file.write((json.dumps(record, indent=1) + "\n").encode())
        return FinishedCell(*(content[part] for part in FinishedCell.__slots__))


def machine_load() -> float:
    """How many processes wanted a processor in the last minute; -1 where that is unknown."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return -1.0


def _checksum(content: Any) -> str:
    return hashlib.sha256(_as_json(content).encode()).hexdigest()


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Value:
    """A number of NumPy as one of Python."""
    if hasattr(value, "item"):
        number: Value = value.item()
        return number
    raise TypeError(f"{value!r} is no string and no number: a cell's key and rows hold only those")
