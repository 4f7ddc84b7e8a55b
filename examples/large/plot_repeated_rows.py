"""
Rows that repeat
================

Rows that occur many times need to be clustered only once: `sample_weight` is how often each occurs.
A picture of 427 by 640 pixels has 273 280 rows, but with sixteen steps for each of red, green and
blue hardly more than a thousand different ones. Both fits end at the same inertia, up to local
optima, and the one with weights is far faster.

This pays if rows repeat exactly. Measurements with many digits do not, and rounding them changes
the data: compare the inertia of a few fits before you round.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from powermeans import PowerKMeans

picture = load_sample_image("china.jpg") // 16
pixels = picture.reshape(-1, 3).astype(np.float64)
colours, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
print(f"{len(colours)} different rows of {len(pixels)}")

# %%
# The same estimator, once with all rows and once with the different ones and their counts.

model = PowerKMeans(8, random_state=0)
figures = {}
for name, rows, weights in (("all rows", pixels, None), ("different rows", colours, counts)):
    began = time.perf_counter()
    model.fit(rows, sample_weight=weights)
    figures[name] = (time.perf_counter() - began, model.inertia_)
    print(f"{name}: {figures[name][0]:.3f} s, inertia {figures[name][1]:.0f}")

# %%
# All pixels of a colour get its label.

labels = model.labels_[places.ravel()]
painted = np.clip(model.cluster_centers_[labels] * 16 + 8, 0, 255).astype(np.uint8)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
panels[0].bar(list(figures), [seconds for seconds, _ in figures.values()], color="#0072B2")
panels[0].set(ylabel="seconds of a fit", title="The same inertia, in less time")
panels[0].spines[["top", "right"]].set_visible(False)
panels[1].imshow(painted.reshape(picture.shape))
panels[1].set(title="Eight colours, from weighted rows")
panels[1].set_axis_off()
plt.show()
