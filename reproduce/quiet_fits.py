"""Fits whose warnings say nothing new to who computes them."""

from __future__ import annotations

import warnings
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from powermeans.estimators.base import CenterEstimator
from powermeans.types import FloatArray

Model = TypeVar("Model", bound=CenterEstimator)


def fitted(model: Model, points: npt.ArrayLike) -> Model:
    """The model after its fit, which may end at `max_iter` or with fewer clusters than asked for.

    An experiment that records the error epoch by epoch, or counts the fits that go wrong, expects
    both.

    Examples
    --------
    >>> from powermeans import KMeans
    >>> fitted(KMeans(3, init=[[0.0], [1.0], [5.0]], max_iter=1), [[0.0], [0.0], [5.0]]).n_iter_
    1
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points)
    return model


def centers_of(model: CenterEstimator) -> FloatArray:
    """The centers of a fitted model in float64.

    Examples
    --------
    >>> from powermeans import KMeans
    >>> centers_of(KMeans(1).fit([[1.0], [2.0]]))
    array([[1.5]])
    """
    return np.asarray(model.cluster_centers_, dtype=np.float64)
