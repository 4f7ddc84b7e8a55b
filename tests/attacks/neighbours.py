"""An answer for a row does not change with the rows beside it."""

from tests.attacks.relations import attack, judge_neighbours

ATTACK = attack(judge_neighbours)
