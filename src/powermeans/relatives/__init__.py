"""The methods that the literature names beside power k-means, each in its file.

They are estimators too, and what they share with it is in `estimators/base.py`.
"""
