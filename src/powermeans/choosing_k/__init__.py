"""Choosing the number of clusters: centers for each k, criteria, and the result.

It works on points that are open, and imports the engine and what is below it. Its face for users
is `powermeans.methods.functions.choose_k`.
"""

from powermeans.choosing_k.result import ChoiceOfK
from powermeans.choosing_k.stability import Stability

__all__ = ["ChoiceOfK", "Stability"]
