"""A callback that shows how far a fit is."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Literal, Protocol, Self, TextIO

from powermeans.loop.anneal import says_stop
from powermeans.loop.history import SweepState
from powermeans.loop.time_left import UNKNOWN, SecondsLeft
from powermeans.system.timer import PassTimer, duration, range_left

Kind = Literal["auto", "rich", "tqdm", "plain", "lines"]

# The time between lines, which a log keeps and a terminal overwrites.
_TERMINAL_SECONDS = 0.1
_LOG_SECONDS = 10.0
_FIRST_LOG_SECONDS = 1.0
# The time between looks at the clock while a phase tells nothing.
_TICK_SECONDS = 0.5


Text = Callable[[], str]


class Display(Protocol):
    """A line on a screen."""

    def show(self, text: Text, n_sweeps: int, *, is_new: bool = False) -> None:
        """Show the text unless another was shown a moment ago."""

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text and end the line."""


class FitProgress:
    """A callback that shows a fit; see `progress`."""

    _n_centers: float
    _n_sweeps: int
    _phase: str
    _seconds_left: SecondsLeft

    def __init__(self, kind: Kind = "auto", *, details: bool = False) -> None:
        if kind not in ("auto", "rich", "tqdm", "plain", "lines"):
            raise ValueError(
                f'kind={kind!r} is not known: pass "auto", "rich", "tqdm", "plain" or "lines"'
            )
        self.kind = kind if kind != "auto" else _best_kind()
        self.details = details
        if self.kind in ("rich", "tqdm") and not _is_installed(self.kind):
            raise ImportError(
                f'kind="{self.kind}" needs {self.kind}, which is not installed: '
                f'pip install {self.kind}, or pass kind="auto"'
            )
        self._timer = PassTimer()
        self._display: Display | None = None
        self._last: SweepState | None = None
        self._clock: Clock | None = None
        self._lock = threading.RLock()

    def __call__(self, state: SweepState) -> None:
        """Show one sweep."""
        if state.sweep == 1 and state.run == 0 and self._last is not None:
            self.fit_ended()
        with self._lock:
            display = self._display or self._begin(state.seconds)
            self._n_sweeps += 1
            # Sweeps of a breath have more centers than the fit; the fewest so far are those of
            # the fit.
            if len(state.centers) < self._n_centers:
                self._n_centers, self._least = len(state.centers), math.inf
            if len(state.centers) == self._n_centers:
                self._least = min(self._least, state.inertia)
            self._last = state
            display.show(self.text, self._n_sweeps)

    def phase_begins(self, words: str, seconds_left: SecondsLeft | None = None) -> None:
        """Show what begins, and the time while it goes on; `fit_ended` ends that."""
        with self._lock:
            display = self._display or self._begin()
            is_new, self._phase = words != self._phase, words
            # Where that is not known, what was said before stands.
            self._seconds_left = seconds_left or self._seconds_left
            display.show(self.text, self._n_sweeps, is_new=is_new)
        if self._clock is None:
            self._clock = Clock(self)

    def tick(self) -> None:
        """Show the time that has passed."""
        with self._lock:
            if self._display is not None:
                self._display.show(self.text, self._n_sweeps)

    def _begin(self, seconds: float = 0.0) -> Display:
        """Begin a line for a fit that began this many seconds ago."""
        self._last, self._n_sweeps, self._phase = None, 0, ""
        self._n_centers = self._least = math.inf
        self._started = time.monotonic() - seconds
        self._seconds_left = lambda: UNKNOWN
        self._display = display = _open(self.kind)
        return display

    def fit_ended(self) -> None:
        """End the line; the next fit begins another."""
        clock, self._clock = self._clock, None
        if clock is not None:
            clock.stop()
        with self._lock:
            if self._display is not None:
                display, self._display = self._display, None
                display.close(self.text(), self._n_sweeps)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Show the progress of a long pass over parts, whose number may be unknown."""
        if (said := self._timer.words(n_done, n_in_all)) is None:
            return
        with self._lock:
            display = self._display or self._begin()
            display.show(lambda: f"{self.text()}, {said}", self._n_sweeps)

    def text(self) -> str:
        """Return the line as it is now."""
        if self._last is not None:
            return self.words(self._last)
        if self._display is None:
            return "ended before the first sweep"
        return f"{self._phase or 'before the first sweep'}, {self.time_so_far()}"

    def words(self, state: SweepState) -> str:
        """Describe the phase, and with `details` a sweep."""
        is_over = self._display is None
        phase = "" if is_over else self._phase
        run = f"run {state.run + 1}, " if state.run else ""
        time_so_far = self.time_so_far()
        if not self.details:
            sweeps = f"{self._n_sweeps} sweep{'' if self._n_sweeps == 1 else 's'}"
            return f"{'' if is_over else run}{phase or sweeps}, {time_so_far}"
        power = "-inf" if state.power == -math.inf else f"{state.power:.3g}"
        return (
            f"{run}{phase}{', ' if phase else ''}sweep {state.sweep}, power {power}, "
            f"inertia {state.inertia:.5g}, {time_so_far}, least {self._least:.5g}, "
            f"{len(state.centers)} center{'' if len(state.centers) == 1 else 's'}"
        )

    def time_so_far(self) -> str:
        """Describe the time since the fit began, and the time left if something is known of it."""
        elapsed = duration(time.monotonic() - self._started)
        if self._display is None:
            return f"{elapsed} in all"
        least, most = self._seconds_left()
        if math.isnan(most):
            return f"{elapsed} so far"
        return f"{range_left(least, most)} after {elapsed}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()

    def __repr__(self) -> str:
        return f"progress({self.kind!r}{', details=True' if self.details else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A line on a screen cannot be copied: a copy begins its own.
        return _again, (type(self), self.kind, self.details)


def _again(kind_of_progress: type[FitProgress], kind: Kind, details: bool) -> FitProgress:
    return kind_of_progress(kind, details=details)


class Clock:
    """A thread that shows the time now and then, until it is stopped or nobody looks."""

    def __init__(self, shown: FitProgress) -> None:
        self._is_over = threading.Event()
        looked_at = weakref.ref(shown)
        self._thread = threading.Thread(
            target=_tick, args=(looked_at, self._is_over), name="powermeans progress", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait until it has."""
        self._is_over.set()
        self._thread.join()


def _tick(looked_at: weakref.ref[FitProgress], is_over: threading.Event) -> None:
    while not is_over.wait(_TICK_SECONDS):
        shown = looked_at()
        if shown is None:
            return
        try:
            shown.tick()
        except (OSError, ValueError):  # the stream was closed: the fit itself is to notice
            return
        del shown


class Together:
    """Several callbacks as one; the fit stops if one of them says so."""

    def __init__(self, *callbacks: Any) -> None:
        self._callbacks = [callback for callback in callbacks if callback is not None]

    def __call__(self, state: SweepState) -> bool:
        """Show a sweep to all of them."""
        answers = [callback(state) for callback in self._callbacks]
        return any(map(says_stop, answers))

    def phase_begins(self, words: str, seconds_left: SecondsLeft | None = None) -> None:
        """Tell those that ask for phases."""
        self._tell("phase_begins", words, seconds_left)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Tell those that ask how far passes are."""
        self._tell("pass_goes_on", n_done, n_in_all)

    def fit_ended(self) -> None:
        """Tell those that ask for the end."""
        self._tell("fit_ended")

    def _tell(self, method: str, *what: object) -> None:
        for callback in self._callbacks:
            if (hears := getattr(callback, method, None)) is not None:
                hears(*what)


def progress(kind: Kind = "auto", *, details: bool = False) -> FitProgress:
    """Return a callback that shows what a fit is doing.

    It shows the phase (checking the rows, choosing seeds, the starts of a search, crossing
    solutions, final sweeps, labelling the rows), between how many seconds the rest takes, and the
    time so far, also while a phase takes long. The range follows from the parts that a search has
    planned and the time that others took; it rises when the search finds something. A single
    descent has no plan, so that only the time so far is shown. If rows are in parts, in files or on
    Dask, and a pass over them takes more than a second, it also shows how far the pass is and about
    how long the rest takes.

    Parameters
    ----------
    kind : {"auto", "rich", "tqdm", "plain", "lines"}, default="auto"
        What shows it. "auto" is rich if that is installed, else tqdm, else plain. In a notebook
        tqdm comes first if its widgets are installed. If the output goes neither to a terminal nor
        to a notebook, it is plain. Plain text is one line that is written over on a terminal, and
        elsewhere a line after one second and then every ten. All goes to the standard error, except
        "lines": a line for each phase, and one every ten seconds, on the standard output.
    details : bool, default=False
        Also show the sweep, its power (-inf is Lloyd's rule), the inertia, the least inertia with
        the wanted number of centers, and how many centers there are at present.

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
    return FitProgress(kind, details=details)


class PlainDisplay:
    """Text: on a terminal one line that is written over, else a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._stream: TextIO = sys.stderr
        self._seconds = _TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS
        first = min(_FIRST_LOG_SECONDS, self._seconds) - self._seconds
        self._last_shown = -math.inf if self._is_terminal else time.monotonic() + first

    def show(self, text: Text, n_sweeps: int, *, is_new: bool = False) -> None:
        """Write the text unless another was written a moment ago."""
        now = time.monotonic()
        if now - self._last_shown >= self._seconds:
            self._last_shown = now
            self._write(text(), end="" if self._is_terminal else "\n")

    def close(self, text: str, n_sweeps: int) -> None:
        """Write the text and end the line; without a sweep an error tells what there is to tell."""
        if n_sweeps:
            self._write(text, end="\n")
        elif self._is_terminal:
            self._write("", end="")

    def _write(self, text: str, end: str) -> None:
        if self._is_terminal:
            text = "\r" + text[: _columns() - 1] + "\x1b[K"
        self._stream.write(text + end)
        self._stream.flush()


class LinesDisplay(PlainDisplay):
    """A line for each phase, and one now and then, on the standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._is_terminal, self._stream = False, sys.stdout
        self._seconds, self._last_shown = _LOG_SECONDS, -math.inf

    def show(self, text: Text, n_sweeps: int, *, is_new: bool = False) -> None:
        """Write the text if a phase is new, or the last line is old."""
        if is_new:
            self._last_shown = -math.inf
        super().show(text, n_sweeps)


class TqdmDisplay:
    """A line of tqdm, in a notebook one of its widgets."""

    def __init__(self) -> None:
        if _has_widgets():
            from tqdm.notebook import tqdm as bar
        else:
            from tqdm.std import tqdm as bar
        self._bar = bar(unit=" sweeps", bar_format="{desc}, {rate_fmt}")
        self._last_shown = -math.inf

    def show(self, text: Text, n_sweeps: int, *, is_new: bool = False) -> None:
        """Show the text unless another was shown a moment ago."""
        if time.monotonic() - self._last_shown >= _TERMINAL_SECONDS:
            self._last_shown = time.monotonic()
            self._bar.update(n_sweeps - self._bar.n)
            self._bar.set_description_str(text(), refresh=True)

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text and end the line."""
        self._bar.update(n_sweeps - self._bar.n)
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
        self._last_shown = -math.inf

    def show(self, text: Text, n_sweeps: int, *, is_new: bool = False) -> None:
        """Let rich draw the text, which it does ten times a second."""
        if time.monotonic() - self._last_shown >= _TERMINAL_SECONDS:
            self._last_shown = time.monotonic()
            self._shown.update(self._task, description=self._fitting(text()))

    def close(self, text: str, n_sweeps: int) -> None:
        """Show the text with a tick in place of the spinner; without a sweep, clear the line."""
        fitting = self._fitting(text)
        self._shown.update(self._task, description=fitting, total=n_sweeps, completed=n_sweeps)
        self._shown.live.transient = n_sweeps == 0
        self._shown.stop()

    def _fitting(self, text: str) -> str:
        """Cut the text to the width beside the spinner, which a longer one would push out."""
        return text[: self._shown.console.width - 2]


_DISPLAYS: dict[str, type[PlainDisplay] | type[TqdmDisplay] | type[RichDisplay]] = {
    "plain": PlainDisplay,
    "lines": LinesDisplay,
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
