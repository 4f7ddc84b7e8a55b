from collections.abc import Mapping
from typing import Any

import numpy as np

from powermeans.system.containers import to_array

Found = Mapping[str, np.ndarray]

# What is compared, with the power of the unit of length and that of the unit of weight by which it
# goes; a name stands for an attribute of `Row`, and None for what a unit changes otherwise.
UNITS: dict[str, tuple[Any, float]] = {
    "labels_": (0, 0), "cluster_centers_": ("center_degree", 0), "inertia_": ("degree", 1),
    "objective_": ("objective_degree", 1), "sizes_": (0, 1), "counts_": (0, 1), "outliers_": (0, 0),
    "radius_": (1, 0), "covariance_": (0, 0), "variance_": (2, 0), "variances_": (2, 0),
    "shares_": (0, 0), "log_likelihood_": (None, 0), "feature_weights_": (0, 0),
    "feature_scales_": (1, 0), "penalty_": ("degree", 1), "quantization_error_": (1, 0),
    "topographic_error_": (0, 0), "predict": (0, 0), "transform": (None, 0), "memberships": (0, 0),
    "score": (None, None), "prices_": ("degree", 0), "n_starts": (0, 0), "number": (0, 0),
    "by_k": (2, 1), "scores": (None, 0),
}  # fmt: skip
# Several prices may lead to the same sizes, so that they are compared where bits are.
NOT_UNIQUE = {"prices_"}
BY_POINT = {"labels_", "outliers_", "predict", "transform", "memberships"}
BY_CLUSTER = {"cluster_centers_", "sizes_", "prices_", "counts_", "variances_", "shares_"}


def found(model: Any, points: Any, weights: Any = None) -> dict[str, np.ndarray]:
    """Return all that is known of a fitted estimator, and what it says of points."""
    values = {name: getattr(model, name, None) for name in UNITS}
    for name in ("predict", "transform", "memberships"):
        values[name] = values[name] and values[name](points)
    if values["score"]:
        options = {} if weights is None else {"sample_weight": weights}
        values["score"] = model.score(points, **options)
    if hasattr(model, "spent_"):
        values["n_starts"] = len(model.spent_.accepted_inertias)
    return {name: np.asarray(to_array(v)) for name, v in values.items() if v is not None}


def assert_same(row: Any, got: Found, expected: Found, *, rtol: float = 1e-9) -> None:
    """Compare all that two fits found, up to rounding and, if need be, the clusters' numbers."""
    assert got.keys() == expected.keys()
    if not row.is_numbered:
        got, expected = renumbered(got), renumbered(expected)
    for name in expected.keys() - NOT_UNIQUE:
        values = expected[name]
        if values.dtype.kind in "ib":
            np.testing.assert_array_equal(got[name], values, err_msg=name)
        else:
            size = np.max(np.abs(values), initial=0.0)
            np.testing.assert_allclose(got[name], values, rtol, rtol * size, err_msg=name)


def renumbered(of: Found) -> Found:
    labels = of["labels_"]
    order = labels[np.sort(np.unique(labels, return_index=True)[1])]
    number = np.argsort(order)
    changed = dict(of)
    for name, values in of.items():
        if name in BY_CLUSTER:
            changed[name] = values[order]
        elif name in ("labels_", "predict"):
            changed[name] = number[values]
        elif name in ("transform", "memberships"):
            changed[name] = values[:, order]
    return changed


def of_points(of: Found, indices: Any) -> Found:
    return {name: v[indices] if name in BY_POINT else v for name, v in of.items()}


def in_units(row: Any, of: Found, length: float, weight: float) -> Found:
    """Divide by the units what was found in them, and leave out what depends on them otherwise."""
    divided = {}
    for name, values in of.items():
        of_length, of_weight = UNITS[name]
        if isinstance(of_length, str):
            of_length = getattr(row, of_length)
        if values.dtype.kind in "ib":
            divided[name] = values
        elif (of_length is not None or length == 1) and (of_weight is not None or weight == 1):
            divided[name] = values / length ** (of_length or 0) / weight ** (of_weight or 0)
    return divided


def assert_same_bits(got: Found, expected: Found) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=name, strict=True)
