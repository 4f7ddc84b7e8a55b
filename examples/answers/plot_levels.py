"""
Levels of clusters
==================

Clusters of handwritten digits are joined two by two, the most similar first. A cut through the tree
gives fewer and larger groups.
"""

import numpy as np
from sklearn.datasets import load_digits

from powermeans import PowerKMeans, merge_tree

digits = load_digits()
model = PowerKMeans(20, random_state=0).fit(digits.data)
tree = merge_tree(model, digits.data)
tree.plot()
for label in range(20):
    digit = np.bincount(digits.target[model.labels_ == label]).argmax()
    print(f"cluster {label}: mostly {digit}")
print(tree)
print("ten groups:", tree.cut(10))
