"""
Levels of clusters
==================

Clusters of handwritten digits are joined two by two, the most similar first. A cut through the tree
gives fewer and larger groups.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram, fcluster
from sklearn.datasets import load_digits

from powermeans import PowerKMeans, merge_tree

digits = load_digits()
model = PowerKMeans(20, random_state=0).fit(digits.data)
merges = merge_tree(model, digits.data)
digit_of = [np.bincount(digits.target[model.labels_ == label]).argmax() for label in range(20)]
dendrogram(merges, labels=digit_of)
plt.xlabel("most frequent digit of the cluster")
print("ten groups:", fcluster(merges, 10, "maxclust"))
