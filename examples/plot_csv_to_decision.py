"""
From a CSV to a decision
========================

A shop has a list of its customers and money for one campaign. Which customers should get it? This
example goes from a file, as a colleague would send it, to a list of customers, and checks on the
way what could be wrong. Download it as a notebook to try it on a file of your own.
"""

# %%
# The file
# --------
# It has semicolons, decimal commas, words, an identifier, and -999 where an age is unknown. It is
# made up here, from four kinds of customers that the rest of the example does not know about.

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from powermeans import (
    PowerKMeans,
    Prepare,
    choose_k,
    explain,
    plots,
    stability,
)

rng = np.random.default_rng(0)
kind = rng.choice(4, 800, p=[0.35, 0.3, 0.2, 0.15])
orders = rng.poisson(np.array([30, 10, 7, 3])[kind])
basket = rng.gamma(30, np.array([25, 18, 120, 35])[kind] / 30)
pause = rng.gamma(20, np.array([10, 35, 40, 220])[kind] / 20).round()
channel = np.array(["app", "web", "branch"])[
    np.where(rng.random(800) < 0.75, np.array([0, 1, 2, 1])[kind], rng.integers(3, size=800))
]
age = np.where(rng.random(800) < 0.08, -999, rng.normal(45, 14, 800).clip(18, 90).round())

folder = Path(mkdtemp())
pd.DataFrame(
    {
        "customer": [f"K{number:05}" for number in rng.permutation(800)],
        "age": age.astype(int),
        "channel": channel,
        "orders a year": orders,
        "basket": basket.round(2),
        "days since order": pause.astype(int),
    }
).to_csv(folder / "customers.csv", sep=";", decimal=",", index=False)
print((folder / "customers.csv").read_text()[:180])

# %%
# What is in the columns?
# -----------------------
# `Prepare` finds out what each column contains. Read the table below: a column that was misread is
# hard to notice later. Age is left out, since it does not describe what a customer buys.

customers = pd.read_csv(folder / "customers.csv", sep=";", decimal=",")
prepare = Prepare(as_={"age": "ignore"}).fit(customers)
for column in prepare.columns_:
    print(f"{column.name:18}{column.kind:12}{column.why:26}{column.done}")

# %%
# How many kinds of customers?
# ----------------------------
# The answer is clear if the groups are apart. If it is not, prefer few groups: somebody has to
# work with each of them.

points = prepare.transform(customers)
choice = choose_k(points, range(2, 11), random_state=0)
print(choice.verdict())
plots.choice_of_k(choice)
plt.show()

# %%
# Are the groups real?
# --------------------
# Three checks: do the same groups return in other samples of customers (above 85 %, they do), how
# much lower could the sum of squares be, and how large are the groups?

model = PowerKMeans(choice.recommended, random_state=0).fit(points)
print(stability(model, points, random_state=0))
print(model.optimality_gap(points, max_seconds=2))
print(np.bincount(model.labels_), "customers")

# %%
# Who are they?
# -------------
# Rules in the words of the table, and the means of each group.

pipe = make_pipeline(prepare, model)
print(explain(pipe, customers))

customers["group"] = model.labels_
means = customers.groupby("group")[["orders a year", "basket", "days since order"]].mean()
means["customers"] = customers["group"].value_counts()
means["revenue a year"] = means["orders a year"] * means["basket"] * means["customers"]
print(means.round(0).to_string())

# %%
# The decision
# ------------
# Some customers have not ordered for months. A letter to each of them costs one euro. If one in
# twenty comes back for one basket, with a margin of a fifth, is the letter worth it?

share_back, margin, letter = 0.05, 0.2, 1.0
away = means["days since order"] > 90
means["gain of a letter"] = np.where(away, share_back * margin * means["basket"] - letter, np.nan)
valuable = means["revenue a year"].idxmax()

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.barh([f"group {group}" for group in means.index], means["revenue a year"], color="#0072B2")
ax.set(xlabel="revenue a year")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Each letter loses money: these customers buy too little. The campaign is for the group with the
# most revenue. Its customers go into a file, the most typical ones first.

distance = model.transform(points)[:, valuable]
chosen = customers.assign(distance=distance)[model.labels_ == valuable].sort_values("distance")
chosen.to_csv(folder / "campaign.csv", index=False)
print(means["gain of a letter"].dropna().round(2).to_string())
print(f"group {valuable}: {len(chosen)} customers, written to campaign.csv")
print(chosen.head(3).to_string(index=False))

# %%
# Next month, `powermeans.refit` starts from these groups with a new file, and they keep their
# numbers. At the shell, ``powermeans fit customers.csv --as age=ignore`` finds the groups and
# writes a report.
