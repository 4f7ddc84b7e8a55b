"""A saved model loads, and answers as it did."""

from tests.attacks.relations import attack, judge_loading

ATTACK = attack(judge_loading)
