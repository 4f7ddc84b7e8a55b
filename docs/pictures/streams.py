"""The mean squared distance of each chunk to the centers before it; then the points move away."""

import numpy as np
from drawing import panels

from powermeans import MiniBatchPowerKMeans
from powermeans.plots.canvas import BLUE

rng = np.random.default_rng(0)
means = 10 * rng.normal(size=(20, 5))
stream = MiniBatchPowerKMeans(20, memory=5_000, random_state=0)
chunks, heights = range(80), []
for chunk in chunks:
    shift = 6.0 if chunk >= 40 else 0.0
    points = means[rng.integers(20, size=500)] + rng.normal(size=(500, 5)) + shift
    if chunk:  # before the first there are no centers
        heights.append(-stream.score(points) / len(points))
    stream.partial_fit(points)

(ax,) = panels("After 40 chunks, the points move away", height=3.2)
ax.semilogy(chunks[1:], heights, color=BLUE)
ax.set(xlabel="chunk", ylabel="mean squared distance")
