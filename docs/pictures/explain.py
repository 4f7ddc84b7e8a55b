"""The rules of three clusters as a tree."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from powermeans import PowerKMeans, Prepare, explain

rng = np.random.default_rng(0)
kind = rng.integers(3, size=600)
april = pd.DataFrame(
    {
        "visits": rng.poisson(np.array([4, 20, 20])[kind]),
        "spend": rng.gamma(9, np.array([5, 4, 16])[kind]).round(2),
        "plan": np.array(["free", "team", "firm"])[np.where(rng.random(600) < 0.5, kind, 0)],
    }
)
model = make_pipeline(Prepare(), PowerKMeans(3, random_state=0)).fit(april)
explain(model, april).plot(ax=plt.subplots(figsize=(7, 2.4), layout="constrained")[1])
