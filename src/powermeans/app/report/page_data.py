"""The data that the script of a report shows: the points and the path of the centers."""

from __future__ import annotations

import base64
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans.app.report.subject import Subject
from powermeans.app.report.text import decimals_of, visible
from powermeans.engine.callbacks import PathRecorder
from powermeans.engine.history import SweepState
from powermeans.plots import fitted
from powermeans.plots.canvas import OKABE_ITO
from powermeans.types import FloatArray, IndexArray

# Words on some centers, these in the order of the clusters of the page, and whether they are a jump
# from the centers before, to where another descent ended.
_Step = tuple[str, FloatArray, bool]


def page_data(subject: Subject, annealing: PathRecorder | None) -> dict[str, Any]:
    """Return the data of the page's script in types of JSON."""
    told = subject.distinguishing(6)
    data: dict[str, Any] = {
        "colors": OKABE_ITO,
        "names": [visible(name) for name in subject.names],
        "sizes": [cluster.size for cluster in subject.clusters],
        "scatter": {
            "labels": _encoded(subject.labels[subject.shown], "<u4"),
            "rows": _encoded(subject.row_numbers[subject.shown], "<u4"),
            "columns": [*_directions(subject), *_columns(subject, told)],
            "centers": _places_of_centers(subject, told),
        },
    }
    if annealing is not None:
        places = subject.plane.points
        some = places[fitted.sample_of(len(places), 3000)]
        data["annealing"] = {
            "steps": _steps(annealing, subject),
            "points": _encoded(some.ravel()),
            "names": [visible(name) for name in subject.plane.names],
        }
    return data


def _directions(subject: Subject) -> list[dict[str, Any]]:
    """Return the two directions of the plane as columns of the scatter plot."""
    are_principal = subject.points.shape[1] > 2
    return [
        {
            "name": name.partition(" (")[0] if are_principal else visible(name) or "chance",
            "values": _encoded(subject.plane.points[:, axis]),
        }
        for axis, name in enumerate(subject.plane.names)
    ]


def _columns(subject: Subject, told: IndexArray) -> list[dict[str, Any]]:
    """Return the columns that the tip of a point tells, in their own units."""
    values_told = subject.values_of(subject.shown, told)
    deviations = subject.own_deviations()[told]
    return [
        {
            "name": visible(subject.columns.names[feature]),
            "values": _encoded(values),
            "decimals": decimals_of(deviation) if deviation > 0 else 0,
            "tell": True,
        }
        for feature, values, deviation in zip(told, values_told.T, deviations, strict=True)
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


def _steps(annealing: PathRecorder, subject: Subject) -> list[dict[str, Any]]:
    """Return centers in the plane: the first descent, what the search found, and the result."""
    if not annealing.states:
        raise ValueError(
            "annealing has recorded nothing: pass the recorder as callback of the fit, for example "
            "PowerKMeans(8, callback=recorder)"
        )
    plane, decimals = subject.plane, _decimals_to_draw(subject.plane.points)
    return [
        {
            "words": words,
            "jump": is_jump,
            "centers": [
                [round(right, decimals), round(up, decimals)]
                for right, up in plane.project(centers).tolist()
            ],
        }
        for words, centers, is_jump in _path(annealing, subject)
    ]


def _path(annealing: PathRecorder, subject: Subject) -> list[_Step]:
    """Return the steps of a path that ends at the centers of the model."""
    ends = fitted.centers_of(subject.model)
    most = min(200, max(4, 20_000 // len(ends)))
    way = [state for state in annealing.descents()[0] if len(state.centers) == len(ends)]
    found = [one for one in annealing.improvements if len(one.centers) == len(ends)]
    path: list[_Step] = [(f"the result, {_inertia_of(subject)}", ends, True)]
    for one in reversed(_some(found, most // 2)):
        words = f"search, after sweep {one.sweep}: inertia {one.inertia:.6g}"
        order = _order(one.centers, path[-1][1])
        path.append((words, one.centers[order], True))
    if way:
        # Annealed centers coincide at first, so their order is that of the last of them.
        order = _order(way[-1].centers, path[-1][1])
        words_of = _words_by_sweep(way)
        path += [
            (words_of[state.sweep], state.centers[order], False)
            for state in reversed(_some(way, most // 2))
        ]
    return _without_twin_of_result(path[::-1])


def _some(steps: list[Any], most: int) -> list[Any]:
    """Return some steps at even distances, the first and the last among them."""
    if not steps:
        return []
    return [steps[place] for place in np.unique(np.linspace(0, len(steps) - 1, most).astype(int))]


def _order(centers: FloatArray, like: FloatArray) -> IndexArray:
    """Return the order in which centers are nearest to others, each to one."""
    order: IndexArray = linear_sum_assignment(cdist(like, centers))[1]
    return order


def _words_by_sweep(way: list[SweepState]) -> dict[int, str]:
    """Tell the power of each sweep, and the inertia where it went, as the next sweep found it."""
    after = {one.sweep: f", inertia {two.inertia:.6g}" for one, two in _neighbours(way)}
    return {
        state.sweep: f"sweep {state.sweep}, power {_power(state)}{after.get(state.sweep, '')}"
        for state in way
    }


def _neighbours(way: list[SweepState]) -> list[tuple[SweepState, SweepState]]:
    return [(one, two) for one, two in pairwise(way) if two.sweep == one.sweep + 1]


def _without_twin_of_result(path: list[_Step]) -> list[_Step]:
    """Join the last two steps if the search ended where its centers were already."""
    if len(path) < 2:
        return path
    *before, (words, centers, is_jump), (of_result, result, _) = path
    # They are the same if they differ by rounding of what is large in them.
    if np.abs(centers - result).max() > 1e-9 * np.abs(result).max():
        return path
    how = words.partition(" inertia")[0].rstrip(",:")
    return [*before, (f"{how}: {of_result}", centers, is_jump)]


def _inertia_of(subject: Subject) -> str:
    inertia = getattr(subject.model, "inertia_", None)
    return "the clusters of this page" if inertia is None else f"inertia {inertia:.6g}"


def _power(state: SweepState) -> str:
    return "−∞ (Lloyd)" if state.power == -math.inf else f"{state.power:.3g}".replace("-", "−")


def _decimals_to_draw(places: FloatArray) -> int:
    """Return as many decimals as a screen can show of the range of the points."""
    ranges = np.ptp(places, axis=0)
    least = float(ranges[ranges > 0].min(initial=math.inf))
    return 9 if least == math.inf else 5 - math.floor(math.log10(least))
