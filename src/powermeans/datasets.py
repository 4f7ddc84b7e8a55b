"""Real data sets, and where they come from."""

from powermeans_tables.datasets import *  # noqa: F403
from powermeans_tables.datasets import __all__ as __all__
