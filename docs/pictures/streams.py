"""The mean squared distance of each chunk, before and after the points move away."""

import numpy as np
from drawing import panels

from powermeans import MiniBatchPowerKMeans
from powermeans.plots.canvas import BLUE, ORANGE

rng = np.random.default_rng(0)
means = 10 * rng.normal(size=(20, 5))
stream = MiniBatchPowerKMeans(20, memory=5_000, random_state=0)
drifts = []
for chunk in range(80):
    shift = 6.0 if chunk >= 40 else 0.0
    points = means[rng.integers(20, size=500)] + rng.normal(size=(500, 5)) + shift
    drifts.append(stream.partial_fit(points).drift_)

seen = [(chunk, drift) for chunk, drift in enumerate(drifts) if drift is not None]
(ax,) = panels("After 40 chunks, the points move away", height=3.2)
for name, color, style in (("mean_sq_dist", BLUE, "-"), ("running_mean_sq_dist", ORANGE, "--")):
    heights = [getattr(drift, name) for _, drift in seen]
    ax.semilogy([chunk for chunk, _ in seen], heights, style, color=color, label=f"drift_.{name}")
ax.set(xlabel="chunk")
ax.legend(frameon=False)
