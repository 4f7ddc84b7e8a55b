"""What people do with clusters afterwards: explain them, score them in a database, fit them again.

Rules with a price, queries, numbers that stay from month to month, and levels of groups. All of it
takes fitted models as they are. No estimator knows of it.
"""

from powermeans.explaining.explanation import Explanation
from powermeans.explaining.following import Change

__all__ = ["Change", "Explanation"]
