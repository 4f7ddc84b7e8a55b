"""People's columns as numbers: what cells mean, what columns contain, and how they count.

`Prepare` does it all. `number_forms` reads the numbers and dates of text, `cells` a column, `kinds`
says what a column contains, `features` which numbers it becomes, and `scaling` what these count;
`lines` makes rows of lines, and `notes` says what is in doubt.
"""

from powermeans_tables.preparing.kinds import Column
from powermeans_tables.preparing.prepare import Prepare

# The classes, besides estimators, that model files may contain.
SAVED = (Prepare, Column)
