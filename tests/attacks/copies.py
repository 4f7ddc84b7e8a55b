"""A weight acts as copies of its row do."""

from tests.attacks.relations import attack, judge_copies

ATTACK = attack(judge_copies)
