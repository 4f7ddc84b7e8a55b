"""Scikit-learn's own callbacks, where its version has them (1.9 and later)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn import callback as of_scikit_learn
except ImportError:  # before 1.9
    of_scikit_learn = None

if of_scikit_learn is None:

    class CallbackSupportMixin:
        """Have no `set_callbacks`."""
else:
    CallbackSupportMixin = of_scikit_learn.CallbackSupportMixin  # type: ignore[misc]


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn's callbacks tear down after the method, as its decorator does."""
    if of_scikit_learn is None:
        return method
    wrapped: Method = of_scikit_learn.with_callbacks(method)
    return wrapped


class FitTasks:
    """The tasks of a fit for scikit-learn's callbacks: the fit, and each of its sweeps."""

    def __init__(self, estimator: Any, **data: Any) -> None:
        self._estimator, self._root = estimator, None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self._root = estimator._init_callback_context(max_subtasks=None)
            self._root.call_on_fit_task_begin(estimator=estimator, **data)

    def sweep_ended(self) -> bool:
        """Tell of a sweep, and return whether a callback asks to stop."""
        if self._root is None:
            return False
        task = self._root.subcontext(task_name="sweep")
        task.call_on_fit_task_begin(estimator=self._estimator)
        return bool(task.call_on_fit_task_end(estimator=self._estimator))

    def ended(self) -> None:
        """Tell that the fit ended."""
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator)


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]
