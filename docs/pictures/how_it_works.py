"""How two centers share a point between them, at several powers."""

import numpy as np
from drawing import panels

from powermeans.mathematics.power_mean import memberships, power_mean
from powermeans.plots.canvas import BLUE, GREEN, ORANGE, VERMILION

places = np.linspace(-0.5, 1.5, 401)
sq_dist = np.column_stack([places**2, (places - 1) ** 2])
means, shares = panels("The power mean of both distances", "The share of the left center")
powers = zip((-0.5, -1.0, -3.0, -np.inf), (ORANGE, VERMILION, GREEN, BLUE), strict=True)
for power, color in powers:
    label = f"s = {power:g}".replace("-inf", "−∞").replace("-", "−")
    means.plot(places, power_mean(sq_dist, power), color=color, label=label)
    shares.plot(places, memberships(sq_dist, power)[:, 0], color=color)
for ax in (means, shares):
    ax.set(xticks=[0, 1], xticklabels=["left center", "right center"])
means.legend(frameon=False)
