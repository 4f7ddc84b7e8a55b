"""Points times a power of two have centers times it, to the last bit."""

from tests.attacks.relations import attack, judge_scale

ATTACK = attack(judge_scale)
