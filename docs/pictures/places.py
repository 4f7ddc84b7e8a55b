"""Places near the 180th meridian, by degrees and as points on the globe."""

import numpy as np
import pandas as pd
from drawing import draw_clusters, panels

from powermeans import PowerKMeans, Prepare

rng = np.random.default_rng(0)
middles = np.array([(-17.8, 179.5), (-36.8, 174.8), (21.3, -157.9)])
places = np.repeat(middles, 60, axis=0) + rng.normal(0, 1.5, (180, 2))
table = pd.DataFrame(places, columns=["latitude", "longitude"])
table["longitude"] = (table["longitude"] + 180) % 360 - 180

degrees = table[["longitude", "latitude"]].to_numpy()
found = {
    "Degrees as numbers": PowerKMeans(3, random_state=0).fit_predict(degrees),
    "Prepare(): points on the globe": PowerKMeans(3, random_state=0).fit_predict(
        Prepare().fit_transform(table)
    ),
}
axes = panels(*found, sharey=True)
for ax, labels in zip(axes, found.values(), strict=True):
    draw_clusters(ax, degrees, labels, size=14)
    ax.axvspan(-180, -154, color="0.5", alpha=0.08, linewidth=0)
    ax.set(xlabel="longitude", xlim=(-185, 185), xticks=range(-180, 181, 90))
axes[0].set_ylabel("latitude")
