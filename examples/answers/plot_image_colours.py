"""
The colours of a picture
========================

Clustering the pixels of a photograph reduces its tens of thousands of colours to twelve that show
most of it. Each pixel is a point of three numbers, and the centers are the palette.

The palette loses rare colours, however bright, such as the red of this pavilion: a few pixels add
little to the sum of squares. To keep them, give them more weight with `sample_weight`. Differences
of red, green and blue are not those that the eye sees; if that matters, first convert the pixels to
a colour space such as CIELAB.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from powermeans import PowerKMeans

picture = load_sample_image("china.jpg")[::3, ::3] / 255.0
pixels = picture.reshape(-1, 3)
print(f"{len(pixels)} pixels, {len(np.unique(pixels, axis=0))} colours")

# %%
# Quick settings are good enough for a palette.

model = PowerKMeans(12, effort="fast", random_state=0).fit(pixels)
palette = model.cluster_centers_.clip(0, 1)
repainted = palette[model.labels_].reshape(picture.shape)

figure, panels = plt.subplots(1, 2, figsize=(10, 3.7), layout="constrained")
for ax, image, title in zip(
    panels, (picture, repainted), ("All colours", "Twelve colours"), strict=True
):
    ax.imshow(image)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()

# %%
# The palette, from dark to bright. The width of a colour is its share of the picture.

order = np.argsort(palette @ [0.3, 0.6, 0.1])
shares = np.bincount(model.labels_, minlength=12)[order] / len(pixels)
figure, ax = plt.subplots(figsize=(10, 1.6), layout="constrained")
ax.barh(0, shares, left=np.cumsum(shares) - shares, color=palette[order])
ax.set_axis_off()
ax.margins(0)
plt.show()
