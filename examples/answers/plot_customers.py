"""
Groups of customers
===================

`PowerKMeans` finds kinds of customers, and the profile of each suggests what to call it. Four
numbers describe each of nine hundred customers of a made-up shop.

Real customers are seldom so clearly separated, and k-means finds k centers in any data.
`powermeans.choose_k` shows how sure the number of groups is.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from powermeans import PowerKMeans, plots

rng = np.random.default_rng(0)
kinds = pd.DataFrame(
    [
        ("regulars", 330, 40.0, 25.0, 0.15, 8.0),
        ("bargain hunters", 270, 12.0, 18.0, 0.75, 30.0),
        ("stockers-up", 180, 8.0, 140.0, 0.25, 40.0),
        ("drifting away", 120, 3.0, 35.0, 0.30, 220.0),
    ],
    columns=["kind", "count", "visits a year", "basket", "share on sale", "days away"],
)
typical = kinds.loc[np.repeat(kinds.index, kinds["count"])].reset_index(drop=True)
customers = typical[["visits a year", "basket", "days away"]] * rng.lognormal(0, 0.35, (900, 3))
on_sale = typical["share on sale"]
customers["share on sale"] = rng.beta(12 * on_sale, 12 * (1 - on_sale))
print(customers.describe().round(1))

# %%
# Distances add up over the columns, so make the columns comparable first: take logarithms of
# amounts that vary by factors, then scale all columns to the same variance.

amounts = ["visits a year", "basket", "days away"]
scaled = customers.copy()
scaled[amounts] = np.log(customers[amounts])
scaled = (scaled - scaled.mean()) / scaled.std()
model = PowerKMeans(4, random_state=0).fit(scaled)

# %%
# The profiles: the mean of each group and the middle half of its customers, in standard deviations
# from the overall mean.

plots.profiles(model, scaled)
plt.show()

# %%
# The sizes of the groups, and their medians in the units of the shop.

print(np.bincount(model.labels_))
print(customers.groupby(model.labels_).median().round(2))
