"""A container of a user's own: its points, and results that come home and are saved."""

import numpy as np
import pytest
from problems import blobs

from powermeans import BalancedKMeans, KMeans, PowerKMeans, load, save
from powermeans.methods import FuzzyCMeans, KHarmonicMeans, OnlineKMeans, SelfOrganizingMap
from powermeans.system.containers import like_given, to_array


class Labelled:
    """An array whose rows have names, which NumPy cannot read."""

    def __init__(self, values, names=None):
        self.values, self.names = values, names


@to_array.register(Labelled)
def _(values, name=None):
    return values.values


@like_given.register(Labelled)
def _(given, values, of):
    return Labelled(values, given.names if of == "points" else None)


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(4, random_state=0),
        KMeans(4, random_state=0),
        BalancedKMeans(4, size_min=10, random_state=0),
        KHarmonicMeans(4, random_state=0),
        FuzzyCMeans(4, random_state=0),
        SelfOrganizingMap((2, 2), random_state=0),
        OnlineKMeans(4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_results_come_home_in_the_container_of_the_points_and_are_saved(model, tmp_path):
    X = blobs(200, 3, 4, seed=0)
    points = Labelled(X, [f"row {number}" for number in range(len(X))])
    model.fit(points)
    plain = type(model)(**model.get_params()).fit(X)
    for found, expected in (
        (model.labels_, plain.labels_),
        (model.predict(points), plain.predict(X)),
        (model.transform(points), plain.transform(X)),
    ):
        assert found.names == points.names
        np.testing.assert_array_equal(found.values, expected)
    assert model.cluster_centers_.names is None
    np.testing.assert_array_equal(model.cluster_centers_.values, plain.cluster_centers_)
    if hasattr(model, "memberships"):
        assert model.memberships(points).names == points.names
    assert model.score(points) == plain.score(X)
    save(model, tmp_path / "model.pm")
    np.testing.assert_array_equal(load(tmp_path / "model.pm").predict(X), plain.labels_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
