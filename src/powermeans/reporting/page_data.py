"""The data that the script of a report shows: the points and the path of the centers."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.plots import fitted
from powermeans.plots.canvas import OKABE_ITO
from powermeans.plots.plane import Plane
from powermeans.reporting.subject import Subject
from powermeans.types import FloatArray, IndexArray

_MOST_COLUMNS_IN_TIP = 6
_MOST_POINTS_OF_ANNEALING = 3000
_MOST_STEPS = 200
_MOST_CENTERS_OF_ANNEALING = 20_000  # added up over the steps
_DIGITS = 4
_DIGITS_TO_DRAW = 5


def page_data(subject: Subject, annealing: PathRecorder | None) -> dict[str, Any]:
    """Return the data of the page's script in types of JSON."""
    told = subject.distinguishing(_MOST_COLUMNS_IN_TIP)
    data: dict[str, Any] = {
        "colors": OKABE_ITO,
        "clusters": len(subject.clusters),
        "sizes": [cluster.size for cluster in subject.clusters],
        "scatter": {
            "labels": _encoded(subject.labels[subject.shown], "<u4"),
            "rows": _encoded(subject.shown, "<u4"),
            "columns": [*_directions(subject), *_columns(subject, told)],
            "centers": _places_of_centers(subject, told),
        },
    }
    if annealing is not None:
        places = subject.plane.points
        some = places[fitted.sample_of(len(places), _MOST_POINTS_OF_ANNEALING)]
        steps = _steps(annealing, subject.plane)
        data["annealing"] = {"steps": steps, "points": _encoded(some.ravel())}
    return data


def _directions(subject: Subject) -> list[dict[str, Any]]:
    """Return the two directions of the plane as columns of the scatter plot."""
    are_principal = subject.points.shape[1] > 2
    return [
        {
            "name": name.partition(" (")[0] if are_principal else name or "chance",
            "values": _encoded(subject.plane.points[:, axis]),
        }
        for axis, name in enumerate(subject.plane.names)
    ]


def _columns(subject: Subject, told: IndexArray) -> list[dict[str, Any]]:
    """Return the columns that the tip of a point tells, in their own units."""
    dense = fitted.dense(subject.in_own_units(subject.points[subject.shown])[:, told])
    deviations = subject.own_deviations()[told]
    return [
        {
            "name": subject.columns.names[feature],
            "values": _encoded(values),
            "decimals": decimals_of(deviation) if deviation > 0 else 0,
            "tell": True,
        }
        for feature, values, deviation in zip(told, dense.T, deviations, strict=True)
    ]


def _places_of_centers(subject: Subject, told: IndexArray) -> list[list[float]]:
    """Return centers, or means if centers are no points, in the plane and in the columns."""
    if fitted.has_centers(subject.model):
        centers = fitted.centers_of(subject.model)
    else:
        centers = np.stack([cluster.mean for cluster in subject.clusters])
    centers = np.where(np.isnan(centers), 0.0, centers)
    own = subject.in_own_units(centers)[:, told]
    places: list[list[float]] = np.column_stack([subject.plane.project(centers), own]).tolist()
    return places


def _encoded(values: ArrayLike, dtype: str | None = None) -> str | dict[str, str]:
    """Return the bytes of an array as text, in float32 if that loses nothing."""
    if dtype is not None:
        return base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode("ascii")
    with np.errstate(over="ignore"):
        is_short = bool((np.asarray(values).astype(np.float32) == values).all())
    dtype = "<f4" if is_short else "<f8"
    return {"dtype": dtype, "bytes": str(_encoded(values, dtype))}


def decimals_of(value: float, digits: int = _DIGITS) -> int:
    """Return how many decimals a number needs to show some significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def _steps(annealing: PathRecorder, plane: Plane) -> list[dict[str, Any]]:
    """Return the centers of the first descent in the plane, at some steps if it is long."""
    states = annealing.descents()[0] if annealing.states else []
    if not states:
        raise ValueError(
            "annealing has recorded nothing: pass the recorder as callback of the fit, for example "
            "PowerKMeans(8, callback=recorder)"
        )
    most = min(_MOST_STEPS, max(2, _MOST_CENTERS_OF_ANNEALING // len(states[0].centers)))
    chosen = np.unique(np.linspace(0, len(states) - 1, most).astype(int))
    decimals = _decimals_to_draw(plane.points)
    return [
        {
            "words": _words_of(states[step]),
            "centers": [
                [round(right, decimals), round(up, decimals)]
                for right, up in plane.project(states[step].centers).tolist()
            ],
        }
        for step in chosen
    ]


def _decimals_to_draw(places: FloatArray) -> int:
    """Return as many decimals as a screen can show of the range of the points."""
    ranges = np.ptp(places, axis=0)
    least = float(ranges[ranges > 0].min(initial=math.inf))
    return 9 if least == math.inf else _DIGITS_TO_DRAW - math.floor(math.log10(least))


def _words_of(state: Any) -> str:
    power = "−∞ (Lloyd)" if state.power == -math.inf else f"{state.power:.3g}".replace("-", "−")
    return f"sweep {state.sweep}, power {power}, inertia {state.inertia:.6g}"
