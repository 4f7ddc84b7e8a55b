"""Formulas on arrays: the power mean, rules, schedules, the critical power, sums, criteria.

A formula is one function with the number of its equation. It imports `divergences` and `system`.
"""
