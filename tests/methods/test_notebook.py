"""What a notebook shows of a fitted estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import estimator_html_repr

from powermeans import KMeans, MiniBatchPowerKMeans, PowerKMeans
from powermeans.methods import KernelPowerKMeans, SelfOrganizingMap

FRAME = pd.DataFrame(
    {"<spend>": [1.0, 3.0, 2.0, 50.0, 52.0], "age": [30.0, 31.0, 32.0, 33.0, 34.0]}
)


def shown_of(model) -> str:
    return model._repr_mimebundle_()["text/html"]


def test_sizes_and_what_sets_clusters_apart_are_above_the_diagram(monkeypatch) -> None:
    page = "https://docs.example/KMeans.html"
    monkeypatch.setattr(KMeans, "_get_doc_link", lambda self: page)
    model = KMeans(2, init=[[1.0, 30.0], [50.0, 33.0]], n_init=1).fit(FRAME)
    shown, diagram, below = shown_of(model).partition("<details><summary>Parameters")
    assert diagram
    assert "sk-top-container" in below
    assert "sk-top-container" not in shown
    assert f"<b>KMeans</b>: 2 clusters, inertia {model.inertia_:.6g}" in shown
    assert f'href="{page}"' in shown
    assert shown.index(">3 (") < shown.index(">2 (")  # the larger cluster first
    assert "(60 %)" in shown
    assert "&lt;spend&gt; 2 (mean 21.6), age 31 (mean 32)" in shown
    assert "<spend>" not in shown
    assert "color:#" not in shown  # it suits a dark notebook and a light one


def test_before_a_fit_a_notebook_shows_the_diagram_alone() -> None:
    model = PowerKMeans(2)
    assert "<b>PowerKMeans</b>" not in shown_of(model)
    assert "<b>PowerKMeans</b>" in shown_of(model.fit(FRAME))
    assert "<b>PowerKMeans</b>" not in estimator_html_repr(model)


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (KernelPowerKMeans(2, random_state=0), ["cluster", "rows"]),
        (SelfOrganizingMap((3, 5), random_state=0), ["cluster", "rows", "farthest from the mean"]),
        (MiniBatchPowerKMeans(2, random_state=0), ["cluster", "rows", "farthest from the mean"]),
    ],
)
def test_columns_are_those_that_an_estimator_knows(model, columns) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    shown = shown_of(model.fit(X)).partition("<details>")[0]
    assert shown.count("<th ") == len(columns)
    assert all(column in shown for column in columns)
    assert ("and 3 more clusters" in shown) == isinstance(model, SelfOrganizingMap)


def test_centers_without_labels_have_no_sizes() -> None:
    shown = shown_of(KMeans.from_centers([[0.0, 1.0], [4.0, 1.0]])).partition("<details>")[0]
    assert "x0 4 (mean 2)" in shown
    assert ">rows</th>" not in shown
    assert "farthest from the mean of all centers" in shown
