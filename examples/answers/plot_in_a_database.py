"""
Label rows in a database
========================

A query labels each row of a table as `predict` does, with the same scaling.
"""

import sqlite3

import pandas as pd
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powermeans import PowerKMeans, to_sql

wines = load_wine(as_frame=True).data
model = make_pipeline(StandardScaler(), PowerKMeans(3, random_state=0)).fit(wines)
database = sqlite3.connect(":memory:")
wines.to_sql("wines", database, index=False)
labelled = pd.read_sql(to_sql(model, table="wines", dialect="sqlite"), database)
print(labelled["cluster"].value_counts())
print((labelled["cluster"] == model.predict(wines)).all())
