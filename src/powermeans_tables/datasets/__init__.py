"""Real data to try clustering on, read from a folder of the user.

It imports only `types`, `errors` and `system`.
"""

from __future__ import annotations

from powermeans_tables.datasets.real import DataSet, about, fetch, load_data_set, names

__all__ = ["DataSet", "about", "fetch", "load_data_set", "names"]
