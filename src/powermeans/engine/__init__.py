"""The loop of every method, with its stop rules, updates and history, and the search around it.

It imports the mathematics and the protocol of points, the only way in which it knows points.
"""

from powermeans.engine.history import SweepState
from powermeans.engine.path_recorder import PathRecorder

__all__ = ["PathRecorder", "SweepState"]
