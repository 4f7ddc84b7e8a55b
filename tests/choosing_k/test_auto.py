"""Estimators that choose the number of clusters themselves."""

import numpy as np
import pytest
from problems import on_lattice
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powermeans import KMeans, MaxSeconds, PowerKMeans, choose_k, load, save

ESTIMATORS = pytest.mark.parametrize("kind", [KMeans, PowerKMeans])


@ESTIMATORS
def test_a_fit_chooses_the_number_that_choose_k_recommends(kind: type, tmp_path) -> None:
    points = on_lattice(4)
    model = kind("auto", random_state=0).fit(points)
    assert model.n_clusters_ == choose_k(points, random_state=0).recommended == 4
    assert model.cluster_centers_.shape == (4, 2)
    assert model.n_clusters == "auto"
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").n_clusters_ == 4
    unfitted = clone(model)
    assert unfitted.n_clusters == "auto"
    assert not hasattr(unfitted, "n_clusters_")
    assert model.fit(points[points[:, 0] < 6]).n_clusters_ == 2


@ESTIMATORS
def test_pipelines_and_grids_take_auto(kind: type) -> None:
    points = on_lattice(4)
    pipeline = make_pipeline(StandardScaler(), kind("auto", random_state=0))
    assert len(np.unique(pipeline.fit_predict(points))) == 4
    name = f"{kind.__name__.lower()}__n_clusters"
    grid = GridSearchCV(pipeline, {name: [2, "auto"]}, cv=2).fit(points)
    assert grid.best_params_ == {name: "auto"}


def test_few_rows_weights_missing_entries_and_time_are_known_to_the_choice() -> None:
    few = np.array([[0.0], [1.0], [9.0]])
    found = [KMeans("auto", random_state=0).fit(few[:n]).n_clusters_ for n in (1, 2, 3)]
    assert found == [1, 1, 2]
    points = on_lattice(4)
    weights = (points[:, 0] < 6).astype(float)
    assert KMeans("auto", random_state=0).fit(points, sample_weight=weights).n_clusters_ == 2
    holed = np.column_stack([points, points])
    holed[::9, 1] = np.nan
    model = PowerKMeans("auto", missing="observed", stop=MaxSeconds(60), random_state=0)
    assert model.fit(holed).n_clusters_ == 4


def test_auto_is_refused_where_it_cannot_be() -> None:
    for model in (KMeans("auto", init=np.zeros((2, 2))), PowerKMeans("auto", divergence="cosine")):
        with pytest.raises(ValueError, match="n_clusters='auto' is for squared Euclidean"):
            model.fit(on_lattice(4))
