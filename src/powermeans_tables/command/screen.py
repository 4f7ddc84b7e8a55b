"""What commands print: for people on a terminal or in a pipe, or as JSON."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from powermeans.engine.fit import Listener
from powermeans.engine.history import SweepState
from powermeans.errors import printable
from powermeans.methods.progress import FitProgress, Lines
from powermeans_tables.command.streams import size_for

# Rich breaks lines at no-break spaces too; no printable text has this character.
_NO_BREAK = "\ue000"


class Screen:
    """Print for people, or one JSON object for machines; to_stderr leaves standard output free."""

    def __init__(self, *, as_json: bool = False, to_stderr: bool = False) -> None:
        self.as_json = as_json
        stream = sys.stderr if to_stderr else sys.stdout
        self._console = Console(file=stream, highlight=False, **size_for(stream))

    def say(self, line: str = "", *, is_whole: bool = False) -> None:
        """Print a line for people; terminals wrap it between words unless it must stay whole."""
        if not self.as_json:
            self._print(_text(line), soft_wrap=is_whole or not self._console.is_terminal)

    def show(
        self, names: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = ()
    ) -> None:
        """Print a table for people; the columns at `left` contain words, the others numbers."""
        if self.as_json:
            return
        grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        words = set(left)
        for place, name in enumerate(names):
            side: Any = "left" if place in words else "right"
            grid.add_column(name, justify=side, no_wrap=place not in words, overflow="fold")
        for row in rows:
            grid.add_row(*map(_text, row))
        self._print(grid)

    def _print(self, what: Any, *, soft_wrap: bool = False) -> None:
        """Print without the blanks by which Rich fills lines."""
        with self._console.capture() as shown:
            self._console.print(what, soft_wrap=soft_wrap)
        lines = [line.rstrip() for line in shown.get().splitlines()]
        self._console.file.write("\n".join(lines).replace(_NO_BREAK, " ") + "\n")

    def tell_machines(self, what: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.as_json:
            # Rich takes seconds to lay out the centers of many clusters.
            self._console.file.write(json.dumps(_plain(what), indent=2, allow_nan=False) + "\n")


class Bar(FitProgress):
    """A line of rich on a terminal: the phase, how much of it is done, the time and the sweeps."""

    def _open(self) -> None:
        name = TextColumn("{task.description}", markup=False)
        figures = TextColumn("{task.fields[figures]}", markup=False)
        columns = (name, BarColumn(16), TimeElapsedColumn(), figures)
        console = Console(stderr=True, **size_for(sys.stderr))
        self._shown = Progress(*columns, console=console, transient=True)
        self._task = self._shown.add_task("", total=None, figures="")
        self._shown.start()

    def _show(self, done: int, total: int | None, *, is_new: bool) -> None:
        figures = self.figures()
        self._shown.update(self._task, description=self._name, completed=done, figures=figures)
        self._shown.tasks[0].total = total  # which `update` cannot make unknown again

    def _close(self) -> None:
        self._shown.stop()


class _Phases:
    """Show no sweeps, where their inertias are those of many numbers of clusters."""

    def __init__(self, shown: FitProgress) -> None:
        self.phase, self.fit_ended = shown.phase, shown.fit_ended

    def __call__(self, state: SweepState) -> None:
        pass


def listening(*, is_quiet: bool = False, details: bool = False, sweeps: bool = True) -> Listener:
    """Return what shows a fit: a bar on a terminal, elsewhere a line now and then, or nothing."""
    if is_quiet:
        return Listener()
    shown: FitProgress = Bar(details=details)
    if not sys.stderr.isatty():
        shown = Lines(details=details, stream=sys.stderr, seconds=10.0, first=1.0)
    return Listener(shown if sweeps else _Phases(shown))


@contextlib.contextmanager
def waiting_for(
    what: str, *, is_quiet: bool, n_rows: int | None = None
) -> Iterator[Callable[[int], object]]:
    """Show a task, and yield a function that takes the number of rows done."""
    with listening(is_quiet=is_quiet) as shown:
        shown.phase(what)
        yield lambda n_done: shown.phase(what, n_done, n_rows)


def _text(cell: str) -> Text:
    """Return text in which lines do not break between a number and its unit."""
    return Text(re.sub(r"\u00a0|(?<=\d) (?=%)", _NO_BREAK, printable(cell)))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, with null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def seconds(value: float) -> str:
    """Return a duration with its unit."""
    return f"{value:.2f} s" if value >= 0.1 else f"{1000 * value:.1f} ms"
