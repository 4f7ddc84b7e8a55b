"""
The same clusters next month
============================

In May one group of customers has grown, one has moved, and a new one has appeared. The model is
fitted again, and its clusters keep their numbers.
"""

import numpy as np

from powermeans import PowerKMeans, match_labels, refit, what_changed

rng = np.random.default_rng(0)
places = np.array([[0, 0], [12, 0], [0, 12]])
april = np.repeat(places, [200, 300, 400], axis=0) + rng.normal(size=(900, 2))
grown = np.repeat([*places[:2], [3, 14], [20, 3]], [200, 600, 400, 150], axis=0)
may = grown + rng.normal(size=(1350, 2))
model = PowerKMeans(3, random_state=0).fit(april)
print(what_changed(model, refit(model, may), may))

# %%
# With four clusters the new group gets a number of its own.

four = match_labels(PowerKMeans(4, random_state=0).fit(may), old=model)
changes = what_changed(model, four, may)
print(changes)
changes.plot()
