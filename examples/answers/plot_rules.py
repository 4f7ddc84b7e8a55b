"""
Explain clusters by rules
=========================

Four rules on three columns keep 98 % of the wines in their cluster, and cost half a percent of the
sum of squares. They are in the units of the columns, although these were scaled.
"""

from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powermeans import PowerKMeans, explain

wines = load_wine(as_frame=True).data
model = make_pipeline(StandardScaler(), PowerKMeans(3, random_state=0)).fit(wines)
rules = explain(model, wines)
print(rules)
rules.plot()

# %%
# The same rules as a query for a database.

print(rules.to_sql("wines", dialect="postgresql"))
