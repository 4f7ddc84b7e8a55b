"""Words as codes, and by Prepare, beside a column of numbers."""

import numpy as np
import pandas as pd
from drawing import draw_clusters, panels
from sklearn.preprocessing import StandardScaler

from powermeans import PowerKMeans, Prepare

rng = np.random.default_rng(3)
plans = np.array(["firm", "free", "team"])  # in alphabetical order, as codes count them
codes = rng.integers(3, size=450)
visits = np.array([32.0, 20.0, 32.0])[codes] + rng.normal(0, 4, 450)
table = pd.DataFrame({"plan": plans[codes], "visits": visits})

points = StandardScaler().fit_transform(np.column_stack([codes, visits]))
shown = np.column_stack([codes + rng.uniform(-0.28, 0.28, 450), visits])
found = {
    "Codes 0, 1, 2": PowerKMeans(2, random_state=0).fit_predict(points),
    "Prepare()": PowerKMeans(2, random_state=0).fit_predict(Prepare().fit_transform(table)),
}
axes = panels(*found, sharey=True)
for ax, labels in zip(axes, found.values(), strict=True):
    draw_clusters(ax, shown, labels)
    ax.set_xticks(range(3), plans)
axes[0].set_ylabel("visits")
