"""Callbacks that show a fit: lines, a line of tqdm, and scikit-learn's tree of tasks.

A callback is called after each sweep with a `SweepState`; if it returns True, the fit stops. Its
methods are called if it has them: `phase(name, done, total)` when a phase begins and while it goes
on, `kept(inertia)` once the estimator has results, and `fit_ended()` at the end, after errors too.
"""

from __future__ import annotations

import abc
import functools
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Self, TextIO, TypeVar

from powermeans.engine.history import SweepState

try:
    from sklearn import callback as sklearn_callback
except ImportError:  # before scikit-learn 1.9
    sklearn_callback = None

Method = TypeVar("Method", bound=Callable[..., Any])

# Rounding of the centers, as a share of the largest.
_ROUNDING = 1e-12
# Shifts are the same if they differ by no more than this share.
_SAME = 1e-6


# What shows a fit.


class FitProgress(abc.ABC):
    """A callback that shows a fit; a subclass says where."""

    def __init__(self, *, details: bool = False) -> None:
        self.details = details
        self._begin()

    def _begin(self) -> None:
        self._name, self._n_sweeps, self._is_open = "", 0, False
        self._n_centers = self._least = math.inf
        self._last: SweepState | None = None
        self._started = time.monotonic()

    def __call__(self, state: SweepState) -> None:
        """Show one sweep."""
        self._n_sweeps, self._last = self._n_sweeps + 1, state
        # A search adds centers and removes them again: the fewest are those of the fit.
        if len(state.centers) < self._n_centers:
            self._n_centers, self._least = len(state.centers), math.inf
        if len(state.centers) == self._n_centers:
            self._least = min(self._least, state.inertia)
        self._update()

    def phase(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Show the phase, and how much of it is done."""
        is_new, self._name = name != self._name, name
        self._update(done, total, is_new=is_new)

    def kept(self, inertia: float) -> None:
        """Show at the end the inertia of the estimator, which may sum up more than sweeps."""
        self._least = inertia
        self._last = self._last and self._last._replace(inertia=inertia)

    def fit_ended(self) -> None:
        """Show the end; the next fit begins anew."""
        if self._is_open:
            self._close()
        self._begin()

    def _update(self, done: int = 0, total: int | None = None, *, is_new: bool = False) -> None:
        if not self._is_open:
            self._is_open = True
            self._open()
        self._show(done, total, is_new=is_new)

    @abc.abstractmethod
    def _open(self) -> None:
        """Begin to show a fit."""

    @abc.abstractmethod
    def _show(self, done: int, total: int | None, *, is_new: bool) -> None:
        """Show the phase and the figures; a phase may be new."""

    @abc.abstractmethod
    def _close(self) -> None:
        """End what is shown."""

    def figures(self) -> str:
        """Describe the sweeps so far."""
        if (last := self._last) is None:
            return ""
        sweeps = f"{self._n_sweeps:,} sweep{'' if self._n_sweeps == 1 else 's'}"
        if not self.details:
            return f"{sweeps}, inertia {self._least:.6g}"
        return (
            f"{sweeps}, power {last.power:.3g}, inertia {last.inertia:.6g}, "
            f"least {self._least:.6g}, {len(last.centers)} centers"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()

    def __reduce__(self) -> tuple[Any, ...]:
        # A line on a screen cannot be copied: a copy begins its own.
        return functools.partial(type(self), details=self.details), ()


class TqdmProgress(FitProgress):
    """A line of tqdm on a terminal, or one of its widgets in a notebook."""

    def _open(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(bar_format="{desc} [{elapsed}]{postfix}")

    def _show(self, done: int, total: int | None, *, is_new: bool) -> None:
        self._bar.set_description_str(self._name, refresh=False)
        self._bar.set_postfix_str(self.figures(), refresh=is_new)
        self._bar.update()  # draws ten times a second at most

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

    def _show(self, done: int, total: int | None, *, is_new: bool) -> None:
        if time.monotonic() >= self._next:
            self._print(self._name)

    def _close(self) -> None:
        if self._n_sweeps:
            self._print("ended")

    def _print(self, name: str) -> None:
        now = time.monotonic()
        self._next = now + self._seconds
        parts = [name, self.figures(), f"{now - self._started:.1f} s"]
        print(", ".join(part for part in parts if part), file=self._stream or sys.stdout)


def progress(*, details: bool = False) -> FitProgress:
    """Return a callback that shows what a fit is doing, by tqdm.

    It shows the phase (checking the rows, choosing seeds, the starts of a search, crossing
    solutions, final sweeps, labelling the rows), the time so far, the number of sweeps and the
    least inertia so far, on a terminal or in a notebook. For points in parts, it also shows how far
    a long pass over them is. How long the rest takes is not known: a search goes on for as long as
    it finds something.

    Parameters
    ----------
    details : bool, default=False
        Also show the power (-inf is Lloyd's rule) and inertia of the last sweep, and how many
        centers there are at present.

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
        raise ImportError(
            'progress needs tqdm: pip install "powermeans[progress]", or pass verbose=1'
        ) from error
    return TqdmProgress(details=details)


# Scikit-learn's own callbacks, which see a fit as a tree of tasks.


if sklearn_callback is None:

    class CallbackSupportMixin:
        """Have no `set_callbacks`."""
else:
    CallbackSupportMixin = sklearn_callback.CallbackSupportMixin  # type: ignore[misc]


def with_callbacks(fit: Method) -> Method:
    """Let scikit-learn's callbacks tear down after a fit, where it has callbacks."""
    managed: Method = fit if sklearn_callback is None else sklearn_callback.with_callbacks(fit)
    return managed


class FitTasks:
    """A callback that reports a fit and, as its subtasks, sweeps to scikit-learn's callbacks.

    The number of sweeps is not known beforehand; a sweep is reported when it is complete.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._about = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._fit = estimator._init_callback_context(max_subtasks=None)
        self._fit.call_on_fit_task_begin(**self._about)

    def __call__(self, state: SweepState) -> bool:
        """Tell of a sweep, and return whether a callback asks to stop."""
        attributes = self._about["estimator"]._of_a_sweep(state.centers)
        sweep = self._fit.subcontext(task_name="sweep")
        sweep.call_on_fit_task_begin(**self._about)
        return bool(sweep.call_on_fit_task_end(**self._about, reconstruction_attributes=attributes))

    def complete(self) -> None:
        """Tell that the fit is complete, and the estimator ready to predict."""
        self._fit.call_on_fit_task_end(**self._about, reconstruction_attributes={})
