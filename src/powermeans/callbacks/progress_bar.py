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
from powermeans.system.timer import PassTimer, duration, time_left

Kind = Literal["auto", "rich", "tqdm", "plain"]

# The time between lines, which a log keeps and a terminal overwrites.
_TERMINAL_SECONDS = 0.1
_LOG_SECONDS = 10.0
# Below this share the time left cannot be guessed.
_LEAST_SHARE = 0.02


class Display(Protocol):
    """A line on a screen."""

    def show(self, text: str, n_sweeps: int) -> None:
        """Show the text unless another was shown a moment ago."""

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text and end the line."""


class FitProgress:
    """A callback that shows a fit; see `progress`."""

    _n_centers: float

    def __init__(self, kind: Kind = "auto") -> None:
        if kind not in ("auto", "rich", "tqdm", "plain"):
            raise ValueError(f'kind={kind!r} is not known: pass "auto", "rich", "tqdm" or "plain"')
        self.kind = kind if kind != "auto" else _best_kind()
        if self.kind != "plain" and not _is_installed(self.kind):
            raise ImportError(
                f'kind="{self.kind}" needs {self.kind}, which is not installed: '
                f'pip install {self.kind}, or pass kind="auto"'
            )
        self._timer = PassTimer()
        self._display: Display | None = None
        self._last: SweepState | None = None

    def __call__(self, state: SweepState) -> None:
        """Show one sweep."""
        if state.sweep == 1 and state.run == 0 and self._last is not None:
            self.fit_ended()
        display = self._display or self._begin(state.seconds)
        self._n_sweeps += 1
        # Sweeps of a breath have more centers than the fit; the fewest so far are those of the fit.
        if len(state.centers) < self._n_centers:
            self._n_centers, self._least = len(state.centers), math.inf
        if len(state.centers) == self._n_centers:
            self._least = min(self._least, state.inertia)
        self._last = state
        display.show(self.words(state), self._n_sweeps)

    def _begin(self, seconds: float = 0.0) -> Display:
        """Begin a line for a fit that began this many seconds ago."""
        self._last, self._n_sweeps = None, 0
        self._n_centers = self._least = math.inf
        self._started = time.monotonic() - seconds
        self._display = display = _open(self.kind)
        return display

    def fit_ended(self) -> None:
        """End the line; the next fit begins another."""
        if self._display is not None:
            display, self._display = self._display, None
            text = "ended before the first sweep" if self._last is None else self.words(self._last)
            display.close(text, self._n_sweeps)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Show the progress of a long pass over parts, whose number may be unknown."""
        if (said := self._timer.words(n_done, n_in_all)) is None:
            return
        display = self._display or self._begin()
        if self._last is None:
            sweep = f"before the first sweep, {self.time_so_far()}"
        else:
            sweep = self.words(self._last)
        display.show(f"{sweep}, {said}", self._n_sweeps)

    def words(self, state: SweepState) -> str:
        """Describe a sweep."""
        power = "-inf" if state.power == -math.inf else f"{state.power:.3g}"
        run = f"run {state.run + 1}, " if state.run else ""
        return (
            f"{run}sweep {state.sweep}, power {power}, inertia {state.inertia:.5g}, "
            f"{self.time_so_far(state.share_done)}, least {self._least:.5g}, "
            f"{len(state.centers)} center{'' if len(state.centers) == 1 else 's'}"
        )

    def time_so_far(self, share_done: float = math.nan) -> str:
        """Describe the time since the fit began, and the time left if a share is known."""
        elapsed = time.monotonic() - self._started
        if self._display is None:
            return f"{duration(elapsed)} in all"
        if not share_done >= _LEAST_SHARE:  # NaN too
            return f"{duration(elapsed)} so far"
        if share_done >= 1:  # a sweep goes on after `max_seconds`
            return f"about to end after {duration(elapsed)}"
        return f"{time_left(elapsed, share_done)} after {duration(elapsed)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()

    def __repr__(self) -> str:
        return f"progress({self.kind!r})"

    def __reduce__(self) -> tuple[type[FitProgress], tuple[str]]:
        # A line on a screen cannot be copied: a copy begins its own.
        return type(self), (self.kind,)


def progress(kind: Kind = "auto") -> FitProgress:
    """Return a callback that shows the sweeps of a fit while they happen.

    It shows the sweep, its power (-inf is Lloyd's rule), the inertia, about how much time is left,
    the time so far, the least inertia with the wanted number of centers, and how many centers there
    are at present. The time left is a rough guess from the parts that a search has planned and the
    time that others took; it rises when the search finds something. A single descent has no plan,
    so that only the time so far is shown. If rows are in parts, in files or on Dask, and a pass
    over them takes more than a second, it also shows how far the pass is and about how long the
    rest takes.

    Parameters
    ----------
    kind : {"auto", "rich", "tqdm", "plain"}, default="auto"
        What shows it. "auto" is rich if that is installed, else tqdm, else plain. In a notebook
        tqdm comes first if its widgets are installed. If the output goes neither to a terminal nor
        to a notebook, it is plain. Plain text is one line that is written over on a terminal, and
        a line every ten seconds elsewhere. All goes to the standard error.

    Returns
    -------
    FitProgress
        Pass it as `callback` to an estimator, whose fit ends the line. Elsewhere use it as
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
        """Write the text unless another was written a moment ago."""
        now = time.monotonic()
        if now - self._last_shown >= self._seconds:
            self._last_shown = now
            self._write(text, end="" if self._is_terminal else "\n")

    def close(self, text: str, n_sweeps: int) -> None:
        """Write the text and end the line."""
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
        """Show the text when tqdm finds that it is time."""
        self._bar.set_description_str(text, refresh=False)
        self._bar.update(n_sweeps - self._bar.n)

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text and end the line."""
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
        """Let rich draw the text, which it does ten times a second."""
        self._shown.update(self._task, description=self._fitting(text))

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text with a tick in place of the spinner."""
        fitting = self._fitting(text)
        self._shown.update(self._task, description=fitting, total=n_sweeps, completed=n_sweeps)
        self._shown.stop()

    def _fitting(self, text: str) -> str:
        """Cut the text to the width beside the spinner, which a longer one would push out."""
        return text[: self._shown.console.width - 2]


_DISPLAYS: dict[str, type[PlainDisplay] | type[TqdmDisplay] | type[RichDisplay]] = {
    "plain": PlainDisplay,
    "tqdm": TqdmDisplay,
    "rich": RichDisplay,
}


def _open(kind: str) -> Display:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm warns of missing widgets
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
    """Return whether this is the kernel of a notebook, without importing IPython."""
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
