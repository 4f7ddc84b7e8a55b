"""People's columns as numbers: what cells mean, what columns contain, and how they count.

`Prepare` does it all. `number_forms` reads the numbers and dates of text, `cells` a column, `kinds`
says what a column contains, and `features` which numbers it becomes.
"""

from powermeans_tables.preparing.kinds import Column
from powermeans_tables.preparing.prepare import Prepare

# The classes, besides estimators, that model files may contain.
SAVED = (Prepare, Column)
