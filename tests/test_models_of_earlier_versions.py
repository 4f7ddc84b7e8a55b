"""Models that earlier versions saved predict the same labels, and learn on alike.

`tests/saved_models/make.py` wrote the models and what is expected of them with version 0.1.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import powermeans

MODELS = sorted((Path(__file__).parent / "saved_models").glob("*.pm"))


def expected_of(path: Path) -> dict[str, Any]:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if expected["columns"] is not None:
        expected["points"] = pd.DataFrame(expected["points"], columns=expected["columns"])
    return expected


def test_three_models_of_version_0_1_0_are_kept() -> None:
    assert {path.stem for path in MODELS} >= {
        "mini_batch_power_kmeans",
        "scaled_power_kmeans",
        "spherical_mixture",
    }


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_of_an_earlier_version_predicts_the_same(path: Path) -> None:
    expected = expected_of(path)
    assert len(set(expected["labels"])) == 3
    labels = powermeans.load(path).predict(expected["points"])
    np.testing.assert_array_equal(labels, expected["labels"])


def test_a_stream_of_an_earlier_version_goes_on() -> None:
    path = next(path for path in MODELS if path.stem == "mini_batch_power_kmeans")
    expected = expected_of(path)
    model = powermeans.load(path)
    assert not np.allclose(model.cluster_centers_, expected["centers_after"], rtol=1e-3)
    model.partial_fit(expected["points"])
    np.testing.assert_allclose(model.cluster_centers_, expected["centers_after"], rtol=1e-9)
