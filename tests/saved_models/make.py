"""Write saved models, and beside each the points and labels by which later versions are judged.

    python tests/saved_models/make.py tests/saved_models

Version 0.1.0 wrote those that are here. A file of an earlier version is never written again: what
is there already is refused. When the format changes, add models under new names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans
from powermeans import MiniBatchPowerKMeans, PowerKMeans, SphericalMixture

COLUMNS = ["length", "width", "mass"]
N_CLUSTERS = 3


def draw_points(seed: int) -> NDArray[np.float64]:
    """Draw points of three clusters that overlap, in columns of different units."""
    random = np.random.default_rng(seed)
    middles = random.permutation(np.repeat([[0.0, 0, 0], [3, 1, 2], [1, 4, -2]], 20, axis=0))
    return (middles + random.normal(size=middles.shape)) * [1, 10, 100]


def scaled_power_kmeans() -> Any:
    """Fit power k-means to scaled columns with names."""
    model = PowerKMeans(N_CLUSTERS, refine=0, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(pd.DataFrame(draw_points(0), columns=COLUMNS))


def mini_batch_power_kmeans() -> Any:
    """Fit the first batches of a stream."""
    model = MiniBatchPowerKMeans(N_CLUSTERS, init_size=30, random_state=0)
    for batch in np.array_split(draw_points(0), 4):
        model.partial_fit(batch)
    return model


def spherical_mixture() -> Any:
    """Fit a mixture whose shares are learned."""
    return SphericalMixture(N_CLUSTERS, shares="learned", random_state=0).fit(draw_points(0))


MODELS = {
    make.__name__: make
    for make in (scaled_power_kmeans, mini_batch_power_kmeans, spherical_mixture)
}


def write_model(model: Any, path: Path) -> None:
    """Save a model, and as JSON its labels of new points and its centers once it learned them."""
    columns = COLUMNS if hasattr(model, "feature_names_in_") else None
    points = draw_points(1)
    labels = model.predict(points if columns is None else pd.DataFrame(points, columns=columns))
    expected = {"columns": columns, "points": points.tolist(), "labels": labels.tolist()}
    powermeans.save(model, path)
    if hasattr(model, "partial_fit"):
        expected["centers_after"] = model.partial_fit(points).cluster_centers_.tolist()
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


def main() -> None:
    """Write every model that is not there yet."""
    for name, make in MODELS.items():
        path = Path(sys.argv[1], f"{name}.pm")
        if path.exists():
            sys.exit(f"{path} is there: a model of an earlier version is never written again")
        write_model(make(), path)


if __name__ == "__main__":
    main()
