"""Power k-means in the feature space of a kernel, by the span of some of the points.

Spectral clustering takes its kernels from here too.
"""
