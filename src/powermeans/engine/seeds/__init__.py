"""Choose seeds, orders and samples of points: k-means++, k-means||, races.

It imports the engine, the kinds of points and the mathematics.
"""

from powermeans.engine.seeds.markov_chain import MarkovChainSeeds
from powermeans.engine.seeds.parallel import ParallelSeeds
from powermeans.engine.seeds.tree import TreeSeeds

__all__ = ["MarkovChainSeeds", "ParallelSeeds", "TreeSeeds"]
