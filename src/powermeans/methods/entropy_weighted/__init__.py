"""Power k-means that weighs features, by a price on the entropy of their weights.

Only `EntropyWeightedPowerKMeans` uses points whose features have weights. It finds these weights
beside the centers.
"""
