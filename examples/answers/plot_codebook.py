"""
A codebook of patches
=====================

Centers are a codebook with which to compress a picture, and the inertia is the loss. Vector
quantization cuts the picture into patches and stores, for each patch, only the number of the
nearest entry of the codebook. With 64 entries that is six bits for sixteen pixels.

To compress pictures, use a format made for it: you must store the codebook as well, and it fits
only pictures like those it was made from. Use a codebook as a first step to describe pictures by
counts of patches.
"""

# sphinx_gallery_thumbnail_number = 2
from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from powermeans import PowerKMeans

Array = NDArray[np.float64]


def patches_of(images: Array) -> Array:
    """The four quarters of each picture of 8 x 8 pixels, as rows of 16 numbers."""
    return images.reshape(-1, 2, 4, 2, 4).swapaxes(2, 3).reshape(-1, 16)


def images_of(patches: Array) -> Array:
    """The pictures, rebuilt from their patches."""
    return patches.reshape(-1, 2, 2, 4, 4).swapaxes(2, 3).reshape(-1, 8, 8)


digits = load_digits().images
known, new = digits[:1500], digits[1500:]
codebook = PowerKMeans(64, effort="fast", random_state=0).fit(patches_of(known))

# %%
# The codebook, ordered by brightness.

order = np.argsort(codebook.cluster_centers_.sum(axis=1))
figure, panels = plt.subplots(4, 16, figsize=(10, 2.7), layout="constrained")
for ax, entry in zip(panels.flat, codebook.cluster_centers_[order], strict=True):
    ax.imshow(entry.reshape(4, 4), cmap="gray_r", vmin=0, vmax=16)
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Above: pictures that the codebook has not seen. Below: how it rebuilds them.

rebuilt = images_of(codebook.cluster_centers_[codebook.predict(patches_of(new))])
lost = np.sum((new - rebuilt) ** 2) / np.sum((new - new.mean(axis=0)) ** 2)
figure, panels = plt.subplots(2, 12, figsize=(10, 2), layout="constrained")
for column, (before, after) in zip(panels.T, zip(new, rebuilt, strict=True), strict=False):
    for ax, image in zip(column, (before, after), strict=True):
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=16)
        ax.set_axis_off()
figure.suptitle(f"{lost:.0%} of the variance lost, with 24 bits for 64 pixels", fontsize=11)
plt.show()
