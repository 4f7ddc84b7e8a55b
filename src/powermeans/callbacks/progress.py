"""Callbacks that show what a fit is doing: a bar of tqdm, and printed lines."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Self, TextIO

from powermeans.loop.anneal import says_stop
from powermeans.loop.history import SweepState


class FitProgress:
    """A callback that shows a fit; a subclass says where.

    The estimator calls it after each sweep, `phase_begins` at the beginning of each phase,
    `pass_goes_on` after each part of points in parts, and `fit_ended` once.
    """

    def __init__(self, *, details: bool = False) -> None:
        self.details = details
        self._begin()

    def _begin(self) -> None:
        self._phase, self._n_sweeps, self._is_open = "", 0, False
        self._n_centers = self._least = math.inf
        self._last: SweepState | None = None
        self._started = time.monotonic()

    def __call__(self, state: SweepState) -> None:
        """Show one sweep."""
        self._n_sweeps += 1
        self._last = state
        # A search adds centers and removes them again: the fewest are those of the fit.
        if len(state.centers) < self._n_centers:
            self._n_centers, self._least = len(state.centers), math.inf
        if len(state.centers) == self._n_centers:
            self._least = min(self._least, state.inertia)
        self._tell(is_new=False)

    def phase_begins(self, name: str) -> None:
        """Show the phase that begins."""
        is_new, self._phase = name != self._phase, name
        self._tell(is_new=is_new)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Show how far a pass over points in parts is."""

    def fit_ended(self) -> None:
        """Show the end; the next fit begins anew."""
        if self._is_open:
            self._close()
        self._begin()

    def _tell(self, *, is_new: bool) -> None:
        if not self._is_open:
            self._open()
            self._is_open = True
        self._show(is_new=is_new)

    def _open(self) -> None:
        """Begin to show a fit."""

    def _show(self, *, is_new: bool) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        """End what is shown."""

    def figures(self) -> str:
        """Describe the sweeps so far."""
        if self._last is None:
            return ""
        text = f"inertia {self._least:.6g}" if self._least < math.inf else ""
        if self.details:
            power = "-inf" if self._last.power == -math.inf else f"{self._last.power:.3g}"
            text = f"power {power}, {text}, {len(self._last.centers)} centers"
        return f"{self._n_sweeps} sweeps, {text}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()

    def __reduce__(self) -> tuple[Any, ...]:
        # A line on a screen cannot be copied: a copy begins its own.
        return _again, (type(self), self.details)


def _again(kind: type[FitProgress], details: bool) -> FitProgress:
    return kind(details=details)


class TqdmProgress(FitProgress):
    """A line of tqdm on a terminal, or one of its widgets in a notebook."""

    def _open(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(bar_format="{desc} [{elapsed}]{postfix}")

    def _show(self, *, is_new: bool) -> None:
        self._bar.set_description_str(self._phase, refresh=False)
        self._bar.set_postfix_str(self.figures(), refresh=is_new)
        self._bar.update()

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Show how far a pass over points in parts is."""
        if self._is_open:
            self._bar.set_postfix_str(f"{self.figures()}, {share(n_done, n_in_all)}", refresh=False)
            self._bar.update()

    def _close(self) -> None:
        self._bar.set_description_str("ended", refresh=False)
        self._bar.set_postfix_str(self.figures())
        self._bar.close()


class Lines(FitProgress):
    """Printed lines, at most one in so many seconds, with the phase and the inertia."""

    def __init__(
        self,
        *,
        details: bool = False,
        stream: TextIO | None = None,
        seconds: float = 1.0,
        first: float = 0.0,
    ) -> None:
        super().__init__(details=details)
        self._stream, self._seconds, self._first = stream, seconds, first

    def _open(self) -> None:
        self._next = self._started + self._first

    def _show(self, *, is_new: bool) -> None:
        self._print(f"{self._phase}, {self.figures()}" if self._last else self._phase)

    def pass_goes_on(self, n_done: int, n_in_all: int | None = None) -> None:
        """Print how far a pass over points in parts is."""
        if self._is_open:
            self._print(f"{self._phase}, {share(n_done, n_in_all)}")

    def _print(self, text: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._seconds
            print(f"{text}, {now - self._started:.0f} s", file=self._stream or sys.stdout)

    def _close(self) -> None:
        if self._n_sweeps:
            self._next = -math.inf
            self._print(f"ended, {self.figures()}")


def share(n_done: int, n_in_all: int | None) -> str:
    """Return how far a pass is, in words."""
    return f"{n_done:,} of a pass" if not n_in_all else f"{n_done / n_in_all:.0%} of a pass"


class Together:
    """Several callbacks as one; the fit stops if one of them says so."""

    def __init__(self, *callbacks: Any) -> None:
        self._callbacks = [callback for callback in callbacks if callback is not None]

    def __call__(self, state: SweepState) -> bool:
        """Show a sweep to all of them."""
        answers = [callback(state) for callback in self._callbacks]
        return any(map(says_stop, answers))

    def phase_begins(self, name: str) -> None:
        """Tell those that ask for phases."""
        self._tell("phase_begins", name)

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


def progress(*, details: bool = False) -> FitProgress:
    """Return a callback that shows what a fit is doing, by tqdm.

    It shows the phase (checking the rows, choosing seeds, the starts of a search, crossing
    solutions, final sweeps, labelling the rows), the time so far, the number of sweeps and the
    least inertia so far, on a terminal or in a notebook. For points in parts, it also shows how far
    a pass over them is. How long the rest takes is not known: a search goes on for as long as it
    finds something.

    Parameters
    ----------
    details : bool, default=False
        Also show the power of the last sweep (-inf is Lloyd's rule) and how many centers there are
        at present.

    Returns
    -------
    FitProgress
        Pass it as `callback` to an estimator, whose fit ends the line. Elsewhere use it as a
        context manager, which ends the line on leaving.

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
    try:
        import tqdm  # noqa: F401
    except ImportError as error:
        raise ImportError("progress needs tqdm: pip install tqdm") from error
    return TqdmProgress(details=details)
