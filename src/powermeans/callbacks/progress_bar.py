"""A callback that shows how far a fit is."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import time
import warnings
from typing import Any, Literal, Protocol, Self

from powermeans.loop.history import SweepState
from powermeans.sources.pass_clock import PassClock, duration

Kind = Literal["auto", "rich", "tqdm", "plain"]

_TERMINAL_SECONDS = 0.1
_LOG_SECONDS = 10.0
# Before this share is done, how long the rest will take is mere guesswork.
_LEAST_SHARE = 0.02


class Display(Protocol):
    """Where progress is shown."""

    def show(self, text: str, n_sweeps: int) -> None:
        """What there is to say after so many sweeps."""

    def close(self, text: str, n_sweeps: int) -> None:
        """The last word."""


class FitProgress:
    """What `progress` returns; see there."""

    def __init__(self, kind: Kind = "auto") -> None:
        if kind not in ("auto", "rich", "tqdm", "plain"):
            raise ValueError(f'kind={kind!r} is not known: pass "auto", "rich", "tqdm" or "plain"')
        self.kind = kind if kind != "auto" else _best_kind()
        if self.kind != "plain" and not _is_installed(self.kind):
            raise ImportError(
                f'kind="{self.kind}" needs {self.kind}, which is not installed: '
                f'pip install {self.kind}, or pass kind="auto"'
            )
        self._clock = PassClock()
        self._begin()

    def _begin(self) -> None:
        self._display: Display | None = None
        self._last: SweepState | None = None
        self._n_sweeps, self._n_centers = 0, math.inf
        self._least, self._started = math.inf, math.nan

    def __call__(self, state: SweepState) -> None:
        """Show one sweep."""
        if state.sweep == 1 and state.run == 0 and self._last is not None:
            self.fit_ended()
        display = self._display or self._open_display(state.seconds)
        self._n_sweeps += 1
        if len(state.centers) < self._n_centers:
            self._n_centers, self._least = len(state.centers), math.inf
        if len(state.centers) == self._n_centers:
            self._least = min(self._least, state.inertia)
        self._last = state
        display.show(self.words(state), self._n_sweeps)

    def _open_display(self, seconds: float = 0.0) -> Display:
        """Begin a line, of a fit that began so many seconds ago."""
        self._begin()
        self._started = time.monotonic() - seconds
        self._display = opened = _open(self.kind)
        return opened

    def fit_ended(self) -> None:
        """End the line; the next fit begins another."""
        if self._display is not None:
            display, self._display = self._display, None
            is_empty = self._last is None
            display.close(
                "ended before the first sweep" if is_empty else self._last_words(), self._n_sweeps
            )

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Show how far a pass over rows in parts is, if it takes long.

        Parameters
        ----------
        n_done : int
            How many parts are done.
        n_in_all : int, optional
            Of how many, where that is known.
        """
        if (said := self._clock.words(n_done, n_in_all)) is not None:
            display = self._display or self._open_display()
            display.show(f"{self._last_words()}, {said}", self._n_sweeps)

    def _last_words(self) -> str:
        if self._last is None:
            return f"before the first sweep, {self.time_so_far()}"
        return self.words(self._last)

    def words(self, state: SweepState) -> str:
        """What there is to say of a sweep."""
        power = "-inf" if state.power == -math.inf else f"{state.power:.3g}"
        run = f"run {state.run + 1}, " if state.run else ""
        return (
            f"{run}sweep {state.sweep}, power {power}, inertia {state.inertia:.5g}, "
            f"{self.time_so_far(state.share_done)}, least {self._least:.5g}, "
            f"{len(state.centers)} center{'' if len(state.centers) == 1 else 's'}"
        )

    def time_so_far(self, share_done: float = math.nan) -> str:
        """The time since the fit began, and what is left of it where that is known."""
        elapsed = time.monotonic() - self._started
        if self._display is None:
            return f"{duration(elapsed)} in all"
        if not share_done >= _LEAST_SHARE:
            return f"{duration(elapsed)} so far"
        if share_done >= 1:  # where time was what was shared, and a sweep goes on beyond it
            return f"about to end after {duration(elapsed)}"
        return f"about {duration(elapsed / share_done - elapsed)} left after {duration(elapsed)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()

    def __repr__(self) -> str:
        return f"progress({self.kind!r})"

    def __reduce__(self) -> tuple[type[FitProgress], tuple[str]]:
        """A line on a screen cannot be copied: a copy begins its own."""
        return type(self), (self.kind,)


def progress(kind: Kind = "auto") -> FitProgress:
    """A callback that shows the sweeps of a fit while they happen.

    It tells the sweep, its power (-inf is Lloyd's rule), the inertia, about how much time is left,
    the time so far, the least inertia with so many centers as are wanted, and how many there are at
    present. How long a search takes is known only roughly: what is left goes by the parts that it
    has planned and by how long the others took, and rises where it finds something. Of a single
    descent nobody knows, so that there the time so far is all that is told. Where rows are in
    parts, in files or on Dask, and a pass over them takes more than a second, it also tells how far
    the pass is and about how long the rest of it takes.

    Parameters
    ----------
    kind : {"auto", "rich", "tqdm", "plain"}, default="auto"
        What shows it. "auto" is rich if that is installed, else tqdm, else plain; in a notebook
        tqdm comes first if its widgets can be shown; and where the output goes neither to
        a terminal nor to a notebook it is plain. Plain text is one line that is written over on a
        terminal, and elsewhere a line every ten seconds. All goes to the standard error.

    Returns
    -------
    FitProgress
        To pass as `callback` to an estimator, whose fit ends the line; elsewhere use it as
        a context manager, which ends the line on leaving.

    See Also
    --------
    PathRecorder : A callback that remembers the sweeps.
    SweepState : What a callback gets.

    Examples
    --------
    >>> import powermeans
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> tell = powermeans.progress()
    >>> model = powermeans.PowerKMeans(2, callback=tell, random_state=0).fit(X)
    >>> model.inertia_
    1.0
    """
    return FitProgress(kind)


class PlainDisplay:
    """Text: on a terminal one line that is written over, else a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._seconds = _TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS
        self._last_shown = -math.inf if self._is_terminal else time.monotonic()

    def show(self, text: str, n_sweeps: int) -> None:
        """Unless something was shown a moment ago."""
        now = time.monotonic()
        if now - self._last_shown >= self._seconds:
            self._last_shown = now
            self._write(text, end="" if self._is_terminal else "\n")

    def close(self, text: str, n_sweeps: int) -> None:
        """The last sweep, and the end of the line."""
        self._write(text, end="\n")

    def _write(self, text: str, end: str) -> None:
        if self._is_terminal:
            text = "\r" + text[: _columns() - 1] + "\x1b[K"
        sys.stderr.write(text + end)
        sys.stderr.flush()


class TqdmDisplay:
    """A line of tqdm, in a notebook one of its widgets."""

    def __init__(self) -> None:
        if _has_widgets():
            from tqdm.notebook import tqdm as bar
        else:
            from tqdm.std import tqdm as bar
        self._bar = bar(unit=" sweeps", bar_format="{desc}, {rate_fmt}")

    def show(self, text: str, n_sweeps: int) -> None:
        """Through tqdm, which says when it is time."""
        self._bar.set_description_str(text, refresh=False)
        self._bar.update(n_sweeps - self._bar.n)

    def close(self, text: str, n_sweeps: int) -> None:
        """With the last sweep."""
        self._bar.set_description_str(text, refresh=True)
        self._bar.close()


class RichDisplay:
    """A spinner and text of rich, on terminals and in notebooks."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn

        text = TextColumn("{task.description}", markup=False)
        spinner = SpinnerColumn(finished_text="✓")
        self._shown = Progress(spinner, text, console=Console(stderr=True))
        self._task = self._shown.add_task("", total=None)
        self._shown.start()

    def show(self, text: str, n_sweeps: int) -> None:
        """Rich draws it ten times a second."""
        self._shown.update(self._task, description=self._fitting(text))

    def close(self, text: str, n_sweeps: int) -> None:
        """With a tick in place of the spinner."""
        fitting = self._fitting(text)
        self._shown.update(self._task, description=fitting, total=n_sweeps, completed=n_sweeps)
        self._shown.stop()

    def _fitting(self, text: str) -> str:
        """As much as there is room for beside the spinner, whose place Rich would take."""
        return text[: self._shown.console.width - 2]


_DISPLAYS: dict[str, type[PlainDisplay] | type[TqdmDisplay] | type[RichDisplay]] = {
    "plain": PlainDisplay,
    "tqdm": TqdmDisplay,
    "rich": RichDisplay,
}


def _open(kind: str) -> Display:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing widgets
        return _DISPLAYS[kind]()


def _best_kind() -> Literal["rich", "tqdm", "plain"]:
    if _has_widgets() and _is_installed("tqdm"):
        return "tqdm"
    if _in_notebook() or sys.stderr.isatty():
        if _is_installed("rich"):
            return "rich"
        if _is_installed("tqdm"):
            return "tqdm"
    return "plain"


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _in_notebook() -> bool:
    """Whether this is the kernel of one; IPython is not imported to find out."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _has_widgets() -> bool:
    return _in_notebook() and _is_installed("ipywidgets")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 80
