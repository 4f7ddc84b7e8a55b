"""Callbacks: what shows a fit, and what records its path.

A callback is called after each sweep with a `SweepState`; if it returns True, the fit stops. Its
method `phase(name, done, total)`, if there is one, is called when a phase begins and while it goes
on, and its method `fit_ended()` once at the end, also after an error.
"""

from __future__ import annotations

import abc
import functools
import math
import sys
import time
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Self, TextIO, TypeVar

import numpy as np

from powermeans.engine.history import SweepState
from powermeans.types import FloatArray

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
        attributes = self._about["estimator"]._attributes_at(state.centers)
        sweep = self._fit.subcontext(task_name="sweep")
        sweep.call_on_fit_task_begin(**self._about)
        return bool(sweep.call_on_fit_task_end(**self._about, reconstruction_attributes=attributes))

    def complete(self) -> None:
        """Tell that the fit is complete, and the estimator ready to predict."""
        self._fit.call_on_fit_task_end(**self._about, reconstruction_attributes={})


# What records a fit.


class PathRecorder:
    """Record the sweeps of a fit; pass it as `callback`.

    It records the first run of a fit, and starts again with the next fit. Once there are more than
    `most` sweeps, it drops every second one, and from then on records only every second one, and so
    on. It always keeps the last one.

    Parameters
    ----------
    most : int, default=1000
        How many sweeps to keep at most, at least 2.

    Attributes
    ----------
    states : list of SweepState
        The sweeps, in their order; `centers` of a state are where the sweep moved them.

    See Also
    --------
    powermeans.plots.annealing_path : Draws it.
    powermeans.report : Shows it with a slider.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine import PathRecorder
    >>> path = PathRecorder()
    >>> model = PowerKMeans(2, power=-1.0, schedule=2.0, effort="none", init=[[0.0], [1.0]],
    ...                     callback=path).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> len(path.states) == model.n_iter_
    True
    >>> path.centers()[-1].ravel()
    array([0.5, 9.5])
    """

    def __init__(self, most: int = 1000) -> None:
        if most < 2:
            raise ValueError(f"most={most!r} must be at least 2: pass for example most=1000")
        self.most = most
        self._forget()

    def _forget(self) -> None:
        self._kept: list[tuple[int, SweepState]] = []  # the number of the descent, and the sweep
        self._descent, self._stride, self._n_seen = 0, 1, 0

    @property
    def states(self) -> list[SweepState]:
        """The recorded sweeps, in order."""
        return [state for _, state in self._kept]

    def __call__(self, state: SweepState) -> None:
        """Record one sweep."""
        if state.run > 0:
            return
        if state.sweep == 1:
            self._forget()
        kept = self._kept
        if kept and not _goes_on(kept[-1][1], state):
            self._descent += 1
        if kept and (self._n_seen - 1) % self._stride != 0:
            kept.pop()  # off the stride, and no longer the last
        kept.append((self._descent, state))
        self._n_seen += 1
        if len(kept) > self.most:
            self._stride *= 2
            last = kept[-1]
            del kept[1::2]
            if kept[-1] is not last:
                kept.append(last)

    def descents(self) -> list[list[SweepState]]:
        """Split the sweeps where the power rises, or centers come, go or are put elsewhere."""
        groups = groupby(self._kept, key=itemgetter(0))
        return [[state for _, state in group] for _, group in groups]

    def centers(self) -> list[FloatArray]:
        """Return the centers of the first descent, sweep by sweep."""
        return [state.centers for state in self.descents()[0]] if self._kept else []


def _goes_on(before: SweepState, state: SweepState) -> bool:
    """Tell whether a sweep began at the centers in which the one before it ended."""
    if state.power > before.power or len(state.centers) != len(before.centers):
        return False
    if state.n_separated > 0:
        return True
    moved = state.centers - before.centers
    unit = float(np.abs(moved).max())
    distance = unit * float(np.linalg.norm(moved / unit)) if unit > 0 else 0.0
    rounding = _ROUNDING * float(np.abs(state.centers).max())
    return abs(distance - state.center_shift) <= _SAME * state.center_shift + rounding
