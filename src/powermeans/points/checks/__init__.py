"""Checks of all that a user passes, made here once and nowhere else.

It imports the mathematics and the divergences. Behind it points are finite, of one dtype and
in one order, and no function checks them again.
"""
